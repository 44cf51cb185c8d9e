"""A real browser, a page and a JupyterLab of its own for each test that asks."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser.lab_server import Lab, running_lab
from playwright.sync_api import Browser, Error, Page, Playwright, expect, sync_playwright

# A classroom projector.
VIEWPORT = {"width": 1280, "height": 800}

# Without these, Chromium looks for updates and news of its own, which is only noise here.
QUIET_FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# Milliseconds until a test gives up waiting for something to appear: a busy machine is not a fault.
PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)

REPORTS = pytest.StashKey[dict[str, pytest.TestReport]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    item.stash.setdefault(REPORTS, {})[report.when] = report
    return report


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """Debian's Chromium if it is there, otherwise Playwright's own."""
    flags = list(QUIET_FLAGS)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags.append("--no-sandbox")  # Chromium's sandbox does not start for root
    try:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
    except Error as error:
        message = (
            f"no browser to test with, `make browser` tells how to get one ({error.message.splitlines()[0]})"
        )
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    yield browser
    browser.close()


@pytest.fixture
def screenshot(page: Page, repository: Path) -> Callable[[str], Path]:
    """Function that saves a picture of the page under a name."""

    def save(name: str) -> Path:
        path = repository / "artefacts" / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        page.screenshot(path=path)
        return path

    return save


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport=VIEWPORT)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    yield page
    context.close()


@pytest.fixture(autouse=True)
def picture_of_failure(screenshot: Callable[[str], Path], request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    report = request.node.stash.get(REPORTS, {}).get("call")
    if report is not None and report.failed:
        screenshot("failed-" + re.sub(r"\W+", "-", request.node.name))


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """JupyterLab on an empty folder."""
    root, private = tmp_path / "notebooks", tmp_path / "private"
    root.mkdir()
    private.mkdir()
    command = ["-m", "jupyterlab", "--allow-root", "--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={root}"]
    with running_lab(private, command, root) as lab:
        yield lab
