"""Draws arranged for counting: how the clusters of every draw overlap those of one partition."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.memory import check_fits
from ewens_widgets.sampling.columns import read_only

__all__ = ["Draws"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


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
