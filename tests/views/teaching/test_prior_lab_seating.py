"""Guests, tables and draws behind the prior lab."""

import math

import numpy as np
import pytest
from sampling.goodness import LEVEL, chi_square, explain

from ewens_widgets import ewens
from ewens_widgets.partition import all_partitions, cluster_sizes
from ewens_widgets.views.teaching.prior_lab_restaurant import HEIGHT, WIDTH, Plan
from ewens_widgets.views.teaching.prior_lab_seating import Seating, Tally


def test_guests_sit_down_one_by_one() -> None:
    seating = Seating(6, 1.0, seed=1)
    for guest in range(1, 7):
        sizes = list(seating.sizes)
        assert seating.advance(1) == 1
        assert len(seating.labels) == guest
        assert seating.sizes == cluster_sizes(seating.labels).tolist()
        assert seating.path[-1] == len(seating.sizes)
        arrival = seating.arrival
        assert arrival is not None
        chances = ewens.seating_probabilities(sizes, 1.0)
        assert (arrival.guest, arrival.table) == (guest, seating.labels[-1] + 1)
        assert arrival.opened == (arrival.table > len(sizes))
        assert arrival.chance == pytest.approx(chances[arrival.table - 1])
    assert seating.is_full
    assert seating.tally.n_draws == 1
    seating.advance(1)
    assert len(seating.labels) == 1, "another restaurant"


def test_the_same_seed_seats_the_same_guests() -> None:
    one, other = Seating(20, 2.0, seed=3), Seating(20, 2.0, seed=3)
    one.advance(30)
    other.advance(30)
    assert one.labels == other.labels
    one.reset()
    assert (one.labels, one.tally.n_draws) == ([], 0)
    one.advance(30)
    assert one.labels == other.labels


def test_seatings_have_the_probabilities_of_the_prior() -> None:
    seating, draws = Seating(4, 0.7, seed=5), 8000
    partitions = [tuple(row) for row in all_partitions(4).tolist()]
    seen = dict.fromkeys(partitions, 0)
    for _ in range(draws):
        seating.advance(4)
        seen[tuple(seating.labels)] += 1
    expected = [draws * math.exp(ewens.log_pmf(row, 0.7)) for row in partitions]
    assert chi_square(list(seen.values()), expected).p_value > LEVEL, explain(
        partitions, list(seen.values()), expected
    )
    wrong = [draws * math.exp(ewens.log_pmf(row, 0.9)) for row in partitions]
    assert chi_square(list(seen.values()), wrong).p_value < LEVEL


@pytest.mark.parametrize("concentration", [0.3, 4.0])
def test_many_draws_follow_the_exact_law(concentration: float) -> None:
    seating = Seating(100, concentration, seed=0)
    for _ in range(10):
        seating.draw(1000)
    expected = 10_000 * ewens.cluster_count_pmf(100, concentration)
    counts = seating.tally.counts
    assert chi_square(counts, expected).p_value > LEVEL, explain(range(101), counts, expected)
    wrong = 10_000 * ewens.cluster_count_pmf(100, 1.1 * concentration)
    assert chi_square(counts, wrong).p_value < LEVEL


def test_the_last_of_many_draws_is_on_display() -> None:
    seating = Seating(30, 1.0, seed=0)
    seating.advance(7)
    seating.draw(50)
    assert seating.is_full
    assert seating.sizes == cluster_sizes(seating.labels).tolist()
    assert seating.path == [len(set(seating.labels[:guest])) for guest in range(1, 31)]


def test_the_tally_counts_clusters_and_their_sizes() -> None:
    tally = Tally(4)
    assert math.isnan(tally.mean_clusters())
    tally.add(np.array([[0, 0, 1, 1], [0, 1, 2, 2]]))
    tally.add(np.array([[0, 0, 0, 0]]))
    assert tally.frequencies().tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 0])
    assert tally.mean_clusters() == 2.0
    assert tally.mean_sizes().tolist() == pytest.approx([0, 2 / 3, 1, 0, 1 / 3])


@pytest.mark.parametrize(
    ("n", "concentration"), [(8, 1.0), (50, 1.0), (50, 60.0), (1000, 100.0), (1000, 5.0)]
)
def test_tables_fit_and_do_not_overlap(n: int, concentration: float) -> None:
    labels = ewens.sample(n, concentration, np.random.default_rng(0))
    plan = Plan(labels, n)
    assert np.all(plan.centres - plan.radii[:, None] > 0.0)
    assert np.all(plan.centres + plan.radii[:, None] < [WIDTH, HEIGHT])
    distances = np.hypot(*(plan.centres[:, None] - plan.centres[None]).transpose(2, 0, 1))
    reach = plan.radii[:, None] + plan.radii[None]
    np.fill_diagonal(distances, np.inf)
    assert np.all(distances > reach)
    guests = plan.guests()
    assert np.all(np.hypot(*(guests - plan.centres[labels]).T) <= plan.radii[labels])


def test_seated_guests_do_not_move_when_others_come() -> None:
    labels = np.array([0, 0, 1, 0, 1, 2])
    before, after = Plan(labels[:5], 6), Plan(labels, 6)
    np.testing.assert_allclose(before.guests(), after.guests()[:5])


def test_the_table_at_a_place_is_found() -> None:
    plan = Plan(np.array([0, 0, 1]), 3)
    for table in range(3):
        assert plan.table_at(*(plan.centres[table] + 5.0)) == table
    assert plan.table_at(WIDTH - 1.0, 1.0) == 2, "nowhere near a table is a new table"
