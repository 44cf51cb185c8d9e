"""How two partitions are related: whether one is a split of a single cluster of the other."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["single_split"]


def single_split(start: NDArray[np.intp], end: NDArray[np.intp]) -> tuple[int, int, NDArray[np.bool_]] | None:
    """Describe the change between two partitions (canonical labels) as a split or a merge.

    Returns
    -------
    slot, other
        Clusters of `start`: the one that is split (twice), or the two that are merged.
    moved
        Objects that leave `slot` (split), or that join it from `other` (merge).

    None is returned where the change is neither.
    """
    n_start, n_end = int(start.max()) + 1, int(end.max()) + 1
    if abs(n_start - n_end) != 1:
        return None
    coarse, fine = (start, end) if n_start < n_end else (end, start)
    # A refinement has one pair of labels for each fine cluster; exactly one coarse cluster then holds two.
    joined = np.unique(np.stack([coarse, fine]), axis=1)
    if joined.shape[1] != max(n_start, n_end):
        return None
    whole = int(np.flatnonzero(np.bincount(joined[0]) == 2)[0])
    first, second = (int(part) for part in joined[1][joined[0] == whole])
    moved = fine == second
    return (whole, whole, moved) if n_start < n_end else (first, second, moved)
