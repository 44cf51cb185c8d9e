"""One proposal of a move in slow motion, with the numbers that decide about it.

A lecturer sees the stages of a proposal on the left (the current partition, the choice, the cores, the sides,
the proposal, the ratio, the decision), the objects in the middle and the numbers on the right. Buttons, the
list or slow motion lead through them. The proposal can be repeated from the same partition with other random
numbers; a rejected one can be accepted, to see where that would have led.

An `Inspection` makes the proposal with the sampler's own kernel, on a copy, and explains it in scenes; this
module only shows them. So the terms on display add up to the log ratio that the sampler itself reports. A
proposal is made and explained within some milliseconds, on the event loop, without work in the background.
"""

from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from ipywidgets import HBox, Play, Select, ToggleButton, VBox
from numpy.typing import ArrayLike

from ewens_widgets.analysis.explanation import Inspection
from ewens_widgets.datasets import Dataset, as_dataset
from ewens_widgets.sampling.moves.move import MOVES, Move, Scene, count
from ewens_widgets.sampling.moves.schedule import resolve_schedule
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.views.base import Panel, Silence, assign, look, make, note, show_if
from ewens_widgets.views.fields import Field, buttons, choice, option_field, read_shown, show_only
from ewens_widgets.views.labs import inspector_panels
from ewens_widgets.views.page import STATUS, Dashboard, in_columns

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


class MoveFields(VBox):
    """The move and its options; `changed` is called when a field has changed."""

    def __init__(self, move: Move, changed: Callable[[], None]) -> None:
        self._moves = {name: move if name == move.name else kind() for name, kind in MOVES.items()}
        # Moves with a printed ratio first, and sweeps, which are always accepted, last.
        kinds = sorted(MOVES.values(), key=lambda kind: (not kind.has_printed_ratio, kind.is_sweep))
        titles = [(kind.title, kind.name) for kind in kinds]
        self.move = choice("move", titles, move.name, "ew-move", "The move to inspect")
        self._options = {
            name: {option.name: option_field(option, known) for option in known.choosable}
            for name, known in self._moves.items()
        }
        options = [field for fields in self._options.values() for field in fields.values()]
        super().__init__((self.move, *options), **look("ew-move-fields"))
        self.arrange()
        for field in (self.move, *options):
            field.control.observe(lambda _: changed(), "value")

    @property
    def options(self) -> dict[str, Field]:
        """Fields of the chosen move's options, by name."""
        return self._options[self.move.control.value]

    def arrange(self) -> None:
        """Show the options that the move has."""
        for name, fields in self._options.items():
            show_only(fields, set(fields) if name == self.move.control.value else set())

    def read(self) -> Move:
        """The move; a wrong option is explained below its field, and raises `ValueError`."""
        return replace(self._moves[self.move.control.value], **read_shown(self.options))


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
    stylesheet = Path(__file__).with_name("move_inspector.css")

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
        self.buttons = buttons(_BUTTONS, lambda name: post(lambda: self._command(name)))
        name = "Ratio as printed"
        hint = "What the ratio printed in the paper, with its proposal terms inverted, would decide"
        self.printed = make(ToggleButton, "ew-as-printed", value=False, description=name, tooltip=hint)
        self.play = make(Play, "ew-play-stages", max=1, interval=_SLOW_MOTION, show_repeat=False)
        hint = "Stages; the arrow keys lead through them"
        self.list = make(Select, "ew-stages", options=[("–", 0)], value=0, rows=9, tooltip=hint)
        self.printed.observe(lambda _: post(lambda: self.show_stage(self.stage)), "value")
        for control in (self.play, self.list):
            control.observe(self._on_chosen, "value")
        self.status = note("ew-status")
        row = (self.play, *self.buttons.values(), self.printed, self.status)
        self.scatter = inspector_panels.StageScatter(self.dataset, self.inspection.posterior, post)
        self.told, self.options, self.numbers = note("ew-told"), note("ew-options"), note("")
        self.waterfall = inspector_panels.Waterfall(inspector_panels.TERM_NAMES)
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
        printed, is_decided = bool(self.printed.value), stage.key in {"ratio", "decision"}
        with self._silence:
            assign(self.list, value=place)
            assign(self.play, value=place)
        self.scatter.show(proposal, stage)
        paragraphs = [stage.text]
        if printed and is_decided:
            paragraphs.append(inspector_panels.printed_sentence(proposal))
        text = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)
        assign(self.told, value=f"<h4>{escape(stage.title)}</h4>{text}")
        assign(self.numbers, value=inspector_panels.numbers_table(self.inspection, stage.key, printed))
        terms = proposal.terms(as_printed=True if printed else None)
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
            text = inspector_panels.options_list(chosen, proposal.labels, self.scatter.colours, left_out)
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
