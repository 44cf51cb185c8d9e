"""Bars of what the draws say beside what the prior says: how many clusters, and the variance ratio θ.

A draw may build one group of several clusters, where no single Gaussian fits it. So the number of groups in
the answer is often smaller than that of the clusters in any draw: where the answer is on display, a line
marks it among the bars.
"""

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CountView", "ThetaView"]

_DRAWS, _CONDITIONAL, _PRIOR, _ANSWER = OKABE_ITO[0], OKABE_ITO[1], "#808080", OKABE_ITO[3]
_LEAST, _MOST = 8, 60  # numbers of clusters on the axis
_MOST_OBJECTS = 20_000
_HEIGHTS = (0.2, 0.4, 1.0)  # where the axis of shares may end: it changes rarely
_MOST_TICKS = 6


def _prior_line(scales: dict[str, bqplot.Scale]) -> bqplot.Lines:
    """A dashed line for what the prior says."""
    return bqplot.Lines(
        x=np.arange(2.0),
        y=np.zeros(2),
        scales=scales,
        colors=[_PRIOR],
        stroke_width=1.5,
        line_style="dashed",
    )


class CountView(View):
    """Bars of the numbers of clusters, and a line for the prior."""

    title = "How many clusters?"
    css_class = "ew-counts"
    description = "Bars: share of the draws with each number of clusters; line: the prior"
    about = (
        "Each bar is the share of the draws, after the burn-in, that have so many clusters. The dashed line "
        "is what the prior would say without any data; where bars and line differ, the data have spoken. A "
        "draw may need several clusters for one group: the answer joins those that cannot be told apart."
    )
    rest = 0.25

    def build(self) -> tuple[Widget, ...]:
        """Make bars for the draws and a line for the prior."""
        self._x_scale, self._y_scale = make_scale(), make_scale()
        scales = {"x": self._x_scale, "y": self._y_scale}
        self.bars = bqplot.Bars(
            x=np.arange(1.0, 3.0),
            y=np.zeros(2),
            scales=scales,
            colors=[_DRAWS],
            padding=0.2,
            stroke="transparent",
        )
        self.prior = _prior_line(scales)
        self.answer = bqplot.Lines(
            x=np.zeros(2), y=np.zeros(2), scales=scales, colors=[_ANSWER], stroke_width=2.5, visible=False
        )
        self._axes = [make_axis(self._x_scale), make_axis(self._y_scale, vertical=True)]
        self.figure = make_figure(
            "ew-count-bars", 70, (6, 6, 20, 34), marks=[self.bars, self.prior, self.answer], axes=self._axes
        )
        self.figure.tell = self._tell
        self.legend = note("ew-legend")
        return self.figure, self.legend

    def _tell(self, spot: Spot | None) -> str:
        place = -1 if spot is None else round(spot.value(self._x_scale)) - 1
        if not 0 <= place < len(self.bars.y):
            return ""
        clusters = "1 cluster" if place == 0 else f"{place + 1} clusters"
        share, law = float(self.bars.y[place]), float(self.prior.y[place])
        return f"{clusters}: {100 * share:.1f} % of draws\nby the prior alone {100 * law:.1f} %"

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Show the prior."""
        self._most = min(_MOST, posterior.n_objects)
        self._law: NDArray[np.float64] = np.zeros(self._most)
        # The law of very many objects takes seconds, for a line far from where the data put the bars.
        if posterior.n_objects <= _MOST_OBJECTS:
            law = posterior.prior.count_pmf(posterior.n_objects, self._most)
            self._law = law[1 : self._most + 1]
        self._draw_bars(np.zeros(0, dtype=np.intp), None)

    def draw(self, frame: Frame) -> None:
        """Send the heights of the bars, and where the answer is on display its number of groups."""
        reading = frame.answer if self.stage.shown(frame) == "answer" else None
        groups = None if reading is None else reading.answer.n_clusters
        self._draw_bars(frame.summary.n_clusters[frame.summary.start :].astype(np.intp), groups)

    def _draw_bars(self, counts: NDArray[np.intp], groups: int | None) -> None:
        last = self._last(counts)
        shares = np.bincount(np.minimum(counts, last), minlength=last + 1)[1:] / max(1, counts.size)
        law = self._law[:last]
        top = next((height for height in _HEIGHTS if max(shares.max(), law.max()) <= height), 1.0)
        places = np.arange(1.0, last + 1.0)
        assign(self._x_scale, min=0.3, max=last + 0.7)
        assign(self._y_scale, max=top)
        assign(self._axes[0], tick_values=nice_ticks(1, last, 8))
        assign(self._axes[1], tick_values=np.array([0.0, top / 2, top]))
        assign(self.prior, x=places, y=np.round(law, 4))
        assign(self.bars, x=places, y=np.round(shares, 4))
        draws = "1 draw" if counts.size == 1 else f"{number_text(counts.size)} draws"
        # In one line with the answer too, or the pictures below would move when it comes.
        chips = [
            chip(_DRAWS, draws if groups is None else "draws"),
            chip(_PRIOR, "prior", shape="line"),
            *([] if groups is None else [chip(_ANSWER, f"answer: {groups}", shape="line")]),
        ]
        self._mark_answer(groups, top)
        assign(self.legend, value=" ".join(chips))

    def _mark_answer(self, groups: int | None, top: float) -> None:
        if groups is None:
            assign(self.answer, visible=False)
        else:
            assign(self.answer, x=np.full(2, float(groups)), y=np.array([0.0, top]), visible=True)

    def _last(self, counts: NDArray[np.intp]) -> int:
        """Where the axis ends: by steps, beyond nearly all draws and most of the prior."""
        draws = int(np.quantile(counts, 0.99)) if counts.size else 1
        prior = 1 + int(np.searchsorted(np.cumsum(self._law), 0.95 * self._law.sum()))
        return min(self._most, max(_LEAST, 4 * -(-max(draws, prior) // 4)))

    def paint(self, axes: "Axes") -> None:
        """Draw the bars with matplotlib."""
        axes.bar(np.asarray(self.bars.x), np.asarray(self.bars.y), 0.8, color=_DRAWS, label="share of draws")
        axes.plot(np.asarray(self.prior.x), np.asarray(self.prior.y), "--", color=_PRIOR, label="prior")
        if self.answer.visible:
            axes.axvline(self.answer.x[0], color=_ANSWER, label="answer")
        axes.set_xlabel("clusters")
        axes.legend(frameon=False)


class ThetaView(View):
    """Bars on the grid of θ."""

    title = "Variance ratio θ"
    css_class = "ew-theta"
    description = "Bars on the grid of theta: average of the draws' conditionals, this draw's, and the prior"
    about = (
        "θ is how far clusters lie apart, as a ratio of variances: between them over within them. Blue is "
        "what all draws say, orange what this draw says, the line what the prior says."
    )

    rest = 0.12

    def build(self) -> tuple[Widget, ...]:
        """Make bars for the probabilities and a line for the prior."""
        self._x_scale = make_scale()
        y_scale = make_scale()
        scales = {"x": self._x_scale, "y": y_scale}
        self.bars = bqplot.Bars(
            x=np.arange(2.0),
            y=np.zeros((2, 2)),
            scales=scales,
            type="grouped",
            colors=[_DRAWS, _CONDITIONAL],
            padding=0.15,
            stroke="transparent",
        )
        self.prior = _prior_line(scales)
        self._x_axis = make_axis(self._x_scale)
        y_axis = make_axis(y_scale, vertical=True)
        self.figure = make_figure(
            "ew-theta-bars", 76, (6, 6, 20, 34), marks=[self.bars, self.prior], axes=[self._x_axis, y_axis]
        )
        self.figure.tell = self._tell
        chips = (chip(_DRAWS, "average"), chip(_CONDITIONAL, "now"), chip(_PRIOR, "prior", shape="line"))
        return self.figure, note("ew-legend", " ".join(chips))

    def _tell(self, spot: Spot | None) -> str:
        place = -1 if spot is None else round(spot.value(self._x_scale))
        if not 0 <= place < self._grid.size:
            return ""
        average, now = (float(row[place]) for row in np.asarray(self.bars.y))
        law = float(self.prior.y[place])
        return (
            f"θ = {theta_text(self._grid[place])}: probability {average:.2f}\n"
            f"by this draw {now:.2f}, by the prior {law:.2f}"
        )

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Show the grid and its prior."""
        self._grid: NDArray[np.float64] = posterior.theta_grid
        places = np.arange(float(self._grid.size))
        assign(self._x_scale, min=-0.7, max=places[-1] + 0.7)
        step = max(1, -(-self._grid.size // _MOST_TICKS))
        ticks = places[::step]
        labels = {str(int(tick)): theta_text(self._grid[int(tick)]) for tick in ticks}
        assign(self._x_axis, tick_values=ticks, tick_labels=labels)
        assign(self.prior, x=places, y=np.exp(posterior.log_theta_prior))
        assign(self.bars, x=places, y=np.zeros((2, places.size)))

    def draw(self, frame: Frame) -> None:
        """Send the heights of the bars."""
        heights = np.zeros((2, self._grid.size))
        if frame.event is not None:
            heights[0] = frame.summary.theta_posterior()
            heights[1] = frame.event.theta_weights
        # Four digits are more than the eye sees, and equal frames stay equal.
        assign(self.bars, y=np.round(heights, 4))

    def paint(self, axes: "Axes") -> None:
        """Draw the bars with matplotlib."""
        places, heights = np.asarray(self.bars.x), np.asarray(self.bars.y)
        axes.bar(places - 0.2, heights[0], 0.4, color=_DRAWS, label="average")
        axes.bar(places + 0.2, heights[1], 0.4, color=_CONDITIONAL, label="this draw")
        axes.plot(places, np.asarray(self.prior.y), color=_PRIOR, linestyle="--", label="prior")
        axes.set_xticks(places[::2], [theta_text(value) for value in self._grid[::2]], rotation=45)
        axes.set_ylim(0.0, 1.0)
        axes.legend(frameon=False)
