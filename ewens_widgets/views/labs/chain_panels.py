"""Panels of several chains: traces on top of each other, diagnostics, and similarities by chain and pooled.

Each chain has one colour in all panels. Traces that start apart and then overlap show that the chains agree
on the number of clusters; equal heatmaps show that they agree on the clusters. All heatmaps have the order of
the pooled tree, so the same place is the same pair of objects.

R-hat and the effective sample size are shown as they evolve, with their recommended limits as dashed lines.
`analysis.convergence` alone computes them and judges them, for these panels, for `report()` and for `until`.

The panels read the records of all chains from their shared state; a frame only says up to which draw.
"""

import time
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from ipywidgets import HBox, Image, VBox, Widget
from numpy.typing import NDArray

from ewens_widgets.analysis import convergence
from ewens_widgets.analysis.convergence import Diagnostics
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
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.views.base import View, assign, chip, look, make, note
from ewens_widgets.views.figures import horizon, nice_limits, set_iterations, set_limits
from ewens_widgets.views.labs.ensemble import ChainsRecord
from ewens_widgets.views.shared_state import SharedState
from ewens_widgets.views.traces_view import Curves, thinned, trace_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PIXELS = 200
_TREE_REST = 1.0  # seconds between two orders of the objects while the chains run

MOST_RHAT = 2.0
"""Larger R-hats are drawn at the upper edge."""

COLOURS = {
    "n_clusters": "#0072b2",
    "theta": "#009e73",
    "log_posterior": "#d55e00",
    "largest_cluster": "#cc79a7",
    "concentration": "#e69f00",
    "nu": "#56b4e9",
}
_LIMIT = "#808080"


class ChainsState(SharedState):
    """The records of all chains, and what views share anyway."""

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

    def span(self, frame: Frame) -> tuple[int, float]:
        """First and last iteration of the axis."""
        length = len(frame.summary)
        first = frame.status.shown_iteration - length
        return first, first + horizon(length, frame.status.target - first)


def chain_colour(place: int) -> str:
    """Colour of a chain."""
    return CLUSTER_COLOURS[place % len(CLUSTER_COLOURS)]


class ChainTraces(ChainsSubview):
    """Number of clusters, log posterior and θ of every chain."""

    title = "Traces"
    css_class = "ew-chain-traces"
    description = "Number of clusters, log posterior and theta of every chain over the iterations"
    about = (
        "Each chain has its own colour and starts from a different partition. If the chains have reached the "
        "same distribution, their lines overlap."
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
        length, (first, last) = len(frame.summary), self.span(frame)
        places, recorders = thinned(length), self.record.recorders
        rows = (
            [recorder.n_clusters[places] for recorder in recorders],
            [recorder.log_posterior[places] for recorder in recorders],
            [np.log2(recorder.theta[places]) for recorder in recorders],
        )
        iterations = (first + 1 + places).astype(np.float64)
        start = float(first + self.record.start(length))
        for panel, values in zip(self.panels, rows, strict=True):
            panel.show((float(first), last), iterations, np.stack(values).astype(np.float64), start)

    def paint(self, axes: "Axes") -> None:
        """Draw the numbers of clusters with matplotlib."""
        lines = self.panels[0].lines
        if lines.visible:
            for place, (values, name) in enumerate(zip(np.asarray(lines.y), self.record.names, strict=True)):
                axes.plot(lines.x, values, color=chain_colour(place), linewidth=0.9, label=name)
            axes.legend(fontsize=7)
        axes.set(xlabel="iteration", ylabel="clusters")


class ChainSimilarities(ChainsSubview):
    """Share of draws in which two objects are in the same cluster, for every chain and pooled."""

    title = "Similarity, by chain and pooled"
    css_class = "ew-chain-similarities"
    description = (
        "Heatmaps of the share of draws in which two objects are in the same cluster, by chain and pooled"
    )
    about = (
        "A heatmap for each chain, and one for all chains together. Blocks along the diagonal are objects "
        "that share a cluster in most draws. Chains that agree have the same heatmap."
    )
    rest = 0.5

    def build(self) -> tuple[Widget, ...]:
        """Make a picture for each chain and one for all of them."""
        names = (*self.record.names, "pooled")
        self.images = {name: make(Image, "ew-similarity", value=BLANK, format="png") for name in names}
        boxes = []
        for place, (name, image) in enumerate(self.images.items()):
            colour = "currentColor" if name == "pooled" else chain_colour(place)
            swatch = f'<span class="ew-swatch ew-line" style="background:{colour}"></span>'
            caption = note("", f"{swatch}{escape(_start_of(name))}")
            boxes.append(VBox((caption, image), **look("ew-chain-picture")))
        self.note = note()
        self._order: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._order_due = 0.0
        self._pixels: dict[str, NDArray[np.uint8]] = {}
        self._is_dark = False
        self.gap: float | None = None
        row = HBox(tuple(boxes[:-1]), **look("ew-chain-pictures"))
        return row, VBox((boxes[-1],), **look("ew-pooled-picture")), self.note

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Forget the order of other objects."""
        self._order = np.arange(posterior.n_objects)
        self._order_due = 0.0
        self._rows = convergence.compared_rows(posterior.n_objects)
        text = f"More than {convergence.ALL_PAIRS} objects: too many for live heatmaps."
        assign(self.note, value="" if self._rows is None else text)

    def draw(self, frame: Frame) -> None:
        """Send the pictures, all in the order of the pooled tree."""
        summaries = self.record.summaries(len(frame.summary))
        similarities = [summary.similarity(self._rows) for summary in summaries]
        self.gap = convergence.largest_gap(similarities) if len(frame.summary) else None
        if self._rows is not None:
            return
        pooled = np.mean(similarities, axis=0)
        now = time.perf_counter()
        if not frame.status.is_running or now >= self._order_due:
            self._order = average_order(pooled)
            # At most a tenth of the time is spent on trees.
            self._order_due = time.perf_counter() + max(_TREE_REST, 9.0 * (time.perf_counter() - now))
        palette = picture_palette(dark=self._is_dark)
        for name, similarity in zip(self.images, [*similarities, pooled], strict=True):
            self._pixels[name] = distance_pixels(similarity, self._order, _MOST_PIXELS)
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
            axes.text(left, top - 1, _start_of(name).replace("$", r"\$"), fontsize=6, va="bottom")
        axes.set(xlim=(0, step * columns), ylim=(2 * step, -step // 10))


def _start_of(name: str) -> str:
    """The initial partition in the name of a chain: enough below a small picture."""
    return name.rpartition(", ")[2]


class ChainDiagnostics(ChainsSubview):
    """Curves of R-hat and effective sample size, with a table of the latest numbers."""

    title = "Do the chains agree?"
    css_class = "ew-chain-diagnostics"
    description = "R-hat and effective sample size over the iterations, and a table of the latest numbers"
    about = (
        "R-hat compares the variance between chains with the variance within them: 1 is ideal. The effective "
        "sample size (ESS) is the number of independent draws that would be as precise."
    )
    rest = 0.5

    def build(self) -> tuple[Widget, ...]:
        """Make two small figures and a table."""
        self.rhat, self.ess = (
            Curves(name, css_class, tuple(COLOURS.values()), height=108, left=52)
            for name, css_class in (("R-hat", "ew-rhat"), ("ESS bulk", "ew-ess"))
        )
        limits = (self.rhat, convergence.GOOD_RHAT), (self.ess, convergence.WANTED_ESS)
        for curves, limit in limits:
            line = {"x": np.array([0.0, 1e9]), "y": np.full(2, limit)}
            assign(curves.behind, **line, colors=[_LIMIT], line_style="dashed")
        self.table = note("ew-chain-numbers")
        self.drawn = 0  # draws that the latest numbers are computed from
        self._names: tuple[str, ...] = ()
        return self.rhat.figure, self.ess.figure, self.table

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Start with empty curves."""
        self._names = convergence.followed_names(posterior)
        self.rhat.clear()
        self.ess.clear()
        assign(self.table, value="")

    def draw(self, frame: Frame) -> None:
        """Send the curves and the latest numbers."""
        length, (first, last) = len(frame.summary), self.span(frame)
        course = self.record.course(length, int(last - first))
        places = np.array([first + place for place, _ in course], dtype=np.float64)
        rhat = np.array([[found.rhat[name] for _, found in course] for name in self._names])
        ess = np.array([[found.ess_bulk[name] for _, found in course] for name in self._names])
        # A constant quantity has no R-hat, and chains cannot disagree about it.
        rhat = np.clip(np.nan_to_num(rhat, nan=1.0, posinf=MOST_RHAT), 0.95, MOST_RHAT)
        high = max(1.2 * convergence.WANTED_ESS, float(ess.max()) if ess.size else 0.0)
        for curves, values, limits in (
            (self.rhat, rhat, (0.95, MOST_RHAT)),
            (self.ess, ess, (0.0, nice_limits(0.0, high)[1])),
        ):
            x_axis, y_axis = curves.axes
            set_iterations(x_axis, float(first), last)
            set_limits(y_axis.scale, y_axis, *limits, ticks=4)
            if places.size < 2:
                curves.clear()
            else:
                assign(curves.lines, x=places, y=values, visible=True)
        assign(self.table, value=self._numbers_table(self.record.agreement(length)) if length else "")
        self.drawn = length

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
            rows.append(f"<tr><td>{swatch}{escape(convergence.QUANTITIES[name])}</td>{cells}</tr>")
        used = f"From {agreement.n_draws} draws per chain; dashed lines are the recommended limits"
        return f"<table>{''.join(rows)}</table><div class='ew-counted'>{used}</div>"

    def paint(self, axes: "Axes") -> None:
        """Draw R-hat with matplotlib."""
        lines = self.rhat.lines
        if lines.visible:
            for name, values in zip(self._names, np.asarray(lines.y), strict=True):
                axes.plot(lines.x, values, color=COLOURS[name], label=convergence.QUANTITIES[name])
            axes.legend(fontsize=7)
        axes.axhline(convergence.GOOD_RHAT, color=_LIMIT, linestyle="--", linewidth=0.8)
        axes.set(ylim=(0.95, MOST_RHAT), xlabel="iteration", ylabel="R-hat")
