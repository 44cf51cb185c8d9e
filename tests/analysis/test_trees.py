"""Trees, their cuts and what these leave over; operations on linkage matrices of many objects."""

import time
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import cophenet, fcluster, is_monotonic, is_valid_linkage, linkage
from scipy.spatial.distance import pdist, squareform
from traces import blob_trace

from ewens_widgets.analysis.agreement import error_rate
from ewens_widgets.analysis.evidence_tree import evidence_tree
from ewens_widgets.analysis.trees import (
    UNASSIGNED,
    Tree,
    labels_after,
)
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import canonical_labels


def tree_of(points: np.ndarray, method: str = "single") -> Tree:
    return Tree(linkage(pdist(points), method=method), "similarity", method, len(points), coordinates=points)


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture
def tree(rng: np.random.Generator) -> Tree:
    return tree_of(rng.normal(size=(25, 2)), "average")


def two_lines_and_outliers() -> tuple[np.ndarray, np.ndarray]:
    """Two rows of points, and two objects farther from both than the rows are from each other."""
    steps = np.arange(20.0)
    points = np.vstack(
        [
            np.column_stack([steps, 0 * steps]),
            np.column_stack([steps, 0 * steps + 3]),
            [[10.0, -9.0], [9.0, 13.0]],
        ]
    )
    return points, np.repeat([0, 1, 0, 1], [20, 20, 1, 1])


def test_cuts_agree_with_scipy_and_are_nested(tree: Tree) -> None:
    place = np.argsort(tree.leaves_order)
    for count in range(1, 26):
        labels = tree.cut(n_clusters=count)
        expected = fcluster(tree.linkage, count, criterion="maxclust")
        np.testing.assert_array_equal(labels, canonical_labels(expected))
        # The leaves of each cluster are side by side.
        for label in range(count):
            places = place[labels == label]
            assert places.max() - places.min() == places.size - 1
        if count < 25:
            fine = tree.cut(n_clusters=count + 1)
            assert len(set(zip(labels.tolist(), fine.tolist(), strict=True))) == count + 1
    for height in (0.0, *tree.heights[::5], 0.7, 100.0):
        expected = fcluster(tree.linkage, height, criterion="distance")
        np.testing.assert_array_equal(tree.cut(height=height), canonical_labels(expected))


@settings(max_examples=40)
@given(st.integers(2, 30), st.integers(0, 2**32 - 1), st.sampled_from(["single", "average", "complete"]))
def test_invariants(n_leaves: int, seed: int, method: str) -> None:
    rng = np.random.default_rng(seed)
    # Whole numbers make ties.
    tree = tree_of(rng.integers(0, 5, size=(n_leaves, 2)).astype(float), method)
    assert sorted(tree.leaves_order) == list(range(n_leaves))
    for min_size in (1, 2, 3):
        counts = tree.counts(min_size)
        sizes = [np.bincount(labels_after(tree.linkage, merges)) for merges in range(n_leaves)]
        np.testing.assert_array_equal(counts, [np.sum(size >= min_size) for size in sizes])
        for n_clusters in range(1, counts.max() + 1):
            kept = tree.cut(n_clusters=n_clusters, min_size=min_size, small_clusters="keep")
            marked = tree.cut(n_clusters=n_clusters, min_size=min_size, small_clusters="mark")
            assigned = tree.cut(n_clusters=n_clusters, min_size=min_size)
            assert np.sum(np.bincount(kept) >= min_size) == n_clusters
            assert marked.max() + 1 == n_clusters
            assert assigned.min() == 0
            assert assigned.max() + 1 == n_clusters
            np.testing.assert_array_equal(assigned[marked != UNASSIGNED], marked[marked != UNASSIGNED])
            np.testing.assert_array_equal(kept[marked != UNASSIGNED], marked[marked != UNASSIGNED])
            assert np.all(kept[marked == UNASSIGNED] >= n_clusters)


@pytest.mark.parametrize("distance", [False, True])
def test_outliers_do_not_count_and_find_their_cluster(distance: bool) -> None:
    points, true = two_lines_and_outliers()
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2) if distance else None
    where = {"distance": gaps} if distance else {"coordinates": points}
    tree = Tree(linkage(points, "single"), "similarity", "single", 42, **where)
    assert error_rate(true, tree.cut(n_clusters=2)) > 0.4
    assert error_rate(true, tree.cut(n_clusters=2, min_size=5)) == 0.0
    marked = tree.cut(n_clusters=2, min_size=5, small_clusters="mark")
    np.testing.assert_array_equal(np.flatnonzero(marked == UNASSIGNED), [40, 41])
    np.testing.assert_array_equal(tree.cut(n_clusters=2, min_size=5, small_clusters="keep")[40:], [2, 3])
    # Unassigned objects count as errors; assigned ones need not.
    assert error_rate(true, marked) == 2 / 42
    marked = tree.cut(height=2.0, min_size=5, small_clusters="mark")
    np.testing.assert_array_equal(np.bincount(marked + 1), [2, 20, 20])
    with pytest.raises(ValueError, match="smaller than min_size"):
        tree.cut(height=0.5, min_size=5)
    assert np.all(tree.cut(height=0.5, min_size=5, small_clusters="mark") == UNASSIGNED)


def test_ties_of_the_distance_are_broken_in_space() -> None:
    points, true = two_lines_and_outliers()
    gaps = np.where(true[:, None] == true[None, :], 0.25, 0.5)
    gaps[40:, :] = gaps[:, 40:] = 1.0
    np.fill_diagonal(gaps, 0.0)
    merges = linkage(gaps[np.triu_indices(42, 1)], "single")
    tree = Tree(merges, "similarity", "single", 42, coordinates=points, distance=gaps)
    assert error_rate(true, tree.cut(n_clusters=2, min_size=2)) == 0.0


def test_objects_of_small_clusters_join_what_they_meet_first_or_the_larger_cluster() -> None:
    points = np.array([[0.0], [0.1], [0.2], [1.0], [9.0], [9.1], [9.2], [7.5]])
    labels = tree_of(points).cut(n_clusters=2, min_size=3, small_clusters="assign")
    np.testing.assert_array_equal(labels, [0, 0, 0, 0, 1, 1, 1, 1])
    merges = linkage(np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [99.0]]), "single")
    labels = Tree(merges, "similarity", "single", 6).cut(n_clusters=2, min_size=2)
    np.testing.assert_array_equal(labels, [0, 0, 0, 1, 1, 0])


def test_links_join_children_to_parents_and_are_drawn(tree: Tree) -> None:
    corners = tree.links()
    assert corners.shape == (24, 4, 2)
    np.testing.assert_array_equal(corners[:, 1:3, 1], np.column_stack([tree.heights, tree.heights]))
    assert np.all(corners[:, 0, 1] <= corners[:, 1, 1])
    assert corners[:, [0, 3], 0].min() >= 0
    assert corners[:, [0, 3], 0].max() <= 24
    axes = tree.plot(color="red")
    assert tree.plot(axes) is axes
    assert len(axes.collections[0].get_segments()) == 24
    assert axes.get_ylabel() == "share of draws apart"
    named = tree.plot(names=[f"o{k}" for k in range(25)])
    assert [text.get_text() for text in named.get_xticklabels()] == [f"o{k}" for k in tree.leaves_order]
    # SciPy's own dendrogram recurses, and gives up on a chain of this length.
    chain = tree_of(np.cumsum(np.arange(3000.0))[:, None])
    chain.plot()
    assert chain.cut(n_clusters=2).tolist() == [0] * 2999 + [1]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "either n_clusters or height"),
        ({"n_clusters": 2, "height": 1.0}, "either n_clusters or height"),
        ({"n_clusters": 0}, "1 to 25 clusters"),
        ({"n_clusters": 26}, "1 to 25 clusters"),
        ({"n_clusters": -1}, "1 to 25 clusters"),
        ({"n_clusters": 4, "min_size": 9}, "clusters of at least 9 members; 4 were asked for"),
        ({"n_clusters": 2, "min_size": 0}, "min_size must be at least 1"),
        ({"n_clusters": 2, "small_clusters": "drop"}, "'assign', 'mark', 'keep'"),
        ({"height": -1.0}, "must not be negative"),
        ({"height": float("nan")}, "must not be negative"),
    ],
)
def test_refused_cuts(tree: Tree, arguments: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        tree.cut(**arguments)
    merges = tree.linkage.copy()
    merges[:, 2] = merges[::-1, 2]
    with pytest.raises(ValueError, match="never decrease"):
        Tree(merges, "similarity", "average", 25)
    with pytest.raises(ValueError, match="'single', 'average', 'complete'"):
        blob_trace(n_draws=2).similarity_tree("ward")


@pytest.mark.parametrize("method", ["single", "average", "complete"])
def test_similarity_tree(method: str) -> None:
    trace = blob_trace(n_draws=60)
    tree = trace.similarity_tree(method)
    assert (tree.kind, tree.method, tree.n_leaves, tree.n_start) == ("similarity", method, 30, 30)
    assert is_valid_linkage(tree.linkage)
    assert is_monotonic(tree.linkage)
    assert error_rate(np.arange(30) % 3, tree.cut(n_clusters=3)) == 0.0
    expected = linkage(trace.distance()[np.triu_indices(30, 1)], method)
    np.testing.assert_allclose(tree.linkage, expected, atol=1e-12)


def random_tree(n_leaves: int, seed: int, method: str = "average") -> np.ndarray:
    return linkage(np.random.default_rng(seed).normal(size=(n_leaves, 2)), method)


@settings(max_examples=60)
@given(n_leaves=st.integers(2, 30), seed=st.integers(0, 10**6), data=st.data())
def test_labels_after_some_merges_and_the_tree_of_some_objects(
    n_leaves: int, seed: int, data: st.DataObject
) -> None:
    merges = random_tree(n_leaves, seed)
    n_merges = data.draw(st.integers(0, n_leaves - 1))
    expected = fcluster(merges, n_leaves - n_merges, "maxclust")  # All heights differ.
    np.testing.assert_array_equal(labels_after(merges, n_merges), canonical_labels(expected))
    rows = np.array(data.draw(st.permutations(range(n_leaves))))[: data.draw(st.integers(2, n_leaves))]
    found = Tree(merges, "similarity", "average", n_leaves).restricted(rows).linkage
    assert is_valid_linkage(found)
    heights = squareform(cophenet(merges))[np.ix_(rows, rows)]
    np.testing.assert_array_equal(squareform(cophenet(found)), heights)


def test_a_tree_restricts_all_that_it_holds() -> None:
    merges = random_tree(12, 3)
    distance = squareform(cophenet(merges))
    tree = Tree(merges, "similarity", "average", 12, np.eye(12), distance)
    rows = np.array([7, 1, 10, 4])
    part = tree.restricted(rows)
    assert (part.n_leaves, part.n_start, part.kind) == (4, 4, "similarity")
    np.testing.assert_array_equal(part.coordinates, np.eye(12)[rows])
    np.testing.assert_array_equal(part.distance, distance[np.ix_(rows, rows)])
    np.testing.assert_array_equal(np.sort(tree.restricted(np.arange(12)).leaves_order), np.arange(12))
    for wrong in ([3], [3, 3], [0, 12], [-1, 2], [[1, 2]]):
        with pytest.raises(ValueError, match="object"):
            tree.restricted(wrong)


def test_an_evidence_tree_of_many_objects_takes_no_loop_over_them() -> None:
    """Nor do cuts that assign small clusters: all in less time than a second loop would take."""
    rng = np.random.default_rng(0)
    true = np.sort(rng.integers(0, 6, 60_000))
    X = rng.normal(size=(true.size, 2)) + 8.0 * rng.normal(size=(6, 2))[true]
    labels = true.copy()
    labels[:3] = [6, 7, 8]  # three small clusters
    posterior = Posterior.from_data(X)
    started = time.process_time()
    tree = evidence_tree(posterior, labels)
    found = tree.cut(n_clusters=6, min_size=10)
    assert time.process_time() - started < 3.0  # with loops and copies of growing clusters, over 20
    np.testing.assert_array_equal(found, canonical_labels(true))


def test_an_arranged_tree_is_the_same_tree_in_another_order(rng: np.random.Generator) -> None:
    labels = canonical_labels(rng.integers(0, 6, 40))
    tree = evidence_tree(Posterior.from_data(rng.normal(size=(40, 2)), model="I"), labels)
    order = rng.permutation(40)
    arranged = tree.arranged(order)
    for count in range(1, 7):
        np.testing.assert_array_equal(arranged.cut(n_clusters=count), tree.cut(n_clusters=count))
    rank = np.argsort(order)
    drawn = arranged.leaves_order
    for cluster in range(6):
        assert np.all(np.diff(rank[drawn[labels[drawn] == cluster]]) > 0)
    np.testing.assert_array_equal(arranged.heights, tree.heights)
