"""What is recorded of every iteration: the one table, and blocks of records made after it.

`SCHEMA` says of each quantity its name, meaning, type and shape, who makes it, and where it goes. All else is
derived from it: the arrays that compiled code fills (`Records`), the `Event` that a watcher is told, the
growing arrays of a `Recorder`, the columns of a `Trace`, the files, and the export to ArviZ. A quantity is
added by one entry here. One that is computed from others, say the size of the largest cluster, needs a
function ``make`` of a block and nothing more; one that only the chain knows needs a line in the driver too,
which writes it.

A `Block` is the record of a run of iterations. It is a sequence of events that are views into its arrays, so
that there is one stream from the kernel to every watcher, whether it looks at each event or keeps whole
blocks: ``for event in block`` and ``recorder.extend(block)`` see the same arrays.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.event import Event, MoveCount

__all__ = [
    "SCHEMA",
    "Block",
    "BlockSizer",
    "Column",
    "Counts",
    "Recorded",
    "Records",
    "StepReport",
    "axis_sizes",
    "check_canonical",
    "column",
    "draw_bytes",
    "empty_columns",
    "label_type",
    "make_records",
    "move_count_pair",
    "pooled_counts",
    "read_only",
    "saved_columns",
    "windows",
]

_CHECKED_ENTRIES = 4_000_000  # Labels checked at once: the check takes little memory beside the labels.

Counts = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True)
class Column:
    """One quantity that is recorded of every iteration.

    Attributes
    ----------
    name, meaning
        What it is called, in every array, file and export, and what it is.
    axes
        What it has an entry for, besides the iteration: ``"object"``, ``"theta"`` (value of the grid),
        ``"move"`` (of the schedule), ``"feature"``, ``"nu"`` (value of its grid) or ``"scale"`` (number of
        the packed Σ); of a single number, nothing.
    kept
        Type in which recorder, trace and file keep it.
    below
        Axis whose entries it numbers: then it is kept in the smallest type that holds these numbers.
    written
        Type in which compiled code writes it; None where it does not.
    make
        Computes it from the rest of a block that does not have it.
    saved
        Whether traces and files hold it, rather than computing it when they are asked.
    absent
        What stands for it in draws that were saved before it was recorded, where it cannot be computed.
    arviz
        Group of the export to ArviZ that it belongs to: ``"posterior"`` for what diagnostics make sense of,
        ``"sample_stats"`` for the rest; None to leave it out.
    varies
        Whether it differs from draw to draw at all under a posterior; where not, exports leave it out.
    """

    name: str
    meaning: str
    axes: tuple[str, ...] = ()
    kept: DTypeLike = np.float64
    below: str | None = None
    written: DTypeLike | None = None
    make: "Callable[[Block], NDArray[Any]] | None" = None
    saved: bool = True
    absent: float | None = None
    arviz: str | None = None
    varies: Callable[[Posterior], bool] = lambda posterior: True  # noqa: ARG005 - most do, under any

    def kept_type(self, sizes: Mapping[str, int]) -> np.dtype[Any]:
        """Type in which it is kept, given the lengths of the axes."""
        return np.dtype(self.kept if self.below is None else label_type(sizes[self.below]))

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of one entry."""
        return tuple(sizes[axis] for axis in self.axes)


def _no_counts(block: "Block") -> NDArray[np.int64]:
    return np.zeros((len(block), len(block.move_names)), dtype=np.int64)


def _has_own_shapes(posterior: Posterior) -> bool:
    return posterior.shapes == "own"


SCHEMA: dict[str, Column] = {
    entry.name: entry
    for entry in (
        Column(name="iterations", meaning="Number of the iteration; the first is 1.", kept=np.int64),
        Column(
            name="log_posterior",
            meaning="Unnormalised log posterior of the state.",
            written=np.float64,
            arviz="sample_stats",
        ),
        Column(
            name="labels",
            meaning="Canonical labels of the partition.",
            axes=("object",),
            below="object",
            written=np.int32,
            arviz="sample_stats",
        ),
        Column(
            name="n_clusters",
            meaning="Number of clusters.",
            kept=np.int32,
            written=np.int64,
            make=lambda block: block.labels.max(axis=1, initial=0).astype(np.intp) + 1,
            saved=False,
            arviz="posterior",
        ),
        Column(
            name="theta_index",
            meaning="Place of the variance ratio θ on its grid.",
            below="theta",
            written=np.int64,
        ),
        Column(
            name="theta",
            meaning="Variance ratio θ.",
            make=lambda block: block.posterior.theta_grid[block.theta_index],
            saved=False,
            arviz="posterior",
        ),
        Column(
            name="theta_weights",
            meaning="Exact conditional probabilities of the grid's values that θ was drawn from.",
            axes=("theta",),
            kept=np.float32,
            written=np.float64,
        ),
        Column(
            name="concentration",
            meaning="Concentration λ of the state.",
            written=np.float64,
            arviz="posterior",
            varies=lambda posterior: posterior.samples_concentration,
        ),
        Column(
            name="nu_index",
            meaning="Place of the likeness ν of own shapes on its grid.",
            below="nu",
            written=np.int64,
            absent=0,
            varies=_has_own_shapes,
        ),
        Column(
            name="nu",
            meaning="Likeness ν of own shapes: the larger, the more alike; infinite where shapes are common.",
            make=lambda block: block.posterior.nu_grid[block.nu_index],
            saved=False,
            arviz="posterior",
            varies=_has_own_shapes,
        ),
        Column(
            name="nu_weights",
            meaning="Exact conditional probabilities of the grid's values that ν was drawn from.",
            axes=("nu",),
            kept=np.float32,
            written=np.float64,
            absent=1.0,
            varies=_has_own_shapes,
        ),
        Column(
            name="sigma",
            meaning="Common scale Σ of own shapes in canonical coordinates, packed (see `model.own_shapes`).",
            axes=("scale",),
            written=np.float64,
            absent=0.0,
            arviz="sample_stats",
            varies=_has_own_shapes,
        ),
        Column(
            name="proposals",
            meaning="Proposals of each move of the schedule.",
            axes=("move",),
            kept=np.int64,
            written=np.int64,
            make=_no_counts,
            saved=False,  # a trace has them by name, as totals where the draws were thinned elsewhere
        ),
        Column(
            name="acceptances",
            meaning="Accepted proposals of each move of the schedule.",
            axes=("move",),
            kept=np.int64,
            written=np.int64,
            make=_no_counts,
            saved=False,
        ),
    )
}
"""The table. Its order is that of the variables in an export."""

_TOLD_OTHERWISE = {"iterations": "iteration", "proposals": "moves", "acceptances": "moves"}


def axis_sizes(posterior: Posterior, n_moves: int = 0) -> dict[str, int]:
    """Lengths of the axes that columns may have."""
    return {
        "object": posterior.n_objects,
        "theta": posterior.theta_grid.size,
        "feature": posterior.n_features,
        "nu": posterior.nu_grid.size if posterior.shapes == "own" else 0,
        "scale": posterior.sigma_length,
        "move": n_moves,
    }


def saved_columns() -> tuple[Column, ...]:
    """Return the columns that traces and files hold."""
    return tuple(entry for entry in SCHEMA.values() if entry.saved)


def empty_columns(rows: int, sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Make room for so many kept draws of every column but those that take no time to compute."""
    return {
        entry.name: np.empty((rows, *entry.shape(sizes)), dtype=entry.kept_type(sizes))
        for entry in SCHEMA.values()
        if entry.saved or entry.written is not None
    }


def draw_bytes(posterior: Posterior, n_moves: int = 0, written: bool = False) -> int:
    """Memory that one draw takes where it is kept, or where compiled code writes it."""
    sizes = axis_sizes(posterior, n_moves)
    types = {
        entry: np.dtype(entry.written) if written else entry.kept_type(sizes)
        for entry in SCHEMA.values()
        if (entry.written is not None if written else entry.saved)
    }
    return sum(int(np.prod(entry.shape(sizes))) * dtype.itemsize for entry, dtype in types.items())


_WRITTEN = tuple(entry for entry in SCHEMA.values() if entry.written is not None)
if TYPE_CHECKING:
    Records: TypeAlias = Any  # what numba sees is the class below
else:
    # One array for each column that compiled code writes, a row for each recorded iteration.
    Records = NamedTuple("Records", [(entry.name, NDArray[Any]) for entry in _WRITTEN])


def make_records(rows: int, sizes: Mapping[str, int]) -> Records:
    """Make room for what compiled code writes of a block of so many iterations."""
    return Records(*(np.zeros((rows, *entry.shape(sizes)), dtype=entry.written) for entry in _WRITTEN))


class Recorded:
    """Anything that has the recorded quantities as attributes, each an array with a row for each iteration.

    The ones below are spelled out for type checkers and readers; whatever else is in the table is there too.
    """

    iterations: NDArray[np.int64]
    labels: NDArray[Any]
    n_clusters: NDArray[Any]
    theta_index: NDArray[Any]
    theta: NDArray[np.float64]
    theta_weights: NDArray[Any]
    log_posterior: NDArray[np.float64]
    concentration: NDArray[np.float64]
    nu_index: NDArray[Any]
    nu: NDArray[np.float64]
    nu_weights: NDArray[Any]
    sigma: NDArray[np.float64]
    proposals: NDArray[np.int64]
    acceptances: NDArray[np.int64]

    def column(self, name: str) -> NDArray[Any]:
        """Return a recorded quantity by its name."""
        raise NotImplementedError

    if not TYPE_CHECKING:  # so that a misspelt name is still found by the type checker

        def __getattr__(self, name: str) -> NDArray[Any]:
            if name in SCHEMA:
                return self.column(name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *SCHEMA})


class StepReport(NamedTuple):
    """What a single Metropolis step proposed and decided; see `Event`."""

    proposed_labels: NDArray[np.integer[Any]] | None
    accepted: bool | None
    log_ratio: float | None


class Block(Recorded, Sequence[Event]):
    """Records of a run of iterations: read-only arrays by the table, and a sequence of events.

    Parameters
    ----------
    posterior
        What was sampled.
    move_names
        Names of the schedule's moves.
    columns
        Recorded quantities by name; the block takes the arrays over. What is missing is computed when it is
        asked for, and counts that are missing are 0.
    report
        What the last iteration proposed, where it is known.
    """

    posterior: Posterior

    def __init__(
        self,
        posterior: Posterior,
        move_names: Sequence[str],
        columns: Mapping[str, NDArray[Any]],
        report: StepReport | None = None,
    ) -> None:
        self.posterior = posterior
        self.move_names = tuple(move_names)
        self.report = report
        self._columns = {name: read_only(values) for name, values in columns.items()}

    @classmethod
    def of_event(cls, posterior: Posterior, event: Event) -> "Block":
        """Make a block of one event."""
        told: dict[str, Any] = {**event._asdict(), **dict(event.more), "iterations": event.iteration}
        told["proposals"] = [move.proposals for move in event.moves]
        told["acceptances"] = [move.acceptances for move in event.moves]
        columns = {name: np.array([told[name]]) for name in SCHEMA if name in told}
        is_reported = event.proposed_labels is not None or event.accepted is not None
        report = StepReport(event.proposed_labels, event.accepted, event.log_ratio) if is_reported else None
        return cls(posterior, [move.name for move in event.moves], columns, report)

    def column(self, name: str) -> NDArray[Any]:
        """Return a recorded quantity by its name, computed where the block does not hold it yet."""
        if name not in self._columns:
            entry = SCHEMA[name]
            if entry.make is not None:
                values = entry.make(self)
            elif entry.absent is not None:
                sizes = axis_sizes(self.posterior, len(self.move_names))
                shape = (len(self), *entry.shape(sizes))
                values = np.full(shape, entry.absent, dtype=entry.kept_type(sizes))
            else:
                raise KeyError(f"the block has no {name}, and it cannot be computed")
            self._columns[name] = read_only(values)
        return self._columns[name]

    def __len__(self) -> int:
        return len(self._columns["labels"])

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> "Block": ...
    def __getitem__(self, index: int | slice) -> "Event | Block":
        """Return an event, or the block of a slice of them."""
        if isinstance(index, slice):
            chosen = range(len(self))[index]
            report = self.report if chosen and chosen[-1] == len(self) - 1 else None
            columns = {name: values[index] for name, values in self._columns.items()}
            return Block(self.posterior, self.move_names, columns, report)
        row = range(len(self))[index]  # raises as a sequence should
        return next(iter(self[row : row + 1]))

    def __iter__(self) -> Iterator[Event]:
        """Yield an event for each iteration; its arrays are views of the block's."""
        # Whole columns become Python numbers at once, and columns become rows by `zip`: much cheaper than
        # taking one element at a time. An event must cost little even beside an iteration of microseconds.
        further = [name for name in SCHEMA if _TOLD_OTHERWISE.get(name, name) not in Event._fields]
        # What is the same in every event of this posterior costs nothing.
        usual = {name for name in Event._field_defaults if not _varies(name, self.posterior)}
        told: dict[str, Any] = {
            _TOLD_OTHERWISE.get(name, name): self._values(name)
            for name in SCHEMA
            if name not in further and name not in usual
        }
        told["moves"] = zip(*self._move_counts(), strict=True) if self.move_names else repeat(())
        pairs = [zip(repeat(name), self._values(name), strict=False) for name in further]
        told["more"] = zip(*pairs, strict=True) if pairs else repeat(())
        # What was proposed is known of stepped iterations only.
        defaults = Event._field_defaults
        columns = [told[name] if name in told else repeat(defaults.get(name)) for name in Event._fields]
        events = map(Event._make, zip(*columns, strict=False))  # some columns have no end
        return events if self.report is None else self._with_report(events)

    def _values(self, name: str) -> Any:  # noqa: ANN401 - a list of numbers or an array of rows
        values = self.column(name)
        return values.tolist() if values.ndim == 1 else values

    def _move_counts(self) -> list[Iterator[MoveCount]]:
        made_taken = self.proposals.T.tolist(), self.acceptances.T.tolist()
        return [
            map(MoveCount._make, zip(repeat(name), made, taken, strict=False))
            for name, made, taken in zip(self.move_names, *made_taken, strict=True)
        ]

    def _with_report(self, events: Iterator[Event]) -> Iterator[Event]:
        *others, last = events
        return iter([*others, last._replace(**cast("StepReport", self.report)._asdict())])


def _varies(name: str, posterior: Posterior) -> bool:
    return name in SCHEMA and SCHEMA[name].varies(posterior)


class BlockSizer:
    """Says how many iterations to run in one go, so that a block takes about the time it is given.

    It learns the time of an iteration from the blocks run so far. A block may be at most `growth` times as
    long as the longest before it: the estimate from a short block is dominated by the cost of starting it,
    and a wrong guess must not freeze a display or a progress bar. It shrinks at once.

    Parameters
    ----------
    largest
        Longest block; bounds the memory that the records of one block take.
    first, growth
        Length of the first block, and how many times longer the next one may be.
    newest
        Weight of the newest block in the time of an iteration, between 0 and 1. Below 1, one slow block
        (garbage collection, a busy machine) is soon forgotten.
    """

    def __init__(self, largest: int = 4096, first: int = 1, growth: int = 2, newest: float = 0.5) -> None:
        self._largest = largest
        self._first = first
        self._growth = growth
        self._newest = newest
        self.restart()

    def restart(self) -> None:
        """Forget what was learnt: other iterations are going to be run."""
        self._limit = min(self._first, self._largest)
        self._seconds = 0.0

    def size(self, seconds: float) -> int:
        """Iterations that should fit into `seconds`, at least one."""
        if self._seconds * self._limit <= seconds:
            return self._limit
        return max(1, int(seconds / self._seconds))

    def measured(self, iterations: int, seconds: float) -> None:
        """Learn from a block of so many iterations that took so many seconds."""
        each = max(seconds, 0.0) / iterations
        weight = 1.0 if self._seconds == 0.0 else self._newest
        self._seconds += weight * (each - self._seconds)
        if iterations >= self._limit:
            self._limit = min(self._largest, self._growth * iterations)


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
