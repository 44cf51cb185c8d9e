"""R-hat and effective sample size as they evolve, with a table of the latest numbers.

The class sees both curves come to their dashed lines: R-hat down to 1 and the effective sample size up. Which
quantities are followed, how the numbers are computed and when they are good is `analysis.convergence` alone;
the same numbers are behind `report()` and `until`, so a lecturer and a script cannot come to two verdicts.
"""

from html import escape
from typing import TYPE_CHECKING

import numpy as np
from ipywidgets import Widget

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
from ewens_widgets.views.base import assign, note
from ewens_widgets.views.chains_view.chain_pictures import ChainsSubview
from ewens_widgets.views.figures import horizon, nice_limits, set_iterations, set_limits
from ewens_widgets.views.traces_view import Curves

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
    "nu": "#56b4e9",
}
_GOAL = "#808080"


class ChainDiagnostics(ChainsSubview):
    """Curves of R-hat and effective sample size, with a table of the latest numbers."""

    title = "Do the chains agree?"
    css_class = "ew-chain-diagnostics"
    description = "R-hat and effective sample size over the iterations, and a table of the latest numbers"
    about = (
        "R-hat compares how chains differ from each other with how each varies by itself: 1 is perfect. The "
        "effective sample size is how many independent draws they are worth."
    )
    rest = 0.5

    def build(self) -> tuple[Widget, ...]:
        """Make two small figures and a table."""
        self.rhat = self._curves("R-hat", "ew-rhat", GOOD_RHAT)
        self.ess = self._curves("ESS bulk", "ew-ess", WANTED_ESS)
        self.table = note("ew-chain-numbers")
        self.drawn = 0  # Draws up to which the latest numbers are.
        self._names: tuple[str, ...] = ()
        return self.rhat.figure, self.ess.figure, self.table

    @staticmethod
    def _curves(name: str, css_class: str, goal: float) -> Curves:
        curves = Curves(name, css_class, tuple(COLOURS.values()), height=108, left=52)
        everywhere = {"x": np.array([0.0, 1e9]), "y": np.full(2, goal)}
        assign(curves.behind, **everywhere, colors=[_GOAL], line_style="dashed")
        return curves

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Start with empty curves."""
        self._names = followed_names(posterior)
        self.rhat.clear()
        self.ess.clear()
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
        x_axis, y_axis = self.rhat.axes
        set_iterations(x_axis, float(first), last)
        set_limits(y_axis.scale, y_axis, 0.95, MOST_RHAT, ticks=4)
        values = [[found.rhat[name] for _, found in course] for name in self._names]
        # What never changes has nothing to disagree about.
        clipped = np.clip(np.nan_to_num(np.array(values), nan=1.0, posinf=MOST_RHAT), 0.95, MOST_RHAT)
        assign(self.rhat.lines, **_shown(places, clipped))

    def _draw_ess(
        self, places: FloatArray, course: list[tuple[int, Diagnostics]], first: int, last: float
    ) -> None:
        x_axis, y_axis = self.ess.axes
        set_iterations(x_axis, float(first), last)
        values = np.array([[found.ess_bulk[name] for _, found in course] for name in self._names])
        high = max(1.2 * WANTED_ESS, float(values.max()) if values.size else 0.0)
        set_limits(y_axis.scale, y_axis, 0.0, nice_limits(0.0, high)[1], ticks=4)
        assign(self.ess.lines, **_shown(places, values))

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
        counted = f"{agreement.n_draws} draws of each chain count; the dashed lines are the goals"
        return f"<table>{''.join(rows)}</table><div class='ew-counted'>{counted}</div>"

    def paint(self, axes: "Axes") -> None:
        """Draw R-hat with matplotlib."""
        lines = self.rhat.lines
        if lines.visible:
            for name, values in zip(self._names, np.asarray(lines.y), strict=True):
                axes.plot(lines.x, values, color=COLOURS[name], label=QUANTITIES[name])
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
