r"""Where a table comes from: a file that somebody else wrote, or a DataFrame of any library.

A file is text to be parsed, nothing more: no formula is evaluated and no other file is opened. Recognised are
the encoding (UTF-8, UTF-16, or the Western code page of spreadsheets), the separator (tab, semicolon,
comma, bar, or runs of spaces), title and comment lines above the table, one or two rows of names, a row of
units, and R's habit of giving the column of row names no name. What was done beyond the plain is noted for
the account.

A frame comes as columns with types already (`datasets._frames`); what it holds as text is understood like
that of a file.
"""

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.datasets import TableAccount
from ewens_widgets.datasets._frames import distinct_names, frame_of, is_frame, short_name
from ewens_widgets.tables.cells import (
    Cells,
    Meaning,
    is_missing,
    is_plain_number,
    looks_like_number,
    looks_like_unit,
)

__all__ = ["LARGEST_FILE", "RawColumn", "RawTable", "TableError", "read_source"]

LARGEST_FILE = 5_000_000
_MOST_ROWS = 20_000
_MOST_COLUMNS = 1_000
_LOOKED_AT = 50  # Rows that decide on the separator.
# Words that stand over a column and are hardly the name of a row.
_HEADINGS = {
    "class",
    "code",
    "group",
    "id",
    "index",
    "label",
    "name",
    "object",
    "sample",
    "species",
    "subject",
}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

Row = tuple[int, list[str]]  # number of the line, cells


class TableError(ValueError):
    """The table cannot be read without guessing; the message says where, and what to do.

    Attributes
    ----------
    account
        What was understood of the columns so far, or None if there are no columns yet.
    incomplete
        Number of rows that have missing values, if that is what is wrong.
    problem
        What is wrong, without the ways out: for where controls offer these.
    """

    def __init__(
        self, message: str, account: TableAccount | None = None, incomplete: int = 0, problem: str = ""
    ) -> None:
        super().__init__(message)
        self.account = account
        self.incomplete = incomplete
        self.problem = problem or message


@dataclass(frozen=True)
class RawColumn:
    """A column as it came: text to be understood, or values of a known type."""

    name: str
    key: object
    has_name: bool
    cells: Cells
    typed: Meaning | None = None


@dataclass(frozen=True)
class RawTable:
    """A table as it came."""

    columns: list[RawColumn]
    n_rows: int
    title: str
    origin: str
    spelled: str  # how a line of code names it
    separator: str = ""
    notes: tuple[str, ...] = ()
    index: Any = None  # of a pandas DataFrame
    row_names: tuple[str, ...] | None = None

    def row(self, place: int) -> str:
        """Name a row in a message: by its name in a frame, by its number below the header in a file."""
        if self.index is None:
            return f"row {place + 1}"
        label = self.index[place]
        return f"row {label if isinstance(label, int | np.integer) else short_name(str(label))!r}"


def read_source(source: Any, name: str | None, header: int | bool | None) -> RawTable:  # noqa: ANN401 - files, frames
    """Take a file apart, or a frame."""
    if is_frame(source):
        return frame_source(source, name)
    if isinstance(source, bytes | bytearray | memoryview):
        content, spelled = bytes(source), "content"
    elif hasattr(source, "read"):
        read = source.read()
        content, spelled = (read.encode() if isinstance(read, str) else read), "stream"
    elif isinstance(source, str | os.PathLike):
        content, name = _file_content(source), name or PurePath(source).name
        spelled = repr(os.fspath(source)).replace("'", '"')
    else:
        raise TypeError(
            f"a table is the path of a file, its bytes, or a DataFrame; got {type(source).__name__}. "
            "An array of numbers goes to Dataset(X) or straight to Sampler(X)."
        )
    return _file_source(content, name or "table.csv", spelled, header)


def _file_content(source: str | os.PathLike[str]) -> bytes:
    if isinstance(source, str) and "\n" in source:
        raise TypeError(
            "a text with lines is not the path of a file; for the table itself give text.encode()."
        )
    path = Path(source).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; give its path, or the bytes of the table.")
    _check_size(path.stat().st_size)
    return path.read_bytes()


def _check_size(size: int) -> None:
    if size > LARGEST_FILE:
        raise TableError(
            f"the file has {size / 1e6:.1f} MB; at most {LARGEST_FILE / 1e6:.0f} MB are read. "
            "Keep fewer rows or columns."
        )


def _file_source(content: bytes, name: str, spelled: str, header: int | bool | None) -> RawTable:
    text, notes = _decoded(content)
    separator, rows = _rows(text)
    rows, said = _without_titles(rows)
    notes += said
    names, body, said = _split_header(rows, header)
    notes += said
    shown = distinct_names([short_name(cell) or f"x{place}" for place, cell in enumerate(names, start=1)])
    columns = [
        RawColumn(title, title, bool(cell), Cells(cells))
        for title, cell, cells in zip(shown, names, zip(*body, strict=True), strict=True)
    ]
    title = short_name(PurePath(name).stem or "table")
    return RawTable(columns, len(body), title, short_name(name), spelled, separator, tuple(notes))


def _decoded(content: bytes) -> tuple[str, list[str]]:
    _check_size(len(content))
    encoding, notes = _encoding(content)
    text = content.decode(encoding, errors="replace").removeprefix("\ufeff")
    if _CONTROL.search(text):
        raise TableError("this is not a text file; save the table as CSV (UTF-8) and try again.")
    if not text.strip():
        raise TableError("the file is empty; it should have a row an object and a column a feature.")
    return text, notes


def _encoding(content: bytes) -> tuple[str, list[str]]:
    """The encoding by its mark, by its pattern of zeros, or by trying; guesses are noted."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16", []
    even, odd = content[::2], content[1::2]
    if len(content) % 2 == 0 and content:
        for zeros, others, encoding in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
            if zeros.count(0) > 0.7 * len(zeros) and not others.count(0):
                return encoding, ["The file has no mark of its encoding and is read as UTF-16."]
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "cp1252", ["The text is not UTF-8 and is read as Windows-1252 (Latin-1)."]
    return "utf-8-sig", []


def _rows(text: str) -> tuple[str, list[Row]]:
    """The separator, and the cells of each row that is not blank with the number of its line."""
    separator = _separator(text)
    if separator == " ":
        lines = [re.sub(r"[ \t]+", "\t", line.strip()) for line in text.splitlines()]
        rows = _parsed("\n".join(lines), "\t")
    else:
        rows = _parsed(text, separator)
    if not rows:
        raise TableError("the table has no filled cells; it should have a row an object.")
    return separator, rows


def _separator(text: str) -> str:
    """The separator that gives most rows the same number of cells; of several the first of this list."""
    first, *others = [line.strip() for line in text.splitlines() if line.strip()][:_LOOKED_AT]
    unseen = [mark for mark in "\t;|" if mark not in text]
    if unseen and "," not in first and others and all(map(looks_like_number, others)):
        return unseen[0]  # a single column, in which commas belong to numbers such as $1,000.01
    shares = {}
    for candidate in "\t;,|":
        widths = Counter(len(cells) for _, cells in _parsed(text, candidate, _LOOKED_AT))
        width, count = widths.most_common(1)[0] if widths else (1, 0)
        shares[candidate] = count / widths.total() if width > 1 else 0.0
    best = max(shares, key=shares.__getitem__)
    if shares[best] > 0.0:
        return best
    return " " if _is_spaced(text) else max("\t;,", key=re.sub(r'"[^"]*"', "", first).count)


def _is_spaced(text: str) -> bool:
    """Whether runs of spaces separate columns, at least two of numbers, and are not within 1 007 or 5 mg."""
    lines = [line.strip() for line in text.splitlines() if line.strip()][:_LOOKED_AT]
    widths = {len(line.split()) for line in lines}
    if '"' in text or len(widths) != 1 or all(map(looks_like_number, lines[1:])):
        return False
    return all(sum(map(looks_like_number, line.split())) > 1 for line in lines[1:])


def _parsed(text: str, separator: str, most: int | None = None) -> list[Row]:
    """Rows that are not blank; with `most`, only so many, and of what can be read."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, strict=True, skipinitialspace=True
    )
    rows: list[Row] = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((reader.line_num, [cell.strip() for cell in cells]))
            if most is not None and len(rows) >= most:
                break
            if len(rows) > _MOST_ROWS:
                raise TableError(f"the table has more than {_MOST_ROWS} rows; keep fewer.")
    except csv.Error as error:
        if most is None:
            raise TableError(f"line {reader.line_num} cannot be read ({error}); check its quotes.") from None
    return rows


def _without_titles(rows: list[Row]) -> tuple[list[Row], list[str]]:
    """Take lines above the table away, and make all rows as wide as the others."""
    width = Counter(len(cells) for _, cells in rows).most_common(1)[0][0]
    notes = []
    while len(rows) > 2 and width > 1 and _is_title(rows[0][1], rows[1][1], width):
        line, cells = rows.pop(0)
        notes.append(
            f"Line {line} is left out as a title or comment: {short_name(', '.join(filter(None, cells)))!r}."
        )
    first = rows[0][1]
    first[0] = first[0].removeprefix("#").lstrip() if len(first) > 1 else first[0]
    if _lacks_a_name(first, [cells for _, cells in rows[1:]], width):
        rows[0] = (rows[0][0], first := ["", *first])
    if len(first) > _MOST_COLUMNS:
        raise TableError(f"the table has {len(first)} columns; at most {_MOST_COLUMNS} are read.")
    for line, cells in rows:
        del cells[len(first) + 1 if any(cells[len(first) :]) else len(first) :]
        if len(cells) != len(first):
            raise TableError(
                f"line {line} has {len(cells)} cells, but the first row has {len(first)}; "
                "check separators and quotes there."
            )
    return rows, notes


def _lacks_a_name(first: list[str], body: list[list[str]], width: int) -> bool:
    """Whether R wrote the table: its row names, text or numbers that count on, have no name."""
    if len(first) != width - 1 or _has_number(first) or any(len(cells) != width for cells in body):
        return False
    names = [cells[0] for cells in body]
    return not _has_number(names) or (width > 2 and names == [str(row) for row in range(1, len(names) + 1)])


def _is_title(cells: list[str], below: list[str], width: int) -> bool:
    if _has_number(cells) or sum(map(bool, below)) < 2:
        return False
    is_comment = cells[0].startswith("#") and len(cells) != width
    return is_comment or (sum(map(bool, cells)) == 1 and (len(cells) == 1 or width > 2))


def _has_number(cells: Sequence[str]) -> bool:
    return any(looks_like_number(cell) for cell in cells)


def _split_header(rows: list[Row], header: int | bool | None) -> tuple[list[str], list[list[str]], list[str]]:
    """Names of the columns, the rows below, and what to note."""
    cells = [row for _, row in rows]
    count = _header_rows(cells) if header is None else int(header)
    notes: list[str] = []
    names = cells[0] if count else [""] * len(cells[0])
    for row in cells[1:count]:
        names, note = _joined(names, row)
        notes.append(note)
    body = cells[count:]
    if len(body) < 2:
        raise TableError(f"the table has {len(body)} row(s) of data; clustering needs at least 2.")
    return names, body, notes


def _header_rows(cells: list[list[str]]) -> int:
    """How many rows have names; those of years, doses or numbered columns look like data."""
    first = cells[0]
    if not _has_number(first):
        return 1 + (len(cells) > 3 and _is_second_header(cells[1], cells[2:]))
    if _HEADINGS & {cell.lower() for cell in first} or _has_units_only_here(cells):
        return 1
    numbers = list(dropwhile(lambda cell: not cell.isdecimal(), first))
    if not _is_counting(numbers) or any(_is_counting(row[-len(numbers) :]) for row in cells[1:]):
        return 0
    if not first[0].isdecimal():
        return 1  # a word over the names of rows, or nothing, as pandas writes its index
    shown = ", ".join(first[:3])
    raise TableError(
        f"the first row, {shown}, …, counts on: are these names of columns, or data? Say header=True or "
        "header=False."
    )


def _has_units_only_here(cells: list[list[str]]) -> bool:
    """Whether the first row has numbers with units, such as doses, over columns of plain numbers."""
    places = [place for place, cell in enumerate(cells[0]) if looks_like_number(cell)]
    return not any(is_plain_number(cells[0][place]) for place in places) and all(
        is_plain_number(row[place]) for row in cells[1:_LOOKED_AT] for place in places
    )


def _is_counting(cells: list[str]) -> bool:
    """Whether at least three cells count on by one from 0, from 1, or from a year."""
    if len(cells) < 3 or not all(cell.isdecimal() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells[:_MOST_COLUMNS]]
    starts = numbers[0] in {0, 1} or 1500 <= numbers[0] <= 2200
    return starts and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _is_second_header(row: list[str], body: list[list[str]]) -> bool:
    """Whether a row has names or units over the columns of numbers, rather than data with a fault."""
    sample = body[:_LOOKED_AT]
    numeric = [
        place
        for place in range(len(row))
        if 2 * sum(looks_like_number(cells[place]) for cells in sample) > len(sample)
    ]
    texts = [row[place] for place in numeric if not is_missing(row[place])]
    if not texts or any(map(looks_like_number, texts)):
        return False
    return all(map(looks_like_unit, texts)) or len(texts) == len(numeric) > 1


def _joined(upper: list[str], lower: list[str]) -> tuple[list[str], str]:
    if all(looks_like_unit(cell) for cell in lower if cell):
        units = [cell.strip("[]() ") for cell in lower]
        names = [f"{name} [{unit}]" if unit else name for name, unit in zip(upper, units, strict=True)]
        return names, "The second row has the units; they are put beside the names."
    names, carried = [], ""
    for above, below in zip(upper, lower, strict=True):
        carried = above or (carried if below else "")  # a cell that spans several is empty but for the first
        names.append(f"{carried} {below}".strip())
    return names, "Two rows of names are joined."


def frame_source(given: object, name: str | None = None) -> RawTable:
    """Take a frame apart; a column of text may still hold numbers."""
    frame = frame_of(given)
    columns = [
        RawColumn(title, key, bool(str(key)), *_typed(values))
        for title, key, values in zip(frame.names, frame.keys, frame.values, strict=True)
    ]
    origin = short_name(name or f"a {type(given).__module__.split('.')[0]} {type(given).__name__}")
    if frame.n_rows < 2:
        raise TableError(f"the table has {frame.n_rows} row(s) of data; clustering needs at least 2.")
    title = short_name(name or "table")
    return RawTable(
        columns, frame.n_rows, title, origin, "frame", index=frame.index, row_names=frame.row_names
    )


def _typed(values: NDArray[Any]) -> tuple[Cells, Meaning | None]:
    """Text of each value, and the meaning where the type leaves no doubt."""
    kind = values.dtype.kind
    if kind in "iuf":
        texts = ["" if value != value else f"{value:.15g}" for value in values.tolist()]  # noqa: PLR0124 - NaN
        is_empty = not any(texts)
        return Cells(texts), Meaning("empty") if is_empty else Meaning("number", values.astype(np.float64))
    if kind in "Mm":
        texts = ["" if text == "NaT" else text for text in values.astype(str).tolist()]
        if not any(texts):
            return Cells(texts), Meaning("empty")
        days = values.astype(f"{kind}8[us]").astype(np.float64) / 86_400e6
        days[np.isnat(values)] = np.nan
        note = "days since the first date" if kind == "M" else "days"
        return Cells(texts), Meaning("date", days - np.nanmin(days) if kind == "M" else days, note)
    return Cells(["" if value is None else str(value).strip() for value in values.tolist()]), None
