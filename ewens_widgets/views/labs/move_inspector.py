r"""One proposal of a move in slow motion, with the numbers that decide about it.

A lecturer sees the stages of a proposal on the left (the current partition, the choice, the cores, the sides,
the proposal, the ratio, the decision), the objects in the middle and the numbers on the right. Buttons, the
list or slow motion lead through them. The proposal can be repeated from the same partition with other random
numbers; a rejected one can be accepted, to see where that would have led.

An `Inspection` makes the proposal with the sampler's own kernel, on a copy, and explains it in scenes; this
module only shows them. So the terms on display add up to the log ratio that the sampler itself reports. A
proposal is made and explained within some milliseconds, on the event loop, without work in the background.

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
log of the uniform draw.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import bqplot
import numpy as np
from ipywidgets import HBox, Play, Select, VBox
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.analysis.explanation import Inspection, Proposal, Term
from ewens_widgets.analysis.plots.palette import GREY, SELECTED, ClusterColours, colour_of, rgb
from ewens_widgets.datasets import Dataset, as_dataset
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.moves.move import MOVES, Choice, Move, Scene, count, signed
from ewens_widgets.sampling.moves.schedule import resolve_schedule
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.views import fields, figures
from ewens_widgets.views.base import Panel, Post, Silence, assign, chip, look, make, note, show_if
from ewens_widgets.views.page import STATUS, Dashboard, in_columns
from ewens_widgets.views.partition_view import GLIDES, ROOMY, Dots, Outlines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMES: dict[str, dict[str, str]] = {
    ".ew-told": STATUS,
    ".ew-stages select": {"aria-label": "stages of the proposal"},
    ".ew-play-stages button": {"aria-label": "slow motion"},
}
_BUTTONS = (
    ("Back", "step-backward", "ew-back", "Previous stage"),
    ("Next stage", "step-forward", "ew-next-stage", "Next stage"),
    ("Propose again", "repeat", "ew-propose-again", "Another proposal from the same partition"),
    ("Accept anyway", "check", "ew-accept-anyway", "Continue from the proposed partition, although rejected"),
    ("Next iteration", "forward", "ew-next-iteration", "Apply the decision, and make the next proposal"),
    ("Run 50", "fast-forward", "ew-run-on", "Run 50 iterations of the sampler's schedule, then propose"),
    ("Reset", "refresh", "ew-reset", "Return to the initial partition"),
)
_RUN = 50
_SLOW_MOTION = 2500  # milliseconds a stage

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


class MoveFields(VBox):
    """The move and its options; `changed` is called when a field has changed."""

    def __init__(self, move: Move, changed: Callable[[], None]) -> None:
        self._moves = {name: move if name == move.name else kind() for name, kind in MOVES.items()}
        # Moves with a printed ratio first, and sweeps, which are always accepted, last.
        kinds = sorted(MOVES.values(), key=lambda kind: (not kind.has_printed_ratio, kind.is_sweep))
        titles = [(kind.title, kind.name) for kind in kinds]
        self.move = fields.choice("move", titles, move.name, "ew-move", "The move to inspect")
        self._options = {
            name: {option.name: fields.option_field(option, known) for option in known.choosable}
            for name, known in self._moves.items()
        }
        options = [field for options in self._options.values() for field in options.values()]
        super().__init__((self.move, *options), **look("ew-move-fields"))
        self.arrange()
        for field in (self.move, *options):
            field.control.observe(lambda _: changed(), "value")

    @property
    def options(self) -> dict[str, fields.Field]:
        """Fields of the chosen move's options, by name."""
        return self._options[self.move.control.value]

    def arrange(self) -> None:
        """Show the options that the move has."""
        for name, options in self._options.items():
            fields.show_only(options, set(options) if name == self.move.control.value else set())

    def read(self) -> Move:
        """The move; a wrong option is explained below its field, and raises `ValueError`."""
        return replace(self._moves[self.move.control.value], **fields.read_shown(self.options))


class MoveInspector(Dashboard):
    """One proposal of any move in slow motion.

    Step through the stages of a proposal, repeat it from the same partition, accept it although it was
    rejected, or go on to the next iteration. The terms in the table add up to the log ratio that the sampler
    itself reports.

    Parameters
    ----------
    source
        A `Sampler`, which is not moved; or a `Dataset` or an array, for which one is made; the unit square by
        default.
    move
        The move to inspect, or its name: ``"split-merge"``, ``"reassign"``, ``"informed-split-merge"`` or
        ``"gibbs"``. By default the first of the sampler's schedule, or the paper's split-merge.
    data
        With a sampler: the data to draw the scatter of, in their own units; its canonical coordinates by
        default.
    settings
        With data: settings of the `Sampler`, such as ``model``; the start is ``"k-means"`` by default.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> inspector = ew.MoveInspector(ew.datasets.unit_square(seed=0), model="I", move="reassign")
    >>> inspector
    MoveInspector('unit square', reassign, iteration 0, stage 1 of 6)
    >>> inspector.inspection.gap < 1e-9
    True
    """

    css_class = "ew-move-inspector ew-fills"

    def __init__(
        self,
        source: Sampler | Dataset | ArrayLike | None = None,
        *,
        move: str | Move | None = None,
        data: Dataset | ArrayLike | None = None,
        **settings: Any,  # noqa: ANN401 - passed on
    ) -> None:
        sampler, self.dataset = _sampler_and_data(source, data, settings)
        chosen = move if move is not None or isinstance(source, Sampler) else "split-merge"
        self.inspection = Inspection(sampler, None if chosen is None else resolve_schedule([chosen])[0].move)
        self.stages: tuple[Scene, ...] = ()
        self._silence = Silence()
        super().__init__()
        self._build()
        self._begin()

    def _build(self) -> None:
        post = self.post
        self.fields = MoveFields(self.inspection.move, lambda: post(self._move_changed))
        self.buttons = fields.buttons(_BUTTONS, lambda name: post(lambda: self._command(name)))
        self.play = make(Play, "ew-play-stages", max=1, interval=_SLOW_MOTION, show_repeat=False)
        hint = "Stages; the arrow keys lead through them"
        self.list = make(Select, "ew-stages", options=[("–", 0)], value=0, rows=9, tooltip=hint)
        for control in (self.play, self.list):
            control.observe(self._on_chosen, "value")
        self.status = note("ew-status")
        row = (self.play, *self.buttons.values(), self.status)
        self.scatter = StageScatter(self.dataset, self.inspection.posterior, post)
        self.told, self.options, self.numbers = note("ew-told"), note("ew-options"), note("")
        self.waterfall = Waterfall(TERM_NAMES)
        columns = {
            "ew-settings": (self.fields, self.list),
            "ew-column-picture": (self.scatter,),
            "ew-column-numbers": (self.told, self.options, self.waterfall, self.numbers),
        }
        self.lay_out(HBox(row, **look("ew-transport")), in_columns(columns), names=_NAMES)

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The scatter plot, and the terms of the ratio."""
        return self.scatter, self.waterfall

    @property
    def stage(self) -> int:
        """Place of the stage on display, from 0."""
        return int(self.list.value or 0)

    def show_stage(self, place: int) -> None:
        """Show a stage; places beyond the ends show the first or the last one."""
        place = min(max(place, 0), len(self.stages) - 1)
        stage, proposal = self.stages[place], self.inspection.proposal
        is_decided = stage.key in {"ratio", "decision"}
        with self._silence:
            assign(self.list, value=place)
            assign(self.play, value=place)
        self.scatter.show(proposal, stage)
        assign(self.told, value=f"<h4>{escape(stage.title)}</h4><p>{escape(stage.text)}</p>")
        assign(self.numbers, value=numbers_table(self.inspection, stage.key))
        terms = proposal.terms()
        if terms and is_decided:
            self.waterfall.show(terms, proposal.log_uniform if stage.key == "decision" else None)
        else:
            self.waterfall.clear()
        # At a stage that chooses, the options replace the chart.
        text = ""
        if stage.key in {"choice", "target", "draw"} and proposal.choices:
            is_sweep = proposal.kind == "draw"
            chosen = proposal.choices[0 if is_sweep and stage.key == "choice" else -1]
            left_out = int(proposal.choices[0].objects[0]) if is_sweep else None
            text = options_list(chosen, proposal.labels, self.scatter.colours, left_out)
        with self.options.hold_sync():
            assign(self.options, value=text)
            show_if(self.options, bool(text))
        show_if(self.waterfall, not text)
        assign(self.buttons["Back"], disabled=place == 0)
        assign(self.buttons["Next stage"], disabled=place == len(self.stages) - 1)
        assign(self.buttons["Accept anyway"], disabled=not self.inspection.can_accept_anyway)
        assign(self.status, value=escape(self.status_line()))

    def status_line(self) -> str:
        """Where the inspection is, in words."""
        proposal = self.inspection.proposal
        where = f"iteration {self.inspection.iteration}"
        if self.inspection.is_sweep:
            row, names = int(proposal.choices[0].objects[0]), self.dataset.row_names
            where += f", object {row + 1} of {proposal.labels.size}"
            where += "" if names is None else f" ({names[row]})"
        clusters = count(int(proposal.labels.max()) + 1, "cluster")
        return f"{where} · {clusters} · {proposal.move} · stage {self.stage + 1} of {len(self.stages)}"

    def _begin(self) -> None:
        """Show the first stage of a new proposal."""
        self.stages = self.inspection.stages
        options = [(f"{place + 1} {stage.title}", place) for place, stage in enumerate(self.stages)]
        with self._silence:
            assign(self.list, options=options, value=0)
            assign(self.play, max=len(self.stages) - 1, value=0)
        self.show_stage(0)

    def _on_chosen(self, change: dict[str, Any]) -> None:
        if change["new"] is not None and not self._silence:
            self.post(lambda: self.show_stage(change["new"]))

    def _command(self, name: str) -> None:
        if name in {"Back", "Next stage"}:
            self.show_stage(self.stage + (1 if name == "Next stage" else -1))
            return
        commands = {
            "Propose again": self.inspection.propose_again,
            "Accept anyway": self.inspection.accept_anyway,
            "Next iteration": self.inspection.next_iteration,
            "Run 50": lambda: self.inspection.run(_RUN),
            "Reset": self.inspection.reset,
        }
        commands[name]()
        self._begin()

    def _move_changed(self) -> None:
        self.fields.arrange()
        try:
            move = self.fields.read()
        except ValueError:
            return
        if move == self.inspection.move:
            return
        before = self.inspection.move
        try:
            self.inspection.use(move)
        except (ValueError, MemoryError) as error:
            # Distances between all objects may need too much memory; then the previous move stays.
            self.inspection.use(before)
            self.fields.move.problem = str(error)
        self._begin()

    def caption(self) -> str:
        """Heading of the still picture: the text of the stage."""
        stage = self.stages[self.stage]
        return f"{self.dataset.name} · {self.status_line()}\n{stage.title}: {stage.text}"

    def __repr__(self) -> str:
        return (
            f"MoveInspector({self.dataset.name!r}, {self.inspection.move.name}, iteration "
            f"{self.inspection.iteration}, stage {self.stage + 1} of {len(self.stages)})"
        )


def _sampler_and_data(
    source: Sampler | Dataset | ArrayLike | None, data: Dataset | ArrayLike | None, settings: dict[str, Any]
) -> tuple[Sampler, Dataset]:
    """Sampler to inspect, and the data to draw: those given, or made of what is given."""
    if not isinstance(source, Sampler):
        if data is not None:
            raise TypeError("data= is for a sampler, to draw it in other units; give the data alone instead.")
        dataset = as_dataset(source)
        return Sampler(dataset, **{"initial": "k-means", **settings}), dataset
    if settings:
        raise TypeError(
            f"the sampler has its settings already; leave out {', '.join(sorted(settings))}, or give "
            "data instead of a sampler."
        )
    if data is None:
        X = source.posterior.coordinates if source.raw_data is None else source.raw_data
        names = tuple(f"coordinate {place + 1}" for place in range(X.shape[1]))
        return source, Dataset(X=np.array(X), name="the sampler's data", feature_names=names)
    shown = as_dataset(data)
    if shown.n_objects != source.posterior.n_objects:
        raise ValueError(
            f"data has {shown.n_objects} rows, but the sampler {source.posterior.n_objects} objects; give "
            "the data that the sampler was made from."
        )
    return source, shown


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


def numbers_table(inspection: Inspection, stage: str) -> str:
    """HTML of the table at a stage: the proposal's terms, and what the sampler itself reports of it."""
    proposal = inspection.proposal
    is_added, is_decided = stage in _DECIDED, stage == "decision"
    own = None if inspection.event is None else inspection.event.log_ratio
    if inspection.is_sweep and proposal.proposed is not None:
        own = 0.0
    difference = f"difference {inspection.gap:.0e}" if is_added and own is not None else ""
    terms = {term.name: term.value for term in proposal.terms()}
    rows = []
    for name, (formula, known) in _TERMS.items():
        head = f"{name} proposal" if "q(" in formula else name
        rows.append((f"{head} <i>{escape(formula)}</i>", _cell(name, terms.get(name), stage in known)))
    rows += [
        ("<b>log ratio</b>", _cell("sum", proposal.log_ratio(), is_added)),
        (f"the sampler's own <i>{difference}</i>", _cell("sampler", own, is_added)),
        ("log of the uniform draw u", _cell("uniform", proposal.log_uniform, is_decided)),
    ]
    verdict = {None: _OPEN, True: "accepted", False: "rejected"}[proposal.accepted() if is_decided else None]
    rows.append(("<b>decision</b>", f'<td data-term="decision"><b>{verdict}</b></td>'))
    cells = "".join(f"<tr><td>{head}</td>{cell}</tr>" for head, cell in rows)
    return f'<table class="ew-terms"><tr><th></th><th></th></tr>{cells}</table>'


def _cell(name: str, value: float | None, is_shown: bool) -> str:
    if value is None or not is_shown:
        return f'<td data-term="{name}">{_OPEN}</td>'
    return f'<td data-term="{name}" data-value="{value!r}">{signed(value)}</td>'


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
