"""A few objects that stand for many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import blob_trace

from ewens_widgets.analysis.plots import heatmap_plot as heatmap_module
from ewens_widgets.analysis.plots import plot_heatmap
from ewens_widgets.analysis.similarity import representative_rows
from ewens_widgets.analysis.trees import similarity_tree


@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=12), most=st.integers(1, 80))
def test_every_cluster_gets_its_share(sizes: list[int], most: int) -> None:
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
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
    np.testing.assert_array_equal(rows, representative_rows(labels, most))


def test_the_largest_clusters_come_first() -> None:
    labels = np.repeat(np.arange(5), [1, 9, 2, 8, 7])
    assert sorted(labels[representative_rows(labels, 3)]) == [1, 3, 4]


@pytest.mark.parametrize("most", [0, -1, 2.5, "many"])
def test_a_number_that_is_none_is_refused(most: object) -> None:
    with pytest.raises((TypeError, ValueError), match="representatives"):
        representative_rows([0, 0, 1], most)


def test_a_tree_of_some_rows() -> None:
    trace = blob_trace(n_draws=20)
    rows = np.array([5, 0, 11, 3, 8])
    tree = trace.similarity_tree("average", rows=rows)
    assert tree.n_leaves == 5
    np.testing.assert_array_equal(tree.distance, trace.distance()[np.ix_(rows, rows)])
    np.testing.assert_array_equal(tree.coordinates, trace.posterior.coordinates[rows])
    mask = np.zeros(trace.n_objects, dtype=bool)
    mask[[0, 3]] = True
    assert similarity_tree(trace, rows=mask).n_leaves == 2
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


def test_a_heatmap_shows_each_object_once() -> None:
    trace = blob_trace(n_draws=5)
    with pytest.raises(ValueError, match="each object once"):
        plot_heatmap(trace, rows=[1, 1, 2])
    with pytest.raises(ValueError, match="each object once"):
        plot_heatmap(trace, rows=[1, 1 - trace.n_objects, 2])
