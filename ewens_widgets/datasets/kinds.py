r"""What kind of column the numbers of a table make: a number, a category, two-part, or left out.

A Gaussian model assumes continuous columns. Where many rows share a value, a cluster on that value has
variance zero in this direction, and no longer describes the data. So each column is examined before it is
clustered:

* **left out**: the same in all rows, empty, or a counter of the rows (1, 2, … n);
* **category**: few distinct values, or one value in most rows;
* **two-part**: exact zeros in many rows but not in most, and otherwise many different values of one sign;
  modelled as a category "zero or not" and a number that is missing where it is zero;
* **number**: everything else, with its resolution δ: the values lie on a grid of step δ, or δ = 0.

The look uses values only, never labels, and does not depend on the unit of a column. It is a proposal with a
reason: ``kinds=`` of `read_table`, `Dataset`, `Sampler` and the estimator changes it, and reports print it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["KINDS", "ColumnKind", "Kinds", "coded", "examine", "resolution_of"]

FloatArray = NDArray[np.float64]

KINDS = ("number", "category", "two-part", "left out")

_FEWEST_COUNTED = 10  # Ten measurements that count on by one in order are no accident.
_FEWEST_ROWS = 20  # In fewer rows a repeated value says little about a column.
_FEW_VALUES = 7  # A rating scale. With as few values most clusters would lie on a single one.
_ROWS_PER_VALUE = 4  # Values of a category repeat; those of a small continuous sample do not.
_MOST_ROWS = 0.5  # A value in more rows than this is the median: no normal distribution has such a point.
_MOST_LEVELS = 50  # More levels leave too few rows for each to estimate its share in a cluster.
_MANY_ZEROS = 0.1  # From here on the zeros are a cluster of their own in any Gaussian reading.
_LEAST_COMPLETE = 0.5  # With fewer complete rows the imputed numbers decide where a row can go.
_EXCESS = 3.0  # Zeros that belong to a count or a grid are no more frequent than the values next to them.
_DIGITS = 1e-7  # Steps below this share of the largest value are treated as a continuum.


@dataclass(frozen=True)
class ColumnKind:
    """What a column is treated as.

    Attributes
    ----------
    name
        Name of the column.
    kind
        One of `KINDS`.
    resolution
        Step δ of the grid on which the numbers lie; 0 if they lie on none, and for categories.
    reason
        Why, in a sentence.
    levels
        The values of a category, in increasing order; code c stands for ``levels[c]``. Other values have the
        next code.
    level_names
        What a table calls the levels, if they were text.
    """

    name: str
    kind: str
    resolution: float = 0.0
    reason: str = ""
    levels: tuple[float, ...] = ()
    level_names: tuple[str, ...] = ()

    @property
    def n_levels(self) -> int:
        """Number of categories; "another value" is one of them where only one value has a name.

        A two-part column has two, zero and not zero.
        """
        return {"category": max(len(self.levels), 2), "two-part": 2}.get(self.kind, 0)

    def __str__(self) -> str:
        said = _SPELLED.get(self.kind, self.kind)
        return f"column {self.name!r} is {said}" + (f": {self.reason}" if self.reason else "")


_SPELLED = {"number": "a number", "category": "a category", "two-part": "read in two parts"}


Kinds: TypeAlias = str | Sequence[str] | Sequence[ColumnKind] | Mapping[str, str] | None
"""What ``kinds=`` takes: "auto", "numeric", a kind for each column, or kinds by name; None: not examined."""


def examine(
    X: FloatArray,
    names: Sequence[str] | None = None,
    kinds: str | Sequence[str] | Mapping[str, str] = "auto",
) -> list[ColumnKind]:
    """Look at the columns of a table of numbers.

    Parameters
    ----------
    X
        Numbers, a row per object; NaN where a cell is missing.
    names
        Names of the columns; by default x1, x2, and so on.
    kinds
        "auto" proposes a kind for each column; "numeric" takes all that vary for numbers; a sequence has a
        kind, or "auto", for each column; a mapping has kinds by name, and the other columns are proposed.

    Returns
    -------
    a kind for each column, with its resolution and the reason

    Raises
    ------
    ValueError
        For kinds that do not exist, and for a kind that does not suit its column.
    """
    matrix = np.asarray(X, dtype=np.float64)
    columns = tuple(names) if names else tuple(f"x{place}" for place in range(1, matrix.shape[1] + 1))
    wanted = _wanted(columns, kinds)
    found = [
        _proposed(name, column) if kind == "auto" else _as_wanted(name, column, kind)
        for name, column, kind in zip(columns, matrix.T, wanted, strict=True)
    ]
    _keep_rows_complete(matrix, found, wanted)
    if "auto" in wanted and all(kind.kind == "left out" for kind in found):
        # A single column that happens to count: better clustered than refused.
        found = [
            _as_wanted(kind.name, column, "number") if "counts the rows" in kind.reason else kind
            for kind, column in zip(found, matrix.T, strict=True)
        ]
    return found


def _keep_rows_complete(matrix: FloatArray, found: list[ColumnKind], wanted: Sequence[str]) -> None:
    """Propose categories in place of two-part columns, those with most zeros first, if few rows are complete.

    The numbers of a two-part column are missing where it is zero, and with many gaps chains mix slowly.
    """
    while True:
        parts = [place for place, kind in enumerate(found) if kind.kind == "two-part"]
        changed = [place for place in parts if wanted[place] == "auto"]
        numbers = np.array([kind.kind in {"number", "two-part"} for kind in found])
        gaps = np.isnan(matrix)
        gaps[:, parts] |= matrix[:, parts] == 0.0
        if not changed or np.mean(~gaps[:, numbers].any(axis=1)) >= _LEAST_COMPLETE:
            return
        place = max(changed, key=lambda place: int(np.sum(matrix[:, place] == 0.0)))
        reason = f"{found[place].reason}; read as 0 or another value, to keep more rows complete"
        found[place] = _category(found[place].name, np.zeros(1), reason)


def coded(X: FloatArray, kinds: Sequence[ColumnKind]) -> FloatArray:
    """Put the codes of categories in place of their values; other columns stay as they are.

    The categories of a two-part column are 0 (zero) and 1.
    """
    matrix = np.array(X, dtype=np.float64)
    for place, kind in enumerate(kinds):
        if kind.kind == "two-part":
            matrix[:, place] = np.where(np.isnan(matrix[:, place]), np.nan, matrix[:, place] != 0.0)
        elif kind.kind == "category":
            column, levels = matrix[:, place].copy(), np.array(kind.levels)
            codes = np.minimum(np.searchsorted(levels, column), len(levels) - 1)
            matrix[:, place] = np.where(levels[codes] == column, codes, len(levels))
            matrix[np.isnan(column), place] = np.nan
    return matrix


def _wanted(names: Sequence[str], kinds: str | Sequence[str] | Mapping[str, str]) -> list[str]:
    """The kind that the caller wants of each column, or "auto"."""
    if isinstance(kinds, str):
        if kinds not in {"auto", "numeric"}:
            raise ValueError(f"kinds must be 'auto', 'numeric', or a kind for each column; got {kinds!r}.")
        return ["auto" if kinds == "auto" else "number"] * len(names)
    if isinstance(kinds, Mapping):
        if unknown := [name for name in kinds if name not in names]:
            raise ValueError(f"kinds: there is no column {unknown[0]!r}; there are {', '.join(names)}.")
        wanted = [str(kinds.get(name, "auto")) for name in names]
    else:
        wanted = [str(kind) for kind in kinds]
    if len(wanted) != len(names):
        raise ValueError(f"kinds has {len(wanted)} entries, but there are {len(names)} columns.")
    for name, kind in zip(names, wanted, strict=True):
        if kind not in {*KINDS, "auto"}:
            choices = ", ".join(map(repr, (*KINDS, "auto")))
            raise ValueError(f"kinds: column {name!r} must be one of {choices}; got {kind!r}.")
    return wanted


def _proposed(name: str, column: FloatArray) -> ColumnKind:
    """Propose a kind from the values alone."""
    observed = column[~np.isnan(column)]
    if not observed.size:
        return ColumnKind(name, "left out", reason="all its cells are missing")
    values, counts = np.unique(observed, return_counts=True)
    if len(values) == 1:
        return ColumnKind(name, "left out", reason=f"it is constant: always {values[0]:g}")
    has_no_gaps = _FEWEST_COUNTED <= len(observed) == len(column)
    if has_no_gaps and values[0] in {0.0, 1.0} and np.all(np.diff(column) == 1.0):
        reason = f"it only counts the rows, {values[0]:g} to {values[-1]:g}"
        return ColumnKind(name, "left out", reason=reason)
    if len(column) < _FEWEST_ROWS:
        return _number(name, observed)
    share, n_rows = counts.max() / len(observed), len(observed)
    zeros = int(counts[values == 0.0].sum())
    others = counts[values != 0.0]
    next_to_zero = others[:_FEW_VALUES] if values[0] >= 0.0 else others[-_FEW_VALUES:]
    if (
        len(others) > _FEW_VALUES
        and max(_MANY_ZEROS * n_rows, _EXCESS * next_to_zero.max()) <= zeros <= _MOST_ROWS * n_rows
        and (values[0] >= 0.0 or values[-1] <= 0.0)
    ):
        percent = f"{100.0 * zeros / n_rows:.0f} %"
        reason = f"{percent} of the rows are exactly 0, and the others have {len(others)} values"
        return ColumnKind(name, "two-part", resolution_of(observed[observed != 0.0]), reason)
    if len(values) <= min(_FEW_VALUES, n_rows // _ROWS_PER_VALUE):
        shown = ", ".join(f"{value:g}" for value in values)
        return _category(name, values, f"it has {len(values)} distinct values ({shown})")
    if share > _MOST_ROWS:
        common = float(values[counts.argmax()])
        reason = f"{100.0 * share:.0f} % of the rows have the value {common:g}"
        if len(values) <= min(_MOST_LEVELS, (n_rows - counts.max()) // _ROWS_PER_VALUE):
            return _category(name, values, f"{reason}, one of {len(values)}")
        return _category(name, np.array([common]), f"{reason}; read as {common:g} or another value")
    return _number(name, observed)


def _as_wanted(name: str, column: FloatArray, kind: str) -> ColumnKind:
    """Give a column the kind that the caller wants, if it can have it."""
    observed = column[~np.isnan(column)]
    values = np.unique(observed)
    if kind == "left out":
        return ColumnKind(name, kind, reason="as you said")
    if not values.size:
        raise ValueError(f"column {name!r} has no values, all its cells are missing; drop it.")
    if kind == "number":
        return _number(name, observed)
    if kind == "two-part":
        if not (values == 0.0).any() or len(values) < 3 or values[0] < 0.0 < values[-1]:
            raise ValueError(
                f"column {name!r} cannot be two-part: that needs zeros, and other numbers of one sign."
            )
        return ColumnKind(name, kind, resolution_of(observed[observed != 0.0]), "as you said")
    if len(values) > _MOST_LEVELS or (len(values) == len(observed) and len(observed) > _FEW_VALUES):
        raise ValueError(
            f"column {name!r} has {len(values)} categories in {len(observed)} rows; at most "
            f"{_MOST_LEVELS} that repeat can be estimated. Group the rare ones, or take it for a number, or "
            "leave it out."
        )
    return _category(name, values, "as you said")


def _number(name: str, observed: FloatArray) -> ColumnKind:
    step = resolution_of(observed)
    return ColumnKind(name, "number", step, f"in steps of {step:g}" if step else "")


def _category(name: str, values: FloatArray, reason: str) -> ColumnKind:
    return ColumnKind(name, "category", 0.0, reason, tuple(values.tolist()))


def resolution_of(values: FloatArray) -> float:
    """Step δ of the coarsest grid that holds all values, which may be shifted; 0 if there is none.

    Euclid's algorithm on the differences of neighbouring values, up to rounding errors. Its result changes
    with the unit as the values do. Steps of less than 10⁻⁷ of the largest value count as none.
    """
    different = np.unique(values)
    largest = float(np.abs(different).max()) if different.size else 0.0
    steps = set(np.diff(different).tolist())
    if len(different) < 3 or not np.isfinite(largest):
        return 0.0
    least, nothing = _DIGITS * largest, 1e-9 * largest
    common = min(steps)
    for step in steps:
        rest = step
        while rest > nothing:
            rest, common = common, rest
            rest = abs(np.remainder(rest + common / 2, common) - common / 2)
        if common < least:
            return 0.0
    whole = (different - different[0]) / common
    common *= whole[-1] / round(whole[-1])  # Errors of the last step are spread over the whole range.
    whole = (different - different[0]) / common
    return float(f"{common:.9g}") if np.abs(whole - whole.round()).max() < 0.01 else 0.0
