r"""DataFrames of any library, as columns of NumPy arrays with names.

pandas' own are read by their methods, and so are those of pyarrow and polars, which list their columns
themselves. Others are read by the dataframe interchange protocol (``__dataframe__``: buffers with an address,
a type and a mask of what is missing), or else as Arrow's stream (``__arrow_c_stream__``), for which pyarrow
is needed. None of these packages is imported unless a frame of its kind is given.
"""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FrameColumns", "distinct_names", "frame_names", "frame_of", "is_frame", "short_name"]

_LONGEST_NAME = 60
_SHOWN = 3

# Kinds of types and of missing values, as the interchange protocol numbers them.
_TEXT, _DATE, _CATEGORY = 21, 22, 23
_LETTERS = {0: "i", 1: "u", 2: "f", 20: "u", 22: "i"}
_SENTINEL, _BIT_MASK, _BYTE_MASK = 2, 3, 4


@dataclass(frozen=True)
class FrameColumns:
    """Columns of a frame.

    Attributes
    ----------
    keys
        What the frame itself calls its columns.
    names
        The same as text, all different.
    values
        An array each: floats with NaN for what is missing, truth values, dates, or objects with None.
    index
        pandas' labels of the rows; None for other frames.
    row_names
        The labels as text; None where they only number the rows.
    """

    keys: list[Any]
    names: tuple[str, ...]
    values: list[NDArray[Any]]
    n_rows: int
    index: Any = None
    row_names: tuple[str, ...] | None = None

    def matrix(self) -> NDArray[np.float64]:
        """All columns as floats, missing ones as NaN; refuse, by name, columns that hold something else."""
        floats = [_as_floats(column) for column in self.values]
        wrong = [place for place, column in enumerate(floats) if column is None]
        if wrong:
            told = "; ".join(
                f"{self.names[place]!r} ({_first_values(self.values[place])})" for place in wrong[:5]
            )
            more = f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            listed = ", ".join(repr(self.keys[place]) for place in wrong[:5])
            kind = "dates" if all(self.values[place].dtype.kind in "Mm" for place in wrong) else "text"
            raise ValueError(
                "data must be numeric, but a value could not be read as a number: column(s) "
                f"{told}{more} hold {kind}. Drop or encode the columns that hold text or dates, e.g. "
                f"frame.drop(columns=[{listed}]), or let ew.read_table(frame) sort the columns."
            )
        columns = [column for column in floats if column is not None]
        return np.column_stack(columns) if columns else np.empty((self.n_rows, 0))


def is_frame(data: object) -> bool:
    """Whether this is a table of columns with names, of whatever library."""
    protocols = ("__dataframe__", "__arrow_c_stream__")
    # A pandas Series offers Arrow's stream too, but has no columns.
    return (
        not isinstance(data, type)
        and any(hasattr(data, name) for name in protocols)
        and not (hasattr(data, "to_frame") and not hasattr(data, "columns"))
    )


def frame_of(data: Any) -> FrameColumns:  # noqa: ANN401 - of any library
    """Take a frame apart."""
    index = None
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        values = [_pandas_values(data.iloc[:, place]) for place in range(data.shape[1])]
        keys, index = list(data.columns), data.index
    elif hasattr(data, "__dataframe__") and not hasattr(data, "to_pydict"):
        table = data.__dataframe__()
        keys = list(table.column_names())
        values = [_tidy(_interchange_values(table.get_column_by_name(key))) for key in keys]
    else:
        content = _arrow_content(data)
        keys, values = list(content), [_tidy(_objects(column)) for column in content.values()]
    n_rows = len(values[0]) if values else 0 if index is None else len(index)
    return FrameColumns(keys, _as_names(keys), values, n_rows, index, _index_names(index))


def frame_names(data: Any) -> tuple[str, ...]:  # noqa: ANN401 - as above
    """Names of the columns alone; the values are not touched."""
    if hasattr(data, "to_dict") and hasattr(data, "columns"):  # pandas and polars
        return _as_names(list(data.columns))
    return frame_of(data).names


def _as_names(keys: list[Any]) -> tuple[str, ...]:
    parts = [" ".join(filter(None, map(str, key))) if isinstance(key, tuple) else str(key) for key in keys]
    return tuple(
        distinct_names([short_name(part) or f"x{place}" for place, part in enumerate(parts, start=1)])
    )


def distinct_names(names: list[str]) -> list[str]:
    """Number the names that came before; also a numbered name may have come before."""
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


def _index_names(index: Any) -> tuple[str, ...] | None:  # noqa: ANN401 - pandas' own
    if index is None or type(index).__name__ == "RangeIndex":
        return None
    return tuple(short_name(" ".join(map(str, key)) if isinstance(key, tuple) else str(key)) for key in index)


def _first_values(values: NDArray[Any]) -> str:
    seen = dict.fromkeys(str(value) for value in values[:1000].tolist() if value is not None)
    return ", ".join(repr(short_name(text)) for text in list(seen)[:_SHOWN])


def _as_floats(values: NDArray[Any]) -> NDArray[np.float64] | None:
    if values.dtype.kind in "Mm":
        return None
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _pandas_values(series: Any) -> NDArray[Any]:  # noqa: ANN401 - pandas' own
    kind = getattr(series.dtype, "kind", "O")
    if kind in "iuf":
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "b" and not series.isna().any():
        return np.asarray(series.to_numpy(dtype=bool))
    if kind in "Mm" and getattr(series.dtype, "tz", None) is None:
        return np.asarray(series.to_numpy())
    return _tidy(_objects(series.astype(object).tolist(), series.isna().to_numpy()))


def _objects(values: Sequence[Any], missing: NDArray[np.bool_] | None = None) -> NDArray[Any]:
    """Array of objects, one a row whatever they are, with None for what is missing."""
    result = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        result[row] = value
    if missing is not None:
        result[missing] = None
    return result


def _tidy(values: NDArray[Any]) -> NDArray[Any]:
    """Objects as floats where they are all numbers."""
    for row, value in enumerate(values):
        if isinstance(value, float | np.floating) and np.isnan(value):
            values[row] = None
    present = {type(value) for value in values if value is not None}
    if present and all(issubclass(one, int | float | np.number) and one is not bool for one in present):
        return np.array([_as_float(value) for value in values])
    if present == {bool} and all(value is not None for value in values):
        return values.astype(bool)
    return values


def _as_float(value: Any) -> float:  # noqa: ANN401 - a number or nothing
    try:
        return np.nan if value is None else float(value)
    except OverflowError:
        return np.inf


def _arrow_content(data: Any) -> Mapping[str, Sequence[Any]]:  # noqa: ANN401 - of any library
    if hasattr(data, "to_pydict"):
        return dict(data.to_pydict())
    if hasattr(data, "to_dict") and hasattr(data, "to_arrow"):
        return dict(data.to_dict(as_series=False))
    try:
        import pyarrow as pa
    except ImportError as fault:
        raise TypeError(
            f"reading a {type(data).__name__} needs the package pyarrow: pip install pyarrow. "
            "Or turn it into a pandas DataFrame."
        ) from fault
    return dict(pa.table(data).to_pydict())


def _interchange_values(column: Any) -> NDArray[Any]:  # noqa: ANN401 - of any library
    chunks = [_chunk_values(chunk) for chunk in column.get_chunks()]
    return np.concatenate(chunks) if chunks else np.empty(0, dtype=object)


def _chunk_values(column: Any) -> NDArray[Any]:  # noqa: ANN401 - as above
    """Objects of one chunk, None for what is missing."""
    buffers, size, offset = column.get_buffers(), column.size(), column.offset
    kind = int(column.dtype[0])
    if kind == _CATEGORY:
        names = _interchange_values(column.describe_categorical["categories"])
        codes = _buffer(buffers["data"], size, offset).astype(np.intp)
        values = _objects([names[code] if code >= 0 else None for code in codes.tolist()])
    elif kind == _TEXT:
        starts = _buffer(buffers["offsets"], size + 1, offset)
        memory = buffers["data"][0]
        raw = ctypes.string_at(memory.ptr, memory.bufsize)
        values = _objects([raw[a:b].decode() for a, b in pairwise(starts.tolist())])
    elif kind == _DATE:
        values = _objects(_dates(column, buffers, size, offset).astype(str).tolist())
    else:
        values = _objects(_buffer(buffers["data"], size, offset).tolist())
        if kind == 20:
            values = _objects([bool(value) for value in values])
    values[_nulls(column, buffers, size, offset)] = None
    return values


def _dates(column: Any, buffers: Any, size: int, offset: int) -> NDArray[Any]:  # noqa: ANN401 - as above
    step = {"s": "s", "m": "ms", "u": "us", "n": "ns"}.get(column.dtype[2][2:3], "D")
    raw = _buffer(buffers["data"], size, offset)
    return raw.astype(np.int64).astype(f"M8[{step}]")


def _buffer(buffer: tuple[Any, tuple[Any, int, str, str]], size: int, offset: int) -> NDArray[Any]:
    """Copy of `size` values from memory that another library owns."""
    memory, (kind, bits, _, _) = buffer
    raw = np.frombuffer(ctypes.string_at(memory.ptr, memory.bufsize), dtype=np.uint8)
    if bits == 1:
        return np.unpackbits(raw, bitorder="little")[offset : offset + size].astype(np.uint8)
    letter = _LETTERS[int(kind)]
    return raw.view(f"{letter}{bits // 8}")[offset : offset + size].copy()


def _nulls(column: Any, buffers: Any, size: int, offset: int) -> NDArray[np.bool_]:  # noqa: ANN401 - as above
    kind, value = column.describe_null
    if int(kind) in {_BIT_MASK, _BYTE_MASK} and buffers["validity"] is not None:
        return np.asarray(_buffer(buffers["validity"], size, offset).astype(bool) == bool(value))
    if int(kind) == _SENTINEL and int(column.dtype[0]) not in {_CATEGORY, _TEXT}:
        return np.asarray(_buffer(buffers["data"], size, offset) == value)
    return np.zeros(size, dtype=bool)
