"""Guests, tables and draws behind the prior lab, and what is said about a partition."""

import math

import numpy as np
import pytest
from sampling.goodness import LEVEL, chi_square, explain

from ewens_widgets import ewens
from ewens_widgets.partition import all_partitions, cluster_sizes
from ewens_widgets.views.prior_lab.seating import (
    Seating,
    Tally,
    probability_text,
    product_text,
)


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


def value_of(text: str, concentration: float) -> float:
    """Work out a product such as λ/λ · 1/(λ+1) with λ = 2."""
    product, _, value = text.partition(" with λ = ")
    assert float(value) == pytest.approx(concentration, rel=1e-3)
    total = 1.0
    for factor in product.split(" · "):
        above, _, below = factor.partition("/")
        names = {"λ": concentration}
        bottom = concentration if below == "λ" else concentration + int(below.strip("()").split("+")[1])
        total *= (names[above] if above in names else int(above)) / bottom
    return total


@pytest.mark.parametrize("labels", [[0], [0, 0, 1], [0, 1, 0, 2, 0, 1], [0, 1, 2, 3, 4, 5, 6, 7]])
@pytest.mark.parametrize("concentration", [0.5, 2.0])
def test_the_product_is_the_probability(labels: list[int], concentration: float) -> None:
    text = product_text(np.array(labels), concentration)
    assert value_of(text, concentration) == pytest.approx(np.exp(ewens.log_pmf(labels, concentration)))


def test_long_products_are_left_out() -> None:
    assert product_text(np.zeros(9, dtype=np.intp), 1.0) == ""


def test_probabilities_are_written_even_where_they_are_too_small_for_a_number() -> None:
    small = probability_text(np.arange(500), 1.0, 10)
    assert "10^-1134.1" in small
    assert '<b class="ew-finite-probability">0</b>' in small, "500 clusters of 10 components are impossible"
    assert '<b class="ew-probability">0.166667</b>' in probability_text(np.array([0, 0, 1]), 1.0, 10)
