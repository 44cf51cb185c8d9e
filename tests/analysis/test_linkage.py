"""Linkages of many objects, against the plain way of doing the same with few."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.cluster.hierarchy import cophenet, fcluster, is_valid_linkage, linkage
from scipy.spatial.distance import squareform

from ewens_widgets.analysis.evidence_tree import evidence_tree
from ewens_widgets.analysis.trees import Tree, assign_leftovers, labels_after, nodes_after, restricted_linkage
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import canonical_labels

Floats = NDArray[np.float64]


def random_tree(n_leaves: int, seed: int, method: str = "average") -> Floats:
    points = np.random.default_rng(seed).normal(size=(n_leaves, 2))
    merges: Floats = linkage(points, method)
    return merges


@settings(max_examples=60)
@given(n_leaves=st.integers(2, 40), seed=st.integers(0, 10**6), data=st.data())
def test_labels_after_some_merges(n_leaves: int, seed: int, data: st.DataObject) -> None:
    """As SciPy cuts the tree, whose heights all differ."""
    merges = random_tree(n_leaves, seed)
    n_merges = data.draw(st.integers(0, n_leaves - 1))
    expected = fcluster(merges, n_leaves - n_merges, "maxclust")
    np.testing.assert_array_equal(labels_after(merges, n_merges), canonical_labels(expected))
    nodes = nodes_after(merges, n_merges)
    assert np.unique(nodes).size == n_leaves - n_merges
    sizes = np.concatenate([np.ones(n_leaves), merges[:, 3]])
    np.testing.assert_array_equal(sizes[nodes], np.bincount(nodes)[nodes])


@settings(max_examples=60)
@given(n_leaves=st.integers(2, 30), seed=st.integers(0, 10**6), data=st.data())
def test_a_restricted_tree_joins_objects_at_the_same_heights(
    n_leaves: int, seed: int, data: st.DataObject
) -> None:
    merges = random_tree(n_leaves, seed)
    rows = np.array(data.draw(st.permutations(range(n_leaves))))[: data.draw(st.integers(2, n_leaves))]
    found = restricted_linkage(merges, rows)
    assert is_valid_linkage(found)
    heights = squareform(cophenet(merges))[np.ix_(rows, rows)]
    np.testing.assert_array_equal(squareform(cophenet(found)), heights)


def test_a_tree_restricts_all_that_it_holds() -> None:
    merges = random_tree(12, 3)
    distance = squareform(cophenet(merges))
    tree = Tree(
        linkage=merges,
        kind="similarity",
        method="average",
        n_start=12,
        coordinates=np.eye(12),
        distance=distance,
    )
    rows = np.array([7, 1, 10, 4])
    part = tree.restricted(rows)
    assert (part.n_leaves, part.n_start, part.kind) == (4, 4, "similarity")
    np.testing.assert_array_equal(part.coordinates, np.eye(12)[rows])
    np.testing.assert_array_equal(part.distance, distance[np.ix_(rows, rows)])
    np.testing.assert_array_equal(np.sort(tree.restricted(np.arange(12)).leaves_order), np.arange(12))
    for wrong in ([3], [3, 3], [0, 12], [-1, 2], [[1, 2]]):
        with pytest.raises(ValueError, match="object"):
            tree.restricted(wrong)


@pytest.mark.parametrize("labels", [[0, 0, 0, 0], [0, 1, 2, 3], [0, 1, 0, 1], [2, 2, 0, 1], [0, 1, 1, 1]])
def test_an_evidence_tree_joins_its_starting_clusters_first(labels: list[int]) -> None:
    X = np.random.default_rng(2).normal(size=(4, 1))
    tree = evidence_tree(Posterior.from_data(X), labels)
    n_start = len(set(labels))
    np.testing.assert_array_equal(tree.cut(n_clusters=n_start), canonical_labels(labels))
    np.testing.assert_array_equal(tree.heights[: 4 - n_start], 0.0)


def test_an_evidence_tree_of_many_objects_takes_no_loop_over_them() -> None:
    """And cuts, with leftovers assigned, neither: all of it in less time than a second loop would take."""
    rng = np.random.default_rng(0)
    true = np.sort(rng.integers(0, 6, 60_000))
    X = rng.normal(size=(true.size, 2)) + 8.0 * rng.normal(size=(6, 2))[true]
    labels = true.copy()
    labels[:3] = [6, 7, 8]  # three leftovers
    posterior = Posterior.from_data(X)
    started = time.process_time()
    tree = evidence_tree(posterior, labels)
    found = tree.cut(n_clusters=6, min_size=10)
    assert time.process_time() - started < 3.0  # with loops and copies of growing clusters, over 20
    np.testing.assert_array_equal(found, canonical_labels(true))


def test_leftovers_of_many_objects_need_no_matrix_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    from ewens_widgets.analysis import trees as leftovers

    rng = np.random.default_rng(4)
    points = rng.normal(size=(40, 2))
    merges = linkage(points, "average")
    marked = np.where(labels_after(merges, 30) < 4, labels_after(merges, 30), -1)
    expected = assign_leftovers(marked, merges, 30, None, points)
    monkeypatch.setattr(leftovers, "_PAIRS", 3)  # a row at a time
    np.testing.assert_array_equal(assign_leftovers(marked, merges, 30, None, points), expected)
