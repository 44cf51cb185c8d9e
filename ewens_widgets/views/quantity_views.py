"""Numbers of the draws: how many clusters and the variance ratio θ as bars next to their priors, and traces.

Several clusters of a draw may form one group of the answer. So the number of groups is often smaller than the
number of clusters in any draw. While the answer is on display, bars of another colour show its number of
groups.

Traces show the number of clusters, the log posterior and θ over the iterations; below them are the acceptance
rates of the moves. Each quantity has a small figure, which can show the traces of several chains as well. A
trace is thinned to a few hundred points, and its axis of iterations grows by steps, so that a frame seldom
changes more than the lines.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

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
from ewens_widgets.views.figures import (
    Spot,
    horizon,
    make_axis,
    make_figure,
    make_scale,
    nice_limits,
    nice_ticks,
    set_iterations,
    set_limits,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

_DRAWS, _CONDITIONAL, _PRIOR, _ANSWER = OKABE_ITO[0], OKABE_ITO[1], "#808080", OKABE_ITO[3]
_LEAST, _MOST = 8, 60  # bars
_MOST_PRIOR = 240  # clusters of which the prior is shown
_MOST_OBJECTS = 20_000
_HEIGHTS = (0.2, 0.4, 0.6, 1.0)  # ends of the axis of shares; few values, so that it changes rarely
_MOST_TICKS = 6
MOST_POINTS = 240  # of a trace
_RATES = {"gibbs": "gibbs: moved"}  # a Gibbs draw is always accepted; its rate is that of points that move


class Bars:
    """Bars at whole numbers, each series of them as one filled line.

    bqplot's own bars leave an empty element behind at each change.
    """

    def __init__(self, scales: dict[str, bqplot.Scale], series: dict[str, str], width: float) -> None:
        """Make bars for each series: its name and colour."""
        self.x: FloatArray = np.zeros(0)
        self.y: FloatArray = np.zeros((len(series), 0))
        self._width = width / len(series)
        style = {"scales": scales, "colors": ["transparent"], "fill": "bottom"}
        self.marks = tuple(
            bqplot.Lines(x=np.zeros(2), y=np.zeros(2), labels=[name], fill_colors=[colour], **style)
            for name, colour in series.items()
        )

    def show(self, x: FloatArray, y: FloatArray, scale: float = 1.0) -> None:
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
        self._law: FloatArray = np.zeros(0)
        # For very many objects the prior takes seconds, and its line is far from the bars.
        if (count := posterior.n_objects) <= _MOST_OBJECTS:
            self._law = posterior.prior.count_pmf(count, min(_MOST_PRIOR, count))[1:]
        self._draw_bars(np.zeros(0, dtype=np.intp), {})

    def draw(self, frame: Frame) -> None:
        """Send the heights of the bars; those of groups if the answer is on display."""
        groups: dict[int, float] = {}
        if self.shared.shown(frame) == "answer" and frame.answer is not None:
            found = frame.answer.answer
            groups = getattr(found, "shares", {found.n_clusters: 1.0})
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

    def _binned(self, shares: NDArray[Any], last: int) -> FloatArray:
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
        self._grid: FloatArray = posterior.theta_grid
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


class TracesView(View):
    """Traces with the end of burn-in, and acceptance rates by move."""

    title = "Traces"
    css_class = "ew-traces"
    description = "Number of clusters, log posterior and theta over the iterations; acceptance rates"
    about = (
        "Each line shows one quantity over the iterations. A chain that has converged varies around a "
        "constant level. Draws left of the dotted line, the burn-in, are not used. The bars below are "
        "acceptance rates; a Gibbs draw is always accepted, so its bar is the share of points that moved."
    )
    rest = 0.25

    def build(self) -> tuple[Widget, ...]:
        """Make three small figures and a table."""
        self.panels = trace_panels([_DRAWS], height=62, left=60)
        self.acceptance = note("ew-acceptance")
        return *(panel.figure for panel in self.panels), self.acceptance

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Start with empty traces."""
        self._learns = posterior.samples_concentration
        self._nu_grid = posterior.nu_grid if posterior.shapes == "own" else None
        for panel in self.panels:
            panel.clear()
        assign(self.acceptance, value="")

    def draw(self, frame: Frame) -> None:
        """Send the traces, thinned."""
        # The present, not what is on display: looking back must not change the axis.
        summary, last = frame.summary, horizon(frame.status.iteration, frame.status.target)
        places = thinned(len(summary))
        iterations = summary.iterations[places].astype(np.float64)
        values = (
            summary.n_clusters[places].astype(np.float64),
            summary.log_posterior[places],
            np.log2(summary.theta[places]),
        )
        for panel, trace in zip(self.panels, values, strict=True):
            panel.show((0.0, last), iterations, trace, float(self.shared.burn_in))
        learned = ""
        if self._learns and len(summary):
            average = float(summary.concentration[summary.start :].mean())
            learned = f"<div>λ: {summary.concentration[-1]:.3g} in this draw, mean {average:.3g}</div>"
        if self._nu_grid is not None and len(summary):
            learned += _pooling(self._nu_grid, summary.nu_posterior(), float(summary.nu[-1]))
        assign(self.acceptance, value=_acceptance_table(summary.acceptance()) + learned)

    def paint(self, axes: "Axes") -> None:
        """Draw number of clusters and log posterior with matplotlib."""
        clusters, posterior, _ = self.panels
        axes.plot(clusters.lines.x, clusters.lines.y, color=_DRAWS, linewidth=0.9)
        axes.set_ylabel("clusters", color=_DRAWS)
        axes.locator_params(axis="y", integer=True)
        axes.set_xlabel("iteration")
        other = axes.twinx()
        other.plot(posterior.lines.x, posterior.lines.y, color=_ANSWER, linewidth=0.9)
        other.set_ylabel("log posterior", color=_ANSWER)


def _acceptance_table(rates: dict[str, float]) -> str:
    rows = []
    for name, rate in rates.items():
        known = np.isfinite(rate)
        width, text = (f"{100 * rate:.0f}%", f"{100 * rate:.1f} %") if known else ("0", "–")
        rows.append(
            f'<div class="ew-rate"><span>{escape(_RATES.get(name, name))}</span><span class="ew-rate-bar">'
            f'<span style="width:{width}"></span></span><span>{text}</span></div>'
        )
    return "".join(rows)


def _pooling(grid: FloatArray, weights: FloatArray, now: float) -> str:
    """The pooling ν of the clusters' covariances: bars over its grid, and its value in this draw."""
    heights = np.round(100 * weights / max(float(weights.max()), 1e-9)).astype(int)
    bars = "".join(f'<span style="height:{height}%"></span>' for height in heights.tolist())
    title = ", ".join(f"{value:g}: {weight:.0%}" for value, weight in zip(grid, weights, strict=True))
    return (
        f'<div class="ew-pooling" title="{title}"><span>pooling ν: {now:g} in this draw;</span>'
        f"<span>{grid[0]:g} "
        f'<span class="ew-spark" aria-hidden="true">{bars}</span> {grid[-1]:g}</span></div>'
    )


def thinned(length: int, most: int = MOST_POINTS) -> NDArray[np.intp]:
    """Places of at most so many points of a trace; the last one is always among them."""
    step = max(1, -(-length // most))
    return np.arange(length - 1, -1, -step)[::-1]


class Curves:
    """Lines of a named quantity over the iterations, one per colour, with a thin line behind them.

    `css_class` and `height` are those of the figure; `left` is the room for the numbers of the axis, in
    pixels.
    """

    def __init__(self, name: str, css_class: str, colours: Sequence[str], height: int, left: int) -> None:
        x_scale, y_scale = make_scale(), make_scale()
        scales = {"x": x_scale, "y": y_scale}
        nothing = np.zeros((len(colours), 2))
        self.lines = bqplot.Lines(
            x=nothing[0], y=nothing, scales=scales, colors=list(colours), stroke_width=1.6, visible=False
        )
        self.behind = bqplot.Lines(x=np.zeros(2), y=np.zeros(2), scales=scales, stroke_width=1.0)
        self.axes = [make_axis(x_scale), make_axis(y_scale, name, vertical=True)]
        assign(self.axes[1], label_offset=f"{left - 14}px")
        self.figure = make_figure(
            css_class, height, (8, 16, 18, left), marks=[self.behind, self.lines], axes=self.axes
        )

    def clear(self) -> None:
        """Show no line."""
        assign(self.lines, visible=False)


class TracePanel(Curves):
    """Lines of all chains, and a dotted one where the draws begin that are kept; parameters as above."""

    def __init__(self, name: str, css_class: str, colours: Sequence[str], height: int, left: int) -> None:
        super().__init__(name, css_class, colours, height, left)
        opacity = 0.85 if len(colours) > 1 else 1.0
        assign(self.lines, stroke_width=1.2, opacities=[opacity] * len(colours))
        assign(self.behind, colors=[_ANSWER], line_style="dotted", visible=False)

    def show(
        self, span: tuple[float, float], iterations: FloatArray, values: FloatArray, start: float
    ) -> None:
        """Show the traces on an axis from the first to the last iteration of `span`.

        The values of several chains have a row for each; the draws that are kept begin at `start`.
        """
        x_axis, y_axis = self.axes
        first, last = span
        set_iterations(x_axis, first, last)
        if iterations.size:
            # The way from the start would squeeze everything after it.
            later = values[..., values.shape[-1] // 4 :]
            low, high = nice_limits(float(later.min()), float(later.max()))
            set_limits(y_axis.scale, y_axis, low, high, ticks=3)
            if iterations.size == 1:  # Of a single point bqplot would drop the axis, and mix up the chains.
                iterations, values = np.repeat(iterations, 2), np.repeat(values, 2, axis=-1)
            assign(self.lines, x=iterations, y=np.clip(values, low, high), visible=True)
        else:
            self.clear()
        limits = np.array([y_axis.scale.min, y_axis.scale.max])
        assign(self.behind, x=np.full(2, start), y=limits, visible=first < start < last)


def trace_panels(colours: Sequence[str], height: int, left: int) -> tuple[TracePanel, ...]:
    """Panels of the number of clusters, the log posterior and θ; parameters as for each of them."""
    named = {"clusters": "ew-trace-clusters", "log post.": "ew-trace-posterior", "log₂ θ": "ew-trace-theta"}
    return tuple(TracePanel(name, css_class, colours, height, left) for name, css_class in named.items())
