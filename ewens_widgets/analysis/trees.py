"""A hierarchy of the objects, its cuts, and the hierarchy by how often the draws keep objects apart.

A tree is stored as a SciPy linkage matrix Z with one row per merge: the two nodes that are joined, the
height, and the size of the new node. Nodes below n are objects (leaves); row k makes node n + k. The heights
never decrease, so the first n − K merges give the cut into K clusters, also if several merges have the same
height. The operations on Z suit a million objects: there is no loop over the merges below a cut.

A cut may leave *small clusters*, with fewer than `min_size` objects. Their objects are assigned to the
nearest cluster, marked as unassigned, or kept as clusters of their own.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage, leaves_list, linkage
from scipy.spatial import KDTree
from scipy.spatial.distance import squareform

from ewens_widgets.analysis.similarity import check_pairs_fit, choose_rows
from ewens_widgets.arguments import TooLargeError
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Kind = Literal["similarity", "evidence"]
Method = Literal["single", "average", "complete"]

METHODS: tuple[Method, ...] = get_args(Method)
UNASSIGNED = -1

_HEIGHT_NAMES = {"similarity": "share of draws apart", "evidence": "log posterior lost (nats)"}
_SMALL_CLUSTERS = ("assign", "mark", "keep")
_WITHOUT_PAIRS = (
    "Use evidence_tree(), which needs no pairs, or a tree of some rows, e.g. "
    "similarity_tree(rows=trace.representatives())."
)


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A hierarchy of n objects.

    Attributes
    ----------
    linkage
        SciPy linkage matrix (n − 1 × 4), read-only; every tool of ``scipy.cluster.hierarchy`` takes it.
    kind
        ``"similarity"`` (heights: share of draws apart) or ``"evidence"`` (heights: log posterior lost, in
        nats).
    method
        How the tree was built.
    n_start
        Number of clusters that the tree starts from. It has no structure below them, and is not cut there.
    coordinates, distance
        Coordinates of the objects and distances between them; used to assign the objects of small clusters.
    """

    linkage: FloatArray = field(repr=False)
    kind: Kind
    method: str
    n_start: int
    coordinates: FloatArray | None = field(default=None, repr=False)
    distance: FloatArray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse a linkage that is not one, or whose heights decrease."""
        if not is_valid_linkage(self.linkage) or not is_monotonic(self.linkage):
            raise ValueError("a tree needs a valid SciPy linkage matrix whose heights never decrease.")
        self.linkage.setflags(write=False)

    def __repr__(self) -> str:
        top = float(self.heights[-1]) if self.heights.size else 0.0
        start = "" if self.n_start == self.n_leaves else f", from {self.n_start} clusters"
        return (
            f"Tree of {self.n_leaves} objects ({self.method}{start}): heights up to {top:.3g}, "
            f"{_HEIGHT_NAMES[self.kind]}; .cut(n_clusters=...) gives labels"
        )

    def _repr_png_(self) -> bytes:
        """Picture for a notebook."""
        from ewens_widgets.analysis.plots.charts import plot_tree

        content = BytesIO()
        plot_tree(self).savefig(content, format="png", dpi=80)
        return content.getvalue()

    @property
    def n_leaves(self) -> int:
        """Number of objects."""
        return int(self.linkage.shape[0]) + 1

    @property
    def heights(self) -> FloatArray:
        """Heights of the merges, in increasing order."""
        return self.linkage[:, 2]

    @cached_property
    def leaves_order(self) -> IntArray:
        """The objects in the order in which the tree is drawn, so that no lines cross."""
        return np.asarray(leaves_list(self.linkage.copy()), dtype=np.intp)  # SciPy 1.11 wants to write

    def cut(
        self,
        n_clusters: int | None = None,
        height: float | None = None,
        min_size: int = 1,
        small_clusters: str = "assign",
    ) -> IntArray:
        """Labels of the clusters of a cut.

        Parameters
        ----------
        n_clusters
            Number of clusters that have at least `min_size` members. Of all cuts with this number the highest
            is used; it has the fewest objects in small clusters.
        height
            Cut at this height instead: merges up to and including it are made.
        min_size
            Smaller clusters are not counted.
        small_clusters
            How their objects are labelled. ``"assign"``: each joins the first cluster that it meets up the
            tree; if it meets several at once, the cluster of the object nearest to it. ``"mark"``: they are
            labelled −1. ``"keep"``: small clusters are numbered after the others.

        Returns
        -------
        labels 0, 1, 2, … in order of first appearance, and −1 for unassigned objects
        """
        if small_clusters not in _SMALL_CLUSTERS:
            raise ValueError(
                f"small_clusters must be one of {', '.join(map(repr, _SMALL_CLUSTERS))}; "
                f"got {small_clusters!r}."
            )
        n_merges = self._n_merges(n_clusters, height, min_size)
        found = labels_after(self.linkage, n_merges)
        small = np.bincount(found)[found] < min_size
        labels = np.full(found.size, UNASSIGNED, dtype=np.intp)
        labels[~small] = canonical_labels(found[~small])
        if small.any() and small_clusters == "keep":
            labels[small] = labels.max() + 1 + canonical_labels(found[small])
        elif small.any() and small_clusters == "assign":
            self._assign_small(labels, n_merges)
        return labels

    def counts(self, min_size: int = 1) -> IntArray:
        """Numbers of clusters with at least `min_size` members after 0, 1, …, n − 1 merges."""
        if min_size < 1:
            raise ValueError(f"min_size must be at least 1; got {min_size}.")
        sizes = np.concatenate([np.ones(self.n_leaves), self.linkage[:, 3]])
        joined = sizes[self.linkage[:, :2].astype(np.intp)]
        change = (self.linkage[:, 3] >= min_size).astype(np.intp) - (joined >= min_size).sum(axis=1)
        return np.cumsum(np.concatenate([[self.n_leaves if min_size == 1 else 0], change])).astype(np.intp)

    def restricted(self, rows: ArrayLike) -> "Tree":
        """Tree of some of the objects, each given once, with the heights of this tree.

        Leaf k of the new tree is object ``rows[k]``.
        """
        chosen, n_leaves = np.asarray(rows, dtype=np.intp), self.n_leaves
        if chosen.ndim != 1 or chosen.size < 2 or np.unique(chosen).size != chosen.size:
            raise ValueError("a tree is restricted to two or more different objects.")
        if chosen.min() < 0 or chosen.max() >= n_leaves:
            raise ValueError(f"the objects must lie between 0 and {n_leaves - 1}.")
        start = labels_after(self.linkage, n_leaves - self.n_start)
        size = np.zeros(2 * n_leaves - 1, dtype=np.intp)
        size[chosen] = 1
        name = np.full(2 * n_leaves - 1, -1, dtype=np.intp)
        name[chosen] = np.arange(chosen.size)
        made: list[tuple[float, ...]] = []
        for node, (left, right) in enumerate(self.linkage[:, :2].astype(np.intp).tolist(), start=n_leaves):
            size[node] = size[left] + size[right]
            if size[left] and size[right]:
                name[node] = chosen.size + len(made)
                made.append((*sorted((name[left], name[right])), self.heights[node - n_leaves], size[node]))
            else:
                # A merge with chosen objects on one side only is left out.
                name[node] = name[left] if size[left] else name[right]
        return replace(
            self,
            linkage=np.array(made, dtype=np.float64),
            n_start=int(np.unique(start[chosen]).size),
            coordinates=None if self.coordinates is None else self.coordinates[chosen],
            distance=None if self.distance is None else self.distance[np.ix_(chosen, chosen)],
        )

    def links(self) -> FloatArray:
        """Corners of the lines to draw: four points (position in `leaves_order`, height) per merge."""
        n_leaves, children = self.n_leaves, self.linkage[:, :2].astype(np.intp)
        place = np.empty(2 * n_leaves - 1)
        place[self.leaves_order] = np.arange(n_leaves)
        for node, (left, right) in enumerate(children.tolist(), start=n_leaves):
            place[node] = (place[left] + place[right]) / 2
        ends = np.concatenate([np.zeros(n_leaves), self.heights])[children]
        tops = self.heights
        x = place[children[:, [0, 0, 1, 1]]]
        return np.stack([x, np.column_stack([ends[:, 0], tops, tops, ends[:, 1]])], axis=2)

    def arranged(self, order: ArrayLike) -> "Tree":
        """The same tree with its leaves as near to a given order of the objects as possible.

        Members of a starting cluster come in that order. Of two branches of a merge, the one whose leaves
        come earlier on average is drawn first.
        """
        n_leaves, merges = self.n_leaves, self.linkage.copy()
        rank = np.empty(n_leaves)
        rank[np.asarray(order, dtype=np.intp)] = np.arange(n_leaves)
        first = n_leaves - self.n_start
        if first:
            # The members of a starting cluster are joined at one height, so their order is free.
            drawn = self.leaves_order
            clusters = self.cut(n_clusters=self.n_start)[drawn]
            block = np.concatenate([[0], np.cumsum(np.diff(clusters) != 0)])
            stands_for = np.arange(2.0 * n_leaves)
            stands_for[drawn] = drawn[np.lexsort((rank[drawn], block))]
            merges[:, :2] = stands_for[merges[:, :2].astype(np.intp)]
        total, size = np.zeros(2 * n_leaves - 1), np.ones(2 * n_leaves - 1)
        total[:n_leaves] = rank
        for row, (left, right) in enumerate(merges[:, :2].astype(np.intp)):
            total[n_leaves + row], size[n_leaves + row] = total[left] + total[right], size[left] + size[right]
            if row >= first and total[left] / size[left] > total[right] / size[right]:
                merges[row, :2] = right, left
        return replace(self, linkage=merges)

    def plot(self, ax: "Axes | None" = None, names: ArrayLike | None = None, **line: object) -> "Axes":
        """Draw the tree with matplotlib, with the names of the objects under it if these are given.

        `line` are properties of the lines, e.g. ``color`` or ``linewidth``.
        """
        import matplotlib.pyplot as plt
        from matplotlib.collections import LineCollection

        axes = plt.subplots()[1] if ax is None else ax
        style: dict[str, Any] = {"color": "0.25", "linewidth": 0.8, **line}
        axes.add_collection(LineCollection(list(self.links()), **style))
        axes.set_xlim(-0.5, self.n_leaves - 0.5)
        axes.set_ylim(0.0, 1.05 * float(self.heights[-1]) or 1.0)
        axes.set_ylabel(_HEIGHT_NAMES[self.kind])
        axes.set_xticks([] if names is None else np.arange(self.n_leaves))
        if names is not None:
            axes.set_xticklabels(np.asarray(names)[self.leaves_order], rotation=90)
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        return axes

    def _n_merges(self, n_clusters: int | None, height: float | None, min_size: int) -> int:
        """Number of merges below the cut."""
        if (n_clusters is None) == (height is None):
            raise ValueError("give either n_clusters or height to cut a tree.")
        counts, first = self.counts(min_size), self.n_leaves - self.n_start
        if height is not None:
            if not height >= 0.0:
                raise ValueError(f"the height of a cut must not be negative; got {height!r}.")
            return max(int(np.searchsorted(self.heights, height, side="right")), first)
        reachable = np.flatnonzero(counts[first:] == n_clusters) + first
        if not reachable.size:
            most = int(counts[first:].max())
            size = f" of at least {min_size} members" if min_size > 1 else ""
            start = f" It starts from {self.n_start} clusters." if self.n_start < self.n_leaves else ""
            raise ValueError(
                f"this tree can be cut into 1 to {most} clusters{size}; {n_clusters} were asked for.{start}"
            )
        return int(reachable[-1])

    def _assign_small(self, labels: IntArray, n_merges: int) -> None:
        """Assign each object labelled −1 to the first cluster that it meets up the tree.

        Several clusters met at once are compared by their object nearest to it: by `distance`, then by
        `coordinates`. If both are tied, the largest cluster is chosen.
        """
        if np.all(labels == UNASSIGNED):
            raise ValueError(
                "every cluster of this cut is smaller than min_size; cut elsewhere, lower min_size, or use "
                'small_clusters="mark".'
            )
        nodes = _nodes_after(self.linkage, n_merges)
        order = np.argsort(nodes, kind="stable")
        names, starts = np.unique(nodes[order], return_index=True)
        members = dict(zip(names.tolist(), np.split(order, starts[1:]), strict=True))
        above = self.linkage[n_merges:, :2].astype(np.intp).tolist()
        for node, pair in enumerate(above, start=self.n_leaves + n_merges):
            # The members of a node are all unassigned, or none of them is.
            small, large = sorted((members.pop(child) for child in pair), key=lambda side: labels[side[0]])
            members[node] = np.concatenate([small, large])
            if not labels[small[0]] == UNASSIGNED != labels[large[0]]:
                continue
            near = large
            if np.unique(labels[near]).size > 1 and self.distance is not None:
                closest = self.distance[np.ix_(small, near)].min(axis=0)
                near = near[closest == closest.min()]
            if np.unique(labels[near]).size > 1 and self.coordinates is not None:
                closest = np.asarray(KDTree(self.coordinates[small]).query(self.coordinates[near])[0])
                near = near[closest == closest.min()]
            labels[small] = np.argmax(np.bincount(labels[near]))


def similarity_tree(trace: Trace, method: str = "single", rows: ArrayLike | None = None) -> Tree:
    """Linkage of the distance D = 1 − S, of all objects or of some `rows`: leaf k is then object ``rows[k]``.

    The method is ``"single"`` (the paper's), ``"average"`` or ``"complete"`` linkage.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}.")
    chosen = choose_rows(rows, trace.n_objects)
    n_leaves = trace.n_objects if chosen is None else chosen.size
    if n_leaves < 2:
        raise ValueError("a tree needs at least 2 objects; give more rows.")
    check_tree_fits(n_leaves)
    coordinates = trace.best_posterior.coordinates
    coordinates = coordinates if chosen is None else coordinates[chosen]
    return tree_of_distance(trace.distance(rows=chosen), method, coordinates)


def tree_of_distance(
    distance: FloatArray, method: str, coordinates: FloatArray | None = None, title: str = ""
) -> Tree:
    """Similarity tree of a matrix of distances; `title` replaces the name of the linkage as its method."""
    merges = linkage(squareform(distance, checks=False), method=cast("Method", method))
    # Averages are rounded: equal heights can differ in the last digits, be in the wrong order, or below 0.
    merges[:, 2] = np.maximum.accumulate(np.maximum(merges[:, 2], 0.0))
    return Tree(merges, "similarity", title or method, len(distance), coordinates, distance)


def average_order(similarity: NDArray[Any]) -> IntArray:
    """Order of the objects by average linkage: objects often in one cluster are next to each other."""
    distance = np.maximum(0.0, 1.0 - squareform(similarity.astype(np.float64), checks=False))
    return np.asarray(leaves_list(linkage(distance, method="average")), dtype=np.intp)


def tree_fits(n_objects: int) -> bool:
    """Whether there is memory for the pairs of `n_objects` objects."""
    try:
        check_tree_fits(n_objects)
    except TooLargeError:
        return False
    return True


def check_tree_fits(n_objects: int, way_out: str = _WITHOUT_PAIRS) -> None:
    """Refuse a similarity tree whose pairs would not fit in memory."""
    # The distance, its condensed form and the copy that linkage makes, besides the similarity.
    check_pairs_fit(n_objects, 20, way_out)


def labels_after(linkage: FloatArray, n_merges: int) -> IntArray:
    """Canonical labels of the clusters after the first merges of a linkage."""
    return canonical_labels(_nodes_after(linkage, n_merges))


def _nodes_after(linkage: FloatArray, n_merges: int) -> IntArray:
    """Node of each object after the first merges; SciPy cuts at heights, which can be tied."""
    n_leaves = linkage.shape[0] + 1
    above = np.arange(n_leaves + n_merges)
    above[linkage[:n_merges, :2].astype(np.intp)] = above[n_leaves:, None]
    # Each pass replaces the parent by its parent, until all point to the highest node.
    while not np.array_equal(above, higher := above[above]):
        above = higher
    return above[:n_leaves]
