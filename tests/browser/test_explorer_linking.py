"""Brushing and cutting: what is selected in one picture of the explorer is seen in the others."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser.opened import OpenedExplorer, Server, explorer_code, new_page, opened_explorer
from playwright.sync_api import Browser, Page, expect

from ewens_widgets.analysis.plots.palette import GREY, SELECTED, rgb

PINK = rgb(SELECTED)
N_OBJECTS = 178


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    page = new_page(browser)
    yield page
    page.context.close()


@pytest.fixture(scope="module")
def shared_explorer(page: Page, shared_server: Server) -> Iterator[OpenedExplorer]:
    """Wine, with enough draws for a tree."""
    code = explorer_code("ew.datasets.wine(), iterations=600, burn_in=100")
    with opened_explorer(page, shared_server, "linking", code) as explorer:
        explorer.press("run-to-end")
        explorer.wait_for_iteration(600)
        explorer.wait_until_still()
        yield explorer


@pytest.fixture
def explorer(shared_explorer: OpenedExplorer) -> Iterator[OpenedExplorer]:
    yield shared_explorer
    expect(shared_explorer.part(".ew-view-error:visible")).to_have_count(0)
    assert shared_explorer.faults == []


def selected(explorer: OpenedExplorer) -> list[int]:
    return list(explorer.value("explorer.shared.selection.objects.tolist()"))


def cluster_colours(explorer: OpenedExplorer) -> set[str]:
    grey = "rgb({}, {}, {})".format(*rgb(GREY))
    return set(explorer.marks()["scatter"]) - {grey}


def assert_all_show_the_selection(explorer: OpenedExplorer) -> list[int]:
    explorer.wait_until_still()
    chosen = selected(explorer)
    assert 0 < len(chosen) < N_OBJECTS
    expect(explorer.part(".ew-partition .ew-legend")).to_contain_text(f"{len(chosen)} selected")
    assert explorer.bright_dots() == len(chosen)
    assert explorer.count_pixels(".ew-heatmap-picture", PINK) >= len(chosen)
    assert explorer.count_pixels(".ew-leaves", PINK) == len(chosen)
    return chosen


def test_brushing_the_scatter_selects_in_heatmap_and_tree(
    explorer: OpenedExplorer, screenshot: Callable[[str], Path]
) -> None:
    assert explorer.count_pixels(".ew-heatmap-picture", PINK) == 0
    explorer.brush(".ew-scatter", (0.25, 0.45), (0.5, 0.85))
    expect(explorer.part(".ew-partition .ew-legend")).to_contain_text("selected")
    assert_all_show_the_selection(explorer)
    screenshot("explorer-brushed-scatter")


def test_brushing_the_heatmap_selects_in_the_scatter(
    explorer: OpenedExplorer, screenshot: Callable[[str], Path]
) -> None:
    before = selected(explorer)
    explorer.brush(".ew-heatmap-picture", (0.3, 0.1), (0.4, 0.2))
    explorer.page.wait_for_function(
        "before => !document.querySelector('.ew-partition .ew-legend').textContent.includes(before)",
        arg=f" {len(before)} selected",
    )
    assert assert_all_show_the_selection(explorer) != before
    screenshot("explorer-brushed-heatmap")


def test_brushing_the_leaves_selects_everywhere(explorer: OpenedExplorer) -> None:
    before = selected(explorer)
    explorer.brush(".ew-leaves", (0.6, 0.5), (0.9, 0.5))
    explorer.page.wait_for_function(
        "before => !document.querySelector('.ew-partition .ew-legend').textContent.includes(before)",
        arg=f" {len(before)} selected",
    )
    assert assert_all_show_the_selection(explorer) != before


def test_the_number_of_clusters_to_cut_into_recolours(explorer: OpenedExplorer) -> None:
    before = explorer.marks()["scatter"]
    for count in (2, 4):
        explorer.type_in(".ew-cut-count", str(count))
        explorer.wait_for_change("scatter", before)
        labels = explorer.value("explorer.shared.cut_labels(explorer.player.current_frame()).tolist()")
        assert len(set(labels)) == count
        colours = explorer.marks()["scatter"]
        assert colours != before
        # A cluster of one object is grey.
        large = {label for label in labels if labels.count(label) > 1}
        assert len(cluster_colours(explorer)) == len(large)
        before = colours


def test_dragging_the_cut_line_recolours(explorer: OpenedExplorer, screenshot: Callable[[str], Path]) -> None:
    before, heatmap = explorer.marks()["scatter"], explorer.pixels()["heatmap"]
    figure, handle = explorer.box(".ew-tree-picture"), explorer.box(".ew-tree-picture path.dot >> nth=0")
    # Anywhere along the line, and not only at the handle that is seen.
    start = figure["x"] + 0.6 * figure["width"], handle["y"] + handle["height"] / 2
    explorer.drag(start, (start[0], figure["y"] + 0.9 * figure["height"]))
    explorer.wait_for_change("scatter", before)
    assert explorer.value("explorer.shared.shows_cut") is True
    assert explorer.value("explorer.shared.cut.height is not None") is True
    assert explorer.marks()["scatter"] != before
    assert explorer.pixels()["heatmap"] != heatmap, "the band of the heatmap keeps its old colours"
    screenshot("explorer-cut")


def test_colour_by_cut_can_be_switched_off(explorer: OpenedExplorer) -> None:
    before = explorer.marks()["scatter"]
    explorer.press("cut-shows")
    explorer.wait_for_change("scatter", before)
    assert explorer.value("explorer.shared.shows_cut") is False
    assert explorer.marks()["scatter"] != before


def test_what_is_under_the_mouse_is_told(explorer: OpenedExplorer, screenshot: Callable[[str], Path]) -> None:
    # Anything that is selected has rings and colours of its own.
    explorer.page.keyboard.press("Escape")
    rings = explorer.part(".ew-scatter path.dot").count()
    box = explorer.box(".ew-heatmap-picture")
    explorer.page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.2 * box["height"])
    expect(explorer.part(".ew-tip")).to_contain_text("% of draws")
    expect(explorer.part(".ew-scatter path.dot")).to_have_count(rings + 2)
    screenshot("explorer-pointed")
    dot = explorer.box(".ew-scatter path.dot >> nth=5")
    explorer.page.mouse.move(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2)
    expect(explorer.part(".ew-tip")).to_contain_text("class: ")
    expect(explorer.part(".ew-scatter path.dot")).to_have_count(rings)
    explorer.page.mouse.move(2, 2)
    expect(explorer.part(".ew-tip")).to_have_count(0)
