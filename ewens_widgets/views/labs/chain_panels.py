"""Traces of several chains one over the other, and what each has found as a picture beside the pooled one.

Each chain keeps its colour in all of them. Traces that start apart and run together are the first thing that
a class sees; pictures that look alike say that the chains agree on the clusters too, not only how many.
All pictures are in the order of the pooled tree, so that the same place is the same pair of objects.

R-hat and effective sample size are shown as they evolve, with a table of the latest numbers: the class sees
both curves come to their dashed lines, R-hat down to 1 and the effective sample size up. Which quantities are
followed, how the numbers are computed and when they are good is `analysis.convergence` alone; the same
numbers are behind `report()` and `until`, so a lecturer and a script cannot come to two verdicts.

These views read the records of all chains from their shared state: a frame only tells how far to look.
"""

import time
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from ipywidgets import HTML, HBox, Image, VBox, Widget
from numpy.typing import NDArray

from ewens_widgets.analysis.convergence import (
    ALL_PAIRS,
    GOOD_RHAT,
    QUANTITIES,
    WANTED_ESS,
    Diagnostics,
    compared_rows,
    followed_names,
    largest_gap,
)
from ewens_widgets.analysis.plots.heatmap_plot import (
    BLANK,
    LEVELS,
    distance_pixels,
    encode_png,
    picture_palette,
)
from ewens_widgets.analysis.plots.palette import CLUSTER_COLOURS
from ewens_widgets.analysis.trees import average_order
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.playback.ensemble import ChainsRecord
from ewens_widgets.views.base import View, assign, chip, note
from ewens_widgets.views.figures import horizon, nice_limits, set_iterations, set_limits
from ewens_widgets.views.shared_state import SharedState
from ewens_widgets.views.traces_view import Curves, thinned, trace_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "ChainDiagnostics",
    "ChainSimilarities",
    "ChainTraces",
    "ChainsState",
    "ChainsSubview",
    "chain_colour",
]

_MOST_PIXELS = 200
_TREE_REST = 1.0  # seconds between two orders of the objects while the chains run


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


class ChainsState(SharedState):
    """The records of all chains, besides what views share anyway.

    Parameters
    ----------
    record
        The records.
    """

    def __init__(self, record: ChainsRecord) -> None:
        super().__init__()
        self.record = record


class ChainsSubview(View):
    """A picture of several chains; it reads their records up to the iteration that a frame shows."""

    shared: ChainsState

    @property
    def record(self) -> ChainsRecord:
        """The records of all chains."""
        return self.shared.record

    def length(self, frame: Frame) -> int:
        """Draws of each chain up to the iteration on display."""
        return len(frame.summary)


def chain_colour(place: int) -> str:
    """Colour of a chain."""
    return CLUSTER_COLOURS[place % len(CLUSTER_COLOURS)]


class ChainTraces(ChainsSubview):
    """Number of clusters, log posterior and θ of every chain."""

    title = "Traces"
    css_class = "ew-chain-traces"
    description = "Number of clusters, log posterior and theta of every chain over the iterations"
    about = (
        "The chains start from different partitions, each in a colour of its own. If they have found the "
        "same answer, their lines run together and cannot be told apart."
    )
    rest = 0.25

    def build(self) -> tuple[Widget, ...]:
        """Make three small figures."""
        colours = [chain_colour(place) for place in range(self.record.n_chains)]
        self.panels = trace_panels(colours, height=108, left=60)
        chips = zip(colours, self.record.names, strict=True)
        self.legend = note("ew-legend", "".join(chip(colour, name, shape="line") for colour, name in chips))
        return self.legend, *(panel.figure for panel in self.panels)

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Start with empty traces."""
        for panel in self.panels:
            panel.clear()

    def draw(self, frame: Frame) -> None:
        """Send the traces, thinned."""
        length = self.length(frame)
        places = thinned(length)
        first = frame.status.shown_iteration - length
        last = first + horizon(length, frame.status.target - first)
        iterations = (first + 1 + places).astype(np.float64)
        start = float(first + self.record.start(length))
        for panel, values in zip(self.panels, self._values(places), strict=True):
            panel.show((float(first), last), iterations, values, start)

    def _values(self, places: NDArray[np.intp]) -> tuple[FloatArray, ...]:
        recorders = self.record.recorders
        rows = (
            [recorder.n_clusters[places] for recorder in recorders],
            [recorder.log_posterior[places] for recorder in recorders],
            [np.log2(recorder.theta[places]) for recorder in recorders],
        )
        return tuple(np.stack(values).astype(np.float64) for values in rows)

    def paint(self, axes: "Axes") -> None:
        """Draw the numbers of clusters with matplotlib."""
        lines = self.panels[0].lines
        if lines.visible:
            for place, (values, name) in enumerate(zip(np.asarray(lines.y), self.record.names, strict=True)):
                axes.plot(lines.x, values, color=chain_colour(place), linewidth=0.9, label=name)
            axes.legend(fontsize=7)
        axes.set_xlabel("iteration")
        axes.set_ylabel("clusters")


class ChainSimilarities(ChainsSubview):
    """Share of draws in which two objects are apart, for every chain and pooled."""

    title = "Share of draws apart, by chain and pooled"
    css_class = "ew-chain-similarities"
    description = (
        "Heatmaps of the share of draws in which two objects are in different clusters, by chain and pooled"
    )
    about = (
        "A picture for each chain, and one for all draws together; blocks are groups that stay together. "
        "Chains that agree have the same picture."
    )
    rest = 0.5

    def build(self) -> tuple[Widget, ...]:
        """Make a picture for each chain and one for all of them."""
        names = [*self.record.names, "pooled"]
        self.images = {name: Image(value=BLANK, format="png") for name in names}
        boxes = [self._box(place, name, len(names)) for place, name in enumerate(names)]
        row = HBox(tuple(boxes[:-1]))
        row.add_class("ew-chain-pictures")
        self.note = note()
        self._order: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._order_due = 0.0
        self._pixels: dict[str, NDArray[np.uint8]] = {}
        self._is_dark = False
        self.gap: float | None = None
        beside = VBox((boxes[-1],))
        beside.add_class("ew-pooled-picture")
        self._pooled_box = beside
        return row, beside, self.note

    def _box(self, place: int, name: str, count: int) -> VBox:
        is_pooled = place == count - 1
        colour = "currentColor" if is_pooled else chain_colour(place)
        caption = HTML(
            f'<span class="ew-swatch ew-line" style="background:{colour}"></span>{escape(_short(name))}'
        )
        self.images[name].add_class("ew-similarity")
        box = VBox((caption, self.images[name]))
        box.add_class("ew-chain-picture")
        return box

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Forget the order of other objects."""
        self._n_objects = posterior.n_objects
        self._order = np.arange(self._n_objects)
        self._order_due = 0.0
        self._rows = compared_rows(self._n_objects)
        text = f"More than {ALL_PAIRS} objects: too many for live heatmaps."
        assign(self.note, value="" if self._rows is None else text)

    def draw(self, frame: Frame) -> None:
        """Send the pictures, all in the order of the pooled tree."""
        summaries = self.record.summaries(self.length(frame))
        similarities = [summary.similarity(self._rows) for summary in summaries]
        self.gap = largest_gap(similarities) if self.length(frame) else None
        if self._rows is not None:
            return
        pooled = np.mean(similarities, axis=0)
        self._put_in_order(pooled, frame)
        for name, similarity in zip(self.images, [*similarities, pooled], strict=True):
            self._show(name, similarity)

    def _put_in_order(self, pooled: NDArray[Any], frame: Frame) -> None:
        now = time.perf_counter()
        if frame.status.is_running and now < self._order_due:
            return
        self._order = average_order(pooled)
        # At most a tenth of the time is spent on trees.
        self._order_due = time.perf_counter() + max(_TREE_REST, 9.0 * (time.perf_counter() - now))

    def _show(self, name: str, similarity: NDArray[Any]) -> None:
        self._pixels[name] = distance_pixels(similarity, self._order, _MOST_PIXELS)
        palette = picture_palette(dark=self._is_dark)
        assign(self.images[name], value=encode_png(self._pixels[name], palette))

    def darken(self, is_dark: bool) -> None:
        """Turn black on white into white on black."""
        if is_dark != self._is_dark:
            self._is_dark = is_dark
            self.redraw()

    def paint(self, axes: "Axes") -> None:
        """Draw all pictures with matplotlib, those of the chains first."""
        axes.set_axis_off()
        if not self._pixels:
            return
        columns = -(-len(self._pixels) // 2)
        side = max(pixels.shape[0] for pixels in self._pixels.values())
        step = side + max(2, side // 10)
        for place, (name, pixels) in enumerate(self._pixels.items()):
            left, top = step * (place % columns), step * (place // columns)
            extent = (left, left + side, top + side, top)
            axes.imshow(pixels, cmap="gray", vmin=0, vmax=LEVELS - 1, interpolation="nearest", extent=extent)
            axes.text(left, top - 1, _short(name).replace("$", r"\$"), fontsize=6, va="bottom")
        axes.set_xlim(0, step * columns)
        axes.set_ylim(2 * step, -step // 10)


def _short(name: str) -> str:
    """What a chain started from, which is enough below a small picture."""
    return name.rpartition(", ")[2]


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
