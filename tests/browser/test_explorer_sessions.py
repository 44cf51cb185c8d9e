"""A session that was saved and loaded shows the same picture, pixel by pixel."""

import math
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from browser.explorer_page import FAST, PAINT_ANEW
from browser.layout import settle
from browser.opened import Desk, OpenedExplorer, explorer_code, opened_explorer
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import expect

PARTS = {
    "headline": ".ew-headline-row",
    "partition": ".ew-partition",
    "tree": ".ew-tree",
    "heatmap": ".ew-heatmap",
    "counts": ".ew-counts",
    "theta": ".ew-theta",
    "traces": ".ew-traces",
}


def pictures(explorer: OpenedExplorer) -> dict[str, NDArray[np.uint8]]:
    """Pixels of every view with its controls, and of the headline: those that are theirs alone."""
    explorer.page.mouse.move(2, 2)
    # Whatever has the focus is outlined.
    explorer.page.evaluate("() => document.activeElement?.blur()")
    # Other data have other settings beside them; where these were higher, the page has been scrolled.
    explorer.root.evaluate("root => root.scrollIntoView({ block: 'start' })")
    settle(explorer.root)
    explorer.root.evaluate(PAINT_ANEW)
    screen = np.asarray(Image.open(BytesIO(explorer.page.screenshot())).convert("RGB"))
    found = {}
    for name, selector in PARTS.items():
        box = explorer.part(selector).bounding_box()
        assert box is not None, f"{name} is not visible"
        top, left = math.ceil(box["y"]), math.ceil(box["x"])
        bottom, right = math.floor(box["y"] + box["height"]), math.floor(box["x"] + box["width"])
        found[name] = screen[top:bottom, left:right]
    return found


def cut_and_ellipses(explorer: OpenedExplorer) -> None:
    """Pause somewhere, and look at the chain in a way of one's own."""
    explorer.value("setattr(explorer.player, 'target_iterations', 100_000)")
    explorer.choose_speed(FAST)
    explorer.press("play")
    explorer.wait_for_iteration(150)
    explorer.pause()
    explorer.part(".ew-tree-kind select").select_option(label="similarity, average linkage")
    explorer.type_in(".ew-cut-count", "4")
    explorer.press("ellipses")
    explorer.part(".ew-x-feature select").select_option(label="PC 3")
    expect(explorer.part(".ew-headline")).to_contain_text("Tree cut into 4 clusters")


def looks_the_same(explorer: OpenedExplorer, before: dict[str, NDArray[np.uint8]], folder: Path) -> None:
    """Wait until every picture is as it was; where one stays different, both are saved."""
    after = before

    def changed() -> list[str]:
        nonlocal after
        after = pictures(explorer)
        return [part for part in PARTS if not np.array_equal(before[part], after[part])]

    try:
        explorer.eventually(changed, lambda parts: parts == [])
    except AssertionError:
        for part in PARTS:
            Image.fromarray(before[part]).save(folder / f"{part}_before.png")
            Image.fromarray(after[part]).save(folder / f"{part}_after.png")
        raise


@pytest.fixture(scope="module")
def explorer(desk: Desk) -> Iterator[OpenedExplorer]:
    code = explorer_code("ew.datasets.wine(), iterations=300, burn_in=50")
    with opened_explorer(desk, code) as explorer:
        explorer.show_all_pictures()
        yield explorer


def test_it_looks_the_same(explorer: OpenedExplorer, tmp_path: Path) -> None:
    cut_and_ellipses(explorer)
    explorer.wait_until_still()
    before = pictures(explorer)
    saved = str(tmp_path / "session.ewens")
    explorer.value(f"explorer.save({saved!r})")
    explorer.value("explorer.use_preset('four corners')")
    expect(explorer.part(".ew-headline")).to_contain_text("80 points")
    explorer.wait_until_still()
    explorer.eventually(
        lambda: pictures(explorer)["partition"], lambda now: not np.array_equal(before["partition"], now)
    )
    explorer.value(f"explorer.load({saved!r})")
    expect(explorer.part(".ew-headline")).not_to_contain_text("80 points")
    explorer.wait_until_still()
    looks_the_same(explorer, before, tmp_path)
    assert explorer.faults == []
