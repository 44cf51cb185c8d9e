r"""Reading a table of numbers from a CSV file that somebody else wrote.

The file is text to be parsed, nothing more: no formula is evaluated and no other file is opened. What cannot
be read is refused with its row and column. Rows are counted from 1 and leave out the header.

Recognised by themselves are the separator (comma, semicolon or tab; decimal commas with the latter two), a
header (a first row without any number), and a column of known classes: one with a usual name such as
``class``, or else the only column of text. A first column of text whose entries all differ names the objects
and is left out.
"""

import csv
import io
import math
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.datasets import Dataset

__all__ = ["LARGEST_FILE", "TableError", "read_table"]

LARGEST_FILE = 5_000_000
_MOST_ROWS = 20_000
_MOST_COLUMNS = 1_000
_MOST_REPORTED = 5
_LONGEST_NAME = 60
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?", ".", "-"}
_LABEL_NAMES = {"class", "classes", "cluster", "group", "label", "labels", "species", "target", "type"}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?")


class TableError(ValueError):
    """The file is not a table of numbers; the message says where, and what to do."""


class _Column(NamedTuple):
    name: str
    cells: list[str]
    numbers: NDArray[np.float64]  # NaN where a cell is no number

    @property
    def is_text(self) -> bool:
        """Whether most of what is there is no number."""
        filled = [not _is_missing(cell) for cell in self.cells]
        return 2 * int(np.isfinite(self.numbers).sum()) < max(1, sum(filled))

    @property
    def is_all_different(self) -> bool:
        return len(set(self.cells)) == len(self.cells)


def read_table(content: bytes, name: str = "table.csv") -> Dataset:
    """Read the bytes of a CSV file.

    Parameters
    ----------
    content
        The file, at most 5 MB: text in UTF-8, or in the Western code page that spreadsheets write.
    name
        Name of the file, for titles and messages.

    Returns
    -------
    data set with the numeric columns, and the known classes if there is a column of them

    Raises
    ------
    TableError
        For anything that cannot be read without guessing.
    """
    text = _decoded(content)
    separator = _separator(text)
    rows = _rows(text, separator)
    header, body = _split_header(rows)
    columns = _columns(header, body, decimal_comma=separator != ",")
    labels, features, notes = _roles(columns)
    _check_numbers(features)
    title = _shortened(PurePath(name).stem or "table")
    values, classes = (None, None) if labels is None else _classes(labels)
    return Dataset(
        X=np.column_stack([column.numbers for column in features]),
        labels=values,
        name=title,
        feature_names=tuple(column.name for column in features),
        description=(
            f"Read from {_shortened(name)}: {len(body)} rows, {len(features)} numeric columns{notes}."
        ),
        label_names=classes,
    )


def _decoded(content: bytes) -> str:
    if len(content) > LARGEST_FILE:
        raise TableError(
            f"the file has {len(content) / 1e6:.1f} MB; at most {LARGEST_FILE / 1e6:.0f} MB are read. "
            "Keep fewer rows or columns."
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    if _CONTROL.search(text):
        raise TableError("this is not a text file; save the table as CSV (UTF-8) and try again.")
    if not text.strip():
        raise TableError("the file is empty; it should have a row an object and a column a feature.")
    return text


def _separator(text: str) -> str:
    """Of the usual separators, the most frequent one of the first line."""
    first = next(line for line in text.splitlines() if line.strip())
    outside_quotes = re.sub(r'"[^"]*"', "", first)
    return max("\t;,", key=outside_quotes.count)


def _rows(text: str, separator: str) -> list[tuple[int, list[str]]]:
    """Cells of each row that is not blank, with the number of its line."""
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=separator, strict=True, skipinitialspace=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((reader.line_num, [cell.strip() for cell in cells]))
            if len(rows) > _MOST_ROWS:
                raise TableError(f"the table has more than {_MOST_ROWS} rows; keep fewer.")
    except csv.Error as error:
        raise TableError(f"line {reader.line_num} cannot be read ({error}); check its quotes.") from None
    if not rows:
        raise TableError("the table has no filled cells; it should have a row an object.")
    width = len(rows[0][1])
    if width > _MOST_COLUMNS:
        raise TableError(f"the table has {width} columns; at most {_MOST_COLUMNS} are read.")
    for line, cells in rows:
        if len(cells) != width:
            raise TableError(
                f"line {line} has {len(cells)} cells, but the first row has {width}; "
                "check separators and quotes there."
            )
    return rows


def _split_header(rows: list[tuple[int, list[str]]]) -> tuple[list[str], list[list[str]]]:
    first = rows[0][1]
    has_header = not any(_NUMBER.fullmatch(cell.replace(",", ".")) for cell in first)
    body = [cells for _, cells in rows[has_header:]]
    if len(body) < 2:
        raise TableError(f"the table has {len(body)} row(s) of data; clustering needs at least 2.")
    names = first if has_header else [""] * len(first)
    return _distinct([_shortened(name) or f"x{place}" for place, name in enumerate(names, start=1)]), body


def _distinct(names: list[str]) -> list[str]:
    """Number the names that came before; also a numbered name may have come before."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        different = name
        while different in seen:
            seen[name] += 1
            different = f"{name} ({seen[name]})"
        seen[different] = 1
        result.append(different)
    return result


def _columns(header: Sequence[str], body: list[list[str]], decimal_comma: bool) -> list[_Column]:
    columns = []
    for name, values in zip(header, zip(*body, strict=True), strict=True):
        cells = list(values)
        numbers = np.array([_number(cell, decimal_comma) for cell in cells])
        columns.append(_Column(name, cells, numbers))
    return columns


def _number(cell: str, decimal_comma: bool) -> float:
    plain = cell.replace(",", ".") if decimal_comma and cell.count(",") == 1 and "." not in cell else cell
    if not _NUMBER.fullmatch(plain):
        return math.nan
    value = float(plain)
    return value if math.isfinite(value) else math.nan


def _roles(columns: list[_Column]) -> tuple[_Column | None, list[_Column], str]:
    """Which column holds the classes, which hold numbers, and what to tell about the others."""
    named = [column for column in columns if column.name.strip().lower() in _LABEL_NAMES]
    texts = [column for column in columns if column.is_text and column not in named[:1]]
    notes = ""
    if texts and texts[0] is columns[0] and columns[0].is_all_different:
        notes = f"; column {columns[0].name} names the objects and is left out"
        texts = texts[1:]
    labels = named[0] if named else texts[0] if len(texts) == 1 else None
    if len(texts) > (0 if named else 1):
        names = ", ".join(repr(column.name) for column in texts[:_MOST_REPORTED])
        raise TableError(
            f"columns {names} hold text; drop or encode them, or name the one with the known classes 'class'."
        )
    dropped = columns[:1] if notes else []
    features = [column for column in columns if column is not labels and column not in dropped]
    if not features:
        raise TableError("there is no column of numbers; clustering needs at least one.")
    return labels, features, notes + (f"; known classes from column {labels.name}" if labels else "")


def _check_numbers(features: list[_Column]) -> None:
    missing, wrong = [], []
    for column in features:
        for row in np.flatnonzero(np.isnan(column.numbers)):
            where = f"row {row + 1}, column {column.name!r}"
            if _is_missing(column.cells[row]):
                missing.append(where)
            else:
                wrong.append(f"{where} ({_shortened(column.cells[row])!r})")
    problems = []
    if missing:
        problems.append(f"{_count(len(missing), 'missing value')}: {_listed(missing)}")
    if wrong:
        problems.append(f"{_count(len(wrong), 'value')} that cannot be read as a number: {_listed(wrong)}")
    if problems:
        raise TableError("; ".join(problems) + ". Fill or correct them, or drop these rows.")


def _classes(labels: _Column) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    empty = [f"row {row}" for row, cell in enumerate(labels.cells, start=1) if _is_missing(cell)]
    if empty:
        raise TableError(
            f"column {labels.name!r}, read as the known classes, is empty in {_listed(empty)}. "
            "Fill these cells, or drop the column."
        )
    # Not as an array of text, where one long cell would make every one as long.
    names = sorted(set(labels.cells))
    places = {name: place for place, name in enumerate(names)}
    values = np.array([places[cell] for cell in labels.cells], dtype=np.intp)
    return values, tuple(_distinct([_shortened(name) for name in names]))


def _is_missing(cell: str) -> bool:
    return cell.lower() in _MISSING


def _listed(places: list[str]) -> str:
    more = len(places) - _MOST_REPORTED
    return "; ".join(places[:_MOST_REPORTED]) + (f"; and {more} more" if more > 0 else "")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _shortened(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 1] + "…"
