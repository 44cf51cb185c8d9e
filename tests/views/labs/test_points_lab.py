"""The points lab without a browser: strokes, table, text, undo, and a chain that goes on."""

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ewens_widgets as ew
from ewens_widgets.views.labs.points_lab import HEIGHT, format_table, parse_table

pytestmark = pytest.mark.usefixtures("wire")

CORNERS = [[1, 1], [1.2, 1.1], [1, 1.3], [1.3, 1.2], [8, 6], [8.1, 6.2], [8.3, 6], [8.2, 6.3]]

places = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 700)), max_size=20)


@pytest.fixture
def lab() -> ew.PointsLab:
    return ew.PointsLab(CORNERS, model="I", iterations=200, burn_in=20)


def stroke(lab: ew.PointsLab, kind: str, *points: tuple[float, float]) -> None:
    """What the page says when a stroke has ended; there y is counted from the top."""
    content = {"kind": kind, "points": [[x, HEIGHT - y] for x, y in points]}
    lab._sheet.sheet._handle_custom_msg(content, [])


@given(places)
def test_tables_are_exact(rows: list[tuple[int, int]]) -> None:
    points = np.array(rows, dtype=np.int64).reshape(-1, 2)
    np.testing.assert_array_equal(parse_table(format_table(points)), points)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n3", "line 2 must be two numbers, such as 1.5 2; got '3'"),
        ("a b", "line 1 must be two numbers"),
        ("1 2\n\n1 9", "line 3 is not on the sheet"),
        ("nan 1", "line 1 is not on the sheet"),
        ("1 1\n" * 501, "room for 500 points; got 501"),
    ],
)
def test_a_wrong_line_of_the_table_is_named_and_nothing_changes(
    lab: ew.PointsLab, text: str, message: str
) -> None:
    before = lab.text
    lab.table.control.value = text
    assert message in lab.table.problem
    assert lab.text == before


def test_strokes_paint_and_erase_and_everything_is_undone(lab: ew.PointsLab) -> None:
    texts = [lab.text]
    stroke(lab, "paint", (5, 5), (5.2, 5))
    texts.append(lab.text)
    assert lab.points[-2:].tolist() == [[5.0, 5.0], [5.2, 5.0]]
    stroke(lab, "erase", (1.1, 1.1))
    texts.append(lab.text)
    assert len(lab.points) == 6
    stroke(lab, "spray", (12, -3))
    assert lab.points[-1].tolist() == [10.0, 0.0], "kept on the sheet"
    texts.append(lab.text)
    lab.table.control.value = "1 1\n2,2\n3;1\n2 3.5"
    texts.append(lab.text)
    lab.clear_button.click()
    assert lab.text == ""
    for text in reversed(texts):
        assert not lab.undo_button.disabled
        lab.undo_button.click()
        assert lab.text == text
        assert lab.table.control.value == text
    assert lab.undo_button.disabled
    lab.undo()
    assert lab.text == texts[0]


@pytest.mark.parametrize("content", ["hello", {}, {"kind": "paint"}, {"kind": "erase", "points": [[-9, -9]]}])
def test_other_messages_change_nothing(lab: ew.PointsLab, content: object) -> None:
    before = lab.text
    lab._sheet.sheet._handle_custom_msg(content, [])
    assert lab.text == before
    assert lab.undo_button.disabled


def test_the_chain_goes_on_from_the_nearest_points(lab: ew.PointsLab) -> None:
    lab.player.step_sync(30)
    before = lab.player.recorder[-1].labels.tolist()
    lab.add([[8.05, 6.05], [1.05, 1.05]])
    assert lab.player.source.labels.tolist() == [*before, before[4], before[0]]
    assert lab.player.status.iteration == 0


def test_a_running_chain_runs_on_until_there_are_no_points() -> None:
    async def use() -> None:
        lab = ew.PointsLab(CORNERS, model="I", iterations=100_000)
        lab.player.play()
        for count in (30, 5):
            while lab.player.status.iteration < count:
                await asyncio.sleep(0)
            lab.add([[8.05, 6.05]])
            assert lab.player.status.is_running
        lab.clear()
        assert not lab.player.status.is_running
        lab.close()

    asyncio.run(use())


def test_colours_are_those_of_the_clusters(lab: ew.PointsLab) -> None:
    lab.player.run_to_end_sync()
    lab.player.complete()
    scene = lab._sheet.sheet.scene
    colours = scene["colours"]
    assert len(set(colours[:4])) == len(set(colours[4:])) == 1
    assert colours[0] != colours[4]
    assert scene["points"][0] == [1.0, 6.0], "y is counted from the top there"
    assert lab.n_groups == 2
    lab.selection = [0, 1]
    assert lab.selected_index == [0, 1]


@pytest.mark.parametrize("points", [None, [[1, 1]], [[1, 1], [2, 2], [3, 3], [4, 4], [5, 5]]])
def test_with_too_few_points_there_is_nothing_to_play(points: list[list[float]] | None) -> None:
    lab = ew.PointsLab(points)
    assert "ew-empty" in lab._dom_classes
    assert lab.problem.value != ""
    lab.add(CORNERS)
    assert "ew-empty" not in lab._dom_classes
    assert lab.problem.value == ""
    assert lab.dataset.n_objects == len(CORNERS) + len(points or [])


def test_points_are_kept_shared_and_scaled(lab: ew.PointsLab) -> None:
    kept = lab.keep("my corners")
    np.testing.assert_allclose(kept.X, CORNERS)
    assert ew.PointsLab(kept).text == ew.PointsLab(lab.text).text == lab.text
    lab.model.control.value = "II"
    assert lab.player.source.posterior.model == "II"
    wide = ew.PointsLab(100 * np.array(CORNERS) - 300)
    assert 0.0 <= wide.points.min() <= wide.points.max() <= 10.0
    ratios = np.ptp(wide.points, axis=0) / np.ptp(np.array(CORNERS), axis=0)
    assert ratios[0] == pytest.approx(ratios[1], rel=0.01)
    with pytest.raises(ValueError, match="at least two objects; 0 were painted"):
        ew.PointsLab().keep()
    lab.add(np.random.default_rng(0).uniform(0, 7, size=(600, 2)))
    assert len(lab.points) == 500
    assert "room for 500 points" in lab.problem.value
