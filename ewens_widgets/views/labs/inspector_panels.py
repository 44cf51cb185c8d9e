r"""What the move inspector shows of a proposal: the objects, the options of a choice, and the log ratio.

`StageScatter` has the colours of the clusters before or after the proposal. At the stage that assigns the
objects of a split to its two sides, the colour shows the probability of the side, and grey even chances.
Objects of the stage are opaque, and the others faint. Rings and diamonds mark single objects and cores.
Ellipses hold half and nine tenths of each cluster, with the parameters that the iteration has drawn.

`options_list` shows the options of a choice with their probabilities, the most probable first.
`numbers_table` shows the terms of

.. math:: \log r = \log \frac{p(B^*)}{p(B)} + \log \frac{L(B^*)}{L(B)}
        + \log q(B \mid B^*) - \log q(B^* \mid B)

from the stage on that computes them; earlier their cells are open. `Waterfall` draws the same sum: each bar
begins where the one before it ends. The last one is the log ratio, to be compared with the dashed line, the
log of the uniform draw. The paper inverts the quotient of the two q terms; on request both ratios are shown.
"""

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import bqplot
import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.explanation import Inspection, Proposal, Term
from ewens_widgets.analysis.plots.palette import GREY, SELECTED, ClusterColours, colour_of, rgb
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.moves.move import MOVES, Choice, Scene, count, signed
from ewens_widgets.views import figures
from ewens_widgets.views.base import Panel, Post, assign, chip, note
from ewens_widgets.views.scatter_marks import GLIDES, ROOMY, Dots, Outlines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIRST_SIDE, SECOND_SIDE = "#0072b2", "#e8700a"
RISES, FALLS, TOTAL, MARK = "#0072b2", "#d55e00", "#808080", "#a80876"

_FADED = 0.12
_MOST_OPTIONS = 8
_FARTHEST = 1e4  # an infinite term is drawn this long, far beyond any other

_DECIDED = ("ratio", "decision")
# Of each term: its formula, and the stages at which it is known.
_TERMS = {
    "prior": ("log p(B*) / p(B)", _DECIDED),
    "likelihood": ("log L(B*) / L(B)", _DECIDED),
    "reverse": ("log q(B | B*)", ("proposal", *_DECIDED)),
    "forward": ("− log q(B* | B)", ("proposal", *_DECIDED)),
}
TERM_NAMES = (*_TERMS, "log ratio")
_OPEN = "·"


class StageScatter(Panel):
    """Scatter of two features or principal components at one stage of a proposal.

    Parameters
    ----------
    dataset
        The objects.
    posterior
        What is sampled; it has the shapes of clusters.
    post
        Brings a command to the event loop.
    """

    title = "The objects"
    css_class = "ew-stage-scatter"
    description = "Scatter plot of the objects at this stage"
    about = (
        "Every dot is an object, every colour a cluster. Objects of this stage are opaque, the others faint; "
        "rings and diamonds mark the objects that the text mentions. Ellipses hold 50 and 90 % of a cluster."
    )

    def __init__(self, dataset: Dataset, posterior: Posterior, post: Post) -> None:
        self._posterior = posterior
        self._colours = ClusterColours()
        self._stage: Scene | None = None
        self._proposal: Proposal | None = None
        self._numbers: dict[str, NDArray[np.intp]] = {}
        self.plane = figures.FeaturePlane(post, self._place, ROOMY)
        scales = self.plane.scales
        self.dots = Dots(scales, 44)
        self.points = self.dots.circles
        ring: dict[str, Any] = {"fill": False, "colors": [SELECTED]}
        diamond = {"marker": "diamond", "default_size": 190, "stroke_width": 2.6}
        self.rings = figures.make_scatter(scales, default_size=150, stroke_width=1.8, **ring)
        self.cores = figures.make_scatter(scales, **diamond, **ring)
        self.outlines = Outlines(scales)
        self.figure = figures.make_figure(
            "ew-scatter",
            400,
            (8, 8, 38, 48),
            self.plane.resize,
            marks=[self.outlines.mark, *self.dots.marks, self.rings, self.cores],
            axes=self.plane.axes,
        )
        self.figure.add_class(GLIDES)
        self.legend = note("ew-legend")
        super().__init__((self.figure, self.legend), self.plane.choosers)
        self.plane.offer(dataset)

    def _place(self, x: FloatArray, y: FloatArray) -> None:
        self.dots.place(x, y)
        self.outlines.place(self._posterior, x, y, self.plane.weights)
        self._mark()

    def _mark(self) -> None:
        """Place rings and diamonds, and draw the ellipses; sides are no clusters yet."""
        stage, x, y = self._stage, self.points.x, self.points.y
        for mark, rows in ((self.rings, stage and stage.ringed), (self.cores, stage and stage.cores)):
            marked = np.asarray([] if rows is None else rows, dtype=np.intp)
            assign(mark, x=x[marked], y=y[marked])
        if self._proposal is None or stage is None or stage.colours == "sides":
            self.outlines.hide()
            return
        drawn = self._proposal.parameters
        self.outlines.show(self._numbers[stage.colours], drawn.theta, drawn.nu, drawn.sigma)

    @property
    def colours(self) -> NDArray[np.intp]:
        """Number of each object's colour in the partition before the proposal."""
        return self._numbers["before"]

    def show(self, proposal: Proposal, stage: Scene) -> None:
        """Show a stage of a proposal."""
        if proposal is not self._proposal:
            self._proposal = proposal
            self._numbers["before"] = self._colours.assign(proposal.labels)
            proposed = proposal.labels if proposal.proposed is None else proposal.proposed
            self._numbers["after"] = self._colours.assign(proposed)
        # Sides have no number: their colours are probabilities.
        numbers = None if stage.colours == "sides" else self._numbers[stage.colours]
        if numbers is None and stage.shares is not None:
            colours = [GREY if np.isnan(share) else blend(share) for share in stage.shares.tolist()]
        else:
            colours = [colour_of(number) for number in self._numbers[stage.colours].tolist()]
        self.dots.show(colours, numbers, opacities=self._opacities(proposal, stage))
        self._stage = stage
        self._mark()
        assign(self.legend, value=_legend(stage))

    def _opacities(self, proposal: Proposal, stage: Scene) -> FloatArray:
        opacities = np.ones(proposal.labels.size)
        if stage.focus.size:
            opacities[:] = _FADED
            opacities[stage.focus] = 1.0
        elif stage.shares is not None and stage.colours != "sides":
            highest = float(np.nanmax(stage.shares)) or 1.0
            opacities = _FADED + (1.0 - _FADED) * np.nan_to_num(stage.shares) / highest
        # The object that a move reassigns.
        is_single = [choice.objects.size for choice in proposal.choices[:1]] == [1]
        if stage.key in {"choice", "target"} and is_single:
            opacities[stage.ringed[:1]] = 1.0
        return np.round(opacities, 3)

    def paint(self, axes: "Axes") -> None:
        """Draw the scatter with matplotlib."""
        super().paint(axes)
        axes.set_aspect("equal" if self.plane.is_equal else "auto")


def _legend(stage: Scene) -> str:
    if stage.colours == "sides":
        ends = {FIRST_SIDE: "first core with probability 1", GREY: "even chances"}
        ends[SECOND_SIDE] = "second with probability 1"
        return "".join(chip(colour, text) for colour, text in ends.items())
    partition = {"decision": "decided"}.get(stage.key, "proposed" if stage.colours == "after" else "")
    parts = [f"coloured as {partition}" if partition else "coloured by cluster", "grey: singletons"]
    if stage.shares is not None:
        parts.append("opacity: probability of being chosen")
    if stage.cores:
        parts.append("diamonds: the cores")
    if stage.ringed.size:
        rings = {"choice": "chosen", "target": "being reassigned", "jump": "jumped"}
        parts.append(f"ringed: {rings.get(stage.key, 'objects that move')}")
    return " · ".join(parts)


def blend(share: float) -> str:
    """Colour between those of the two sides, grey halfway."""
    end, weight = (FIRST_SIDE, 1.0 - 2.0 * share) if share < 0.5 else (SECOND_SIDE, 2.0 * share - 1.0)
    parts = zip(rgb(GREY), rgb(end), strict=True)
    return "#" + "".join(f"{round((1.0 - weight) * one + weight * two):02x}" for one, two in parts)


def numbers_table(inspection: Inspection, stage: str, printed: bool) -> str:
    """HTML of the table.

    Parameters
    ----------
    inspection
        Has the proposal, and what the sampler itself reports of it.
    stage
        Key of the stage on display.
    printed
        Whether to add the ratio that the paper prints.
    """
    proposal = inspection.proposal
    is_added, is_decided = stage in _DECIDED, stage == "decision"
    own = None if inspection.event is None else inspection.event.log_ratio
    if inspection.is_sweep and proposal.proposed is not None:
        own = 0.0
    difference = f"difference {inspection.gap:.0e}" if is_added and own is not None else ""
    names = {name: f"{name} proposal" if "q(" in formula else name for name, (formula, _) in _TERMS.items()}
    heads = ["<th></th>"]
    heads += [f"<td>{names[name]} <i>{escape(formula)}</i></td>" for name, (formula, _) in _TERMS.items()]
    heads += ["<td><b>log ratio</b></td>", f"<td>the sampler's own <i>{difference}</i></td>"]
    heads += ["<td>log of the uniform draw u</td>", "<td><b>decision</b></td>"]
    columns = [heads]
    printed = printed and proposal.has_printed_ratio
    words = {None: _OPEN, True: "accepted", False: "rejected"}
    for rule in (False, True) if printed else (proposal.as_printed,):
        terms = {term.name: term.value for term in proposal.terms(rule)}
        column = ["<th>as printed</th>" if rule else "<th>correct</th>"] if printed else ["<th></th>"]
        column += [_cell(name, terms.get(name), stage in known) for name, (_, known) in _TERMS.items()]
        column += [_cell("sum", proposal.log_ratio(rule), is_added)]
        # The chain's own number stands below the ratio that it decides by.
        column += [_cell("sampler", own, is_added) if rule == proposal.as_printed else "<td></td>"]
        column += [_cell("uniform", proposal.log_uniform, is_decided)]
        verdict = words[proposal.accepted(rule) if is_decided else None]
        columns.append([*column, f'<td data-term="decision"><b>{verdict}</b></td>'])
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*columns, strict=True))
    return f'<table class="ew-terms">{rows}</table>'


def _cell(name: str, value: float | None, is_shown: bool) -> str:
    if value is None or not is_shown:
        return f'<td data-term="{name}">{_OPEN}</td>'
    return f'<td data-term="{name}" data-value="{value!r}">{signed(value)}</td>'


def printed_sentence(proposal: Proposal) -> str:
    """What the ratio printed in the paper would have decided."""
    if proposal.proposed is None:
        return "Nothing was proposed, so there is no ratio, printed or not."
    if not proposal.has_printed_ratio:
        if MOVES[proposal.move].from_paper:
            return (
                "For this move the forward and the reverse proposal are equally probable, so inverting their "
                "quotient changes nothing."
            )
        return "This move is not in the paper, which prints no ratio for it."
    right, printed = proposal.accepted(as_printed=False), proposal.accepted(as_printed=True)
    log_ratio = proposal.log_ratio(as_printed=True) or 0.0
    compared = "agrees" if right == printed else "decides otherwise"
    return (
        "The paper inverts the quotient of the reverse and the forward proposal. Its log ratio is "
        f"{signed(log_ratio)}, so this proposal is {'accepted' if printed else 'rejected'}; the correct "
        f"ratio {compared}."
    )


def options_list(
    choice: Choice, labels: NDArray[np.intp], colours: NDArray[np.intp], left_out: int | None
) -> str:
    """HTML of the most probable options; the chosen one is always among them.

    Parameters
    ----------
    choice
        What was chosen, and from what.
    labels, colours
        Partition, and numbers of the objects' colours.
    left_out
        Object that is being moved, and so is not counted as a member.
    """
    if not choice.examples:
        return ""
    shown = np.argsort(-choice.probabilities, kind="stable")[:_MOST_OPTIONS]
    if choice.chosen not in shown:
        shown = np.append(shown[:-1], choice.chosen)
    rows = []
    for place in shown.tolist():
        probability = float(choice.probabilities[place])
        swatches, sizes = "", []
        for example in choice.examples[place]:
            members = np.flatnonzero(labels == labels[example])
            sizes.append(str(members.size - (left_out is not None and left_out in members)))
            swatches += (
                f'<span class="ew-swatch" style="background:{colour_of(int(colours[example]))}"></span>'
            )
        name = f"{' + '.join(sizes)} objects" if sizes else "a new cluster"
        is_chosen = place == choice.chosen
        text = f"<b>{name}, chosen</b>" if is_chosen else name
        rows.append(
            f'<div class="ew-rate ew-option" data-probability="{probability!r}" '
            f'data-chosen="{str(is_chosen).lower()}"><span>{swatches} {text}</span>'
            '<span class="ew-rate-bar"><span style="width:'
            f'{100 * probability / float(choice.probabilities.max()):.0f}%"></span></span>'
            f"<span>{probability:.3g}</span></div>"
        )
    more = choice.probabilities.size - shown.size
    rest = f"<div>and {more} more</div>" if more > 0 else ""
    drawn = "" if choice.uniform is None else f" · uniform draw {choice.uniform:.4f}"
    heading = f"<div><b>{escape(choice.what)}</b>: {count(choice.probabilities.size, 'option')}{drawn}</div>"
    return f"{heading}{''.join(rows)}{rest}"


class Waterfall(Panel):
    """Bars for the terms and their total, and a line to compare the total with.

    `names` are those of the terms, and last that of their total.
    """

    title = "Terms of the log ratio"
    css_class = "ew-waterfall-box"
    description = "Terms of the log ratio as a waterfall chart"
    about = (
        "Each bar begins where the one before it ends, and the last one is their sum, the log ratio. A "
        "proposal is accepted if this sum is above the dashed line, the log of the uniform draw u."
    )

    def __init__(self, names: Sequence[str]) -> None:
        places = np.arange(float(len(names)))
        ends = np.array([-0.6, len(names) - 0.4])
        scales = {"x": figures.make_scale(*ends.tolist()), "y": figures.make_scale(-1.0, 1.0)}

        def lines(x: FloatArray, colour: str, width: float, style: str = "solid") -> bqplot.Lines:
            traits = {"colors": [colour], "stroke_width": width, "line_style": style}
            return bqplot.Lines(x=x, y=np.zeros(x.shape), scales=scales, **traits)

        def labels(x: FloatArray, colour: str, align: str) -> bqplot.Label:
            traits = {"colors": [colour], "default_size": 11, "font_weight": "normal", "align": align}
            return bqplot.Label(x=x, y=np.zeros(x.size), text=["log u"] * x.size, scales=scales, **traits)

        self.bars = lines(np.stack([places, places], axis=1), TOTAL, 30)
        self.steps = lines(np.stack([places[:-1], places[1:]], axis=1), TOTAL, 1, "dotted")
        self.mark = lines(ends, MARK, 2, "dashed")
        self.texts = labels(places, TOTAL, "middle")
        self.mark_text = labels(ends[:1] + 0.05, MARK, "start")
        self._shown = self.steps, self.bars, self.mark, self.texts, self.mark_text
        x_axis = figures.make_axis(scales["x"])
        # bqplot would not draw labels that come later than the axis.
        ticks = {str(place): name for place, name in enumerate(names)}
        assign(x_axis, tick_values=places, tick_labels=ticks)
        self.figure = figures.make_figure(
            "ew-waterfall",
            230,
            (16, 8, 22, 44),
            marks=[lines(ends, TOTAL, 1), *self._shown],
            axes=[x_axis, figures.make_axis(scales["y"], vertical=True)],
        )
        super().__init__((self.figure,))
        self.clear()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is shown."""
        return not self.bars.visible

    def clear(self) -> None:
        """Show no bars."""
        for mark in self._shown:
            assign(mark, visible=False)

    def show(self, terms: Sequence[Term], mark: float | None = None) -> None:
        """Show terms, their total, and a line at `mark`, if there is one."""
        values = [term.value for term in terms]
        colours = [*(RISES if value >= 0.0 else FALLS for value in values), TOTAL]
        ends = np.append(0.0, np.cumsum(np.clip(values, -_FARTHEST, _FARTHEST)))
        values.append(sum(values))
        bars = np.array([*pairwise(ends), (0.0, ends[-1])])
        low, high = float(bars.min(initial=0.0 if mark is None else mark)), float(bars.max())
        low, high = figures.nice_limits(low - 0.16 * (high - low), high + 0.16 * (high - low))
        y_axis = self.figure.axes[1]
        figures.set_limits(y_axis.scale, y_axis, low, high, ticks=5)
        assign(self.bars, y=bars, colors=colours, visible=True)
        assign(self.steps, y=np.stack([bars[:-1, 1], bars[:-1, 1]], axis=1), visible=True)
        # Above a bar that rises and below one that falls, where nothing covers it.
        gap = 0.02 * (high - low)
        y = np.where(np.array(values) >= 0.0, bars.max(axis=1) + gap, bars.min(axis=1) - 5.0 * gap)
        texts = [signed(value) for value in values]
        assign(self.texts, y=np.clip(y, low, high - gap), text=texts, colors=colours, visible=True)
        level = 0.0 if mark is None else max(mark, low)
        assign(self.mark, y=np.full(2, level), visible=mark is not None)
        assign(self.mark_text, y=np.array([level + gap]), visible=mark is not None)

    def paint(self, axes: "Axes") -> None:
        """Draw the chart with matplotlib."""
        if self.is_empty:
            axes.text(0.5, 0.5, "no terms at this stage", ha="center", va="center")
            axes.set_axis_off()
        else:
            self.figure.paint(axes)
