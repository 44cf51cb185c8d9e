r"""Tables as people have them: from a file, an upload or a DataFrame to a `Dataset`, with an account of it.

Three steps, a file each:

* `sources` takes a file or a frame apart into columns;
* `cells` says what a column's cells mean: numbers, in the many ways people write them, dates, text;
* `roles` gives each column a role, and writes everything that was done into ``dataset.account``.

Last, the numbers are looked at for what misleads a clustering: numbers of rows and other identifiers, codes
of groups, copies and combinations of other columns, a few values among many, long tails, numbers that stand
for a missing value. Nothing is changed for these; they are warned of by name.
"""

import difflib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.datasets import Dataset
from ewens_widgets.datasets._frames import short_name
from ewens_widgets.model.checks import DataWarning, dependence_text, dependent_columns
from ewens_widgets.tables.cells import READINGS
from ewens_widgets.tables.roles import Reading, listed
from ewens_widgets.tables.sources import LARGEST_FILE, RawColumn, RawTable, TableError, read_source

__all__ = ["LARGEST_FILE", "DataWarning", "TableError", "Wishes", "read_table"]

FloatArray = NDArray[np.float64]

_MISSING_WAYS = ("refuse", "drop rows", "median")
_ALMOST = 1e-2  # 1 − R² of a column that is said to follow from others.
_FEW_ROWS, _SOME_ROWS = 10, 20  # In fewer rows, what a column looks like is chance.
_MOST_NAMED = 10
_MOST_CODES = 10
_STAND_FOR_MISSING = (-99.0, -999.0, -9999.0, 999.0, 9999.0, 99999.0)


def read_table(
    source: Any,  # noqa: ANN401 - a file or a frame of any library
    name: str | None = None,
    *,
    features: Sequence[str] | None = None,
    names: str | None = None,
    classes: str | None = None,
    drop: str | Sequence[str] = (),
    read_as: Mapping[str, str] | None = None,
    missing: str = "refuse",
    header: int | bool | None = None,
) -> Dataset:
    """Read a table of numbers, with names and known classes, from a file or a DataFrame.

    Parameters
    ----------
    source
        Path of a CSV file, its bytes, or an open file, of at most 5 MB; or a DataFrame of pandas, polars, or
        any library with the dataframe interchange protocol or Arrow's.
    name
        Name of the table, for titles and messages; by default that of the file.
    features
        Columns to cluster by; all others are left out, but for names and classes. By default all that hold
        numbers. Dates become days since the first, and yes and no become 1 and 0.
    names
        Column with the names of the rows.
    classes
        Column with the known classes; the model never sees them.
    drop
        Columns to leave out.
    read_as
        How to read a column that could be read in more than one way: ``{"weight": "thousands"}``, or
        "decimals", "numbers" (whatever stands behind them), "day first", "month first", "text".
    missing
        What to do with missing values: "refuse", "drop rows" leaves out the rows that have any, "median" puts
        the median of the column there.
    header
        Whether the first row has the names of the columns, or how many rows do; by default found out.

    Returns
    -------
    data set with the features, and with the classes and the names of the rows if there are any; its `account`
    says what was done with each column

    Raises
    ------
    TableError
        For anything that cannot be read without guessing; it says what the choices are.

    Warns
    -----
    DataWarning
        For columns that may mislead: identifiers, constants, copies and combinations of other columns, codes,
        numbers that stand for missing values, long tails.
    """
    table = read_source(source, name, header)
    wishes = Wishes.checked(table, features, names, classes, drop, read_as, missing)
    reading = Reading(table, wishes)
    reading.settle_roles()
    dataset, account = reading.dataset()
    found = (*account.warnings, *_findings(dataset.X, dataset.feature_names))
    for text in found:
        warnings.warn(text, DataWarning, stacklevel=2)
    return replace(dataset, account=replace(account, warnings=found))


@dataclass(frozen=True)
class Wishes:
    """What the caller said, with columns by their place."""

    features: frozenset[int] | None
    names: int | None
    classes: int | None
    drop: frozenset[int]
    read_as: dict[int, str]
    missing: str

    @classmethod
    def checked(
        cls,
        table: RawTable,
        features: Sequence[str] | None,
        names: str | None,
        classes: str | None,
        drop: str | Sequence[str],
        read_as: Mapping[str, str] | None,
        missing: str,
    ) -> "Wishes":
        """Take the arguments of `read_table`; refuse names that the table does not have."""
        if missing not in _MISSING_WAYS:
            raise ValueError(
                f"missing must be one of {', '.join(map(repr, _MISSING_WAYS))}; got {missing!r}."
            )
        for column, reading in (read_as or {}).items():
            if reading not in READINGS:
                ways = ", ".join(map(repr, READINGS))
                raise ValueError(f"read_as of column {column!r} must be one of {ways}; got {reading!r}.")
        wishes = cls(
            None if features is None else _places(table, "features", features),
            None if names is None else min(_places(table, "names", [names])),
            None if classes is None else min(_places(table, "classes", [classes])),
            _places(table, "drop", drop),
            {min(_places(table, "read_as", [column])): way for column, way in (read_as or {}).items()},
            missing,
        )
        single = frozenset(place for place in (wishes.names, wishes.classes) if place is not None)
        twice = (wishes.features or frozenset()) & (single | wishes.drop) | single & wishes.drop
        if twice or (wishes.names is not None and wishes.names == wishes.classes):
            doubled = table.columns[min(twice or single)].name
            raise ValueError(f"column {doubled!r} is given two roles; name it in one of the arguments only.")
        return wishes


def _places(table: RawTable, argument: str, wanted: str | Iterable[object]) -> frozenset[int]:
    """Places of columns that an argument names, as the table or its account calls them."""
    found = set()
    for name in [wanted] if isinstance(wanted, str) else wanted:
        places = [place for place, column in enumerate(table.columns) if _is_called(column, name)]
        if not places:
            known = [column.name for column in table.columns]
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = (
                f"; did you mean {near[0]!r}?"
                if near
                else f"; there are {listed(list(map(repr, known)), ', ')}."
            )
            raise ValueError(f"{argument}: there is no column {short_name(str(name))!r}{hint}")
        found.add(places[0])
    return frozenset(found)


def _is_called(column: RawColumn, name: object) -> bool:
    return column.name == name or (type(name) is type(column.key) and bool(column.key == name))


def _findings(X: FloatArray, names: Sequence[str]) -> list[str]:
    """What in a table of finite numbers may mislead a clustering, a sentence for each finding."""
    found: list[str] = []
    discrete: list[str] = []
    shares = [len(np.unique(column)) / len(X) for column in X.T]
    for place, (name, column) in enumerate(zip(names, X.T, strict=True)):
        others = shares[:place] + shares[place + 1 :]
        kind = _counting_finding(name, column) or _code_finding(name, column)
        if (
            not kind
            and len(X) >= 2 * _SOME_ROWS
            and shares[place] < 0.1
            and others
            and np.median(others) > 0.5
        ):
            discrete.append(name)
        found += filter(None, [kind, _skew_finding(name, column), _stand_in_finding(name, column)])
    if discrete:
        listed = ", ".join(map(repr, discrete[:_MOST_NAMED]))
        found.append(
            f"column(s) {listed} take few values while the others hardly repeat one: equal values may become "
            "clusters of their own. Measure them finer, or leave them out and see what changes."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        centred = X - X.mean(axis=0)
        alike = dependent_columns(centred / np.abs(centred).max(axis=0), _ALMOST)
    if alike:
        listed = ", ".join(repr(names[column]) for column, _, _ in alike[:_MOST_NAMED])
        found.append(
            f"column {dependence_text(alike, names)} (nearly): what they share would count once for each. "
            f"Leave out: drop=[{listed}]."
        )
    return found


def _counting_finding(name: str, column: FloatArray) -> str:
    if len(column) < _FEW_ROWS or not np.array_equal(column, np.round(column)):
        return ""
    steps = np.diff(column)
    is_ordered = bool(np.all(steps > 0) or np.all(steps < 0))
    is_dense = len(np.unique(column)) == len(column) and np.ptp(column) < 2 * len(column)
    if not is_ordered and not is_dense:
        return ""
    how = "in order" if is_ordered else "without large gaps"
    return (
        f"column {name!r} looks like a number of the row or an identifier (whole numbers, all different, "
        f"{how}): as a feature it makes clusters of neighbouring rows. Use it for names, names={name!r}, or "
        f"leave it out, drop={name!r}."
    )


def _code_finding(name: str, column: FloatArray) -> str:
    values = np.unique(column)
    if len(column) < _SOME_ROWS or not 2 <= len(values) <= min(_MOST_CODES, len(column) // 4):
        return ""
    if not np.array_equal(values, np.round(values)):
        return ""
    shown = ", ".join(f"{value:g}" for value in values[:5]) + (", …" if len(values) > 5 else "")
    return (
        f"column {name!r} has only {len(values)} different whole numbers ({shown}): if they are codes of "
        f"groups or batches, they will come out as clusters. Leave it out, drop={name!r}, or keep it to "
        f"compare with, classes={name!r}."
    )


def _skew_finding(name: str, column: FloatArray) -> str:
    if len(column) < _SOME_ROWS or column.min() <= 0.0 or column.max() == column.min():
        return ""
    skewness, of_logarithms = _skewness(column), _skewness(np.log(column))
    if skewness < 2.0 or abs(of_logarithms) > 0.5 * skewness:
        return ""
    return (
        f"column {name!r} is positive and strongly skewed (skewness {skewness:.1f}, of its logarithms "
        f"{of_logarithms:.1f}): a long tail is cut into clusters. Logarithms?"
    )


def _skewness(column: FloatArray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = column / np.abs(column).max()
        centred = scaled - scaled.mean()
        spread = np.sqrt(np.mean(centred**2))
        return float(np.mean((centred / spread) ** 3)) if spread > 0.0 else 0.0


def _stand_in_finding(name: str, column: FloatArray) -> str:
    """A number such as −999 that stands far from all others, more than once."""
    for value in _STAND_FOR_MISSING:
        is_there = column == value
        rest = column[~is_there]
        if is_there.sum() < 2 or len(rest) < 2:
            continue
        gap = rest.min() - value if value < 0 else value - rest.max()
        if gap > max(np.ptp(rest), 1.0):
            return (
                f"column {name!r} has {int(is_there.sum())} times {value:g}, far from its other values: does "
                "it stand for a missing value? Then leave these cells empty."
            )
    return ""
