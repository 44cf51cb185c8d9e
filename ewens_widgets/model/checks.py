r"""Input checks of the model: each error names the problem, its place and the way out.

Some data are accepted with a warning. A column that depends linearly on others counts twice under models I
and II, and makes the determinant of model III zero. With :math:`u_j` the centred columns, scaled to length
one, column j depends on columns K before it if its residual,

.. math:: 1 - R_j^2 = \min_c \; \lVert u_j - \sum_{k \in K} c_k u_k \rVert^2 ,

is nearly zero; K holds the columns that do not depend on others themselves. Since
:math:`1 - R_j^2 \ge \lambda_{\min}`, the smallest eigenvalue of the correlation matrix shows in most cases
that there is no such column.
"""

import warnings
from collections.abc import Sequence
from typing import Literal, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.arguments import check_positive
from ewens_widgets.datasets import Dataset, _frames

FloatArray = NDArray[np.float64]
ModelName = Literal["I", "II", "III"]

# M is found by a subtraction that costs a factor 1 + θn of precision. With this θ the likelihood of 60 × 8
# data is still good to 1e-3; with one a thousand times larger, rounding would decide between partitions.
LARGEST_THETA = 2.0**30

_MOST_NAMED = 10
_NEARLY = 1e-4  # Largest 1 − R² of a column that is reported as dependent on others.
_COPY_CELLS = 5e10  # Largest n d² for which copies are searched; more would take seconds.
_MOST_CODES = 10  # A column with at most this number of values may hold codes.
_STAND_INS = (-99.0, -999.0, -9999.0, 999.0, 9999.0, 99999.0)  # Numbers that often mean a missing value.
_FEW_ROWS = 10  # In fewer rows columns depend on one another by chance.


class DataWarning(UserWarning):
    """The data can be clustered, but a property named in the message may be misleading."""


class Dependence(NamedTuple):
    """A column that depends linearly on columns before it."""

    column: int
    on: tuple[int, ...]
    is_copy: bool


def check_model(model: str) -> ModelName:
    """Return the name of a covariance model; refuse other names."""
    if model not in get_args(ModelName):
        raise ValueError(
            f'model must be "I" (one common variance), "II" (a variance for each column) or '
            f'"III" (any covariance); got {model!r}.'
        )
    return cast("ModelName", model)


def check_theta(theta: object) -> float:
    """Return a variance ratio, positive and small enough for a likelihood without large rounding errors."""
    value = check_positive("theta", theta)
    if value > LARGEST_THETA:
        raise ValueError(
            f"theta must not exceed 2**30, above which rounding dominates the likelihood; got {theta!r}."
        )
    return value


def check_theta_grid(grid: ArrayLike, name: str = "theta") -> FloatArray:
    """Return a grid of parameters, variance ratios by default, as an increasing array of positive numbers."""
    if np.iscomplexobj(grid):
        raise TypeError(f"the grid of {name} must be a list of numbers; got complex ones.")
    try:
        values = np.atleast_1d(np.asarray(grid, dtype=np.float64))
    except (TypeError, ValueError) as fault:
        raise TypeError(f"the grid of {name} must be a list of numbers; got {grid!r}.") from fault
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"the grid of {name} must be a non-empty list of numbers; got shape {values.shape}.")
    if not np.all(np.isfinite(values)) or np.any(values <= 0):
        raise ValueError(
            f"every value of the grid of {name} must be positive and finite; got {_first_values(values)}. "
            "Drop the others."
        )
    if name == "theta":
        check_theta(values.max())
    ordered = np.unique(values)
    if ordered.size != values.size:
        raise ValueError(
            f"the grid of {name} holds a value twice; got {_first_values(values)}. Give each value once."
        )
    return ordered


def _first_values(values: FloatArray) -> str:
    return np.array2string(values, threshold=20, edgeitems=5)


def check_data(data: ArrayLike | Dataset, finite: bool = True) -> FloatArray:
    """Return the data as an n × d matrix of finite floats, n ≥ 2; refuse other data.

    With `finite` false, NaN (also for None, pandas.NA and masked cells) and infinity are left for others to
    judge.

    Such a matrix, perhaps memory-mapped from a file, is returned itself and not copied: do not write to it.
    """
    matrix = data.X if isinstance(data, Dataset) else _frames.as_matrix(data)
    if matrix.shape[0] < 2:
        raise ValueError(f"clustering needs at least 2 objects (rows); got n_samples = {matrix.shape[0]}.")
    if matrix.shape[1] < 1:
        raise ValueError(
            f"0 feature(s) (shape={matrix.shape}) while a minimum of 1 is required: data need a column."
        )
    if finite:
        check_finite(matrix, data)
    return matrix


def column_names(data: ArrayLike | Dataset) -> tuple[str, ...] | None:
    """Names of the columns, for messages; None if they have none."""
    if isinstance(data, Dataset):
        return data.feature_names
    return _frames.column_names(_frames.as_pandas(data)) if _frames.is_frame(data) else None


def check_finite(matrix: FloatArray, data: ArrayLike | Dataset, allow_gaps: bool = False) -> None:
    """Refuse NaN and infinity, with the first place, the number by column, and ways out."""
    bad = np.isinf(matrix) if allow_gaps else ~np.isfinite(matrix)
    if not bad.any():
        return
    is_frame, names = _frames.is_frame(data), column_names(data)
    rows = _frames.row_names(_frames.as_pandas(data)) if is_frame else getattr(data, "row_names", None)
    row, column = np.argwhere(bad)[0].tolist()
    kind = "NaN" if np.isnan(matrix[row, column]) else "infinity"
    where = f"row {row if rows is None else repr(rows[row])}, column {named_columns([column], names)}"
    counts = bad.sum(axis=0)
    by_column = ", ".join(
        f"{named_columns([place], names)}: {counts[place]}"
        for place in np.flatnonzero(counts)[:_MOST_NAMED].tolist()
    )
    keep = "frame.dropna()" if is_frame and kind == "NaN" else "X[np.isfinite(X).all(axis=1)]"
    raise ValueError(
        f"data contain {kind} (Input contains {'infinity' if allow_gaps else 'NaN or infinity'}) at {where}; "
        f"{int(bad.sum())} such value(s) in all ({by_column} by column). Drop the "
        f"{int(bad.any(axis=1).sum())} row(s), {keep}, or these columns, or "
        + ("make the cells missing (NaN)." if allow_gaps else "fill the gaps.")
    )


def named_columns(places: Sequence[int], names: Sequence[str] | None) -> str:
    """Columns by name, or by number where they have none."""
    shown = [str(place) if names is None else repr(names[place]) for place in places[:_MOST_NAMED]]
    return ", ".join(shown) + (", …" if len(places) > _MOST_NAMED else "")


def check_spread(
    matrix: FloatArray, model: ModelName, names: Sequence[str] | None = None, fewest: int = 2
) -> None:
    """Refuse data on which the likelihood of `model` is not defined: too little spread, too few rows.

    Model III needs d + `fewest` rows, so that they span all directions: d + 2 for a covariance that is
    profiled out, d + 1 for one with a prior.
    """
    n_objects, n_features = matrix.shape
    constant = constant_columns(matrix)
    n_objects -= int(np.isnan(matrix).any(axis=1).sum())
    if len(constant) == n_features:
        raise ValueError("all rows are equal, so there is nothing to cluster; check the input.")
    if model != "I" and constant:
        listed = named_columns(constant, names)
        raise ValueError(f'column(s) {listed} are constant; drop them, or use model "I".')
    if model == "III" and n_objects < n_features + fewest <= len(matrix):
        raise ValueError(
            f"model III needs at least d + {fewest} = {n_features + fewest} rows without a missing cell, as "
            f"incomplete ones do not determine a full covariance; there are {n_objects}. Leave out the "
            'columns with most gaps, or use model "II".'
        )
    if model == "III" and n_objects < n_features + fewest:
        raise ValueError(
            f"model III estimates a full covariance and needs more than d + {fewest - 1} = "
            f"{n_features + fewest - 1} objects; "
            f'got n_samples = {n_objects}. Reduce the columns (PCA, or drop some), or use model "I" or "II".'
        )


def constant_columns(matrix: FloatArray) -> list[int]:
    """Numbers of the columns in which all rows are equal."""
    return np.flatnonzero(np.nanmax(matrix, axis=0) == np.nanmin(matrix, axis=0)).tolist()


def dependent_columns(
    matrix: FloatArray, tolerance: float = _NEARLY, fewest: int = _FEW_ROWS
) -> list[Dependence]:
    """Columns that depend linearly on those before them: on one (a copy) or on several.

    A dependent column has 1 − R² of at most the tolerance; constant ones are skipped. With fewer rows than
    `fewest` nothing is reported; it is 1 if the rank is known to be too small.
    """
    if matrix.shape[1] < 2 or len(matrix) < fewest or len(matrix) * matrix.shape[1] ** 2 > _COPY_CELLS:
        return []
    columns = _unit_columns(matrix)
    found = _dependent(columns, tolerance, fewest)
    if not found or fewest == 1:
        return found
    # One distant row correlates all columns: a dependence must hold in the rows near the centre too.
    far = np.abs(columns).max(axis=1)
    near = _unit_columns(columns[far <= np.quantile(far, 0.9)])
    confirmed = {column for column, _, _ in _dependent(near, tolerance, 2)}
    return [dependence for dependence in found if dependence.column in confirmed]


def _unit_columns(matrix: FloatArray) -> FloatArray:
    """Centre columns and scale them to length one, whatever their units; constant ones become zero."""
    peak = np.abs(matrix).max(axis=0)
    centred = matrix / np.where(peak > 0.0, peak, 1.0)
    centred -= centred.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    centred /= np.where(lengths > np.finfo(np.float64).eps, lengths, np.inf)
    return centred


def _dependent(unit: FloatArray, tolerance: float, fewest: int) -> list[Dependence]:
    """Search columns of length one, with an orthonormal basis of the independent ones."""
    varying = np.flatnonzero(unit.any(axis=0))
    unit, places = unit[:, varying], varying.tolist()
    n_objects, n_features = unit.shape
    correlations = unit.T @ unit
    # With few rows columns depend on others by chance, so only copies are reported.
    only_copies = n_objects < min(fewest, 2) * n_features
    if fewest > 1 and not only_copies and np.linalg.eigvalsh(correlations)[0] > tolerance:
        return []
    basis = np.zeros_like(unit)
    kept: list[int] = []
    found = []
    for column in range(n_features):
        twins = [place for place in kept if 1.0 - correlations[place, column] ** 2 < max(tolerance, 1e-12)]
        rest = unit[:, column].copy()
        for _ in range(0 if only_copies else 2):  # a second pass removes the rounding error of the first
            rest -= basis[:, : len(kept)] @ (basis[:, : len(kept)].T @ rest)
        stands_alone = not twins if only_copies else bool(rest @ rest > tolerance)
        if stands_alone:
            basis[:, len(kept)] = rest / np.linalg.norm(rest)
            kept.append(column)
        elif twins:
            found.append(Dependence(places[column], (places[twins[0]],), True))
        else:
            weights = np.abs(np.linalg.lstsq(unit[:, kept], unit[:, column], rcond=None)[0])
            on = np.flatnonzero(weights > 0.01 * weights.max()).tolist()
            found.append(Dependence(places[column], tuple(places[kept[place]] for place in on), False))
    return found


def dependence_text(found: Sequence[Dependence], names: Sequence[str] | None) -> str:
    """Say which columns depend on which."""
    parts = []
    for column, on, is_copy in found[:_MOST_NAMED]:
        kind = "a copy of" if is_copy else "a linear combination of"
        parts.append(f"{named_columns([column], names)} is {kind} {named_columns(on, names)}")
    return "; ".join(parts) + ("; …" if len(found) > _MOST_NAMED else "")


def warn_of_dependence(columns: FloatArray, model: ModelName, names: Sequence[str] | None) -> None:
    """Warn, under models I and II, of columns that depend on others and so count twice."""
    found = dependent_columns(columns)
    if found:
        listed = named_columns([column for column, _, _ in found], names)
        warnings.warn(
            f"column {dependence_text(found, names)} (nearly): model {model} counts what they share once for "
            f"each, which can change the clusters. Drop column(s) {listed}, unless this weight is meant.",
            DataWarning,
            stacklevel=5,
        )


def dependence_error(unit: FloatArray, rank: int, tolerance: float, names: Sequence[str] | None) -> str:
    """Error of model III for columns that depend on others, with the columns to drop."""
    found = dependent_columns(unit, tolerance, fewest=1)
    count = unit.shape[1]
    start = f"the data have rank {rank}, less than their {count} columns: "
    if not found:
        return f"{start}some are linear combinations of others. Reduce them (PCA, or drop columns)."
    listed = named_columns([column for column, _, _ in found], names)
    # Not for copies: there they would count twice, and increase the number of clusters.
    has_copies = any(is_copy for _, _, is_copy in found)
    other = "" if has_copies else ', or use model "I" or "II", which let what they share count again'
    return (
        f"{start}column {dependence_text(found, names)}. They say nothing that the others do not: drop "
        f"column(s) {listed} (or reduce all by PCA, or drop columns that these follow from){other}."
    )


def repeated_values(X: FloatArray) -> dict[str, list[int]]:
    """Columns whose values repeat, or never do: "few values", "coarse values" and "row numbers".

    `read_table` and `trace.check()` both use them; the Data panel shows what `read_table` says.
    """
    found: dict[str, list[int]] = {"few values": [], "coarse values": [], "row numbers": []}
    n_rows = len(X)
    for place, column in enumerate(X.T):
        values = np.unique(column)
        if 1 < values.size <= min(_MOST_CODES, n_rows // 5):
            found["few values"].append(place)
        elif 1 < values.size < n_rows // 5:
            found["coarse values"].append(place)
        elif values.size == n_rows >= _FEW_ROWS:
            steps, is_whole = np.diff(values), np.array_equal(values, values.round())
            is_sorted = np.array_equal(column, values) or np.array_equal(column, values[::-1])
            if np.ptp(steps) < 1e-6 * steps.mean() or (
                is_whole and (is_sorted or np.ptp(values) < 2 * n_rows)
            ):
                found["row numbers"].append(place)
    return found


def misleading_columns(X: FloatArray, names: Sequence[str]) -> list[str]:
    """Sentences about misleading columns of a table: identifiers, codes, long tails, copies."""
    seen = repeated_values(X)
    found = [
        f"column {names[place]!r} looks like a number of the row or an identifier (all values differ, in "
        "order, evenly spaced or without large gaps): as a feature it makes clusters of neighbouring rows. "
        f"Use it for names, names={names[place]!r}, or leave it out, drop={names[place]!r}."
        for place in seen["row numbers"]
    ]
    for place in seen["few values"]:
        name, values = names[place], np.unique(X[:, place])
        shown = ", ".join(f"{value:g}" for value in values[:5]) + (", …" if len(values) > 5 else "")
        found.append(
            f"column {name!r} has only {len(values)} different values ({shown}): if they are codes of groups "
            f"or batches, they will come out as clusters. Leave it out, drop={name!r}, or keep it to compare "
            f"with, classes={name!r}."
        )
    for name, column in zip(names, X.T, strict=True):
        found += filter(None, [_skewness_text(name, column), _stand_in_text(name, column)])
    if alike := dependent_columns(X):
        listed = ", ".join(repr(names[column]) for column, _, _ in alike[:_MOST_NAMED])
        found.append(
            f"column {dependence_text(alike, names)} (nearly): what they share would count once for each. "
            f"Leave out: drop=[{listed}]."
        )
    return found


def _skewness_text(name: str, column: FloatArray) -> str:
    if len(column) < 2 * _FEW_ROWS or column.min() <= 0.0 or column.max() == column.min():
        return ""
    skewness, of_logarithms = skewness_of(column), skewness_of(np.log(column))
    if skewness < 2.0 or abs(of_logarithms) > 0.5 * skewness:
        return ""
    return (
        f"column {name!r} is positive and strongly skewed (skewness {skewness:.1f}, of its logarithms "
        f"{of_logarithms:.1f}): a long tail is cut into clusters. Logarithms?"
    )


def skewness_of(column: FloatArray) -> float:
    """Skewness of a column; 0 if it is constant.

    Importing `scipy.stats` for this one function would delay an Explorer's first frame.
    """
    scaled = column / max(float(np.abs(column).max()), np.finfo(np.float64).tiny)
    deviations = scaled - scaled.mean()
    largest = np.abs(deviations).max()
    if largest == 0.0:
        return 0.0
    unit = deviations / largest  # keeps powers within range in any unit
    return float(np.mean(unit**3) / np.mean(unit**2) ** 1.5)


def _stand_in_text(name: str, column: FloatArray) -> str:
    """Report a number such as −999 that is far from all others and occurs more than once."""
    for value in _STAND_INS:
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
