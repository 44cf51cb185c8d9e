"""DataFrames of any library as pandas DataFrames, and the names of their columns and rows as text.

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
