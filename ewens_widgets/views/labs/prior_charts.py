"""The charts of the prior lab: the number of clusters, their sizes, and how their number grows.

Each chart compares draws with their exact distribution, for one prior or for two: draws are bars or steps,
exact values lines. The first prior is blue with dots, the second orange with crosses and dashes. The total
variation distance below the distribution of K measures how far the two priors are from each other, and how
far the draws are from their exact distribution.

A draw only changes bars; `prepare` computes the exact values when a prior changes.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import bqplot
import numpy as np
from ipywidgets import Widget
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors import PartitionPrior
from ewens_widgets.model.priors.partition_prior import total_variation
from ewens_widgets.views.base import Panel, assign, chip, note
from ewens_widgets.views.figures import make_axis, make_figure, make_scale, set_limits
from ewens_widgets.views.labs.restaurant import Tally
from ewens_widgets.views.prior_chooser import prior_name

COLOURS = ("#0072b2", "#d55e00")
"""Of the first and of the second prior."""

_DRAWS = ("#8ab8d8", "#f0b78a")
_STYLES: tuple[dict[str, Any], ...] = ({"line_style": "solid"}, {"line_style": "dashed"})
_MARKERS: tuple[dict[str, Any], ...] = (
    {"marker": "circle", "marker_size": 22},
    {"marker": "cross", "marker_size": 26},
)
_MARGIN = (6, 16, 34, 47)  # the last number of a logarithmic axis extends beyond its end
_HEIGHT = 105  # least height of a figure; the figures share the column
_NEGLIGIBLE = 1e-4
_TAIL = 1e-9
_FIRST_COUNTS = 64
_CURVE = 60
_MOST_FULL_NAMES = 7


class PriorChart(Panel):
    """Draws, and what each prior expects as lines; the draws are bars at whole numbers, if not paths."""

    axis_names = ("", "")
    hint = ""

    def __init__(self, *below: Widget) -> None:
        scales = {"x": self.make_scale(), "y": make_scale()}
        self._x_axis = make_axis(scales["x"], self.axis_names[0])
        self._y_axis = make_axis(scales["y"], self.axis_names[1], vertical=True)
        assign(self._y_axis, label_offset="36px")
        self.exact = tuple(
            bqplot.Lines(
                x=np.ones(2), y=np.ones(2), scales=scales, colors=[colour], stroke_width=1.6, **style
            )
            for colour, style in zip(COLOURS, self.styles(), strict=True)
        )
        self.figure = make_figure(
            f"{self.css_class}-figure",
            _HEIGHT,
            _MARGIN,
            marks=[*self.make_draws(scales), *self.exact],
            axes=[self._x_axis, self._y_axis],
        )
        super().__init__((self.figure, *below), (note("ew-hint", self.hint),))

    def make_scale(self) -> bqplot.Scale:
        """Scale of the horizontal axis."""
        return make_scale()

    def styles(self) -> Sequence[dict[str, Any]]:
        """Traits of the line of each prior."""
        return [{**style, **marker} for style, marker in zip(_STYLES, _MARKERS, strict=True)]

    def make_draws(self, scales: dict[str, bqplot.Scale]) -> tuple[bqplot.Mark, ...]:
        """Marks of the draws."""
        style = {"colors": [*_DRAWS], "type": "grouped", "padding": 0.15, "stroke": "transparent"}
        # One colour per prior; otherwise the bars of a single prior would have alternating colours.
        style["color_mode"] = "element"
        self.draws = bqplot.Bars(x=np.arange(2.0), y=np.zeros(2), scales=scales, **style)
        return (self.draws,)

    def show_exact(
        self, priors: Sequence[PartitionPrior], places: FloatArray, curves: Sequence[FloatArray], room: float
    ) -> None:
        """Show a curve for each prior, with some room above them."""
        set_limits(self._y_axis.scale, self._y_axis, 0.0, room * float(np.max(curves)), ticks=4)
        for line, prior, curve in zip_longest(self.exact, priors, curves):
            values = np.zeros(places.size) if curve is None else curve
            names = [] if prior is None else [prior_name(prior)]
            assign(line, visible=prior is not None, x=places, y=values, labels=names)

    def show_draws(self, places: FloatArray, shares: Sequence[FloatArray]) -> None:
        """Show a bar for each prior and place."""
        heights = np.round(shares, 6)
        assign(self.draws, x=places, y=heights if len(shares) > 1 else heights[0])


class DistributionPanel(PriorChart):
    """Number of clusters: draws against the exact distribution, of each prior."""

    title = "Number of clusters K"
    css_class = "ew-distribution"
    description = "Share of draws with each number of clusters, and its exact distribution, for each prior"
    about = (
        "The distribution of the number of clusters before any data. Lines are exact, bars are draws: with "
        "more draws the bars approach the lines."
    )
    axis_names, hint = ("clusters K", "probability"), "bars: draws · lines: exact"

    def __init__(self) -> None:
        self.result = note("ew-result")
        super().__init__(self.result)

    def prepare(self, n: int, priors: Sequence[PartitionPrior]) -> None:
        """Show other priors."""
        self._shares = [count_distribution(prior, n) for prior in priors]
        self._heads = [
            f'<th scope="row">{chip(colour, prior_name(prior))}</th>'
            f'<td class="ew-mean">{prior.expected_clusters(n):.3f}</td>'
            for colour, prior in zip(COLOURS, priors, strict=False)
        ]
        visible = np.flatnonzero(np.max(self._shares, axis=0) > _NEGLIGIBLE)
        low, high = int(visible[0]), int(visible[-1])
        self._shown = slice(low, high + 1)
        set_limits(self._x_axis.scale, self._x_axis, low - 0.7, high + 0.7, ticks=8)
        curves = [shares[self._shown] for shares in self._shares]
        self.show_exact(priors, np.arange(float(low), high + 1.0), curves, room=1.15)

    def show(self, tallies: Sequence[Tally]) -> None:
        """Show the draws so far."""
        places = np.arange(float(self._shown.start), self._shown.stop)
        self.show_draws(places, [tally.frequencies()[self._shown] for tally in tallies])
        rows = ["<tr><td></td><th>mean K</th><th>of draws</th><th>distance</th></tr>"]
        for place, (tally, shares, head) in enumerate(zip(tallies, self._shares, self._heads, strict=True)):
            drawn = distance = "–"
            if tally.n_draws:
                drawn = f"{tally.mean_clusters():.3f}"
                distance = f"{total_variation(tally.frequencies(), shares):.3f}"
            rows.append(
                f'<tr class="ew-prior-{place + 1}">{head}<td class="ew-draws-mean">{drawn}</td>'
                f'<td class="ew-draws-distance">{distance}</td></tr>'
            )
        text = f"<table>{''.join(rows)}</table>"
        if len(self._shares) > 1:
            apart = total_variation(*self._shares)
            text += f'Total variation distance of the two priors: <b class="ew-distance">{apart:.4f}</b>'
        assign(self.result, value=text)


class SizesPanel(PriorChart):
    """How many clusters of each size a partition has on average."""

    title = "Sizes of clusters"
    css_class = "ew-sizes"
    description = "Mean number of clusters by size: draws, and expected, for each prior"
    about = (
        "How many clusters of each size a partition has on average. Some priors expect a few large clusters, "
        "others many small ones in addition."
    )
    axis_names, hint = ("members of a cluster", "clusters"), "bars: draws · lines: expected"

    def prepare(self, n: int, priors: Sequence[PartitionPrior]) -> None:
        """Show other priors."""
        names, self._bins = size_bins(n)
        places = np.arange(float(len(names)))
        expected = []
        for prior in priors:
            most = int(np.flatnonzero(count_distribution(prior, n))[-1])
            expected.append(self._bins @ prior.expected_sizes(n, most))
        assign(self._x_axis.scale, min=-0.7, max=places[-1] + 0.7)
        # Of many bins only the smallest size is written, or their names would overlap.
        is_short = len(names) > _MOST_FULL_NAMES
        ticks = [name[: name.find("–") + 1] or name if is_short else name for name in names]
        labels = {str(place): tick for place, tick in enumerate(ticks)}
        assign(self._x_axis, tick_values=places, tick_labels=labels)
        self.show_exact(priors, places, expected, room=1.25)

    def show(self, tallies: Sequence[Tally]) -> None:
        """Show the draws so far."""
        drawn = [self._bins @ tally.mean_sizes() for tally in tallies]
        self.show_draws(np.arange(float(len(self._bins))), drawn)


class GrowthPanel(PriorChart):
    """How the number of clusters grows with the number of guests, on a logarithmic scale of guests."""

    title = "Growth of K"
    css_class = "ew-growth"
    description = "Expected number of clusters by number of guests, and these restaurants, for each prior"
    about = (
        "How the number of clusters grows with the number of objects. A straight line on this scale is "
        "logarithmic growth; a horizontal one means that more objects do not add clusters."
    )
    axis_names, hint = ("guests (logarithmic)", "clusters"), "dark: expected · light: this restaurant"

    def make_scale(self) -> bqplot.Scale:
        """Scale of the horizontal axis."""
        return bqplot.LogScale(min=1.0, max=2.0)

    def styles(self) -> Sequence[dict[str, Any]]:
        """Traits of the line of each prior."""
        return _STYLES

    def make_draws(self, scales: dict[str, bqplot.Scale]) -> tuple[bqplot.Mark, ...]:
        """Paths of the restaurants."""
        style = {"stroke_width": 1.8, "interpolation": "step-after", "scales": scales}
        self.paths = tuple(
            bqplot.Lines(x=np.ones(2), y=np.ones(2), colors=[colour], **style) for colour in _DRAWS
        )
        return self.paths

    def prepare(self, n: int, priors: Sequence[PartitionPrior]) -> None:
        """Show other priors."""
        guests = np.unique(np.round(np.geomspace(1, n, _CURVE)).astype(int))
        ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if tick <= n]
        assign(self._x_axis.scale, max=float(n))
        assign(self._x_axis, tick_values=np.array(ticks, dtype=np.float64))
        curves = [np.array([prior.expected_clusters(int(m)) for m in guests]) for prior in priors]
        self.show_exact(priors, guests.astype(np.float64), curves, room=1.35)

    def show(self, paths: Sequence[NDArray[np.intp]]) -> None:
        """Show the paths of the restaurants on display."""
        for line, path in zip_longest(self.paths, paths, fillvalue=np.zeros(0, dtype=np.intp)):
            # Only the points at which the line changes, and the last one.
            kept = np.flatnonzero(np.diff(path, prepend=0))
            kept = np.union1d(kept, [path.size - 1]) if path.size else kept
            assign(line, x=kept + 1.0, y=path[kept].astype(np.float64))


def count_distribution(prior: PartitionPrior, n: int) -> FloatArray:
    """Distribution of the number of clusters 0, 1, …, n, but for a tail of less than 10⁻⁹.

    Where a parameter is averaged over, the probabilities of all n numbers would take seconds, and most are 0.
    """
    most = min(n, _FIRST_COUNTS)
    while True:
        shares = prior.count_pmf(n, most)
        if most == n or shares.sum() > 1.0 - _TAIL:
            return np.concatenate([shares, np.zeros(n - most)])
        most = min(n, 2 * most)


def size_bins(n: int) -> tuple[list[str], FloatArray]:
    """Sizes in bins that double: names, and a matrix that adds up the values of sizes 0, …, n."""
    sizes = np.arange(1, n + 1)
    places = np.ceil(np.log2(sizes)).astype(int)
    bins = [sizes[places == place] for place in range(places[-1] + 1)]
    names = [f"{members[0]}–{members[-1]}" if members.size > 1 else f"{members[0]}" for members in bins]
    return names, np.array([np.isin(np.arange(n + 1), members) for members in bins], dtype=np.float64)
