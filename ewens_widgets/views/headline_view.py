"""What the pictures show, in one sentence, and the choice of what their colours stand for.

The sentence is about what is on display and nothing else: the draw, the tree's cut, or the known classes. So
the number of clusters that is read is the number of clusters that is seen.
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
from ewens_widgets.views.base import Silence, assign, note
from ewens_widgets.views.stage import COLOURINGS, Stage

__all__ = ["Headline"]


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
            tooltips=[],
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
        options = [(title, kind) for kind, title in COLOURINGS.items() if known or kind != "classes"]
        with self._silence:
            assign(self.colouring, options=options, value=self._stage.colouring)

    def show(self, frame: Frame) -> None:
        """Say what is on display."""
        self._frame = frame
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
        sentences: dict[str, Callable[[NDArray[Any]], str]] = {
            "draw": self._of_draw,
            "cut": self._of_cut,
            "classes": self._of_classes,
        }
        return sentences[self._stage.shown(frame)](labels)

    def _invitation(self, labels: NDArray[Any]) -> str:
        n_objects, n_features = self._shape
        count = int(labels.max()) + 1
        start = "each alone" if count == n_objects else f"in {_plural(count, 'cluster')}"
        return (
            f"{n_objects} objects × {n_features} features, {start} to begin with. Press Play, or the "
            "space bar: which of them belong together?"
        )

    def _of_draw(self, labels: NDArray[Any]) -> str:
        sizes = np.bincount(labels)
        alone = int((sizes == 1).sum())
        singles = (
            "" if not alone else f", {alone} of them single objects" if alone > 1 else ", one a single object"
        )
        return f"This draw: {_plural(sizes.size, 'cluster')}{singles}{self._agreement(labels)}"

    def _of_cut(self, labels: NDArray[Any]) -> str:
        left = int((labels < 0).sum())
        rest = f", {_plural(left, 'object')} left over" if left else ""
        return f"Tree cut into {_plural(int(labels.max()) + 1, 'cluster')}{rest}{self._agreement(labels)}"

    def _of_classes(self, labels: NDArray[Any]) -> str:
        return f"Known classes: {np.unique(labels).size}. The chain does not see them."

    def _agreement(self, labels: NDArray[Any]) -> str:
        if self._classes is None:
            return ""
        # Leftovers are clusters of their own.
        full = np.where(labels >= 0, labels, labels.max() + 1 + np.arange(labels.size))
        return f" · agreement with classes {adjusted_rand(self._classes, full):.2f}"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
