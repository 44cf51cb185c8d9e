import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from traces import random_partitions

from ewens_widgets.analysis import similarity as module
from ewens_widgets.analysis.similarity import similarity
from ewens_widgets.memory import TooLargeError
from ewens_widgets.model.enumeration import exact_posterior


def naive(labels: np.ndarray) -> np.ndarray:
    n_draws, n_objects = labels.shape
    result = np.zeros((n_objects, n_objects))
    for draw in labels:
        for i in range(n_objects):
            for j in range(n_objects):
                result[i, j] += draw[i] == draw[j]
    return result / n_draws


@given(arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 9)), elements=st.integers(0, 4)))
def test_equals_a_plain_loop(labels: np.ndarray) -> None:
    np.testing.assert_array_equal(similarity(labels), naive(labels))


@pytest.mark.parametrize("n_clusters", [2, 9, 40, 120])
@pytest.mark.parametrize("block", [300, 4_000_000])
def test_large_and_small_clusters_and_blocks(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, n_clusters: int, block: int
) -> None:
    monkeypatch.setattr(module, "_BLOCK_ENTRIES", block)
    labels = random_partitions(rng, 37, 120, n_clusters)
    result = similarity(labels)
    np.testing.assert_array_equal(result, np.mean(labels[:, :, None] == labels[:, None, :], axis=0))
    np.testing.assert_array_equal(result, result.T)
    np.testing.assert_array_equal(np.diag(result), 1.0)


@pytest.mark.parametrize("share", [0.0, 2.0])
def test_dense_and_sparse_products_agree(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    labels = random_partitions(rng, 23, 60, 7)
    expected = np.mean(labels[:, :, None] == labels[:, None, :], axis=0)
    monkeypatch.setattr(module, "_SMALL_CLUSTER", share)
    np.testing.assert_array_equal(similarity(labels), expected)


def test_single_precision(rng: np.random.Generator) -> None:
    labels = random_partitions(rng, 30, 20, 4)
    result = similarity(labels, dtype=np.float32)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, similarity(labels).astype(np.float32))


def test_rows(rng: np.random.Generator) -> None:
    labels = random_partitions(rng, 30, 20, 4)
    rows = [5, 2, 19, -1]
    np.testing.assert_array_equal(similarity(labels, rows=rows), similarity(labels)[np.ix_(rows, rows)])
    mask = np.arange(20) % 3 == 0
    np.testing.assert_array_equal(similarity(labels, rows=mask), similarity(labels)[np.ix_(mask, mask)])


def test_of_the_exact_posterior(rng: np.random.Generator) -> None:
    exact = exact_posterior(rng.normal(size=(6, 2)), model="II")
    chosen = rng.choice(len(exact.labels), size=40_000, p=exact.probabilities)
    # Six standard errors of a share of independent draws.
    np.testing.assert_allclose(similarity(exact.labels[chosen]), exact.similarity(), atol=6 * 0.5 / 200)


def test_what_does_not_fit_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", str(2**20))
    labels = np.zeros((1, 100_000), dtype=np.uint8)
    with pytest.raises(TooLargeError, match=r"149\.0 GiB.*rows="):
        similarity(labels)
    assert similarity(labels, rows=range(100)).shape == (100, 100)


def test_hundred_thousand_objects_are_refused_without_a_limit_set() -> None:
    with pytest.raises(TooLargeError, match="rows="):
        similarity(np.zeros((1, 10**6), dtype=np.uint8))


def test_refusals() -> None:
    labels = np.zeros((3, 5), dtype=np.uint8)
    with pytest.raises(ValueError, match="at least one draw"):
        similarity(labels[:0])
    with pytest.raises(ValueError, match="float64 or float32"):
        similarity(labels, dtype=np.int64)
    for rows in ([], [[0]], [0.5]):
        with pytest.raises(ValueError, match="rows must be"):
            similarity(labels, rows=rows)
    with pytest.raises(ValueError, match="between 0 and 4"):
        similarity(labels, rows=[5])
    with pytest.raises(ValueError, match="mask"):
        similarity(labels, rows=[True])
