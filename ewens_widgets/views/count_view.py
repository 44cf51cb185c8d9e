"""How many clusters there are: the share of draws with each number, beside what the prior alone would say."""

from typing import TYPE_CHECKING

import bqplot
import numpy as np
from ipywidgets import Widget
from numpy.typing import NDArray

from ewens_widgets.analysis.plots.palette import OKABE_ITO
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.playback.frame import number_text
from ewens_widgets.views.base import View, assign, chip, note
from ewens_widgets.views.figures import Spot, make_axis, make_figure, make_scale, nice_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CountView"]

_DRAWS, _PRIOR = OKABE_ITO[0], "#808080"
_LEAST, _MOST = 8, 60  # numbers on the axis
_MOST_OBJECTS = 20_000
_HEIGHTS = (0.2, 0.4, 1.0)  # where the axis of shares may end: it changes rarely


class CountView(View):
    """Bars of the numbers of clusters, and a line for the prior."""

    title = "How many clusters?"
    css_class = "ew-counts"
    description = "Bars: share of the draws with each number of clusters; line: the prior"
    about = (
        "Each bar is the share of the draws, after the burn-in, that have so many clusters. The dashed line "
        "is what the prior would say without any data; where bars and line differ, the data have spoken."
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
        self.prior = bqplot.Lines(
            x=np.arange(1.0, 3.0),
            y=np.zeros(2),
            scales=scales,
            colors=[_PRIOR],
            stroke_width=1.5,
            line_style="dashed",
        )
        self._axes = [make_axis(self._x_scale), make_axis(self._y_scale, vertical=True)]
        self.figure = make_figure(
            "ew-count-bars", 70, (6, 6, 20, 34), marks=[self.bars, self.prior], axes=self._axes
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
        self._draw_bars(np.zeros(0, dtype=np.intp))

    def draw(self, frame: Frame) -> None:
        """Send the heights of the bars."""
        self._draw_bars(frame.summary.n_clusters[frame.summary.start :].astype(np.intp))

    def _draw_bars(self, counts: NDArray[np.intp]) -> None:
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
        chips = chip(_DRAWS, draws), chip(_PRIOR, "prior", is_line=True)
        assign(self.legend, value=" ".join(chips))

    def _last(self, counts: NDArray[np.intp]) -> int:
        """Where the axis ends: by steps, beyond nearly all draws and most of the prior."""
        draws = int(np.quantile(counts, 0.99)) if counts.size else 1
        prior = 1 + int(np.searchsorted(np.cumsum(self._law), 0.95 * self._law.sum()))
        return min(self._most, max(_LEAST, 4 * -(-max(draws, prior) // 4)))

    def paint(self, axes: "Axes") -> None:
        """Draw the bars with matplotlib."""
        axes.bar(np.asarray(self.bars.x), np.asarray(self.bars.y), 0.8, color=_DRAWS, label="share of draws")
        axes.plot(np.asarray(self.prior.x), np.asarray(self.prior.y), "--", color=_PRIOR, label="prior")
        axes.set_xlabel("clusters")
        axes.legend(frameon=False)
