"""The site without a server, with every other address blocked: labs that play, tutorials from top to bottom.

`make test` opens the Explorer and the first tutorial there. The rest takes long, and is run by
`make lite-test`.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from browser.explorer_page import FIGURES, ExplorerPage
from browser.lite_site import CUT_OFF, START, TUTORIAL, Site, cut_off_page, framed, served, strip_outputs
from browser.opened import (
    CODE_PROMPT,
    ERROR_OUTPUT,
    OUTPUT,
    STDERR_OUTPUT,
    OpenedExplorer,
    OpenedLab,
    OpenedWidget,
    do_without,
    run_all,
)
from playwright.sync_api import Browser, Page, expect

from browser_site.build import CACHE, LABS, build_site
from browser_site.pyodide import fetch, read_pins

QUICK = "01_quickstart.ipynb"
NOTEBOOKS = [
    pytest.param(path.name, marks=() if path.name == QUICK else pytest.mark.lite)
    for path in sorted(Path(__file__).parents[2].glob("notebooks/*.ipynb"))
]

pytestmark = [pytest.mark.timeout(2 * TUTORIAL / 1000)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site that has everything in its folder; packages come from the index, once."""
    try:
        fetch(read_pins(), CACHE)
    except SystemExit as error:
        do_without(str(error))
    folder = build_site(tmp_path_factory.mktemp("lite") / "site", offline=True)
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
    # The same server by another name: it does answer, and is blocked.
    elsewhere = site.address.replace("127.0.0.1", "localhost")
    assert not page.evaluate(reach, elsewhere)
    assert site.asked == [elsewhere]
    site.asked.clear()


Opened = TypeVar("Opened", bound=ExplorerPage)


def open_lab(kind: type[Opened], page: Page, site: Site, title: str) -> Opened:
    """Choose a lab on the first page, and wait for what is inside its frame."""
    page.goto(site.address)
    page.get_by_role("link", name=title, exact=True).click()
    expect(page.get_by_text("Getting Python ready")).to_be_visible()
    lab = kind(framed(page))  # type: ignore[arg-type]
    expect(lab.page.get_by_text("Getting Python ready")).to_be_hidden(timeout=START)
    lab.wait_until_shown()
    return lab


def test_the_explorer_plays(page: Page, site: Site) -> None:
    explorer = open_lab(ExplorerPage, page, site, "Explorer")
    marks = explorer.marks()
    explorer.press("step")
    explorer.wait_for_iteration(1)
    explorer.wait_until_still()
    assert explorer.iteration() == 1
    explorer.press("play")
    explorer.wait_for_iteration(25)
    explorer.pause()
    later = explorer.marks()
    for name in FIGURES:
        assert later[name] != marks[name]
    # No code is to be seen, and no place to type any.
    expect(explorer.page.locator(".jp-InputArea:visible")).to_have_count(0)
    explorer.press("reset")
    explorer.wait_for_iteration(0, or_later=False)
    expect(explorer.part(".ew-view-error:visible")).to_have_count(0)
    assert explorer.faults == []


def prior_lab(lab: OpenedExplorer) -> None:
    lab.press("step")
    expect(lab.part(".ew-status")).to_contain_text("guest 1 of 40 opens table 1 (chance 1.00)")
    lab.press("play")
    expect(lab.part(".ew-status")).to_contain_text(re.compile(r"guest (1\d|2\d|3\d|40) of 40"))
    lab.press("pause")


def affine_lab(lab: OpenedExplorer) -> None:
    lab.part("button.ew-paper-III").click()
    expect(lab.part(".ew-verdict")).to_have_text(
        "Model III is invariant: same result before and after. "
        "Models I, II and k-means changed: the result depends on the coordinates.",
        timeout=START,
    )


def move_inspector(inspector: OpenedExplorer) -> None:
    stages = inspector.part(".ew-stages option")
    expect(stages.nth(2)).to_be_attached()
    last = stages.last.inner_text()
    inspector.part(".ew-stages select").select_option(label=last)
    expect(inspector.part(".ew-told h4")).to_have_text(last.split(maxsplit=1)[1])
    inspector.press("propose-again")
    expect(inspector.part(".ew-status")).to_contain_text("stage 1 of")


def chains_view(chains: OpenedExplorer) -> None:
    """Without threads or processes, chains run one after another."""
    chains.press("play")
    expect(chains.part(".ew-status")).to_contain_text(re.compile(r"iteration (\d{2,}|\d \d{3}) of"))
    chains.press("pause")


PLAYED: dict[str, tuple[type[OpenedExplorer], Callable[[OpenedExplorer], None]]] = {
    "PriorLab": (OpenedLab, prior_lab),
    "AffineLab": (OpenedLab, affine_lab),
    "MoveInspector": (OpenedWidget, move_inspector),
    "ChainsView": (OpenedWidget, chains_view),
}


@pytest.mark.lite
@pytest.mark.parametrize("title", PLAYED)
def test_a_lab_plays(title: str, page: Page, site: Site) -> None:
    kind, play = PLAYED[title]
    lab = open_lab(kind, page, site, title)
    play(lab)
    assert lab.faults == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_tutorial_runs_from_top_to_bottom(name: str, page: Page, site: Site) -> None:
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{site.address}notebooks/index.html?path={name}")
    expect(page.locator(".jp-Notebook")).to_be_visible(timeout=START)
    # While there is no kernel its indicator says idle too; what is run then may never be.
    expect(page.locator(".jp-Toolbar-kernelName")).to_contain_text("Pyodide")
    expect(page.locator(".jp-Notebook-ExecutionIndicator")).to_have_attribute(
        "data-status", "idle", timeout=START
    )
    run_all(page)
    # An error ends the run, here on the error stream: no need to wait for what will not come.
    ended = page.locator(f"{ERROR_OUTPUT}, {STDERR_OUTPUT}")
    ended = ended.or_(page.locator(OUTPUT).get_by_text("All claims hold.", exact=True))
    expect(ended.first).to_be_attached(timeout=TUTORIAL)
    said = page.locator(f"{ERROR_OUTPUT}, {STDERR_OUTPUT}").all_inner_texts()
    assert said == []
    expect(page.locator(CODE_PROMPT).last).to_have_text(re.compile(r"\[\d+\]:"))
    assert faults == []


def test_each_lab_is_tested() -> None:
    assert {lab.title for lab in LABS} == {"Explorer", *PLAYED}
