"""Guests, tables and draws of the prior lab: their numbers, their texts, and their places."""

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from views.chains import Wire

import ewens_widgets as ew
from ewens_widgets import ewens
from ewens_widgets.model.priors import (
    DirichletMultinomial,
    Ewens,
    FiniteMixture,
    PartitionPrior,
    PitmanYor,
    Poisson,
)
from ewens_widgets.views.labs.restaurant import (
    ALONE,
    TOGETHER,
    WIDTH,
    Floor,
    RestaurantPanel,
    Seating,
    SeatingPlan,
    Seatings,
    Tally,
    probability_text,
    product_text,
    seats_table,
)

PRIORS = [
    Ewens(0.7),
    Ewens(ew.Gamma(2.0, 1.5)),
    DirichletMultinomial(3, 2.0),
    FiniteMixture(0.4, Poisson(3.0)),
    PitmanYor(1.0, 0.5),
]
every_prior = pytest.mark.parametrize("prior", PRIORS, ids=str)


@every_prior
def test_guests_sit_down_one_by_one(prior: PartitionPrior) -> None:
    seating = Seating(6, prior, seed=1)
    assert seating.arrival() == ""
    for guest in range(1, 7):
        before = seating.labels
        sizes = np.bincount(before)
        seating.seat(1)
        labels = seating.labels
        assert labels.size == guest
        assert labels[:-1].tolist() == before.tolist(), "guests keep their tables"
        assert seating.path[-1] == len(set(labels.tolist()))
        table = int(labels[-1])
        chance = prior.seating_probabilities(sizes)[table]
        word = "joins" if table < len(sizes) else "opens"
        assert seating.arrival() == f"{word} table {table + 1} ({chance:.2f})"
    assert seating.tally.n_draws == 1
    seating.seat(1)
    assert seating.labels.size == 1, "another restaurant"


@every_prior
def test_seatings_and_draws_are_those_of_the_prior_and_of_the_seed(prior: PartitionPrior) -> None:
    """The prior's own tests prove that these have its probabilities."""
    seating, rng = Seating(20, prior, seed=5), np.random.default_rng(5)
    for _ in range(3):
        seating.seat(13)
        for _ in range(7):
            seating.seat(1)
        assert seating.labels.tolist() == prior.sample(20, rng).tolist()
    seating.seat(7)
    prior.sample(20, rng)
    seating.draw(50)
    drawn = prior.sample_partitions(20, 50, rng)
    labels = seating.labels.tolist()
    assert labels == drawn[-1].tolist()
    assert seating.arrival() == ""
    assert seating.path.tolist() == [len(set(labels[:guest])) for guest in range(1, 21)]
    assert seating.tally.counts[1:].sum() == seating.tally.n_draws == 53
    seating.reset()
    assert (seating.labels.size, seating.path.size, seating.tally.n_draws) == (0, 0, 0)
    seating.seat(20)
    assert seating.labels.tolist() == prior.sample(20, np.random.default_rng(5)).tolist()
    assert seating.tally.counts[seating.labels.max() + 1] == 1


def test_two_restaurants_have_the_same_guests() -> None:
    both = Seatings(25, [Ewens(1.0), PitmanYor(1.0, 0.0), PitmanYor(1.0, 0.9)], seed=4)
    assert not both.is_done
    assert both.advance(40) == 40
    labels = [seating.labels.tolist() for seating in both.each]
    assert [len(row) for row in labels] == [15, 15, 15]
    assert labels[0] == labels[1], "the same prior by another name"
    assert max(labels[2]) > max(labels[0])
    both.draw(10)
    assert [seating.tally.n_draws for seating in both.each] == [11, 11, 11]
    both.reset()
    assert [seating.labels.size for seating in both.each] == [0, 0, 0]


def test_the_tally_counts_clusters_and_their_sizes() -> None:
    tally = Tally(4)
    assert math.isnan(tally.mean_clusters())
    tally.add(np.array([[0, 0, 1, 1], [0, 1, 2, 2]]))
    tally.add(np.array([[0, 0, 0, 0]]))
    assert tally.frequencies().tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 0])
    assert tally.mean_clusters() == 2.0
    assert tally.mean_sizes().tolist() == pytest.approx([0, 2 / 3, 1, 0, 1 / 3])


def value_of(product: str) -> float:
    """Work out a product such as 1/1 · 1/2."""
    factors = [factor.split("/") for factor in product.split(" · ")]
    return math.prod(float(above) / float(below) for above, below in factors)


@every_prior
@pytest.mark.parametrize("labels", [[0], [0, 0, 1], [0, 1, 0, 2, 0, 1], [0, 1, 0, 0, 1, 0, 2, 2]])
def test_the_product_is_the_probability(labels: list[int], prior: PartitionPrior) -> None:
    text = product_text(np.array(labels), prior)
    assert text.count("·") == len(labels) - 1
    assert value_of(text) == pytest.approx(np.exp(prior.log_pmf(labels)), rel=2e-3)


def test_probabilities_are_written_even_where_they_are_too_small_for_a_number() -> None:
    assert product_text(np.zeros(9, dtype=np.intp), Ewens(1.0)) == ""
    assert product_text(np.arange(4), DirichletMultinomial(3, 1.0)) == ""
    assert "10^-1134.1" in probability_text(np.arange(500), Ewens(1.0))
    impossible = probability_text(np.arange(500), DirichletMultinomial(10, 1.0))
    assert impossible == '<b class="ew-probability">0</b>'
    small = probability_text(np.array([0, 0, 1]), Ewens(1.0))
    assert small == '<b class="ew-probability">0.166667</b> (log -1.7918) = 1/1 · 1/2 · 1/3'


def cells(html: str) -> list[list[str]]:
    return [re.findall(r"<t[hd][^>]*>([^<]*)</t", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]


def test_the_weights_of_the_next_guest_are_tabulated() -> None:
    table = cells(seats_table(np.array([3, 1, 1]), PitmanYor(1.0, 0.5)))
    assert table == [
        ["table of", "3", "2 of 1", "new"],
        ["weight", "2.5", "0.5", "2.5"],
        ["chance", "41.7%", "8.3%", "41.7%"],
    ]
    assert cells(seats_table(np.array([1234]), FiniteMixture(1.0, Poisson(3.0))))[1][1] == "1235"
    empty = cells(seats_table(np.zeros(0, dtype=np.intp), Ewens(7.94)))
    assert empty[1:] == [["weight", "7.94"], ["chance", "100.0%"]], "the weight of a new table is λ"
    many = cells(seats_table(np.arange(1, 21), Ewens(1.0)))
    assert many[0] == ["table of", "20", "19", "18", "17", "…", "4", "3", "2", "1", "new"]
    assert all(len(row) == len(many[0]) for row in many)


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


@pytest.mark.parametrize(("n", "most_moves"), [(24, 0), (400, 59)])
def test_small_parties_stay_where_they_sit_and_large_ones_are_moved_rarely(n: int, most_moves: int) -> None:
    labels = ewens.sample(n, 1.0, np.random.default_rng(1))
    plans = [SeatingPlan(labels[:seated], n) for seated in range(1, n + 1)]
    moves = 0
    for before, after in pairwise(plans):
        known = before.sizes.size if n == 24 else 1
        moves += not np.allclose(before.centres[:known], after.centres[:known])
    assert moves <= most_moves


def test_the_table_at_a_place_is_found() -> None:
    plan = SeatingPlan(np.array([0, 0, 1]), 3)
    for table in range(3):
        assert plan.table_at(*(plan.centres[table] + 5.0)) == table
    assert plan.table_at(WIDTH - 1.0, 1.0) == 2, "nowhere near a table is a new table"


Moves = list[list[int]]


@pytest.fixture
def moves() -> Moves:
    """Partitions that were made by moving a guest."""
    return []


@pytest.fixture
def panel(wire: Wire, moves: Moves) -> RestaurantPanel:
    del wire
    keep = lambda labels: moves.append(labels.tolist())  # noqa: E731
    panel = RestaurantPanel(1, "#0072b2", lambda command: command(), keep)
    panel.prepare(DirichletMultinomial(2, 1.0), is_alone=True)
    panel.show(np.array([0, 0, 1]), 3, None)
    return panel


def test_the_scene_tells_all(panel: RestaurantPanel) -> None:
    scene = panel.room.scene
    assert set(Floor().scene) == set(scene), "a room that has not been shown yet can be painted"
    assert scene["room"] == [WIDTH, ALONE]
    assert [table["text"] for table in scene["tables"]] == ["2 · 62%", "1 · 38%", "new · 0%"]
    assert [guest[2] for guest in scene["guests"]] == [0, 0, 1]
    assert scene["newest"] == -1
    assert scene["description"].startswith(
        "Dirichlet-multinomial, k = 2, λ = 1: 3 guests at 2 tables of 2, 1."
    )
    assert "m + λ/k = m + 0.5" in panel.rule.value
    assert "<td>2.5</td><td>1.5</td><td>0</td>" in panel.rule.value
    panel.show(np.arange(3), 3, None)
    assert "impossible" in panel.rule.value
    assert [table["text"] for table in panel.room.scene["tables"]] == ["1", "1", "1", "new"]


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


def test_the_same_partition_sends_nothing_and_another_one_message(wire: Wire, panel: RestaurantPanel) -> None:
    wire.clear()
    panel.show(np.array([0, 0, 1]), 3, None)
    assert wire.messages == []
    panel.show(np.array([0, 1, 1]), 3, 2)
    assert max(wire.updates().values()) == 1
