"""A small figure of one quantity over the iterations, of one chain or of several."""

from collections.abc import Sequence

import bqplot
import numpy as np
from numpy.typing import NDArray

from ewens_widgets.views.base import assign
from ewens_widgets.views.figures import (
    make_axis,
    make_figure,
    make_scale,
    nice_limits,
    set_iterations,
    set_limits,
)

__all__ = ["TracePanel", "thinned", "trace_panels"]

MOST_POINTS = 240

FloatArray = NDArray[np.float64]


def thinned(length: int, most: int = MOST_POINTS) -> NDArray[np.intp]:
    """Places of at most so many points of a trace; the last one is always among them."""
    step = max(1, -(-length // most))
    return np.arange(length - 1, -1, -step)[::-1]


class TracePanel:
    """Lines of all chains, and a dotted one where the draws begin that are kept.

    Parameters
    ----------
    name
        Of the quantity.
    css_class
        Of the figure.
    colours
        One a chain.
    height
        Of the figure, in pixels.
    left
        Room for the numbers of the axis, in pixels.
    """

    def __init__(self, name: str, css_class: str, colours: Sequence[str], height: int, left: int) -> None:
        x_scale, y_scale = make_scale(), make_scale()
        scales = {"x": x_scale, "y": y_scale}
        self.lines = bqplot.Lines(
            x=np.zeros(2),
            y=np.zeros((len(colours), 2)),
            scales=scales,
            colors=list(colours),
            stroke_width=1.2,
            opacities=[0.85 if len(colours) > 1 else 1.0] * len(colours),
            visible=False,
        )
        self.start = bqplot.Lines(
            x=np.zeros(2),
            y=np.zeros(2),
            scales=scales,
            colors=["#d55e00"],
            stroke_width=1.0,
            line_style="dotted",
            visible=False,
        )
        self.axes = [make_axis(x_scale), make_axis(y_scale, name, vertical=True)]
        assign(self.axes[1], label_offset=f"{left - 14}px")
        self.figure = make_figure(
            css_class, height, (5, 16, 18, left), marks=[self.start, self.lines], axes=self.axes
        )

    def show(
        self, span: tuple[float, float], iterations: FloatArray, values: FloatArray, start: float
    ) -> None:
        """Show the traces.

        Parameters
        ----------
        span
            First and last iteration of the axis.
        iterations, values
            Of the points; the values of several chains have a row for each.
        start
            Where the draws begin that are kept.
        """
        x_axis, y_axis = self.axes
        first, last = span
        set_iterations(x_axis, first, last)
        if iterations.size:
            # The way from the start would squeeze everything after it.
            settled = values[..., values.shape[-1] // 4 :]
            low, high = nice_limits(float(settled.min()), float(settled.max()))
            set_limits(y_axis.scale, y_axis, low, high, ticks=3)
            if iterations.size == 1:  # Of a single point bqplot would drop the axis, and mix up the chains.
                iterations, values = np.repeat(iterations, 2), np.repeat(values, 2, axis=-1)
            assign(self.lines, x=iterations, y=np.clip(values, low, high), visible=True)
        else:
            self.clear()
        limits = np.array([y_axis.scale.min, y_axis.scale.max])
        assign(self.start, x=np.full(2, start), y=limits, visible=first < start < last)

    def clear(self) -> None:
        """Show no trace."""
        assign(self.lines, visible=False)


def trace_panels(colours: Sequence[str], height: int, left: int) -> tuple[TracePanel, ...]:
    """Panels of the number of clusters, the log posterior and θ; parameters as for each of them."""
    named = {
        "clusters": "ew-trace-clusters",
        "log posterior": "ew-trace-posterior",
        "log₂ θ": "ew-trace-theta",
    }
    return tuple(TracePanel(name, css_class, colours, height, left) for name, css_class in named.items())
