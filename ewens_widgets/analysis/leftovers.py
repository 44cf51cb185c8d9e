"""Objects that a cut leaves over, in clusters too small to count, and where they belong."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ewens_widgets.partition import canonical_labels

__all__ = ["LEFTOVER", "assign_leftovers", "keep_leftovers"]

LEFTOVER = -1

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
    members: dict[int, IntArray] = {item: np.array([item]) for item in range(labels.size)}
    for row, (left, right) in enumerate(linkage[:, :2].astype(np.intp)):
        sides = members.pop(int(left)), members.pop(int(right))
        members[labels.size + row] = np.concatenate(sides)
        if row >= n_merges:
            # A leftover's companions are all left over: a node is either clusters or leftovers, never both.
            homeless = [bool(labels[side[0]] == LEFTOVER) for side in sides]
            if homeless[0] != homeless[1]:
                small, large = (sides[0], sides[1]) if homeless[0] else (sides[1], sides[0])
                labels[small] = _nearest_label(small, large, labels, distance, coordinates)
    return labels


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
        closest = cdist(coordinates[small], coordinates[near]).min(axis=0)
        near = near[closest == closest.min()]
    return int(np.argmax(np.bincount(labels[near])))
