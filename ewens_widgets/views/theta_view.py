"""What is known about the variance ratio θ: prior, the draw's own conditional, and the average of these."""

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
from ewens_widgets.views.base import View, assign, chip, note
from ewens_widgets.views.figures import Spot, make_axis, make_figure, make_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ThetaView"]

_POSTERIOR, _CONDITIONAL, _PRIOR = OKABE_ITO[0], OKABE_ITO[1], "#808080"
_MOST_TICKS = 6


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
            colors=[_POSTERIOR, _CONDITIONAL],
            padding=0.15,
            stroke="transparent",
        )
        self.prior = bqplot.Lines(
            x=np.arange(2.0),
            y=np.zeros(2),
            scales=scales,
            colors=[_PRIOR],
            stroke_width=1.5,
            line_style="dashed",
        )
        self._x_axis = make_axis(self._x_scale)
        y_axis = make_axis(y_scale, vertical=True)
        self.figure = make_figure(
            "ew-theta-bars", 76, (6, 6, 20, 34), marks=[self.bars, self.prior], axes=[self._x_axis, y_axis]
        )
        self.figure.tell = self._tell
        chips = (chip(_POSTERIOR, "average"), chip(_CONDITIONAL, "now"), chip(_PRIOR, "prior", is_line=True))
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
        axes.bar(places - 0.2, heights[0], 0.4, color=_POSTERIOR, label="average")
        axes.bar(places + 0.2, heights[1], 0.4, color=_CONDITIONAL, label="this draw")
        axes.plot(places, np.asarray(self.prior.y), color=_PRIOR, linestyle="--", label="prior")
        axes.set_xticks(places[::2], [theta_text(value) for value in self._grid[::2]], rotation=45)
        axes.set_ylim(0.0, 1.0)
        axes.legend(frameon=False)
