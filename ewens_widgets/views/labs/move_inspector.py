"""One proposal of a move in slow motion, with the numbers that decide about it.

A lecturer sees the stages of a proposal on the left (where the chain stands, what is chosen, the cores, the
sides, the proposal, the ratio, the decision), the objects in the middle and the numbers on the right, and
goes through them by buttons, by the list or by itself. From the same partition the proposal can be made again
with other random numbers; a rejected one can be accepted, to see where that would have led.

The inspector computes nothing. An `Inspection` makes the proposal with the sampler's own kernel, on a copy,
and explains it in scenes; so the terms on display add up to the log ratio that the sampler itself reports,
and the row "the sampler's own" says by how much they do not. There is no background work here: a proposal is
made and explained within some milliseconds, on the event loop.
"""

import textwrap
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from ipywidgets import HTML, HBox, Play, Select
from numpy.typing import ArrayLike

from ewens_widgets.analysis.explanation import Inspection
from ewens_widgets.datasets import Dataset, as_dataset
from ewens_widgets.sampling.moves.move import Move, Scene, count
from ewens_widgets.sampling.moves.schedule import resolve_schedule
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.views.base import Panel, assign, note, show_if
from ewens_widgets.views.labs.inspector_controls import InspectorButtons, MoveFields
from ewens_widgets.views.labs.inspector_numbers import (
    Waterfall,
    numbers_table,
    options_list,
    printed_sentence,
)
from ewens_widgets.views.labs.stage_scatter import StageScatter
from ewens_widgets.views.page import STATUS, Dashboard, in_columns

__all__ = ["MoveInspector"]

_NAMES: dict[str, dict[str, str]] = {
    ".ew-waterfall": {"role": "img", "aria-label": "Terms of the log ratio as a waterfall chart"},
    ".ew-told": STATUS,
    ".ew-stages select": {"aria-label": "stages of the proposal"},
    ".ew-play-stages button": {"aria-label": "slow motion"},
}
_RUN = 50
_SLOW_MOTION = 2500  # milliseconds a stage


class MoveInspector(Dashboard):
    """One proposal of any move in slow motion.

    Step through the stages of a proposal, let it be made again from the same partition, accept it whatever
    was decided, or go on to the next iteration. The terms in the table add up to the log ratio that the
    sampler itself reports.

    Parameters
    ----------
    source
        A `Sampler`, which is not moved; or a `Dataset` or an array, for which one is made; the unit square by
        default.
    move
        The move to look at, or its name: ``"split-merge"``, ``"reassign"``, ``"informed-split-merge"`` or
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
        sampler, self._dataset = _sampler_and_data(source, data, settings)
        chosen = move if move is not None or isinstance(source, Sampler) else "split-merge"
        self.inspection = Inspection(sampler, None if chosen is None else resolve_schedule([chosen])[0].move)
        self._stages: tuple[Scene, ...] = ()
        self._is_drawing = False
        super().__init__()
        self._build()
        self.lay_out(self.transport, self._columns(), names=_NAMES)
        self._begin()

    def _build(self) -> None:
        post = self.post
        self.fields = MoveFields(self.inspection.move, lambda: post(self._move_changed))
        self.controls = InspectorButtons(
            lambda name: post(lambda: self._command(name)), lambda: post(lambda: self.show_stage(self.stage))
        )
        self.play = Play(value=0, min=0, max=1, interval=_SLOW_MOTION, show_repeat=False)
        self.play.add_class("ew-play-stages")
        self.play.observe(lambda change: self._chosen(change["new"]), "value")
        self.status = note("ew-status")
        self.transport = HBox((self.play, *self.controls.children, self.status))
        self.transport.add_class("ew-transport")
        self.list = Select(
            options=[("–", 0)], value=0, rows=9, tooltip="Stages; the arrow keys go through them"
        )
        self.list.add_class("ew-stages")
        self.list.observe(lambda change: self._chosen(change["new"]), "value")
        self.scatter = StageScatter(self._dataset, self.inspection.posterior, post)
        self.told = note("ew-told")
        self.waterfall = Waterfall(("prior", "likelihood", "way back", "way there", "log ratio"))
        self.options = note("ew-options")
        self.numbers = HTML()

    def _columns(self) -> HBox:
        return in_columns(
            {
                "ew-settings": (self.fields, self.list),
                "ew-column-picture": (self.scatter,),
                "ew-column-numbers": (self.told, self.options, self.waterfall, self.numbers),
            }
        )

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The scatter plot."""
        return (self.scatter,)

    @property
    def dataset(self) -> Dataset:
        """What the scatter shows."""
        return self._dataset

    @property
    def stage(self) -> int:
        """Place of the stage on display, from 0."""
        return int(self.list.value or 0)

    @property
    def stages(self) -> tuple[Scene, ...]:
        """Stages of the proposal."""
        return self._stages

    def show_stage(self, place: int) -> None:
        """Show a stage; places beyond the ends show the first or the last one."""
        place = min(max(place, 0), len(self._stages) - 1)
        stage, proposal = self._stages[place], self.inspection.proposal
        printed = bool(self.controls.printed.value)
        self._is_drawing = True
        try:
            assign(self.list, value=place)
            assign(self.play, value=place)
        finally:
            self._is_drawing = False
        self.scatter.show(proposal, stage)
        paragraphs = [stage.text]
        if printed and stage.key in {"ratio", "decision"}:
            paragraphs.append(printed_sentence(proposal))
        text = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)
        assign(self.told, value=f"<h4>{escape(stage.title)}</h4>{text}")
        assign(self.numbers, value=numbers_table(self.inspection, stage.key, printed))
        self._show_terms(stage.key, printed)
        self._show_options(stage.key)
        self._show_status(place)

    def _show_terms(self, key: str, printed: bool) -> None:
        proposal = self.inspection.proposal
        terms = proposal.terms(as_printed=True if printed else None)
        if not terms or key not in {"ratio", "decision"}:
            self.waterfall.clear()
            return
        self.waterfall.show(terms, proposal.log_uniform if key == "decision" else None)

    def _show_options(self, key: str) -> None:
        """List what could be chosen, in the place of the chart, at the stages that choose."""
        proposal = self.inspection.proposal
        text = ""
        if key in {"choice", "target", "draw"} and proposal.choices:
            choice = (
                proposal.choices[-1] if key != "choice" or proposal.kind != "draw" else proposal.choices[0]
            )
            left_out = int(proposal.choices[0].objects[0]) if proposal.kind == "draw" else None
            text = options_list(choice, proposal.labels, self.scatter.colours, left_out)
        assign(self.options, value=text)
        show_if(self.options, bool(text))
        show_if(self.waterfall, not text)

    def _show_status(self, place: int) -> None:
        buttons = self.controls.buttons
        assign(buttons["Back"], disabled=place == 0)
        assign(buttons["Next stage"], disabled=place == len(self._stages) - 1)
        assign(buttons["Accept anyway"], disabled=not self.inspection.can_accept_anyway)
        assign(self.status, value=escape(self.status_line()))

    def status_line(self) -> str:
        """Where the inspection is, in words."""
        proposal = self.inspection.proposal
        where = f"iteration {self.inspection.iteration}"
        if self.inspection.is_sweep:
            row, names = int(proposal.choices[0].objects[0]), self._dataset.row_names
            where += f", object {row + 1} of {proposal.labels.size}"
            where += "" if names is None else f" ({names[row]})"
        clusters = count(int(proposal.labels.max()) + 1, "cluster")
        return f"{where} · {clusters} · {proposal.move} · stage {self.stage + 1} of {len(self._stages)}"

    def _begin(self) -> None:
        """Show the first stage of a new proposal."""
        self._stages = self.inspection.stages
        options = [(f"{place + 1} {stage.title}", place) for place, stage in enumerate(self._stages)]
        self._is_drawing = True
        try:
            assign(self.list, options=options, value=0)
            assign(self.play, max=len(self._stages) - 1, value=0)
        finally:
            self._is_drawing = False
        self.show_stage(0)

    def _chosen(self, place: int | None) -> None:
        if place is not None and not self._is_drawing:
            self.post(lambda: self.show_stage(place))

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
            # Distances between all objects may not fit; then the move before it is looked at again.
            self.inspection.use(before)
            self.fields.fields["move"].problem = str(error)
        self._begin()

    def caption(self) -> str:
        """Heading of the still picture: what the stage tells."""
        stage = self._stages[self.stage]
        return f"{self._dataset.name} · {self.status_line()}\n{stage.title}: {textwrap.fill(stage.text, 150)}"

    def picture(self, kind: str = "png") -> bytes:
        """Static picture of the stage on display: ``"png"`` or ``"svg"``."""
        from matplotlib.figure import Figure

        if kind not in {"png", "svg"}:
            raise ValueError(f"kind must be 'png' or 'svg', got {kind!r}")
        figure = Figure(figsize=(12.0, 5.2))
        figure.subplots_adjust(left=0.06, right=0.98, bottom=0.12, top=0.78, wspace=0.2)
        figure.suptitle(self.caption().replace("$", r"\$"), fontsize=10, x=0.06, ha="left")
        left, right = figure.subplots(1, 2)
        self.scatter.paint(left)
        self.waterfall.paint(right)
        content = BytesIO()
        figure.savefig(content, format=kind, dpi=72, metadata={"Date": None} if kind == "svg" else {})
        return content.getvalue()

    def __repr__(self) -> str:
        return (
            f"MoveInspector({self._dataset.name!r}, {self.inspection.move.name}, iteration "
            f"{self.inspection.iteration}, stage {self.stage + 1} of {len(self._stages)})"
        )


def _sampler_and_data(
    source: Sampler | Dataset | ArrayLike | None, data: Dataset | ArrayLike | None, settings: dict[str, Any]
) -> tuple[Sampler, Dataset]:
    """Sampler to inspect, and the data to draw: those given, or what can be made of what is given."""
    if isinstance(source, Sampler):
        if settings:
            raise TypeError(
                f"the sampler has its settings already; leave out {', '.join(sorted(settings))}, or give "
                "data instead of a sampler."
            )
        return source, _shown_data(source, data)
    if data is not None:
        raise TypeError("data= is for a sampler, to draw it in other units; give the data alone instead.")
    dataset = as_dataset(source)
    return Sampler(dataset, **{"initial": "k-means", **settings}), dataset


def _shown_data(sampler: Sampler, data: Dataset | ArrayLike | None) -> Dataset:
    if data is None:
        X = sampler.posterior.coordinates if sampler.raw_data is None else sampler.raw_data
        names = tuple(f"coordinate {place + 1}" for place in range(X.shape[1]))
        return Dataset(X=np.array(X), name="the sampler's data", feature_names=names)
    shown = as_dataset(data)
    if shown.n_objects != sampler.posterior.n_objects:
        raise ValueError(
            f"data has {shown.n_objects} rows, but the sampler {sampler.posterior.n_objects} objects; give "
            "the data that the sampler was made from."
        )
    return shown
