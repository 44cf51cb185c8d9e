"""Input checks of the model, in one place: each names what is wrong and the way out."""

from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.arguments import check_positive
from ewens_widgets.datasets import Dataset

__all__ = [
    "FloatArray",
    "ModelName",
    "check_data",
    "check_model",
    "check_spread",
    "check_theta",
    "check_theta_grid",
]

FloatArray = NDArray[np.float64]
ModelName = Literal["I", "II", "III"]

# M is found by a subtraction that costs a factor 1 + θn of precision. With this θ the likelihood of 60 × 8
# data is still good to 1e-3; with one a thousand times larger, rounding would decide between partitions.
LARGEST_THETA = 2.0**30


def check_model(model: str) -> ModelName:
    """Return the name of a covariance model, or list the three there are."""
    if model not in get_args(ModelName):
        raise ValueError(
            f'model must be "I" (one common variance), "II" (a variance for each column) or '
            f'"III" (any covariance); got {model!r}.'
        )
    return cast("ModelName", model)


def check_theta(theta: object) -> float:
    """Return a variance ratio, positive and not so large that rounding would drown the likelihood."""
    value = check_positive("theta", theta)
    if value > LARGEST_THETA:
        raise ValueError(
            f"theta must not exceed 2**30, beyond which rounding swamps the likelihood; got {theta!r}."
        )
    return value


def check_theta_grid(grid: ArrayLike) -> FloatArray:
    """Return the grid of variance ratios as an increasing array of positive numbers."""
    if np.iscomplexobj(grid):
        raise TypeError("the grid of theta must be a list of numbers; got complex ones.")
    try:
        values = np.atleast_1d(np.asarray(grid, dtype=np.float64))
    except (TypeError, ValueError) as fault:
        raise TypeError(f"the grid of theta must be a list of numbers; got {grid!r}.") from fault
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"the grid of theta must be a non-empty list of numbers; got shape {values.shape}.")
    if not np.all(np.isfinite(values)) or np.any(values <= 0):
        raise ValueError(
            f"every value of the grid of theta must be positive and finite; got {_first_values(values)}. "
            "Drop the others."
        )
    check_theta(values.max())
    ordered = np.unique(values)
    if ordered.size != values.size:
        raise ValueError(
            f"the grid of theta holds a value twice; got {_first_values(values)}. Give each value once."
        )
    return ordered


def _first_values(values: FloatArray) -> str:
    return np.array2string(values, threshold=20, edgeitems=5)


def check_data(data: ArrayLike | Dataset) -> FloatArray:
    """Return the data as an n × d matrix of finite floats, n ≥ 2, or say what keeps it from being one.

    Data that are such a matrix already, perhaps one mapped from a file, are returned as they are: not to be
    written to.
    """
    source: Any = data.X if isinstance(data, Dataset) else data
    if hasattr(source, "toarray"):
        raise TypeError("sparse data are not supported; convert them with .toarray() if they fit in memory.")
    if np.ma.is_masked(source):
        raise ValueError("data have masked values; drop these rows, or fill the gaps, before clustering.")
    raw = np.asarray(source)
    if raw.ndim != 2:
        hint = " Use X.reshape(-1, 1) for a single feature." if raw.ndim == 1 else ""
        raise ValueError(f"data must be a table, n objects by d features; got {raw.ndim} dimension(s).{hint}")
    if raw.dtype.kind == "c":
        raise ValueError(
            "Complex data not supported: give real numbers, e.g. real and imaginary parts as two columns."
        )
    matrix = _as_floats(raw)
    if matrix.shape[0] < 2:
        raise ValueError(f"clustering needs at least 2 objects (rows); got n_samples = {matrix.shape[0]}.")
    if matrix.shape[1] < 1:
        raise ValueError(
            f"0 feature(s) (shape={matrix.shape}) while a minimum of 1 is required: data need a column."
        )
    _check_finite(matrix)
    return matrix


def _as_floats(raw: NDArray[Any]) -> FloatArray:
    """Convert to floats what is a number; text, dates and other objects are refused."""
    if raw.dtype.kind in "Mm":
        raise TypeError(
            f"data must be numeric; got dates (dtype {raw.dtype}). Turn them into numbers, e.g. days."
        )
    try:
        # Always row by row, so that sums are rounded the same however the data lie in memory.
        return np.asarray(raw, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as fault:
        # A TypeError (an object of the wrong kind) stays one, a ValueError (text) likewise.
        kind = TypeError if isinstance(fault, TypeError) else ValueError
        raise kind(
            f"data must be numeric, but a value could not be read as a number ({fault}). "
            "Drop or encode the columns that hold text."
        ) from fault


def _check_finite(matrix: FloatArray) -> None:
    """Refuse NaN and infinity, naming the first place."""
    bad = ~np.isfinite(matrix)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        kind = "NaN" if np.isnan(matrix[row, column]) else "infinity"
        raise ValueError(
            f"data contain {kind} (Input contains NaN or infinity) at row {row}, column {column}; "
            f"{int(bad.sum())} such value(s) in all. Drop these rows, or fill the gaps, before clustering."
        )


def check_spread(matrix: FloatArray, model: ModelName) -> None:
    """Refuse data on which the likelihood of `model` is not defined: too little spread, too few rows."""
    n_objects, n_features = matrix.shape
    constant = np.flatnonzero(matrix.max(axis=0) == matrix.min(axis=0))
    if constant.size == n_features:
        raise ValueError("all rows are equal, so there is nothing to cluster; check the input.")
    if model != "I" and constant.size:
        columns = ", ".join(str(column) for column in constant[:10])
        raise ValueError(f'column(s) {columns} are constant; drop them, or use model "I".')
    if model == "III" and n_objects <= n_features + 1:
        raise ValueError(
            f"model III estimates a full covariance and needs more than d + 1 = {n_features + 1} objects; "
            f'got n_samples = {n_objects}. Reduce the columns (PCA, or drop some), or use model "I" or "II".'
        )
