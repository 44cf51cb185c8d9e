"""One sentence on what the pictures show, and buttons that choose what their colours mean.

The sentence describes the display alone: the draw, the answer, the tree's cut, or the known classes. So its
number of clusters is the number of colours in the pictures. The answer has the same words wherever it is
shown or exported: `answer_line`. It is praised only where the verdict on the chain is "agree".
"""

from html import escape
from typing import Any

import numpy as np
from ipywidgets import HBox, ToggleButtons
from numpy.typing import NDArray

from ewens_widgets.analysis.agreement import adjusted_rand
from ewens_widgets.datasets import Dataset
from ewens_widgets.playback import Frame
from ewens_widgets.playback.frame import ChainAnswer, number_text
from ewens_widgets.views.base import Silence, assign, look, make, note
from ewens_widgets.views.shared_state import COLOURINGS, SharedState

NOT_YET = "Not reliable yet"
"""How the answer begins while the verdict on the chain is not that its halves agree."""

_HINTS = {
    "draw": "Clusters of the iteration on display",
    "answer": "Groups that the draws after the burn-in separate",
    "cut": "Clusters below the cut line of the tree",
    "classes": "Classes that came with the data; the sampler does not use them",
}


class Headline(HBox):
    """A sentence on what is on display, and buttons that choose it.

    Parameters
    ----------
    shared
        State of the views; it defines what is on display.
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
        self._silence.commands(shared.post, {self.colouring: self._choose})
        super().__init__((self.sentence, self.colouring), **look("ew-headline-row"))
        shared.observe(self.redraw)

    def _choose(self) -> None:
        self._shared.set_colouring(str(self.colouring.value))

    def prepare(self, dataset: Dataset) -> None:
        """Change to other data."""
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
        """Describe a frame."""
        self._frame = frame
        self.redraw()

    def redraw(self) -> None:
        """Write the sentence again after a change of the selection, the cut or the colours."""
        if self._frame is None:
            return
        with self._silence:
            assign(self.colouring, value=self._shared.colouring)
        aside, reading = self.aside(self._frame), self._frame.answer
        is_answer = self._shared.shown(self._frame) == "answer"
        warns = is_answer and reading is not None and reading.verdict != "agree"
        kind = "ew-aside ew-problem" if warns else "ew-aside"
        more = f'<div class="{kind}">{escape(aside)}</div>' if aside else ""
        assign(self.sentence, value=f"{escape(self.text(self._frame))}{more}")

    def text(self, frame: Frame) -> str:
        """The sentence."""
        labels = self._shared.labels(frame)
        if labels is None or self._data is None:
            return ""
        if frame.status.iteration == 0 and self._shared.shown(frame) == "draw":
            if self._shared.colouring == "answer":
                return "There is no answer before the first draws. Press Play to start the chain."
            return _invitation(self._data, labels)
        match self._shared.shown(frame):
            case "answer":
                return self._of_answer(frame, self._data)
            case "cut":
                left, count = int((labels < 0).sum()), _plural(int(labels.max()) + 1, "cluster")
                rest = f", {self._data.counted(left)} unassigned" if left else ""
                text = f"Tree cut into {count}{rest} (components of the draws, not groups of the answer)"
                return _with_rand_index(text, labels, self._data)
            case "classes":
                count = _plural(np.unique(labels).size, "known class")
                return f"{count}. The sampler does not use them."
            case _:
                return self._of_draw(frame, labels, self._data)

    def aside(self, frame: Frame) -> str:
        """Below the answer, the verdict on the chain; below a draw, the answer so far and the last jump."""
        shown = self._shared.shown(frame)
        reading = frame.answer
        if self._data is not None and shown == "answer" and reading is not None:
            index = _rand_index(reading.answer.labels, self._data)
            known = "" if index is None else f" Adjusted Rand index with the known classes: {index:z.2f}."
            # The headline has said that before.
            return _sentence(reading.sentence.removeprefix("Both halves of the chain agree: ")) + known
        if self._data is None or shown != "draw" or not frame.status.iteration:
            return ""
        parts = []
        # An answer of the burn-in, or of a small part of the draws, may contradict what is on display.
        least = max(frame.summary.start + 1, frame.status.shown_iteration / 4)
        is_settled = frame.status.is_running and not frame.summary.is_burning_in
        if is_settled and reading is not None and reading.iteration >= least:
            draws = number_text(reading.iteration)
            parts.append(
                f"answer after {draws} iterations: {_groups(reading)}, {_assigned(reading, self._data)}"
            )
        leap = frame.summary.leap()
        if leap is not None:
            late = "" if frame.summary.is_burning_in or leap <= frame.summary.start else ", after the burn-in"
            parts.append(f"the log posterior jumped up at iteration {number_text(leap)}{late}")
        return _sentence(" · ".join(parts))

    def _of_draw(self, frame: Frame, labels: NDArray[Any], data: Dataset) -> str:
        sizes = np.bincount(labels)
        alone = int((sizes == 1).sum())
        singles = f", {alone} of a single {data.noun}" if alone else ""
        text = _with_rand_index(f"This draw: {_plural(sizes.size, 'cluster')}{singles}", labels, data)
        if frame.answer_is_coming and not frame.status.is_running:
            return f"{text} · computing the answer …"
        problem = frame.answer_problem if self._shared.colouring == "answer" else ""
        return f"{text} · {problem}" if problem else text

    def _of_answer(self, frame: Frame, data: Dataset) -> str:
        reading = frame.answer
        if reading is None:
            return ""
        # An answer may be older than the picture: while the chain runs, and when an earlier draw is shown.
        is_old = reading.iteration != frame.status.shown_iteration
        when = f"After {number_text(reading.iteration)} iterations: " if is_old else ""
        return f"{when}{answer_line(reading, data)}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _invitation(data: Dataset, labels: NDArray[Any]) -> str:
    count = int(labels.max()) + 1
    every = f"every {data.noun} is its own cluster"
    start = every if count == data.n_objects else f"all in {_plural(count, 'cluster')}"
    return (
        f"{data.counted(data.n_objects)} × {data.n_features} features; initially {start}. "
        "Press Play to start the chain."
    )


def _with_rand_index(text: str, labels: NDArray[Any], data: Dataset) -> str:
    index = _rand_index(labels, data)
    return text if index is None else f"{text} · adjusted Rand index with the known classes: {index:z.2f}"


def _rand_index(labels: NDArray[Any], data: Dataset) -> float | None:
    if data.labels is None:
        return None
    # Each unassigned object counts as a cluster.
    full = np.where(labels >= 0, labels, labels.max() + 1 + np.arange(labels.size))
    return adjusted_rand(data.labels, full)


def answer_line(reading: ChainAnswer, data: Dataset) -> str:
    """The answer in one line: groups, components, assigned objects, and whether the chain supports it."""
    parts = [_groups(reading), _assigned(reading, data)]
    if reading.verdict == "agree":
        return " · ".join([*parts, "both halves of the chain agree"])
    return f"{NOT_YET}: {' · '.join(parts)}"


def _groups(reading: ChainAnswer) -> str:
    """The number of groups, and the components of the draws that they are made of."""
    low, high = reading.components
    count = reading.answer.n_clusters
    span = _plural(low, "Gaussian component") if low == high else f"{low}–{high} Gaussian components"
    made_of = "" if low == high == count else f" (from {span})"
    return f"{_plural(count, 'group')}{made_of}"


def _assigned(reading: ChainAnswer, data: Dataset) -> str:
    """How many objects have a membership probability of 0.8 or more."""
    assigned = data.n_objects - reading.answer.uncertain.size
    everything = data.counted(data.n_objects)
    share = f"all {everything}" if assigned == data.n_objects else f"{assigned} of {everything}"
    return f"{share} assigned with probability ≥ 0.8"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}{'es' if what.endswith('s') else 's'}"
