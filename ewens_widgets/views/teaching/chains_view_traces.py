"""The traces of several chains, one over the other."""

from html import escape
from typing import TYPE_CHECKING, NamedTuple

import bqplot
import numpy as np
from ipywidgets import HTML, Widget
from numpy.typing import NDArray

from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.views.base import assign
from ewens_widgets.views.figures import (
    horizon,
    make_axis,
    make_figure,
    make_scale,
    set_iterations,
    set_limits,
)
from ewens_widgets.views.teaching.chains_view_stage import ChainsSubview, chain_colour, legend_of
from ewens_widgets.views.traces_view import nice_limits, thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ChainTraces"]

FloatArray = NDArray[np.float64]


class _Panel(NamedTuple):
    """Lines of all chains for one quantity."""

    axes: list[bqplot.Axis]
    lines: bqplot.Lines
    start: bqplot.Lines
    figure: bqplot.Figure


class ChainTraces(ChainsSubview):
    """Number of clusters, log posterior and θ of every chain."""

    title = "Traces"
    css_class = "ew-chain-traces"
    description = "Number of clusters, log posterior and theta of every chain over the iterations"
    rest = 0.25

    def build(self) -> tuple[Widget, ...]:
        """Make three small figures."""
        names = ("clusters", "log posterior", "log₂ θ")
        classes = ("ew-trace-clusters", "ew-trace-posterior", "ew-trace-theta")
        self.panels = tuple(self._panel(*given) for given in zip(names, classes, strict=True))
        self.legend = HTML(legend_of(tuple(escape(name) for name in self.record.names)))
        self.legend.add_class("ew-legend")
        return self.legend, *(panel.figure for panel in self.panels)

    def _panel(self, name: str, css_class: str) -> _Panel:
        x_scale, y_scale = make_scale(), make_scale()
        scales = {"x": x_scale, "y": y_scale}
        n_chains = self.record.n_chains
        colours = [chain_colour(place) for place in range(n_chains)]
        lines = bqplot.Lines(
            x=np.zeros(2),
            y=np.zeros((n_chains, 2)),
            scales=scales,
            colors=colours,
            stroke_width=1.2,
            opacities=[0.85] * n_chains,
            visible=False,
        )
        start = bqplot.Lines(
            x=np.zeros(2),
            y=np.zeros(2),
            scales=scales,
            colors=["#d55e00"],
            stroke_width=1.0,
            line_style="dotted",
            visible=False,
        )
        axes = [make_axis(x_scale), make_axis(y_scale, name, vertical=True)]
        figure = make_figure(css_class, 108, (5, 16, 18, 52), marks=[start, lines], axes=axes)
        assign(axes[1], label_offset="38px")
        return _Panel(axes, lines, start, figure)

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Start with empty traces."""
        for panel in self.panels:
            assign(panel.lines, visible=False)

    def draw(self, frame: Frame) -> None:
        """Send the traces, thinned."""
        length = self.length(frame)
        places = thinned(length)
        first = frame.status.shown_iteration - length
        last = first + horizon(length, frame.status.target - first)
        iterations = first + 1.0 + places
        start = float(first + self.record.start(length))
        for panel, values in zip(self.panels, self._values(places), strict=True):
            x_axis, y_axis = panel.axes
            set_iterations(x_axis, float(first), last)
            if not length:
                assign(panel.lines, visible=False)
                assign(panel.start, visible=False)
                continue
            # The way from the starts would squeeze everything after it.
            settled = values[:, values.shape[1] // 4 :]
            low, high = nice_limits(float(settled.min()), float(settled.max()))
            set_limits(y_axis.scale, y_axis, low, high, ticks=3)
            assign(panel.lines, x=iterations, y=np.clip(values, low, high), visible=True)
            assign(panel.start, x=np.full(2, start), y=np.array([low, high]), visible=start > first)

    def _values(self, places: NDArray[np.intp]) -> tuple[FloatArray, ...]:
        recorders = self.record.recorders
        rows = (
            [recorder.n_clusters[places] for recorder in recorders],
            [recorder.log_posterior[places] for recorder in recorders],
            [np.log2(recorder.theta[places]) for recorder in recorders],
        )
        return tuple(np.stack(values).astype(np.float64) for values in rows)

    def paint(self, axes: "Axes") -> None:
        """Draw the numbers of clusters with matplotlib."""
        lines = self.panels[0].lines
        if lines.visible:
            for place, (values, name) in enumerate(zip(np.asarray(lines.y), self.record.names, strict=True)):
                axes.plot(lines.x, values, color=chain_colour(place), linewidth=0.9, label=name)
            axes.legend(fontsize=7)
        axes.set_xlabel("iteration")
        axes.set_ylabel("clusters")
