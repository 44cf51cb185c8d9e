r"""Columns that are not plain numbers: which part of a table is Gaussian, and the likelihood of the rest.

Given the partition B, categorical columns are independent of each other and of the numbers. In cluster b let
:math:`n_{bjc}` be the number of objects in category c of column j, :math:`n_{bj}` their sum (a missing
category is not counted), and :math:`L_j` the number of categories. The shares of the categories have a
Dirichlet(a, …, a) prior with a = 1/2 and are integrated out:

.. math::

    \log m_b = \sum_j \Big[ \log\Gamma(L_j a) - \log\Gamma(L_j a + n_{bj})
        + \sum_c \big( \log\Gamma(a + n_{bjc}) - \log\Gamma(a) \big) \Big] .

An object in category c of each column that joins cluster b gains
:math:`\sum_j \log \{(a + n_{bjc}) / (L_j a + n_{bj})\}`. None of this depends on θ, ν or Σ, on the names of
the categories, or on how the numbers are transformed.

A *two-part* column is both: a category "zero or not", and a number that is missing where it is zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from ewens_widgets.datasets import Dataset
from ewens_widgets.datasets.kinds import ColumnKind, Kinds, coded, examine
from ewens_widgets.model.checks import FloatArray, check_data, check_finite, column_names

__all__ = ["PSEUDO_COUNT", "Columns", "check_rows", "read_columns"]

IntArray = NDArray[np.int64]

PSEUDO_COUNT = 0.5
"""The parameter a of the Dirichlet prior of the shares: that of Jeffreys."""


@dataclass(frozen=True, eq=False)
class Columns:
    """What the columns of a table are to the model.

    Attributes
    ----------
    kinds
        Kind of each column; empty if they were not examined, and all are numbers.
    places
        For each object and categorical column, the place of its category among those of all columns (n × J);
        −1 where it is missing.
    rounding
        Directions of the numbers that are left out because they vary by rounding only, as sentences.
    """

    kinds: tuple[ColumnKind, ...] = ()
    places: IntArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64), repr=False)
    rounding: tuple[str, ...] = ()

    @cached_property
    def levels(self) -> IntArray:
        """Number of categories L of each categorical column."""
        return np.array([kind.n_levels for kind in self.kinds if kind.n_levels], dtype=np.int64)

    @cached_property
    def _starts(self) -> NDArray[np.intp]:  # In a browser NumPy takes places of 32 bits only.
        return np.concatenate([[0], np.cumsum(self.levels)[:-1]]).astype(np.intp)[: self.levels.size]

    @property
    def numbers(self) -> list[int] | None:
        """The columns that are numbers to the model; None: all of them."""
        return [place for place, kind in enumerate(self.kinds) if _is_used(kind)] if self.kinds else None

    @property
    def has_categories(self) -> bool:
        """Whether any column is a category."""
        return bool(self.levels.size)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a report says about columns that are not taken as Gaussian."""
        texts = [str(kind) for kind in self.kinds if kind.kind != "number"]
        return tuple(f"{text[0].upper()}{text[1:]}." for text in [*texts, *self.rounding])

    def places_of(self, X: FloatArray) -> IntArray:
        """Places of the categories of rows with all columns; −1 where one is missing or was never seen."""
        among = [place for place, kind in enumerate(self.kinds) if kind.n_levels]
        codes = coded(X, self.kinds)[:, among] if among else np.empty((len(X), 0))
        known = ~np.isnan(codes) & (codes < self.levels)
        return np.where(known, np.where(known, codes, 0.0) + self._starts, -1).astype(np.int64)

    def numbers_of(self, X: FloatArray) -> FloatArray:
        """The columns that are numbers; those in two parts are missing where they are zero."""
        numbers = X if self.numbers is None else X[:, self.numbers]
        return numbers if self.parted is None else np.where(self.parted & (numbers == 0.0), np.nan, numbers)

    @property
    def parted(self) -> NDArray[np.bool_] | None:
        """Which of the numbers are read in two parts; None: none of them."""
        found = np.array([self.kinds[place].kind == "two-part" for place in self.numbers or []], dtype=bool)
        return found if found.any() else None

    def counts(self, labels: NDArray[np.integer]) -> FloatArray:
        """Number of objects of each cluster in each category, those of all columns side by side (K × ΣL)."""
        found = np.zeros((int(labels.max()) + 1, int(self.levels.sum())))
        for column in self.places.T:
            there = column >= 0
            np.add.at(found, (labels[there], column[there]), 1.0)
        return found

    def expected_counts(self, memberships: FloatArray) -> FloatArray:
        """The same for membership probabilities (n × K)."""
        found = np.zeros((int(self.levels.sum()), memberships.shape[1]))
        for column in self.places.T:
            there = column >= 0
            np.add.at(found, column[there], memberships[there])
        return found.T

    def log_marginals(self, counts: FloatArray) -> FloatArray:
        """Log marginal likelihoods of the categories of clusters, given their counts (… × ΣL)."""
        if not self.has_categories:
            return np.zeros(counts.shape[:-1])
        by_level = gammaln(PSEUDO_COUNT + counts).sum(axis=-1) - counts.shape[-1] * gammaln(PSEUDO_COUNT)
        whole = PSEUDO_COUNT * self.levels
        by_column = gammaln(whole) - gammaln(whole + np.add.reduceat(counts, self._starts, axis=-1))
        return np.asarray(by_level + by_column.sum(axis=-1), dtype=np.float64)

    def log_weights(self, counts: FloatArray, new: IntArray) -> FloatArray:
        """Log probabilities of the categories of new objects, by `places_of`, in each cluster (m × K)."""
        total = np.zeros((len(new), len(counts)))
        if not self.has_categories:
            return total
        sums = np.add.reduceat(counts, self._starts, axis=1)
        for column, whole, number in zip(new.T, PSEUDO_COUNT * self.levels, sums.T, strict=True):
            shares = np.log(PSEUDO_COUNT + counts[:, column]) - np.log(whole + number)[:, None]
            total += np.where(column >= 0, shares, 0.0).T
        return total


def read_columns(data: ArrayLike | Dataset, kinds: Kinds) -> tuple[FloatArray, list[int] | None, Columns]:
    """Divide checked data into numbers and categories.

    Returns
    -------
    the numbers, the columns that they are (None: all of them), and what the columns are
    """
    if kinds is None and isinstance(data, Dataset):
        kinds = data.kinds
    whole, names = check_data(data, finite=False), column_names(data)
    check_finite(whole, data, allow_gaps=True)
    if kinds is None:
        _check_gaps(whole, names, Columns().places)
        return whole, None, Columns()
    if isinstance(kinds, str) and kinds == "auto" and isinstance(data, Dataset) and data.kinds is not None:
        kinds = data.kinds
    if isinstance(kinds, str | dict) or not all(isinstance(kind, ColumnKind) for kind in kinds):
        found = examine(whole, names, kinds)  # type: ignore[arg-type]
    else:
        found = list(kinds)  # type: ignore[arg-type]
    # Constant and empty columns are refused by name below, as they are where columns are not examined.
    used = Columns(tuple(found)).numbers or []
    if not used:
        if kinds != "auto":
            raise ValueError(
                "no column is a number, and the model needs at least one; say so for a column whose values "
                'have an order, e.g. kinds={"' + found[0].name + '": "number"}.'
            )
        found, used = examine(whole, names, "numeric"), list(range(whole.shape[1]))
    columns = Columns(tuple(found))
    columns = Columns(columns.kinds, columns.places_of(whole))
    numbers = np.ascontiguousarray(columns.numbers_of(whole))
    _check_gaps(numbers, [found[place].name for place in used], columns.places)
    return numbers, used, columns


def _check_gaps(numbers: FloatArray, names: Sequence[str] | None, places: IntArray) -> None:
    """Refuse columns of gaps, and rows in which nothing is observed."""
    for place in np.flatnonzero(np.isnan(numbers).all(axis=0)).tolist():
        column = place if names is None else repr(names[place])
        raise ValueError(f"column {column} has no values, all its cells are missing; drop it.")
    check_rows(numbers, places)


def check_rows(numbers: FloatArray, places: IntArray) -> None:
    """Refuse rows in which nothing is observed."""
    is_empty = np.isnan(numbers).all(axis=1)
    if places.size:
        is_empty &= (places < 0).all(axis=1)
    if rows := np.flatnonzero(is_empty).tolist():
        raise ValueError(
            f"row {rows[0]} has no values, all its cells are missing, and so {len(rows) - 1} other row(s): "
            "nothing says where they belong. Drop these rows, X[~np.isnan(X).all(axis=1)]."
        )


def _is_used(kind: ColumnKind) -> bool:
    """Whether a column is one of the numbers of the model."""
    is_refused = kind.kind == "left out" and kind.reason.startswith(("it is constant", "all its cells"))
    return kind.kind in {"number", "two-part"} or is_refused
