"""The explorer's page itself: closed and opened again, and in the dark theme."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.explorer_page import MOST_AFTER_PAUSE
from browser.opened import (
    OpenedExplorer,
    Server,
    explorer_code,
    new_page,
    opened_explorer,
    show_notebook,
)
from browser.opened_widget import dark_theme
from playwright.sync_api import Browser, Page, expect

# WCAG 2, level AA, for text of normal size.
READABLE = 4.5
TEXTS = ".axis .tick text, .axis text.axislabel, .widget-html-content, .widget-label, button, select"


@pytest.fixture
def explorer(page: Page, shared_server: Server) -> Iterator[OpenedExplorer]:
    code = explorer_code("ew.datasets.wine(), iterations=100_000")
    with opened_explorer(page, shared_server, "page", code) as explorer:
        yield explorer
        assert explorer.faults == []


def test_page_survives_closing_and_is_readable_in_the_dark(
    explorer: OpenedExplorer,
    shared_server: Server,
    browser: Browser,
    page: Page,
    repository: Path,
) -> None:
    explorer.press("play")
    explorer.wait_for_iteration(20)
    page.keyboard.press("Control+s")
    expect(page.locator(".jp-mod-dirty")).to_have_count(0)
    last_seen = explorer.iteration()
    page.goto("about:blank")

    again = new_page(browser)
    try:
        reopened = OpenedExplorer(again, kernel=explorer.kernel)
        show_notebook(again, shared_server.lab, "page.ipynb")
        reopened.wait_until_shown()
        reopened.wait_for_iteration(last_seen + 1)
        before = reopened.marks()
        reopened.wait_for_iteration(reopened.iteration() + 20)
        assert reopened.pause_frames() <= MOST_AFTER_PAUSE
        assert reopened.marks()["heatmap"] != before["heatmap"]
        assert reopened.iteration() == explorer.value("explorer.player.status.iteration")
        assert_readable(reopened)

        last_seen = reopened.iteration()
        with dark_theme(shared_server):
            show_notebook(again, shared_server.lab, "page.ipynb")
            reopened.wait_until_shown()
            expect(again.locator("body")).to_have_attribute("data-jp-theme-light", "false")
            assert reopened.iteration() == last_seen
            again.screenshot(path=repository / "artefacts" / "explorer-dark.png")
            assert_readable(reopened)
        assert reopened.faults == []
    finally:
        again.context.close()


def test_settings_open_by_the_keyboard_alone(explorer: OpenedExplorer, page: Page) -> None:
    header = explorer.part(".ew-settings").get_by_role("button", name="Run", exact=True)
    expect(header).to_have_attribute("aria-expanded", "false")
    explorer.part(".ew-example select").focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        if header.evaluate("header => header === document.activeElement"):
            break
    expect(header).to_be_focused()
    for key, is_open in (("Enter", True), (" ", False), (" ", True)):
        page.keyboard.press(key)
        expect(header).to_have_attribute("aria-expanded", str(is_open).lower())
    expect(explorer.part(".ew-iterations")).to_be_visible()
    assert explorer.iteration() == 0, "the space bar is the heading's, not Play's"


def assert_readable(explorer: OpenedExplorer) -> None:
    contrasts = explorer.contrasts(TEXTS)
    assert len(contrasts) > 20
    faint = {text: round(contrast, 1) for text, contrast in contrasts.items() if contrast < READABLE}
    assert faint == {}
