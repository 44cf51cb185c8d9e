"""Number of clusters, log posterior and θ over the iterations, and how often moves are accepted."""

from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import bqplot
import numpy as np
from ipywidgets import HTML, Widget
from numpy.typing import NDArray

from ewens_widgets.datasets import Dataset
from ewens_widgets.model.concentration import Gamma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.views.base import View, assign
from ewens_widgets.views.figures import (
    horizon,
    make_axis,
    make_figure,
    make_scale,
    set_iterations,
    set_limits,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TracesView", "nice_limits", "thinned"]

MOST_POINTS = 240


class _Panel(NamedTuple):
    """One trace: its name, its axes and its marks."""

    name: str
    axes: list[Any]
    line: Any
    burn_in: Any
    figure: Any


def thinned(length: int, most: int = MOST_POINTS) -> NDArray[np.intp]:
    """Places of at most so many points of a trace; the last one is always among them."""
    step = max(1, -(-length // most))
    return np.arange(length - 1, -1, -step)[::-1]


def nice_limits(low: float, high: float) -> tuple[float, float]:
    """Limits around an interval, on a coarse raster, so that they change rarely."""
    if not np.isfinite(low) or not np.isfinite(high):
        return 0.0, 1.0
    spread = high - low or max(1.0, 0.1 * abs(high))
    raster = 10.0 ** np.floor(np.log10(spread)) / 2.0
    return float(np.floor(low / raster - 0.5) * raster), float(np.ceil(high / raster + 0.5) * raster)


class TracesView(View):
    """Traces with the end of burn-in, and acceptance rates by move."""

    title = "Traces"
    css_class = "ew-traces"
    description = "Number of clusters, log posterior and theta over the iterations, with acceptance rates"
    rest = 0.25

    def build(self) -> tuple[Widget, ...]:
        """Make three small figures and a table."""
        self.panels = tuple(
            self._panel(*names)
            for names in (
                ("clusters", "ew-trace-clusters"),
                ("log posterior", "ew-trace-posterior"),
                ("log₂ θ", "ew-trace-theta"),
            )
        )
        self.acceptance = HTML()
        self.acceptance.add_class("ew-acceptance")
        return *(panel.figure for panel in self.panels), self.acceptance

    def _panel(self, name: str, css_class: str) -> _Panel:
        x_scale, y_scale = make_scale(), make_scale()
        scales = {"x": x_scale, "y": y_scale}
        line = bqplot.Lines(x=np.zeros(2), y=np.zeros(2), scales=scales, colors=["#0072b2"], stroke_width=1.2)
        burn_in = bqplot.Lines(
            x=np.zeros(2),
            y=np.zeros(2),
            scales=scales,
            colors=["#d55e00"],
            stroke_width=1.0,
            line_style="dotted",
        )
        axes = [make_axis(x_scale), make_axis(y_scale, name, vertical=True)]
        figure = make_figure(css_class, 92, (5, 16, 18, 46), marks=[burn_in, line], axes=axes)
        return _Panel(name, axes, line, burn_in, figure)

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Start with empty traces."""
        self._learns = isinstance(posterior.concentration, Gamma)
        for panel in self.panels:
            assign(panel.line, visible=False)
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
            x_axis, y_axis = panel.axes
            set_iterations(x_axis, 0.0, last)
            if trace.size:
                # The way down from the start would squeeze everything after it.
                settled = trace[trace.size // 4 :]
                low, high = nice_limits(float(settled.min()), float(settled.max()))
                set_limits(y_axis.scale, y_axis, low, high, ticks=3)
                assign(panel.line, x=iterations, y=np.clip(trace, low, high), visible=True)
            else:
                assign(panel.line, visible=False)
            self._mark_burn_in(panel)
        learned = ""
        if self._learns and len(summary):
            average = float(summary.concentration[summary.start :].mean())
            learned = f"<div>λ: {summary.concentration[-1]:.3g} now, {average:.3g} on average</div>"
        assign(self.acceptance, value=_acceptance_table(summary.acceptance()) + learned)

    def _mark_burn_in(self, panel: _Panel) -> None:
        end = float(self.stage.burn_in)
        x_scale, y_scale = (axis.scale for axis in panel.axes)
        is_inside = 0.0 < end < x_scale.max
        limits = np.array([y_scale.min, y_scale.max])
        assign(panel.burn_in, x=np.full(2, end), y=limits, visible=is_inside)

    def paint(self, axes: "Axes") -> None:
        """Draw number of clusters and log posterior with matplotlib."""
        clusters, posterior, _ = self.panels
        axes.plot(clusters.line.x, clusters.line.y, color="#0072b2", linewidth=0.9)
        axes.set_ylabel("clusters", color="#0072b2")
        axes.set_xlabel("iteration")
        other = axes.twinx()
        other.plot(posterior.line.x, posterior.line.y, color="#d55e00", linewidth=0.9)
        other.set_ylabel("log posterior", color="#d55e00")


def _acceptance_table(rates: dict[str, float]) -> str:
    rows = []
    for name, rate in rates.items():
        known = np.isfinite(rate)
        width, text = (f"{100 * rate:.0f}%", f"{100 * rate:.1f} %") if known else ("0", "–")
        rows.append(
            f'<div class="ew-rate"><span>{escape(name)}</span><span class="ew-rate-bar">'
            f'<span style="width:{width}"></span></span><span>{text}</span></div>'
        )
    return "".join(rows)
