"""Panels of several chains: traces on top of each other, diagnostics, and similarities by chain and pooled.

Each chain has one colour in all panels. Traces that start apart and then overlap show that the chains agree
on the number of clusters; equal heatmaps show that they agree on the clusters. All heatmaps have the order of
the pooled tree, so the same place is the same pair of objects.

R-hat and the effective sample size are shown as they evolve, with their recommended limits as dashed lines.
`analysis.convergence` alone computes them and judges them, for these panels, for `report()` and for `until`.

The panels read the records of all chains from their shared state; a frame only says up to which draw.

A player runs one source and keeps its record. An `Ensemble` is such a source: its first chain is the one that
the player records, and it runs the others before, each with a recorder of its own. So no chain is behind the
first; after an interrupt, chains that are ahead wait. It also summarises all records up to the iteration on
display.
"""

import time
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from ipywidgets import HBox, VBox, Widget

from ewens_widgets.analysis import convergence
from ewens_widgets.analysis.convergence import Diagnostics, compare
from ewens_widgets.analysis.plots.palette import CLUSTER_COLOURS
from ewens_widgets.analysis.trees import average_order
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.playback.frame import RunningSummaries, Summary
from ewens_widgets.playback.loop import can_work
from ewens_widgets.playback.player import Source, compilation
from ewens_widgets.sampling.draws import DrawTable
from ewens_widgets.views.base import View, assign, chip, look, note
from ewens_widgets.views.figures import (
    SimilarityPicture,
    horizon,
    nice_limits,
    paint_pictures,
    set_iterations,
    set_limits,
)
from ewens_widgets.views.quantity_views import Curves, thinned, trace_panels
from ewens_widgets.views.shared_state import SharedState

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PIXELS = 200
_TREE_REST = 1.0  # seconds between two orders of the objects while the chains run

_LEAST_RHAT, MOST_RHAT = 0.95, 2.0  # larger ones are drawn at the upper edge

COLOURS = {
    "n_clusters": "#0072b2",
    "theta": "#009e73",
    "log_posterior": "#d55e00",
    "largest_cluster": "#cc79a7",
    "concentration": "#e69f00",
    "nu": "#56b4e9",
    "imputed_cells": "#999933",
}
_LIMIT = "#808080"


CHECKPOINTS = 25
"""Approximate number of iterations at which R-hat and effective sample size are computed for their curves."""


class Ensemble:
    """Several chains as one source, and summaries of their records.

    Parameters
    ----------
    chains
        At least two chains, all at the same iteration.
    names
        Names of the chains.
    recorders
        One for each chain; the first belongs to the player too.
    target
        Iterations of the whole run.
    burn_in
        First iterations that are left out. A run shorter than twice the burn-in leaves out its first half.
    """

    def __init__(
        self,
        chains: Sequence[Source],
        names: Sequence[str],
        recorders: Sequence[DrawTable],
        target: int,
        burn_in: int = 0,
    ) -> None:
        self.chains = tuple(chains)
        self.names = tuple(names)
        self.recorders = tuple(recorders)
        self.target = target
        self.burn_in = burn_in
        convergence.load_statistics()  # now, because it would stop a running view for a moment
        self._forget()

    def _forget(self) -> None:
        self._summaries = tuple(RunningSummaries(recorder, self.burn_in) for recorder in self.recorders)
        self._agreements: dict[int, Diagnostics] = {}
        self._columns = [convergence.followed(recorder, slice(0)) for recorder in self.recorders]

    @property
    def compilation(self) -> str:
        """Progress of the compilation, which is the same for all chains."""
        return compilation(self.chains[0])

    def prepare(self) -> bool:
        """Have all chains get ready; return whether they can be run now."""
        ready = [can_work(chain) for chain in self.chains]  # a list, so that each of them begins
        return all(ready)

    @property
    def iteration(self) -> int:
        """Last iteration that all chains have done."""
        return self.chains[0].iteration

    def advance(self, n: int) -> DrawTable:
        """Run `n` iterations of every chain, record those of the others, and return those of the first."""
        goal = self.iteration + n
        for chain, recorder in zip(self.chains[1:], self.recorders[1:], strict=True):
            if chain.iteration < goal:
                # As for a single chain: a block that has been run must not fail to be recorded.
                recorder.reserve(goal - chain.iteration)
                recorder.extend(chain.advance(goal - chain.iteration))
        return self.chains[0].advance(n)

    def snapshot(self) -> None:
        """Not known: the chains start from different states."""

    def reset(self) -> None:
        """Take every chain back to its start and clear the records."""
        for chain, recorder in zip(self.chains, self.recorders, strict=True):
            chain.reset()
            recorder.clear()
        self._forget()

    def start(self, length: int) -> int:
        """Number of draws that are left out of the first `length` draws."""
        return self.burn_in if length >= 2 * self.burn_in else length // 2

    def summaries(self, length: int) -> tuple[Summary, ...]:
        """Summaries of the first `length` draws, one per chain."""
        start = self.start(length)
        for summaries in self._summaries:
            summaries.burn_in = min(start, max(length - 1, 0))
        return tuple(summaries.up_to(length) for summaries in self._summaries)

    def agreement(self, length: int) -> Diagnostics:
        """Diagnostics of the first `length` draws of the chains, without similarities; computed once."""
        if length in self._agreements:
            return self._agreements[length]
        start = self.start(length)
        for known, recorder in zip(self._columns, self.recorders, strict=True):
            n_known = len(known["n_clusters"])
            if n_known < length:  # only new draws are computed
                new = convergence.followed(recorder, slice(n_known, length))
                known.update({name: np.append(known[name], new[name]) for name in new})
        moves = [summary.trace().move_counts for summary in self.summaries(length)]
        found = self._agreements[length] = compare(
            {
                name: np.stack([each[name][start:length] for each in self._columns])
                for name in self._columns[0]
            },
            theta_grid=self.recorders[0].posterior.theta_grid,
            acceptance=convergence.pooled_acceptance(moves),
        )
        return found

    def course(self, length: int, span: int | None = None) -> list[tuple[int, Diagnostics]]:
        """Diagnostics at some iterations up to `length` draws, the last one included.

        Parameters
        ----------
        length
            Draws of each chain.
        span
            Length over which the iterations are spread; the whole run by default.
        """
        step = max(1, (self.target if span is None else span) // CHECKPOINTS)
        places = [*range(step, length, step), length] if length else []
        evolved = [(place, self.agreement(place)) for place in places]
        return [(place, found) for place, found in evolved if found.is_known]


class ChainsState(SharedState):
    """The records of all chains, and what views share anyway."""

    def __init__(self, record: Ensemble) -> None:
        super().__init__()
        self.record = record


class ChainsSubview(View):
    """A picture of several chains; it reads their records up to the iteration that a frame shows."""

    shared: ChainsState
    curves: tuple[Curves, ...] = ()
    """Its small figures."""

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Start with empty curves."""
        for curves in self.curves:
            curves.clear()

    def span(self, frame: Frame) -> tuple[float, float]:
        """First and last iteration of the axis."""
        length = len(frame.summary)
        first = frame.status.shown_iteration - length
        return float(first), first + horizon(length, frame.status.target - first)

    def paint(self, axes: "Axes") -> None:
        """Draw the first figure with matplotlib."""
        super().paint(axes)
        axes.set_xlabel("iteration")


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
        names = self.shared.record.names
        colours = [chain_colour(place) for place in range(len(names))]
        self.traces = self.curves = trace_panels(colours, height=108, left=60)
        assign(self.traces[0].lines, labels=list(names))
        self.figure = self.traces[0].figure
        chips = (chip(colour, name, shape="line") for colour, name in zip(colours, names, strict=True))
        return note("ew-legend", "".join(chips)), *(curves.figure for curves in self.curves)

    def draw(self, frame: Frame) -> None:
        """Send the traces, thinned."""
        length, span, record = len(frame.summary), self.span(frame), self.shared.record
        places = thinned(length)
        rows = (
            [recorder.n_clusters[places] for recorder in record.recorders],
            [recorder.log_posterior[places] for recorder in record.recorders],
            [np.log2(recorder.theta[places]) for recorder in record.recorders],
        )
        iterations, start = (span[0] + 1 + places).astype(np.float64), span[0] + record.start(length)
        for trace, values in zip(self.traces, rows, strict=True):
            trace.show(span, iterations, np.stack(values).astype(np.float64), start)


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
        self.images: dict[str, SimilarityPicture] = {}
        boxes = []
        for place, name in enumerate((*self.shared.record.names, "pooled")):
            self.images[name] = SimilarityPicture("ew-similarity")
            colour = "currentColor" if name == "pooled" else chain_colour(place)
            swatch = f'<span class="ew-swatch ew-line" style="background:{colour}"></span>'
            caption = note("", f"{swatch}{escape(_start_of(name))}")
            boxes.append(VBox((caption, self.images[name]), **look("ew-chain-picture")))
        self.note = note()
        self.gap: float | None = None
        *alone, pooled = boxes
        row = HBox(tuple(alone), **look("ew-chain-pictures"))
        return row, VBox((pooled,), **look("ew-pooled-picture")), self.note

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Forget the order of other objects."""
        self._order = np.arange(posterior.n_objects)
        self._order_due = 0.0
        self._rows = convergence.compared_rows(posterior.n_objects)
        text = f"More than {convergence.ALL_PAIRS} objects: too many for live heatmaps."
        assign(self.note, value="" if self._rows is None else text)

    def draw(self, frame: Frame) -> None:
        """Send the pictures, all in the order of the pooled tree."""
        summaries = self.shared.record.summaries(len(frame.summary))
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
        for image, similarity in zip(self.images.values(), [*similarities, pooled], strict=True):
            image.show(similarity, self._order, _MOST_PIXELS)

    def darken(self, is_dark: bool) -> None:
        """Turn black on white into white on black."""
        for image in self.images.values():
            image.darken(is_dark)

    def paint(self, axes: "Axes") -> None:
        """Draw all pictures with matplotlib, those of the chains first."""
        named = {_start_of(name): image for name, image in self.images.items()}
        paint_pictures(
            named if len(named) == len(self.images) else self.images, axes, -(-len(self.images) // 2)
        )


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
        limits = {("R-hat", "ew-rhat"): convergence.GOOD_RHAT, ("ESS bulk", "ew-ess"): convergence.WANTED_ESS}
        self.curves = tuple(Curves(*names, tuple(COLOURS.values()), height=108, left=52) for names in limits)
        for curves, limit in zip(self.curves, limits.values(), strict=True):
            ends = {"x": np.array([0.0, 1e9]), "y": np.full(2, limit)}
            assign(curves.behind, **ends, colors=[_LIMIT], line_style="dashed")
        self.table = note("ew-chain-numbers")
        self.figure = self.curves[0].figure
        self.drawn = 0  # draws that the latest numbers are computed from
        self._names: tuple[str, ...] = ()
        return *(curves.figure for curves in self.curves), self.table

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:
        """Start with empty curves."""
        super().adapt(dataset, posterior)
        self._names = convergence.followed_names(posterior)
        assign(self.curves[0].lines, labels=[convergence.QUANTITIES[name] for name in self._names])
        assign(self.table, value="")

    def draw(self, frame: Frame) -> None:
        """Send the curves and the latest numbers."""
        length, span = len(frame.summary), self.span(frame)
        course = self.shared.record.course(length, int(span[1] - span[0]))
        places = np.array([span[0] + place for place, _ in course])
        rhat = np.array([[found.rhat[name] for _, found in course] for name in self._names])
        ess = np.array([[found.ess_bulk[name] for _, found in course] for name in self._names])
        # A constant quantity has no R-hat, and chains cannot disagree about it.
        rhat = np.clip(np.nan_to_num(rhat, nan=1.0, posinf=MOST_RHAT), _LEAST_RHAT, MOST_RHAT)
        high = max(1.2 * convergence.WANTED_ESS, float(ess.max(initial=0.0)))
        ends = (_LEAST_RHAT, MOST_RHAT), (0.0, nice_limits(0.0, high)[1])
        for curves, values, limits in zip(self.curves, (rhat, ess), ends, strict=True):
            x_axis, y_axis = curves.axes
            set_iterations(x_axis, *span)
            set_limits(y_axis.scale, y_axis, *limits)
            if places.size < 2:
                curves.clear()
            else:
                assign(curves.lines, x=places, y=values, visible=True)
        agreement = self.shared.record.agreement(length) if length else None
        assign(self.table, value="" if agreement is None else self._numbers_table(agreement))
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
