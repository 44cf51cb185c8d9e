"""The charts of the prior lab: how many clusters, of what sizes, and how their number grows.

Each chart puts what happened beside what must happen: draws as bars or steps, exact laws as lines, so that a
class can watch the bars grow into the lines. The dashed line is a mixture of k components with
Dirichlet(λ/k) weights, which becomes the Ewens prior as k grows; the total variation distance below the law
of K says how far it still is.

A draw only changes bars; laws are computed when the prior changes, which `prepare` is told of.
"""

from typing import TYPE_CHECKING

import bqplot
import numpy as np
from ipywidgets import Widget

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors import ewens
from ewens_widgets.model.priors.dirichlet_multinomial import expected_sizes, finite_count_pmf
from ewens_widgets.model.priors.ewens import expected_growth
from ewens_widgets.model.priors.partition_prior import total_variation
from ewens_widgets.views.base import Panel, assign, chip, note
from ewens_widgets.views.figures import make_axis, make_figure, make_scale, set_limits
from ewens_widgets.views.prior_lab.seating import Tally

__all__ = ["GrowthPanel", "LawPanel", "SizesPanel", "size_bins"]

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DRAWS, _EXACT, _FINITE, _LIMIT, _PATH = "#8ab8d8", "#0072b2", "#d55e00", "#808080", "#009e73"
_NEGLIGIBLE = 1e-4
_MARGIN = (6, 8, 34, 44)


class _DrawsChart(Panel):
    """Draws as bars, and what two laws expect of them as lines.

    Parameters
    ----------
    names
        Of the two axes.
    height
        Of the figure, in pixels.
    below
        What is below the figure.
    """

    def __init__(self, names: tuple[str, str], height: int, below: tuple[Widget, ...] = ()) -> None:
        self._names = names
        self._n_components = 1
        self._x_scale, self._y_scale = make_scale(), make_scale()
        self._scales = {"x": self._x_scale, "y": self._y_scale}
        nothing = {"x": np.arange(2.0), "y": np.zeros(2), "scales": self._scales}
        self.draws = bqplot.Bars(**nothing, colors=[_DRAWS], padding=0.15, stroke="transparent")
        self.exact = bqplot.Lines(
            **nothing, colors=[_EXACT], marker="circle", marker_size=22, stroke_width=1.5
        )
        self.finite = bqplot.Lines(
            **nothing,
            colors=[_FINITE],
            marker="cross",
            marker_size=26,
            stroke_width=1.2,
            line_style="dashed",
        )
        self._x_axis = make_axis(self._x_scale, names[0])
        self._y_axis = make_axis(self._y_scale, names[1], vertical=True)
        self.figure = make_figure(
            f"{self.css_class}-figure",
            height,
            _MARGIN,
            marks=[self.draws, self.exact, self.finite],
            axes=[self._x_axis, self._y_axis],
        )
        super().__init__((self.figure, *below))

    def paint(self, axes: "Axes") -> None:
        """Draw bars and lines with matplotlib."""
        axes.bar(self.draws.x, self.draws.y, 0.8, color=_DRAWS, label="draws")
        axes.plot(self.exact.x, self.exact.y, "o-", color=_EXACT, markersize=3, label="exact law")
        axes.plot(
            self.finite.x,
            self.finite.y,
            "x--",
            color=_FINITE,
            markersize=3,
            label=f"k = {self._n_components}",
        )
        axes.set(xlabel=self._names[0], ylabel=self._names[1])


class LawPanel(_DrawsChart):
    """Number of clusters: draws against the exact law, and the law of finitely many components."""

    title = "Number of clusters K"
    css_class = "ew-law"
    description = "Share of draws with each number of clusters, its exact law, and that of k components"

    def __init__(self) -> None:
        self.legend = note("ew-legend")
        self.result = note("ew-result")
        self._law: FloatArray = np.array([0.0, 1.0])
        self._shown = slice(1, 2)
        super().__init__(("clusters K", "probability"), 230, (self.legend, self.result))
        assign(self._y_axis, label_offset="36px")
        self.mean = _line(self._scales, _EXACT, stroke_width=1.0, line_style="dotted")
        assign(self.figure, marks=[self.draws, self.mean, self.exact, self.finite])

    def prepare(self, n: int, concentration: float, n_components: int) -> None:
        """Turn to another prior."""
        self._law = ewens.cluster_count_pmf(n, concentration)
        finite = finite_count_pmf(n, concentration, n_components)
        visible = np.flatnonzero(np.maximum(self._law, finite) > _NEGLIGIBLE)
        low, high = int(visible[0]), int(visible[-1])
        self._shown = slice(low, high + 1)
        places = np.arange(float(low), high + 1.0)
        top = 1.15 * max(self._law.max(), finite.max())
        set_limits(self._x_scale, self._x_axis, low - 0.7, high + 0.7, ticks=8)
        set_limits(self._y_scale, self._y_axis, 0.0, top)
        self._mean = ewens.expected_clusters(n, concentration)
        self._limit = concentration * np.log(n)
        self._distance = total_variation(self._law, finite)
        self._n_components = n_components
        assign(self.exact, x=places, y=self._law[self._shown])
        assign(self.finite, x=places, y=finite[self._shown])
        assign(self.mean, x=np.full(2, self._mean), y=np.array([0.0, top]))
        assign(
            self.legend,
            value=" ".join(
                [
                    chip(_DRAWS, "draws"),
                    chip(_EXACT, "exact law (⋯ its mean)"),
                    chip(_FINITE, f"k = {n_components} components", is_line=True),
                ]
            ),
        )

    def show(self, tally: Tally) -> None:
        """Show the draws so far."""
        share = tally.frequencies()[self._shown]
        assign(self.draws, x=np.arange(float(self._shown.start), self._shown.stop), y=np.round(share, 6))
        drawn = f"{tally.mean_clusters():.3f}" if tally.n_draws else "–"
        distance = f"{total_variation(tally.frequencies(), self._law):.3f}" if tally.n_draws else "–"
        assign(
            self.result,
            value=(
                f'mean K: exact <b class="ew-mean">{self._mean:.3f}</b>, draws '
                f'<b class="ew-draws-mean">{drawn}</b>, λ log n = {self._limit:.2f}<br>'
                "total variation distance from the exact law:<br>"
                f'draws <b class="ew-draws-distance">{distance}</b>, '
                f'k = {self._n_components} components <b class="ew-distance">{self._distance:.4f}</b>'
            ),
        )

    def paint(self, axes: "Axes") -> None:
        """Draw bars, lines and the mean with matplotlib."""
        super().paint(axes)
        axes.axvline(self._mean, color=_EXACT, linestyle=":")
        axes.legend(frameon=False, fontsize=8)


class SizesPanel(_DrawsChart):
    """How many clusters of each size a partition has on average."""

    title = "Sizes of clusters"
    css_class = "ew-sizes"
    description = "Mean number of clusters by size: draws, and expected"

    def __init__(self) -> None:
        self._bin_names: list[str] = []
        self._bins: FloatArray = np.zeros((1, 2))
        super().__init__(("members of a cluster", "clusters"), 190)

    def prepare(self, n: int, concentration: float, n_components: int) -> None:
        """Turn to another prior."""
        self._n_components = n_components
        self._bin_names, self._bins = size_bins(n)
        places = np.arange(float(len(self._bin_names)))
        expected = self._bins @ expected_sizes(n, concentration)
        finite = self._bins @ expected_sizes(n, concentration, n_components)
        assign(self._x_scale, min=-0.7, max=places[-1] + 0.7)
        assign(
            self._x_axis,
            tick_values=places,
            tick_labels={str(int(place)): name for place, name in zip(places, self._bin_names, strict=True)},
        )
        set_limits(self._y_scale, self._y_axis, 0.0, 1.25 * max(expected.max(), finite.max()), ticks=3)
        assign(self.exact, x=places, y=expected)
        assign(self.finite, x=places, y=finite)

    def show(self, tally: Tally) -> None:
        """Show the draws so far."""
        means = self._bins @ tally.mean_sizes()
        assign(self.draws, x=np.arange(float(means.size)), y=np.round(means, 6))

    def paint(self, axes: "Axes") -> None:
        """Draw bars and lines with matplotlib."""
        super().paint(axes)
        axes.set_xticks(range(len(self._bin_names)), self._bin_names, fontsize=8)


class GrowthPanel(Panel):
    """How the number of clusters grows with the number of guests, on a logarithmic scale of guests."""

    title = "Growth: K against guests"
    css_class = "ew-growth"
    description = "Expected number of clusters by number of guests, lambda log n, and this restaurant"

    def __init__(self) -> None:
        self._x_scale, self._y_scale = bqplot.LogScale(min=1.0, max=2.0), make_scale()
        scales = {"x": self._x_scale, "y": self._y_scale}
        self.exact = _line(scales, _EXACT, stroke_width=1.8)
        self.limit = _line(scales, _LIMIT, stroke_width=1.5, line_style="dashed")
        self.path = _line(scales, _PATH, stroke_width=1.8, interpolation="step-after")
        self._x_axis = make_axis(self._x_scale, "guests (logarithmic)")
        self._y_axis = make_axis(self._y_scale, "clusters", vertical=True)
        self.figure = make_figure(
            f"{self.css_class}-figure",
            150,
            _MARGIN,
            marks=[self.limit, self.exact, self.path],
            axes=[self._x_axis, self._y_axis],
        )
        legend = " ".join(
            [
                chip(_EXACT, "expected", is_line=True),
                chip(_LIMIT, "λ log n", is_line=True),
                chip(_PATH, "this restaurant", is_line=True),
            ]
        )
        super().__init__((self.figure, note("ew-legend", legend)))

    def prepare(self, n: int, concentration: float) -> None:
        """Turn to another prior."""
        # Enough points for a smooth curve.
        guests = np.unique(np.round(np.geomspace(1, n, 80)).astype(int))
        growth = expected_growth(n, concentration)[guests - 1]
        limit = concentration * np.log(guests)
        ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if tick <= n]
        assign(self._x_scale, max=float(n))
        assign(self._x_axis, tick_values=np.array(ticks, dtype=np.float64))
        set_limits(self._y_scale, self._y_axis, 0.0, 1.35 * max(growth[-1], limit[-1], 1.0), ticks=3)
        assign(self.exact, x=guests.astype(np.float64), y=growth)
        assign(self.limit, x=guests.astype(np.float64), y=limit)

    def show(self, path: list[int]) -> None:
        """Show the path of the restaurant on display."""
        steps = np.array(path, dtype=np.float64)
        # Where nothing changes no point is needed.
        kept = np.flatnonzero(np.diff(steps, prepend=0.0, append=0.0)[: steps.size] != 0.0)
        kept = np.union1d(kept, [steps.size - 1]) if steps.size else kept
        assign(self.path, x=kept + 1.0, y=steps[kept])

    def paint(self, axes: "Axes") -> None:
        """Draw the lines with matplotlib."""
        axes.semilogx(self.exact.x, self.exact.y, color=_EXACT, label="expected")
        axes.semilogx(self.limit.x, self.limit.y, "--", color=_LIMIT, label="λ log n")
        axes.step(self.path.x, self.path.y, where="post", color=_PATH, label="this restaurant")
        axes.set(xlabel="guests", ylabel="clusters")
        axes.legend(frameon=False, fontsize=8)


def size_bins(n: int) -> tuple[list[str], FloatArray]:
    """Sizes in bins that double: names, and a matrix that adds up the values of sizes 0, …, n."""
    tops = [1]
    while tops[-1] < n:
        tops.append(2 * tops[-1])
    lows = [1, *(top + 1 for top in tops[:-1])]
    highs = [*tops[:-1], min(tops[-1], n)]
    sizes = np.arange(n + 1)
    rows = [(sizes >= low) & (sizes <= high) for low, high in zip(lows, highs, strict=True)]
    names = [str(low) if low == high else f"{low}–{high}" for low, high in zip(lows, highs, strict=True)]
    return names, np.array(rows, dtype=np.float64)


def _line(scales: dict[str, bqplot.Scale], colour: str, **traits: object) -> bqplot.Lines:
    return bqplot.Lines(x=np.ones(2), y=np.ones(2), scales=scales, colors=[colour], **traits)
