r"""What the cells of a column mean: numbers in the ways people write them, dates, yes and no, or text.

A column is read as a whole, because a single cell is not enough: ``1,007`` can be a thousand and seven, or
one and seven thousandths. Each cell that looks like a number is split into

    sign, currency, sign, digits with their separators, exponent, unit    ``-€ 1.234,50``, ``5 mg``, ``4.5%``

and the column holds numbers if all filled cells can be read with the *same* decimal mark and the same unit.
Where both marks are possible and give different numbers, the rest of the table decides: a file has one
decimal mark. If no other column decides, the column stays undecided and lists the choices:
``read_as={"weight": "thousands"}``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

WAYS = ("thousands", "decimals", "numbers", "day first", "month first", "text")
"""Values of `read_as`."""

_MISSING = {"", "na", "n/a", "n.a.", "nan", "nat", "null", "none", "missing", "?", ".", "-", "--", "---"}
_MISSING |= {"<na>", "#n/a", "#na", "#n/a n/a", "1.#qnan", "-nan", "\\n"}
_TRUE = {"true": "false", "yes": "no", "y": "n", "t": "f", "on": "off", "ja": "nein", "oui": "non"}

_PLAIN = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_PADDED = re.compile(r"[+-]?0[0-9]+")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+")
_CURRENCIES = "USD EUR GBP CHF JPY SEK DKK NOK CAD AUD INR CNY"
_NUMBER = re.compile(
    r"\A(?P<sign>[+\-−]?)\s*(?P<prefix>[$€£¥₹]|(?:" + _CURRENCIES.replace(" ", "|") + r")\b)?\s*"
    r"(?P<inner>[+\-−]?)(?P<body>[0-9](?:[0-9.,'’ \u00a0\u202f]*[0-9])?[.,]?|[.,][0-9]+)"
    r"(?P<exponent>[eE][+\-−]?[0-9]{1,4}(?![\w]))?"
    r"\s*(?P<suffix>[%‰°A-Za-zµμΩ€$£¥₹][\w%°/·*^²³⁻¹µμΩ .\-]{0,14})?\Z"
)
# Plain digits, or groups of three with one separator between them; then perhaps the decimal mark and digits.
_BODIES = {
    mark: re.compile(
        rf"(?:[0-9]*|[1-9][0-9]{{0,2}}([{other}'’ \u00a0\u202f])[0-9]{{3}}(?:\1[0-9]{{3}})*)"
        rf"(?:[{mark}][0-9]*)?"
    )
    for mark, other in ((".", ","), (",", "."))
}
_UNITS = """
% ‰ ppm ppb m km cm mm µm μm um nm in ft yd mi g kg mg µg μg ug ng lb lbs oz s sec ms µs ns min h hr hrs day
days wk week weeks mo month months yr year years l ml µl dl cl m2 m² km2 km² cm2 cm² mm2 mm² ha m3 m³ cm3
cm³ mm3 k °c °f °k ° deg rad ma v mv kv w kw mw j kj cal kcal pa hpa kpa mpa bar mbar psi mmhg hz khz mhz ghz
mol mmol µmol nmol iu m/s km/h mph g/l mg/l µg/l ug/l mg/dl g/dl mg/kg g/cm3 g/cm³ kg/m2 kg/m² kg/m3 kg/m³
mmol/l µmol/l ng/ml µg/ml ug/ml mg/ml u/l iu/l l/min ml/min bpm db kb mb gb tb px
"""
_KNOWN = {"", *_UNITS.split(), *"$€£¥₹", *_CURRENCIES.lower().split()}
_ISO_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_OTHER_DATE = re.compile(r"[0-9]{1,2}([./-])[0-9]{1,2}\1[0-9]{4}")
_TIME = re.compile(r"([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?")
_DATE_ORDERS = {"day first": "%d/%m/%Y", "month first": "%m/%d/%Y"}


def is_missing(cell: str) -> bool:
    """Whether a cell is empty or holds one of the usual marks of a missing value."""
    return cell.lower() in _MISSING


def is_plain_number(cell: str) -> bool:
    """Whether a cell is a number as computers write them."""
    return _PLAIN.fullmatch(cell) is not None


def looks_like_number(cell: str) -> bool:
    """Whether a cell on its own can be a number, perhaps with a known unit, or a date."""
    if _PLAIN.fullmatch(cell) or _ISO_DATE.fullmatch(cell):
        return True
    match = _NUMBER.match(cell)
    if match is None or not _is_known((match["prefix"] or "") + (match["suffix"] or "").strip()):
        return False
    return any(pattern.fullmatch(match["body"]) for pattern in _BODIES.values())


def looks_like_unit(cell: str) -> bool:
    """Whether a cell on its own is a unit, perhaps in brackets."""
    return bool(cell) and (_is_known(cell.strip("[]() ")) or cell[0] + cell[-1] in {"[]", "()"})


@dataclass
class TableColumn:
    """One column: its cells as text, what they mean, and the role that it gets.

    Attributes
    ----------
    name, key
        The name as text, and what the frame itself calls the column.
    texts
        The cells as stripped text, in the order of the rows.
    numbers
        The values; NaN where a cell is missing, or is not a number.
    kind
        "number", "date", "boolean", "text" or "empty"; "undecided" if there is more than one way to read it.
    note
        How the numbers were read; empty for plain ones.
    question, choices
        Why the column is undecided, and the values of `read_as` that decide it, each with what it gives.
    role, reason
        What the column is used for, and why.
    is_wanted
        Whether the caller gave it this role.
    levels
        The different texts of a category, whose codes are in the numbers.
    model_kind
        What a feature is to a model (`datasets.kinds`).
    """

    name: str
    key: object
    texts: list[str]
    numbers: FloatArray
    kind: str = ""
    note: str = ""
    question: str = ""
    choices: dict[str, str] = field(default_factory=dict)
    role: str = ""
    reason: str = ""
    is_wanted: bool = False
    levels: tuple[str, ...] = ()
    model_kind: str = ""

    @classmethod
    def from_series(cls, series: Any, name: str, key: object) -> "TableColumn":  # noqa: ANN401 - pandas has no types
        """Take over a pandas Series; where its type leaves no doubt, the meaning is known at once."""
        import pandas as pd

        kind = getattr(series.dtype, "kind", "O")
        numbers = np.full(len(series), np.nan)
        if kind in "iuf":
            numbers = series.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
            cells = [f"{value:.15g}" for value in numbers.tolist()]
        else:
            cells = [str(cell).strip() for cell in (series.astype(str) if kind in "mM" else series)]
        missing = series.isna().to_numpy()
        for row in np.flatnonzero(missing).tolist():
            cells[row] = ""
        column = cls(name, key, cells, numbers)
        if missing.all():
            column.kind = "empty"
        elif isinstance(series.dtype, pd.CategoricalDtype):
            column.kind = "text"  # whatever is written: 1, 2, 3 are names of categories then
        elif kind in "iuf":
            column.kind = "number"
        elif kind in "mM":
            days = (series - series.min() if kind == "M" else series) / pd.Timedelta(days=1)
            note = "days since the first date" if kind == "M" else "days"
            column.take("date", days.reset_index(drop=True), note)
        return column

    @cached_property
    def filled(self) -> Any:  # noqa: ANN401 - as above
        """The cells that are not missing, as a pandas Series with the numbers of the rows as index."""
        import pandas as pd

        cells = {row: text for row, text in enumerate(self.texts) if text.lower() not in _MISSING}
        return pd.Series(list(cells.values()), index=list(cells), dtype=object)

    @cached_property
    def cells(self) -> list[str]:
        """The same as a list, which is several times faster to search."""
        return list(self.filled)

    def all_match(self, pattern: re.Pattern[str]) -> bool:
        """Whether all cells match; the first that does not ends the search."""
        return all(map(pattern.fullmatch, self.cells))

    @cached_property
    def n_different(self) -> int:
        """Number of different cells, a missing one included."""
        return len(set(self.texts))

    @property
    def first_three(self) -> list[str]:
        """Three different values, or as many as there are."""
        return [shortened(text) for text in list(dict.fromkeys(self.cells[:1000]))[:3]]

    @property
    def shown(self) -> str:
        """Three different values for a message."""
        return ", ".join(map(repr, self.first_three))

    @property
    def classes_text(self) -> str:
        """Number and names of the values, as classes."""
        values = sorted(set(self.cells))
        count = "1 class" if len(values) == 1 else f"{len(values)} classes"
        return f"{count}: {', '.join(map(shortened, values[:5]))}" + (
            f", and {len(values) - 5} more" if len(values) > 5 else ""
        )

    def assign(self, role: str, reason: str) -> None:
        """Give the column a role, and say why."""
        self.role, self.reason = role, reason

    @cached_property
    def parts(self) -> Any:  # noqa: ANN401 - as above
        """The filled cells that look like a number, split into sign, body, exponent and unit."""
        parts = self.filled.str.extract(_NUMBER).dropna(subset="body").fillna("")
        return parts.assign(unit=parts["prefix"] + parts["suffix"].str.strip())

    @cached_property
    def is_plain(self) -> bool:
        """Whether every filled cell is a number as computers write them."""
        return self.all_match(_PLAIN)

    @cached_property
    def by_mark(self) -> dict[str, Any]:
        """For each decimal mark, a Series of the finite numbers that can be read with it."""
        if self.is_plain:  # The usual case, which must be fast.
            dotted = [cell for cell in self.cells if "." in cell]
            if not dotted or not all(map(_GROUPED.fullmatch, dotted)):
                numbers = _finite(self.filled)
                return {".": numbers, ",": numbers[:0] if dotted else numbers}
        return {mark: self._read_with(mark) for mark in ".,"}

    def _read_with(self, mark: str) -> Any:  # noqa: ANN401 - as above
        parts = self.parts[self.parts["body"].str.fullmatch(_BODIES[mark])]
        is_negative = parts["sign"].isin(["-", "−"]) != parts["inner"].isin(["-", "−"])
        digits = (
            parts["body"].str.replace(f"[^0-9{mark}]", "", regex=True).str.replace(mark, ".", regex=False)
        )
        return _finite(
            is_negative.map({True: "-", False: ""}) + digits + parts["exponent"].str.replace("−", "-")
        )

    @property
    def is_mostly_numbers(self) -> bool:
        """Whether at least half of the filled cells can be read as a number with one of the marks."""
        return 2 * max(map(len, self.by_mark.values())) >= len(self.cells)

    def understand(self, evidence: str, way: str | None) -> None:
        """Set kind, numbers and note, or the question.

        Parameters
        ----------
        evidence
            What `decimal_marks` found.
        way
            How the user wants it read, one of `WAYS`.
        """
        if not self.cells:
            self.kind = "empty"
        elif way == "text":
            self.kind = "text"
        elif way in _DATE_ORDERS or any(map(self.all_match, (_ISO_DATE, _OTHER_DATE))):
            self._read_dates(way)
        elif self.all_match(_TIME):
            import pandas as pd

            cells = self.filled
            padded = cells.where(cells.str.count(":") == 2, cells + ":00")
            self.take("date", pd.to_timedelta(padded) / pd.Timedelta(hours=1), "hours since midnight")
        elif pair := next(
            (pair for pair in _TRUE.items() if all(cell.lower() in pair for cell in self.cells)), None
        ):
            self.take("number" if way == "numbers" else "boolean", 1.0 * (self.filled.str.lower() == pair[0]))
            self.note = f"1 for {pair[0]}, 0 for {pair[1]}"
            self.choices = {"numbers": self.note}
        elif not self.is_mostly_numbers or (way != "numbers" and self._holds_codes()):
            self.kind = "text"
        else:
            self._read_numbers(evidence, way)

    def take(self, kind: str, values: Any, note: str = "") -> None:  # noqa: ANN401 - as above
        """Set the kind, and the numbers of the rows in the index of `values`."""
        self.kind, self.note = kind, note
        self.numbers[values.index] = values.to_numpy(dtype=np.float64)

    def _ask(self, question: str, choices: dict[str, str]) -> None:
        self.kind, self.question, self.choices = "undecided", question, choices

    def _read_dates(self, way: str | None) -> None:
        """Read days since the first date, where day and month can be told apart."""
        import pandas as pd

        cells = self.filled
        if self.all_match(_ISO_DATE):
            found = {"": pd.to_datetime(cells, format="ISO8601", errors="coerce", utc=True)}
        else:
            if all("." in cell for cell in self.cells):
                way = way or "day first"  # With points between the numbers the day comes first.
            slashed = cells.str.replace(r"[.-]", "/", regex=True)
            found = {
                order: pd.to_datetime(slashed, format=form, errors="coerce")
                for order, form in _DATE_ORDERS.items()
                if way in {None, order}
            }
        found = {order: dates for order, dates in found.items() if dates.notna().all()}
        first, *others = found.values() or [None]
        if first is None:
            self.kind = "text"
        elif others and not first.equals(others[0]):
            self.kind, self.question, self.choices = "date", "day or month first?", dict.fromkeys(found, "")
        else:
            self.take("date", (first - first.min()) / pd.Timedelta(days=1), "days since the first date")

    def _holds_codes(self) -> bool:
        """Whether digits with letters are names such as 12a and 13b, and not numbers with a unit."""
        if self.is_plain:
            return False
        units = self.parts["unit"]
        return units.nunique() > 1 and 2 * int((~units.map(_is_known)).sum()) > len(self.cells)

    def _read_numbers(self, evidence: str, way: str | None) -> None:
        mark, question = self._decimal_mark(evidence, way)
        values = self.by_mark[mark]
        if self.is_plain and mark == "." and not question:
            self.take("number", values)
            padded = next(filter(_PADDED.fullmatch, self.cells), "")
            if padded and way is None:
                self._ask("numbers, or codes with zeros?", {"numbers": f"{padded!r} is {float(padded):g}"})
            return
        units = self.parts["unit"][values.index]
        counts = units.value_counts()
        common = max(sorted(counts.index), key=counts.__getitem__)
        unit, problem = common if len(counts) == 1 else "", ""
        if way == "numbers":
            pass
        elif len(counts) == 1:
            problem = "" if _is_known(common) else f"is {common!r} a unit, or part of a name?"
        elif common or any(other and _is_known(other) for other in counts.index):
            row = units.index[units == counts.index[-1]][0]
            problem = f"not all cells have the same unit; row {row + 1} has {shortened(self.texts[row])!r}."
        else:
            # A few odd cells among plain numbers are faults, which the error names by their row.
            values = values[units == ""]
        unit = {"%": "per cent", "‰": "per mille"}.get(unit, unit)
        notes = [f"in {unit}" if unit else "", self._separator_note(mark)]
        self.take("number", values, ", ".join(filter(None, notes)))
        if question:
            self._ask(question, self._two_readings())
        elif problem:
            self._ask(problem, {"numbers": "the numbers as they stand"})

    def _decimal_mark(self, evidence: str, way: str | None) -> tuple[str, str]:
        """The decimal mark of the column, or the question that only the user can answer."""
        points, commas = self.by_mark["."], self.by_mark[","]
        if points.equals(commas):
            return ".", ""
        if not points.index.equals(commas.index):
            return max(evidence[:1] + ".,", key=lambda mark: len(self.by_mark[mark])), ""
        has_comma = bool(self.parts["body"][points.index[points != commas]].str.contains(",").any())
        if way in {"thousands", "decimals"}:
            return "." if has_comma == (way == "thousands") else ",", ""
        if evidence in {".", ","}:
            return evidence, ""
        if not has_comma and not evidence:
            return ".", ""  # A point is a decimal point unless the table has decimal commas.
        return ".", "thousands or decimals?"

    def _two_readings(self) -> dict[str, str]:
        points, commas = self.by_mark["."], self.by_mark[","]
        row = points.index[points != commas][0]
        small, large = sorted((points[row], commas[row]))
        body = self.parts["body"][row]
        return {"thousands": f"{body!r} is {large:g}", "decimals": f"{body!r} is {small:g}"}

    def _separator_note(self, mark: str) -> str:
        """What the separators stand for, with an example, where a computer would read something else."""
        bodies = self.parts["body"][self.by_mark[mark].index]
        odd = bodies[~bodies.str.fullmatch(_PLAIN) | ((mark == ",") & bodies.str.contains(".", regex=False))]
        if odd.empty:
            return ""
        body, value = odd.iloc[0], abs(self.by_mark[mark][odd.index[0]])
        kind = "decimal commas" if mark == "," and "," in body else "thousands separated"
        return f"{kind}: {body!r} is {value:g}" if value < 1e6 else kind


def decimal_marks(columns: Sequence[TableColumn], separator: str) -> str:
    """Decimal marks that the table is known to use: "", "." or ",", or ",." if columns contradict each other.

    A column counts if one mark reads more of its cells than the other. If there is no such column, a
    semicolon between cells shows that commas are needed for something else: decimals.
    """
    found = set()
    for column in columns:
        points, commas = (len(column.by_mark[mark]) for mark in ".,")
        if points != commas and column.is_mostly_numbers:
            found.add("." if points > commas else ",")
    return "".join(sorted(found)) or ("," if separator == ";" else "")


def shortened(text: str, most: int = 24) -> str:
    """A cell on one line, cut where it is too long for a message."""
    plain = " ".join(text.split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def _is_known(unit: str) -> bool:
    return unit.lower() in _KNOWN


def _finite(texts: Any) -> Any:  # noqa: ANN401 - a pandas Series
    numbers = texts.astype(np.float64)  # `pandas.to_numeric` makes long whole numbers Python's.
    return numbers[np.isfinite(numbers)]
