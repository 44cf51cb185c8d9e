"""Terms that add up to a total, as a small chart: each bar begins where the one before it ends."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import bqplot
import numpy as np
from ipywidgets import VBox

from ewens_widgets.analysis.explanation.number_words import signed
from ewens_widgets.analysis.explanation.proposal import Term
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.views.base import assign
from ewens_widgets.views.figures import make_axis, make_figure, make_scale, nice_limits, set_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FALLS", "RISES", "Waterfall", "waterfall_bars"]

RISES, FALLS, TOTAL, MARK = "#0072b2", "#d55e00", "#808080", "#a80876"
_FARTHEST = 1e4
"""What is drawn of an infinite term: far beyond any other."""


def waterfall_bars(values: Sequence[float]) -> FloatArray:
    """Beginning and end of each bar, one a row; the last one is the total, from 0."""
    finite = np.clip(np.asarray(values, dtype=np.float64), -_FARTHEST, _FARTHEST)
    ends = np.concatenate([[0.0], np.cumsum(finite)])
    return np.concatenate([np.stack([ends[:-1], ends[1:]], axis=1), [[0.0, ends[-1]]]])


class Waterfall(VBox):
    """Bars for the terms and their total, and a line to compare the total with.

    Parameters
    ----------
    names
        Names of the terms, and last that of their total.
    height
        In pixels.
    """

    def __init__(self, names: Sequence[str], height: int = 230) -> None:
        self._names = tuple(names)
        n_terms = len(names) - 1
        self._terms: tuple[Term, ...] = ()
        self._mark: float | None = None
        self._x_scale, self._y_scale = make_scale(-0.6, n_terms + 0.6), make_scale(-1.0, 1.0)
        scales = {"x": self._x_scale, "y": self._y_scale}
        places = np.arange(n_terms + 1.0)
        nothing = np.zeros((n_terms + 1, 2))
        self.bars = bqplot.Lines(
            x=np.stack([places, places], axis=1),
            y=nothing,
            scales=scales,
            colors=[TOTAL] * (n_terms + 1),
            stroke_width=30,
        )
        self.steps = bqplot.Lines(
            x=np.stack([places[:-1], places[1:]], axis=1),
            y=nothing[:-1],
            scales=scales,
            colors=[TOTAL],
            stroke_width=1,
            line_style="dotted",
        )
        self.zero = bqplot.Lines(
            x=np.array([-0.6, n_terms + 0.6]),
            y=np.zeros(2),
            scales=scales,
            colors=[TOTAL],
            stroke_width=1,
        )
        self.mark = bqplot.Lines(
            x=np.array([-0.6, n_terms + 0.6]),
            y=np.zeros(2),
            scales=scales,
            colors=[MARK],
            stroke_width=2,
            line_style="dashed",
            visible=False,
        )
        self.texts = bqplot.Label(
            x=places,
            y=np.zeros(n_terms + 1),
            text=[""] * (n_terms + 1),
            scales=scales,
            colors=[TOTAL],
            default_size=11,
            font_weight="normal",
            align="middle",
        )
        self.mark_text = bqplot.Label(
            x=np.array([-0.55]),
            y=np.zeros(1),
            text=["log u"],
            scales=scales,
            colors=[MARK],
            default_size=11,
            font_weight="normal",
            align="start",
            visible=False,
        )
        self._x_axis = make_axis(self._x_scale)
        # Labels that come later than the axis would not be drawn.
        ticks = {str(place): name for place, name in enumerate(self._names)}
        assign(self._x_axis, tick_values=places, tick_labels=ticks)
        self._y_axis = make_axis(self._y_scale, vertical=True)
        self.figure = make_figure(
            "ew-waterfall",
            height,
            (16, 8, 22, 44),
            marks=[self.zero, self.steps, self.bars, self.mark, self.texts, self.mark_text],
            axes=[self._x_axis, self._y_axis],
        )
        super().__init__((self.figure,))
        self.clear()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is shown."""
        return not self._terms

    def clear(self) -> None:
        """Show no bars."""
        self._terms, self._mark = (), None
        for mark in (self.bars, self.steps, self.mark, self.texts, self.mark_text):
            assign(mark, visible=False)

    def show(self, terms: Sequence[Term], mark: float | None = None) -> None:
        """Show terms, their total, and a line at `mark`, if there is one."""
        self._terms, self._mark = tuple(terms), mark
        bars = waterfall_bars([term.value for term in terms])
        low, high = self._limits(bars, mark)
        set_limits(self._y_scale, self._y_axis, low, high, ticks=5)
        values = [term.value for term in terms]
        colours = [RISES if value >= 0.0 else FALLS for value in values]
        assign(self.bars, y=bars, colors=[*colours, TOTAL], visible=True)
        assign(self.steps, y=np.stack([bars[:-1, 1], bars[:-1, 1]], axis=1), visible=True)
        # Above a bar that rises and below one that falls: there nothing is in the way.
        total = float(bars[-1, 1])
        ends = np.array([*values, total])
        gap = 0.02 * (high - low)
        y = np.where(ends >= 0.0, bars.max(axis=1) + gap, bars.min(axis=1) - 5.0 * gap)
        texts = [signed(value) for value in [*values, sum(values)]]
        assign(self.texts, y=np.clip(y, low, high - gap), text=texts, colors=[*colours, TOTAL], visible=True)
        shown = mark is not None
        level = 0.0 if mark is None else max(mark, low)
        assign(self.mark, y=np.full(2, level), visible=shown)
        assign(self.mark_text, y=np.array([level + gap]), visible=shown)

    @staticmethod
    def _limits(bars: FloatArray, mark: float | None) -> tuple[float, float]:
        low, high = float(bars.min()), float(bars.max())
        if mark is not None:
            low = min(low, mark)
        room = 0.16 * (high - low)
        return nice_limits(low - room, high + room)

    def paint(self, axes: "Axes") -> None:
        """Draw the chart with matplotlib."""
        if self.is_empty:
            axes.text(0.5, 0.5, "nothing to add up yet", ha="center", va="center")
            axes.set_axis_off()
            return
        bars = waterfall_bars([term.value for term in self._terms])
        colours = [RISES if end >= start else FALLS for start, end in bars[:-1]]
        axes.bar(self._names, bars[:, 1] - bars[:, 0], bottom=bars[:, 0], color=[*colours, TOTAL], width=0.6)
        axes.axhline(0.0, color=TOTAL, linewidth=0.8)
        if self._mark is not None:
            axes.axhline(self._mark, color=MARK, linestyle="--", linewidth=1.2)
        values = [*(term.value for term in self._terms), sum(term.value for term in self._terms)]
        for place, value in enumerate(values):
            axes.annotate(signed(value), (place, bars[place].max()), ha="center", va="bottom", fontsize=8)
        axes.set_ylim(*self._limits(bars, self._mark))
