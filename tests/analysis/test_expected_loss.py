"""Draws arranged for counting, expected losses, and the greedy steps that lower them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import random_partitions

from ewens_widgets.analysis.agreement import binder_loss, variation_of_information
from ewens_widgets.analysis.estimates import Draws, ExpectedLoss
from ewens_widgets.memory import TooLargeError
from ewens_widgets.partition import all_partitions, canonical_labels

DIRECT = {"vi": variation_of_information, "binder": binder_loss}
LOSSES = sorted(DIRECT)


def few_draws(seed: int, n_objects: int = 6, n_draws: int = 9) -> np.ndarray:
    return random_partitions(np.random.default_rng(seed), n_draws, n_objects, 3)


@pytest.mark.parametrize("loss", LOSSES)
@given(seed=st.integers(0, 10**6))
def test_distances_are_the_losses_to_each_draw(loss: str, seed: int) -> None:
    labels = few_draws(seed)
    draws = Draws.of(labels)
    candidate = few_draws(seed + 1, n_draws=1)[0]
    distances = ExpectedLoss(draws, loss).distances(candidate)
    direct = [DIRECT[loss](candidate, draw) for draw in labels]
    np.testing.assert_allclose(distances[draws.place], direct, atol=1e-12)
    assert ExpectedLoss(draws, loss).of(candidate) == pytest.approx(np.mean(direct), abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_distance_to_itself_is_exactly_zero(loss: str) -> None:
    labels = random_partitions(np.random.default_rng(3), 5, 301, 7)
    expected = ExpectedLoss(Draws.of(labels), loss)
    assert [expected.distances(row)[k] for k, row in enumerate(labels)] == [0.0] * 5


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(8))
def test_greedy_steps_end_where_no_single_step_helps(loss: str, seed: int) -> None:
    expected = ExpectedLoss(Draws.of(few_draws(seed, n_objects=8, n_draws=15)), loss)
    for start in (np.zeros(8, dtype=np.intp), np.arange(8), few_draws(seed)[0].repeat(2)[:8]):
        found = expected.improve(canonical_labels(start))
        reached = expected.of(found)
        assert reached <= expected.of(canonical_labels(start)) + 1e-12
        for item in range(8):
            for home in range(found.max() + 2):
                moved = found.copy()
                moved[item] = home
                assert expected.of(canonical_labels(moved)) >= reached - 1e-10
        for first in range(found.max() + 1):
            for second in range(first):
                assert (
                    expected.of(canonical_labels(np.where(found == first, second, found))) >= reached - 1e-10
                )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(8))
def test_from_the_draws_greedy_steps_find_the_best_of_all_partitions(loss: str, seed: int) -> None:
    labels = few_draws(seed)
    expected = ExpectedLoss(Draws.of(labels), loss)
    best = min(expected.of(row.astype(np.intp)) for row in all_partitions(6))
    found = min(expected.of(expected.improve(row)) for row in labels)
    assert found == pytest.approx(best, abs=1e-12)


def test_a_wrong_step_table_would_be_noticed() -> None:
    """The sabotaged twin: without the overlaps, sweeps only look at cluster sizes and make things worse."""
    labels = random_partitions(np.random.default_rng(0), 1, 12, 3)
    expected = ExpectedLoss(Draws.of(labels), "vi")
    assert expected.of(expected.improve(labels[0])) == 0.0
    expected._step = -expected._step
    assert expected.of(expected.improve(labels[0])) > 0.0


@pytest.mark.parametrize("loss", LOSSES)
def test_new_clusters_open_during_one_sweep(loss: str) -> None:
    expected = ExpectedLoss(Draws.of(np.array([np.arange(7)] * 3)), loss)
    np.testing.assert_array_equal(expected._sweep(np.zeros(7, dtype=np.intp)), np.arange(7))


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r'"vi".*"binder"'):
        ExpectedLoss(Draws.of(few_draws(0)), "rand")
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "100")
    with pytest.raises(TooLargeError, match="Thin the trace"):
        ExpectedLoss(Draws.of(few_draws(0)), "vi").of(few_draws(0)[0])


def test_repeated_draws_are_kept_once_with_their_weight(rng: np.random.Generator) -> None:
    distinct = random_partitions(rng, 5, 9, 4)
    labels = distinct[[3, 1, 3, 3, 0, 1, 4, 2]]
    draws = Draws.of(labels)
    np.testing.assert_array_equal(draws.labels, distinct[[3, 1, 0, 4, 2]])
    np.testing.assert_allclose(draws.weights, np.array([3, 2, 1, 1, 1]) / 8)
    np.testing.assert_array_equal(draws.labels[draws.place], labels)


def test_cells_and_overlaps(rng: np.random.Generator) -> None:
    labels, other = random_partitions(rng, 6, 9, 4), random_partitions(rng, 1, 9, 3)[0]
    draws = Draws.of(labels)
    overlaps = draws.overlaps(other)
    for draw, row in enumerate(draws.labels):
        for label in range(row.max() + 1):
            cell = draws.cells[draw, row == label][0]
            assert draws.draw_of_cell[cell] == draw
            assert draws.cell_sizes[cell] == np.sum(row == label)
            np.testing.assert_array_equal(
                overlaps[cell], np.bincount(other[row == label], minlength=other.max() + 1)
            )


def test_spread_keeps_the_frequencies(rng: np.random.Generator) -> None:
    distinct = random_partitions(rng, 101, 9, 4)
    # One draw is half of the chain; the other 100 appear once each.
    labels = distinct[np.where(np.arange(200) < 100, 0, np.arange(200) - 99)]
    draws = Draws.of(labels)
    assert draws.spread(1000) is draws
    spread = draws.spread(20)
    assert spread.weights[0] == 0.5
    assert len(spread) == 11
