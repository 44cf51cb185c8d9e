"""Similarity of draws at once and draw by draw, and objects that stand for many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from traces import blob_trace, random_partitions, wandering_partitions

from ewens_widgets.analysis import similarity as module
from ewens_widgets.analysis.plots import heatmap_plot as heatmap_module
from ewens_widgets.analysis.plots import plot_heatmap
from ewens_widgets.analysis.similarity import RunningSimilarity, representative_rows, similarity
from ewens_widgets.analysis.trees import similarity_tree
from ewens_widgets.arguments import TooLargeError
from ewens_widgets.model.enumeration import exact_posterior


@given(arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 9)), elements=st.integers(0, 4)))
def test_equals_a_plain_loop(labels: np.ndarray) -> None:
    expected = [
        [np.mean(labels[:, i] == labels[:, j]) for j in range(len(labels.T))] for i in range(len(labels.T))
    ]
    np.testing.assert_array_equal(similarity(labels), expected)


@pytest.mark.parametrize("n_clusters", [2, 40, 300])
@pytest.mark.parametrize("block", [300, 30_000_000])
def test_blocks_and_many_clusters(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, n_clusters: int, block: int
) -> None:
    monkeypatch.setattr(module, "_BLOCK_BYTES", block)
    labels = random_partitions(rng, 37, 320, n_clusters)
    result = similarity(labels)
    np.testing.assert_array_equal(result, np.mean(labels[:, :, None] == labels[:, None, :], axis=0))
    np.testing.assert_array_equal(result, result.T)
    np.testing.assert_array_equal(np.diag(result), 1.0)


def test_more_draws_than_a_byte_counts_single_precision_and_rows(rng: np.random.Generator) -> None:
    labels = np.zeros((600, 3), dtype=np.uint8)
    labels[:100, 2] = 1
    np.testing.assert_allclose(similarity(labels)[0], [1.0, 1.0, 5 / 6])
    labels = random_partitions(rng, 30, 20, 4)
    whole, single = similarity(labels), similarity(labels, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, whole.astype(np.float32))
    for rows in ([5, 2, 19, -1], np.arange(20) % 3 == 0):
        np.testing.assert_array_equal(similarity(labels, rows=rows), whole[np.ix_(rows, rows)])


def test_of_the_exact_posterior(rng: np.random.Generator) -> None:
    exact = exact_posterior(rng.normal(size=(6, 2)), model="II")
    chosen = rng.choice(len(exact.labels), size=40_000, p=exact.probabilities)
    # Six standard errors of a share of independent draws.
    np.testing.assert_allclose(similarity(exact.labels[chosen]), exact.similarity(), atol=6 * 0.5 / 200)


def test_what_does_not_fit_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TooLargeError, match="rows="):  # without a limit set
        similarity(np.zeros((1, 10**6), dtype=np.uint8))
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", str(2**20))
    labels = np.zeros((1, 100_000), dtype=np.uint8)
    with pytest.raises(TooLargeError, match=r"149\.0 GiB.*rows="):
        similarity(labels)
    assert similarity(labels, rows=range(100)).shape == (100, 100)
    with pytest.raises(TooLargeError, match="rows="):
        RunningSimilarity(1000)


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
    running = RunningSimilarity(4)
    with pytest.raises(ValueError, match="4 labels"):
        running.add([0, 0, 0])
    for bad in ([0, 0, 0, 4], [0, 0, 0, -1]):
        with pytest.raises(ValueError, match="between 0 and 3"):
            running.add(bad)
    assert running.n_draws == 0


@given(arrays(np.intp, st.tuples(st.integers(1, 15), st.just(7)), elements=st.integers(0, 6)))
def test_a_stream_equals_the_batch_at_every_draw(labels: np.ndarray) -> None:
    running = RunningSimilarity(labels.shape[1])
    for count, draw in enumerate(labels, start=1):
        running.add(draw)
        assert running.n_draws == count
        np.testing.assert_array_equal(running.similarity(), similarity(labels[:count]))


def test_blocks_rows_and_single_draws_of_a_stream(rng: np.random.Generator) -> None:
    labels = wandering_partitions(rng, 90, 30, 4, 3)
    for rows in (None, np.array([29, 3, 4, 11])):
        running = RunningSimilarity(30, rows=rows)
        running.add_block(labels[:10].astype(np.uint8))
        running.add_block(labels[10:10])
        running.add(labels[10])
        running.add_block(labels[11:].astype(np.uint16))
        np.testing.assert_array_equal(running.similarity(), similarity(labels, rows=rows))
        assert running.n_draws == 90


def test_clear_starts_again_and_a_look_changes_nothing(rng: np.random.Generator) -> None:
    labels = wandering_partitions(rng, 50, 10, 3, 2)
    running = RunningSimilarity(10)
    np.testing.assert_array_equal(running.similarity(), np.eye(10))
    running.add_block(labels[:20])
    running.similarity()[:] = running.similarity(np.float32)[:] = -1.0
    np.testing.assert_array_equal(running.similarity(), similarity(labels[:20]))
    running.clear()
    assert running.n_draws == 0
    np.testing.assert_array_equal(running.similarity(np.float32), np.eye(10))
    assert running.similarity(np.float32).dtype == np.float32
    running.add_block(labels[20:])
    np.testing.assert_array_equal(running.similarity(), similarity(labels[20:]))


@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=12), most=st.integers(1, 80))
def test_every_cluster_gets_its_share(sizes: list[int], most: int) -> None:
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    rows = representative_rows(labels, most)
    assert rows.size == min(most, labels.size)
    assert np.all(np.diff(rows) > 0)
    counts = np.bincount(labels[rows], minlength=len(sizes))
    assert np.all(counts <= sizes)
    if len(sizes) <= most:
        assert np.all(counts >= 1)
        fair = np.array(sizes) * rows.size / sum(sizes)
        # One place is given to each first, so that small clusters may have a little more than their share.
        assert np.all(counts >= np.floor(fair * (1 - len(sizes) / rows.size)))
    else:
        assert np.sort(np.array(sizes)[labels[rows]]).tolist() == sorted(sizes)[-most:]
    np.testing.assert_array_equal(rows, representative_rows(labels, most))
    for bad in (0, -1, 2.5, "many"):
        with pytest.raises((TypeError, ValueError), match="representatives"):
            representative_rows(labels, bad)


def test_a_tree_of_some_rows() -> None:
    trace = blob_trace(n_draws=20)
    rows = np.array([5, 0, 11, 3, 8])
    tree = trace.similarity_tree("average", rows=rows)
    assert tree.n_leaves == 5
    np.testing.assert_array_equal(tree.distance, trace.distance()[np.ix_(rows, rows)])
    np.testing.assert_array_equal(tree.coordinates, trace.posterior.coordinates[rows])
    assert similarity_tree(trace, rows=np.isin(np.arange(trace.n_objects), [0, 3])).n_leaves == 2
    with pytest.raises(ValueError, match="at least 2 objects"):
        trace.similarity_tree(rows=[4])


@pytest.mark.parametrize("tree", ["single", "evidence", None])
def test_a_heatmap_of_many_objects_shows_representatives(
    tree: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heatmap_module, "_MOST_OBJECTS", 20)
    trace = blob_trace(n_draws=20)
    assert trace.n_objects > 20
    axes = plot_heatmap(trace, tree=tree, labels=trace.best, true=trace.best).axes[0]
    assert axes.get_xlabel().startswith(f"{min(400, trace.n_objects)} of {trace.n_objects} objects")
    few = plot_heatmap(trace, tree=tree, rows=trace.representatives(12)).axes[0]
    assert few.images[0].get_array().shape == (12, 12)
    assert few.get_xlabel().startswith(f"12 of {trace.n_objects} objects")
    for rows in ([1, 1, 2], [1, 1 - trace.n_objects, 2]):
        with pytest.raises(ValueError, match="each object once"):
            plot_heatmap(trace, rows=rows)
