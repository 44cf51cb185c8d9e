r"""From a file to a DataFrame of text: encoding, separator, lines above the table, names of the columns.

A file is text to be parsed, nothing more: no formula is evaluated and no other file is opened. The first rows
decide the layout, and `pandas.read_csv` then reads all of it. Recognised are UTF-8, UTF-16 and the Western
code page of spreadsheets, the separator (tab, semicolon, comma, bar, or runs of spaces), title and comment
lines above the table, one or two rows of names, a row of units, a row of totals below, and tables written by
R, whose column of row names has no name. Whatever goes beyond a plain table is noted for the summary.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import dropwhile, islice
from typing import Any

from ewens_widgets.datasets import TableSummary
from ewens_widgets.datasets._frames import short_name
from ewens_widgets.files import GUARD
from ewens_widgets.tables.columns import is_missing, is_plain_number, looks_like_number, looks_like_unit

LARGEST_FILE = 5_000_000
_MOST_ROWS = 20_000
_MOST_COLUMNS = 1_000
_LOOKED_AT = 50  # Rows that decide the layout.
# Words that are the name of a column and hardly ever the name of a row.
_HEADING = re.compile("(?i)class|code|group|id|index|label|name|object|sample|species|subject")
_TOTAL = re.compile("(?i)((grand )?totals?|sum|mean|average):?")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class TableError(ValueError):
    """The table cannot be read without guessing; the message says where, and what to do.

    Attributes
    ----------
    summary
        What was understood of the columns so far, or None if there are no columns yet.
    incomplete
        Number of rows with missing values, if these are the problem.
    problem
        The problem without the ways out, for panels that offer these as controls.
    """

    def __init__(
        self, message: str, summary: TableSummary | None = None, incomplete: int = 0, problem: str = ""
    ) -> None:
        super().__init__(message)
        self.summary = summary
        self.incomplete = incomplete
        self.problem = problem or message


def check_size(size: int) -> None:
    """Refuse a file that is too large."""
    if size > LARGEST_FILE:
        raise TableError(
            f"the file has {size / 1e6:.1f} MB; at most {LARGEST_FILE / 1e6:.0f} MB are read. "
            "Keep fewer rows or columns."
        )


def read_layout(content: bytes, header: int | bool | None) -> tuple[Any, str, list[str]]:
    """Read a file.

    Returns
    -------
    a DataFrame of stripped text whose columns are the cells of the header (empty without one), the separator,
    and notes for the summary
    """
    text, notes = _decoded(content)
    separator = _separator(text)
    if separator == " ":
        text = "\n".join(re.sub(r"[ \t]+", "\t", line.strip()) for line in text.split("\n"))
    rows = _head(text, "\t" if separator == " " else separator)
    head = [row for row in rows if any(row[1])]
    if not head:
        raise TableError("the table has no filled cells; it should have one row per object.")
    widest = max(len(cells) for _, cells in rows)
    width = Counter(len(cells) for _, cells in head).most_common(1)[0][0]
    n_titles = 0
    while len(head) > 2 and width > 1 and _is_title(head[0][1], [cells for _, cells in head[1:4]], width):
        line, title = head.pop(0)
        n_titles += 1
        shown = short_name(", ".join(filter(None, title)))
        notes.append(f"Line {line} is left out as a title or comment: {shown!r}.")
    first, *below = [cells for _, cells in head]
    first[0] = first[0].removeprefix("#").lstrip() if len(first) > 1 else first[0]
    if _lacks_a_name(first, below, width):
        first.insert(0, "")
    if max(len(first), widest) > _MOST_COLUMNS:
        raise TableError(
            f"the table has {max(len(first), widest)} columns; at most {_MOST_COLUMNS} are read."
        )
    cells = [(row + [""] * len(first))[: len(first)] for row in (first, *below)]
    n_names = _header_rows(cells) if header is None else int(header)
    names = first if n_names else [""] * len(first)
    for row in cells[1:n_names]:
        names, note = _joined(names, row)
        notes.append(note)
    table = _parsed(text, "\t" if separator == " " else separator, max(len(first), widest))
    body = table.iloc[n_titles + n_names :]
    if n_blank := len(body) and int(body.index[-1] - body.index[0]) + 1 - len(body):
        notes.append(f"{n_blank} row{'s are' if n_blank > 1 else ' is'} left out: all cells are empty.")
    body = body.reset_index(drop=True)
    if len(body) > 2 and _TOTAL.fullmatch(word := next(filter(None, body.iloc[-1]))):
        notes.append(f"The last row, {word!r}, is left out: it sums up the others.")
        body = body.iloc[:-1]
    beyond = body.iloc[:, len(first) :]
    for row in body.index[(beyond != "").any(axis=1)][:1]:
        count = len(first) + int((beyond.loc[row] != "").to_numpy().nonzero()[0][-1]) + 1
        raise TableError(
            f"row {row + 1} has {count} cells, but the first row has {len(first)}; "
            "check separators and quotes there."
        )
    return body.iloc[:, : len(first)].set_axis(names, axis=1), separator, notes


def _decoded(content: bytes) -> tuple[str, list[str]]:
    """Text with line feeds as ends of lines; a guess of the encoding is noted."""
    check_size(len(content))
    encoding, notes = "utf-8-sig", []
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif len(content) % 2 == 0 and 0 in content[:2] and any(content[:2]):
        encoding = "utf-16-le" if content[1] == 0 else "utf-16-be"
        notes = ["The file has no mark of its encoding and is read as UTF-16."]
    else:
        try:
            content.decode("utf-8-sig")
        except UnicodeDecodeError:
            # charset-normalizer would read short Danish tables as Polish, and µm and °C as Chinese.
            encoding, notes = "cp1252", ["The text is not UTF-8 and is read as Windows-1252 (Latin-1)."]
    text = content.decode(encoding, errors="replace").removeprefix("\ufeff")
    if _CONTROL.search(text):
        raise TableError("this is not a text file; save the table as CSV (UTF-8) and try again.")
    if not text.strip():
        raise TableError("the file is empty; it should have one row per object and one column per feature.")
    return text.replace("\r\n", "\n").replace("\r", "\n"), notes


def _head(text: str, separator: str) -> list[tuple[int, list[str]]]:
    """The first rows with the numbers of their lines; some may hold empty cells only."""
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    rows = ((reader.line_num, [re.sub(GUARD, "", cell.strip()) for cell in cells]) for cells in reader)
    found: list[tuple[int, list[str]]] = []
    with suppress(csv.Error):  # A cell that is too long: with another separator it may not be one.
        found.extend(islice((row for row in rows if row[1]), _LOOKED_AT))
    return found


def _parsed(text: str, separator: str, width: int) -> Any:  # noqa: ANN401 - a DataFrame
    """All rows that are not blank, as stripped text; pandas fills short rows with empty cells."""
    import pandas as pd

    try:
        table = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            header=None,
            names=range(width),
            index_col=False,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            nrows=_MOST_ROWS + 100,
        )
    except pd.errors.ParserError as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        if quote := re.search("EOF inside string starting at row ([0-9]+)", reason):
            reason = f"a quote in line {int(quote[1]) + 1} is not closed"
        raise TableError(f"the table cannot be read ({reason}); check separators and quotes there.") from None
    # Without the apostrophe that keeps a spreadsheet from running a cell as a formula.
    table = table.apply(lambda column: column.str.strip().str.replace(GUARD, "", regex=True))
    table = table[(table != "").any(axis=1)]
    if len(table) > _MOST_ROWS:
        raise TableError(f"the table has more than {_MOST_ROWS} rows; keep fewer.")
    return table


def _separator(text: str) -> str:
    """The separator that gives most rows the same number of cells; of several the first of this list."""
    first, *others = [line.strip() for line in text.split("\n") if line.strip()][:_LOOKED_AT]
    unseen = [mark for mark in "\t;|" if mark not in text]
    if unseen and "," not in first and others and all(map(looks_like_number, others)):
        return unseen[0]  # A single column, in which commas belong to numbers such as $1,000.01.
    shares = {}
    for candidate in "\t;,|":
        widths = Counter(len(cells) for _, cells in _head(text, candidate) if any(cells))
        width, count = widths.most_common(1)[0] if widths else (1, 0)
        shares[candidate] = count / widths.total() if width > 1 else 0.0
    best = max(shares, key=shares.__getitem__)
    if shares[best] > 0.0:
        return best
    return " " if _is_spaced([first, *others]) else max("\t;,", key=re.sub(r'"[^"]*"', "", first).count)


def _is_spaced(lines: list[str]) -> bool:
    """Whether runs of spaces separate columns, at least two of numbers, and are not within 1 007 or 5 mg."""
    if any('"' in line for line in lines) or len({len(line.split()) for line in lines}) != 1:
        return False
    is_single = all(map(looks_like_number, lines[1:]))
    return not is_single and all(sum(map(looks_like_number, line.split())) > 1 for line in lines[1:])


def _is_title(cells: list[str], below: list[list[str]], width: int) -> bool:
    if _has_number(cells) or all(sum(map(bool, row)) < 2 for row in below):
        return False
    is_comment = cells[0].startswith("#") and len(cells) != width
    return is_comment or (sum(map(bool, cells)) == 1 and (len(cells) == 1 or width > 2))


def _lacks_a_name(first: list[str], body: list[list[str]], width: int) -> bool:
    """Whether R wrote the table: its row names, text or numbers that count on, have no name."""
    if len(first) != width - 1 or _has_number(first) or any(len(cells) != width for cells in body):
        return False
    names = [cells[0] for cells in body]
    return not _has_number(names) or (width > 2 and names == [str(row) for row in range(1, len(names) + 1)])


def _has_number(cells: Sequence[str]) -> bool:
    return any(map(looks_like_number, cells))


def _header_rows(rows: list[list[str]]) -> int:
    """How many rows hold names; names that are years, doses or numbers look like data."""
    first = rows[0]
    if not _has_number(first):
        return 1 + (len(rows) > 3 and _is_second_header(rows[1], rows[2:]))
    if any(map(_HEADING.fullmatch, first)) or _has_units_only_here(rows):
        return 1
    numbers = list(dropwhile(lambda cell: not cell.isdecimal(), first))
    if not _is_counting(numbers) or any(_is_counting(row[-len(numbers) :]) for row in rows[1:]):
        return 0
    if not first[0].isdecimal():
        return 1  # A word above the names of rows, or nothing, as pandas writes its index.
    shown = ", ".join(first[:3])
    raise TableError(
        f"the first row, {shown}, …, counts on: are these names of columns, or data? Say header=True or "
        "header=False."
    )


def _has_units_only_here(rows: list[list[str]]) -> bool:
    """Whether the first row has numbers with units, such as doses, above columns of plain numbers."""
    places = [place for place, cell in enumerate(rows[0]) if looks_like_number(cell)]
    return not any(is_plain_number(rows[0][place]) for place in places) and all(
        is_plain_number(row[place]) for row in rows[1:] for place in places
    )


def _is_counting(cells: list[str]) -> bool:
    """Whether at least three cells count on by one from 0, from 1, or from a year."""
    if len(cells) < 3 or not all(cell.isdecimal() and len(cell) < 10 for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    starts = numbers[0] in {0, 1} or 1500 <= numbers[0] <= 2200
    return starts and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _is_second_header(row: list[str], body: list[list[str]]) -> bool:
    """Whether a row has names or units above the columns of numbers, rather than data with a fault."""
    numeric = [
        place
        for place in range(len(row))
        if 2 * sum(looks_like_number(cells[place]) for cells in body) > len(body)
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
        # Only the first of several columns has the common name.
        carried = above or (carried if below else "")
        names.append(f"{carried} {below}".strip())
    return names, "Two rows of names are joined."
