"""The record that every loader returns."""

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dataset"]

_SHOWN = 6
_WIDTH = 88


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Objects to be clustered, with what is known about them.

    The arrays are copies and read-only. Missing values are not looked for here: the model refuses them.

    Parameters
    ----------
    X
        One row an object, one column a feature; kept as float64.
    labels
        Known classes as integers, one an object, or None.
    name
        Short name, for titles.
    feature_names
        One name a column; left empty, the columns are called x1, x2, and so on.
    description
        Where the data come from and what was done with them.
    label_names
        Names of the classes: ``label_names[k]`` is the name of label k. None: labels are shown as numbers.

    Raises
    ------
    TypeError, ValueError
        For values that are not numbers and for lengths that do not agree.
    """

    X: NDArray[np.float64]
    labels: NDArray[np.intp] | None = None
    name: str = "data"
    feature_names: tuple[str, ...] = ()
    description: str = ""
    label_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
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
        # The way to set fields of a frozen dataclass from within.
        checked = {"X": X, "labels": labels, "feature_names": names, "label_names": label_names}
        for field, value in checked.items():
            object.__setattr__(self, field, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # numpy drops the read-only flag in pickles and deep copies; the constructor sets it again.
        fields = (self.X, self.labels, self.name, self.feature_names, self.description, self.label_names)
        return type(self), fields

    @property
    def n_objects(self) -> int:
        """Number of rows of X."""
        return len(self.X)

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return len(self.feature_names)

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
        return [("features", _shortened(self.feature_names)), ("labels", self._classes_text())]

    def _classes_text(self) -> str:
        if self.labels is None:
            return "none"
        values, counts = np.unique(self.labels, return_counts=True)
        names = [str(value) if self.label_names is None else self.label_names[value] for value in values]
        sizes = [f"{name} ({count})" for name, count in zip(names, counts, strict=True)]
        classes = "1 class" if len(sizes) == 1 else f"{len(sizes)} classes"
        return f"{classes}: {_shortened(sizes)}"


def _checked_matrix(values: object) -> NDArray[np.float64]:
    raw = np.asarray(values)
    if raw.ndim != 2 or 0 in raw.shape:
        raise ValueError(
            f"X must be a matrix with at least one row and one column, got shape {raw.shape}; "
            "for a single feature use X.reshape(-1, 1)"
        )
    if raw.dtype.kind not in "biufO":
        raise TypeError(f"X must hold real numbers, got {raw.dtype}; drop or encode the other columns")
    try:
        matrix = np.array(raw, dtype=np.float64, order="C", copy=True)
    except (TypeError, ValueError) as error:
        raise TypeError(f"X must hold real numbers ({error}); drop or encode the other columns") from None
    matrix.setflags(write=False)
    return matrix


def _checked_labels(values: object, n_objects: int) -> NDArray[np.intp]:
    raw = np.asarray(values)
    if raw.shape != (n_objects,):
        raise ValueError(f"labels must have one entry a row of X, {n_objects} in all, got shape {raw.shape}")
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
