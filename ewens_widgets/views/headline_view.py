"""What the pictures show, in one sentence, and the choice of what their colours stand for.

The sentence is about what is on display and nothing else: the draw, the answer, the tree's cut, or the known
classes. So the number of clusters that is read is the number of clusters that is seen.
"""

from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np
from ipywidgets import HBox, ToggleButtons
from numpy.typing import NDArray

from ewens_widgets.analysis.agreement import adjusted_rand
from ewens_widgets.datasets import Dataset
from ewens_widgets.playback import Frame
from ewens_widgets.playback.frame import number_text
from ewens_widgets.views.base import Silence, assign, note
from ewens_widgets.views.stage import COLOURINGS, Stage

__all__ = ["Headline"]

_HINTS = {
    "draw": "The clusters of the iteration on display",
    "answer": "What all draws together say: which groups can be told apart",
    "cut": "The clusters that the line through the tree leaves",
    "classes": "The classes that came with the data; the chain does not see them",
}


class Headline(HBox):
    """A sentence on what is on display, and buttons that choose it.

    Parameters
    ----------
    stage
        Knows what is on display.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._shape = (0, 0)
        self._classes: NDArray[np.intp] | None = None
        self._frame: Frame | None = None
        self._silence = Silence()
        self.sentence = note("ew-headline")
        self.colouring = ToggleButtons(
            options=[(title, kind) for kind, title in COLOURINGS.items()],
            description="colours show",
            tooltips=[_HINTS[kind] for kind in COLOURINGS],
        )
        self.colouring.add_class("ew-colouring")
        self.colouring.observe(self._on_chosen, "value")
        super().__init__((self.sentence, self.colouring))
        self.add_class("ew-headline-row")
        stage.observe(self.redraw)

    def _on_chosen(self, change: dict[str, Any]) -> None:
        if not self._silence:
            kind = str(change["new"])
            self._stage.post(lambda: self._stage.set_colouring(kind))

    def prepare(self, dataset: Dataset) -> None:
        """Turn to other data."""
        self._shape = dataset.n_objects, dataset.n_features
        self._classes = dataset.labels
        self._frame = None
        known = dataset.labels is not None
        kinds = [kind for kind in COLOURINGS if known or kind != "classes"]
        with self._silence:
            assign(
                self.colouring,
                options=[(COLOURINGS[kind], kind) for kind in kinds],
                value=self._stage.colouring,
                tooltips=[_HINTS[kind] for kind in kinds],
            )

    def show(self, frame: Frame) -> None:
        """Say what is on display."""
        self._frame = frame
        self._stage.follow(frame)
        self.redraw()

    def redraw(self) -> None:
        """Say it again, because something else than the chain has changed."""
        if self._frame is None:
            return
        with self._silence:
            assign(self.colouring, value=self._stage.colouring)
        assign(self.sentence, value=escape(self.text(self._frame)))

    def text(self, frame: Frame) -> str:
        """The sentence."""
        labels = self._stage.labels(frame)
        if labels is None:
            return ""
        if frame.status.iteration == 0 and self._stage.shown(frame) == "draw":
            return self._invitation(labels)
        sentences: dict[str, Callable[[Frame, NDArray[Any]], str]] = {
            "draw": self._of_draw,
            "answer": self._of_answer,
            "cut": self._of_cut,
            "classes": self._of_classes,
        }
        return sentences[self._stage.shown(frame)](frame, labels)

    def _invitation(self, labels: NDArray[Any]) -> str:
        n_objects, n_features = self._shape
        count = int(labels.max()) + 1
        start = "each alone" if count == n_objects else f"in {_plural(count, 'cluster')}"
        return (
            f"{n_objects} objects × {n_features} features, {start} to begin with. Press Play, or the "
            "space bar: which of them belong together?"
        )

    def _of_draw(self, frame: Frame, labels: NDArray[Any]) -> str:
        sizes = np.bincount(labels)
        alone = int((sizes == 1).sum())
        singles = (
            "" if not alone else f", {alone} of them single objects" if alone > 1 else ", one a single object"
        )
        text = self._with_agreement(f"This draw: {_plural(sizes.size, 'cluster')}{singles}", labels)
        live = self._stage.live_answer
        if live.is_busy and not frame.status.is_running:
            return f"{text} · the answer is on its way"
        return f"{text} · {live.reason}" if self._stage.colouring == "answer" and live.reason else text

    def _of_answer(self, frame: Frame, labels: NDArray[Any]) -> str:
        reading = self._stage.live_answer.reading(frame)
        if reading is None:
            return ""
        answer = reading.answer
        count, n_objects = answer.n_clusters, answer.labels.size
        # An answer may be older than the picture: while the chain runs, and when looking back.
        is_old = reading.iteration != frame.status.shown_iteration
        when = f"After {number_text(reading.iteration)} iterations: " if is_old else ""
        groups = "one group" if count == 1 else f"{count} groups"
        sure = n_objects - answer.doubtful.size
        share = f"all {n_objects}" if sure == n_objects else f"{sure} of {n_objects}"
        certainty = "" if count == 1 else f"; {share} objects are sure"
        likely = "probably" if reading.verdict == "agree" else "so far"
        text = f"{when}{likely} {groups}{certainty}. {reading.sentence}"
        index = self._agreement(labels)
        agreement = "" if index is None else f" Agreement with classes {index:.2f}."
        return f"{text[0].upper()}{text[1:]}{agreement}"

    def _of_cut(self, _: Frame, labels: NDArray[Any]) -> str:
        left = int((labels < 0).sum())
        rest = f", {_plural(left, 'object')} left over" if left else ""
        count = _plural(int(labels.max()) + 1, "cluster")
        return self._with_agreement(f"Tree cut into {count}{rest}", labels)

    def _of_classes(self, _: Frame, labels: NDArray[Any]) -> str:
        return f"Known classes: {np.unique(labels).size}. The chain does not see them."

    def _with_agreement(self, text: str, labels: NDArray[Any]) -> str:
        index = self._agreement(labels)
        return text if index is None else f"{text} · agreement with classes {index:.2f}"

    def _agreement(self, labels: NDArray[Any]) -> float | None:
        if self._classes is None:
            return None
        # Leftovers are clusters of their own.
        full = np.where(labels >= 0, labels, labels.max() + 1 + np.arange(labels.size))
        return adjusted_rand(self._classes, full)


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
