"""Brushing and cutting: what is selected in one picture of the explorer is seen in the others."""

from collections.abc import Iterator

import pytest
from browser.opened import RECORDED, Desk, OpenedExplorer, explorer_code, opened_explorer
from playwright.sync_api import expect

from ewens_widgets.analysis.plots.palette import SELECTED, rgb

PINK = rgb(SELECTED)
N_OBJECTS = 178


@pytest.fixture(scope="module")
def shared_explorer(desk: Desk) -> Iterator[OpenedExplorer]:
    """Wine, with enough draws for a tree."""
    code = explorer_code("ew.datasets.wine(), iterations=600, burn_in=100")
    with opened_explorer(desk, code) as explorer:
        explorer.show_all_pictures()
        explorer.press("run-to-end")
        explorer.wait_for_iteration(600)
        explorer.wait_until_still()
        assert explorer.value(RECORDED) == (600, 600)
        yield explorer


@pytest.fixture
def explorer(shared_explorer: OpenedExplorer) -> Iterator[OpenedExplorer]:
    yield shared_explorer
    expect(shared_explorer.part(".ew-view-error:visible")).to_have_count(0)
    assert shared_explorer.faults == []


def selected(explorer: OpenedExplorer) -> int:
    return explorer.value("len(explorer.shared.selection)")


def clear_selection(explorer: OpenedExplorer) -> None:
    if selected(explorer):
        explorer.press("clear")
    explorer.wait_for_value("len(explorer.shared.selection)", 0)
    expect(explorer.part(".ew-partition .ew-legend")).not_to_contain_text("selected")
    explorer.eventually(lambda: explorer.count_pixels(".ew-heatmap-picture", PINK), lambda count: count == 0)


@pytest.mark.parametrize(
    ("figure", "low", "high"),
    [
        (".ew-scatter", (0.25, 0.45), (0.5, 0.85)),
        (".ew-heatmap-picture", (0.3, 0.1), (0.4, 0.2)),
        (".ew-leaves", (0.6, 0.5), (0.9, 0.5)),
    ],
)
def test_what_is_brushed_in_one_picture_is_selected_in_all(
    explorer: OpenedExplorer, figure: str, low: tuple[float, float], high: tuple[float, float]
) -> None:
    clear_selection(explorer)
    explorer.brush(figure, low, high)

    def seen() -> tuple[int, str, int, int, int]:
        return (
            selected(explorer),
            explorer.part(".ew-partition .ew-legend").inner_text(),
            explorer.bright_dots(),
            explorer.count_pixels(".ew-heatmap-picture", PINK),
            explorer.count_pixels(".ew-leaves", PINK),
        )

    def is_whole(seen: tuple[int, str, int, int, int]) -> bool:
        chosen, legend, bright, heatmap, leaves = seen
        told = f"{chosen} selected" in legend
        return 0 < chosen < N_OBJECTS and told and bright == chosen == leaves and heatmap >= chosen

    explorer.eventually(seen, is_whole)


def test_dragging_the_cut_line_recolours(explorer: OpenedExplorer) -> None:
    before, heatmap = explorer.marks()["scatter"], explorer.pixels()["heatmap"]
    figure, handle = explorer.box(".ew-tree-picture"), explorer.box(".ew-tree-picture path.dot >> nth=0")
    # Anywhere along the line, and not only at the handle that is seen.
    start = figure["x"] + 0.6 * figure["width"], handle["y"] + handle["height"] / 2
    explorer.drag(start, (start[0], figure["y"] + 0.9 * figure["height"]))
    explorer.wait_for_change("scatter", before)
    explorer.wait_for_value("explorer.shared.shows_cut and explorer.shared.cut.height is not None", True)
    explorer.eventually(lambda: explorer.pixels()["heatmap"], lambda picture: picture != heatmap)


def test_what_is_under_the_mouse_is_told(explorer: OpenedExplorer) -> None:
    # Anything that is selected has rings and colours of its own.
    clear_selection(explorer)
    explorer.wait_until_still()
    rings = explorer.part(".ew-scatter path.dot").count()
    box = explorer.box(".ew-heatmap-picture")
    explorer.page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.2 * box["height"])
    expect(explorer.part(".ew-tip")).to_contain_text("% of draws")
    expect(explorer.part(".ew-scatter path.dot")).to_have_count(rings + 2)
    dot = explorer.box(".ew-scatter path.dot >> nth=5")
    explorer.page.mouse.move(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2)
    expect(explorer.part(".ew-tip")).to_contain_text("class: ")
    expect(explorer.part(".ew-scatter path.dot")).to_have_count(rings)
    explorer.page.mouse.move(2, 2)
    expect(explorer.part(".ew-tip")).to_have_count(0)
