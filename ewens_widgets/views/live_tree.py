"""The tree of the draws on display, computed anew at a modest rate while the chain runs."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from ewens_widgets.analysis.evidence_tree import evidence_tree
from ewens_widgets.analysis.trees import Tree
from ewens_widgets.playback import Frame

if TYPE_CHECKING:
    from ewens_widgets.model.posterior import Posterior

__all__ = ["TREE_KINDS", "LiveTree"]

TREE_KINDS = {
    "similarity, single linkage": "single",
    "similarity, average linkage": "average",
    "similarity, complete linkage": "complete",
    "evidence": "evidence",
}
"""Kinds of trees: what the user reads, and the method."""

MOST_CLUSTERS = 60
"""Most clusters that an evidence tree is started from: its cost grows with the cube of their number."""

MOST_OBJECTS = 2500
"""Most objects of a live similarity: its cost grows with the square of their number."""


class LiveTree:
    """Makes and keeps a tree.

    Parameters
    ----------
    method
        ``"single"``, ``"average"``, ``"complete"`` or ``"evidence"``.
    rest
        Least time between two trees while the chain runs, in seconds.
    clock
        Seconds from an arbitrary start.
    """

    def __init__(
        self, method: str = "single", rest: float = 1.0, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.method = method
        self.reason = ""
        self._rest = rest
        self._clock = clock
        self.prepare(None)

    def prepare(self, posterior: "Posterior | None") -> None:
        """Turn to other data or another model."""
        self._posterior = posterior
        self._tree: Tree | None = None
        self._key: tuple[object, ...] = ()
        self._due = 0.0

    def tree(self, frame: Frame) -> Tree | None:
        """Tree up to the iteration on display, or an older one while the chain runs; None: see `reason`."""
        draws = frame.summary.labels
        # The address tells runs of the same length apart: a cleared recorder starts with new arrays.
        key = (self.method, len(draws), draws.ctypes.data, frame.summary.start)
        same_kind = self._key[:1] == key[:1]
        waits = frame.status.is_running and same_kind and self._tree is not None and self._clock() < self._due
        if key != self._key and not waits:
            started = self._clock()
            self._tree = self._make(frame)
            self._key = key
            # A tree that takes long is made rarely: at most a tenth of the time is spent on trees.
            self._due = self._clock() + max(self._rest, 9.0 * (self._clock() - started))
        return self._tree

    def _make(self, frame: Frame) -> Tree | None:
        best = frame.summary.best()
        self.reason = ""
        if self._posterior is None or best is None:
            self.reason = "The tree grows with the first draws."
        elif self.method == "evidence":
            count = int(best[1].max()) + 1
            if count <= MOST_CLUSTERS:
                return evidence_tree(self._posterior, best[1].astype(np.intp))
            self.reason = (
                f"The best draw still has {count} clusters; the evidence tree needs {MOST_CLUSTERS}."
            )
        elif self._posterior.n_objects > MOST_OBJECTS:
            self.reason = f"More than {MOST_OBJECTS} objects: too many for this tree. Choose evidence."
        else:
            return self._similarity_tree(frame)
        return None

    def _similarity_tree(self, frame: Frame) -> Tree:
        distance = 1.0 - frame.summary.similarity().astype(np.float64)
        method = cast("Any", self.method)
        merges = linkage(squareform(distance, checks=False), method=method)
        # Averages are rounded: equal heights may come out a bit apart, and then in the wrong order.
        merges[:, 2] = np.maximum.accumulate(np.maximum(merges[:, 2], 0.0))
        posterior = self._posterior
        return Tree(
            linkage=merges,
            kind="similarity",
            method=self.method,
            n_start=distance.shape[0],
            coordinates=None if posterior is None else posterior.coordinates,
            distance=distance,
        )
