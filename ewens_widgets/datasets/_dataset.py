"""The record that every loader returns, and the summary of how a table became one."""

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.datasets import _frames
from ewens_widgets.datasets.kinds import KINDS, ColumnKind, examine

__all__ = ["ColumnSummary", "Dataset", "TableSummary"]

_SHOWN = 6
_WIDTH = 88
_HEADS = ("column", "role", "what was done")


@dataclass(frozen=True)
class ColumnSummary:
    """What was done with one column of a table.

    Attributes
    ----------
    name
        Name of the column.
    role
        "feature", "names" (of the rows), "classes", "left out", or "undecided".
    reason
        How it was read, or why it has this role; empty for plain numbers that are a feature.
    values
        Three of its values, as they stand in the table.
    choices
        Other ways to read it: what `read_as` of `read_table` takes for this column.
    kind
        What a feature is to a model: "number", "category" or "two-part"; empty for other roles.
    """

    name: str
    role: str
    reason: str = ""
    values: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    kind: str = ""


@dataclass(frozen=True, repr=False)
class TableSummary:
    """What a reader did with each column of a table; ``summary["weight"]`` is that of one column.

    Attributes
    ----------
    origin
        Where the table came from.
    columns
        One entry per column of the table, in its order.
    notes
        What else was done: lines and rows that were left out, the encoding.
    warnings
        What was found in the numbers that may mislead a clustering.
    """

    origin: str
    columns: tuple[ColumnSummary, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> ColumnSummary:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"no column {name!r}; there are {', '.join(column.name for column in self.columns)}")

    def named(self, role: str) -> tuple[str, ...]:
        """Names of the columns with a role."""
        return tuple(column.name for column in self.columns if column.role == role)

    def __repr__(self) -> str:
        wide = max((len(column.name) for column in self.columns), default=0)
        lines = [f"Columns of {self.origin}"]
        lines += [f"  {each.name:{wide}}  {each.role:9}  {each.reason}".rstrip() for each in self.columns]
        lines += [f"  {note}" for note in self.notes]
        for warning in self.warnings:
            lines += textwrap.wrap(warning, _WIDTH, initial_indent="  Note: ", subsequent_indent="    ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        left = '<td style="text-align: left">'
        rows = "".join(
            f"<tr>{left}{html.escape(column.name)}</td>{left}{column.role}</td>"
            f"{left}{html.escape(column.reason)}</td></tr>"
            for column in self.columns
        )
        heads = "".join(f'<th scope="col" style="text-align: left">{head}</th>' for head in _HEADS)
        said = [*self.notes, *(f"Note: {warning}" for warning in self.warnings)]
        paragraphs = "".join(f"<p>{html.escape(text)}</p>" for text in said)
        origin = f"Columns of {html.escape(self.origin)}"
        return f"<div><strong>{origin}</strong><table><tr>{heads}</tr>{rows}</table>{paragraphs}</div>"


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Objects to be clustered, with what is known about them.

    The arrays are read-only copies. Missing values are allowed here, and refused by the model.

    Parameters
    ----------
    X
        One row per object and one column per feature; kept as float64. A DataFrame also gives the names of
        its columns and rows; if it has columns of text or dates, use `read_table`.
    labels
        Known classes as integers, one per object, or None.
    name
        Short name, for titles.
    feature_names
        One name per column; by default x1, x2, and so on.
    description
        Where the data come from and what was done with them.
    label_names
        Names of the classes: ``label_names[k]`` is the name of label k. None: labels are shown as numbers.
    row_names
        One name per object, or None: objects are shown as numbers.
    summary
        What `read_table` did with each column of the table; None for data that did not come from one.
    index
        Labels of the rows in the pandas DataFrame that the data came from; None for other data.
    same_units
        Whether all columns are measured in one unit; plots then have the same scale on both axes.
    noun
        What widgets call one object, such as ``"wine"``; the plural has an s.
    kinds
        What each column is: "auto" proposes a kind for each, with a reason (see `datasets.kinds`);
        "numeric" makes all of them numbers; a mapping, ``{"sex": "category"}``, has those that are known.
        Kept as one `ColumnKind` per column. None: the columns are not examined, and are numbers to a model.

    Raises
    ------
    TypeError, ValueError
        For values that are not numbers, and for lengths that differ.
    """

    X: NDArray[np.float64]
    labels: NDArray[np.intp] | None = None
    name: str = "data"
    feature_names: tuple[str, ...] = ()
    description: str = ""
    label_names: tuple[str, ...] | None = None
    row_names: tuple[str, ...] | None = None
    summary: TableSummary | None = None
    index: Any = field(default=None)
    same_units: bool = False
    noun: str = "object"
    kinds: Any = None

    def __post_init__(self) -> None:
        if _frames.is_frame(self.X):
            self._take_names_of_frame()
        X = _checked_matrix(self.X)
        n_objects, n_features = X.shape
        names = _checked_names("feature_names", self.feature_names)
        if not names:
            names = tuple(f"x{column}" for column in range(1, n_features + 1))
        if len(names) != n_features:
            raise ValueError(f"feature_names has {len(names)} names, but X has {n_features} columns")
        labels = None if self.labels is None else _checked_labels(self.labels, n_objects)
        label_names = None if self.label_names is None else _checked_names("label_names", self.label_names)
        if label_names is not None:
            _check_label_names(labels, label_names)
        row_names = None if self.row_names is None else _checked_names("row_names", self.row_names)
        if row_names is not None and len(row_names) != n_objects:
            raise ValueError(f"row_names has {len(row_names)} names, but X has {n_objects} rows")
        [noun] = _checked_names("noun", (self.noun,))
        if not noun.strip():
            raise ValueError(f"noun must say what one object is called, such as 'wine', got {noun!r}")
        kinds = self.kinds
        if kinds is not None and not all(isinstance(kind, ColumnKind) for kind in kinds):
            kinds = examine(X, names, kinds)
        if kinds is not None and len(kinds) != n_features:
            raise ValueError(f"kinds has {len(kinds)} entries, but X has {n_features} columns")
        # The way to set fields of a frozen dataclass from within.
        checked = {"X": X, "labels": labels, "feature_names": names, "label_names": label_names}
        checked |= {"row_names": row_names, "kinds": None if kinds is None else tuple(kinds)}
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _take_names_of_frame(self) -> None:
        frame = _frames.as_pandas(self.X)
        names = self.feature_names or _frames.column_names(frame)
        rows = _frames.row_names(frame) if self.row_names is None else self.row_names
        index = frame.index if self.index is None else self.index
        X = _frames.numeric_matrix(frame)
        for name, value in {"X": X, "feature_names": names, "row_names": rows, "index": index}.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # numpy drops the read-only flag in pickles and deep copies; the constructor sets it again.
        return type(self), tuple(getattr(self, name) for name in self.__dataclass_fields__)

    @property
    def n_objects(self) -> int:
        """Number of rows of X."""
        return len(self.X)

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return len(self.feature_names)

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Name of the known class of each object, or None where classes are not known."""
        if self.labels is None:
            return None
        names = self.label_names
        return tuple(str(label) if names is None else names[label] for label in self.labels.tolist())

    def counted(self, count: int) -> str:
        """A number of objects in the words of the data: ``"1 wine"``, ``"5 wines"``."""
        return _plural(count, self.noun)

    def row_name(self, row: int) -> str:
        """Name of an object, or its number."""
        return f"{self.noun} {row}" if self.row_names is None else self.row_names[row]

    def series(self, values: ArrayLike, name: str = "cluster") -> Any:  # noqa: ANN401 - pandas has no types here
        """Values, one per object, as a pandas Series with the index of the original table.

        Parameters
        ----------
        values
            For example the labels of a clustering.
        name
            Name of the series, and of its column when it is joined to the original table.
        """
        import pandas as pd

        given = np.asarray(values)
        if given.shape != (self.n_objects,):
            raise ValueError(
                f"a series has one value per row, {self.n_objects} in all, got shape {given.shape}"
            )
        rows = self.index if self.index is not None else self.row_names
        return pd.Series(given, index=None if rows is None else pd.Index(rows), name=name)

    def __repr__(self) -> str:
        lines = [f"Dataset {self.name!r}: {self._shape_text()}"]
        lines += [f"  {title}: {text}" for title, text in self._facts()]
        lines += textwrap.wrap(self.description, _WIDTH, initial_indent="  ", subsequent_indent="  ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cell = '<td style="text-align: left">'
        rows = "".join(
            f'<tr><th scope="row" style="text-align: left">{title}</th>{cell}{html.escape(text)}</td></tr>'
            for title, text in self._facts()
        )
        return (
            f"<div><strong>{html.escape(self.name)}</strong>: {self._shape_text()}"
            f"<table>{rows}</table><p>{html.escape(self.description)}</p></div>"
        )

    def _shape_text(self) -> str:
        return f"{_plural(self.n_objects, 'object')} × {_plural(self.n_features, 'feature')}"

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("features", _shortened(self.feature_names)), ("labels", self._classes_text())]
        by_kind = {
            kind: [column.name for column in self.kinds or () if column.kind == kind] for kind in KINDS[1:]
        }
        return [*facts, *((kind, _shortened(named)) for kind, named in by_kind.items() if named)]

    def _classes_text(self) -> str:
        if self.labels is None:
            return "none"
        values, counts = np.unique(self.labels, return_counts=True)
        names = [str(value) if self.label_names is None else self.label_names[value] for value in values]
        sizes = [f"{name} ({count})" for name, count in zip(names, counts, strict=True)]
        classes = "1 class" if len(sizes) == 1 else f"{len(sizes)} classes"
        return f"{classes}: {_shortened(sizes)}"


def _checked_matrix(values: object) -> NDArray[np.float64]:
    matrix = np.array(_frames.as_matrix(values))
    if 0 in matrix.shape:
        raise ValueError(f"X must have at least one row and one column, got shape {matrix.shape}")
    matrix.setflags(write=False)
    return matrix


def _checked_labels(values: object, n_objects: int) -> NDArray[np.intp]:
    raw = np.asarray(values)
    if raw.shape != (n_objects,):
        raise ValueError(f"labels must have one entry per row of X ({n_objects}), got shape {raw.shape}")
    if raw.dtype.kind not in "biu":
        raise TypeError(
            f"labels must be whole numbers, got {raw.dtype}; "
            "for names use numpy.unique(..., return_inverse=True) and pass the names as label_names"
        )
    labels = raw.astype(np.intp, copy=True)
    labels.setflags(write=False)
    return labels


def _checked_names(field: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise TypeError(f"{field} must be a sequence of names, got the single string {names!r}")
    checked = tuple(names)
    for name in checked:
        if not isinstance(name, str):
            raise TypeError(f"{field} must hold strings, got {name!r}")
    return checked


def _check_label_names(labels: NDArray[np.intp] | None, label_names: tuple[str, ...]) -> None:
    if labels is None:
        raise ValueError("label_names were given without labels; pass labels too, or leave label_names out")
    lowest, highest = int(labels.min()), int(labels.max())
    if lowest < 0 or highest >= len(label_names):
        raise ValueError(
            f"labels run from {lowest} to {highest}, but the {len(label_names)} label_names "
            f"name labels 0 to {len(label_names) - 1}"
        )


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _shortened(names: Sequence[str]) -> str:
    if len(names) <= _SHOWN:
        return ", ".join(names)
    return ", ".join([*names[: _SHOWN - 1], "…", names[-1]])
