"""The traces of several chains, one over the other."""

from html import escape
from typing import TYPE_CHECKING

import numpy as np
from ipywidgets import HTML, Widget
from numpy.typing import NDArray

from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.views.figures import horizon
from ewens_widgets.views.teaching.chains_view_stage import ChainsSubview, chain_colour, legend_of
from ewens_widgets.views.traces_view import thinned, trace_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ChainTraces"]

FloatArray = NDArray[np.float64]


class ChainTraces(ChainsSubview):
    """Number of clusters, log posterior and θ of every chain."""

    title = "Traces"
    css_class = "ew-chain-traces"
    description = "Number of clusters, log posterior and theta of every chain over the iterations"
    rest = 0.25

    def build(self) -> tuple[Widget, ...]:
        """Make three small figures."""
        colours = [chain_colour(place) for place in range(self.record.n_chains)]
        self.panels = trace_panels(colours, height=108, left=52)
        self.legend = HTML(legend_of(tuple(escape(name) for name in self.record.names)))
        self.legend.add_class("ew-legend")
        return self.legend, *(panel.figure for panel in self.panels)

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Start with empty traces."""
        for panel in self.panels:
            panel.clear()

    def draw(self, frame: Frame) -> None:
        """Send the traces, thinned."""
        length = self.length(frame)
        places = thinned(length)
        first = frame.status.shown_iteration - length
        last = first + horizon(length, frame.status.target - first)
        iterations = (first + 1 + places).astype(np.float64)
        start = float(first + self.record.start(length))
        for panel, values in zip(self.panels, self._values(places), strict=True):
            panel.show((float(first), last), iterations, values, start)

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
