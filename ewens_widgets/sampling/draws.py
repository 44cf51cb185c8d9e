"""The arrays of a trace, one entry a draw: their types, checks and joining."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = [
    "Counts",
    "check_canonical",
    "column",
    "label_type",
    "move_count_pair",
    "pooled_counts",
    "read_only",
    "windows",
]

_CHECKED_ENTRIES = 4_000_000  # Labels checked at once: the check takes little memory beside the labels.

Counts = tuple[NDArray[np.int64], NDArray[np.int64]]


def label_type(n_values: int) -> type[np.unsignedinteger[Any]]:
    """Smallest unsigned integer type that holds 0, …, n_values − 1."""
    for candidate in (np.uint8, np.uint16, np.uint32):
        if n_values - 1 <= np.iinfo(candidate).max:
            return candidate
    return np.uint64


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Forbid writing to an array."""
    array.setflags(write=False)
    return array


def column(name: str, given: ArrayLike, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """View an array as a read-only column of the trace, copied only to change its type."""
    values = np.asarray(given)
    if values.shape != shape:
        raise ValueError(
            f"{name} must have shape {shape}, as the labels and the posterior say; got {values.shape}."
        )
    if values.dtype.kind not in ("iuf" if np.dtype(dtype).kind == "f" else "iu"):
        kind = "numbers" if np.dtype(dtype).kind == "f" else "integers"
        raise TypeError(f"{name} must be {kind}; got dtype {values.dtype}.")
    if values.dtype != dtype and values.size and np.dtype(dtype).kind == "u":
        most = np.iinfo(np.dtype(dtype)).max
        if values.min() < 0 or values.max() > most:
            raise ValueError(f"{name} must lie between 0 and {most}.")
    return read_only(values.astype(dtype, copy=False)[...])


def check_canonical(labels: NDArray[Any]) -> None:
    """Refuse labels that do not number the clusters 0, 1, 2, … in order of first appearance."""
    if not labels.size:
        return
    step = max(1, _CHECKED_ENTRIES // labels.shape[1])
    for start in range(0, len(labels), step):
        block = labels[start : start + step]
        highest = np.maximum.accumulate(block, axis=1)
        # In unsigned numbers a difference cannot be negative here, and it does not overflow as a sum would.
        if np.any(block[:, 0] != 0) or np.any(highest[:, 1:] - highest[:, :-1] > 1):
            raise ValueError(
                "the labels of a trace must be canonical; apply ewens_widgets.partition.canonical_labels."
            )


def move_count_pair(name: str, given: tuple[ArrayLike, ArrayLike], draws: int) -> Counts:
    """Proposals and acceptances of one move, as totals or one a draw."""
    if any(np.asarray(entry).dtype.kind not in "iu" for entry in given):
        raise TypeError(f"the counts of move {name!r} must be integers.")
    pair = tuple(read_only(np.array(entry, dtype=np.int64)) for entry in given)
    if len(pair) != 2 or any(entry.shape not in ((), (draws,)) for entry in pair):
        raise ValueError(
            f"the counts of move {name!r} must be proposals and acceptances, in total or one a draw."
        )
    return cast("Counts", pair)


def windows(counts: NDArray[np.int64], chosen: range, since: int) -> NDArray[np.int64]:
    """Counts of the chosen draws, each with those of the draws left out before it, from draw `since` on."""
    if counts.ndim == 0:
        return counts
    sums = np.concatenate([[0], np.cumsum(counts)])
    return np.diff(sums[np.arange(chosen.start, chosen.stop, chosen.step) + 1], prepend=sums[since])


def pooled_counts(
    given: Sequence[Mapping[str, tuple[ArrayLike, ArrayLike]]],
) -> dict[str, tuple[ArrayLike, ArrayLike]]:
    """Join the counts of several traces; where one of them has only a total, the result is a total."""
    names = {name: None for counts in given for name in counts}
    pooled: dict[str, tuple[ArrayLike, ArrayLike]] = {}
    for name in names:
        known = [counts[name] for counts in given if name in counts]
        made, taken = [np.asarray(pair[0]) for pair in known], [np.asarray(pair[1]) for pair in known]
        if len(known) < len(given) or any(entry.ndim == 0 for entry in made):
            pooled[name] = (sum(int(entry.sum()) for entry in made), sum(int(entry.sum()) for entry in taken))
        else:
            pooled[name] = (np.concatenate(made), np.concatenate(taken))
    return pooled
