"""What the pictures show, in one sentence, and the choice of what their colours stand for.

The sentence is about what is on display and nothing else: the draw, the answer, the tree's cut, or the known
classes. So the number of clusters that is read is the number of clusters that is seen.
"""

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from ipywidgets import HBox, ToggleButtons
from numpy.typing import NDArray

from ewens_widgets.analysis.agreement import adjusted_rand
from ewens_widgets.datasets import Dataset
from ewens_widgets.playback import Frame
from ewens_widgets.playback.frame import number_text
from ewens_widgets.views.base import Silence, assign, look, make, note
from ewens_widgets.views.shared_state import COLOURINGS, SharedState

if TYPE_CHECKING:
    from ewens_widgets.analysis.answer import Answer

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
    shared
        Knows what is on display.
    """

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared
        self._data: Dataset | None = None
        self._frame: Frame | None = None
        self._silence = Silence()
        self.sentence = note("ew-headline")
        self.colouring = make(
            ToggleButtons,
            "ew-colouring",
            options=[(title, kind) for kind, title in COLOURINGS.items()],
            description="colours show",
            tooltips=[_HINTS[kind] for kind in COLOURINGS],
        )
        self.colouring.observe(self._on_chosen, "value")
        super().__init__((self.sentence, self.colouring), **look("ew-headline-row"))
        shared.observe(self.redraw)

    def _on_chosen(self, change: dict[str, Any]) -> None:
        if not self._silence:
            kind = str(change["new"])
            self._shared.post(lambda: self._shared.set_colouring(kind))

    def prepare(self, dataset: Dataset) -> None:
        """Turn to other data."""
        self._data = dataset
        self._frame = None
        known = dataset.labels is not None
        kinds = [kind for kind in COLOURINGS if known or kind != "classes"]
        with self._silence:
            assign(
                self.colouring,
                options=[(COLOURINGS[kind], kind) for kind in kinds],
                value=self._shared.colouring,
                tooltips=[_HINTS[kind] for kind in kinds],
            )

    def show(self, frame: Frame) -> None:
        """Say what is on display."""
        self._frame = frame
        self.redraw()

    def redraw(self) -> None:
        """Say it again, because something else than the chain has changed."""
        if self._frame is None:
            return
        with self._silence:
            assign(self.colouring, value=self._shared.colouring)
        aside = self.aside(self._frame)
        more = f'<div class="ew-aside">{escape(aside)}</div>' if aside else ""
        assign(self.sentence, value=f"{escape(self.text(self._frame))}{more}")

    def text(self, frame: Frame) -> str:
        """The sentence."""
        labels = self._shared.labels(frame)
        if labels is None or self._data is None:
            return ""
        if frame.status.iteration == 0 and self._shared.shown(frame) == "draw":
            return _invitation(self._data, labels)
        sentences: dict[str, Callable[[Frame, NDArray[Any], Dataset], str]] = {
            "draw": self._of_draw,
            "answer": self._of_answer,
            "cut": self._of_cut,
            "classes": self._of_classes,
        }
        return sentences[self._shared.shown(frame)](frame, labels, self._data)

    def aside(self, frame: Frame) -> str:
        """What all draws say so far, beside a single one, and whether the chain has found something."""
        if self._data is None or self._shared.shown(frame) != "draw" or not frame.status.iteration:
            return ""
        reading = frame.answer
        parts = []
        if frame.status.is_running and reading is not None:
            draws = number_text(reading.iteration)
            parts.append(f"all draws up to iteration {draws}: {_groups(reading.answer, self._data)}")
        leap = frame.summary.leap()
        if leap is not None:
            late = "" if frame.summary.is_burning_in or leap <= frame.summary.start else ", after the burn-in"
            parts.append(f"a leap to better draws at iteration {number_text(leap)}{late}")
        text = " · ".join(parts)
        return text[:1].upper() + text[1:]

    def _of_draw(self, frame: Frame, labels: NDArray[Any], data: Dataset) -> str:
        sizes = np.bincount(labels)
        alone = int((sizes == 1).sum())
        singles = "" if not alone else f", {alone} of a single {data.noun}"
        text = _with_agreement(f"This draw: {_plural(sizes.size, 'cluster')}{singles}", labels, data)
        if frame.answer_is_coming and not frame.status.is_running:
            return f"{text} · the answer is on its way"
        problem = frame.answer_problem if self._shared.colouring == "answer" else ""
        return f"{text} · {problem}" if problem else text

    def _of_answer(self, frame: Frame, labels: NDArray[Any], data: Dataset) -> str:
        reading = frame.answer
        if reading is None:
            return ""
        # An answer may be older than the picture: while the chain runs, and when looking back.
        is_old = reading.iteration != frame.status.shown_iteration
        when = f"After {number_text(reading.iteration)} iterations: " if is_old else ""
        likely = "probably" if reading.verdict == "agree" else "so far"
        text = f"{when}{likely} {_groups(reading.answer, data)}. {reading.sentence}"
        index = _agreement(labels, data)
        agreement = "" if index is None else f" Agreement with classes {index:.2f}."
        return f"{text[0].upper()}{text[1:]}{agreement}"

    def _of_cut(self, _: Frame, labels: NDArray[Any], data: Dataset) -> str:
        left = int((labels < 0).sum())
        rest = f", {data.counted(left)} left over" if left else ""
        count = _plural(int(labels.max()) + 1, "cluster")
        return _with_agreement(f"Tree cut into {count}{rest}", labels, data)

    def _of_classes(self, _: Frame, labels: NDArray[Any], data: Dataset) -> str:  # noqa: ARG002 - one signature
        return f"Known classes: {np.unique(labels).size}. The chain does not see them."


def _invitation(data: Dataset, labels: NDArray[Any]) -> str:
    count = int(labels.max()) + 1
    start = "each alone" if count == data.n_objects else f"in {_plural(count, 'cluster')}"
    return (
        f"{data.counted(data.n_objects)} × {data.n_features} features, {start} to begin with. "
        "Press Play: which of them belong together?"
    )


def _with_agreement(text: str, labels: NDArray[Any], data: Dataset) -> str:
    index = _agreement(labels, data)
    return text if index is None else f"{text} · agreement with classes {index:.2f}"


def _agreement(labels: NDArray[Any], data: Dataset) -> float | None:
    if data.labels is None:
        return None
    # Leftovers are clusters of their own.
    full = np.where(labels >= 0, labels, labels.max() + 1 + np.arange(labels.size))
    return adjusted_rand(data.labels, full)


def _groups(answer: "Answer", data: Dataset) -> str:
    """How many groups, and how many objects are sure."""
    if answer.n_clusters == 1:
        return "one group"
    everything = data.counted(data.n_objects)
    sure = data.n_objects - answer.uncertain.size
    share = f"all {everything}" if sure == data.n_objects else f"{sure} of {everything}"
    return f"{answer.n_clusters} groups; {share} are sure"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
