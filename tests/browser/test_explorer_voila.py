"""The Explorer as an application: Voilà shows the notebook without its code, in Chromium and in Firefox."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.explorer_page import FIGURES, MARKS, ExplorerPage, assert_plays
from browser.firefox import started_firefox
from browser.opened import explorer_code, write_notebook
from browser.servers import running_voila
from playwright.sync_api import Page

STATUS = "document.querySelector('.ew-explorer .ew-status')?.textContent ?? ''"
ITERATION = f"Number((({STATUS}).match(/iteration ([\\d\\s]+) of/)?.[1] ?? '-1').replace(/\\s/g, ''))"
DRAWN = "['path.dot', '.ew-count-bars path.area', '.ew-heatmap-picture image[href]']"


@pytest.fixture(scope="module")
def application(compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of an application that shows wine."""
    folder = tmp_path_factory.mktemp("voila")
    notebook = folder / "application.ipynb"
    write_notebook(notebook, explorer_code("ew.datasets.wine(), iterations=200_000"))
    with running_voila(folder, notebook) as address:
        yield address


def test_the_explorer_plays_in_voila(page: Page, application: str) -> None:
    explorer = ExplorerPage(page)
    page.goto(application)
    explorer.wait_until_shown()
    assert_plays(explorer)


def test_the_explorer_plays_in_firefox(application: str, tmp_path: Path) -> None:
    with started_firefox(tmp_path) as firefox:
        firefox.go_to(application)
        firefox.wait_for(f"{DRAWN}.every(part => document.querySelector(`.ew-explorer ${{part}}`))")
        firefox.wait_for(f"{ITERATION} === 0")
        marks = f"({MARKS})(document.querySelector('.ew-explorer'))"
        before = firefox.value(marks)
        firefox.click("button.ew-play")
        firefox.wait_for(f"{ITERATION} >= 20")
        firefox.click("button.ew-play")
        firefox.wait_for("!document.querySelector('button.ew-play').textContent.includes('Pause')")
        firefox.wait_for(f"!({STATUS}).includes('iterations/s')")
        after, paused = firefox.value(marks), firefox.value(ITERATION)
        for name, selector in FIGURES.items():
            assert after[name] != before[name], f"Play has not changed the marks of {name}"
            colours = firefox.picture(selector).getcolors(1 << 20)
            assert colours is not None
            assert len(colours) > 20, f"the picture of {name} is empty"
        assert firefox.value(ITERATION) == paused
        assert firefox.faults == []
