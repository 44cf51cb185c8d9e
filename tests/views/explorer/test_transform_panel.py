"""The data are transformed, and each badge says what a run on both versions with the same seed has found."""

import asyncio

import numpy as np
import pytest
from views.explorer.small_explorer import square, step

import ewens_widgets as ew
from ewens_widgets.playback.invariance import Comparison
from ewens_widgets.views.explorer.explorer import Explorer
from ewens_widgets.views.explorer.transform_panel import TransformPanel

pytestmark = pytest.mark.usefixtures("wire")


def badges(panel: TransformPanel) -> dict[str, bool]:
    """Whether each result stays the same, once everything has been run."""
    panel.worker.run_sync()
    parts = panel.badges.value.split("<b>")[1:]
    return {part.partition("</b>")[0]: "same" in part.partition("</span>")[0] for part in parts}


@pytest.mark.parametrize(
    ("steps", "same"),
    [
        (["Rotate"], "I III k-means"),
        (["Stretch"], "II III"),
        (["Shear"], "III"),
        (["Rotate", "Stretch"], "III"),
    ],
)
def test_badges_say_what_stays_the_same(steps: list[str], same: str) -> None:
    explorer = Explorer(square(), model="III")
    for name in steps:
        explorer.transform.buttons[name].click()
    found = badges(explorer.transform)
    assert list(found) == ["model I", "model II", "model III", "k-means"]
    expected = {name if name == "k-means" else f"model {name}" for name in same.split()}
    # k-means may by chance find the same clusters on data that were stretched.
    assert {name for name, is_same in found.items() if is_same} - expected <= {"k-means"}
    assert expected <= {name for name, is_same in found.items() if is_same}
    assert "Every draw of your chain (model III) stays the same." in explorer.transform.badges.value


def test_a_chain_that_notices_is_reported_to_do_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sabotaged twin: were both versions the same data, all badges would say same."""
    explorer = Explorer(square(), model="I")
    explorer.transform.buttons["Shear"].click()
    assert not badges(explorer.transform)["model I"]
    assert "gives another result" in explorer.transform.badges.value
    make = Comparison.__init__
    monkeypatch.setattr(Comparison, "__init__", lambda self, X, _, *rest: make(self, X, X, *rest))
    explorer.transform.buttons["Shear"].click()
    assert all(badges(explorer.transform).values())


def test_points_move_and_the_chain_is_left_alone() -> None:
    explorer = Explorer(square(), model="II")
    step(explorer, 5)
    points, labels = explorer.views["partition"].points, explorer.labels
    before = np.column_stack([points.x, points.y])
    panel = explorer.transform
    for name in ("Shear", "Stretch"):
        panel.buttons[name].click()
    middle = before.mean(axis=0)
    moved = middle + (before - middle) @ panel.matrix
    np.testing.assert_allclose(np.column_stack([points.x, points.y]), moved)
    np.testing.assert_allclose(panel.transformed.X, moved)
    assert explorer.player.status.iteration == 5
    np.testing.assert_array_equal(explorer.labels, labels)
    panel.buttons["Undo"].click()
    panel.buttons["Undo"].click()
    assert panel.buttons["Undo"].disabled
    np.testing.assert_allclose(np.column_stack([points.x, points.y]), before)
    assert panel.comparison is None


def test_components_are_transformed_in_all_columns() -> None:
    explorer = Explorer(ew.datasets.wine(), model="III")
    panel, points = explorer.transform, explorer.views["partition"].points
    panel.buttons["Shear"].click()
    columns = panel.transformed
    assert np.linalg.matrix_rank(columns.X - columns.X.mean(axis=0)) == 13
    weights = explorer.views["partition"].plane.axes_weights
    shown = (columns.X - columns.X.mean(axis=0)) @ weights
    np.testing.assert_allclose(shown, np.column_stack([points.x, points.y]), atol=1e-9)
    explorer.views["partition"].plane.choosers[0].value = "row number"
    assert np.array_equal(panel.matrix, np.eye(2)), "other axes are shown as they are"
    panel.buttons["Rotate"].click()
    assert "Choose columns or components" in panel.badges.value


def test_dice_are_invertible_and_a_plane_that_becomes_a_line_is_refused() -> None:
    panel = Explorer(square()).transform
    for _ in range(20):
        panel.buttons["Dice"].click()
        assert abs(np.linalg.det(panel.matrix)) > 0.3
    panel.reset()
    for _ in range(6):
        panel.buttons["Stretch"].click()
    assert panel.matrix[0, 0] == 16.0
    assert "nearly on a line" in panel.badges.value


def test_the_chain_can_run_on_the_transformed_data() -> None:
    async def use() -> None:
        explorer = Explorer(square(), model="III")
        step(explorer, 3)
        explorer.transform.buttons["Shear"].click()
        await explorer.transform.worker.wait()
        assert explorer.transform.comparison is not None
        assert explorer.transform.comparison.is_done
        labels, X = explorer.labels, explorer.transform.transformed.X
        explorer.transform.use.click()
        assert explorer.dataset.name == "unit square, transformed"
        np.testing.assert_array_equal(explorer.dataset.X, X)
        assert np.array_equal(explorer.transform.matrix, np.eye(2))
        step(explorer, 3)
        np.testing.assert_array_equal(explorer.labels, labels)
        explorer.close()

    asyncio.run(use())


def test_columns_that_are_not_numbers_are_not_mapped(rng: np.random.Generator) -> None:
    X = np.column_stack([rng.normal(size=(40, 2)), rng.integers(3, size=40)])
    panel = Explorer(ew.datasets.Dataset(X=X, kinds={"x3": "category"}), model="II").transform
    panel.buttons["Rotate"].click()
    assert panel.comparison is None
    assert "columns that are not numbers" in panel.badges.value


def test_too_many_objects_are_not_compared(rng: np.random.Generator) -> None:
    panel = Explorer(rng.normal(size=(2100, 2)), model="I").transform
    panel.buttons["Rotate"].click()
    assert panel.comparison is None
    assert "compared for up to 2000 objects" in panel.badges.value
