"""Summaries of draws of partitions by anybody's sampler: labels in, similarity and point estimates out.

The code is that of our own traces (`similarity`, `trees`, `estimates`, `convergence`). Here it needs the
labels alone. Without a posterior, groups are merged by expected loss: of the partitions with one group less,
the one whose expected loss is least.
"""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.analysis.convergence import Diagnostics, compare, largest_gap
from ewens_widgets.analysis.estimates import Draws, ExpectedLoss, PointEstimate, point_estimate
from ewens_widgets.analysis.findings import html_table, text_table
from ewens_widgets.analysis.plots.heatmap_plot import plot_heatmap
from ewens_widgets.analysis.similarity import check_pairs_fit, representative_rows, similarity
from ewens_widgets.analysis.trees import Tree, tree_of_distance
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.draws import read_only

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ewens_widgets.sampling.trace import Trace

__all__ = ["LabelSummary", "summarize"]


class MergeLoss(NamedTuple):
    """A row of a table of merges: the partition, and its expected loss."""

    labels: NDArray[np.intp]
    expected_loss: float


@dataclass(frozen=True, eq=False)
class LabelSummary:
    """What `summarize` returns; print it, or show it in a notebook.

    Attributes
    ----------
    labels
        Canonical labels, a row per draw, those of one chain after the other (T × n).
    n_chains
        Number of chains.
    """

    labels: NDArray[np.intp] = field(repr=False)
    n_chains: int

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_objects(self) -> int:
        """Number of objects."""
        return int(self.labels.shape[1])

    @cached_property
    def n_clusters(self) -> NDArray[np.intp]:
        """Number of clusters of each draw."""
        return np.asarray(self.labels.max(axis=1) + 1, dtype=np.intp)

    def similarity(self, rows: ArrayLike | None = None) -> FloatArray:
        """Share of draws in which each pair of objects is in one cluster; `rows` chooses objects."""
        return similarity(self.labels, rows=rows)

    def distance(self, rows: ArrayLike | None = None) -> FloatArray:
        """Share of draws in which each pair of objects is in different clusters."""
        return np.asarray(1.0 - self.similarity(rows))

    def representatives(self, most: int = 400) -> NDArray[np.intp]:
        """Numbers of at most so many objects, in proportion from each cluster of the point estimate."""
        return representative_rows(self.point_estimate().labels, most)

    def similarity_tree(self, method: str = "average", rows: ArrayLike | None = None) -> Tree:
        """Linkage of the distance: ``"single"``, ``"average"`` or ``"complete"``."""
        return tree_of_distance(self.distance(rows), method)

    def point_estimate(self, loss: str = "vi") -> PointEstimate:
        """Partition with the least expected loss, ``"vi"`` or ``"binder"``, with its credible ball."""
        return point_estimate(cast("Trace", self), loss, sources=("draws", "similarity"))

    def merges(self, loss: str = "vi") -> list[MergeLoss]:
        """Merge the clusters of the point estimate down to one, each time with the least expected loss."""
        expected = ExpectedLoss(Draws.of(self.labels), loss)
        present = self.point_estimate(loss).labels
        rows = [MergeLoss(present, expected.of(present))]
        while present.max() > 0:
            pairs = combinations(range(int(present.max()) + 1), 2)
            merged = [canonical_labels(np.where(present == b, a, present)) for a, b in pairs]
            losses = [expected.of(labels) for labels in merged]
            best = int(np.argmin(losses))
            present = merged[best]
            rows.append(MergeLoss(present, losses[best]))
        return rows

    def diagnostics(self) -> Diagnostics:
        """R-hat and effective sample sizes of the number of clusters and the size of the largest."""
        largest = np.array([np.bincount(row).max() for row in self.labels])
        by_chain = {
            "n_clusters": self.n_clusters.reshape(self.n_chains, -1).astype(np.float64),
            "largest_cluster": largest.reshape(self.n_chains, -1).astype(np.float64),
        }
        parts = np.array_split(self.labels, self.n_chains if self.n_chains > 1 else 2)
        return compare(
            by_chain, similarity_gap=largest_gap([similarity(part) for part in parts if len(part)])
        )

    def plot(self, **options: Any) -> "Figure":  # noqa: ANN401 - what `plot_heatmap` takes
        """Draw the similarity as a heatmap, ordered by its tree; see `plots.plot_heatmap`."""
        return plot_heatmap(cast("Trace", self), **options)

    def _rows(self) -> list[list[str]]:
        rows = [["groups", "sizes", "expected loss (vi)"]]
        for labels, loss in self.merges():
            sizes = np.sort(np.bincount(labels))[::-1]
            rows.append([str(sizes.size), ", ".join(map(str, sizes.tolist())), f"{loss:.3f}"])
        return rows

    def _title(self) -> str:
        low, middle, high = np.quantile(self.n_clusters, [0.05, 0.5, 0.95], method="inverted_cdf")
        numbers = self.diagnostics()
        rhat = f"; largest R-hat {numbers.worst_rhat:.3f}" if numbers.rhat else ""
        chains = "1 chain" if self.n_chains == 1 else f"{self.n_chains} chains"
        return (
            f"{len(self)} draws of {chains}, {self.n_objects} objects: {middle} clusters "
            f"(90 % of draws: {low} to {high}){rhat}."
        )

    def __str__(self) -> str:
        return "\n".join([self._title(), *text_table(self._rows())])

    def _repr_html_(self) -> str:
        return f"<div>{self._title()}{html_table(self._rows())}</div>"


def summarize(labels: ArrayLike) -> LabelSummary:
    """Summarise draws of partitions from any sampler.

    Parameters
    ----------
    labels
        Whole numbers, draws × objects, or chains × draws × objects. Which numbers name the clusters does not
        matter, and they need not be the same in two draws.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> found = ew.summarize([[1, 1, 0, 0], [5, 5, 2, 2], [0, 0, 0, 3]])
    >>> found.point_estimate().labels.tolist(), float(found.similarity()[2, 3].round(2))
    ([0, 0, 1, 1], 0.67)
    """
    given = np.asarray(labels)
    if given.dtype.kind not in "iu":
        raise TypeError(f"labels must be whole numbers; got {given.dtype}.")
    if given.ndim not in (2, 3) or 0 in given.shape:
        raise ValueError(
            f"labels must have the shape draws × objects, or chains × draws × objects; got {given.shape}."
        )
    check_pairs_fit(given.shape[-1], 8)
    n_chains = given.shape[0] if given.ndim == 3 else 1
    rows = given.reshape(-1, given.shape[-1])
    # Any whole numbers, also negative or huge ones.
    codes = np.array([canonical_labels(np.unique(row, return_inverse=True)[1]) for row in rows])
    return LabelSummary(read_only(codes.astype(np.intp)), n_chains)
