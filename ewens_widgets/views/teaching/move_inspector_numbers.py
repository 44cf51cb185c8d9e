"""The numbers of a proposal as a table; what a stage has not yet come to is left open."""

from html import escape

from ewens_widgets.analysis.explanation.inspection import Inspection
from ewens_widgets.analysis.explanation.number_words import signed
from ewens_widgets.analysis.explanation.proposal import Proposal

__all__ = ["numbers_table", "printed_sentence"]

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


def printed_sentence(proposal: Proposal) -> str:
    """What the ratio printed in the paper would have decided."""
    if proposal.proposed is None:
        return "Nothing was proposed, so there is no ratio, printed or not."
    if not proposal.has_printed_ratio:
        if proposal.move == "reassign":
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
