"""Many objects, as fast as it goes: the page must not fall behind the chain."""

from collections.abc import Callable
from pathlib import Path

from browser.explorer_page import MOST_AFTER_PAUSE
from browser.opened import Server, assert_stands_still, explorer_code, opened_explorer
from playwright.sync_api import Page


def test_pause_freezes_500_objects_at_full_speed(
    page: Page, shared_server: Server, screenshot: Callable[[str], Path]
) -> None:
    code = explorer_code("ew.datasets.half_moons(n=500, seed=0), iterations=1_000_000, speed=None")
    with opened_explorer(page, shared_server, "many", code) as explorer:
        explorer.press("play")
        explorer.wait_for_iteration(300)
        screenshot("explorer-500")
        assert explorer.pause_frames() <= MOST_AFTER_PAUSE
        assert_stands_still(explorer)
        assert explorer.faults == []
