"""Number of clusters, log posterior and θ over the iterations, and how often moves are accepted."""

from html import escape
from typing import TYPE_CHECKING

import numpy as np
from ipywidgets import HTML, Widget

from ewens_widgets.datasets import Dataset
from ewens_widgets.model.concentration import Gamma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.views.base import View, assign
from ewens_widgets.views.figures import horizon
from ewens_widgets.views.trace_panel import thinned, trace_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TracesView"]

_COLOUR = "#0072b2"


class TracesView(View):
    """Traces with the end of burn-in, and acceptance rates by move."""

    title = "Traces"
    css_class = "ew-traces"
    description = "Number of clusters, log posterior and theta over the iterations, with acceptance rates"
    rest = 0.25

    def build(self) -> tuple[Widget, ...]:
        """Make three small figures and a table."""
        self.panels = trace_panels([_COLOUR], height=92, left=46)
        self.acceptance = HTML()
        self.acceptance.add_class("ew-acceptance")
        return *(panel.figure for panel in self.panels), self.acceptance

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Start with empty traces."""
        self._learns = isinstance(posterior.concentration, Gamma)
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
            panel.show((0.0, last), iterations, trace, float(self.stage.burn_in))
        learned = ""
        if self._learns and len(summary):
            average = float(summary.concentration[summary.start :].mean())
            learned = f"<div>λ: {summary.concentration[-1]:.3g} now, {average:.3g} on average</div>"
        assign(self.acceptance, value=_acceptance_table(summary.acceptance()) + learned)

    def paint(self, axes: "Axes") -> None:
        """Draw number of clusters and log posterior with matplotlib."""
        clusters, posterior, _ = self.panels
        axes.plot(clusters.lines.x, clusters.lines.y, color=_COLOUR, linewidth=0.9)
        axes.set_ylabel("clusters", color=_COLOUR)
        axes.set_xlabel("iteration")
        other = axes.twinx()
        other.plot(posterior.lines.x, posterior.lines.y, color="#d55e00", linewidth=0.9)
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
