r"""The point estimate: the partition with the least expected loss over the draws, and its uncertainty.

Candidates are the draws themselves, the cuts of the similarity trees and of the evidence tree, and the best
of each improved by greedy steps. Everything is deterministic: the same trace gives the same estimate.

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
all draws, not a bound such as that of Wade & Ghahramani (2018), Bayesian Analysis 13(2): `Draws` arranges the
clusters of all draws so that their overlaps with a partition are counted at once.

Moving one object between clusters changes, in each draw, only the overlaps of the one cell that holds the
object, so a step costs (draws) × (clusters) look-ups in a table of :math:`g(x+1) - g(x)`.

Uncertainty is reported for each object (the share of draws that disagree with its cluster, and its membership
probabilities) and as a whole, by a credible ball (Wade & Ghahramani 2018).
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.export import labels_csv
from ewens_widgets.analysis.findings import html_table
from ewens_widgets.analysis.trees import METHODS, Tree, tree_fits
from ewens_widgets.arguments import check_fits
from ewens_widgets.files import write_atomically
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.draws import read_only
from ewens_widgets.sampling.trace import Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

LOSSES = ("vi", "binder")
SOURCES = ("draws", "similarity", "evidence")
_MOST_SWEEPS = 100
_TOLERANCE = 1e-10  # A step must lower the (unscaled) loss by more than rounding does.
_MOST_DRAWS = 500  # distinct draws that are candidates, evenly spaced along the chain
_SCREENING_DRAWS = 200  # Candidates are first compared by this number of draws …
_FINALISTS = 5  # … and then this number of each source by all draws.
_MORE_CUTS = 5  # Trees are cut into up to this many clusters more than any draw has.
_SAME_DISTANCE = 1e-9  # Distances that differ by rounding alone are ties.
_UNCERTAIN = 0.2  # Share of draws that disagree with the cluster of an uncertain object.


@dataclass(frozen=True, eq=False)
class Draws:
    """Distinct draws with their weights; the clusters of all of them are numbered through as *cells*.

    `labels` are canonical (U × n), in order of first appearance, and `weights` the shares of all draws that
    they stand for; `place` gives the distinct draw of each draw of the chain. `cells` gives the cell of each
    distinct draw and object (U × n), `draw_of_cell` the distinct draw of a cell, and `cell_sizes` its number
    of objects.
    """

    labels: NDArray[np.integer]
    weights: FloatArray
    place: IntArray
    cells: IntArray
    draw_of_cell: IntArray
    cell_sizes: IntArray

    @classmethod
    def of(cls, labels: NDArray[np.integer]) -> "Draws":
        """Arrange the labels of a chain, one row per draw."""
        _, first, inverse, counts = np.unique(
            labels, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        distinct = labels[first[order]]
        widths = distinct.max(axis=1).astype(np.intp) + 1
        starts = np.cumsum(widths) - widths
        cells = distinct + starts[:, None]
        return cls(
            labels=read_only(distinct),
            weights=counts[order] / len(labels),
            place=np.argsort(order)[inverse.ravel()],
            cells=cells,
            draw_of_cell=np.repeat(np.arange(order.size), widths),
            cell_sizes=np.bincount(cells.ravel()),
        )

    def __len__(self) -> int:
        return len(self.labels)

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
    """Expected loss over draws: ``"vi"`` or ``"binder"``."""

    def __init__(self, draws: Draws, loss: str) -> None:
        if loss not in LOSSES:
            raise ValueError(f'loss must be "vi" (variation of information) or "binder"; got {loss!r}.')
        n_objects = draws.labels.shape[1]
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
            # The loss of each cluster for the object, after it is removed from its own.
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
                # The empty column, that of a new cluster, is used: add another.
                overlaps = np.pad(overlaps, ((0, 0), (0, 1)))
                steps = np.pad(steps, ((0, 0), (0, 1)), constant_values=self._step[0])
                sizes = np.append(sizes, 0)
        return canonical_labels(result)

    def _merge(self, labels: IntArray) -> IntArray:
        """Merge the best pair of clusters while that lowers the expected loss."""
        g, result, weights = self._g, labels.copy(), self.draws.weights[self.draws.draw_of_cell]

        def gain(first: IntArray | np.intp, second: IntArray) -> FloatArray:
            return np.asarray(g[first + second] - g[first] - g[second])

        while result.max() > 0:
            overlaps = self.draws.overlaps(result)
            sizes = np.bincount(result)
            change = np.full((sizes.size, sizes.size), np.inf)
            for left in range(sizes.size - 1):
                others = slice(left + 1, None)
                own = gain(sizes[left], sizes[others])
                # Cells without objects of this cluster gain nothing by the merge.
                cells = np.flatnonzero(overlaps[:, left])
                shared = weights[cells] @ gain(overlaps[cells, left, None], overlaps[cells, others])
                change[left, others] = own - 2.0 * shared
            kept, gone = np.unravel_index(int(np.argmin(change)), change.shape)
            if change[kept, gone] >= -_TOLERANCE:
                break
            result = canonical_labels(np.where(result == gone, kept, result))
        return result


@dataclass(frozen=True, eq=False)
class CredibleBall:
    """Smallest ball around an estimate that holds a share `level` of the posterior (Wade & Ghahramani 2018).

    Its `radius` is in the loss of the estimate, and it holds the `share` of the draws. Its bounds are other
    partitions in the ball: with the fewest clusters (`upper_vertical`), with the most (`lower_vertical`), and
    with any number (`horizontal`), each time the most distant from the estimate. They are arrays with one row
    per partition, since several may be equally extreme.
    """

    level: float
    radius: float
    share: float
    upper_vertical: IntArray = field(repr=False)
    lower_vertical: IntArray = field(repr=False)
    horizontal: IntArray = field(repr=False)


@dataclass(frozen=True, eq=False)
class PointEstimate:
    """The partition with the least expected loss found, and its uncertainty.

    Attributes
    ----------
    labels
        Canonical labels.
    loss
        ``"vi"`` (variation of information, in nats) or ``"binder"`` (share of pairs).
    expected_loss
        Average loss over all draws.
    source
        Where the partition came from.
    """

    labels: IntArray = field(repr=False)
    loss: str
    expected_loss: float
    source: str
    _expected: ExpectedLoss = field(repr=False)

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.labels.max()) + 1

    @cached_property
    def distances(self) -> FloatArray:
        """Loss between the estimate and each draw of the chain."""
        return self._expected.distances(self.labels)[self._expected.draws.place]

    @cached_property
    def uncertainty(self) -> FloatArray:
        """For each object, the share of draws that disagree with its cluster: 0 is certain."""
        return object_uncertainty(self._expected.draws, self.labels)

    @cached_property
    def membership(self) -> FloatArray:
        """Membership probability of each object for each cluster (n × K); rows sum to 1."""
        return membership(self._expected.draws, self.labels)

    def credible_ball(self, level: float = 0.95) -> CredibleBall:
        """Smallest ball around the estimate that holds a share `level` of the draws."""
        return credible_ball(self._expected.draws, self._expected.distances(self.labels), level)

    def to_csv(self, path: str | os.PathLike[str], names: Sequence[str] | None = None) -> None:
        """Write a table with the columns object, cluster and uncertainty."""
        text = labels_csv(self.labels, names=names, columns={"uncertainty": self.uncertainty})
        write_atomically(path, text.encode())

    def __repr__(self) -> str:
        return (
            f"PointEstimate({self.n_clusters} clusters of sizes {np.bincount(self.labels).tolist()}, "
            f"expected {self.loss} loss {self.expected_loss:.4f}, from {self.source})"
        )

    def _repr_html_(self) -> str:
        sizes = np.bincount(self.labels)
        uncertain = np.bincount(self.labels[self.uncertainty >= _UNCERTAIN], minlength=sizes.size)
        rows = [(str(label), str(size), str(uncertain[label])) for label, size in enumerate(sizes)]
        table = html_table([("cluster", "objects", "uncertain"), *rows])
        clusters = "1 cluster" if self.n_clusters == 1 else f"{self.n_clusters} clusters"
        return (
            f"<div><strong>Point estimate</strong>: {clusters}, expected {self.loss} loss "
            f"{self.expected_loss:.4f}, from {escape(self.source)}.{table}"
            f"<p>Uncertain: at least {_UNCERTAIN:.0%} of the draws disagree with the object's cluster.</p>"
            "</div>"
        )


def point_estimate(trace: Trace, loss: str = "vi", sources: Sequence[str] | None = None) -> PointEstimate:
    """Find the partition with the least expected loss over the draws of a trace.

    Candidates come from `sources`: ``"draws"``, ``"similarity"`` (cuts of the similarity trees) and
    ``"evidence"`` (cuts of the evidence tree). The default is all of them, without the similarity
    trees if the pairs of objects do not fit in memory.
    """
    if not len(trace):
        raise ValueError("the trace holds no draws; sample some, or drop fewer as burn-in.")
    if sources is None:
        sources = SOURCES if tree_fits(trace.n_objects) else ("draws", "evidence")
    unknown = sorted(set(sources) - set(SOURCES))
    if unknown or not sources:
        raise ValueError(f"sources must be some of {', '.join(SOURCES)}; got {list(sources)}.")
    draws = Draws.of(trace.labels)
    expected = ExpectedLoss(draws, loss)
    screening = ExpectedLoss(draws.spread(_SCREENING_DRAWS), loss)
    best: list[tuple[float, str, IntArray]] = []
    for source, found in _candidates(trace, draws, sources).items():
        # All candidates are compared by a few draws, and the best of them by all draws.
        order = np.argsort([screening.of(labels) for labels in found], kind="stable")
        finalists = [(expected.of(found[k]), source, found[k]) for k in order[:_FINALISTS]]
        best.append(min(finalists, key=lambda finalist: finalist[0]))
    # Sources often have the same best partition, which is then improved once.
    starts = {labels.tobytes(): (source, labels) for _, source, labels in reversed(best)}
    for source, start in reversed(starts.values()):
        labels = expected.improve(start)
        best.append((expected.of(labels), f"greedy sweeps from {source}", labels))
    # A source comes before its improved partition if their losses are equal.
    least, source, labels = min(best, key=lambda one: round(one[0], 12))
    return PointEstimate(read_only(labels), loss, least, source, expected)


def credible_ball(draws: Draws, distances: FloatArray, level: float = 0.95) -> CredibleBall:
    """Find the ball, given the distance of each distinct draw from the estimate."""
    if not 0.0 < level <= 1.0:
        raise ValueError(f"level must be above 0 and at most 1, e.g. 0.95; got {level!r}.")
    order = np.argsort(distances, kind="stable")
    shares = np.cumsum(draws.weights[order])
    radius = float(distances[order[min(int(np.searchsorted(shares, level - 1e-12)), order.size - 1)]])
    inside = distances <= radius + _SAME_DISTANCE
    counts = draws.labels.max(axis=1)

    def farthest(among: NDArray[np.bool_]) -> IntArray:
        extreme = among & (distances >= distances[among].max() - _SAME_DISTANCE)
        return np.asarray(draws.labels[extreme], dtype=np.intp)

    return CredibleBall(
        level=level,
        radius=radius,
        share=float(draws.weights[inside].sum()),
        upper_vertical=farthest(inside & (counts == counts[inside].min())),
        lower_vertical=farthest(inside & (counts == counts[inside].max())),
        horizontal=farthest(inside),
    )


def object_uncertainty(draws: Draws, labels: IntArray) -> FloatArray:
    """Share of draws that disagree with the cluster of each object.

    For an object with companions: the average share of draws that separate it from them. For a singleton: the
    share of draws in which it has companions.
    """
    own = draws.overlaps(labels)[draws.cells, labels[None, :]] - 1
    companions = np.bincount(labels)[labels] - 1
    together = draws.weights @ own / np.maximum(companions, 1)
    alone = draws.weights @ (draws.cell_sizes[draws.cells] == 1)
    return np.clip(1.0 - np.where(companions > 0, together, alone), 0.0, 1.0)


def membership(draws: Draws, labels: IntArray) -> FloatArray:
    """Probability of each object for each cluster of an estimate (n × K); rows sum to 1.

    Each cluster of a draw is matched with the cluster of the estimate that it shares most objects with. The
    probability is the share of draws in which the object's cluster is matched with cluster k.
    """
    overlaps = draws.overlaps(labels)
    stands_for = np.argmax(overlaps, axis=1)
    n_objects, n_clusters = labels.size, overlaps.shape[1]
    entries = np.arange(n_objects) * n_clusters + stands_for[draws.cells]
    weights = np.repeat(draws.weights, n_objects)
    totals = np.bincount(entries.ravel(), weights=weights, minlength=n_objects * n_clusters)
    return totals.reshape(n_objects, n_clusters).astype(np.float64)


def _candidates(trace: Trace, draws: Draws, sources: Sequence[str]) -> dict[str, list[IntArray]]:
    """Candidates by source."""
    most = int(trace.n_clusters.max()) + _MORE_CUTS

    def cuts(tree: Tree) -> list[IntArray]:
        return [tree.cut(n_clusters=count) for count in range(1, min(most, tree.n_start) + 1)]

    candidates: dict[str, list[IntArray]] = {}
    if "draws" in sources:
        candidates["the draws"] = [row.astype(np.intp) for row in draws.spread(_MOST_DRAWS).labels]
    if "similarity" in sources:
        for method in METHODS:
            tree = trace.similarity_tree(method)
            candidates[f"the similarity tree ({method} linkage)"] = cuts(tree)
    if "evidence" in sources:
        candidates["the evidence tree"] = cuts(trace.evidence_tree())
    return candidates
