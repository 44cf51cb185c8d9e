"""What the views of one chain share: colours, selection, tree and cut, and a way onto the event loop.

Handlers of browser messages may run on a thread of their own, while frames are drawn on the thread of the
event loop. So a handler does nothing but post a command here; the command changes the shared state, and the
views that observe it draw their last frame again.

The tree is that of the draws on display. While the chain runs it is computed again at a low rate: at most a
tenth of the time is spent on trees.

Frames carry the answer of all draws (`playback/frame.py`). When a finished run has one, the colours turn to
it by themselves, and back to the draws when the chain goes on. For this each frame is shown to the shared
state before the views.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.analysis.evidence_tree import evidence_of, evidence_tree
from ewens_widgets.analysis.plots.palette import ALONE, ClusterColours
from ewens_widgets.analysis.trees import Tree, average_order, tree_of_distance
from ewens_widgets.playback import Frame
from ewens_widgets.playback.loop import Mailbox

if TYPE_CHECKING:
    from ewens_widgets.model.posterior import Posterior

__all__ = ["COLOURINGS", "MOST_OBJECTS", "TREE_KINDS", "Cut", "LiveTree", "Selection", "SharedState"]

IntArray = NDArray[np.intp]

TREE_KINDS = {
    "similarity, single linkage": "single",
    "similarity, average linkage": "average",
    "similarity, complete linkage": "complete",
    "evidence": "evidence",
}
"""Kinds of trees: what the user reads, and the method."""

COLOURINGS = {"draw": "this draw", "answer": "answer", "cut": "tree cut", "classes": "known classes"}
"""What the colours can show: kinds, and what the user reads."""

_FEW = 4  # groups with the colours that differ most

MOST_CLUSTERS = 60
"""Most clusters that an evidence tree is started from: its cost grows with the cube of their number."""

MOST_OBJECTS = 2500
"""Most objects of a live similarity: its cost grows with the square of their number."""


@dataclass(frozen=True)
class Cut:
    """Where the tree is cut: at a height, or into so many clusters of at least `min_size` members."""

    n_clusters: int | None = None
    height: float | None = None
    min_size: int = 1

    def labels(self, tree: Tree) -> IntArray:
        """Labels of the cut, −1 for unassigned objects; an impossible number raises ValueError."""
        return tree.cut(
            n_clusters=self.n_clusters, height=self.height, min_size=self.min_size, small_clusters="mark"
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


HALF = 0.5
"""Where the tree is cut at first: objects that are together in half of the draws stay together."""


class SharedState:
    """Shared state of some views, with observers."""

    def __init__(self) -> None:
        self.selection = Selection()
        self.pointed = Selection()  # what is under the mouse in another picture
        self.live_tree = LiveTree()
        self.cut = Cut(height=HALF)
        self.colouring = "draw"
        self.classes: NDArray[Any] | None = None
        self.cut_problem = ""
        self._turned_at: int | None = None  # iteration of the end at which colours turned to the answer
        self._has_turned = False  # by itself, and so it turns back by itself
        self.burn_in = 0
        self._cluster_colours = ClusterColours()
        self._observers: list[Callable[[], None]] = []
        self.post = Mailbox().post
        # Brings a new frame, where another answer may have to be worked out; without a player, draws the
        # last.
        self.renew: Callable[[], None] = self.changed
        # The views observe this state alone, so that a new selection draws each of them once.
        self.selection.observe(self.changed)
        self._forget()

    def _forget(self) -> None:
        self._labels: NDArray[Any] | None = None
        self._colours: IntArray = np.empty(0, dtype=np.intp)
        self._cut_of: tuple[Tree, Cut] | None = None
        self._cut_labels: IntArray | None = None

    def prepare(self, posterior: "Posterior", classes: NDArray[Any] | None = None) -> None:
        """Turn to other data or another model: what was selected and coloured has no meaning there.

        Parameters
        ----------
        posterior
            The data and their model.
        classes
            Known classes of the objects, if there are any.
        """
        self.classes = classes
        if self.colouring == "classes" and classes is None:
            self.colouring = "draw"
        self.live_tree.prepare(posterior)
        self._turned_at = None
        if self._has_turned:
            self._turn("draw")
        self._cluster_colours.clear()
        self._forget()
        self.pointed.clear()
        self.selection.clear()

    def observe(self, observer: Callable[[], None]) -> None:
        """Have a function called when the views must be drawn again."""
        self._observers.append(observer)

    def unobserve(self, observer: Callable[[], None]) -> None:
        """Stop calling a function; one that is not known is ignored."""
        if observer in self._observers:
            self._observers.remove(observer)

    def changed(self) -> None:
        """Have the views drawn again."""
        for observer in tuple(self._observers):
            observer()

    @property
    def shows_cut(self) -> bool:
        """Whether the colours stand for the tree's cut."""
        return self.colouring == "cut"

    def wants_answer(self) -> bool:
        """Whether the user chose to see the answer."""
        return self.colouring == "answer" and not self._has_turned

    def set_colouring(self, kind: str) -> None:
        """Have the colours stand for something else; one of `COLOURINGS`."""
        if kind not in COLOURINGS:
            raise ValueError(f"colours can show {', '.join(COLOURINGS)}; got {kind!r}")
        if kind != self.colouring:
            self.colouring = kind
            self._has_turned = False
            if kind == "answer":
                self.renew()
            else:
                self.changed()

    def show(self, frame: Frame) -> None:
        """Turn the colours to the answer at the end of a run, and back; the views follow."""
        iteration, is_end = frame.status.iteration, frame.status.is_end
        if not is_end and self._has_turned:
            self._turned_at = None
            self._turn("draw")
        is_new = iteration != self._turned_at
        if is_end and is_new and self.colouring == "draw" and frame.answer_is_complete:
            self._turned_at = iteration
            self._turn("answer", by_itself=True)

    def _turn(self, kind: str, *, by_itself: bool = False) -> None:
        self.colouring, self._has_turned = kind, by_itself

    @property
    def numbers(self) -> tuple[int, ...]:
        """Number of each object's colour on display; none before the first picture."""
        return () if self._labels is None else tuple(self._colours.tolist())

    def restore(
        self, colouring: str, method: str, cut: Cut, numbers: tuple[int, ...] = (), iteration: int = 0
    ) -> None:
        """Show what was shown once; `changed` then draws it.

        Parameters
        ----------
        colouring, method, cut
            What the colours stand for, the kind of tree, and its cut.
        numbers
            Numbers of the colours that the objects had.
        iteration
            Where the chain is: colours stay as they are until it has gone on.
        """
        self.colouring = colouring if colouring != "classes" or self.classes is not None else "draw"
        self.live_tree.method = method
        self.cut = cut
        self._turned_at, self._has_turned = iteration, False
        self._forget()
        self._cluster_colours.remember(np.array(numbers, dtype=np.intp))

    def set_cut(self, cut: Cut, *, show: bool = True) -> None:
        """Cut the tree elsewhere, and colour the objects by it."""
        kind = "cut" if show else "draw" if self.shows_cut else self.colouring
        if (cut, kind) != (self.cut, self.colouring):
            self.cut = cut
            self._turn(kind, by_itself=self._has_turned and kind == self.colouring)
            self.changed()

    def set_tree(self, method: str, cut: Cut) -> None:
        """Show a tree of another kind, with this cut."""
        self.live_tree.method, self.cut = method, cut
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

    def order(self, frame: Frame, n_objects: int) -> IntArray:
        """The objects in the order of the tree's leaves; in their own where there is no tree."""
        tree = self.live_tree.tree(frame)
        return np.arange(n_objects) if tree is None else tree.leaves_order

    def grouped_order(self, frame: Frame, n_objects: int) -> tuple[IntArray, IntArray]:
        """The objects in the order of the heatmap, and the ends of its groups.

        While the answer is on display its groups come one after the other, each in the order of the leaves.
        """
        order = self.order(frame, n_objects)
        if self.shown(frame) != "answer" or frame.answer is None:
            return order, np.empty(0, dtype=np.intp)
        groups = frame.answer.answer.labels[order]
        places = np.bincount(groups, weights=np.arange(n_objects)) / np.bincount(groups)
        ranks = np.argsort(np.argsort(places, kind="stable"), kind="stable")[groups]
        by_group = np.argsort(ranks, kind="stable")
        return order[by_group], np.cumsum(np.bincount(ranks))

    def labels(self, frame: Frame) -> NDArray[Any] | None:
        """Labels on display: of the iteration, answer, cut, or known. None before the first iteration."""
        shown = self.shown(frame)
        if shown == "answer":
            return None if frame.answer is None else frame.answer.answer.labels
        if shown == "cut":
            return self.cut_labels(frame)
        if shown == "classes":
            return self.classes
        return None if frame.event is None else frame.event.labels

    def shown(self, frame: Frame) -> str:
        """What the colours stand for: what was chosen, or the draw where that is not to be had."""
        if self.colouring == "cut" and self.cut_labels(frame) is None:
            return "draw"
        if self.colouring == "classes" and self.classes is None:
            return "draw"
        if self.colouring == "answer" and frame.answer is None:
            return "draw"
        return self.colouring

    def colours(self, frame: Frame) -> IntArray | None:
        """Number of each object's colour by the labels on display, the same for all views of a frame."""
        labels = self.labels(frame)
        if labels is None:
            return None
        # Matching clusters costs more than comparing labels, and several views ask for the same frame.
        if self._labels is None or not np.array_equal(labels, self._labels):
            self._labels = labels
            self._colours = self._cluster_colours.assign(labels)
            if self.shown(frame) == "answer":
                self._colours = _first_colours(self._colours)
                self._cluster_colours.remember(self._colours)
        return self._colours


def _first_colours(numbers: IntArray) -> IntArray:
    """Give few groups the colours that differ most, the first ones, and otherwise those that they had."""
    values = np.unique(numbers[numbers != ALONE])
    few = max(values.size, _FEW)
    free = iter(sorted(set(range(few)) - set(values.tolist())))
    changed = numbers.copy()
    for value in values[values >= few].tolist():
        changed[numbers == value] = next(free)
    changed.setflags(write=False)
    return changed


class Selection:
    """A set of objects with observers."""

    def __init__(self) -> None:
        self._objects: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self.source: object = None
        self._observers: list[Callable[[], None]] = []

    @property
    def objects(self) -> NDArray[np.intp]:
        """Indices of the selected objects in increasing order; read-only, empty if none is selected."""
        return self._objects

    def __len__(self) -> int:
        return self._objects.size

    def set(self, objects: ArrayLike, source: object = None) -> None:
        """Select these objects and no others, in the name of `source`; tell the observers of a change."""
        chosen = np.unique(np.asarray(objects, dtype=np.intp))
        # The same objects from another source matter: the brush that had selected them must vanish.
        if np.array_equal(chosen, self._objects) and source is self.source:
            return
        self.source = source
        chosen.setflags(write=False)
        self._objects = chosen
        for observer in tuple(self._observers):
            observer()

    def clear(self) -> None:
        """Select nothing."""
        self.set(())

    def observe(self, observer: Callable[[], None]) -> None:
        """Have a function called after each change."""
        self._observers.append(observer)


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
            # One that takes long is made rarely.
            self._due = self._clock() + max(self._rest, 9.0 * (self._clock() - started))
        return self._tree

    def _make(self, frame: Frame) -> Tree | None:
        best = frame.summary.best()
        self.reason = ""
        if self._posterior is None or best is None:
            self.reason = "There are no draws yet."
        elif self.method == "evidence":
            count = int(best[1].max()) + 1
            if count <= MOST_CLUSTERS:
                summary = frame.summary
                evidence = evidence_of(self._posterior, summary, summary.start)
                tree = evidence_tree(self._posterior, best[1].astype(np.intp), evidence)
                if self._posterior.n_objects > MOST_OBJECTS:
                    return tree
                # Otherwise the heatmap, in the order of the leaves, would tear its blocks apart.
                return tree.arranged(average_order(frame.summary.similarity()))
            self.reason = f"The best draw has {count} clusters; an evidence tree takes up to {MOST_CLUSTERS}."
        elif self._posterior.n_objects > MOST_OBJECTS:
            self.reason = (
                f"The similarity tree takes at most {MOST_OBJECTS} objects. Choose the evidence tree."
            )
        else:
            distance = 1.0 - frame.summary.similarity().astype(np.float64)
            return tree_of_distance(distance, self.method, self._posterior.coordinates)
        return None
