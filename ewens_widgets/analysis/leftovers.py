"""Objects that a cut leaves over, in clusters too small to count, and where they belong."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ewens_widgets.analysis.linkage import nodes_after
from ewens_widgets.partition import canonical_labels

__all__ = ["LEFTOVER", "assign_leftovers", "keep_leftovers"]

LEFTOVER = -1
_PAIRS = 4_000_000  # Distances in memory at once.

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def keep_leftovers(marked: IntArray, labels: IntArray) -> IntArray:
    """Give the small clusters of `labels` numbers after those of the large ones."""
    result = marked.copy()
    left = marked == LEFTOVER
    result[left] = marked.max() + 1 + canonical_labels(labels[left])
    return result


def assign_leftovers(
    marked: IntArray,
    linkage: FloatArray,
    n_merges: int,
    distance: FloatArray | None = None,
    coordinates: FloatArray | None = None,
) -> IntArray:
    """Let each leftover join the cluster that it meets first up the tree.

    Parameters
    ----------
    marked
        Labels of the large clusters, and −1 for leftovers.
    linkage, n_merges
        The tree, and after how many of its merges it is cut.
    distance, coordinates
        Where leftovers meet several clusters at once, they join the one that holds the object nearest to them
        by `distance`; the nearest in space if several are as near, or the largest cluster if nothing else
        decides.
    """
    if np.all(marked == LEFTOVER):
        raise ValueError(
            "every cluster of this cut is too small to count; cut elsewhere, lower min_size, "
            'or use leftovers="mark".'
        )
    labels = marked.copy()
    members = _members(nodes_after(linkage, n_merges))
    for row, (left, right) in enumerate(linkage[n_merges:, :2].astype(np.intp), start=n_merges):
        sides = members.pop(int(left)), members.pop(int(right))
        members[labels.size + row] = np.concatenate(sides)
        # A leftover's companions are all left over: a node is either clusters or leftovers, never both.
        homeless = [bool(labels[side[0]] == LEFTOVER) for side in sides]
        if homeless[0] != homeless[1]:
            small, large = (sides[0], sides[1]) if homeless[0] else (sides[1], sides[0])
            labels[small] = _nearest_label(small, large, labels, distance, coordinates)
    return labels


def _members(nodes: IntArray) -> dict[int, IntArray]:
    """Objects of each node."""
    order = np.argsort(nodes, kind="stable")
    names, starts = np.unique(nodes[order], return_index=True)
    return dict(zip(names.tolist(), np.split(order, starts[1:]), strict=True))


def _nearest_label(
    small: IntArray,
    large: IntArray,
    labels: IntArray,
    distance: FloatArray | None,
    coordinates: FloatArray | None,
) -> int:
    """Label of the object among `large` that is nearest to one of `small`."""
    near = large
    if np.unique(labels[near]).size > 1 and distance is not None:
        closest = distance[np.ix_(small, near)].min(axis=0)
        near = near[closest == closest.min()]
    if np.unique(labels[near]).size > 1 and coordinates is not None:
        closest = _closest(coordinates[small], coordinates[near])
        near = near[closest == closest.min()]
    return int(np.argmax(np.bincount(labels[near])))


def _closest(small: FloatArray, near: FloatArray) -> FloatArray:
    """Distance of each row of `near` to the nearest row of `small`, without all pairs in memory at once."""
    closest = np.full(len(near), np.inf)
    step = max(1, _PAIRS // len(near))
    for start in range(0, len(small), step):
        np.minimum(closest, cdist(small[start : start + step], near).min(axis=0), out=closest)
    return closest
