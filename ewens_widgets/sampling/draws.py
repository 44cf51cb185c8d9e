"""What is recorded of every iteration: one table of quantities, and one class that holds them.

`SCHEMA` lists every quantity with its meaning, types and shape. The arrays that compiled code fills
(`Records`), the events, traces, files and exports all follow from it, so a quantity is added by one entry. A
quantity that is computed from others has a function `make`. A quantity that only the chain knows also needs a
line in `record` of the driver, or in its `_record_own`. The order of the entries is part of the signature of
the compiled loops, and it is the order of the variables in an export.

A `DrawTable` holds the columns. Its rows are events, its slices are views, and it grows. The record of a
block of iterations and that of a whole chain are such tables, and so is a `Trace`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ewens_widgets.model.posterior import Posterior

if TYPE_CHECKING:
    from typing import Self

    from ewens_widgets.sampling.trace import Trace

_EVENTS_AT_ONCE = 4096  # Events made from columns together: bounds the memory of going through many draws.
_WATCHED_CELLS = 5  # Imputed cells whose mean convergence diagnostics watch.
_COUNTS = ("proposals", "acceptances")


@dataclass(frozen=True)
class Column:
    """One quantity that is recorded of every iteration.

    Attributes
    ----------
    name, meaning
        Its name in every array, file and export, and what it is.
    axes
        Axes of one entry: ``"object"``, ``"theta"`` (values of the grid), ``"move"`` (of the schedule),
        ``"nu"`` (values of its grid) or ``"scale"`` (entries of the packed Σ). A single number
        has none.
    kept
        Type in which it is kept and saved.
    below
        Axis that it is an index of. It is then kept in the smallest type that holds the indices.
    written
        Type in which compiled code writes it; None if compiled code does not.
    make
        Computes it from the other columns.
    saved
        Whether traces and files hold it. Otherwise it is computed when it is asked for.
    constant
        Its value under posteriors where it does not vary.
    arviz
        Group of the export to ArviZ: ``"posterior"`` if convergence diagnostics make sense for it, otherwise
        ``"sample_stats"``; None to leave it out.
    varies
        Whether it differs from draw to draw under a posterior. If not, exports leave it out.
    """

    name: str
    meaning: str
    axes: tuple[str, ...] = ()
    kept: DTypeLike = np.float64
    below: str | None = None
    written: DTypeLike | None = None
    make: "Callable[[DrawTable], NDArray[Any]] | None" = None
    saved: bool = True
    constant: float | None = None
    arviz: str | None = None
    varies: Callable[[Posterior], bool] = lambda posterior: True  # noqa: ARG005 - most do, under any

    def kept_type(self, sizes: Mapping[str, int]) -> np.dtype[Any]:
        """Type in which it is kept, given the lengths of the axes."""
        return np.dtype(self.kept if self.below is None else label_type(sizes[self.below]))

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of one entry."""
        return tuple(sizes[axis] for axis in self.axes)


def _no_counts(draws: "DrawTable") -> NDArray[np.int64]:
    return np.zeros((len(draws), len(draws.move_names)), dtype=np.int64)


def _is_own(posterior: Posterior) -> bool:
    return posterior.shapes == "own"


def _mean_of_cells(draws: "DrawTable") -> NDArray[np.float64]:
    """Up to five cells, evenly spread over the missing ones."""
    n_gaps = len(draws.posterior.gaps)
    if not n_gaps:
        return np.zeros(len(draws))
    chosen = np.unique(np.linspace(0, n_gaps - 1, _WATCHED_CELLS).astype(np.intp))
    return np.asarray(draws.sigma[:, chosen - n_gaps].mean(axis=1), dtype=np.float64)


def _on_grid(name: str, meaning: str, **optional: Any) -> Iterator[Column]:  # noqa: ANN401 - of Column
    """Columns of a parameter that is drawn from a grid: index, value, and the probabilities of the values."""

    def value(draws: "DrawTable") -> NDArray[Any]:
        grid: NDArray[np.float64] = getattr(draws.posterior, f"{name}_grid")
        values: NDArray[np.float64] = grid[draws.column(f"{name}_index")]
        return values

    yield Column(
        f"{name}_index", f"Index of {name} on its grid.", below=name, written=np.int64, constant=0, **optional
    )
    yield Column(name, meaning, make=value, saved=False, arviz="posterior", **optional)
    yield Column(
        f"{name}_weights",
        f"Exact conditional probabilities of the grid's values that {name} was drawn from.",
        (name,),
        kept=np.float32,
        written=np.float64,
        constant=1.0,
        **optional,
    )


_TABLE = (
    Column("iterations", "Number of the iteration; the first is 1.", kept=np.int64),
    Column("log_posterior", "Unnormalised log posterior.", written=np.float64, arviz="sample_stats"),
    Column(
        "labels", "Canonical labels.", ("object",), below="object", written=np.int32, arviz="sample_stats"
    ),
    Column(
        "n_clusters",
        "Number of clusters.",
        kept=np.int32,
        written=np.int64,
        make=lambda draws: np.asarray(draws.labels.max(axis=1, initial=0).astype(np.intp) + 1),
        saved=False,
        arviz="posterior",
    ),
    *_on_grid("theta", "Variance ratio θ."),
    Column(
        "concentration",
        "Concentration λ; 1 under priors that have none.",
        written=np.float64,
        arviz="posterior",
        varies=lambda posterior: posterior.samples_concentration,
    ),
    *_on_grid("nu", "Pooling ν of own shapes; infinite for common shapes.", varies=_is_own),
    Column(
        "sigma",
        "Common scale Σ of own shapes, canonical and packed (see `model.own_shapes`); behind it an unknown "
        "centre, and imputed cells, also of common shapes.",
        ("scale",),
        written=np.float64,
        constant=0.0,
        arviz="sample_stats",
        varies=lambda posterior: posterior.sigma_length > 0,
    ),
    Column(
        "imputed_cells",
        "Mean of a few imputed cells, in canonical coordinates; 0 where none is missing.",
        make=_mean_of_cells,
        saved=False,
        arviz="posterior",
        varies=lambda posterior: len(posterior.gaps) > 0,
    ),
    *(
        Column(name, meaning, ("move",), kept=np.int64, written=np.int64, make=_no_counts)
        for name, meaning in (
            ("proposals", "Proposals of each move since the draw before."),
            ("acceptances", "Accepted proposals of each move."),
        )
    ),
)
SCHEMA: dict[str, Column] = {entry.name: entry for entry in _TABLE}
"""The table by name."""


def axis_sizes(posterior: Posterior, n_moves: int = 0) -> dict[str, int]:
    """Lengths of the axes that columns may have."""
    return {
        "object": posterior.n_objects,
        "theta": posterior.theta_grid.size,
        "nu": posterior.nu_grid.size if posterior.shapes == "own" else 0,
        "scale": posterior.sigma_length,
        "move": n_moves,
    }


def saved_columns() -> tuple[Column, ...]:
    """Return the columns that traces and files hold."""
    return tuple(entry for entry in SCHEMA.values() if entry.saved)


def draw_bytes(posterior: Posterior, n_moves: int = 0, written: bool = False) -> int:
    """Memory of one draw where it is kept, or where compiled code writes it."""
    sizes = axis_sizes(posterior, n_moves)
    types = {
        entry: np.dtype(entry.written) if written else entry.kept_type(sizes)
        for entry in SCHEMA.values()
        if (entry.written is not None if written else entry.saved)
    }
    return sum(int(np.prod(entry.shape(sizes))) * dtype.itemsize for entry, dtype in types.items())


_WRITTEN = tuple(entry for entry in _TABLE if entry.written is not None)
if TYPE_CHECKING:
    Records: TypeAlias = Any  # numba sees the class below
else:
    # One array for each column that compiled code writes, with a row for each recorded iteration.
    Records = NamedTuple("Records", [(entry.name, NDArray[Any]) for entry in _WRITTEN])


def make_records(rows: int, sizes: Mapping[str, int]) -> Records:
    """Make room for what compiled code writes of a block of so many iterations."""
    return Records(*(np.zeros((rows, *entry.shape(sizes)), dtype=entry.written) for entry in _WRITTEN))


_NOTHING = np.empty(0)
_NOTHING.setflags(write=False)


class MoveCount(NamedTuple):
    """How often a move of the schedule was proposed and accepted in one iteration."""

    name: str
    proposals: int
    acceptances: int


class StepReport(NamedTuple):
    """What a single Metropolis step proposed and decided; see `Event`."""

    proposed_labels: NDArray[np.integer[Any]] | None
    accepted: bool | None
    log_ratio: float | None


class Event(NamedTuple):
    """One iteration, as a frozen value. Its arrays are read-only, so that a watcher cannot disturb the chain.

    Attributes
    ----------
    iteration
        Number of the iteration just done; the first is 1.
    theta, theta_index
        Variance ratio θ of the state, and its index on the grid.
    theta_weights
        Exact conditional probabilities of the values of the grid that θ was drawn from.
    labels
        Canonical labels of the partition.
    n_clusters
        Number of clusters.
    log_posterior
        Unnormalised log posterior of the state.
    concentration
        Concentration λ of the state.
    moves
        Proposals and acceptances of each move of the schedule.
    proposed_labels, accepted, log_ratio
        The proposal, the decision and the log Metropolis–Hastings ratio, π(B*) q(B|B*) / (π(B) q(B*|B)).
        They are known only when a schedule of one Metropolis move is stepped.
    nu, nu_index, nu_weights
        Pooling ν of own shapes, its index on the grid, and the exact conditional probabilities that it was
        drawn from. For common shapes: infinite, 0 and empty.
    sigma
        Common scale Σ of own shapes in canonical coordinates, packed (see `model.own_shapes`), an unknown
        centre, and imputed cells.
    more
        Pairs of name and value of all other recorded quantities; each is an attribute too.
    """

    iteration: int
    theta: float
    theta_index: int
    theta_weights: NDArray[np.float64]
    labels: NDArray[np.integer[Any]]
    n_clusters: int
    log_posterior: float
    concentration: float
    moves: tuple[MoveCount, ...]
    proposed_labels: NDArray[np.integer[Any]] | None = None
    accepted: bool | None = None
    log_ratio: float | None = None
    nu: float = np.inf
    nu_index: int = 0
    nu_weights: NDArray[np.float64] = _NOTHING
    sigma: NDArray[np.float64] = _NOTHING
    more: tuple[tuple[str, Any], ...] = ()


def _recorded(event: Event, name: str) -> Any:  # noqa: ANN401 - a number or an array
    for recorded, value in event.more:
        if recorded == name:
            return value
    raise AttributeError(f"an event has no attribute {name!r}")


# Not in the class, so that type checkers still find a misspelt attribute of an event.
setattr(Event, "__getattr__", _recorded)  # noqa: B010 - mypy would refuse an assignment

Kind = TypeVar("Kind", bound="DrawTable")
Value = TypeVar("Value")


class DrawTable(Sequence[Event]):
    """Recorded iterations: read-only columns after the table, rows that are events, slices that are views.

    Every quantity of the table is an attribute: an array with a row for each iteration, such as `labels`,
    `n_clusters`, `theta` or `log_posterior`. A quantity without a column of its own is computed when it is
    asked for. A slice with a step adds up the counts of the moves, so that none is lost.

    `extend` adds iterations. The arrays double when they are full, and recorded rows are never
    overwritten: slices and columns taken before stay valid. The number of rows is raised last, so a block is
    added as a whole or, if that is interrupted, not at all.

    Parameters
    ----------
    posterior
        The posterior that was sampled.
    move_names
        Names of the schedule's moves. If they are left out, the first block that is added brings them.
    columns
        Recorded quantities by name. The arrays are taken over and become read-only.
    report
        What the last iteration proposed, if it is known.
    """

    posterior: Posterior
    reports: dict[int, StepReport]  # by number of the iteration, so that slices can share them
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

    def __init__(
        self,
        posterior: Posterior,
        move_names: Sequence[str] = (),
        columns: Mapping[str, NDArray[Any]] | None = None,
        report: StepReport | None = None,
    ) -> None:
        self.posterior = posterior
        self.move_names = tuple(move_names)
        if columns is None:
            self.clear()
            return
        self._columns = {name: read_only(np.asarray(values)) for name, values in columns.items()}
        self._length = len(self._columns["labels"])
        self._computed: dict[Any, Any] = {}
        self.reports = {} if report is None else {int(self.iterations[-1]): report}

    if not TYPE_CHECKING:  # so that type checkers still find a misspelt name

        def __getattr__(self, name: str) -> NDArray[Any]:
            if name in SCHEMA:
                return self.column(name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *SCHEMA})

    def __len__(self) -> int:
        return self._length

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that copies in other processes are read-only too, and no room is sent.
        return type(self), (self.posterior, self.move_names, self.held())

    def held(self) -> dict[str, NDArray[Any]]:
        """Return the columns that are held, by name; others are computed."""
        return {name: self.column(name) for name in self._columns}

    def column(self, name: str) -> NDArray[Any]:
        """Return a recorded quantity by its name, computed if there is no column of it."""
        if name in self._columns:
            return read_only(self._columns[name][: self._length])
        return self._once(name, lambda: read_only(self._compute(SCHEMA[name])))

    def _compute(self, entry: Column) -> NDArray[Any]:
        if entry.make is not None:
            return entry.make(self)
        if entry.constant is None or entry.varies(self.posterior):
            raise KeyError(f"these draws have no {entry.name}, and it cannot be computed")
        sizes = axis_sizes(self.posterior)
        return np.full((self._length, *entry.shape(sizes)), entry.constant, dtype=entry.kept_type(sizes))

    def _once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Compute something once; more draws make it invalid."""
        if key not in self._computed:
            self._computed[key] = make()
        return cast("Value", self._computed[key])

    def posterior_at(self, draw: int | None = None) -> Posterior:
        """The posterior whose coordinates have the imputed cells of a draw; None: their means over draws."""
        if not len(self.posterior.gaps):
            return self.posterior
        cells = self.sigma[:, -len(self.posterior.gaps) :]
        return self.posterior.filled(cells.mean(axis=0) if draw is None else cells[draw])

    @property
    def move_counts(self) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Proposals and acceptances of each draw by move, which a schedule may hold several times."""
        names = np.array(self.move_names)
        own = {name: np.flatnonzero(names == name) for name in self.move_names}
        return {
            name: (self.proposals[:, places].sum(axis=1), self.acceptances[:, places].sum(axis=1))
            for name, places in own.items()
        }

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> "Self": ...
    def __getitem__(self, index: int | slice) -> "Event | Self":
        """Return the event of a row, or some rows as a view."""
        if isinstance(index, slice):
            chosen = range(self._length)[index]
            return self._take(chosen, since=chosen.start)
        if not -self._length <= index < self._length:
            raise IndexError(f"there is no event {index}; {self._length} are recorded.")
        row = index % self._length
        return next(self[row : row + 1].events())

    def __iter__(self) -> Iterator[Event]:
        """Yield an event for each iteration; its arrays are views, if the types are those of an event."""
        starts = range(0, self._length, _EVENTS_AT_ONCE)
        return chain.from_iterable(self[start : start + _EVENTS_AT_ONCE].events() for start in starts)

    def _take(self, chosen: range, since: int) -> "Self":
        """View of some rows; each counts the proposals since the chosen row before it, or since `since`."""
        if chosen.step < 0:
            raise ValueError("draws stay in their order; the step of the slice must be positive.")
        rows = slice(chosen.start, chosen.stop, chosen.step)
        columns = {name: values[: self._length][rows] for name, values in self._columns.items()}
        if chosen and (chosen.step > 1 or since < chosen.start):
            for name in columns.keys() & _COUNTS:
                sums = np.cumsum(self._columns[name][since : chosen[-1] + 1], axis=0)
                columns[name] = np.diff(sums[np.array(chosen) - since], axis=0, prepend=0)
        return self._view(type(self), columns)

    def _view(self, kind: type[Kind], columns: Mapping[str, NDArray[Any]]) -> Kind:
        """Make draws of a kind from columns that need no check."""
        view = kind.__new__(kind)
        DrawTable.__init__(view, self.posterior, self.move_names, columns)
        view.reports = self.reports
        return view

    def events(self) -> Iterator[Event]:
        """Make all events together."""

        # Whole columns become Python numbers at once, and `zip` makes rows of columns: much cheaper than
        # taking single elements. An event must cost little even beside an iteration of microseconds.
        def values(name: str) -> Any:  # noqa: ANN401 - a list of numbers or an array of rows
            found = self.column(name)
            # In the types in which the chain writes them: watchers do arithmetic with them.
            found = read_only(found.astype(SCHEMA[name].written or found.dtype, copy=False))
            return found.tolist() if found.ndim == 1 else found

        defaults = Event._field_defaults
        told: dict[str, Iterable[Any]] = {name: repeat(value) for name, value in defaults.items()}
        further = []
        for name, entry in SCHEMA.items():
            field = "iteration" if name == "iterations" else name
            if field not in Event._fields:
                further += [name] if name not in _COUNTS and entry.varies(self.posterior) else []
            elif field not in defaults or entry.varies(self.posterior):  # a constant costs nothing
                told[field] = values(name)
        if further:
            told["more"] = zip(
                *(zip(repeat(name), values(name), strict=False) for name in further), strict=True
            )
        counts = zip(self.move_names, self.proposals.T.tolist(), self.acceptances.T.tolist(), strict=True)
        moves = [map(MoveCount._make, zip(repeat(name), *counted, strict=False)) for name, *counted in counts]
        told["moves"] = zip(*moves, strict=True) if moves else repeat(())
        events = map(Event._make, zip(*(told[name] for name in Event._fields), strict=False))
        return map(self._with_report, events) if self.reports else events

    def _with_report(self, event: Event) -> Event:
        report = self.reports.get(event.iteration)
        if report is None:
            return event
        labels = report.proposed_labels
        labels = None if labels is None else read_only(labels.astype(np.intp, copy=False))
        return event._replace(proposed_labels=labels, accepted=report.accepted, log_ratio=report.log_ratio)

    def clear(self) -> None:
        """Remove all rows; slices, traces and events given out before stay as they are."""
        self._length = 0
        self._columns = self._room(0)
        self._computed = {}
        self.reports = {}

    def reserve(self, extra: int) -> None:
        """Make room for so many more iterations, so that adding them cannot fail for lack of memory."""
        needed, capacity = self._length + extra, len(self._columns["labels"])
        if needed > capacity:
            larger = self._room(max(needed, 2 * capacity))
            for name, values in larger.items():
                values[: self._length] = self.column(name)
            self._columns, self.reports = larger, dict(self.reports)

    def extend(self, block: "DrawTable") -> None:
        """Add a block of iterations; if it is interrupted or does not fit, all of it or nothing."""
        if not self._length and not self.move_names:
            self.move_names = block.move_names
            self._columns = self._room(0)
        count, sizes = len(block), axis_sizes(self.posterior, len(self.move_names))
        given = {name: block.column(name) for name in self._room(0)}
        for name, values in given.items():
            shape = (count, *SCHEMA[name].shape(sizes))
            if values.shape != shape:
                moves = f", a column for each move of {self.move_names}" if name in _COUNTS else ""
                raise ValueError(f"{name} must have shape {shape}{moves}; got {values.shape}.")
        if not count:
            return
        self.reserve(count)
        for name, values in given.items():
            self._columns[name][self._length : self._length + count] = values
        for iteration, report in block.reports.items():
            labels = report.proposed_labels
            # A small copy: it must not keep the arrays of its iteration alive.
            small = None if labels is None else labels.astype(label_type(sizes["object"]))
            self.reports[iteration] = report._replace(proposed_labels=small)
        self._computed = {}
        self._length += count

    def trace(self, burn_in: int = 0, thin: int = 1) -> "Trace":
        """Give the draws as a trace, without copying them.

        Parameters
        ----------
        burn_in
            How many of the first draws to drop.
        thin
            Keep the last one of each `thin` draws after that.
        """
        from ewens_widgets.sampling.trace import Trace

        if burn_in < 0:
            raise ValueError(f"burn_in must not be negative; got {burn_in}.")
        trace = self._view(Trace, self.held())
        return trace if (burn_in, thin) == (0, 1) else trace[burn_in:].thin(thin)

    def _room(self, rows: int) -> dict[str, NDArray[Any]]:
        """Columns for so many rows, but for quantities that take no time to compute."""
        sizes = axis_sizes(self.posterior, len(self.move_names))
        return {
            entry.name: np.empty((rows, *entry.shape(sizes)), dtype=entry.kept_type(sizes))
            for entry in SCHEMA.values()
            if entry.saved or entry.written is not None
        }


class BlockSizer:
    """Chooses how many iterations to run in one go, so that a block takes about a given time.

    It estimates the time of an iteration from the blocks run so far. The first block is a single iteration,
    and a block may be at most twice as long as the longest before it: the time of a short block is mostly the
    cost of starting it, and a wrong guess must not freeze a display or a progress bar. It shrinks at once.

    Parameters
    ----------
    largest
        Longest block; bounds the memory of the records of one block.
    """

    def __init__(self, largest: int = 4096) -> None:
        self._largest = largest
        self.restart()

    def restart(self) -> None:
        """Discard the times: other iterations are going to be run."""
        self._limit = 1
        self._seconds = 0.0

    def size(self, seconds: float) -> int:
        """Iterations that should fit into `seconds`, at least one."""
        if self._seconds * self._limit <= seconds:
            return self._limit
        return max(1, int(seconds / self._seconds))

    def measured(self, iterations: int, seconds: float) -> None:
        """Take in that a block of k iterations took so many seconds."""
        each = max(seconds, 0.0) / iterations
        # The average of new and old: one slow block (garbage collection, a busy machine) soon counts little.
        self._seconds = each if self._seconds == 0.0 else 0.5 * (self._seconds + each)
        if iterations >= self._limit:
            self._limit = min(self._largest, 2 * iterations)


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
