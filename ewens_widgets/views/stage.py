"""What the views of one chain share: colours, selection, tree and cut, and a way onto the event loop.

Handlers of browser messages may run on a thread of their own, while frames are drawn on the thread of the
event loop. So a handler does nothing but post a command here; the command changes the shared state, and the
views that observe it draw their last frame again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.trees import Tree
from ewens_widgets.playback import Frame
from ewens_widgets.playback.mailbox import Mailbox
from ewens_widgets.views.colours import ClusterColours
from ewens_widgets.views.live_tree import LiveTree
from ewens_widgets.views.selection import Selection

if TYPE_CHECKING:
    from ewens_widgets.model.posterior import Posterior

__all__ = ["Cut", "Stage"]

IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class Cut:
    """Where the tree is cut: at a height, or into so many clusters of at least `min_size` members."""

    n_clusters: int | None = None
    height: float | None = None
    min_size: int = 1

    def labels(self, tree: Tree) -> IntArray:
        """Labels that the cut leaves, −1 for leftovers; a number that cannot be reached raises."""
        return tree.cut(
            n_clusters=self.n_clusters, height=self.height, min_size=self.min_size, leftovers="mark"
        )

    def level(self, tree: Tree) -> float:
        """Height at which the line is drawn: for a number of clusters, halfway between two merges."""
        if self.height is not None:
            return self.height
        counts = tree.counts(self.min_size)
        reached = np.flatnonzero(counts == self.n_clusters)
        if not reached.size:
            return 0.0
        merges = int(reached[-1])
        heights = np.concatenate([[0.0], tree.heights, [1.05 * tree.heights[-1]]])
        return float((heights[merges] + heights[merges + 1]) / 2)


class Stage:
    """Shared state of some views, with observers."""

    def __init__(self) -> None:
        self.selection = Selection()
        self.live_tree = LiveTree()
        self.cut = Cut(height=0.5)
        self.shows_cut = False
        self.cut_problem = ""
        self.burn_in = 0
        self._colours = ClusterColours()
        self._observers: list[Callable[[], None]] = []
        self._mailbox = Mailbox(after=lambda: None)
        self.post = self._mailbox.post
        self.selection.observe(self.changed)
        self._forget()

    def _forget(self) -> None:
        self._labels: NDArray[Any] | None = None
        self._slots: IntArray = np.empty(0, dtype=np.intp)
        self._cut_of: tuple[Tree, Cut] | None = None
        self._cut_labels: IntArray | None = None

    def prepare(self, posterior: "Posterior") -> None:
        """Turn to other data or another model: what was selected and coloured has no meaning there."""
        self.live_tree.prepare(posterior)
        self._colours.clear()
        self._forget()
        self.selection.clear()

    def observe(self, observer: Callable[[], None]) -> None:
        """Have a function called when the views must be drawn again."""
        self._observers.append(observer)

    def changed(self) -> None:
        """Have the views drawn again."""
        for observer in tuple(self._observers):
            observer()

    def set_cut(self, cut: Cut, *, show: bool = True) -> None:
        """Cut the tree elsewhere, and colour the objects by it."""
        if (cut, show) != (self.cut, self.shows_cut):
            self.cut, self.shows_cut = cut, show
            self.changed()

    def cut_labels(self, frame: Frame) -> IntArray | None:
        """Labels of the tree's cut; None without a tree, or where it cannot be cut so (see `cut_problem`)."""
        tree = self.live_tree.tree(frame)
        if tree is None:
            self.cut_problem = self.live_tree.reason
            return None
        if self._cut_of is None or self._cut_of[0] is not tree or self._cut_of[1] != self.cut:
            self._cut_of = tree, self.cut
            self.cut_problem = ""
            try:
                self._cut_labels = self.cut.labels(tree)
            except ValueError as error:
                self.cut_problem = str(error)
                self._cut_labels = None
        return self._cut_labels

    def labels(self, frame: Frame) -> NDArray[Any] | None:
        """Labels on display: those of the iteration, or those of the cut. None before the first iteration."""
        cut = self.cut_labels(frame) if self.shows_cut else None
        if cut is not None:
            return cut
        return None if frame.event is None else frame.event.labels

    def slots(self, frame: Frame) -> IntArray | None:
        """Colour slots of the labels on display, the same for all views of a frame."""
        labels = self.labels(frame)
        if labels is None:
            return None
        if self._labels is None or not np.array_equal(labels, self._labels):
            self._labels = labels
            self._slots = self._colours.assign(labels)
        return self._slots
