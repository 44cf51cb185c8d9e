"""Operations on SciPy linkage matrices that suit a million objects: no loop over the merges below a cut."""

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.partition import canonical_labels

__all__ = ["labels_after", "nodes_after", "restricted_linkage"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def nodes_after(linkage: FloatArray, n_merges: int) -> IntArray:
    """Node that each object belongs to after the first merges of a linkage."""
    n_leaves = linkage.shape[0] + 1
    above = np.arange(n_leaves + n_merges)
    above[linkage[:n_merges, :2].astype(np.intp)] = above[n_leaves:, None]
    # Each node takes the name of the node above the one above it, until it has that of the highest.
    while not np.array_equal(above, higher := above[above]):
        above = higher
    return above[:n_leaves]


def labels_after(linkage: FloatArray, n_merges: int) -> IntArray:
    """Canonical labels of the clusters after the first merges of a linkage."""
    return canonical_labels(nodes_after(linkage, n_merges))


def restricted_linkage(linkage: FloatArray, rows: IntArray) -> FloatArray:
    """Linkage of some of the objects alone: merges that join none of them to another are left out.

    Parameters
    ----------
    linkage
        A SciPy linkage matrix.
    rows
        The objects to keep, each once; their order numbers the leaves.
    """
    n_leaves = linkage.shape[0] + 1
    counts = np.zeros(2 * n_leaves - 1, dtype=np.intp)
    counts[rows] = 1
    name = np.full(2 * n_leaves - 1, -1, dtype=np.intp)
    name[rows] = np.arange(rows.size)
    made: list[tuple[float, float, float, float]] = []
    for row, (left, right) in enumerate(linkage[:, :2].astype(np.intp).tolist()):
        node = n_leaves + row
        counts[node] = counts[left] + counts[right]
        if counts[left] and counts[right]:
            name[node] = rows.size + len(made)
            first, second = sorted((name[left], name[right]))
            made.append((first, second, linkage[row, 2], counts[node]))
        else:
            name[node] = name[left] if counts[left] else name[right]
    return np.array(made, dtype=np.float64).reshape(-1, 4)
