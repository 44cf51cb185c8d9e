"""R-hat and effective sample size as they evolve, and whether the chains agree, in a sentence."""

from html import escape
from typing import TYPE_CHECKING

import bqplot
import numpy as np
from ipywidgets import HTML, Widget

from ewens_widgets.analysis.convergence import (
    GOOD_RHAT,
    QUANTITIES,
    WANTED_ESS,
    Diagnostics,
    followed_names,
)
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.views.base import assign
from ewens_widgets.views.chains_view.chain_pictures import ChainsSubview
from ewens_widgets.views.figures import (
    horizon,
    make_axis,
    make_figure,
    make_scale,
    nice_limits,
    set_iterations,
    set_limits,
)

__all__ = ["ChainDiagnostics"]

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_RHAT = 2.0
"""R-hats beyond this are drawn at the upper edge."""

COLOURS = {
    "n_clusters": "#0072b2",
    "theta": "#009e73",
    "log_posterior": "#d55e00",
    "largest_cluster": "#cc79a7",
    "concentration": "#e69f00",
}
_GOAL = "#808080"


class ChainDiagnostics(ChainsSubview):
    """Curves of R-hat and effective sample size, with a table of the latest numbers."""

    title = "Do the chains agree?"
    css_class = "ew-chain-diagnostics"
    description = "R-hat and effective sample size over the iterations, and a table of the latest numbers"
    rest = 0.5

    def build(self) -> tuple[Widget, ...]:
        """Make two small figures and a table."""
        self.rhat, self._rhat_axes, rhat_figure = self._curves("R-hat", "ew-rhat", GOOD_RHAT)
        self.ess, self._ess_axes, ess_figure = self._curves("ESS bulk", "ew-ess", WANTED_ESS)
        self.table = HTML()
        self.table.add_class("ew-chain-numbers")
        self.drawn = 0  # Draws up to which the latest numbers are.
        self._names: tuple[str, ...] = ()
        return rhat_figure, ess_figure, self.table

    def _curves(
        self, name: str, css_class: str, goal: float
    ) -> tuple[bqplot.Lines, list[bqplot.Axis], bqplot.Figure]:
        x_scale, y_scale = make_scale(), make_scale()
        scales = {"x": x_scale, "y": y_scale}
        lines = bqplot.Lines(
            x=np.zeros(2),
            y=np.zeros((len(QUANTITIES), 2)),
            scales=scales,
            colors=list(COLOURS.values()),
            stroke_width=1.6,
            visible=False,
        )
        line = bqplot.Lines(
            x=np.array([0.0, 1e9]),
            y=np.full(2, goal),
            scales=scales,
            colors=[_GOAL],
            stroke_width=1.0,
            line_style="dashed",
        )
        axes = [make_axis(x_scale), make_axis(y_scale, name, vertical=True)]
        assign(axes[1], label_offset="38px")
        figure = make_figure(css_class, 108, (5, 16, 18, 52), marks=[line, lines], axes=axes)
        return lines, axes, figure

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Start with empty curves."""
        self._names = followed_names(posterior)
        assign(self.rhat, visible=False)
        assign(self.ess, visible=False)
        assign(self.table, value="")

    def draw(self, frame: Frame) -> None:
        """Send the curves and the latest numbers."""
        length = self.length(frame)
        first = frame.status.shown_iteration - length
        last = first + horizon(length, frame.status.target - first)
        course = self.record.course(length, int(last - first))
        places = np.array([first + place for place, _ in course], dtype=np.float64)
        self._draw_rhat(places, course, first, last)
        self._draw_ess(places, course, first, last)
        assign(self.table, value=self._numbers_table(self.record.agreement(length)) if length else "")
        self.drawn = length

    def _draw_rhat(
        self, places: FloatArray, course: list[tuple[int, Diagnostics]], first: int, last: float
    ) -> None:
        x_axis, y_axis = self._rhat_axes
        set_iterations(x_axis, float(first), last)
        set_limits(y_axis.scale, y_axis, 0.95, MOST_RHAT, ticks=4)
        values = [[found.rhat[name] for _, found in course] for name in self._names]
        # What never changes has nothing to disagree about.
        clipped = np.clip(np.nan_to_num(np.array(values), nan=1.0, posinf=MOST_RHAT), 0.95, MOST_RHAT)
        assign(self.rhat, **_shown(places, clipped))

    def _draw_ess(
        self, places: FloatArray, course: list[tuple[int, Diagnostics]], first: int, last: float
    ) -> None:
        x_axis, y_axis = self._ess_axes
        set_iterations(x_axis, float(first), last)
        values = np.array([[found.ess_bulk[name] for _, found in course] for name in self._names])
        high = max(1.2 * WANTED_ESS, float(values.max()) if values.size else 0.0)
        set_limits(y_axis.scale, y_axis, 0.0, nice_limits(0.0, high)[1], ticks=4)
        assign(self.ess, **_shown(places, values))

    def _numbers_table(self, agreement: Diagnostics) -> str:
        """Table of the latest R-hats and effective sample sizes; it is the legend of the curves as well."""
        rows = ["<tr><th></th><th>R-hat</th><th>ESS bulk</th><th>tail</th></tr>"]
        for name in self._names:
            swatch = f'<span class="ew-swatch ew-line" style="background:{COLOURS[name]}"></span>'
            cells = "<td>–</td><td>–</td><td>–</td>"
            if agreement.is_known:
                rhat, bulk, tail = agreement.rhat[name], agreement.ess_bulk[name], agreement.ess_tail[name]
                shown = "constant" if np.isnan(rhat) else f"{rhat:.3f}" if np.isfinite(rhat) else "∞"
                cells = (
                    f'<td data-rhat="{name}" data-value="{rhat!r}">{shown}</td>'
                    f'<td data-ess="{name}" data-value="{bulk!r}">{bulk:.0f}</td>'
                    f'<td data-tail="{name}" data-value="{tail!r}">{tail:.0f}</td>'
                )
            rows.append(f"<tr><td>{swatch}{escape(QUANTITIES[name])}</td>{cells}</tr>")
        note = f"{agreement.n_draws} draws of each chain count; the dashed lines are the goals"
        return f"<table>{''.join(rows)}</table><div class='ew-counted'>{note}</div>"

    def paint(self, axes: "Axes") -> None:
        """Draw R-hat with matplotlib."""
        if self.rhat.visible:
            for name, values in zip(self._names, np.asarray(self.rhat.y), strict=True):
                axes.plot(self.rhat.x, values, color=COLOURS[name], label=QUANTITIES[name])
            axes.legend(fontsize=7)
        axes.axhline(GOOD_RHAT, color=_GOAL, linestyle="--", linewidth=0.8)
        axes.set_ylim(0.95, MOST_RHAT)
        axes.set_xlabel("iteration")
        axes.set_ylabel("R-hat")


def _shown(places: FloatArray, values: FloatArray) -> dict[str, object]:
    """Traits of curves; fewer than two points make no line."""
    if places.size < 2:
        return {"visible": False}
    return {"x": places, "y": values, "visible": True}
