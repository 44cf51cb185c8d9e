"""One partition to report: the one with the least expected loss.

Candidates are the draws themselves, the cuts of the similarity trees and of the evidence tree, and what
greedy sweeps make of the best of each. Everything is deterministic: the same trace gives the same estimate.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.draws import Draws
from ewens_widgets.analysis.expected_loss import ExpectedLoss
from ewens_widgets.analysis.export import labels_csv
from ewens_widgets.analysis.similarity_tree import METHODS, tree_fits
from ewens_widgets.analysis.tree import Tree
from ewens_widgets.analysis.uncertainty import CredibleBall, credible_ball, membership, object_uncertainty
from ewens_widgets.sampling.archive import write_atomically
from ewens_widgets.sampling.columns import read_only
from ewens_widgets.sampling.trace import Trace

__all__ = ["SOURCES", "Candidate", "PointEstimate", "point_estimate"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

SOURCES = ("draws", "similarity", "evidence")
_MOST_DRAWS = 500  # Distinct draws taken as candidates, evenly spaced along the chain.
_SCREENING_DRAWS = 200  # Draws that candidates are first judged by …
_FINALISTS = 5  # … and how many of each source are then judged by all draws.
_MORE_CUTS = 5  # Trees are cut into up to this many clusters more than any draw has.


class Candidate(NamedTuple):
    """The best partition of one source."""

    source: str
    labels: IntArray
    expected_loss: float


@dataclass(frozen=True, eq=False)
class PointEstimate:
    """A partition with the least expected loss found, and how sure the draws are of it.

    Attributes
    ----------
    labels
        Canonical labels.
    loss
        ``"vi"`` (variation of information, in nats) or ``"binder"`` (share of pairs).
    expected_loss
        Average loss over all draws.
    source
        Which candidate won.
    candidates
        The best of each source, the winner first.
    n_considered
        How many candidates were judged.
    """

    labels: IntArray = field(repr=False)
    loss: str
    expected_loss: float
    source: str
    candidates: tuple[Candidate, ...] = field(repr=False)
    n_considered: int
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
        """For each object, the share of draws that disagree with where it is: 0 is sure, 1 is not at all."""
        return object_uncertainty(self._expected.draws, self.labels)

    @cached_property
    def membership(self) -> FloatArray:
        """Posterior probability of each object for each cluster (n × K); rows sum to 1."""
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


def point_estimate(trace: Trace, loss: str = "vi", sources: Sequence[str] | None = None) -> PointEstimate:
    """Find the partition with the least expected loss over the draws of a trace.

    Parameters
    ----------
    trace
        Draws of a chain.
    loss
        ``"vi"``: variation of information; ``"binder"``: share of pairs on which two partitions disagree.
    sources
        Where candidates come from: ``"draws"``, ``"similarity"`` (cuts of the similarity trees, which need
        memory for all pairs of objects) and ``"evidence"`` (cuts of the evidence tree). By default all, but
        the similarity trees are left out where they would not fit.
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
    considered, best = 0, []
    for source, candidates in _candidates(trace, draws, sources):
        considered += len(candidates)
        best.append(_best_of(source, candidates, screening, expected))
    # Sources often agree on a partition, which is then swept once.
    starts = {start.labels.tobytes(): start for start in reversed(best)}
    improved = []
    for start in reversed(starts.values()):
        labels = expected.improve(start.labels)
        improved.append(Candidate(f"greedy sweeps from {start.source}", labels, expected.of(labels)))
    # Sources come before what sweeps made of them: a sweep that changed nothing does not win.
    ranked = sorted([*best, *improved], key=lambda candidate: round(candidate.expected_loss, 12))
    winner = ranked[0]
    return PointEstimate(
        labels=read_only(winner.labels),
        loss=loss,
        expected_loss=winner.expected_loss,
        source=winner.source,
        candidates=tuple(ranked),
        n_considered=considered + len(improved),
        _expected=expected,
    )


def _candidates(trace: Trace, draws: Draws, sources: Sequence[str]) -> Iterator[tuple[str, list[IntArray]]]:
    """Candidates by source."""
    most = int(trace.n_clusters.max()) + _MORE_CUTS
    if "draws" in sources:
        yield "the draws", [row.astype(np.intp) for row in draws.spread(_MOST_DRAWS).labels]
    if "similarity" in sources:
        for method in METHODS:
            yield f"the similarity tree ({method} linkage)", _cuts(trace.similarity_tree(method), most)
    if "evidence" in sources:
        yield "the evidence tree", _cuts(trace.evidence_tree(), most)


def _cuts(tree: Tree, most: int) -> list[IntArray]:
    return [tree.cut(n_clusters=count) for count in range(1, min(most, tree.n_start) + 1)]


def _best_of(
    source: str, candidates: list[IntArray], screening: ExpectedLoss, expected: ExpectedLoss
) -> Candidate:
    """Judge all candidates by a few draws, and the best of them by all draws."""
    order = np.argsort([screening.of(labels) for labels in candidates], kind="stable")
    finalists = [Candidate(source, candidates[k], expected.of(candidates[k])) for k in order[:_FINALISTS]]
    return min(finalists, key=lambda candidate: candidate.expected_loss)
