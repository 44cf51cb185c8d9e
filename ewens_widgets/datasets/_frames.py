"""Tables in memory as matrices of floats, and the names of the columns and rows of DataFrames as text.

narwhals converts frames of polars, pyarrow, Modin, Dask, DuckDB and others. pandas and narwhals are imported
when the first frame is given. `Dataset`, `model/checks.py`, the estimator and `tables` all read frames here.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LONGEST_NAME = 60
_MOST_NAMED = 5


def is_frame(data: Any) -> bool:  # noqa: ANN401 - anything may be asked about
    """Whether this is a table with named columns, of a library that narwhals knows."""
    if not hasattr(data, "columns"):  # so that arrays and lists do not import narwhals
        return False
    import narwhals as nw

    return isinstance(nw.from_native(data, pass_through=True), nw.DataFrame | nw.LazyFrame)


def as_pandas(data: Any) -> Any:  # noqa: ANN401 - pandas has no types here
    """Convert a frame of any library to a pandas DataFrame; lazy ones are collected."""
    import narwhals as nw
    import pandas as pd

    if isinstance(data, pd.DataFrame):
        return data
    frame = nw.from_native(data)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    # By lists of Python's values: `to_pandas` would need pyarrow for polars.
    return pd.DataFrame(frame.to_dict(as_series=False))


def column_names(frame: Any) -> tuple[str, ...]:  # noqa: ANN401 - as above
    """Names of the columns of a pandas DataFrame as text, all different."""
    return tuple(distinct_names([_text(key) or f"x{place}" for place, key in enumerate(frame, 1)]))


def row_names(frame: Any) -> tuple[str, ...] | None:  # noqa: ANN401 - as above
    """Labels of the index as text; None where they only count the rows."""
    if type(frame.index).__name__ == "RangeIndex":
        return None
    return tuple(map(_text, frame.index))


def _text(key: object) -> str:
    """A key of a frame in one line; those of several levels are joined."""
    return short_name(" ".join(filter(None, map(str, key))) if isinstance(key, tuple) else str(key))


def numeric_matrix(frame: Any) -> NDArray[np.float64]:  # noqa: ANN401 - as above
    """All columns as floats, NaN where a value is missing; refuse, by name, columns of another kind."""
    floats, wrong, held = [], [], set()
    names = column_names(frame)
    for place, name in enumerate(names):
        series = frame.iloc[:, place]
        kind = getattr(series.dtype, "kind", "O")
        try:
            # A category that is written 1, 2, 3 is no number either.
            if kind in "mMc" or str(series.dtype) == "category":
                raise TypeError(kind)
            floats.append(series.to_numpy(dtype=np.float64, na_value=np.nan))
        except (TypeError, ValueError, OverflowError):
            shown = dict.fromkeys(short_name(str(value)) for value in series.dropna().head(1000))
            wrong.append((frame.columns[place], f"{name!r} ({', '.join(map(repr, list(shown)[:3]))})"))
            named = {"m": "dates", "M": "dates"}.get(kind, "text")
            held.add("categories" if str(series.dtype) == "category" else named)
    if wrong:
        more = f"; and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
        raise ValueError(
            "data must be numeric, but a value could not be read as a number: column(s) "
            f"{'; '.join(text for _, text in wrong[:_MOST_NAMED])}{more} hold {' and '.join(sorted(held))}. "
            "Drop or encode the columns, e.g. "
            f"frame.drop(columns={[key for key, _ in wrong[:_MOST_NAMED]]!r}), or let ew.read_table(frame) "
            "sort the columns."
        )
    return np.column_stack(floats) if floats else np.empty((len(frame), 0))


def as_matrix(data: Any) -> NDArray[np.float64]:  # noqa: ANN401 - anything may be given
    """A frame, an array or lists as an n × d matrix of floats; refuse other data.

    Missing cells (NaN, None, pandas.NA, masked ones) are NaN. A matrix of floats, perhaps memory-mapped
    from a file, is returned itself and not copied: do not write to it.
    """
    if hasattr(data, "toarray"):
        raise TypeError("sparse data are not supported; convert them with .toarray() if they fit in memory.")
    if np.ma.is_masked(data):
        data = np.ma.filled(data.astype(np.float64), np.nan)
    if is_frame(data):
        return np.ascontiguousarray(numeric_matrix(as_pandas(data)))
    try:
        raw = np.asarray(data)
    except ValueError:
        raise ValueError(
            "data must be a table, n objects by d features; some rows have more entries than others."
        ) from None
    if raw.ndim != 2:
        hint = " Use X.reshape(-1, 1) for a single feature." if raw.ndim == 1 else ""
        raise ValueError(f"data must be a table, n objects by d features; got {raw.ndim} dimension(s).{hint}")
    if raw.dtype.kind == "c":
        raise ValueError(
            "Complex data not supported: give real numbers, e.g. real and imaginary parts as two columns."
        )
    if raw.dtype.kind in "Mm":
        raise TypeError(
            f"data must be numeric; got dates (dtype {raw.dtype}). Turn them into numbers, e.g. days."
        )
    if raw.dtype.kind == "O":  # pandas.NA, which is no float
        raw = np.where(np.frompyfunc(lambda value: type(value).__name__ == "NAType", 1, 1)(raw), np.nan, raw)
    try:
        # Row by row, so that sums are rounded identically for any memory layout of the data.
        return np.asarray(raw, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as fault:
        # A TypeError (an object of the wrong kind) stays one, a ValueError (text) likewise.
        kind = TypeError if isinstance(fault, TypeError) else ValueError
        raise kind(
            f"data must be numeric, but a value could not be read as a number ({fault}). "
            "Drop or encode the columns that hold text."
        ) from fault


def distinct_names(names: list[str]) -> list[str]:
    """Number the names that came before; a numbered name may have come before, too."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        different = name
        while different in seen:
            seen[name] += 1
            different = f"{name} ({seen[name]})"
        seen[different] = 1
        result.append(different)
    return result


def short_name(text: str) -> str:
    """Text on one line, cut where it is too long for a title."""
    plain = " ".join(text.split())
    return plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 1] + "…"
