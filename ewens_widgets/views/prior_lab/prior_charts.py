"""The charts of the prior lab: how many clusters, of what sizes, and how their number grows."""

from typing import TYPE_CHECKING

import bqplot
import numpy as np

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

_DRAWS, _EXACT, _FINITE, _LIMIT = "#8ab8d8", "#0072b2", "#d55e00", "#808080"
_NEGLIGIBLE = 1e-4
_MARGIN = (6, 8, 34, 44)


def _draws_bars(places: FloatArray, scales: dict[str, bqplot.Scale]) -> bqplot.Bars:
    return bqplot.Bars(
        x=places,
        y=np.zeros_like(places),
        scales=scales,
        colors=[_DRAWS],
        padding=0.15,
        stroke="transparent",
    )


def _exact_line(places: FloatArray, scales: dict[str, bqplot.Scale]) -> bqplot.Lines:
    return bqplot.Lines(
        x=places,
        y=np.zeros_like(places),
        scales=scales,
        colors=[_EXACT],
        marker="circle",
        marker_size=22,
        stroke_width=1.5,
    )


def _finite_line(places: FloatArray, scales: dict[str, bqplot.Scale]) -> bqplot.Lines:
    return bqplot.Lines(
        x=places,
        y=np.zeros_like(places),
        scales=scales,
        colors=[_FINITE],
        marker="cross",
        marker_size=26,
        stroke_width=1.2,
        line_style="dashed",
    )


class LawPanel(Panel):
    """Number of clusters: draws against the exact law, and the law of finitely many components."""

    title = "Number of clusters K"
    css_class = "ew-law"
    description = "Share of draws with each number of clusters, its exact law, and that of k components"

    def __init__(self) -> None:
        self._x_scale, self._y_scale = make_scale(), make_scale()
        scales = {"x": self._x_scale, "y": self._y_scale}
        places, nothing = np.arange(1.0, 3.0), np.zeros(2)
        self.draws = _draws_bars(places, scales)
        self.exact = _exact_line(places, scales)
        self.finite = _finite_line(places, scales)
        self.mean = bqplot.Lines(
            x=nothing, y=nothing, scales=scales, colors=[_EXACT], stroke_width=1.0, line_style="dotted"
        )
        self._x_axis = make_axis(self._x_scale, "clusters K")
        self._y_axis = make_axis(self._y_scale, "probability", vertical=True)
        self._y_axis.label_offset = "36px"
        self.figure = make_figure(
            "ew-law-figure",
            230,
            _MARGIN,
            marks=[self.draws, self.mean, self.exact, self.finite],
            axes=[self._x_axis, self._y_axis],
        )
        self.legend = note("ew-legend")
        self.result = note("ew-result")
        self._law: FloatArray = np.array([0.0, 1.0])
        self._shown = slice(1, 2)
        super().__init__((self.figure, self.legend, self.result))

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
        axes.axvline(self._mean, color=_EXACT, linestyle=":")
        axes.set(xlabel="clusters K", ylabel="probability")
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


class SizesPanel(Panel):
    """How many clusters of each size a partition has on average."""

    title = "Sizes of clusters"
    css_class = "ew-sizes"
    description = "Mean number of clusters by size: draws, and expected"

    def __init__(self) -> None:
        self._x_scale, self._y_scale = make_scale(), make_scale()
        scales = {"x": self._x_scale, "y": self._y_scale}
        places = np.arange(2.0)
        self.draws = _draws_bars(places, scales)
        self.expected = _exact_line(places, scales)
        self.finite = _finite_line(places, scales)
        self._x_axis = make_axis(self._x_scale, "members of a cluster")
        self._y_axis = make_axis(self._y_scale, "clusters", vertical=True)
        self.figure = make_figure(
            "ew-sizes-figure",
            190,
            _MARGIN,
            marks=[self.draws, self.expected, self.finite],
            axes=[self._x_axis, self._y_axis],
        )
        self._names: list[str] = []
        self._bins: FloatArray = np.zeros((1, 2))
        super().__init__((self.figure,))

    def prepare(self, n: int, concentration: float, n_components: int) -> None:
        """Turn to another prior."""
        self._names, self._bins = size_bins(n)
        places = np.arange(float(len(self._names)))
        expected = self._bins @ expected_sizes(n, concentration)
        finite = self._bins @ expected_sizes(n, concentration, n_components)
        assign(self._x_scale, min=-0.7, max=places[-1] + 0.7)
        assign(
            self._x_axis,
            tick_values=places,
            tick_labels={str(int(place)): name for place, name in zip(places, self._names, strict=True)},
        )
        set_limits(self._y_scale, self._y_axis, 0.0, 1.25 * max(expected.max(), finite.max()), ticks=3)
        assign(self.expected, x=places, y=expected)
        assign(self.finite, x=places, y=finite)

    def show(self, tally: Tally) -> None:
        """Show the draws so far."""
        means = self._bins @ tally.mean_sizes()
        assign(self.draws, x=np.arange(float(means.size)), y=np.round(means, 6))

    def paint(self, axes: "Axes") -> None:
        """Draw bars and lines with matplotlib."""
        axes.bar(self.draws.x, self.draws.y, 0.8, color=_DRAWS)
        axes.plot(self.expected.x, self.expected.y, "o-", color=_EXACT, markersize=3)
        axes.plot(self.finite.x, self.finite.y, "x--", color=_FINITE, markersize=3)
        axes.set_xticks(range(len(self._names)), self._names, fontsize=8)
        axes.set(xlabel="members of a cluster", ylabel="clusters")


class GrowthPanel(Panel):
    """How the number of clusters grows with the number of guests, on a logarithmic scale of guests."""

    title = "Growth: K against guests"
    css_class = "ew-growth"
    description = "Expected number of clusters by number of guests, lambda log n, and this restaurant"

    def __init__(self) -> None:
        self._x_scale, self._y_scale = bqplot.LogScale(min=1.0, max=2.0), make_scale()
        scales = {"x": self._x_scale, "y": self._y_scale}
        nothing = np.ones(2)
        self.exact = bqplot.Lines(x=nothing, y=nothing, scales=scales, colors=[_EXACT], stroke_width=1.8)
        self.limit = bqplot.Lines(
            x=nothing, y=nothing, scales=scales, colors=[_LIMIT], stroke_width=1.5, line_style="dashed"
        )
        self.path = bqplot.Lines(
            x=nothing,
            y=nothing,
            scales=scales,
            colors=["#009e73"],
            stroke_width=1.8,
            interpolation="step-after",
        )
        self._x_axis = make_axis(self._x_scale, "guests (logarithmic)")
        self._y_axis = make_axis(self._y_scale, "clusters", vertical=True)
        self.figure = make_figure(
            "ew-growth-figure",
            150,
            _MARGIN,
            marks=[self.limit, self.exact, self.path],
            axes=[self._x_axis, self._y_axis],
        )
        legend = " ".join(
            [
                chip(_EXACT, "expected", is_line=True),
                chip(_LIMIT, "λ log n", is_line=True),
                chip("#009e73", "this restaurant", is_line=True),
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
        axes.step(self.path.x, self.path.y, where="post", color="#009e73", label="this restaurant")
        axes.set(xlabel="guests", ylabel="clusters")
        axes.legend(frameon=False, fontsize=8)
