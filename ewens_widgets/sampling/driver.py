"""The driver: holds the arrays of one chain and advances it by blocks of iterations.

An iteration draws θ, and λ where it has a prior, then makes the moves of the schedule, and writes down the
state. Iterations run in compiled loops: one for the moves that need distances, and one for those that need
the likelihood only, so that moves that are not used need not be compiled. Numba can keep such
a loop on disk only if it names its kernels; a loop that is handed a kernel would be compiled again in every
process. So consecutive moves whose kernels are named in one loop form a *segment* of the schedule. Any other
move is a *guest*: its kernel is called from here, once for each repeat. A schedule of more than one segment
is run in turns, an iteration at a time.

While there is no machine code yet, blocks are run interpreted, an iteration at a time, and the chain changes
over when a child process has made it (`cold_start.Code`). Where an interpreted iteration would take too long,
the driver waits instead. Schedules with moves of users are compiled here, at their first call,
since their code cannot be kept.

Interrupts are kept out of compiled calls. While numba converts the arguments of a call it runs a little
Python; an interrupt raised just there is not expected, and crashes the process. So one that arrives during a
call is raised after it.

*Kept in step.* Three functions run an iteration, in the same order: `advance_by_likelihood`,
`paper.moves.distance_loop.advance_by_distance` and `Driver._advance_guests`. A kernel in the `KERNELS` of a
loop's module needs a branch in that loop. `_log_posterior` is `Posterior.log_density` in compiled form.
`_record_own`, `_record_gaps` and `Driver.state` write packed parameters in the order that `kernel.workspace`
describes. Fields of `records` are those columns of `draws.SCHEMA` that have a type `written`.
"""

import copy
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.own_shapes import pack_sigma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.model.priors.partition_prior import log_rising_factorial
from ewens_widgets.sampling.cold_start import Code, code_for, must_wait
from ewens_widgets.sampling.compiled import by_family, entry, inlined, interpreted, jit
from ewens_widgets.sampling.draws import Records, axis_sizes, make_records
from ewens_widgets.sampling.kernel import workspace as at
from ewens_widgets.sampling.kernel.family import draw_parameters, log_joint
from ewens_widgets.sampling.kernel.partition_changes import draw_concentration
from ewens_widgets.sampling.kernel.workspace import (
    AnyProblem,
    AnyWorkspace,
    Outcome,
    OwnProblem,
    OwnWorkspace,
    Problem,
    Workspace,
    make_outcome,
    make_problem,
)
from ewens_widgets.sampling.moves.gibbs import gibbs_sweep
from ewens_widgets.sampling.moves.informed import informed_split_merge
from ewens_widgets.sampling.moves.schedule import Repeated
from ewens_widgets.sampling.state import State


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


GIBBS, INFORMED = 0, 1


class Schedule(NamedTuple):
    """Consecutive moves of an iteration: kinds and repeats, and their places in the records.

    `begins` says whether they begin the iteration, with the draws of the parameters. `log_counts` is log V(K)
    of the prior; it is empty under Ewens' prior, where a shape of 0 says that λ is fixed. `log_normaliser` is
    log Γ(n + λ) − log Γ(λ) where it is, and log Γ(shape) − shape log rate of its own prior where it is not.
    """

    kinds: NDArray[np.int64]
    repeats: NDArray[np.int64]
    places: NDArray[np.int64]
    begins: bool
    shape: float
    rate: float
    log_normaliser: float
    log_counts: FloatArray


@inlined
def _log_posterior(problem: AnyProblem, workspace: AnyWorkspace, schedule: Schedule) -> float:
    """Unnormalised log posterior of partition and parameters (and of λ where it has a prior)."""
    n_objects = problem.coordinates.shape[0]
    n_clusters = workspace.integers[at.CLUSTERS]
    log_concentration = workspace.reals[at.LOG_CONCENTRATION]
    concentration = math.exp(log_concentration)
    total = log_joint(problem, workspace)
    if schedule.log_counts.shape[0] > 0:
        known = schedule.log_counts.shape[0] - 1
        return total + schedule.log_counts[n_clusters] if n_clusters <= known else -np.inf
    total += n_clusters * log_concentration
    if schedule.shape == 0.0:
        total -= schedule.log_normaliser
    else:
        # Γ(n + λ) / Γ(λ) as a product: the difference of two log Gamma functions would cancel.
        for seated in range(n_objects):
            total -= math.log(concentration + seated)
        total -= schedule.log_normaliser
        total += (schedule.shape - 1.0) * log_concentration - schedule.rate * concentration
    return total


@jit
def begin(
    problem: AnyProblem,
    workspace: AnyWorkspace,
    schedule: Schedule,
    weights: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Begin an iteration with the draws of the parameters."""
    draw_parameters(problem, workspace, weights, rng)
    if schedule.shape > 0.0:
        draw_concentration(workspace, schedule.shape, schedule.rate, rng)


@jit
def _record_common(problem: Problem, workspace: Workspace, records: Records, row: int) -> None:
    """Write down imputed cells: common shapes have no other parameters besides θ."""
    _record_gaps(problem, workspace, records, row, 0)


@inlined
def _record_gaps(
    problem: AnyProblem, workspace: AnyWorkspace, records: Records, row: int, place: int
) -> None:
    """Write down the imputed cells of the table, behind all else."""
    last = workspace.rows.shape[0] - problem.coordinates.shape[0]
    for cell in range(problem.gaps.shape[0]):
        value = workspace.rows[last + problem.gaps[cell, 0], problem.gaps[cell, 1]]
        records.sigma[row, place + cell] = value


@jit
def _record_own(problem: OwnProblem, workspace: OwnWorkspace, records: Records, row: int) -> None:
    """Write down ν, its conditional probabilities, and Σ as it is packed, with what is behind it."""
    records.nu_index[row] = workspace.integers[at.NU]
    for v in range(workspace.nu_weights.shape[0]):
        records.nu_weights[row, v] = workspace.nu_weights[v]
    place = 0
    sigma = workspace.sigma
    for r in range(sigma.shape[0]):
        for c in range(r + 1 if sigma.shape[0] > 1 else sigma.shape[1]):
            records.sigma[row, place] = sigma[r, c]
            place += 1
    if problem.origin.shape[0] > 0:
        for r in range(workspace.centre.shape[0]):
            records.sigma[row, place] = workspace.centre[r]
            place += 1
    _record_gaps(problem, workspace, records, row, place)


_record_shapes: Callable[..., None] = by_family({Workspace: _record_common, OwnWorkspace: _record_own})


@jit
def record(
    problem: AnyProblem, workspace: AnyWorkspace, schedule: Schedule, records: Records, row: int
) -> None:
    """Write down the state at the end of an iteration."""
    records.theta_index[row] = workspace.integers[at.THETA]
    records.n_clusters[row] = workspace.integers[at.CLUSTERS]
    records.concentration[row] = math.exp(workspace.reals[at.LOG_CONCENTRATION])
    records.log_posterior[row] = _log_posterior(problem, workspace, schedule)
    _record_shapes(problem, workspace, records, row)
    names, following = workspace.members, 0  # Scratch between moves; labels are named as they first appear.
    for b in range(workspace.integers[at.CLUSTERS]):
        names[b] = -1
    for i in range(workspace.labels.shape[0]):
        slot = workspace.labels[i]
        if names[slot] < 0:
            names[slot] = following
            following += 1
        records.labels[row, i] = names[slot]


@entry
def advance_by_likelihood(
    problem: AnyProblem,
    workspace: AnyWorkspace,
    schedule: Schedule,
    records: Records,
    outcome: Outcome,
    rows: int,
    thin: int,
    rng: np.random.Generator,
) -> None:
    """Run Gibbs sweeps and informed split-merge moves, and record every `thin`-th iteration."""
    for row in range(rows):
        for _ in range(thin):
            if schedule.begins:
                begin(problem, workspace, schedule, records.theta_weights[row], rng)
            for move in range(schedule.kinds.shape[0]):
                place = schedule.places[move]
                for _ in range(schedule.repeats[move]):
                    if schedule.kinds[move] == GIBBS:
                        records.proposals[row, place] += problem.coordinates.shape[0]
                        records.acceptances[row, place] += gibbs_sweep(
                            problem, workspace, outcome, 0, problem.coordinates.shape[0], rng
                        )
                    else:
                        accepted = informed_split_merge(problem, workspace, outcome, rng)
                        records.proposals[row, place] += 1
                        records.acceptances[row, place] += accepted
        record(problem, workspace, schedule, records, row)


KERNELS: dict[Callable[..., int], int] = {gibbs_sweep: GIBBS, informed_split_merge: INFORMED}


def call(
    problem: AnyProblem,
    workspace: AnyWorkspace,
    memory: None,  # noqa: ARG001 - there is none
    options: None,  # noqa: ARG001 - there are none
    rest: tuple[Any, ...],
) -> tuple[Callable[..., None], tuple[Any, ...]]:
    """The compiled loop, and its arguments; it has no memory and no options."""
    return advance_by_likelihood, (problem, workspace, *rest)


def make_memory(pairs: FloatArray | None) -> None:
    """Nothing is kept from one move to the next."""


def forget(memory: None) -> None:
    """Nothing was kept."""


# Seconds: where an interpreted iteration would take longer, the compiler is waited for.
_PATIENCE = 0.5
# Where a segment has no loop of its own: its kernels are called from Python.
_AS_GUESTS = ""


@dataclass
class _Segment:
    """Consecutive moves of a schedule that one loop can run.

    `loop` names the module of the loop: its `KERNELS` have numbers in the compiled code, `call` is how it is
    called, and `make_memory` and `forget` keep what it remembers of the partition between its moves. `guests`
    are moves, with places in the records and options, that no compiled loop knows: the schedule is then empty
    but for the draws of θ and λ, and the memory is the distances between objects.
    """

    loop: str
    schedule: Schedule
    memory: Any
    options: Any = None
    guests: tuple[tuple[int, Repeated, Any], ...] = ()


class Driver:
    """Advances a chain by blocks of iterations; without moves, only the parameters are drawn.

    `pairs` are the distances between objects, where a move needs them; `as_printed` uses the paper's printed
    acceptance ratio in split-merge moves.
    """

    def __init__(
        self, posterior: Posterior, schedule: Sequence[Repeated], pairs: FloatArray | None, as_printed: bool
    ) -> None:
        self._posterior = posterior
        self._schedule = tuple(schedule)
        self._problem = make_problem(posterior)
        nothing = np.zeros(0, dtype=np.int64)
        self._no_moves = Schedule(nothing, nothing, nothing, True, *_prior_terms(posterior, self._problem))
        groups = _grouped(schedule) or [[]]
        self._segments = [self._segment(group, schedule, pairs, as_printed) for group in groups]
        self._has_guests = any(segment.guests for segment in self._segments)
        self._sizes = axis_sizes(posterior, len(schedule))
        # Whether an iteration is one Metropolis step, whose proposal can be told.
        metropolis = [made for made in schedule if not made.move.is_sweep]
        self.reports = len(schedule) == len(metropolis) == 1 and metropolis[0].repeats == 1
        self._generator = np.random.Generator(np.random.PCG64(0))
        self.iteration = 0
        self._workspace: AnyWorkspace
        self._codes: dict[str, Code] = {}  # By loop.
        self._seconds = 0.0  # Longest that an interpreted iteration has taken.
        # Compiled code lets other threads run meanwhile: one that saves the chain waits for the block's end.
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the lock and the machine code, for pickles and copies."""
        with self._lock:
            kept = {name: value for name, value in self.__dict__.items() if name != "_lock"}
            return {**kept, "_codes": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take everything, with a lock of its own, and coordinates that the chain can move."""
        self.__dict__.update(state, _lock=threading.RLock())
        if self._posterior.centre == "unknown" or len(self._posterior.gaps):
            self._problem = make_problem(self._posterior)
            self.load(self.state())
        else:  # A copied view can be written to: another type, for which all would be compiled again.
            self._problem = self._problem._replace(origin=self._posterior.coordinates[:0])

    def _segment(
        self, places: Sequence[int], schedule: Sequence[Repeated], pairs: FloatArray | None, as_printed: bool
    ) -> _Segment:
        moves = [schedule[place] for place in places]
        loop = moves[0].move.loop if moves else __name__
        options = [made.move.options(as_printed) for made in moves]
        known = [] if loop == _AS_GUESTS else moves
        kernels = import_module(loop).KERNELS if known else {}
        compiled = self._no_moves._replace(
            kinds=np.array([kernels[made.move.kernel] for made in known], dtype=np.int64),
            repeats=np.array([made.repeats for made in known], dtype=np.int64),
            places=np.array(places, dtype=np.int64),
            begins=not places or places[0] == 0,
        )
        needed = pairs if any(made.move.needs_distances for made in moves) else None
        if loop == _AS_GUESTS:
            nothing = np.zeros((0, 0)) if needed is None else needed
            return _Segment(loop, compiled, nothing, guests=tuple(zip(places, moves, options, strict=True)))
        given = next((option for option in options if option is not None), None)
        return _Segment(loop, compiled, import_module(loop).make_memory(needed), given)

    def load(self, state: State) -> None:
        """Put the chain into a state; an interrupt is held back, so that it is there as a whole."""
        with self._lock, interrupts_deferred():
            self._workspace = state.workspace(self._problem)
            self._generator.bit_generator.state = state.generator
            self.iteration = state.iteration
            self._forget()

    def state(self) -> State:
        """Copy the state that the chain is in."""
        with self._lock:
            own, posterior, packed = self._workspace, self._posterior, np.empty(0)
            if isinstance(own, OwnWorkspace):
                form = {"I": own.sigma[0, 0], "II": own.sigma[0], "III": own.sigma}[posterior.model]
                packed = pack_sigma(form, posterior.model)
                packed = np.append(
                    packed, own.centre[: posterior.n_features * (posterior.centre == "unknown")]
                )
            if len(posterior.gaps):
                packed = np.append(packed, own.rows[-posterior.n_objects :][tuple(posterior.gaps.T)])
            return State(
                labels=own.labels.copy(),
                theta_index=int(own.integers[at.THETA]),
                log_concentration=float(own.reals[at.LOG_CONCENTRATION]),
                iteration=self.iteration,
                generator=copy.deepcopy(dict(self._generator.bit_generator.state)),
                nu_index=int(own.integers[at.NU]),
                sigma=packed,
            )

    def advance(
        self, rows: int, thin: int = 1, wanted: int = at.NOTHING, room: int = 0
    ) -> tuple[Records, Outcome]:
        """Advance by rows × thin iterations; return a record of every thin-th, and the last proposal.

        What is `wanted` of that is NOTHING, a REPORT (or True), or an ACCOUNT with `room` for so many notes.
        """
        while not self.prepare():
            self.wait()
        records = make_records(rows, self._sizes)
        outcome = make_outcome(self._posterior.n_objects, int(wanted), room)
        with self._lock:
            for segment, part, count, every in self._turns(records, rows, thin):
                with interrupts_deferred():
                    if segment.loop == _AS_GUESTS:
                        self._advance_guests(segment, part, outcome, count, every)
                        continue
                    loop, arguments = self._call(segment, part, outcome, count, every)
                    if self._is_compiled(segment):
                        loop(*arguments)
                    else:
                        started = time.thread_time()  # Others that keep the machine busy do not count.
                        interpreted(loop)(*arguments)
                        self._seconds = max(self._seconds, time.thread_time() - started)
            self.iteration += rows * thin
        return records, outcome

    def _call(
        self, segment: _Segment, records: Records, outcome: Outcome, rows: int, thin: int
    ) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """The loop that runs a segment, and its arguments."""
        rest = (segment.schedule, records, outcome, rows, thin, self._generator)
        run: tuple[Callable[..., None], tuple[Any, ...]] = import_module(segment.loop).call(
            self._problem, self._workspace, segment.memory, segment.options, rest
        )
        return run

    def _turns(self, records: Records, rows: int, thin: int) -> Iterator[tuple[_Segment, Records, int, int]]:
        """Calls that make up a block: segment, records, how many of them, and iterations for each."""
        first = self._segments[0]
        if len(self._segments) > 1:
            for row in range(rows):
                single = _rows_of(records, row)
                for _ in range(thin):
                    for segment in self._segments:
                        before = int(single.acceptances.sum())
                        yield segment, single, 1, 1
                        if int(single.acceptances.sum()) != before:
                            self._forget(keep=segment)
            return
        done = 0
        while done < rows * thin and not self._is_compiled(first):
            yield first, _rows_of(records, done // thin), 1, 1
            done += 1
        if done % thin:
            yield first, _rows_of(records, done // thin), 1, thin - done % thin
        begun = -(-done // thin)
        if begun < rows:
            yield first, _rows_of(records, begun, rows) if begun else records, rows - begun, thin

    # Machine code.

    def trials(self) -> dict[str, tuple[Callable[..., None], tuple[Any, ...]]]:
        """The calls that would run one iteration, by loop, for those who compile them ahead."""
        records, outcome = make_records(1, self._sizes), make_outcome(self._posterior.n_objects)
        own = [segment for segment in self._segments if segment.loop != _AS_GUESTS]
        return {segment.loop: self._call(segment, records, outcome, 1, 1) for segment in own}

    def prepare(self) -> bool:
        """Have machine code made where there is none yet; say whether a block can be run now.

        Compiled it can be run in any case, and interpreted where an iteration takes no longer than one likes
        to wait.
        """
        known = [self._is_compiled(segment) for segment in self._segments]  # All of them begin now.
        return all(known) or self.may_interpret

    @property
    def may_interpret(self) -> bool:
        """Whether an interpreted iteration is quick enough not to wait for the compiler."""
        return not must_wait() and max(self._seconds, self._guess()) <= _PATIENCE

    def wait(self, seconds: float = 0.1) -> None:
        """Wait a little for machine code."""
        for code in self._codes.values():
            code.wait(seconds)

    @property
    def is_compiled(self) -> bool:
        """Whether no iteration will be interpreted, as far as is known; nothing is looked for."""
        return all(code.is_known for code in self._codes.values())

    def _is_compiled(self, segment: _Segment) -> bool:
        """Whether a segment runs compiled; if not, have its loop compiled."""
        if self._has_guests:
            return True
        if segment.loop not in self._codes:
            self._codes[segment.loop] = code_for(*self.trials()[segment.loop])
        return self._codes[segment.loop].is_at_hand()

    def _guess(self) -> float:
        """Seconds that an interpreted iteration may take, to a factor of two or so; as measured."""
        n_objects, n_features = self._problem.coordinates.shape
        width = n_features**2 if self._problem.model == 3 else n_features
        n_clusters = int(self._workspace.integers[at.CLUSTERS])
        micro = 5.0 * n_objects
        for made in self._schedule:
            if made.move.is_sweep:
                micro += made.repeats * n_objects * (200.0 + width * (10.0 + 0.4 * n_clusters))
            else:
                micro += 0.2 * n_objects**2 if made.move.needs_distances else n_objects * (20.0 + width)
        return 1e-6 * micro

    def _advance_guests(
        self, segment: _Segment, records: Records, outcome: Outcome, rows: int, thin: int
    ) -> None:
        """What the compiled loops do, for moves that they do not know: θ and λ, the moves, the record."""
        problem, workspace, rng = self._problem, self._workspace, self._generator
        alone = segment.schedule._replace(begins=False)
        for row in range(rows):
            single = _rows_of(records, row)
            for _ in range(thin):
                if segment.schedule.begins:
                    advance_by_likelihood(problem, workspace, segment.schedule, single, outcome, 1, 1, rng)
                for place, made, options in segment.guests:
                    for _ in range(made.repeats):
                        accepted = made.move.kernel(problem, workspace, segment.memory, options, outcome, rng)
                        if made.move.is_sweep:
                            single.proposals[0, place] += problem.coordinates.shape[0]
                        elif accepted >= 0:
                            single.proposals[0, place] += 1
                        single.acceptances[0, place] += max(accepted, 0)
            advance_by_likelihood(problem, workspace, alone, single, outcome, 1, 1, rng)

    def _forget(self, keep: _Segment | None = None) -> None:
        for segment in self._segments:
            if segment is not keep and segment.loop != _AS_GUESTS:
                import_module(segment.loop).forget(segment.memory)


def _prior_terms(posterior: Posterior, problem: AnyProblem) -> tuple[float, float, float, FloatArray]:
    """Shape, rate, normaliser and counts of a `Schedule`; the counts reach as far as the kernels allow."""
    prior, n_objects = posterior.concentration, posterior.n_objects
    if isinstance(prior, Gamma):
        log_normaliser = math.lgamma(prior.shape) - prior.shape * math.log(prior.rate)
        return prior.shape, prior.rate, log_normaliser, np.empty(0)
    if prior is not None:
        return 0.0, 0.0, float(log_rising_factorial(prior, n_objects)), np.empty(0)
    impossible = np.flatnonzero(problem.log_prior[at.COUNT_STEP] == -np.inf)
    most = min(int(impossible[0]) if impossible.size else n_objects, n_objects)
    return 0.0, 0.0, 0.0, np.array(posterior.count_weights(most))


def _grouped(schedule: Sequence[Repeated]) -> list[list[int]]:
    """Places of the moves, grouped so that each group suits one loop and, compiled, one set of options."""
    groups: list[list[int]] = []
    for place, made in enumerate(schedule):
        group = groups[-1] if groups else []
        present = [schedule[other] for other in group]
        together = bool(present) and present[0].move.loop == made.move.loop
        if together and made.move.loop != _AS_GUESTS:
            options = [other.move.options() for other in (*present, made)]
            together = len({given for given in options if given is not None}) <= 1
        if together:
            group.append(place)
        else:
            groups.append([place])
    return groups


def _rows_of(records: Records, begin: int, end: int | None = None) -> Records:
    """Some rows of the records, by default one, as records."""
    rows = slice(begin, begin + 1 if end is None else end)
    return records._replace(**{name: values[rows] for name, values in records._asdict().items()})
