"""Where tables and guests are drawn, and what is done with them."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from views.chains import Wire

from ewens_widgets import ewens
from ewens_widgets.model.priors import DirichletMultinomial, Ewens, FiniteMixture, PitmanYor
from ewens_widgets.views.labs.restaurant import (
    ALONE,
    TOGETHER,
    WIDTH,
    Floor,
    RestaurantPanel,
    SeatingPlan,
)


@pytest.mark.parametrize("height", [ALONE, TOGETHER])
@pytest.mark.parametrize(
    ("n", "concentration"),
    [
        (1, 1.0),
        (8, 1.0),
        (50, 1.0),
        (50, 60.0),
        (437, 1.0),
        (1000, 100.0),
        (1000, 5.0),
        (1000, 1e-9),
        (1000, 1e9),
    ],
)
def test_tables_fit_and_do_not_overlap(n: int, concentration: float, height: float) -> None:
    labels = ewens.sample(n, concentration, np.random.default_rng(0))
    plan = SeatingPlan(labels, n, height)
    assert np.all(plan.centres - plan.radii[:, None] > 0.0)
    assert np.all(plan.centres + plan.radii[:, None] < [WIDTH, height])
    distances = np.hypot(*(plan.centres[:, None] - plan.centres[None]).transpose(2, 0, 1))
    reach = plan.radii[:, None] + plan.radii[None]
    np.fill_diagonal(distances, np.inf)
    assert np.all(distances > reach)
    guests = plan.guests()
    assert np.all(np.hypot(*(guests - plan.centres[labels]).T) <= plan.radii[labels])


@pytest.mark.parametrize("prior", [Ewens(1.0), Ewens(10.0), FiniteMixture(), PitmanYor(1.0, 0.5)], ids=str)
@pytest.mark.parametrize(("height", "least"), [(ALONE, 2.9), (TOGETHER, 1.8)])
def test_the_largest_party_is_no_dust(prior: object, height: float, least: float) -> None:
    """A guest is a dot of one and a half times the spacing; 437 guests once had 1.3, and no dots at all."""
    for seed in range(5):
        for n in (437, 1000):
            labels = prior.sample(n, np.random.default_rng(seed))
            plan = SeatingPlan(labels, n, height)
            assert plan.spacing > least * np.sqrt(1000 / n) * 0.9
            assert plan.guests().shape == (n, 2)


def test_small_parties_stay_where_they_sit() -> None:
    labels = ewens.sample(24, 1.0, np.random.default_rng(1))
    plans = [SeatingPlan(labels[:seated], 24) for seated in range(1, 25)]
    for before, after in pairwise(plans):
        known = before.sizes.size
        np.testing.assert_allclose(before.centres[:known], after.centres[:known])
        assert before.spacing == after.spacing


def test_large_parties_are_moved_rarely() -> None:
    labels = ewens.sample(400, 1.0, np.random.default_rng(1))
    plans = [SeatingPlan(labels[:seated], 400) for seated in range(1, 401)]
    moves = sum(not np.allclose(before.centres[0], after.centres[0]) for before, after in pairwise(plans))
    assert moves < 60


def test_the_table_at_a_place_is_found() -> None:
    plan = SeatingPlan(np.array([0, 0, 1]), 3)
    for table in range(3):
        assert plan.table_at(*(plan.centres[table] + 5.0)) == table
    assert plan.table_at(WIDTH - 1.0, 1.0) == 2, "nowhere near a table is a new table"


class Moves(list):
    """Partitions that were made by moving a guest."""

    def take(self, labels: NDArray[np.intp]) -> None:
        self.append(labels.tolist())


@pytest.fixture
def moves() -> Moves:
    return Moves()


@pytest.fixture
def panel(wire: Wire, moves: Moves) -> RestaurantPanel:
    del wire
    panel = RestaurantPanel(1, "#0072b2", lambda command: command(), moves.take)
    panel.prepare(DirichletMultinomial(2, 1.0), is_alone=True)
    panel.show(np.array([0, 0, 1]), 3, None)
    return panel


def test_a_room_that_nobody_has_seen_yet_can_be_painted(panel: RestaurantPanel) -> None:
    assert set(Floor().scene) == set(panel.room.scene)


def test_the_scene_tells_all(panel: RestaurantPanel) -> None:
    scene = panel.room.scene
    assert scene["room"] == [WIDTH, ALONE]
    assert [table["text"] for table in scene["tables"]] == ["2 · 62%", "1 · 38%", "new · 0%"]
    assert [guest[2] for guest in scene["guests"]] == [0, 0, 1]
    assert scene["newest"] == -1
    assert scene["description"].startswith(
        "Dirichlet-multinomial, k = 2, λ = 1: 3 guests at 2 tables of 2, 1."
    )
    assert "m + λ/k = m + 0.5" in panel.rule.value
    assert "<td>2.5</td><td>1.5</td><td>0</td>" in panel.rule.value


def test_guests_are_moved_by_mouse_and_by_keyboard(panel: RestaurantPanel, moves: Moves) -> None:
    x, y = panel._plan.centres[1].tolist()
    panel._on_message(None, {"kind": "drop", "guest": 0, "x": x, "y": y}, [])
    panel._on_message(None, {"kind": "move", "guest": 2, "table": 0}, [])
    panel._on_message(None, {"kind": "move", "guest": 0, "table": 2}, [])
    assert moves == [[0, 1, 0], [0, 0, 0], [0, 1, 2]]


@pytest.mark.parametrize(
    "message",
    [
        {"kind": "move", "guest": 0, "table": 0},
        {"kind": "move", "guest": 9, "table": 0},
        {"kind": "move", "guest": 0, "table": 7},
        {"kind": "move", "guest": -1, "table": 0},
        {"kind": "painted"},
        "hello",
    ],
)
def test_nobody_is_moved_by_other_messages(panel: RestaurantPanel, moves: Moves, message: object) -> None:
    panel._on_message(None, message, [])
    assert moves == []


def test_what_is_impossible_is_said(panel: RestaurantPanel) -> None:
    panel.show(np.arange(3), 3, None)
    assert "impossible" in panel.rule.value
    assert [table["text"] for table in panel.room.scene["tables"]] == ["1", "1", "1", "new"]


def test_the_same_partition_sends_nothing_and_another_one_message(wire: Wire, panel: RestaurantPanel) -> None:
    wire.clear()
    panel.show(np.array([0, 0, 1]), 3, None)
    assert wire.messages == []
    panel.show(np.array([0, 1, 1]), 3, 2)
    assert max(wire.updates().values()) == 1
