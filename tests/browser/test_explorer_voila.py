"""The explorer as an application: Voilà shows the notebook without its code."""

from pathlib import Path

from browser.explorer_page import ExplorerPage, assert_plays
from browser.opened import explorer_code, write_notebook
from browser.voila_server import running_voila
from playwright.sync_api import Page


def test_the_explorer_plays_in_voila(page: Page, compiled: None, tmp_path: Path) -> None:
    notebook = tmp_path / "application.ipynb"
    write_notebook(notebook, explorer_code("ew.datasets.wine(), iterations=200_000"))
    explorer = ExplorerPage(page)
    with running_voila(tmp_path, notebook) as address:
        page.goto(address)
        explorer.wait_until_shown()
        assert_plays(explorer)
