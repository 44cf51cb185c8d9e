"""The charts of the prior lab: the number of clusters, their sizes, and how their number grows.

Each chart compares draws with their exact distribution, for one prior or for two: draws are bars or steps,
exact values lines. The first prior is blue with dots, the second orange with crosses and dashes. The total
variation distance below the distribution of K measures how far the two priors are from each other, and how
far the draws are from their exact distribution.

A draw only changes bars; `prepare` computes the exact values when a prior changes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
_MARKS = (
    {"marker": "circle", "marker_size": 22},
    {"marker": "cross", "marker_size": 26, "line_style": "dashed"},
)
_PAPER = ("o-", "x--")
_MARGIN = (6, 16, 34, 47)  # the last number of a logarithmic axis extends beyond its end
_HEIGHT = 105  # least height of a figure; they share what there is
_NEGLIGIBLE = 1e-4
_TAIL = 1e-9
_FIRST_COUNTS = 64
_CURVE = 60
_MOST_FULL_NAMES = 7


class _DrawsChart(Panel):
    """Draws as bars, and what each prior expects of them as lines.

    Parameters
    ----------
    names
        Of the two axes.
    below
        What is below the figure.
    hint
        What is beside the heading.
    """

    def __init__(self, names: tuple[str, str], below: tuple[Widget, ...] = (), hint: str = "") -> None:
        self._names = names
        self._titles: list[str] = []
        self._x_scale, self._y_scale = make_scale(), make_scale()
        self._scales = {"x": self._x_scale, "y": self._y_scale}
        nothing = {"x": np.arange(2.0), "y": np.zeros(2), "scales": self._scales}
        self.draws = bqplot.Bars(
            **nothing, colors=[*_DRAWS], type="grouped", padding=0.15, stroke="transparent"
        )
        self.exact = tuple(
            bqplot.Lines(**nothing, colors=[colour], stroke_width=1.5, **marks)
            for colour, marks in zip(COLOURS, _MARKS, strict=True)
        )
        self._x_axis = make_axis(self._x_scale, names[0])
        self._y_axis = make_axis(self._y_scale, names[1], vertical=True)
        assign(self._y_axis, label_offset="36px")
        self.figure = make_figure(
            f"{self.css_class}-figure",
            _HEIGHT,
            _MARGIN,
            marks=[self.draws, *self.exact],
            axes=[self._x_axis, self._y_axis],
        )
        super().__init__((self.figure, *below), (note("ew-hint", hint),) if hint else ())

    def _show_exact(self, places: FloatArray, exact: Sequence[FloatArray]) -> None:
        for place, line in enumerate(self.exact):
            is_there = place < len(exact)
            assign(line, visible=is_there, x=places, y=exact[place] if is_there else np.zeros(places.size))

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
        for line, title, colour, style in zip(self.exact, self._titles, COLOURS, _PAPER, strict=False):
            axes.plot(line.x, line.y, style, color=colour, markersize=3, label=title)
        axes.set(xlabel=self._names[0], ylabel=self._names[1])


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
        self._exact_shares: list[FloatArray] = [np.array([0.0, 1.0])]
        self._means: list[float] = [1.0]
        self._shown = slice(1, 2)
        super().__init__(("clusters K", "probability"), (self.result,), "bars: draws · lines: exact")

    def prepare(self, n: int, priors: Sequence[PartitionPrior]) -> None:
        """Turn to other priors."""
        self._exact_shares = [count_distribution(prior, n) for prior in priors]
        self._means = [prior.expected_clusters(n) for prior in priors]
        self._titles = [prior_name(prior) for prior in priors]
        highest = np.max(self._exact_shares, axis=0)
        visible = np.flatnonzero(highest > _NEGLIGIBLE)
        low, high = int(visible[0]), int(visible[-1])
        self._shown = slice(low, high + 1)
        set_limits(self._x_scale, self._x_axis, low - 0.7, high + 0.7, ticks=8)
        set_limits(self._y_scale, self._y_axis, 0.0, 1.15 * highest.max())
        self._show_exact(
            np.arange(float(low), high + 1.0), [shares[self._shown] for shares in self._exact_shares]
        )

    def show(self, tallies: Sequence[Tally]) -> None:
        """Show the draws so far."""
        places = np.arange(float(self._shown.start), self._shown.stop)
        self._show_draws(places, [tally.frequencies()[self._shown] for tally in tallies])
        rows = []
        for place, (tally, exact, mean) in enumerate(
            zip(tallies, self._exact_shares, self._means, strict=True)
        ):
            drawn = f"{tally.mean_clusters():.3f}" if tally.n_draws else "–"
            distance = f"{total_variation(tally.frequencies(), exact):.3f}" if tally.n_draws else "–"
            name = chip(COLOURS[place], self._titles[place])
            rows.append(
                f'<tr class="ew-prior-{place + 1}"><th scope="row">{name}</th>'
                f'<td class="ew-mean">{mean:.3f}</td><td class="ew-draws-mean">{drawn}</td>'
                f'<td class="ew-draws-distance">{distance}</td></tr>'
            )
        text = (
            "<table><tr><td></td><th>mean K</th><th>of draws</th><th>distance</th></tr>"
            f"{''.join(rows)}</table>"
        )
        if len(self._exact_shares) > 1:
            apart = total_variation(*self._exact_shares)
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
        super().__init__(("members of a cluster", "clusters"), hint="bars: draws · lines: expected")

    def prepare(self, n: int, priors: Sequence[PartitionPrior]) -> None:
        """Turn to other priors."""
        self._titles = [prior_name(prior) for prior in priors]
        self._bin_names, self._bins = size_bins(n)
        places = np.arange(float(len(self._bin_names)))
        expected = []
        for prior in priors:
            most = int(np.flatnonzero(count_distribution(prior, n))[-1])
            expected.append(self._bins @ prior.expected_sizes(n, most))
        assign(self._x_scale, min=-0.7, max=places[-1] + 0.7)
        # Of many bins only the least size is written, or their names would run into each other.
        is_short = len(self._bin_names) > _MOST_FULL_NAMES
        ticks = [name[: name.find("–") + 1] or name if is_short else name for name in self._bin_names]
        labels = {str(place): tick for place, tick in enumerate(ticks)}
        assign(self._x_axis, tick_values=places, tick_labels=labels)
        set_limits(self._y_scale, self._y_axis, 0.0, 1.25 * np.max(expected), ticks=3)
        self._show_exact(places, expected)

    def show(self, tallies: Sequence[Tally]) -> None:
        """Show the draws so far."""
        places = np.arange(float(len(self._bin_names)))
        self._show_draws(places, [self._bins @ tally.mean_sizes() for tally in tallies])

    def paint(self, axes: "Axes") -> None:
        """Draw bars and lines with matplotlib."""
        super().paint(axes)
        axes.set_xticks(range(len(self._bin_names)), self._bin_names, fontsize=8)


class GrowthPanel(Panel):
    """How the number of clusters grows with the number of guests, on a logarithmic scale of guests."""

    title = "Growth of K"
    css_class = "ew-growth"
    description = "Expected number of clusters by number of guests, and these restaurants, for each prior"
    about = (
        "How the number of clusters grows with the number of objects. A straight line on this scale is "
        "logarithmic growth; a horizontal one means that more objects do not add clusters."
    )

    def __init__(self) -> None:
        self._titles: list[str] = []
        self._x_scale, self._y_scale = bqplot.LogScale(min=1.0, max=2.0), make_scale()
        scales = {"x": self._x_scale, "y": self._y_scale}
        styles = ("solid", "dashed")
        self.exact = tuple(
            _line(scales, colour, stroke_width=1.8, line_style=style)
            for colour, style in zip(COLOURS, styles, strict=True)
        )
        self.paths = tuple(
            _line(scales, colour, stroke_width=1.8, interpolation="step-after") for colour in _DRAWS
        )
        self._x_axis = make_axis(self._x_scale, "guests (logarithmic)")
        self._y_axis = make_axis(self._y_scale, "clusters", vertical=True)
        self.figure = make_figure(
            f"{self.css_class}-figure",
            _HEIGHT,
            _MARGIN,
            marks=[*self.paths, *self.exact],
            axes=[self._x_axis, self._y_axis],
        )
        super().__init__((self.figure,), (note("ew-hint", "dark: expected · light: this restaurant"),))

    def prepare(self, n: int, priors: Sequence[PartitionPrior]) -> None:
        """Turn to other priors."""
        self._titles = [prior_name(prior) for prior in priors]
        guests = np.unique(np.round(np.geomspace(1, n, _CURVE)).astype(int))
        curves = [np.array([prior.expected_clusters(int(m)) for m in guests]) for prior in priors]
        ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if tick <= n]
        assign(self._x_scale, max=float(n))
        assign(self._x_axis, tick_values=np.array(ticks, dtype=np.float64))
        set_limits(self._y_scale, self._y_axis, 0.0, 1.35 * max(curve[-1] for curve in curves), ticks=3)
        for place, line in enumerate(self.exact):
            is_there = place < len(curves)
            curve = curves[place] if is_there else np.ones(guests.size)
            assign(line, visible=is_there, x=guests.astype(np.float64), y=curve)

    def show(self, paths: Sequence[NDArray[np.intp]]) -> None:
        """Show the paths of the restaurants on display."""
        for place, line in enumerate(self.paths):
            steps = np.array(paths[place] if place < len(paths) else [], dtype=np.float64)
            # Where nothing changes no point is needed.
            kept = np.flatnonzero(np.diff(steps, prepend=0.0, append=0.0)[: steps.size] != 0.0)
            kept = np.union1d(kept, [steps.size - 1]) if steps.size else kept
            assign(line, x=kept + 1.0, y=steps[kept])

    def paint(self, axes: "Axes") -> None:
        """Draw the lines with matplotlib."""
        for path, exact, title, place in zip(self.paths, self.exact, self._titles, range(2), strict=False):
            axes.step(path.x, path.y, where="post", color=_DRAWS[place])
            axes.semilogx(exact.x, exact.y, _PAPER[place][1:], color=COLOURS[place], label=title)
        axes.set(xlabel="guests", ylabel="clusters")
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
