r"""What the cells of one column mean: numbers in the ways people write them, dates, yes and no, or text.

A column is read as a whole, since a cell alone does not say enough: ``1,007`` may be a thousand and seven, or
one and seven thousandths. Every cell that looks like a number is taken apart,

    sign, currency, sign, digits with their separators, exponent, unit    ``-€ 1.234,50``, ``5 mg``, ``4.5%``

and the column has numbers if all cells that are filled can be read with the *same* decimal mark and the same
unit. Where both marks would do and give different numbers, the rest of the table decides: a file has one
decimal mark. :func:`decimal_evidence` collects what the columns say that leave no choice. If nobody knows,
the column stays undecided and says what the choices are: ``read_as={"weight": "thousands"}``.
"""

import datetime as dt
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "READINGS",
    "Cells",
    "Meaning",
    "decimal_evidence",
    "is_missing",
    "is_plain_number",
    "looks_like_number",
    "looks_like_unit",
    "meaning_of",
]

FloatArray = NDArray[np.float64]

READINGS = ("thousands", "decimals", "numbers", "day first", "month first", "text")
"""What `read_as` can say of a column."""

_MISSING = {"", "na", "n/a", "n.a.", "nan", "nat", "null", "none", "missing", "?", ".", "-", "--", "---"}
_MISSING |= {"<na>", "#n/a", "#na", "#n/a n/a", "1.#qnan", "-nan", "\\n"}
_TRUE = {"true": "false", "yes": "no", "y": "n", "t": "f", "on": "off", "ja": "nein", "oui": "non"}

_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?")
_PADDED = re.compile(r"[+-]?0\d+")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")
_CURRENCIES = "$€£¥₹"
_CURRENCY_CODES = ("USD", "EUR", "GBP", "CHF", "JPY", "SEK", "DKK", "NOK", "CAD", "AUD", "INR", "CNY")
_SHAPE = re.compile(
    r"(?P<sign>[+\-−]?)\s*(?P<prefix>[$€£¥₹]|(?:" + "|".join(_CURRENCY_CODES) + r")\b)?\s*(?P<inner>[+\-−]?)"
    r"(?P<body>\d(?:[\d.,'’ \u00a0\u202f]*\d)?[.,]?|[.,]\d+)(?P<exponent>[eE][+\-−]?\d{1,4}(?![\w]))?"
    r"\s*(?P<suffix>[%‰°A-Za-zµμΩ€$£¥₹][\w%°/·*^²³⁻¹µμΩ .\-]{0,14})?"
)
_GROUP_MARKS = "'’ \u00a0\u202f"
_UNIT_NAMES = """
% ‰ ppm ppb m km cm mm µm μm um nm in ft yd mi g kg mg µg μg ug ng lb lbs oz s sec ms µs ns min h hr hrs day
days wk week weeks mo month months yr year years l ml µl dl cl m2 m² km2 km² cm2 cm² mm2 mm² ha m3 m³ cm3
cm³ mm3 k °c °f °k ° deg rad ma v mv kv w kw mw j kj cal kcal pa hpa kpa mpa bar mbar psi mmhg hz khz mhz ghz
mol mmol µmol nmol iu m/s km/h mph g/l mg/l µg/l ug/l mg/dl g/dl mg/kg g/cm3 g/cm³ kg/m2 kg/m² kg/m3 kg/m³
mmol/l µmol/l ng/ml µg/ml ug/ml mg/ml u/l iu/l l/min ml/min bpm db kb mb gb tb px
"""
_UNITS = frozenset(_UNIT_NAMES.split())
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?)?")
_OTHER_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")
_TIME = re.compile(r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?")


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value, in one of the usual spellings."""
    return cell.lower() in _MISSING


def is_plain_number(cell: str) -> bool:
    """Whether a cell is a number as computers write them."""
    return _PLAIN.fullmatch(cell) is not None


def looks_like_number(cell: str) -> bool:
    """Whether a cell alone can be taken for a number, perhaps with a unit that we know, or for a date."""
    if _PLAIN.fullmatch(cell) or _ISO_DATE.fullmatch(cell):
        return True
    match = _SHAPE.fullmatch(cell)
    if match is None or (_affix(match) and not _is_known(_affix(match))):
        return False
    return any(_values({0: match}, mark) for mark in ".,")


def looks_like_unit(cell: str) -> bool:
    """Whether a cell alone is a unit, perhaps in brackets."""
    return bool(cell) and (_is_known(cell.strip("[]() ")) or cell[0] + cell[-1] in {"[]", "()"})


@dataclass(frozen=True)
class Meaning:
    """How a column is understood.

    Attributes
    ----------
    kind
        "number", "date", "boolean", "text" or "empty"; "undecided" if there is more than one way.
    numbers
        The values; NaN where a cell is missing or could not be read. None for text.
    note
        What was done to get the numbers, for the account; empty for plain ones.
    question
        Why it is undecided.
    choices
        Values of `read_as` that decide it, each with what it gives.
    """

    kind: str
    numbers: FloatArray | None = None
    note: str = ""
    question: str = ""
    choices: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cells:
    """The cells of a column, stripped of surrounding space, and what can be seen at a glance."""

    texts: Sequence[str]

    @cached_property
    def filled(self) -> list[int]:
        """Places of the cells that hold something."""
        return [place for place, cell in enumerate(self.texts) if not is_missing(cell)]

    @cached_property
    def shapes(self) -> dict[int, re.Match[str]]:
        """By place, the filled cells that look like a number, taken apart."""
        found = ((place, _SHAPE.fullmatch(self.texts[place])) for place in self.filled)
        return {place: match for place, match in found if match is not None}

    @cached_property
    def is_plain(self) -> bool:
        """Whether every filled cell is a number as computers write them."""
        return all(_PLAIN.fullmatch(self.texts[place]) for place in self.filled)

    @cached_property
    def marks(self) -> dict[str, dict[int, float]]:
        """For each decimal mark, the numbers that can be read with it."""
        if not self.is_plain:
            return {mark: _values(self.shapes, mark) for mark in ".,"}
        # The usual case, which must be fast: points that cannot stand between thousands are decimal points.
        points = {place: float(self.texts[place]) for place in self.filled}
        points = {place: value for place, value in points.items() if math.isfinite(value)}
        dotted = [self.texts[place] for place in points if "." in self.texts[place]]
        if not dotted:
            return {".": points, ",": points}
        if not all(_GROUPED.fullmatch(text) for text in dotted):
            return {".": points, ",": {}}
        return {".": points, ",": _values(self.shapes, ",")}

    @property
    def is_mostly_numbers(self) -> bool:
        """Whether at least half of the filled cells can be read as a number with one of the marks."""
        return bool(self.filled) and 2 * max(len(values) for values in self.marks.values()) >= len(
            self.filled
        )

    @property
    def first_three(self) -> tuple[str, ...]:
        """Three values that differ, or as many as there are."""
        seen = dict.fromkeys(self.texts[place] for place in self.filled[:1000])
        return tuple(seen)[:3]

    def all_match(self, test: Callable[[str], object]) -> bool:
        """Whether every filled cell passes a test."""
        return bool(self.filled) and all(test(self.texts[place]) for place in self.filled)


def decimal_evidence(columns: Sequence[Cells], separator: str) -> str:
    """Decimal marks that the table is known to use: "", "." or ",", or ".," if columns contradict each other.

    A column speaks if one mark reads all of its numbers and the other does not. Only where none does, a
    semicolon between cells says that commas are needed for something else: decimals.
    """
    spoken = {mark for cells in columns if (mark := _only_mark(cells))}
    return "".join(sorted(spoken)) or ("," if separator == ";" else "")


def meaning_of(cells: Cells, evidence: str, reading: str | None = None) -> Meaning:
    """Read a column; `reading` is what the user said about it, one of `READINGS`."""
    if not cells.filled:
        return Meaning("empty")
    if reading == "text":
        return Meaning("text")
    if reading in {"day first", "month first"}:
        return _dates(cells, reading)
    if cells.all_match(_ISO_DATE.fullmatch) or cells.all_match(_OTHER_DATE.fullmatch):
        return _dates(cells, None)
    if cells.all_match(_TIME.fullmatch):
        hours = [math.nan if is_missing(cell) else _hours(cell) for cell in cells.texts]
        return Meaning("date", np.array(hours), note="hours since midnight")
    truth = _booleans(cells, reading)
    if truth is not None:
        return truth
    if not cells.is_mostly_numbers or (_are_codes(cells) and reading != "numbers"):
        return Meaning("text")
    return _numbers(cells, evidence, reading)


def _values(shapes: dict[int, re.Match[str]], mark: str) -> dict[int, float]:
    other = {".": ",", ",": "."}[mark]
    values = {}
    for place, match in shapes.items():
        whole, has_mark, fraction = match["body"].partition(mark)
        digits = _ungrouped(whole, other)
        if digits is None or (has_mark and not fraction.isdecimal() and (fraction or not whole)):
            continue
        sign = "-" if (match["sign"] in {"-", "−"}) != (match["inner"] in {"-", "−"}) else ""
        exponent = (match["exponent"] or "").replace("−", "-")
        value = float(f"{sign}{digits or 0}.{fraction or 0}{exponent}")
        if math.isfinite(value):
            values[place] = value
    return values


def _ungrouped(whole: str, other: str) -> str | None:
    """Digits of the whole part: none, plain ones, or groups of three with one separator between them."""
    if not whole or whole.isdecimal():
        return whole
    marks = set(re.sub(r"\d", "", whole))
    if len(marks) != 1 or not marks <= set(_GROUP_MARKS + other):
        return None
    first, *groups = whole.split(marks.pop())
    good = 0 < len(first) <= 3 and not first.startswith("0") and all(len(group) == 3 for group in groups)
    return first + "".join(groups) if good else None


def _only_mark(cells: Cells) -> str:
    """The one decimal mark with which all numbers of a column can be read, if the other does not do."""
    sizes = {mark: len(values) for mark, values in cells.marks.items()}
    if sizes["."] == sizes[","] or not cells.is_mostly_numbers:
        return ""
    return max(sizes, key=sizes.__getitem__)


def _numbers(cells: Cells, evidence: str, reading: str | None) -> Meaning:
    mark, question = _decimal_mark(cells, evidence, reading)
    values = cells.marks[mark]
    numbers = np.full(len(cells.texts), np.nan)
    if cells.is_plain and mark == "." and not question:
        numbers[list(values)] = list(values.values())
        padded = next((cells.texts[place] for place in values if _PADDED.fullmatch(cells.texts[place])), "")
        if padded and reading is None:
            choices = {"numbers": f"{padded!r} is {float(padded):g}"}
            return Meaning("undecided", numbers, question="numbers, or codes with zeros?", choices=choices)
        return Meaning("number", numbers)
    unit, problem = _unit(cells, values, reading)
    for place, value in values.items():
        if unit is None or reading == "numbers" or _affix(cells.shapes[place]) == unit:
            numbers[place] = value
    if question or problem:
        return Meaning("undecided", numbers, question=question or problem, choices=_choices(cells, question))
    notes = [_unit_note(unit or ""), _separator_note(cells, mark)]
    return Meaning("number", numbers, note=", ".join(filter(None, notes)))


def _decimal_mark(cells: Cells, evidence: str, reading: str | None) -> tuple[str, str]:
    """The decimal mark of a column, or the question that only the user can answer."""
    points, commas = cells.marks["."], cells.marks[","]
    if points == commas:
        return ".", ""
    if points.keys() != commas.keys():
        return max(evidence[:1] + ".,", key=lambda mark: len(cells.marks[mark])), ""
    has_comma = any("," in cells.shapes[place]["body"] for place in points if points[place] != commas[place])
    grouped = "." if has_comma else ","  # the decimal mark if what is seen are thousands
    if reading in {"thousands", "decimals"}:
        return (grouped if reading == "thousands" else _other(grouped)), ""
    if evidence in {".", ","}:
        return evidence, ""
    if not has_comma and not evidence:
        return ".", ""  # a point is a decimal point unless the table has decimal commas
    return ".", "thousands or decimals?"


def _other(mark: str) -> str:
    return "," if mark == "." else "."


def _affix(match: re.Match[str]) -> str:
    return (match["prefix"] or "") + (match["suffix"] or "").strip()


def _unit(cells: Cells, values: dict[int, float], reading: str | None) -> tuple[str | None, str]:
    """What stands beside all the numbers of a column; None if that differs, with the question if it matters.

    A few odd cells among plain numbers are no question but faults, to be named by their row.
    """
    seen = [_affix(cells.shapes[place]) for place in values]
    kinds = set(seen)
    common = max(sorted(kinds), key=seen.count)
    if reading == "numbers":
        return (common if len(kinds) == 1 else None), ""
    if len(kinds) > 1 and (common or any(map(_is_known, kinds))):
        return None, "not all cells have the same unit."
    return common, f"is {common!r} a unit, or part of a name?" if common and not _is_known(common) else ""


def _are_codes(cells: Cells) -> bool:
    """Whether digits with letters are names such as 12a and 13b, rather than numbers with a unit."""
    if cells.is_plain:
        return False
    seen = [_affix(match) for match in cells.shapes.values()]
    odd = [affix for affix in seen if affix and not _is_known(affix)]
    return len(set(seen)) > 1 and 2 * len(odd) > len(cells.filled)


def _is_known(affix: str) -> bool:
    return affix.lower() in _UNITS or affix in set(_CURRENCIES) or affix.upper() in _CURRENCY_CODES


def _unit_note(unit: str) -> str:
    if not unit:
        return ""
    if unit in {"%", "‰"}:
        return "in per cent" if unit == "%" else "in per mille"
    return f"in {unit}"


def _separator_note(cells: Cells, mark: str) -> str:
    """What the marks were taken for, with an example, where a computer would have read something else."""
    for place, value in cells.marks[mark].items():
        body = cells.shapes[place]["body"]
        if not _PLAIN.fullmatch(body) or (mark == "," and "." in body):
            kind = "decimal commas" if mark == "," and "," in body else "thousands separated"
            return f"{kind}: {body!r} is {abs(value):g}" if abs(value) < 1e6 else kind
    return ""


def _choices(cells: Cells, question: str) -> dict[str, str]:
    if not question:
        return {"numbers": "the numbers as they stand"}
    for place, value in cells.marks["."].items():
        other = cells.marks[","].get(place, value)
        if other != value:
            body = cells.shapes[place]["body"]
            pair = sorted((value, other))
            return {"thousands": f"{body!r} is {pair[1]:g}", "decimals": f"{body!r} is {pair[0]:g}"}
    raise AssertionError("a question without two answers")


def _booleans(cells: Cells, reading: str | None) -> Meaning | None:
    seen = {cells.texts[place].lower() for place in cells.filled}
    for true, false in _TRUE.items():
        if seen <= {true, false}:
            numbers = [math.nan if is_missing(cell) else float(cell.lower() == true) for cell in cells.texts]
            note = f"1 for {true}, 0 for {false}"
            kind = "number" if reading == "numbers" else "boolean"
            return Meaning(kind, np.array(numbers), note, choices={"numbers": note})
    return None


def _dates(cells: Cells, reading: str | None) -> Meaning:
    """Days since the first date, where day and month can be told apart."""
    orders = ["day first", "month first"] if reading is None else [reading]
    if reading is None and cells.all_match(lambda cell: "." in cell and _OTHER_DATE.fullmatch(cell)):
        orders = ["day first"]  # points are written where the day comes first
    found = {}
    for order in orders:
        days = [math.nan if is_missing(cell) else _days(cell, order) for cell in cells.texts]
        if None not in days:
            found[order] = np.array(days, dtype=np.float64)
    if not found:
        return Meaning("text")
    days_since, *others = found.values()
    if others and not np.array_equal(days_since, others[0], equal_nan=True):
        return Meaning("date", question="day or month first?", choices=dict.fromkeys(found, ""))
    return Meaning("date", days_since - np.nanmin(days_since), note="days since the first date")


def _hours(cell: str) -> float:
    parts = [float(part) for part in cell.split(":")]
    return sum(part / 60.0**place for place, part in enumerate(parts))


def _days(cell: str, order: str) -> float | None:
    try:
        match = _OTHER_DATE.fullmatch(cell)
        if match is None:
            moment = dt.datetime.fromisoformat(cell)
        else:
            first, second, year = int(match[1]), int(match[3]), int(match[4])
            day, month = (first, second) if order == "day first" else (second, first)
            moment = dt.datetime(year, month, day, tzinfo=dt.UTC)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)).total_seconds() / 86400.0
