r"""Tables as people have them: from a file, an upload or a DataFrame to a `Dataset`, with a summary of it.

`layout` makes a file a DataFrame of text, `columns` finds what the cells of a column mean, and this module
gives each column a role. A column of numbers is a feature. A column with a usual name such as ``class``, or
else the only column of text with values that repeat, holds known classes. Text that differs in every row, or
whole numbers called ``id``, are names of the rows. Constant columns, dates and numbers that only count the
rows are left out. The model never sees classes and names, so that these can be recognised without risk.

Nothing else is guessed. Where two readings give different *numbers*, or text fits none of these roles,
`TableError` names the column, shows three values, and lists the choices. What the caller says comes first.
"""

import difflib
import json
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.datasets import ColumnSummary, Dataset, TableSummary, _frames
from ewens_widgets.datasets._frames import short_name
from ewens_widgets.datasets.kinds import ColumnKind, examine
from ewens_widgets.model.checks import DataWarning, misleading_columns
from ewens_widgets.tables.columns import WAYS, TableColumn, decimal_marks, is_missing, shortened
from ewens_widgets.tables.layout import LARGEST_FILE, TableError, check_size, read_layout

__all__ = ["LARGEST_FILE", "DataWarning", "TableError", "read_table"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_MISSING_WAYS = ("keep", "drop rows", "median", "refuse")
_MOST_NAMED = 5
_FEW_ROWS = 10  # In fewer rows, values that all differ mean little.
_CLASS_NAMES = {"class", "classes", "cluster", "group", "label", "labels", "species", "target", "type"}
_IDENTIFIER = re.compile(r"(?i)(.*[ _.-])?(id|ids|idx|index|uuid|key)|.*[a-z]I[Dd]|unnamed: 0|row_?names?")


def read_table(
    source: Any,  # noqa: ANN401 - a file or a frame of any library
    name: str | None = None,
    *,
    features: Sequence[str] | None = None,
    names: str | None = None,
    classes: str | None = None,
    drop: str | Sequence[str] = (),
    read_as: Mapping[str, str] | None = None,
    missing: str = "keep",
    header: int | bool | None = None,
    kinds: str | Mapping[str, str] = "auto",
) -> Dataset:
    """Read a table of numbers, with names and known classes, from a file or a DataFrame.

    Parameters
    ----------
    source
        Path of a CSV file, its bytes, or an open file, of at most 5 MB; or a DataFrame of pandas, polars,
        pyarrow, or another library that narwhals knows.
    name
        Name of the table, for titles and messages; by default that of the file.
    features
        Columns to cluster by; all others are left out, except names and classes. By default all that hold
        numbers. Dates become days since the first date, and yes and no become 1 and 0.
    names
        Column with the names of the rows.
    classes
        Column with the known classes; the model never sees them.
    drop
        Columns to leave out.
    read_as
        How to read a column that can be read in more than one way: ``{"weight": "thousands"}``, or
        "decimals", "numbers" (whatever follows them), "day first", "month first", "text".
    missing
        What to do with missing values: "keep" leaves the cells to the model, which draws them with the
        clusters, and leaves out rows without any value; "drop rows" leaves out the rows that have any;
        "median" puts the median of the column there; "refuse".
    header
        Whether the first row has the names of the columns, or how many rows do; found by default.
    kinds
        What the features are to a model: "auto" proposes numbers and categories from the values, with a
        reason in the summary; "numeric" takes all for numbers; ``{"sex": "category", "stars": "number"}``
        says it for some columns. Text becomes a feature as a category.

    Returns
    -------
    data set with the features, and with the classes and the names of the rows if there are any; its `summary`
    says what was done with each column

    Raises
    ------
    TableError
        For anything that cannot be read without guessing; the message lists the choices.

    Warns
    -----
    DataWarning
        For columns that may mislead: identifiers, constants, copies and combinations of other columns, codes,
        numbers that stand for missing values, long tails.
    """
    if missing not in _MISSING_WAYS:
        raise ValueError(f"missing must be one of {', '.join(map(repr, _MISSING_WAYS))}; got {missing!r}.")
    for column, way in (read_as or {}).items():
        if way not in WAYS:
            ways = ", ".join(map(repr, WAYS))
            raise ValueError(f"read_as of column {column!r} must be one of {ways}; got {way!r}.")
    table = _Reader.read(source, name, header)
    table.give_role("left out", "drop", [drop] if isinstance(drop, str) else drop)
    table.give_role("names", "names", [] if names is None else [names])
    table.give_role("classes", "classes", [] if classes is None else [classes])
    table.give_role("feature", "features", [] if features is None else features)
    wanted = {} if isinstance(kinds, str) else dict(kinds)
    for column, kind in wanted.items():
        table.give_role("left out" if kind == "left out" else "feature", "kinds", [column])
    table.understand(read_as or {})
    table.encode([name for name, kind in wanted.items() if kind == "category"])
    table.choose_roles(other_features=features is None)
    dataset = table.dataset(missing, kinds if isinstance(kinds, str) else wanted)
    for text in table.warnings:
        warnings.warn(text, DataWarning, stacklevel=2)
    return dataset


@dataclass
class _Reader:
    """The columns of a table on their way to a data set."""

    columns: list[TableColumn]
    n_rows: int
    title: str
    origin: str
    code: str  # how a line of code names the source
    separator: str = ""
    notes: list[str] = field(default_factory=list)
    index: Any = None  # of a DataFrame
    row_names: tuple[str, ...] | None = None
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, source: Any, name: str | None, header: int | bool | None) -> "_Reader":  # noqa: ANN401 - as above
        """Read a file or a frame."""
        if _frames.is_frame(source):
            frame, code = _frames.as_pandas(source), "frame"
            origin = name or f"a {type(source).__module__.split('.')[0]} {type(source).__name__}"
            title, layout = name or "table", {"index": frame.index, "row_names": _frames.row_names(frame)}
        else:
            content, path, code = _content(source)
            frame, separator, notes = read_layout(content, header)
            origin = name or path or "table.csv"
            title, layout = PurePath(origin).stem or "table", {"separator": separator, "notes": notes}
        if len(frame) < 2:
            raise TableError(f"the table has {len(frame)} row(s) of data; clustering needs at least 2.")
        columns = [
            TableColumn.from_series(frame.iloc[:, place], column, frame.columns[place])
            for place, column in enumerate(_frames.column_names(frame))
        ]
        return cls(columns, len(frame), short_name(title), short_name(origin), code, **layout)

    def named(self, argument: str, wanted: Iterable[object]) -> list[TableColumn]:
        """Columns that an argument names, as the table or its summary calls them."""
        found = []
        for key in wanted:
            for column in self.columns:
                if column.name == key or (type(key) is type(column.key) and bool(key == column.key)):
                    found.append(column)
                    break
            else:
                known = [column.name for column in self.columns]
                near = difflib.get_close_matches(str(key), known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {_quoted(known)}."
                raise ValueError(f"{argument}: there is no column {short_name(str(key))!r}; {hint}")
        return found

    def give_role(self, role: str, argument: str, wanted: Iterable[object]) -> None:
        """Give columns the role that the caller says."""
        for column in self.named(argument, wanted):
            if column.role not in {"", role}:
                raise ValueError(
                    f"column {column.name!r} is given two roles; name it in one of the arguments only."
                )
            column.role, column.is_wanted = role, True

    def understand(self, read_as: Mapping[str, str]) -> None:
        """Find what the columns of text mean."""
        ways = {self.named("read_as", [key])[0].name: way for key, way in read_as.items()}
        texts = [column for column in self.columns if not column.kind]
        marks = decimal_marks(texts, self.separator)
        for column in texts:
            column.understand(marks, ways.get(column.name))

    def encode(self, categories: Iterable[str]) -> None:
        """Put codes in place of text that the caller takes for categories."""
        for column in self.named("kinds", categories):
            cells = zip(column.texts, np.isfinite(column.numbers).tolist(), strict=True)
            is_read = all(is_number or is_missing(text) for text, is_number in cells)
            if is_read and column.kind in {"number", "empty"}:
                continue
            levels = sorted(set(column.cells))
            codes = {text: float(code) for code, text in enumerate(levels)}
            column.numbers = np.array([codes.get(text, np.nan) for text in column.texts])
            column.kind, column.question, column.levels = "number", "", tuple(levels)

    def having(self, role: str) -> list[TableColumn]:
        """Columns with a role."""
        return [column for column in self.columns if column.role == role]

    def choose_roles(self, other_features: bool) -> None:
        """Give every column a role and a reason; raise `TableError` where only the user can know it.

        Parameters
        ----------
        other_features
            Whether columns of numbers that the caller did not name are features.
        """
        for column in self.columns:
            if column.role:
                self._check_wish(column)
        for choose in (self._choose_by_name, self._choose_names, self._choose_numbers, self._choose_classes):
            for column in self.columns:
                if not column.role:
                    choose(column, other_features)
        if undecided := self.having("undecided"):
            told = [f"{column.name!r} ({column.shown})" for column in undecided]
            problem = f"it is not certain what to make of {_listed(told)}"
            raise TableError(self._questions(undecided), self.summary(), problem=problem)
        if not self.having("feature"):
            constant = [column.name for column in self.columns if column.reason.startswith("constant")]
            raise TableError(
                f"all rows are equal in {_quoted(constant)}, and there are no other columns of numbers, so "
                "there is nothing to cluster."
                if constant
                else "there is no column of numbers; clustering needs at least one.",
                self.summary(),
            )

    def _check_wish(self, column: TableColumn) -> None:
        """Add the reason to a role that the caller gave; refuse text as a feature."""
        reasons = {"left out": "as you said", "names": "names the rows, as you said", "feature": column.note}
        column.reason = reasons.get(column.role, f"{column.classes_text} (as you said)")
        if column.role == "feature" and column.kind in {"text", "empty"}:
            name, way = column.name, f"Say drop={column.name!r}."
            if column.kind == "text":
                way = f"Encode it as numbers, or say classes={name!r}, drop={name!r} or "
                way += f'kinds={{"{name}": "category"}}.'
            held = f"holds text ({column.shown})" if column.kind == "text" else "is empty"
            raise TableError(f"column {name!r} {held} and cannot be a feature. {way}", self.summary())
        if column.role == "feature" and column.question:
            column.assign("undecided", column.question)

    def _choose_by_name(self, column: TableColumn, _: bool) -> None:
        """Choose classes by their usual name, identifiers, and columns that only number the rows."""
        numbers, has_name = column.numbers, bool(str(column.key))
        is_whole = column.kind == "number" and np.array_equal(numbers, numbers.round())
        if column.kind == "empty":
            column.assign("left out", "empty")
        elif column.name.strip().lower() in _CLASS_NAMES and not self.having("classes"):
            if self._is_few(column):
                column.assign("classes", f"{column.classes_text} (by its name)")
            else:
                column.assign("undecided", f"classes, with {self._how_many(column)}?")
        elif is_whole and (not has_name or _IDENTIFIER.fullmatch(column.name)):
            if np.all(np.diff(numbers) == 1.0) and (numbers[0] in {0.0, 1.0} or has_name):
                column.assign("left out", "only numbers the rows")
            elif has_name and len(np.unique(numbers)) == len(numbers):
                self._assign_names(column, "identifiers by its name", "identifiers")

    def _choose_names(self, column: TableColumn, _: bool) -> None:
        """Take text that differs in every row for the names of the rows."""
        if column.kind == "text" and column.n_different == self.n_rows:
            text = "text, another in every row"
            self._assign_names(column, f"{text}: names the rows", text)

    def _assign_names(self, column: TableColumn, reason: str, otherwise: str) -> None:
        is_first = not self.having("names") and self.row_names is None
        column.assign(*(("names", reason) if is_first else ("left out", otherwise)))

    def _choose_numbers(self, column: TableColumn, other_features: bool) -> None:
        numbers = column.numbers
        if column.kind == "date":
            column.assign("left out", f"dates or times (as a feature: {column.note or column.question})")
        elif column.kind in {"number", "undecided"} and not other_features:
            column.assign("left out", "not among the features")
        elif column.kind == "undecided":
            column.assign("undecided", column.question)
        elif column.kind == "number":
            if np.all(numbers == numbers[0]):
                column.assign("left out", f"constant: always {column.shown}")
                self.warnings.append(f"column {column.name!r} is constant and is left out.")
            else:
                column.assign("feature", column.note)

    def _choose_classes(self, column: TableColumn, other_features: bool) -> None:
        """Take text that repeats for classes, if there is no other such column and its values are few."""
        others = [other for other in self.columns if not other.role and other is not column]
        if not other_features:
            column.assign("left out", "not among the features")
        elif others or self.having("undecided") or self.having("classes"):
            column.assign("undecided", "text" if column.kind == "text" else "numbers, classes or neither?")
        elif self._is_few(column):
            column.assign("classes", f"{column.classes_text} (the only column of text)")
        else:
            column.assign("undecided", f"text with {self._how_many(column)}: names, classes or neither?")

    def _is_few(self, column: TableColumn) -> bool:
        return column.n_different <= self.n_rows // 2 or self.n_rows < _FEW_ROWS

    def _how_many(self, column: TableColumn) -> str:
        return f"{column.n_different} different values in {self.n_rows} rows"

    def _questions(self, undecided: list[TableColumn]) -> str:
        """What only the user can know, with three values of each column and the choices as code."""
        texts = [column for column in undecided if column.reason == "text"]
        told = []
        if texts:
            subject = f"column{'s' * (len(texts) > 1)} {_quoted([column.name for column in texts])}"
            shown = _listed([f"{column.name!r}: {column.shown}" for column in texts])
            told.append(
                f"{subject} hold{'s' * (len(texts) == 1)} text ({shown}), which may be classes, names or "
                f"neither. Say which: {self._call(classes=texts[0].name)}, names=…, or drop=[…] for what is "
                "to be left out"
            )
        for column in [column for column in undecided if column not in texts][:2]:
            ways = [
                f'read_as={{"{column.name}": "{way}"}} ({gives or way})'
                for way, gives in column.choices.items()
            ]
            ways += [f'{argument}="{column.name}"' for argument in ("classes", "names", "drop")]
            told.append(f"column {column.name!r} ({column.shown}): {column.reason} Say {', or '.join(ways)}")
        return ". ".join(told) + "."

    def dataset(self, missing: str, wanted: str | Mapping[str, str]) -> Dataset:
        """The features as numbers, with all names, their kinds and the summary."""
        features = self.having("feature")
        X = self._matrix(features)
        kinds = self._kinds(X, features, wanted)
        stays = [column.role == "feature" for column in features]
        X, kinds = X[:, stays], [kind for kind, is_kept in zip(kinds, stays, strict=True) if is_kept]
        features = self.having("feature")
        # A missing category is not counted, so that it is no gap.
        is_number = np.array([kind.kind != "category" for kind in kinds], dtype=bool)
        gaps = X.copy()
        gaps[:, ~is_number] = 0.0
        has_values = self._rows_with_values(X) if missing == "keep" else np.ones(len(X), dtype=bool)
        gaps[~has_values] = 0.0
        kept = self._complete_rows(gaps, features, missing) & has_values
        if missing == "median" and np.isnan(gaps).any():
            X = np.where(np.isnan(gaps), np.nanmedian(gaps, axis=0), X)
        X, rows = X[kept], np.flatnonzero(kept).tolist()
        labels, label_names, names = None, None, self.row_names
        parts = [f"{len(X)} rows, {is_number.sum()} numeric columns"]
        parts[0] += f" and {(~is_number).sum()} categorical" * (not is_number.all())
        for column in self.having("names"):
            names = tuple(short_name(text) or str(row) for row, text in enumerate(column.texts, 1))
            parts.append(f"column {column.name} names the objects")
        for column in self.having("classes"):
            # Sorted as a list: in an array of text, one long cell would make all cells as long.
            different = sorted({column.texts[row] for row in rows})
            places = {text: place for place, text in enumerate(different)}
            labels = np.array([places[column.texts[row]] for row in rows], dtype=np.intp)
            label_names = tuple(_frames.distinct_names([short_name(text) for text in different]))
            parts.append(f"known classes from column {column.name}")
        if gone := [column.name for column in self.having("left out")]:
            parts.append(f"left out: {_listed(gone, ', ')}")
        feature_names = tuple(column.name for column in features)
        numbers = [name for name, is_one in zip(feature_names, is_number, strict=True) if is_one]
        complete = X[:, is_number][~np.isnan(X[:, is_number]).any(axis=1)]
        self.warnings += misleading_columns(complete, numbers) if numbers and len(complete) > 1 else []
        return Dataset(
            X=X,
            labels=labels,
            name=self.title,
            feature_names=feature_names,
            description=f"Read from {self.origin}: {'; '.join(parts)}.",
            label_names=label_names,
            row_names=None if names is None else tuple(names[row] for row in rows),
            summary=self.summary(),
            index=None if self.index is None else self.index[kept],
            kinds=kinds,
        )

    def _kinds(
        self, X: FloatArray, features: list[TableColumn], wanted: str | Mapping[str, str]
    ) -> list[ColumnKind]:
        """Kinds of the features, with what is not a number told in the summary."""
        names = [column.name for column in features]
        if not isinstance(wanted, str):
            given = {self.named("kinds", [name])[0].name: kind for name, kind in wanted.items()}
            wanted = {name: kind for name, kind in given.items() if name in names}  # Others are left out.
        kinds = examine(X, names, wanted)
        for place, column in enumerate(features):
            if kinds[place].kind == "left out":
                if "counts the rows" in kinds[place].reason and not column.is_wanted:
                    column.assign("left out", kinds[place].reason)
                    continue
                kinds[place] = examine(X[:, [place]], [column.name], "numeric")[0]
            if column.levels:
                kinds[place] = replace(kinds[place], level_names=column.levels)
            kind = kinds[place]
            column.model_kind = kind.kind
            if kind.kind != "number":
                told = f"{kind.kind}: {kind.reason}" if kind.reason else kind.kind
                column.reason = "; ".join(filter(None, [column.reason, told]))
        return kinds

    def summary(self) -> TableSummary:
        """What was done so far."""
        columns = []
        for column in self.columns:
            kind = column.model_kind if column.role == "feature" else ""
            told = column.name, column.role or "undecided", column.reason
            columns.append(ColumnSummary(*told, tuple(column.first_three), tuple(column.choices), kind))
        notes = [*self.notes, *["The index of the frame names the rows."] * (self.row_names is not None)]
        return TableSummary(self.origin, tuple(columns), tuple(notes), tuple(self.warnings))

    def _matrix(self, features: list[TableColumn]) -> FloatArray:
        """Features as floats, NaN where a value is missing; refuse values that are no numbers."""
        wrong = [
            f"{self._row(row)}, column {column.name!r} ({shortened(column.texts[row])!r})"
            for column in features
            for row in np.flatnonzero(~np.isfinite(column.numbers)).tolist()
            if not is_missing(column.texts[row])
        ]
        if wrong:
            problem = f"{_count(len(wrong), 'value')} that cannot be read as a number: {_listed(wrong)}"
            below = "; a value below a limit, such as <0.5, may be half of it" * ("('<" in problem)
            advice = f"Correct these cells or empty them{below}"
            raise TableError(
                f"{problem}. {advice}, drop the column with drop=…, or keep it with classes=….",
                self.summary(),
                problem=f"{problem}. {advice}, or leave the column out",
            )
        return np.column_stack([column.numbers for column in features])

    def _complete_rows(self, X: FloatArray, features: list[TableColumn], missing: str) -> BoolArray:
        """Rows to keep; refuse missing values if the caller did not say what to do."""
        gaps, unknown = np.isnan(X), np.zeros(len(X), dtype=bool)
        for column in self.having("classes"):
            unknown = np.array([is_missing(text) for text in column.texts])
        lost = gaps.any(axis=1) | unknown
        n_lost, n_gaps = int(lost.sum()), int(gaps.sum())
        if missing == "drop rows":
            if len(X) - n_lost < 2:
                raise TableError(
                    f"only {len(X) - n_lost} row(s) have no missing value; clustering needs at least 2."
                )
            if n_lost:
                self.notes.append(f"{_count(n_lost, 'row')} with missing values {_be(n_lost)} left out.")
            return ~lost
        leave_out = self._call(missing="drop rows")
        if n_gaps and missing == "refuse":
            places = [(features[place], row) for place, row in np.argwhere(gaps.T).tolist()]
            counts = zip(features, gaps.sum(axis=0).tolist(), strict=True)
            by_column = {column.name: count for column, count in counts if count}
            tally = _listed([f"{name!r} {count}" for name, count in by_column.items()], ", ")
            told = _listed([f"{self._row(row)}, column {column.name!r}" for column, row in places])
            problem = f"{_count(n_gaps, 'missing value')}: {told}"
            raise TableError(
                f"{problem}. By column: {tally}. Leave the {_count(n_lost, 'row')} out: {leave_out}; "
                "or the columns: "
                f"{self._call(drop=list(by_column)[:_MOST_NAMED])}; or put the column's median there: "
                f"{self._call(missing='median')}.",
                self.summary(),
                n_lost,
                problem,
            )
        if unknown.any():
            name = self.having("classes")[0].name
            empty = _listed([self._row(row) for row in np.flatnonzero(unknown).tolist()])
            raise TableError(
                f"column {name!r}, read as the known classes, is empty in {empty}. Fill these cells, leave "
                f"the rows out, {leave_out}, or drop the column, {self._call(drop=[name])}.",
                self.summary(),
                int(unknown.sum()),
            )
        if n_gaps:
            way = "drawn with the clusters" if missing == "keep" else "the column's median"
            self.notes.append(f"{_count(n_gaps, 'missing value')} {_be(n_gaps)} {way}.")
        return np.ones(len(X), dtype=bool)

    def _rows_with_values(self, X: FloatArray) -> BoolArray:
        """Rows in which something is observed."""
        found = ~np.isnan(X).all(axis=1)
        if found.sum() < 2:
            raise TableError(f"only {int(found.sum())} row(s) have any value; clustering needs at least 2.")
        if n_lost := int(np.sum(~found)):
            self.notes.append(f"{_count(n_lost, 'row')} without any value {_be(n_lost)} left out.")
        return np.asarray(found)

    def _row(self, place: int) -> str:
        """Name a row in a message: by its name in a frame, by its number below the header in a file."""
        if self.index is None:
            return f"row {place + 1}"
        label = self.index[place]
        return f"row {label if isinstance(label, int | np.integer) else repr(short_name(str(label)))}"

    def _call(self, **arguments: object) -> str:
        """A line of code that reads the table with one more argument."""
        spelled = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()]
        return f"ew.read_table({self.code}, {', '.join(spelled)})"


def _content(source: Any) -> tuple[bytes, str, str]:  # noqa: ANN401 - as above
    """Bytes of a file, its name, and how a line of code names it."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "", "content"
    if hasattr(source, "read"):
        read = source.read()
        return (read.encode() if isinstance(read, str) else read), "", "stream"
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            f"a table is the path of a file, its bytes, or a DataFrame; got {type(source).__name__}. "
            "An array of numbers goes to Dataset(X) or straight to Sampler(X)."
        )
    if isinstance(source, str) and "\n" in source:
        raise TypeError(
            "a text with lines is not the path of a file; for the table itself give text.encode()."
        )
    path = Path(source).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; give its path, or the bytes of the table.")
    check_size(path.stat().st_size)
    return path.read_bytes(), path.name, json.dumps(os.fspath(source), ensure_ascii=False)


def _listed(parts: Sequence[str], between: str = "; ") -> str:
    """The first few of many parts, and how many more there are."""
    more = len(parts) - _MOST_NAMED
    return between.join(parts[:_MOST_NAMED]) + (f"{between}and {more} more" if more > 0 else "")


def _quoted(names: Sequence[str]) -> str:
    return _listed([repr(name) for name in names], ", ")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _be(count: int) -> str:
    return "is" if count == 1 else "are"
