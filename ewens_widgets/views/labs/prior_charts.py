"""The charts of the prior lab: the number of clusters, their sizes, and how their number grows.

Each chart compares draws with their exact distribution, for one prior or for two: draws are bars or steps,
exact values lines. The first prior is blue with dots, the second orange with crosses and dashes. The total
variation distance below the distribution of K measures how far the two priors are from each other, and how
far the draws are from their exact distribution.

A draw only changes bars; `prepare` computes the exact values when a prior changes.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import bqplot
import numpy as np
from ipywidgets import Widget
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors import PartitionPrior
from ewens_widgets.model.priors.partition_prior import total_variation
from ewens_widgets.views.base import Panel, assign, chip, note
from ewens_widgets.views.figures import make_axis, make_figure, make_scale, set_limits
from ewens_widgets.views.labs.seating import Tally
from ewens_widgets.views.prior_chooser import prior_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072b2", "#d55e00")
"""Of the first and of the second prior."""

_DRAWS = ("#8ab8d8", "#f0b78a")
_MARKS: tuple[dict[str, Any], ...] = (
    {"stroke_width": 1.5, "marker": "circle", "marker_size": 22},
    {"stroke_width": 1.5, "marker": "cross", "marker_size": 26, "line_style": "dashed"},
)
_PAPER = ("o-", "x--")
_MARGIN = (6, 16, 34, 47)  # the last number of a logarithmic axis extends beyond its end
_HEIGHT = 105  # least height of a figure; the figures share the column
_NEGLIGIBLE = 1e-4
_TAIL = 1e-9
_FIRST_COUNTS = 64
_CURVE = 60
_MOST_FULL_NAMES = 7


class _Chart(Panel):
    """Draws, and what each prior expects as lines; `names` are those of the axes."""

    def __init__(
        self,
        names: tuple[str, str],
        x_scale: bqplot.Scale,
        draws: Callable[[dict[str, bqplot.Scale]], tuple[bqplot.Mark, ...]],
        marks: Sequence[dict[str, Any]],
        hint: str,
        below: tuple[Widget, ...] = (),
    ) -> None:
        self._names = names
        self._titles: list[str] = []
        scales = {"x": x_scale, "y": make_scale()}
        self._x_axis = make_axis(x_scale, names[0])
        self._y_axis = make_axis(scales["y"], names[1], vertical=True)
        assign(self._y_axis, label_offset="36px")
        self.exact = tuple(
            bqplot.Lines(x=np.ones(2), y=np.ones(2), scales=scales, colors=[colour], **traits)
            for colour, traits in zip(COLOURS, marks, strict=True)
        )
        self.figure = make_figure(
            f"{self.css_class}-figure",
            _HEIGHT,
            _MARGIN,
            marks=[*draws(scales), *self.exact],
            axes=[self._x_axis, self._y_axis],
        )
        super().__init__((self.figure, *below), (note("ew-hint", hint),))

    def _show_exact(
        self, places: FloatArray, curves: Sequence[FloatArray], room: float, ticks: int = 3
    ) -> None:
        """Show a curve for each prior, with some room above them."""
        highest = float(np.max([curve.max() for curve in curves]))
        set_limits(self._y_axis.scale, self._y_axis, 0.0, room * highest, ticks=ticks)
        for place, line in enumerate(self.exact):
            is_there = place < len(curves)
            values = curves[place] if is_there else np.zeros(places.size)
            assign(line, visible=is_there, x=places, y=values)

    def paint(self, axes: "Axes") -> None:
        """Draw the lines with matplotlib."""
        for line, title, colour, style in zip(self.exact, self._titles, COLOURS, _PAPER, strict=False):
            axes.plot(line.x, line.y, style, color=colour, markersize=3, label=title)
        axes.set(xlabel=self._names[0], ylabel=self._names[1])


class _DrawsChart(_Chart):
    """Draws as bars, at whole numbers."""

    def __init__(self, names: tuple[str, str], hint: str, below: tuple[Widget, ...] = ()) -> None:
        super().__init__(names, make_scale(), self._make_bars, _MARKS, hint, below)

    def _make_bars(self, scales: dict[str, bqplot.Scale]) -> tuple[bqplot.Mark, ...]:
        style = {"colors": [*_DRAWS], "type": "grouped", "padding": 0.15, "stroke": "transparent"}
        # One colour per prior; otherwise the bars of a single prior would have alternating colours.
        style["color_mode"] = "element"
        self.draws = bqplot.Bars(x=np.arange(2.0), y=np.zeros(2), scales=scales, **style)
        return (self.draws,)

    def _show_draws(self, places: FloatArray, shares: Sequence[FloatArray]) -> None:
        heights = np.round(shares, 6)
        assign(self.draws, x=places, y=heights if len(shares) > 1 else heights[0])

    def paint(self, axes: "Axes") -> None:
        """Draw bars and lines with matplotlib."""
        rows = np.atleast_2d(self.draws.y)
        width = 0.8 / len(rows)
        for place, heights in enumerate(rows):
            offset = (place - (len(rows) - 1) / 2) * width
            axes.bar(self.draws.x + offset, heights, width, color=_DRAWS[place])
        super().paint(axes)


class DistributionPanel(_DrawsChart):
    """Number of clusters: draws against the exact distribution, of each prior."""

    title = "Number of clusters K"
    css_class = "ew-distribution"
    description = "Share of draws with each number of clusters, and its exact distribution, for each prior"
    about = (
        "The distribution of the number of clusters before any data. Lines are exact, bars are draws: with "
        "more draws the bars approach the lines."
    )

    def __init__(self) -> None:
        self.result = note("ew-result")
        self._shares: list[FloatArray] = [np.array([0.0, 1.0])]
        self._means: list[float] = [1.0]
        self._shown = slice(1, 2)
        super().__init__(("clusters K", "probability"), "bars: draws · lines: exact", (self.result,))

    def prepare(self, n: int, priors: Sequence[PartitionPrior]) -> None:
        """Show other priors."""
        self._shares = [count_distribution(prior, n) for prior in priors]
        self._means = [prior.expected_clusters(n) for prior in priors]
        self._titles = [prior_name(prior) for prior in priors]
        visible = np.flatnonzero(np.max(self._shares, axis=0) > _NEGLIGIBLE)
        low, high = int(visible[0]), int(visible[-1])
        self._shown = slice(low, high + 1)
        set_limits(self._x_axis.scale, self._x_axis, low - 0.7, high + 0.7, ticks=8)
        shares = [shares[self._shown] for shares in self._shares]
        self._show_exact(np.arange(float(low), high + 1.0), shares, room=1.15, ticks=4)

    def show(self, tallies: Sequence[Tally]) -> None:
        """Show the draws so far."""
        places = np.arange(float(self._shown.start), self._shown.stop)
        self._show_draws(places, [tally.frequencies()[self._shown] for tally in tallies])
        rows = ["<tr><td></td><th>mean K</th><th>of draws</th><th>distance</th></tr>"]
        for place, (tally, shares, mean) in enumerate(zip(tallies, self._shares, self._means, strict=True)):
            drawn = distance = "–"
            if tally.n_draws:
                drawn = f"{tally.mean_clusters():.3f}"
                distance = f"{total_variation(tally.frequencies(), shares):.3f}"
            rows.append(
                f'<tr class="ew-prior-{place + 1}">'
                f'<th scope="row">{chip(COLOURS[place], self._titles[place])}</th>'
                f'<td class="ew-mean">{mean:.3f}</td><td class="ew-draws-mean">{drawn}</td>'
                f'<td class="ew-draws-distance">{distance}</td></tr>'
            )
        text = f"<table>{''.join(rows)}</table>"
        if len(self._shares) > 1:
            apart = total_variation(*self._shares)
            text += f'Total variation distance of the two priors: <b class="ew-distance">{apart:.4f}</b>'
        assign(self.result, value=text)

    def paint(self, axes: "Axes") -> None:
        """Draw bars, lines and names with matplotlib."""
        super().paint(axes)
        axes.legend(frameon=False, fontsize=7)


class SizesPanel(_DrawsChart):
    """How many clusters of each size a partition has on average."""

    title = "Sizes of clusters"
    css_class = "ew-sizes"
    description = "Mean number of clusters by size: draws, and expected, for each prior"
    about = (
        "How many clusters of each size a partition has on average. Some priors expect a few large clusters, "
        "others many small ones in addition."
    )

    def __init__(self) -> None:
        self._bin_names: list[str] = []
        self._bins: FloatArray = np.zeros((1, 2))
        super().__init__(("members of a cluster", "clusters"), "bars: draws · lines: expected")

    def prepare(self, n: int, priors: Sequence[PartitionPrior]) -> None:
        """Show other priors."""
        self._titles = [prior_name(prior) for prior in priors]
        self._bin_names, self._bins = size_bins(n)
        places = np.arange(float(len(self._bin_names)))
        expected = []
        for prior in priors:
            most = int(np.flatnonzero(count_distribution(prior, n))[-1])
            expected.append(self._bins @ prior.expected_sizes(n, most))
        assign(self._x_axis.scale, min=-0.7, max=places[-1] + 0.7)
        # Of many bins only the smallest size is written, or their names would overlap.
        is_short = len(self._bin_names) > _MOST_FULL_NAMES
        ticks = [name[: name.find("–") + 1] or name if is_short else name for name in self._bin_names]
        labels = {str(place): tick for place, tick in enumerate(ticks)}
        assign(self._x_axis, tick_values=places, tick_labels=labels)
        self._show_exact(places, expected, room=1.25)

    def show(self, tallies: Sequence[Tally]) -> None:
        """Show the draws so far."""
        places = np.arange(float(len(self._bin_names)))
        self._show_draws(places, [self._bins @ tally.mean_sizes() for tally in tallies])

    def paint(self, axes: "Axes") -> None:
        """Draw bars and lines with matplotlib."""
        super().paint(axes)
        axes.set_xticks(range(len(self._bin_names)), self._bin_names, fontsize=8)


class GrowthPanel(_Chart):
    """How the number of clusters grows with the number of guests, on a logarithmic scale of guests."""

    title = "Growth of K"
    css_class = "ew-growth"
    description = "Expected number of clusters by number of guests, and these restaurants, for each prior"
    about = (
        "How the number of clusters grows with the number of objects. A straight line on this scale is "
        "logarithmic growth; a horizontal one means that more objects do not add clusters."
    )

    def __init__(self) -> None:
        names, hint = ("guests (logarithmic)", "clusters"), "dark: expected · light: this restaurant"
        marks = [{"stroke_width": 1.8, "line_style": style} for style in ("solid", "dashed")]
        super().__init__(names, bqplot.LogScale(min=1.0, max=2.0), self._make_paths, marks, hint)

    def _make_paths(self, scales: dict[str, bqplot.Scale]) -> tuple[bqplot.Mark, ...]:
        style = {"stroke_width": 1.8, "interpolation": "step-after"}
        self.paths = tuple(
            bqplot.Lines(x=np.ones(2), y=np.ones(2), scales=scales, colors=[colour], **style)
            for colour in _DRAWS
        )
        return self.paths

    def prepare(self, n: int, priors: Sequence[PartitionPrior]) -> None:
        """Show other priors."""
        self._titles = [prior_name(prior) for prior in priors]
        guests = np.unique(np.round(np.geomspace(1, n, _CURVE)).astype(int))
        ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if tick <= n]
        assign(self._x_axis.scale, max=float(n))
        assign(self._x_axis, tick_values=np.array(ticks, dtype=np.float64))
        curves = [np.array([prior.expected_clusters(int(m)) for m in guests]) for prior in priors]
        self._show_exact(guests.astype(np.float64), curves, room=1.35)

    def show(self, paths: Sequence[NDArray[np.intp]]) -> None:
        """Show the paths of the restaurants on display."""
        for place, line in enumerate(self.paths):
            steps = np.array(paths[place] if place < len(paths) else [], dtype=np.float64)
            # Only the points at which the line changes.
            kept = np.flatnonzero(np.diff(steps, prepend=0.0, append=0.0)[: steps.size] != 0.0)
            kept = np.union1d(kept, [steps.size - 1]) if steps.size else kept
            assign(line, x=kept + 1.0, y=steps[kept])

    def paint(self, axes: "Axes") -> None:
        """Draw the lines with matplotlib."""
        for path, colour, _ in zip(self.paths, _DRAWS, self._titles, strict=False):
            axes.step(path.x, path.y, where="post", color=colour)
        super().paint(axes)
        axes.set_xscale("log")
        axes.legend(frameon=False, fontsize=7)


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
