"""Growing storage of a running chain: every iteration is kept, in arrays that double when they are full."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.draws import Counts, label_type, read_only
from ewens_widgets.sampling.event import Event, MoveCount
from ewens_widgets.sampling.trace import Trace

__all__ = ["Recorder"]

_FIRST_CAPACITY = 256
_FIRST_BYTES = 64 * 2**20  # Of many objects, room for fewer.


class _Proposal(NamedTuple):
    """What an event says about a single Metropolis step; kept only where there is something to keep."""

    labels: NDArray[Any] | None
    accepted: bool | None
    log_ratio: float | None


class Recorder:
    """Records events one by one or in blocks, and gives them back as events or as a trace.

    Parameters
    ----------
    posterior
        The posterior that is being sampled.
    move_names
        Names of the schedule's moves; the first event tells them if they are left out.
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
        self._proposals: dict[int, _Proposal] = {}

    def __len__(self) -> int:
        return self._length

    @property
    def move_names(self) -> tuple[str, ...]:
        """Names of the schedule's moves."""
        return self._names or ()

    @property
    def iterations(self) -> NDArray[np.int64]:
        """Numbers of the iterations recorded so far."""
        return self._recorded("iterations")

    @property
    def labels(self) -> NDArray[Any]:
        """Canonical labels at each iteration recorded so far, one a row."""
        return self._recorded("labels")

    @property
    def n_clusters(self) -> NDArray[Any]:
        """Number of clusters at each iteration recorded so far."""
        return self._recorded("n_clusters")

    @property
    def theta_index(self) -> NDArray[Any]:
        """Place of the variance ratio on its grid at each iteration recorded so far."""
        return self._recorded("theta_index")

    @property
    def theta(self) -> NDArray[np.float64]:
        """Variance ratio at each iteration recorded so far."""
        return read_only(self.posterior.theta_grid[self.theta_index])

    @property
    def theta_weights(self) -> NDArray[np.float32]:
        """Exact conditional probabilities of θ that each iteration drew from, one a row."""
        return self._recorded("theta_weights")

    @property
    def log_posterior(self) -> NDArray[np.float64]:
        """Log posterior at each iteration recorded so far."""
        return self._recorded("log_posterior")

    @property
    def concentration(self) -> NDArray[np.float64]:
        """Concentration λ at each iteration recorded so far."""
        return self._recorded("concentration")

    @property
    def proposals(self) -> NDArray[np.int64]:
        """Proposals at each iteration recorded so far, a column a move."""
        return self._recorded("proposals")

    @property
    def acceptances(self) -> NDArray[np.int64]:
        """Acceptances at each iteration recorded so far, a column a move."""
        return self._recorded("acceptances")

    def append(self, event: Event) -> None:
        """Record one event."""
        if self._names is None:
            self._names = tuple(move.name for move in event.moves)
            self._columns = {}
        columns, row = self._room(1), self._length
        columns["iterations"][row] = event.iteration
        columns["labels"][row] = event.labels
        columns["n_clusters"][row] = event.n_clusters
        columns["theta_index"][row] = event.theta_index
        columns["theta_weights"][row] = event.theta_weights
        columns["log_posterior"][row] = event.log_posterior
        columns["concentration"][row] = event.concentration
        columns["proposals"][row] = [move.proposals for move in event.moves]
        columns["acceptances"][row] = [move.acceptances for move in event.moves]
        if event.proposed_labels is not None or event.accepted is not None:
            self._proposals[row] = self._proposal(event)
        self._length += 1

    def append_block(
        self,
        *,
        iterations: ArrayLike,
        labels: NDArray[Any],
        theta_index: ArrayLike,
        theta_weights: ArrayLike,
        log_posterior: ArrayLike,
        concentration: ArrayLike,
        proposals: ArrayLike,
        acceptances: ArrayLike,
    ) -> None:
        """Record a block of iterations, given as arrays with one row each; counts have a column a move."""
        count = len(labels)
        shape, given = (count, len(self.move_names)), (np.shape(proposals), np.shape(acceptances))
        if given != (shape, shape):
            raise ValueError(
                f"counts of proposals and acceptances must have shape {shape}, a column a move of "
                f"{self.move_names}; got {given[0]} and {given[1]}."
            )
        columns, rows = self._room(count), slice(self._length, self._length + count)
        columns["iterations"][rows] = iterations
        columns["labels"][rows] = labels
        columns["n_clusters"][rows] = labels.max(axis=1, initial=0).astype(np.int32) + 1
        columns["theta_index"][rows] = theta_index
        columns["theta_weights"][rows] = theta_weights
        columns["log_posterior"][rows] = log_posterior
        columns["concentration"][rows] = concentration
        columns["proposals"][rows] = proposals
        columns["acceptances"][rows] = acceptances
        self._length += count

    def sibling(self, capacity: int) -> "Recorder":
        """Return an empty recorder of the same chain, for another thread to fill.

        Room for so many records is made here too, so that taking them over cannot fail for lack of memory.
        """
        self._room(capacity)
        return Recorder(self.posterior, self._names, capacity)

    def absorb(self, other: "Recorder") -> None:
        """Record once more what a sibling has recorded; interrupted, all of it or nothing."""
        self.append_block(
            iterations=other.iterations,
            labels=other.labels,
            theta_index=other.theta_index,
            theta_weights=other.theta_weights,
            log_posterior=other.log_posterior,
            concentration=other.concentration,
            proposals=other.proposals,
            acceptances=other.acceptances,
        )

    def event(self, index: int) -> Event:
        """Return the event recorded at a place, counted from 0 (or from the end, if negative).

        The weights of θ come back in single precision; the moves of a block as they were counted then.
        """
        row = index + self._length if index < 0 else index
        if not 0 <= row < self._length:
            raise IndexError(f"there is no event {index}; {self._length} are recorded.")
        entry = {name: values[row] for name, values in self._columns.items()}
        counts = zip(self.move_names, entry["proposals"], entry["acceptances"], strict=True)
        proposal = self._proposals.get(row, _Proposal(None, None, None))
        return Event(
            iteration=int(entry["iterations"]),
            theta=float(self.posterior.theta_grid[entry["theta_index"]]),
            theta_index=int(entry["theta_index"]),
            theta_weights=read_only(entry["theta_weights"].astype(np.float64)),
            labels=read_only(entry["labels"].astype(np.intp)),
            n_clusters=int(entry["n_clusters"]),
            log_posterior=float(entry["log_posterior"]),
            concentration=float(entry["concentration"]),
            moves=tuple(MoveCount(name, int(made), int(taken)) for name, made, taken in counts),
            proposed_labels=None if proposal.labels is None else read_only(proposal.labels.astype(np.intp)),
            accepted=proposal.accepted,
            log_ratio=proposal.log_ratio,
        )

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
        everything = Trace(
            labels=self.labels,
            theta_index=self.theta_index,
            theta_weights=self.theta_weights,
            log_posterior=self.log_posterior,
            concentration=self.concentration,
            iterations=self.iterations,
            move_counts={name: self._counts(name) for name in self.move_names},
            posterior=self.posterior,
        )
        return everything if (burn_in, thin) == (0, 1) else everything[burn_in:].thin(thin)

    def _counts(self, name: str) -> Counts:
        """Proposals and acceptances of a move at each iteration; a schedule may hold it several times."""
        places = [place for place, other in enumerate(self.move_names) if other == name]
        return self.proposals[:, places].sum(axis=1), self.acceptances[:, places].sum(axis=1)

    def _proposal(self, event: Event) -> _Proposal:
        given = event.proposed_labels
        compact = None if given is None else given.astype(label_type(self.posterior.n_objects))
        return _Proposal(compact, event.accepted, event.log_ratio)

    def _recorded(self, name: str) -> NDArray[Any]:
        return read_only(self._room(0)[name][: self._length])

    def _room(self, extra: int) -> dict[str, NDArray[Any]]:
        """Columns with room for `extra` more rows; nothing recorded is overwritten, so views stay true."""
        needed = self._length + extra
        capacity = len(self._columns["labels"]) if self._columns else 0
        if not self._columns or needed > capacity:
            larger = self._empty(max(needed, 2 * capacity, self._first_capacity))
            for name, values in self._columns.items():
                larger[name][: self._length] = values[: self._length]
            self._columns = larger
        return self._columns

    def _empty(self, rows: int) -> dict[str, NDArray[Any]]:
        n_objects, n_values = self.posterior.n_objects, self.posterior.theta_grid.size
        moves = len(self.move_names)
        return {
            "iterations": np.empty(rows, dtype=np.int64),
            "labels": np.empty((rows, n_objects), dtype=label_type(n_objects)),
            "n_clusters": np.empty(rows, dtype=np.int32),
            "theta_index": np.empty(rows, dtype=label_type(n_values)),
            "theta_weights": np.empty((rows, n_values), dtype=np.float32),
            "log_posterior": np.empty(rows, dtype=np.float64),
            "concentration": np.empty(rows, dtype=np.float64),
            "proposals": np.empty((rows, moves), dtype=np.int64),
            "acceptances": np.empty((rows, moves), dtype=np.int64),
        }
