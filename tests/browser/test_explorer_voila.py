"""The explorer as an application: Voilà shows the notebook without its code."""

from collections.abc import Callable
from pathlib import Path

from browser.explorer_page import FAST, FIGURES, MOST_AFTER_PAUSE, ExplorerPage
from browser.opened import explorer_code, write_notebook
from browser.voila_server import running_voila
from playwright.sync_api import Page, expect


def test_play_pause_and_step_in_voila(
    page: Page, compiled: None, tmp_path: Path, screenshot: Callable[[str], Path]
) -> None:
    notebook = tmp_path / "application.ipynb"
    write_notebook(notebook, explorer_code("ew.datasets.wine(), iterations=200_000"))
    explorer = ExplorerPage(page)
    with running_voila(tmp_path, notebook) as address:
        page.goto(address)
        explorer.wait_until_shown()
        marks, pixels = explorer.marks(), explorer.pixels()
        explorer.press("step")
        explorer.wait_for_iteration(1)
        explorer.wait_until_still()
        assert explorer.iteration() == 1
        explorer.press("play")
        explorer.wait_for_iteration(10)
        explorer.choose_speed(FAST)
        explorer.wait_for_iteration(300)
        assert explorer.pause_frames() <= MOST_AFTER_PAUSE
        screenshot("explorer-voila")
        later_marks, later_pixels = explorer.marks(), explorer.pixels()
        for name in FIGURES:
            assert later_marks[name] != marks[name]
            assert later_pixels[name] != pixels[name]
        present = explorer.iteration()
        explorer.press("step")
        explorer.wait_for_iteration(present + 1)
        explorer.wait_until_still()
        assert explorer.iteration() == present + 1
        explorer.press("reset")
        explorer.wait_for_iteration(0, or_later=False)
        expect(explorer.part(".ew-view-error:visible")).to_have_count(0)
        assert explorer.faults == []
