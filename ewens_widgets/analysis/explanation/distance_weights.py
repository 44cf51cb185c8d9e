"""Weights of the paper's split-merge move, from the distances between objects: all at once, without a cache.

The formulae are those of `sampling.moves.distances`; written here a second time, in plain NumPy, so that a
picture of a proposal does not depend on what it explains.
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.moves.distances import RELATIVE_FLOOR

__all__ = ["DistanceWeights"]

IntArray = NDArray[np.intp]

_REDUCTIONS: dict[str, np.ufunc] = {"average": np.add, "maximum": np.maximum, "minimum": np.minimum}


class DistanceWeights:
    """Distances within and between the clusters of one partition.

    Parameters
    ----------
    pairs
        Distances between objects.
    labels
        Slot of each object's cluster, from 0 on.
    """

    def __init__(self, pairs: FloatArray, labels: NDArray[np.integer]) -> None:
        self._pairs = pairs
        largest = float(pairs.max())
        self.floor = RELATIVE_FLOOR * largest if largest > 0.0 else 1.0
        self.sizes = np.bincount(labels)
        self._order = np.argsort(labels, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])

    def members(self, slot: int) -> IntArray:
        """Objects of a cluster, in order."""
        start = self._starts[slot]
        return self._order[start : start + self.sizes[slot]]

    def split_weights(self, within: str) -> FloatArray:
        """Within-cluster distance of each cluster, 0 for a singleton."""
        return np.array([self._within(slot, within) for slot in range(self.sizes.size)])

    def _within(self, slot: int, option: str) -> float:
        if self.sizes[slot] < 2:
            return 0.0
        members = self.members(slot)
        values = self._pairs[np.ix_(members, members)][np.triu_indices(members.size, 1)]
        total = float(_REDUCTIONS[option].reduce(values))
        return max(total / values.size if option == "average" else total, self.floor)

    def merge_weights(self, between: str) -> tuple[list[tuple[int, int]], FloatArray]:
        """Pairs of clusters, and one over the distance of each."""
        table = self._between(between)
        places = list(combinations(range(self.sizes.size), 2))
        rows, columns = np.triu_indices(self.sizes.size, 1)
        return places, np.asarray(1.0 / np.maximum(table[rows, columns], self.floor), dtype=np.float64)

    def _between(self, option: str) -> FloatArray:
        ordered = self._pairs[np.ix_(self._order, self._order)]
        if option == "hausdorff":
            nearest = np.minimum.reduceat(ordered, self._starts, axis=1)
            directed = np.maximum.reduceat(nearest, self._starts, axis=0)
            return np.asarray(np.maximum(directed, directed.T), dtype=np.float64)
        reduction = _REDUCTIONS[option]
        table = reduction.reduceat(reduction.reduceat(ordered, self._starts, axis=0), self._starts, axis=1)
        counts = np.outer(self.sizes, self.sizes) if option == "average" else 1.0
        return np.asarray(table / counts, dtype=np.float64)

    def farthest_pair(self, members: IntArray) -> tuple[int, int]:
        """The two members farthest apart; of equally distant pairs the one with the lowest indices."""
        ordered = np.sort(members)
        above = np.triu(np.ones((ordered.size, ordered.size), dtype=bool), 1)
        inside = np.where(above, self._pairs[np.ix_(ordered, ordered)], -1.0)
        first, second = np.unravel_index(int(inside.argmax()), inside.shape)
        return int(ordered[first]), int(ordered[second])

    def to_second_core(self, members: IntArray, cores: tuple[int, int]) -> FloatArray:
        """Probability of each member to join the second core: the nearer core is favoured."""
        first, second = (np.maximum(self._pairs[members, core], self.floor) for core in cores)
        shares = first / (first + second)
        shares[members == cores[0]] = 0.0
        shares[members == cores[1]] = 1.0
        return np.asarray(shares, dtype=np.float64)
