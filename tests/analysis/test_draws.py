import numpy as np
from traces import random_partitions

from ewens_widgets.analysis.expected_loss import Draws


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
