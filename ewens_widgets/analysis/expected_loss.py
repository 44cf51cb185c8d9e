r"""Expected loss of a partition over the draws, exactly, and greedy steps that lower it.

Both losses have one form. For partitions with cluster sizes :math:`n_k` and :math:`m_l` and overlaps
:math:`n_{kl}`,

.. math:: L = s \Big( \sum_k g(n_k) + \sum_l g(m_l) - 2 \sum_{kl} g(n_{kl}) \Big),

=========================  =======================  ====================
loss                       :math:`g(x)`             :math:`s`
=========================  =======================  ====================
variation of information   :math:`x \log x`         :math:`1/n`
Binder                     :math:`x^2`              :math:`1/(n(n-1))`
=========================  =======================  ====================

so Binder's loss is the share of pairs on which two partitions disagree. The expectation is the average over
all draws, not a bound such as that of Wade & Ghahramani (2018), Bayesian Analysis 13(2): the overlaps with
the clusters of every draw are counted. `Draws` arranges them for that.

Moving one object between clusters changes, in each draw, only the overlaps of the one cell that holds the
object, so a step costs (draws) × (clusters) look-ups in a table of :math:`g(x+1) - g(x)`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.memory import check_fits
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.draws import read_only

__all__ = ["LOSSES", "Draws", "ExpectedLoss"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

LOSSES = ("vi", "binder")
_MOST_SWEEPS = 100
_TOLERANCE = 1e-10  # A step must lower the (unscaled) loss by more than rounding does.


@dataclass(frozen=True, eq=False)
class Draws:
    """Distinct draws with their weights; the clusters of all of them are numbered through as *cells*.

    Attributes
    ----------
    labels
        Canonical labels of the distinct draws (U × n), in order of first appearance.
    weights
        Share of all draws that each distinct one stands for.
    place
        For each draw of the chain, which distinct draw it is.
    cells
        For each distinct draw and object, the number of its cell (U × n).
    draw_of_cell
        Which distinct draw a cell belongs to.
    cell_sizes
        Number of objects in each cell.
    """

    labels: NDArray[np.integer]
    weights: FloatArray
    place: IntArray
    cells: IntArray
    draw_of_cell: IntArray
    cell_sizes: IntArray

    @classmethod
    def of(cls, labels: NDArray[np.integer]) -> "Draws":
        """Arrange the labels of a chain, a draw a row."""
        _, first, inverse, counts = np.unique(
            labels, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        rank = np.empty(order.size, dtype=np.intp)
        rank[order] = np.arange(order.size)
        distinct = labels[first[order]]
        widths = distinct.max(axis=1).astype(np.intp) + 1
        starts = np.cumsum(widths) - widths
        cells = distinct + starts[:, None]
        return cls(
            labels=read_only(distinct),
            weights=counts[order] / len(labels),
            place=rank[inverse.ravel()],
            cells=cells,
            draw_of_cell=np.repeat(np.arange(order.size), widths),
            cell_sizes=np.bincount(cells.ravel()),
        )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_objects(self) -> int:
        """Number of objects."""
        return int(self.labels.shape[1])

    @property
    def cell_weights(self) -> FloatArray:
        """Weight of each cell: that of its draw."""
        return self.weights[self.draw_of_cell]

    def spread(self, count: int) -> "Draws":
        """At most `count` draws, evenly spaced along the chain."""
        if len(self) <= count:
            return self
        chosen = np.linspace(0, self.place.size - 1, count).astype(np.intp)
        return Draws.of(self.labels[self.place[chosen]])

    def overlaps(self, labels: IntArray, n_columns: int | None = None) -> IntArray:
        """Count, for each cell, its objects in each cluster of a partition (cells × clusters)."""
        width = int(labels.max()) + 1 if n_columns is None else n_columns
        n_cells = self.cell_sizes.size
        check_fits(
            16 * n_cells * width,
            f"comparing {len(self)} draws with a partition of {width} clusters",
            "Thin the trace, e.g. trace.thin(10).",
        )
        counts = np.bincount((self.cells * width + labels).ravel(), minlength=n_cells * width)
        return counts.reshape(n_cells, width)


class ExpectedLoss:
    """Expected loss over draws.

    Parameters
    ----------
    draws
        The draws, arranged for counting.
    loss
        ``"vi"`` or ``"binder"``.
    """

    def __init__(self, draws: Draws, loss: str) -> None:
        if loss not in LOSSES:
            raise ValueError(f'loss must be "vi" (variation of information) or "binder"; got {loss!r}.')
        n_objects = draws.n_objects
        counts = np.arange(n_objects + 2, dtype=np.float64)
        self.draws = draws
        self.loss = loss
        self._g = counts * np.log(np.maximum(counts, 1.0)) if loss == "vi" else counts * counts
        self._step = np.diff(self._g)
        self._scale = 1.0 / n_objects if loss == "vi" else 1.0 / max(n_objects * (n_objects - 1), 1)
        self._own = np.bincount(draws.draw_of_cell, weights=self._g[draws.cell_sizes])

    def distances(self, labels: IntArray) -> FloatArray:
        """Loss between a partition (canonical labels) and each distinct draw."""
        shared = self._g[self.draws.overlaps(labels)].sum(axis=1)
        both = np.bincount(self.draws.draw_of_cell, weights=shared)
        loss = self._g[np.bincount(labels)].sum() + self._own - 2.0 * both
        # Equal partitions may come out a rounding error apart.
        return np.where(loss < _TOLERANCE * self._g[-2], 0.0, loss * self._scale)

    def of(self, labels: IntArray) -> float:
        """Expected loss of a partition given by canonical labels."""
        return float(self.draws.weights @ self.distances(labels))

    def improve(self, labels: IntArray) -> IntArray:
        """Move single objects and merge clusters, in a fixed order, until neither lowers the loss."""
        current = canonical_labels(labels)
        for _ in range(_MOST_SWEEPS):
            swept = self._sweep(current)
            merged = self._merge(swept)
            if np.array_equal(merged, current):
                break
            current = merged
        return current

    def _sweep(self, labels: IntArray) -> IntArray:
        """Move each object in turn to the cluster, or to a new one, with the least expected loss."""
        result = labels.copy()
        width = int(result.max()) + 2
        overlaps = self.draws.overlaps(result, width)
        steps = self._step[overlaps]
        sizes = np.bincount(result, minlength=width)
        for item, cells in enumerate(np.ascontiguousarray(self.draws.cells.T)):
            home = result[item]
            # What each cluster would cost the object, had it been taken out of its own.
            others = overlaps[cells, home] - 1
            cost = self._step[sizes] - 2.0 * (self.draws.weights @ steps[cells])
            cost[home] = self._step[sizes[home] - 1] - 2.0 * (self.draws.weights @ self._step[others])
            chosen = int(np.argmin(cost))
            if cost[chosen] >= cost[home] - _TOLERANCE:
                continue
            for cluster, counts in ((home, others), (chosen, overlaps[cells, chosen] + 1)):
                overlaps[cells, cluster] = counts
                steps[cells, cluster] = self._step[counts]
            sizes[home] -= 1
            sizes[chosen] += 1
            result[item] = chosen
            if sizes.all():
                # The spare column, that of a new cluster, is taken: add another.
                overlaps = np.pad(overlaps, ((0, 0), (0, 1)))
                steps = np.pad(steps, ((0, 0), (0, 1)), constant_values=self._step[0])
                sizes = np.append(sizes, 0)
        return canonical_labels(result)

    def _merge(self, labels: IntArray) -> IntArray:
        """Merge the best pair of clusters while that lowers the expected loss."""
        result, weights = labels.copy(), self.draws.cell_weights
        while result.max() > 0:
            overlaps = self.draws.overlaps(result)
            sizes = np.bincount(result)
            change = np.full((sizes.size, sizes.size), np.inf)
            for left in range(sizes.size - 1):
                others = slice(left + 1, None)
                own = self._gain(sizes[left], sizes[others])
                # Cells without objects of this cluster gain nothing by the merge.
                cells = np.flatnonzero(overlaps[:, left])
                shared = weights[cells] @ self._gain(overlaps[cells, left, None], overlaps[cells, others])
                change[left, others] = own - 2.0 * shared
            kept, gone = np.unravel_index(int(np.argmin(change)), change.shape)
            if change[kept, gone] >= -_TOLERANCE:
                break
            result = canonical_labels(np.where(result == gone, kept, result))
        return result

    def _gain(self, first: IntArray | np.intp, second: IntArray) -> FloatArray:
        """Compute g(x + y) − g(x) − g(y)."""
        return np.asarray(self._g[first + second] - self._g[first] - self._g[second], dtype=np.float64)
