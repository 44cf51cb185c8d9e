r"""The numbers of a proposal: what could be chosen, and the terms of the ratio that decides.

At the stages that choose, `options_list` shows the options with their probabilities, the most probable first.
From the proposal on, `numbers_table` fills the terms of

.. math:: \log r = \log \frac{p(B^*)}{p(B)} + \log \frac{L(B^*)}{L(B)}
        + \log q(B \mid B^*) - \log q(B^* \mid B)

one after the other; what a stage has not come to yet is left open, so that nobody reads ahead. `Waterfall`
draws the same sum: each bar begins where the one before it ends, and the last one is the log ratio, to be
compared with the dashed line, the log of the uniform draw. The paper prints the two q terms upside down; both
ratios stand side by side where somebody asks for that.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import bqplot
import numpy as np
from ipywidgets import VBox
from numpy.typing import NDArray

from ewens_widgets.analysis.explanation import Inspection, Proposal, Term
from ewens_widgets.analysis.plots.palette import colour_of
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.moves.move import MOVES, Choice, count, signed
from ewens_widgets.views.base import assign
from ewens_widgets.views.figures import make_axis, make_figure, make_scale, nice_limits, set_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "FALLS",
    "MOST_OPTIONS",
    "RISES",
    "Waterfall",
    "numbers_table",
    "options_list",
    "printed_sentence",
    "waterfall_bars",
]

MOST_OPTIONS = 8

RISES, FALLS, TOTAL, MARK = "#0072b2", "#d55e00", "#808080", "#a80876"
_FARTHEST = 1e4
"""What is drawn of an infinite term: far beyond any other."""

_FORMULAE = {
    "prior": "log p(B*) / p(B)",
    "likelihood": "log L(B*) / L(B)",
    "way back": "log q(B | B*)",
    "way there": "log q(B* | B)",
}
_SHOWN_FROM = {
    "way back": {"proposal", "ratio", "decision"},
    "way there": {"proposal", "ratio", "decision"},
    "prior": {"ratio", "decision"},
    "likelihood": {"ratio", "decision"},
}
_OPEN = "·"


def numbers_table(inspection: Inspection, stage: str, printed: bool) -> str:
    """HTML of the table.

    Parameters
    ----------
    inspection
        Holds the proposal, and what the sampler itself reports of it.
    stage
        Key of the stage on display.
    printed
        Whether to add the ratio that the paper prints.
    """
    proposal = inspection.proposal
    printed = printed and proposal.has_printed_ratio
    rules = (False, True) if printed else (proposal.as_printed,)
    heads = ("right", "as printed") if printed else ("",)
    rows = ["".join(f"<th>{head}</th>" for head in ("", *heads))]
    for name, formula in _FORMULAE.items():
        cells = [_term_cell(proposal, name, rule, stage in _SHOWN_FROM[name]) for rule in rules]
        sign = "− " if name == "way there" else ""
        rows.append(f"<td>{name} <i>{sign}{escape(formula)}</i></td>{''.join(cells)}")
    is_added = stage in {"ratio", "decision"}
    sums = [_cell("sum", proposal.log_ratio(rule), is_added) for rule in rules]
    rows.append(f"<td><b>log ratio</b></td>{''.join(sums)}")
    rows.append(_sampler_row(inspection, is_added, len(rules)))
    is_decided = stage == "decision"
    uniform = _cell("uniform", proposal.log_uniform, is_decided)
    rows.append(f"<td>log of the uniform draw u</td>{uniform * len(rules)}")
    verdicts = [_verdict(proposal.accepted(rule), is_decided) for rule in rules]
    rows.append(f"<td><b>decision</b></td>{''.join(verdicts)}")
    return f'<table class="ew-terms">{"".join(f"<tr>{row}</tr>" for row in rows)}</table>'


def printed_sentence(proposal: Proposal) -> str:
    """What the ratio printed in the paper would have decided."""
    if proposal.proposed is None:
        return "Nothing was proposed, so there is no ratio, printed or not."
    if not proposal.has_printed_ratio:
        if MOVES[proposal.move].from_paper:
            return "For this move both ways are as probable: turned upside down, the ratio stays what it is."
        return "This move is not in the paper, which prints no ratio for it."
    right, printed = proposal.accepted(as_printed=False), proposal.accepted(as_printed=True)
    log_ratio = proposal.log_ratio(as_printed=True) or 0.0
    verdict = "accepted" if printed else "rejected"
    compared = "as the right one does" if right == printed else "where the right one decides otherwise"
    return (
        f"The paper prints the way there above the line and the way back below it: a log ratio of "
        f"{signed(log_ratio)}, by which this proposal is {verdict}, {compared}."
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
        Object that does not count as a member: it is the one being moved.
    """
    if not choice.examples:
        return ""
    order = np.argsort(-choice.probabilities, kind="stable")
    shown = order[:MOST_OPTIONS]
    if choice.chosen not in shown:
        shown = np.append(shown[:-1], choice.chosen)
    highest = float(choice.probabilities.max())
    rows = [_row(choice, int(place), labels, colours, left_out, highest) for place in shown]
    more = choice.probabilities.size - shown.size
    rest = f"<div>and {more} more</div>" if more > 0 else ""
    drawn = "" if choice.uniform is None else f" · uniform draw {choice.uniform:.4f}"
    heading = f"<div><b>{escape(choice.what)}</b>: {count(choice.probabilities.size, 'option')}{drawn}</div>"
    return f"{heading}{''.join(rows)}{rest}"


def waterfall_bars(values: Sequence[float]) -> FloatArray:
    """Beginning and end of each bar, one a row; the last one is the total, from 0."""
    finite = np.clip(np.asarray(values, dtype=np.float64), -_FARTHEST, _FARTHEST)
    ends = np.concatenate([[0.0], np.cumsum(finite)])
    return np.concatenate([np.stack([ends[:-1], ends[1:]], axis=1), [[0.0, ends[-1]]]])


class Waterfall(VBox):
    """Bars for the terms and their total, and a line to compare the total with.

    Parameters
    ----------
    names
        Names of the terms, and last that of their total.
    height
        In pixels.
    """

    def __init__(self, names: Sequence[str], height: int = 230) -> None:
        self._names = tuple(names)
        n_terms = len(names) - 1
        self._terms: tuple[Term, ...] = ()
        self._mark: float | None = None
        self._x_scale, self._y_scale = make_scale(-0.6, n_terms + 0.6), make_scale(-1.0, 1.0)
        scales = {"x": self._x_scale, "y": self._y_scale}
        places = np.arange(n_terms + 1.0)
        nothing = np.zeros((n_terms + 1, 2))
        self.bars = bqplot.Lines(
            x=np.stack([places, places], axis=1),
            y=nothing,
            scales=scales,
            colors=[TOTAL] * (n_terms + 1),
            stroke_width=30,
        )
        self.steps = bqplot.Lines(
            x=np.stack([places[:-1], places[1:]], axis=1),
            y=nothing[:-1],
            scales=scales,
            colors=[TOTAL],
            stroke_width=1,
            line_style="dotted",
        )
        self.zero = bqplot.Lines(
            x=np.array([-0.6, n_terms + 0.6]),
            y=np.zeros(2),
            scales=scales,
            colors=[TOTAL],
            stroke_width=1,
        )
        self.mark = bqplot.Lines(
            x=np.array([-0.6, n_terms + 0.6]),
            y=np.zeros(2),
            scales=scales,
            colors=[MARK],
            stroke_width=2,
            line_style="dashed",
            visible=False,
        )
        self.texts = bqplot.Label(
            x=places,
            y=np.zeros(n_terms + 1),
            text=[""] * (n_terms + 1),
            scales=scales,
            colors=[TOTAL],
            default_size=11,
            font_weight="normal",
            align="middle",
        )
        self.mark_text = bqplot.Label(
            x=np.array([-0.55]),
            y=np.zeros(1),
            text=["log u"],
            scales=scales,
            colors=[MARK],
            default_size=11,
            font_weight="normal",
            align="start",
            visible=False,
        )
        self._x_axis = make_axis(self._x_scale)
        # Labels that come later than the axis would not be drawn.
        ticks = {str(place): name for place, name in enumerate(self._names)}
        assign(self._x_axis, tick_values=places, tick_labels=ticks)
        self._y_axis = make_axis(self._y_scale, vertical=True)
        self.figure = make_figure(
            "ew-waterfall",
            height,
            (16, 8, 22, 44),
            marks=[self.zero, self.steps, self.bars, self.mark, self.texts, self.mark_text],
            axes=[self._x_axis, self._y_axis],
        )
        super().__init__((self.figure,))
        self.add_class("ew-waterfall-box")
        self.clear()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is shown."""
        return not self._terms

    def clear(self) -> None:
        """Show no bars."""
        self._terms, self._mark = (), None
        for mark in (self.bars, self.steps, self.mark, self.texts, self.mark_text):
            assign(mark, visible=False)

    def show(self, terms: Sequence[Term], mark: float | None = None) -> None:
        """Show terms, their total, and a line at `mark`, if there is one."""
        self._terms, self._mark = tuple(terms), mark
        bars = waterfall_bars([term.value for term in terms])
        low, high = self._limits(bars, mark)
        set_limits(self._y_scale, self._y_axis, low, high, ticks=5)
        values = [term.value for term in terms]
        colours = [RISES if value >= 0.0 else FALLS for value in values]
        assign(self.bars, y=bars, colors=[*colours, TOTAL], visible=True)
        assign(self.steps, y=np.stack([bars[:-1, 1], bars[:-1, 1]], axis=1), visible=True)
        # Above a bar that rises and below one that falls: there nothing is in the way.
        total = float(bars[-1, 1])
        ends = np.array([*values, total])
        gap = 0.02 * (high - low)
        y = np.where(ends >= 0.0, bars.max(axis=1) + gap, bars.min(axis=1) - 5.0 * gap)
        texts = [signed(value) for value in [*values, sum(values)]]
        assign(self.texts, y=np.clip(y, low, high - gap), text=texts, colors=[*colours, TOTAL], visible=True)
        shown = mark is not None
        level = 0.0 if mark is None else max(mark, low)
        assign(self.mark, y=np.full(2, level), visible=shown)
        assign(self.mark_text, y=np.array([level + gap]), visible=shown)

    @staticmethod
    def _limits(bars: FloatArray, mark: float | None) -> tuple[float, float]:
        low, high = float(bars.min()), float(bars.max())
        if mark is not None:
            low = min(low, mark)
        room = 0.16 * (high - low)
        return nice_limits(low - room, high + room)

    def paint(self, axes: "Axes") -> None:
        """Draw the chart with matplotlib."""
        if self.is_empty:
            axes.text(0.5, 0.5, "nothing to add up yet", ha="center", va="center")
            axes.set_axis_off()
            return
        bars = waterfall_bars([term.value for term in self._terms])
        colours = [RISES if end >= start else FALLS for start, end in bars[:-1]]
        axes.bar(self._names, bars[:, 1] - bars[:, 0], bottom=bars[:, 0], color=[*colours, TOTAL], width=0.6)
        axes.axhline(0.0, color=TOTAL, linewidth=0.8)
        if self._mark is not None:
            axes.axhline(self._mark, color=MARK, linestyle="--", linewidth=1.2)
        values = [*(term.value for term in self._terms), sum(term.value for term in self._terms)]
        for place, value in enumerate(values):
            text = axes.annotate(
                signed(value), (place, bars[place].max()), ha="center", va="bottom", fontsize=8
            )
            # Lines end beside it, and do not strike it through.
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.8})
        axes.set_ylim(*self._limits(bars, self._mark))


def _term_cell(proposal: Proposal, name: str, printed: bool, is_shown: bool) -> str:
    values = {term.name: term.value for term in proposal.terms(printed)}
    return _cell(name, values.get(name), is_shown)


def _cell(name: str, value: float | None, is_shown: bool) -> str:
    if value is None or not is_shown:
        return f'<td data-term="{name}">{_OPEN}</td>'
    return f'<td data-term="{name}" data-value="{value!r}">{signed(value)}</td>'


def _sampler_row(inspection: Inspection, is_shown: bool, columns: int) -> str:
    event = inspection.event
    own = None if event is None else event.log_ratio
    if inspection.is_sweep and inspection.proposal.proposed is not None:
        own = 0.0
    note = f"difference {inspection.gap:.0e}" if is_shown and own is not None else ""
    cells = [_cell("sampler", own, is_shown)]
    if columns > 1:
        # Below the ratio that the chain decides by.
        cells.insert(0 if inspection.proposal.as_printed else 1, "<td></td>")
    return f"<td>the sampler's own <i>{note}</i></td>{''.join(cells)}"


def _verdict(accepted: bool | None, is_shown: bool) -> str:
    text = _OPEN if accepted is None or not is_shown else "accepted" if accepted else "rejected"
    return f'<td data-term="decision"><b>{text}</b></td>'


def _row(
    choice: Choice,
    place: int,
    labels: NDArray[np.intp],
    colours: NDArray[np.intp],
    left_out: int | None,
    highest: float,
) -> str:
    examples, probability = choice.examples[place], float(choice.probabilities[place])
    chips, sizes = [], []
    for example in examples:
        members = np.flatnonzero(labels == labels[example])
        sizes.append(str(members.size - (left_out is not None and left_out in members)))
        colour = colour_of(int(colours[example]))
        chips.append(f'<span class="ew-swatch" style="background:{colour}"></span>')
    name = f"{' + '.join(sizes)} objects" if examples else "a new cluster"
    is_chosen = place == choice.chosen
    text = f"<b>{name}, chosen</b>" if is_chosen else name
    marks = f'data-probability="{probability!r}" data-chosen="{str(is_chosen).lower()}"'
    return (
        f'<div class="ew-rate ew-option" {marks}>'
        f'<span>{"".join(chips)} {text}</span><span class="ew-rate-bar">'
        f'<span style="width:{100 * probability / highest:.0f}%"></span></span>'
        f"<span>{probability:.3g}</span></div>"
    )
