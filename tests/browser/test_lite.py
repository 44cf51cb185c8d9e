"""The site without a server, with every other address blocked: labs that play, tutorials from top to bottom.

`make test` opens the Explorer and the first tutorial there. The rest takes long, and is run by
`make lite-test`.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser.explorer_page import FIGURES, ExplorerPage
from browser.lab_page import CODE_PROMPT, ERROR_OUTPUT, OUTPUT, STDERR_OUTPUT
from browser.labs_page import OpenedLab
from browser.lite_site import CUT_OFF, START, TUTORIAL, Site, cut_off_page, framed, served, strip_outputs
from browser.opened import do_without
from browser.opened_widget import OpenedWidget
from playwright.sync_api import Browser, Page, expect

from ewens_widgets.app.command_line import StartError
from ewens_widgets.app.lite import LABS, build_site
from ewens_widgets.app.pyodide import fetch, read_pins
from ewens_widgets.files import cache_directory

QUICK = "01_quickstart.ipynb"
NOTEBOOKS = [
    pytest.param(path.name, marks=() if path.name == QUICK else pytest.mark.lite)
    for path in sorted(Path(__file__).parents[2].glob("notebooks/*.ipynb"))
]

pytestmark = [pytest.mark.timeout(2 * TUTORIAL / 1000)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site that has everything in its folder; packages come from the index, once."""
    cache = cache_directory() / "lite"
    try:
        fetch(read_pins(), cache)
    except StartError as error:
        do_without(str(error))
    folder = build_site(tmp_path_factory.mktemp("lite") / "site", cache=cache)
    strip_outputs(folder / "files")
    with served(folder) as site:
        yield site


@pytest.fixture(scope="module")
def browser(launch: Callable[..., Browser]) -> Iterator[Browser]:
    browser = launch(CUT_OFF)
    yield browser
    browser.close()


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    site.asked.clear()
    page = cut_off_page(browser, site)
    yield page
    page.context.close()
    assert site.asked == []


def test_other_addresses_are_out_of_reach(page: Page, site: Site) -> None:
    page.goto(site.address)
    reach = "url => fetch(url, { mode: 'no-cors' }).then(() => true, () => false)"
    assert page.evaluate(reach, site.address)
    # The same server by another name, so that it is not luck that nobody answers.
    elsewhere = site.address.replace("127.0.0.1", "localhost")
    assert not page.evaluate(reach, elsewhere)
    assert site.asked == [elsewhere]
    site.asked.clear()


def open_lab(page: Page, site: Site, title: str) -> Page:
    """Choose a lab on the first page; returns what is inside its frame."""
    page.goto(site.address)
    page.get_by_role("link", name=title, exact=True).click()
    expect(page.get_by_text("Getting Python ready")).to_be_visible()
    return framed(page)  # type: ignore[return-value]


def wait_for_lab(page: Page) -> None:
    expect(page.get_by_text("Getting Python ready")).to_be_hidden(timeout=START)


def test_the_explorer_plays(page: Page, site: Site, screenshot: Callable[[str], Path]) -> None:
    explorer = ExplorerPage(open_lab(page, site, "Explorer"))
    wait_for_lab(page)
    explorer.wait_until_shown()
    marks = explorer.marks()
    explorer.press("step")
    explorer.wait_for_iteration(1)
    explorer.wait_until_still()
    assert explorer.iteration() == 1
    explorer.press("play")
    explorer.wait_for_iteration(25)
    explorer.press("pause")
    explorer.wait_until_still()
    screenshot("lite-explorer")
    later = explorer.marks()
    for name in FIGURES:
        assert later[name] != marks[name]
    # No code is to be seen, and no place to type any.
    expect(explorer.page.locator(".jp-InputArea:visible")).to_have_count(0)
    explorer.press("reset")
    explorer.wait_for_iteration(0, or_later=False)
    expect(explorer.part(".ew-view-error:visible")).to_have_count(0)
    assert explorer.faults == []


@pytest.mark.lite
def test_the_prior_lab_plays(page: Page, site: Site, screenshot: Callable[[str], Path]) -> None:
    lab = OpenedLab(open_lab(page, site, "PriorLab"))
    wait_for_lab(page)
    lab.wait_until_shown()
    lab.press("step")
    expect(lab.part(".ew-status")).to_contain_text("guest 1 of 40 opens table 1 (chance 1.00)")
    lab.press("play")
    expect(lab.part(".ew-status")).to_contain_text(re.compile(r"guest (1\d|2\d|3\d|40) of 40"))
    lab.press("pause")
    screenshot("lite-prior-lab")
    assert lab.faults == []


@pytest.mark.lite
def test_the_affine_lab_plays(page: Page, site: Site, screenshot: Callable[[str], Path]) -> None:
    lab = OpenedLab(open_lab(page, site, "AffineLab"))
    wait_for_lab(page)
    lab.wait_until_shown()
    lab.part("button.ew-paper-III").click()
    expect(lab.part(".ew-verdict")).to_have_text(
        "Model III is invariant: same result before and after. "
        "Models I, II and k-means changed: the result depends on the coordinates.",
        timeout=START,
    )
    screenshot("lite-affine-lab")
    assert lab.faults == []


@pytest.mark.lite
def test_the_move_inspector_plays(page: Page, site: Site, screenshot: Callable[[str], Path]) -> None:
    inspector = OpenedWidget(open_lab(page, site, "MoveInspector"))
    wait_for_lab(page)
    inspector.wait_until_shown()
    stages = inspector.part(".ew-stages select")
    last = inspector.part(".ew-stages option").last.inner_text()
    stages.select_option(label=last)
    expect(inspector.part(".ew-told h4")).to_have_text(last.split(maxsplit=1)[1])
    screenshot("lite-move-inspector")
    inspector.press("propose-again")
    expect(inspector.part(".ew-status")).to_contain_text("stage 1 of")
    assert inspector.faults == []


@pytest.mark.lite
def test_chains_run_one_after_another(page: Page, site: Site, screenshot: Callable[[str], Path]) -> None:
    chains = OpenedWidget(open_lab(page, site, "ChainsView"))
    wait_for_lab(page)
    chains.wait_until_shown()
    chains.press("play")
    expect(chains.part(".ew-status")).to_contain_text(re.compile(r"iteration (\d{2,}|\d \d{3}) of"))
    chains.press("pause")
    screenshot("lite-chains-view")
    assert chains.faults == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_tutorial_runs_from_top_to_bottom(
    name: str, page: Page, site: Site, screenshot: Callable[[str], Path]
) -> None:
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{site.address}notebooks/index.html?path={name}")
    expect(page.locator(".jp-Notebook")).to_be_visible(timeout=START)
    # While there is no kernel its indicator says idle too; what is run then may never be.
    expect(page.locator(".jp-Toolbar-kernelName")).to_contain_text("Pyodide")
    expect(page.locator(".jp-Notebook-ExecutionIndicator")).to_have_attribute(
        "data-status", "idle", timeout=START
    )
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name=re.compile("^Run All( Cells)?$")).click()
    # An error ends the run, here on the error stream: no need to wait for what will not come.
    ended = page.locator(f"{ERROR_OUTPUT}, {STDERR_OUTPUT}")
    ended = ended.or_(page.locator(OUTPUT).get_by_text("All claims hold.", exact=True))
    expect(ended.first).to_be_attached(timeout=TUTORIAL)
    screenshot(f"lite-{Path(name).stem}")
    expect(page.locator(ERROR_OUTPUT)).to_have_count(0)
    expect(page.locator(STDERR_OUTPUT)).to_have_count(0)
    expect(page.locator(CODE_PROMPT).last).to_have_text(re.compile(r"\[\d+\]:"))
    assert faults == []


def test_each_lab_is_tested() -> None:
    assert {lab.title for lab in LABS} == {"Explorer", "PriorLab", "AffineLab", "MoveInspector", "ChainsView"}
