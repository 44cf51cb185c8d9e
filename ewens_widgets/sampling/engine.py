"""The engine: holds the arrays of one chain and runs the compiled drivers over its schedule."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.concentration import Gamma, log_rising_factorial
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.interrupts import interrupts_deferred
from ewens_widgets.sampling.kernel.advance import (
    GIBBS,
    INFORMED,
    REASSIGN,
    SPLIT_MERGE,
    Records,
    Schedule,
    advance_by_distance,
    advance_by_likelihood,
    make_records,
)
from ewens_widgets.sampling.kernel.workspace import (
    LOG_CONCENTRATION,
    THETA,
    Workspace,
    make_problem,
    make_workspace,
)
from ewens_widgets.sampling.moves.distances import STALE, Distances, empty_distances, make_distances
from ewens_widgets.sampling.moves.gibbs import Gibbs
from ewens_widgets.sampling.moves.outcome import Outcome, make_outcome
from ewens_widgets.sampling.moves.reassign import Reassign
from ewens_widgets.sampling.moves.schedule import Repeated
from ewens_widgets.sampling.moves.split_merge_options import SplitMerge
from ewens_widgets.sampling.state import State

__all__ = ["Engine"]

_KINDS = {"reassign": REASSIGN, "split-merge": SPLIT_MERGE, "gibbs": GIBBS, "informed-split-merge": INFORMED}


@dataclass
class _Segment:
    """Consecutive moves of a schedule that one driver can run; distances only where the driver needs them."""

    schedule: Schedule
    distances: Distances | None


class Engine:
    """Advances a chain by blocks of iterations.

    Parameters
    ----------
    posterior
        What to sample.
    schedule
        Moves of an iteration.
    pairs
        Distances between objects, where a move needs them.
    as_printed
        Use the paper's printed acceptance ratio in split-merge moves.
    """

    def __init__(
        self, posterior: Posterior, schedule: Sequence[Repeated], pairs: FloatArray | None, as_printed: bool
    ) -> None:
        self._posterior = posterior
        self._problem = make_problem(posterior)
        self._segments = [self._segment(group, schedule, pairs, as_printed) for group in _grouped(schedule)]
        self._n_moves = len(schedule)
        only = schedule[0]
        self.reports = len(schedule) == 1 and only.repeats == 1 and not isinstance(only.move, Gibbs)
        self._generator = np.random.Generator(np.random.PCG64(0))
        self.iteration = 0
        self._workspace: Workspace
        # Compiled code lets other threads run meanwhile: one that saves the chain waits for the block's end.
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the lock, for pickles and copies."""
        with self._lock:
            return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take everything, with a lock of its own."""
        self.__dict__.update(state, _lock=threading.RLock())

    def _segment(
        self, places: Sequence[int], schedule: Sequence[Repeated], pairs: FloatArray | None, as_printed: bool
    ) -> _Segment:
        moves = [schedule[place] for place in places]
        split_merge = next((entry.move for entry in moves if isinstance(entry.move, SplitMerge)), None)
        prior, n_objects = self._posterior.concentration, self._posterior.n_objects
        compiled = Schedule(
            kinds=np.array([_KINDS[entry.move.name] for entry in moves]),
            repeats=np.array([entry.repeats for entry in moves]),
            places=np.array(places),
            begins=places[0] == 0,
            options=(split_merge or SplitMerge()).options(as_printed),
            shape=prior.shape if isinstance(prior, Gamma) else 0.0,
            rate=prior.rate if isinstance(prior, Gamma) else 0.0,
            log_rising=0.0 if isinstance(prior, Gamma) else float(log_rising_factorial(prior, n_objects)),
        )
        if not isinstance(moves[0].move, SplitMerge | Reassign):
            return _Segment(compiled, None)
        return _Segment(
            compiled, make_distances(pairs) if split_merge and pairs is not None else empty_distances()
        )

    def load(self, state: State) -> None:
        """Put the chain into a state; an interrupt is held back, so that it is there as a whole."""
        with self._lock, interrupts_deferred():
            self._workspace = make_workspace(
                self._problem, state.labels, state.theta_index, state.log_concentration
            )
            self._generator.bit_generator.state = state.generator
            self.iteration = state.iteration
            self._forget_distances()

    def state(self) -> State:
        """Copy the state that the chain is in."""
        with self._lock:
            return State(
                labels=self._workspace.labels.copy(),
                theta_index=int(self._workspace.integers[THETA]),
                log_concentration=float(self._workspace.reals[LOG_CONCENTRATION]),
                iteration=self.iteration,
                generator=_plain(self._generator.bit_generator.state),
            )

    def advance(self, rows: int, thin: int = 1, report: bool = False) -> tuple[Records, Outcome]:
        """Advance by rows × thin iterations; return a record of every thin-th, and the last proposal."""
        n_objects, n_thetas = self._posterior.n_objects, self._posterior.theta_grid.size
        records = make_records(rows, n_objects, n_thetas, self._n_moves)
        outcome = make_outcome(n_objects, report)
        with self._lock:
            if len(self._segments) == 1:
                self._run(self._segments[0], records, outcome, rows, thin)
            else:
                self._run_row_by_row(records, outcome, rows, thin)
            self.iteration += rows * thin
        return records, outcome

    def _run_row_by_row(self, records: Records, outcome: Outcome, rows: int, thin: int) -> None:
        for row in range(rows):
            single = records._replace(
                **{name: column[row : row + 1] for name, column in records._asdict().items()}
            )
            for _ in range(thin):
                self._run_in_turns(single, outcome)

    def _run_in_turns(self, record: Records, outcome: Outcome) -> None:
        """One iteration of a schedule that mixes moves with and without distances."""
        for segment in self._segments:
            before = int(record.acceptances.sum())
            self._run(segment, record, outcome, 1, 1)
            if int(record.acceptances.sum()) != before:
                self._forget_distances(keep=segment)

    def _run(self, segment: _Segment, records: Records, outcome: Outcome, rows: int, thin: int) -> None:
        arguments = (segment.schedule, records, outcome, rows, thin, self._generator)
        with interrupts_deferred():
            if segment.distances is None:
                advance_by_likelihood(self._problem, self._workspace, *arguments)
            else:
                advance_by_distance(self._problem, self._workspace, segment.distances, *arguments)

    def _forget_distances(self, keep: _Segment | None = None) -> None:
        for segment in self._segments:
            if segment is not keep and segment.distances is not None:
                segment.distances.flags[STALE] = 1


def _grouped(schedule: Sequence[Repeated]) -> list[list[int]]:
    """Places of the moves, grouped so that each group suits one driver and one set of split-merge options."""
    groups: list[list[int]] = []
    for place, entry in enumerate(schedule):
        last = schedule[groups[-1][-1]].move if groups else None
        distance_based = isinstance(entry.move, SplitMerge | Reassign)
        together = last is not None and distance_based == isinstance(last, SplitMerge | Reassign)
        if together and isinstance(entry.move, SplitMerge):
            present = [schedule[other].move for other in groups[-1]]
            together = all(not isinstance(move, SplitMerge) or move == entry.move for move in present)
        if together:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def _plain(generator: Any) -> dict[str, Any]:  # noqa: ANN401 - NumPy types it so
    """Copy the state of a generator, deep enough that it does not change with the generator."""
    return {key: dict(value) if isinstance(value, dict) else value for key, value in generator.items()}
