"""Bars of the draws next to the prior: the number of clusters, and the variance ratio θ.

Several clusters of a draw may form one group of the answer. So the number of groups is often smaller than the
number of clusters in any draw. While the answer is on display, bars of another colour show its number of
groups.
"""

from typing import Any

import bqplot
import numpy as np
from ipywidgets import Widget
from numpy.typing import NDArray

from ewens_widgets.analysis.plots.charts import theta_text
from ewens_widgets.analysis.plots.palette import OKABE_ITO
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.playback.frame import number_text
from ewens_widgets.views.base import View, assign, chip, note
from ewens_widgets.views.figures import Spot, make_axis, make_figure, make_scale, nice_ticks

_DRAWS, _CONDITIONAL, _PRIOR, _ANSWER = OKABE_ITO[0], OKABE_ITO[1], "#808080", OKABE_ITO[3]
_LEAST, _MOST = 8, 60  # bars
_MOST_PRIOR = 240  # clusters of which the prior is shown
_MOST_OBJECTS = 20_000
_HEIGHTS = (0.2, 0.4, 0.6, 1.0)  # ends of the axis of shares; few values, so that it changes rarely
_MOST_TICKS = 6


class Bars:
    """Bars at whole numbers, each series of them as one filled line.

    bqplot's own bars leave an empty element behind at each change.
    """

    def __init__(self, scales: dict[str, bqplot.Scale], series: dict[str, str], width: float) -> None:
        """Make bars for each series: its name and colour."""
        self.x: NDArray[np.float64] = np.zeros(0)
        self.y: NDArray[np.float64] = np.zeros((len(series), 0))
        self._width = width / len(series)
        style = {"scales": scales, "colors": ["transparent"], "fill": "bottom"}
        self.marks = tuple(
            bqplot.Lines(x=np.zeros(2), y=np.zeros(2), labels=[name], fill_colors=[colour], **style)
            for name, colour in series.items()
        )

    def show(self, x: NDArray[np.float64], y: NDArray[np.float64], scale: float = 1.0) -> None:
        """Show bars at these places: a height for each, or a row of heights for each series."""
        width = scale * self._width
        # Four digits are more than the eye sees, and equal frames stay equal.
        self.x, self.y = x, np.round(y, 4)
        for place, (mark, heights) in enumerate(zip(self.marks, np.atleast_2d(self.y), strict=True)):
            left = x + width * (place - len(self.marks) / 2)
            corners = np.column_stack([left, left, left + width, left + width])
            ups = np.column_stack([np.zeros(x.size), heights, heights, np.zeros(x.size)])
            assign(mark, x=corners.ravel(), y=ups.ravel())


def _prior_line(scales: dict[str, bqplot.Scale]) -> bqplot.Lines:
    style = {"colors": [_PRIOR], "stroke_width": 1.5, "line_style": "dashed", "labels": ["prior"]}
    return bqplot.Lines(x=np.arange(2.0), y=np.zeros(2), scales=scales, **style)


class CountView(View):
    """Bars of the numbers of components and of groups, and a line for the prior."""

    title = "How many"
    css_class = "ew-counts"
    description = "Bars: shares of draws with each number of components, and of groups; line: the prior"
    about = (
        "Blue: the share of draws, after the burn-in, with each number of clusters. A cluster of a draw is "
        "one Gaussian component. Dashed: its prior distribution. Orange: the number of groups of the answer, "
        "which merges components that the draws cannot separate."
    )
    rest = 0.25

    def build(self) -> tuple[Widget, ...]:
        """Make bars for components and groups and a line for the prior."""
        self._x_scale, self._y_scale = make_scale(), make_scale()
        scales = {"x": self._x_scale, "y": self._y_scale}
        self.bars = Bars(scales, {"components": _DRAWS}, 0.8)
        self.groups = Bars(scales, {"groups": _ANSWER}, 0.4)
        self.prior = _prior_line(scales)
        self._axes = [make_axis(self._x_scale), make_axis(self._y_scale, vertical=True)]
        marks = [*self.bars.marks, *self.groups.marks, self.prior]
        self.figure = make_figure("ew-count-bars", 70, (6, 6, 20, 34), marks=marks, axes=self._axes)
        self.figure.tell = self._tell
        self.legend = note("ew-legend")
        return self.figure, self.legend

    def _tell(self, spot: Spot | None) -> str:
        width = self._width
        place = -1 if spot is None else round((spot.value(self._x_scale) - (width + 1) / 2) / width)
        if not 0 <= place < len(self.bars.y):
            return ""
        first = place * width + 1
        what = "1 component" if first == width == 1 else f"{first} components"
        what = f"{first} to {first + width - 1} components" if width > 1 else what
        share, law = float(self.bars.y[place]), float(self.prior.y[place])
        lines = [f"{what}: {100 * share:.1f} % of draws", f"prior: {100 * law:.1f} %"]
        if self.groups.y.any():
            lines.append(f"as many groups: {100 * float(self.groups.y[place]):.1f} %")
        return "\n".join(lines)

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Show the prior."""
        self._n_objects = posterior.n_objects
        self._law: NDArray[np.float64] = np.zeros(0)
        # For very many objects the prior takes seconds, and its line is far from the bars.
        if (count := posterior.n_objects) <= _MOST_OBJECTS:
            self._law = posterior.prior.count_pmf(count, min(_MOST_PRIOR, count))[1:]
        self._draw_bars(np.zeros(0, dtype=np.intp), {})

    def draw(self, frame: Frame) -> None:
        """Send the heights of the bars; those of groups if the answer is on display."""
        groups: dict[int, float] = {}
        if self.shared.shown(frame) == "answer" and frame.answer is not None:
            found = frame.answer.answer
            groups = getattr(found, "probabilities", {found.n_clusters: 1.0})
        self._draw_bars(frame.summary.n_clusters[frame.summary.start :].astype(np.intp), groups)

    def _draw_bars(self, counts: NDArray[np.intp], groups: dict[int, float]) -> None:
        # The axis ends, in steps, beyond nearly all draws and most of the prior.
        largest = max(int(np.quantile(counts, 0.99)) if counts.size else 1, *groups, 1)
        likely = 1 + int(np.searchsorted(np.cumsum(self._law), 0.95 * self._law.sum()))
        if largest > 3 * likely:
            likely = 1
        last = min(self._n_objects, max(_LEAST, 4 * -(-max(largest, likely) // 4)))
        # Of very many numbers several share a bar.
        self._width = -(-last // _MOST)
        last = self._width * -(-last // self._width)
        shares = self._binned(np.bincount(np.minimum(counts, last), minlength=last + 1)[1:], last)
        shares /= max(1, counts.size)
        law = self._binned(self._law, last)
        of_groups = np.zeros(last)
        for number, share in groups.items():
            of_groups[min(number, last) - 1] += share
        heights = self._binned(of_groups, last)
        top = next((h for h in _HEIGHTS if max(shares.max(), law.max(), heights.max()) <= h), 1.0)
        places = self._width * np.arange(float(shares.size)) + (self._width + 1) / 2
        assign(self._x_scale, min=0.3, max=last + 0.7)
        assign(self._y_scale, max=top)
        assign(self._axes[0], tick_values=nice_ticks(1, last, 8))
        assign(self._axes[1], tick_values=np.array([0.0, top / 2, top]))
        assign(self.prior, x=places, y=np.round(law, 4))
        self.bars.show(places, shares, self._width)
        self.groups.show(places, heights, self._width)
        draws = "1 draw" if counts.size == 1 else f"{number_text(counts.size)} draws"
        # In one line with the answer too, or the pictures below would move when it comes.
        chips = [chip(_DRAWS, draws), chip(_PRIOR, "prior", shape="line")]
        if groups:
            chips = [chip(_DRAWS, "components"), chip(_ANSWER, "groups")]
        assign(self.legend, value=" ".join(chips))

    def _binned(self, shares: NDArray[Any], last: int) -> NDArray[np.float64]:
        whole = np.zeros(last)
        whole[: min(last, shares.size)] = shares[:last]
        return whole.reshape(-1, self._width).sum(axis=1)


class ThetaView(View):
    """Bars on the grid of θ."""

    title = "Variance ratio θ"
    css_class = "ew-theta"
    description = "Bars on the grid of theta: posterior, distribution given this draw, and prior"
    about = (
        "θ is the variance between clusters divided by the variance within them. Blue bars: its posterior, "
        "averaged over the draws after the burn-in. Orange bars: its distribution given this draw. "
        "Dashed line: its prior."
    )

    rest = 0.12

    def build(self) -> tuple[Widget, ...]:
        """Make bars for the probabilities and a line for the prior."""
        self._x_scale = make_scale()
        scales = {"x": self._x_scale, "y": make_scale()}
        self.bars = Bars(scales, {"mean": _DRAWS, "this draw": _CONDITIONAL}, 0.85)
        self.prior = _prior_line(scales)
        self._x_axis = make_axis(self._x_scale)
        self.figure = make_figure(
            "ew-theta-bars",
            76,
            (6, 6, 20, 34),
            marks=[*self.bars.marks, self.prior],
            axes=[self._x_axis, make_axis(scales["y"], vertical=True)],
        )
        self.figure.tell = self._tell
        chips = (chip(_DRAWS, "mean"), chip(_CONDITIONAL, "this draw"), chip(_PRIOR, "prior", shape="line"))
        return self.figure, note("ew-legend", " ".join(chips))

    def _tell(self, spot: Spot | None) -> str:
        place = -1 if spot is None else round(spot.value(self._x_scale))
        if not 0 <= place < self._grid.size:
            return ""
        average, now = self.bars.y[:, place]
        law = float(self.prior.y[place])
        return (
            f"θ = {theta_text(self._grid[place])}: probability {average:.2f}\n"
            f"given this draw: {now:.2f}; prior: {law:.2f}"
        )

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Show the grid and its prior."""
        self._grid: NDArray[np.float64] = posterior.theta_grid
        places = np.arange(float(self._grid.size))
        assign(self._x_scale, min=-0.7, max=places[-1] + 0.7)
        ticks = places[:: max(1, -(-self._grid.size // _MOST_TICKS))]
        labels = {str(int(tick)): theta_text(self._grid[int(tick)]) for tick in ticks}
        assign(self._x_axis, tick_values=ticks, tick_labels=labels)
        assign(self.prior, x=places, y=np.exp(posterior.log_theta_prior))
        self.bars.show(places, np.zeros((2, places.size)))

    def draw(self, frame: Frame) -> None:
        """Send the heights of the bars."""
        heights = np.zeros((2, self._grid.size))
        if frame.event is not None:
            heights[0] = frame.summary.theta_posterior()
            heights[1] = frame.event.theta_weights
        self.bars.show(self.bars.x, heights)
