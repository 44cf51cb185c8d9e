"""Keeping Ctrl-C out of a compiled call.

While numba converts the arguments of a call it runs a little Python; an interrupt raised just there is not
expected, and crashes the process. So an interrupt that arrives during a call is raised after it.

The drivers: advance a chain by a block of iterations and write their records to arrays.

There is one for the moves that need distances and one for those that need the likelihood only, so that
nobody waits for the compilation of moves that are not used. A schedule that mixes both is run in turns.

The engine: holds the arrays of one chain and runs the compiled drivers over its schedule.
"""

import math
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.model.priors.partition_prior import log_rising_factorial
from ewens_widgets.sampling.compiled import entry, inlined, jit
from ewens_widgets.sampling.draws import Records, axis_sizes, make_records
from ewens_widgets.sampling.kernel.parameters import draw_concentration, draw_theta
from ewens_widgets.sampling.kernel.scatter import log_partition_terms, log_scale
from ewens_widgets.sampling.kernel.workspace import (
    CLUSTERS,
    LOG_CONCENTRATION,
    THETA,
    Outcome,
    Problem,
    Workspace,
    make_outcome,
    make_problem,
    make_workspace,
)
from ewens_widgets.sampling.moves.distances import STALE, Distances, empty_distances, make_distances
from ewens_widgets.sampling.moves.gibbs import Gibbs, gibbs_sweep
from ewens_widgets.sampling.moves.informed import informed_split_merge
from ewens_widgets.sampling.moves.reassign import Reassign, reassign
from ewens_widgets.sampling.moves.schedule import Repeated
from ewens_widgets.sampling.moves.split_merge import SplitMerge, split_merge
from ewens_widgets.sampling.moves.split_merge_proposal import SplitMergeOptions
from ewens_widgets.sampling.state import State

__all__ = [
    "GIBBS",
    "INFORMED",
    "REASSIGN",
    "SPLIT_MERGE",
    "Driver",
    "Schedule",
    "advance_by_distance",
    "advance_by_likelihood",
    "interrupts_deferred",
]


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Hold back the interrupts that arrive in the block, and let the last of them through at its end."""
    previous = signal.getsignal(signal.SIGINT)
    # Only the main thread receives signals; where they are ignored there is nothing to hold back.
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return
    arrived: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: arrived.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if arrived:
        previous(*arrived[-1])


REASSIGN, SPLIT_MERGE, GIBBS, INFORMED = 0, 1, 2, 3


class Schedule(NamedTuple):
    """Consecutive moves of an iteration: kinds and repeats, and their places in the records.

    `begins` says whether they begin the iteration, with the draws of θ and λ; a shape of 0 that λ is fixed,
    and `log_rising` is then log Γ(n + λ) − log Γ(λ).
    """

    kinds: NDArray[np.int64]
    repeats: NDArray[np.int64]
    places: NDArray[np.int64]
    begins: bool
    options: SplitMergeOptions
    shape: float
    rate: float
    log_rising: float


@inlined
def _log_posterior(problem: Problem, workspace: Workspace, schedule: Schedule) -> float:
    """Unnormalised log posterior of partition and θ (and of λ where it has a prior)."""
    n_objects = problem.coordinates.shape[0]
    n_clusters = workspace.integers[CLUSTERS]
    log_concentration = workspace.reals[LOG_CONCENTRATION]
    concentration = math.exp(log_concentration)
    total = problem.log_theta_prior[workspace.integers[THETA]] - 0.5 * n_objects * log_scale(
        problem, workspace
    )
    for b in range(n_clusters):
        total += log_partition_terms(problem, workspace, workspace.sizes[b])
    total += n_clusters * log_concentration
    if schedule.shape == 0.0:
        total -= schedule.log_rising
    else:
        # Γ(n + λ) / Γ(λ) as a product: the difference of two log Gamma functions would cancel.
        for seated in range(n_objects):
            total -= math.log(concentration + seated)
        total += schedule.shape * math.log(schedule.rate) - math.lgamma(schedule.shape)
        total += (schedule.shape - 1.0) * log_concentration - schedule.rate * concentration
    return total


@inlined
def _write_canonical(workspace: Workspace, out: NDArray[np.int32]) -> None:
    """Write the labels in order of first appearance."""
    names = workspace.members  # Scratch between moves.
    n_clusters = workspace.integers[CLUSTERS]
    for b in range(n_clusters):
        names[b] = -1
    following = 0
    for i in range(out.shape[0]):
        slot = workspace.labels[i]
        if names[slot] < 0:
            names[slot] = following
            following += 1
        out[i] = names[slot]


@jit
def _begin(
    problem: Problem, workspace: Workspace, schedule: Schedule, weights: FloatArray, rng: np.random.Generator
) -> None:
    """Begin an iteration with the draws of θ and λ."""
    draw_theta(problem, workspace, weights, rng)
    if schedule.shape > 0.0:
        draw_concentration(workspace, schedule.shape, schedule.rate, rng)


@jit
def _record(problem: Problem, workspace: Workspace, schedule: Schedule, records: Records, row: int) -> None:
    """Write down the state at the end of an iteration."""
    records.theta_index[row] = workspace.integers[THETA]
    records.n_clusters[row] = workspace.integers[CLUSTERS]
    records.concentration[row] = math.exp(workspace.reals[LOG_CONCENTRATION])
    records.log_posterior[row] = _log_posterior(problem, workspace, schedule)
    _write_canonical(workspace, records.labels[row])


@entry
def advance_by_likelihood(
    problem: Problem,
    workspace: Workspace,
    schedule: Schedule,
    records: Records,
    outcome: Outcome,
    rows: int,
    thin: int,
    rng: np.random.Generator,
) -> None:
    """Run Gibbs sweeps and informed split-merge moves, and record every `thin`-th iteration."""
    sums = np.zeros((2, problem.coordinates.shape[1]))
    for row in range(rows):
        for _ in range(thin):
            if schedule.begins:
                _begin(problem, workspace, schedule, records.theta_weights[row], rng)
            for move in range(schedule.kinds.shape[0]):
                place = schedule.places[move]
                for _ in range(schedule.repeats[move]):
                    if schedule.kinds[move] == GIBBS:
                        records.proposals[row, place] += problem.coordinates.shape[0]
                        records.acceptances[row, place] += gibbs_sweep(problem, workspace, rng)
                    else:
                        accepted = informed_split_merge(problem, workspace, outcome, sums, rng)
                        records.proposals[row, place] += 1
                        records.acceptances[row, place] += accepted
        _record(problem, workspace, schedule, records, row)


@entry
def advance_by_distance(
    problem: Problem,
    workspace: Workspace,
    distances: Distances,
    schedule: Schedule,
    records: Records,
    outcome: Outcome,
    rows: int,
    thin: int,
    rng: np.random.Generator,
) -> None:
    """Run the paper's moves, reassign and split-merge, and record every `thin`-th iteration."""
    sums = np.zeros((2, problem.coordinates.shape[1]))
    for row in range(rows):
        for _ in range(thin):
            if schedule.begins:
                _begin(problem, workspace, schedule, records.theta_weights[row], rng)
            for move in range(schedule.kinds.shape[0]):
                place = schedule.places[move]
                for _ in range(schedule.repeats[move]):
                    if schedule.kinds[move] == REASSIGN:
                        accepted = reassign(problem, workspace, outcome, rng)
                        distances.flags[STALE] |= accepted
                    else:
                        accepted = split_merge(
                            problem, workspace, distances, schedule.options, outcome, sums, rng
                        )
                    if accepted >= 0:
                        records.proposals[row, place] += 1
                        records.acceptances[row, place] += accepted
        _record(problem, workspace, schedule, records, row)


_KINDS = {"reassign": REASSIGN, "split-merge": SPLIT_MERGE, "gibbs": GIBBS, "informed-split-merge": INFORMED}


@dataclass
class _Segment:
    """Consecutive moves of a schedule that one driver can run; distances only where the driver needs them."""

    schedule: Schedule
    distances: Distances | None


class Driver:
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
        self._sizes = axis_sizes(posterior, len(schedule))
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
        split_merge = next((made.move for made in moves if isinstance(made.move, SplitMerge)), None)
        prior, n_objects = self._posterior.concentration, self._posterior.n_objects
        compiled = Schedule(
            kinds=np.array([_KINDS[made.move.name] for made in moves]),
            repeats=np.array([made.repeats for made in moves]),
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
        records = make_records(rows, self._sizes)
        outcome = make_outcome(self._posterior.n_objects, report)
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
    for place, made in enumerate(schedule):
        last = schedule[groups[-1][-1]].move if groups else None
        distance_based = isinstance(made.move, SplitMerge | Reassign)
        together = last is not None and distance_based == isinstance(last, SplitMerge | Reassign)
        if together and isinstance(made.move, SplitMerge):
            present = [schedule[other].move for other in groups[-1]]
            together = all(not isinstance(move, SplitMerge) or move == made.move for move in present)
        if together:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def _plain(generator: Any) -> dict[str, Any]:  # noqa: ANN401 - NumPy types it so
    """Copy the state of a generator, deep enough that it does not change with the generator."""
    return {key: dict(value) if isinstance(value, dict) else value for key, value in generator.items()}
