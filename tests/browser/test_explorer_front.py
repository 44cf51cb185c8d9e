"""The front door of the Explorer: what leads, what is a click away, transformed data, the tour, files."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.explorer_page import ANSWER, CIRCLES, FAST
from browser.layout import BOTTOM, settle
from browser.opened import VIEWPORT, Desk, OpenedExplorer, explorer_code, opened_explorer
from playwright.sync_api import expect

PLACES = (
    f"root => [...root.querySelectorAll('{CIRCLES}')].map(dot => dot.parentElement.getAttribute('transform'))"
)
OPACITY = "part => Number(getComputedStyle(part).opacity)"


@pytest.fixture(scope="module")
def shared_explorer(desk: Desk) -> Iterator[OpenedExplorer]:
    code = explorer_code("ew.datasets.unit_square(seed=0), model='III', iterations=4000, speed=1 / 10")
    with opened_explorer(desk, code) as explorer:
        yield explorer


@pytest.fixture
def explorer(shared_explorer: OpenedExplorer) -> Iterator[OpenedExplorer]:
    yield shared_explorer
    shared_explorer.pause()
    expect(shared_explorer.part(".ew-view-error:visible")).to_have_count(0)
    assert shared_explorer.faults == []


def test_it_fits_the_projector_beside_the_file_browser(explorer: OpenedExplorer) -> None:
    page = explorer.page
    page.set_viewport_size(VIEWPORT)
    page.keyboard.press("Control+b")
    expect(page.get_by_role("region", name="File Browser Section")).to_be_visible()
    explorer.root.evaluate("root => root.scrollIntoView({ block: 'start' })")
    settle(explorer.root)
    box = explorer.root.bounding_box()
    assert box is not None
    for part in ("button.ew-play", ".ew-timeline", ".ew-scatter", ".ew-heatmap-picture", ".ew-count-bars"):
        shown = explorer.part(part).bounding_box()
        assert shown is not None
        assert shown["y"] + shown["height"] <= BOTTOM, part
    page.keyboard.press("Control+b")
    expect(explorer.part(".ew-title")).to_contain_text("model III · invariant to shifts and all invertible")


def test_the_data_are_sheared_while_the_chain_goes_on(explorer: OpenedExplorer) -> None:
    explorer.press("play")
    explorer.wait_for_iteration(2)
    before, iteration = explorer.root.evaluate(PLACES), explorer.iteration()
    explorer.press("shear")
    explorer.eventually(lambda: explorer.root.evaluate(PLACES), lambda now: now != before)
    explorer.wait_for_iteration(iteration + 1)
    badge = explorer.part(".ew-badge")
    for name, result in {"model I": "changed", "model II": "changed", "model III": "same"}.items():
        one = badge.filter(has=explorer.page.get_by_text(name, exact=True))
        expect(one).to_contain_text(re.compile("same|changed"))
        expect(one).to_contain_text(result)
    explorer.press("undo")
    explorer.eventually(lambda: explorer.root.evaluate(PLACES), lambda now: now == before)
    expect(badge).to_have_count(0)


def test_the_timeline_leads_back_by_the_keyboard(explorer: OpenedExplorer) -> None:
    # The chain rests, so the kernel knows the iteration; the page may still show the one before.
    present = explorer.value("explorer.player.status.iteration") + 1
    explorer.press("step")
    explorer.wait_for_iteration(present, or_later=False)
    handle = explorer.part(".ew-timeline input")
    expect(handle).to_have_value(str(present))
    handle.focus()
    handle.press("ArrowLeft")
    explorer.wait_for_iteration(present - 1, or_later=False)
    handle.press("ArrowRight")
    explorer.wait_for_iteration(present, or_later=False)


def test_a_help_text_stays_within_the_window_and_esc_closes_it(explorer: OpenedExplorer) -> None:
    for view in (".ew-partition", ".ew-heatmap", ".ew-counts", ".ew-transform"):
        explorer.part(f"{view} summary").click()
        text = explorer.part(f"{view} details[open] > div")
        expect(text).to_be_visible()
        box, frame = text.bounding_box(), explorer.root.bounding_box()
        assert box is not None
        assert frame is not None
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
        # The focus may be anywhere.
        explorer.page.evaluate("() => document.activeElement?.blur()")
        explorer.page.keyboard.press("Escape")
        expect(explorer.part("details[open]")).to_have_count(0)


def test_the_tour_points_and_esc_brings_back_what_was_there(explorer: OpenedExplorer) -> None:
    was = explorer.value("(explorer.player.status.iteration, explorer.labels.tolist(), explorer.state)")
    explorer.press("tour-begin")
    expect(explorer.part(".ew-tour-caption")).to_contain_text("1 of 7 · Partition")
    expect(explorer.part(".ew-partition")).to_have_css("opacity", "1")
    explorer.eventually(lambda: explorer.part(".ew-heatmap").evaluate(OPACITY), lambda value: value < 0.5)
    expect(explorer.part("button.ew-tour-next")).to_be_focused()
    explorer.page.keyboard.press("Enter")
    expect(explorer.part(".ew-tour-caption")).to_contain_text("2 of 7 · Invariance")
    expect(explorer.part(".ew-badge").first).to_be_visible()
    explorer.eventually(lambda: explorer.part(".ew-transform").evaluate(OPACITY), lambda value: value == 1)
    explorer.page.keyboard.press("Escape")
    expect(explorer.part(".ew-tour")).to_be_hidden()
    explorer.wait_for_value(
        "(explorer.player.status.iteration, explorer.labels.tolist(), explorer.state)", was
    )
    explorer.eventually(lambda: explorer.part(".ew-heatmap").evaluate(OPACITY), lambda value: value == 1)


def test_a_large_file_is_downloaded_whole(explorer: OpenedExplorer) -> None:
    explorer.choose_speed(FAST)
    explorer.press("run-to-end")
    expect(explorer.part(".ew-headline")).to_contain_text(ANSWER)
    expect(explorer.part("button.ew-play")).to_contain_text("Run 1 000 more")
    explorer.open_section("Save and export")
    for choice, least in (
        ("answer by object (CSV)", 0),
        ("all draws (CSV)", 600_000),
    ):
        explorer.part(".ew-export-choice select").select_option(label=choice)
        with explorer.page.expect_download() as waiting:
            explorer.press("export")
        content = Path(waiting.value.path()).read_bytes()
        assert len(content) > least
        assert content.decode() == explorer.value(f"explorer.files._makers[{choice!r}]()[1].decode()")
    explorer.open_section("Save and export")
