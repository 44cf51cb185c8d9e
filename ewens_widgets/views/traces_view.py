"""Number of clusters, log posterior and θ over the iterations, and the acceptance rates of the moves.

Each quantity has a small figure, which can show the traces of several chains as well. A trace is thinned to a
few hundred points, and its axis of iterations grows by steps, so that a frame seldom changes more than the
lines.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import bqplot
import numpy as np
from ipywidgets import Widget
from numpy.typing import NDArray

from ewens_widgets.analysis.plots.palette import OKABE_ITO
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.views.base import View, assign, note
from ewens_widgets.views.figures import (
    horizon,
    make_axis,
    make_figure,
    make_scale,
    nice_limits,
    set_iterations,
    set_limits,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_POINTS = 240

FloatArray = NDArray[np.float64]

_CLUSTERS, _START = OKABE_ITO[0], OKABE_ITO[3]
_RATES = {"gibbs": "gibbs: moved"}  # a Gibbs draw is always accepted; its rate is that of points that move


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
        self.panels = trace_panels([_CLUSTERS], height=62, left=60)
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
        axes.plot(clusters.lines.x, clusters.lines.y, color=_CLUSTERS, linewidth=0.9)
        axes.set_ylabel("clusters", color=_CLUSTERS)
        axes.locator_params(axis="y", integer=True)
        axes.set_xlabel("iteration")
        other = axes.twinx()
        other.plot(posterior.lines.x, posterior.lines.y, color=_START, linewidth=0.9)
        other.set_ylabel("log posterior", color=_START)


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
        assign(self.behind, colors=[_START], line_style="dotted", visible=False)

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
