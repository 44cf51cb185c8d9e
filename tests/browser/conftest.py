"""A real browser and one JupyterLab for all tests of a process, and a page for each test or each file.

Ports are free ones and folders are temporary, so several processes can share the tests: `make browser` does.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from browser.explorer_page import PATIENCE
from browser.opened import Desk, Server, do_without, new_page
from browser.servers import running_lab
from playwright.sync_api import Browser, Error, Page, Playwright, expect, sync_playwright

# Without these, Chromium looks for updates and news of its own, which is only noise here.
QUIET_FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# Chromium paints only what has changed, and the edges of dots then differ a little each time. Pictures that
# are compared pixel by pixel are painted whole.
WHOLE_PICTURES = ["--disable-partial-raster"]

# Playwright hides scroll bars; shown, those that should not be there are found.
SHOWN_SCROLL_BARS = ["--hide-scrollbars"]

# A busy machine is not a fault.
expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            # The tests of a file share a page, and so a process; those of the layout open one each.
            if not item.get_closest_marker("layout"):
                item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Where a test fails, save how its pages look, what they are made of, and what their consoles say."""
    report = yield
    browser = getattr(item, "funcargs", {}).get("browser")
    if report.failed and report.when != "teardown" and browser is not None:
        folder = item.config.rootpath / "artefacts"
        folder.mkdir(exist_ok=True)
        name = re.sub(r"\W+", "-", item.name)
        for number, page in enumerate(page for context in browser.contexts for page in context.pages):
            picture = folder / f"failed-{name}-{number}.png"
            with suppress(Error):  # a page that has crashed
                page.screenshot(path=picture)
                picture.with_suffix(".html").write_text(page.content())
                said = [f"{message.type}: {message.text}" for message in page.console_messages()]
                picture.with_suffix(".txt").write_text("\n".join([*said, *map(str, page.page_errors())]))
    return report


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright


def launched(playwright: Playwright, *more_flags: str) -> Browser:
    """Debian's Chromium if it is there, otherwise Playwright's own."""
    flags = [*QUIET_FLAGS, *WHOLE_PICTURES, *more_flags]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags.append("--no-sandbox")  # Chromium's sandbox does not start for root
    try:
        return playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=flags, ignore_default_args=SHOWN_SCROLL_BARS
        )
    except Error as error:
        said = error.message.splitlines()[0]
        do_without(f"no browser to test with, `make browser` tells how to get one ({said})")


@pytest.fixture(scope="session")
def launch(playwright: Playwright) -> Callable[..., Browser]:
    """Function that starts a browser with flags of its own."""
    return partial(launched, playwright)


@pytest.fixture(scope="session")
def browser(launch: Callable[..., Browser]) -> Iterator[Browser]:
    browser = launch()
    yield browser
    browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = new_page(browser)
    yield page
    page.context.close()


@contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    root, private = folder / "notebooks", folder / "private"
    root.mkdir()
    private.mkdir()
    command = ["-m", "jupyterlab", "--allow-root", "--ServerApp.ip=127.0.0.1", "--expose-app-in-browser"]
    command.append(f"--ServerApp.root_dir={root}")
    with running_lab(private, command, root) as lab:
        yield Server(lab, private)


@pytest.fixture(scope="session")
def compiled() -> None:
    """Sampler compiled and cached: on a busy machine that can take longer than a page is waited for."""
    code = (
        "import ewens_widgets as ew; ew.Explorer(ew.datasets.wine()).player.step_sync(); "
        "[ew.MoveInspector(ew.datasets.unit_square(seed=0), model='I', move=name) for name in ew.moves.MOVES]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(scope="session")
def desk(browser: Browser, shared_server: Server) -> Iterator[Desk]:
    """A page with a notebook for all tests of a process."""
    page = new_page(browser)
    yield Desk(page, shared_server)
    page.context.close()


@pytest.fixture(scope="session")
def shared_server(compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """JupyterLab for tests that only need a notebook and a kernel of their own."""
    with running_server(tmp_path_factory.mktemp("shared")) as server:
        yield server
