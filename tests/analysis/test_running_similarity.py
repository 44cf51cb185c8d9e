import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from traces import random_partitions, wandering_partitions

from ewens_widgets.analysis import similarity as module
from ewens_widgets.analysis.similarity import RunningSimilarity, similarity
from ewens_widgets.memory import TooLargeError


def check_at_every_draw(labels: np.ndarray) -> None:
    running = RunningSimilarity(labels.shape[1])
    for count, draw in enumerate(labels, start=1):
        running.add(draw)
        assert running.n_draws == count
        np.testing.assert_array_equal(running.similarity(), similarity(labels[:count]))


@given(arrays(np.intp, st.tuples(st.integers(1, 15), st.just(7)), elements=st.integers(0, 6)))
def test_equals_the_batch_at_every_draw(labels: np.ndarray) -> None:
    check_at_every_draw(labels)


@pytest.mark.parametrize("n_moved", [1, 4, 40])
def test_along_a_chain(rng: np.random.Generator, n_moved: int) -> None:
    check_at_every_draw(wandering_partitions(rng, 60, 40, 5, n_moved))


@pytest.mark.parametrize("n_moved", [1, 4, 40])
def test_forgetting_when_objects_moved_would_be_noticed(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, n_moved: int
) -> None:
    """The sabotaged twin: pairs of an object that moved are credited from the start of the chain."""
    settle = module._settle

    def forgetful(n_draws: int, slots: np.ndarray, since: np.ndarray, *rest: np.ndarray) -> None:
        settle(n_draws, slots, np.zeros_like(since), *rest)

    monkeypatch.setattr(module, "_settle", forgetful)
    with pytest.raises(AssertionError):
        check_at_every_draw(wandering_partitions(rng, 60, 40, 5, n_moved))


def test_blocks_and_single_draws_count_the_same(rng: np.random.Generator) -> None:
    labels = wandering_partitions(rng, 90, 30, 4, 3)
    running = RunningSimilarity(30)
    running.add_block(labels[:10].astype(np.uint8))
    running.add_block(labels[10:10])
    running.add(labels[10])
    running.add_block(labels[11:].astype(np.uint16))
    np.testing.assert_array_equal(running.similarity(), similarity(labels))
    assert running.n_draws == 90


def test_singletons_and_one_cluster() -> None:
    labels = np.array([np.arange(9), np.zeros(9), np.arange(9), np.arange(9), np.zeros(9)], dtype=np.intp)
    check_at_every_draw(labels)


def test_unchanged_draws_only_raise_the_count(rng: np.random.Generator) -> None:
    labels = random_partitions(rng, 1, 12, 3)
    running = RunningSimilarity(12)
    running.add_block(np.repeat(labels, 500, axis=0))
    np.testing.assert_array_equal(running.similarity(), similarity(labels))


def test_rows(rng: np.random.Generator) -> None:
    labels = wandering_partitions(rng, 50, 30, 6, 5)
    rows = np.array([29, 3, 4, 11])
    running = RunningSimilarity(30, rows=rows)
    for draw in labels:
        running.add(draw)
    np.testing.assert_array_equal(running.similarity(), similarity(labels, rows=rows))


def test_clear_starts_again(rng: np.random.Generator) -> None:
    labels = wandering_partitions(rng, 50, 10, 3, 2)
    running = RunningSimilarity(10)
    np.testing.assert_array_equal(running.similarity(), np.eye(10))
    running.add_block(labels[:20])
    running.clear()
    assert running.n_draws == 0
    np.testing.assert_array_equal(running.similarity(np.float32), np.eye(10))
    running.add_block(labels[20:])
    np.testing.assert_array_equal(running.similarity(), similarity(labels[20:]))


def test_looking_does_not_change_anything(rng: np.random.Generator) -> None:
    labels = wandering_partitions(rng, 50, 10, 3, 2)
    running = RunningSimilarity(10)
    running.add_block(labels[:20])
    first = running.similarity(np.float32)
    assert first.dtype == np.float32
    first[:] = -1.0
    np.testing.assert_array_equal(running.similarity(), similarity(labels[:20]))


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    running = RunningSimilarity(4)
    with pytest.raises(ValueError, match="4 labels"):
        running.add([0, 0, 0])
    for bad in ([0, 0, 0, 4], [0, 0, 0, -1]):
        with pytest.raises(ValueError, match="between 0 and 3"):
            running.add(bad)
    assert running.n_draws == 0
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "1000")
    with pytest.raises(TooLargeError, match="rows="):
        RunningSimilarity(1000)
