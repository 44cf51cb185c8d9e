"""Growing storage of a running chain: every iteration is kept, in arrays that double when they are full.

Nothing that was recorded is ever overwritten: what somebody was shown stays true, whatever is recorded later.
The number of rows is raised last, so a block is kept as a whole or, where that is interrupted, not at all.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.draws import (
    SCHEMA,
    Block,
    Counts,
    Recorded,
    StepReport,
    axis_sizes,
    empty_columns,
    label_type,
    read_only,
    saved_columns,
)
from ewens_widgets.sampling.event import Event
from ewens_widgets.sampling.trace import Trace

__all__ = ["Recorder"]

_FIRST_CAPACITY = 256
_FIRST_BYTES = 64 * 2**20  # Of many objects, room for fewer.


class Recorder(Recorded):
    """Keeps blocks of iterations, or single events, and gives them back as events or as a trace.

    Every recorded quantity is an attribute: an array with a row for each iteration recorded so far, such as
    `labels`, `n_clusters`, `theta` or `log_posterior`; `proposals` and `acceptances` have a column a move.

    Parameters
    ----------
    posterior
        The posterior that is being sampled.
    move_names
        Names of the schedule's moves; the first block tells them if they are left out.
    capacity
        For how many records to make room at first, where their number is known.
    """

    def __init__(
        self, posterior: Posterior, move_names: Sequence[str] | None = None, capacity: int | None = None
    ) -> None:
        self.posterior = posterior
        largest = max(1, _FIRST_BYTES // (4 * posterior.n_objects))
        self._first_capacity = min(_FIRST_CAPACITY, largest) if capacity is None else capacity
        self._given_names = None if move_names is None else tuple(move_names)
        self.clear()

    def clear(self) -> None:
        """Forget everything recorded; traces and events given out before stay as they are."""
        self._length = 0
        self._names = self._given_names
        self._columns: dict[str, NDArray[Any]] = {}
        self._reports: dict[int, StepReport] = {}  # only of iterations that have something to report

    def __len__(self) -> int:
        return self._length

    @property
    def move_names(self) -> tuple[str, ...]:
        """Names of the schedule's moves."""
        return self._names or ()

    def column(self, name: str) -> NDArray[Any]:
        """Return a recorded quantity by its name, a row for each iteration recorded so far."""
        columns = self._room(0)
        return read_only(columns[name][: self._length]) if name in columns else self.block().column(name)

    def block(self) -> Block:
        """Give everything recorded so far as one block, without copying it."""
        columns = {name: values[: self._length] for name, values in self._room(0).items()}
        return Block(self.posterior, self.move_names, columns, self._reports.get(self._length - 1))

    def reserve(self, extra: int) -> None:
        """Make room for so many more iterations, so that keeping them cannot fail for lack of memory."""
        self._room(extra)

    def extend(self, block: Block) -> None:
        """Keep a block; interrupted, or where it does not fit, all of it or nothing."""
        if self._names is None:
            self._names, self._columns = block.move_names, {}
        count = len(block)
        given = {name: block.column(name) for name in self._room(0)}
        self._check_shapes(count, given)
        columns, rows = self._room(count), slice(self._length, self._length + count)
        for name, values in given.items():
            columns[name][rows] = values
        while self._reports and next(reversed(self._reports)) >= self._length:
            self._reports.popitem()  # of a block that was not kept after all
        if block.report is not None and count:
            self._reports[rows.stop - 1] = self._compact(block.report)
        self._length += count

    def append(self, event: Event) -> None:
        """Keep one event."""
        self.extend(Block.of_event(self.posterior, event))

    def event(self, index: int) -> Event:
        """Return the event recorded at a place, counted from 0 (or from the end, if negative).

        The weights of θ come back in single precision; the moves of a block as they were counted then.
        """
        row = index + self._length if index < 0 else index
        if not 0 <= row < self._length:
            raise IndexError(f"there is no event {index}; {self._length} are recorded.")
        # In the types in which the chain wrote them: watchers do arithmetic with them.
        columns = {
            name: values[row : row + 1].astype(SCHEMA[name].written or values.dtype)
            for name, values in self._columns.items()
        }
        report = self._reports.get(row)
        if report is not None and report.proposed_labels is not None:
            report = report._replace(proposed_labels=read_only(report.proposed_labels.astype(np.intp)))
        return Block(self.posterior, self.move_names, columns, report)[0]

    def trace(self, burn_in: int = 0, thin: int = 1) -> Trace:
        """Give the records as a trace, without copying them.

        Parameters
        ----------
        burn_in
            How many of the first records to drop.
        thin
            Keep the last one of each `thin` records after that.
        """
        if burn_in < 0:
            raise ValueError(f"burn_in must not be negative; got {burn_in}.")
        everything = Trace.of_columns(
            {entry.name: self.column(entry.name) for entry in saved_columns()},
            move_counts={name: self._counts(name) for name in self.move_names},
            posterior=self.posterior,
        )
        return everything if (burn_in, thin) == (0, 1) else everything[burn_in:].thin(thin)

    def _counts(self, name: str) -> Counts:
        """Proposals and acceptances of a move at each iteration; a schedule may hold it several times."""
        places = [place for place, other in enumerate(self.move_names) if other == name]
        return self.proposals[:, places].sum(axis=1), self.acceptances[:, places].sum(axis=1)

    def _compact(self, report: StepReport) -> StepReport:
        """Keep a report small: the arrays of its iteration are not kept alive for it."""
        if report.proposed_labels is None:
            return report
        labels = report.proposed_labels.astype(label_type(self.posterior.n_objects))
        return report._replace(proposed_labels=read_only(labels))

    def _check_shapes(self, count: int, given: dict[str, NDArray[Any]]) -> None:
        sizes = axis_sizes(self.posterior, len(self.move_names))
        for name, values in given.items():
            shape = (count, *SCHEMA[name].shape(sizes))
            if values.shape != shape:
                moves = f", a column a move of {self.move_names}" if "move" in SCHEMA[name].axes else ""
                raise ValueError(f"{name} must have shape {shape}{moves}; got {values.shape}.")

    def _room(self, extra: int) -> dict[str, NDArray[Any]]:
        """Columns with room for `extra` more rows; nothing recorded is overwritten, so views stay true."""
        needed = self._length + extra
        capacity = len(self._columns["labels"]) if self._columns else 0
        if not self._columns or needed > capacity:
            rows = max(needed, 2 * capacity, self._first_capacity)
            larger = empty_columns(rows, axis_sizes(self.posterior, len(self.move_names)))
            for name, values in self._columns.items():
                larger[name][: self._length] = values[: self._length]
            self._columns = larger
        return self._columns
