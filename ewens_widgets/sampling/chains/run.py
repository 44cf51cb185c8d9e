"""The driver: hands out chunks, takes them in as they come, and deals with those that do not.

Each chain has a `Course`: where it stands, what it has given so far, and how often it was unlucky. A course
has at most one task out. What comes back is taken if it begins where the course stands, and is thrown away
otherwise: a chunk that was given up and run again may still arrive, with the same draws.

Chunks are long enough to be worth sending and short enough to lose little and to show progress (`Pace`).
A chunk whose worker dies, hangs or answers nothing is run again, a few times; an error of the chain itself
is not, as it would be raised again. Then the other chains are finished up to the goal, and the error names
the chain and carries all draws.
"""

import contextlib
import queue
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.chains.checkpoint import Checkpoint, Place
from ewens_widgets.sampling.chains.plan import Check, Plan, Until
from ewens_widgets.sampling.chains.result import Chains
from ewens_widgets.sampling.chains.task import Failure, MissingData, Piece, Task, forget_samplers, run_task
from ewens_widgets.sampling.chains.workers import ChainsError, Workers, failed_chains_error
from ewens_widgets.sampling.draws import BlockSizer, draw_bytes
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.state import State
from ewens_widgets.sampling.trace import Trace

__all__ = ["Chunk", "Course", "Pace", "Run", "Share"]

_SECONDS = 1.0
_LONGEST = 2**40  # what bounds a chunk is its time and its draws
_DRAWS_BYTES = 64 * 2**20


class Share(NamedTuple):
    """The part of a chain that a chunk covers: iterations of burn-in, then draws."""

    burn_in: int
    draws: int


class Pace:
    """Iterations for the next chunk of a chain: a fixed number, or about a second's worth.

    Parameters
    ----------
    posterior
        What is sampled; the draws of a chunk are kept below 64 MB.
    fixed
        Iterations of a chunk, or None.
    """

    def __init__(self, posterior: Posterior, fixed: int | None) -> None:
        self._fixed = fixed
        # The first chunk of a worker includes loading compiled code: its time says little, and is forgotten.
        self._sizer = BlockSizer(largest=_LONGEST, first=64, growth=4, newest=1.0)
        self._most_draws = max(1, _DRAWS_BYTES // draw_bytes(posterior))

    def share(self, plan: Plan, state: State, goal: int) -> Share:
        """Part of a chain to run next, from a state towards `goal` draws."""
        size, left = self._fixed or self._sizer.size(_SECONDS), max(0, plan.burn_in - state.iteration)
        if left >= size:
            return Share(size, 0)
        # A draw is never cut in two: after the burn-in there is room for at least one.
        room = max((size - left) // plan.thin, 0 if left else 1)
        most = max(1, size // plan.thin) if self._fixed else min(max(1, size // plan.thin), self._most_draws)
        return Share(left, min(goal - plan.kept(state), room, most))

    def learn(self, iterations: int, seconds: float) -> None:
        """Take the measured time of a chunk into account."""
        if iterations:
            self._sizer.measured(iterations, seconds)


@dataclass(frozen=True, eq=False)
class Chunk:
    """What a run yields whenever a chunk is done.

    Attributes
    ----------
    chain
        Number of the chain, counted from 0.
    trace
        The draws of this chunk; none during burn-in.
    iteration
        Iterations that the chain has done.
    kept
        Draws of the chain so far.
    wanted
        Draws of each chain to be made before the run ends or, with a stopping rule, is checked next.
    start
        What the chain started from.
    """

    chain: int
    trace: Trace
    iteration: int
    kept: int
    wanted: int
    start: str


class Course:
    """The course of one chain.

    Parameters
    ----------
    number
        Number of the chain.
    posterior
        What it samples.
    state
        Where it stands.
    pace
        How long its chunks are.
    """

    def __init__(self, number: int, posterior: Posterior, state: State, pace: Pace) -> None:
        self.number = number
        self.state = state
        self.pace = pace
        self.ticket: str | None = None  # Of the task that is out, if one is.
        self.send_data = True
        self.faults = 0
        self.failure: str | None = None
        self.details = ""  # Where an error of the chain itself came from.
        self._posterior = posterior
        self._traces: list[Trace] = []

    def take(self, piece: Piece, trace: Trace) -> None:
        """Go on to the state that a task brought back, and keep its draws."""
        self.pace.learn(piece.state.iteration - self.state.iteration, piece.seconds)
        self.keep(trace, piece.state)
        self.ticket, self.faults, self.send_data = None, 0, False

    def keep(self, trace: Trace, state: State) -> None:
        """Add draws that lead up to a state."""
        self._traces.append(trace)
        self.state = state

    def trace(self) -> Trace:
        """All draws so far."""
        if not self._traces:
            return Recorder(self._posterior).trace()
        if len(self._traces) > 1:
            self._traces = [Trace.concatenate(self._traces)]
        return self._traces[0]


_LONGEST_WAIT = 1.0  # Seconds; some systems let an interrupt through only between waits.
_LIGHT = 2**18  # Bytes of data below which it is not worth asking whether a worker has them.


@dataclass(eq=False)
class _Errand:
    """A task that is out."""

    course: Course
    future: "Future[Any]"
    iteration: int
    handed_out: float
    seen_running: float | None = None

    def out_since(self, last_arrival: float) -> float:
        """When it began, or, as far as the executor tells, still waited for a worker."""
        if self.seen_running is None and self.future.running():
            self.seen_running = time.monotonic()
        return self.seen_running or max(self.handed_out, last_arrival)


@dataclass(eq=False)
class Run:
    """A run of several chains.

    Attributes
    ----------
    plan
        What to do.
    workers
        Who does it.
    chunk
        Iterations of a chunk, or None for about a second's worth.
    timeout
        Seconds that a chunk may take, or None.
    tries
        How often a chunk is run at most.
    checkpoint
        Where states and draws are kept, or None.
    """

    plan: Plan
    workers: Workers
    chunk: int | None = None
    timeout: float | None = None
    tries: int = 3
    checkpoint: Checkpoint | None = None
    checks: list[Check] = field(default_factory=list, init=False)
    goal: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Put all chains at their first state, or where the checkpoint has them."""
        posterior = self.plan.setup.posterior
        self.courses = [
            Course(number, posterior, state, Pace(posterior, self.chunk))
            for number, state in enumerate(self.plan.first)
        ]
        self._arrivals: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._flights: dict[str, _Errand] = {}
        self._last_arrival = time.monotonic()
        if self.checkpoint is not None:
            for course in self.courses:
                for trace, state in self.checkpoint.read(course.number):
                    course.keep(trace, state)

    def chains(self) -> Chains:
        """What there is so far, of all chains."""
        traces = tuple(course.trace()[: self.goal] for course in self.courses)
        reached = self.checks[-1].reached if self.checks else None
        if isinstance(self.plan.goal, Until) and reached is None:
            reached = False
        return Chains(traces, self.plan.starts, reached, tuple(self.checks))

    @property
    def iterations(self) -> int:
        """Iterations done so far by all chains together."""
        return sum(course.state.iteration for course in self.courses)

    def stream(self) -> Iterator[Chunk]:
        """Run all chains to the goal, yielding each chunk as it is done."""
        try:
            for goal in self._goals():
                self.goal = goal
                yield from self._run_to_goal()
                self._raise_failures()
        finally:
            self._give_up()

    def _goals(self) -> Iterator[int]:
        if not isinstance(self.plan.goal, Until):
            yield self.plan.goal
            return
        for draws in self.plan.goal.counts():
            yield draws
            numbers = self.chains().diagnostics(similarity=False)
            self.checks.append(self.plan.goal.judge(draws, numbers.worst_rhat, numbers.least_ess))
            if self.checks[-1].reached:
                return

    def _run_to_goal(self) -> Iterator[Chunk]:
        self._hand_out()
        while any(course.ticket for course in self.courses):
            chunk = self._next_chunk()
            # The worker that has just become free gets its next task before anybody looks at this one.
            self._hand_out()
            if chunk is not None:
                yield chunk

    def _kept(self, course: Course) -> int:
        return self.plan.kept(course.state)

    def _hand_out(self) -> None:
        """Give every chain that is not at its goal a task.

        A chunk at its last try runs alone: where processes die together, nobody else can then have been the
        reason, and it is the right chain that is named.
        """
        idle = [
            course
            for course in self.courses
            if course.ticket is None and course.failure is None and self._kept(course) < self.goal
        ]
        suspects = [course for course in idle if 0 < course.faults == self.tries - 1]
        if not suspects:
            for course in idle:
                self._submit(course)
        elif not any(course.ticket for course in self.courses):
            self._submit(suspects[0])

    def _submit(self, course: Course) -> None:
        plan, setup = self.plan, self.plan.setup
        share = course.pace.share(plan, course.state, self.goal)
        ticket = secrets.token_hex(8)
        send = course.send_data or setup.n_bytes < _LIGHT
        sent = setup if send else None
        task = Task(setup.key, sent, course.state, share.burn_in, share.draws, plan.thin, ticket)
        course.ticket = ticket
        try:
            future = self.workers.submit(run_task, task)
        except Exception as fault:
            course.ticket = None
            raise ChainsError(
                f"the executor takes no more work ({type(fault).__name__}: {fault}). Give a fresh one"
                f"{self._way_on()} The draws so far are in the attribute .chains of this error.",
                self.chains(),
            ) from fault
        now = time.monotonic()
        self._flights[ticket] = _Errand(course, future, course.state.iteration, now)
        future.add_done_callback(lambda _: self._arrivals.put(ticket))

    def _next_chunk(self) -> Chunk | None:
        """Wait for the next task to come back, or for one to be overdue."""
        try:
            ticket = self._arrivals.get(timeout=self._wait())
        except queue.Empty:
            self._look_for_overdue()
            return None
        self._last_arrival = time.monotonic()
        flight = self._flights.pop(ticket)
        course = flight.course
        if flight.iteration != course.state.iteration or course.failure is not None:
            return None  # A late one, which was run again meanwhile: its draws are known.
        result = _result(flight.future)
        if isinstance(result, Piece):
            return self._take(course, result)
        if course.ticket == ticket:
            self._deal_with(course, result)
        return None

    def _take(self, course: Course, piece: Piece) -> Chunk:
        trace = piece.trace(self.plan.setup.posterior)
        if self.checkpoint is not None:
            self._write(self.checkpoint, Place(course.number, course.state), trace, piece.state)
        course.take(piece, trace)
        start = self.plan.starts[course.number]
        return Chunk(course.number, trace, course.state.iteration, self._kept(course), self.goal, start)

    def _write(self, checkpoint: Checkpoint, place: Place, trace: Trace, state: State) -> None:
        try:
            checkpoint.write(place, trace, state)
        except OSError as fault:
            raise ChainsError(
                f"the checkpoint could not be written ({fault}). What was written before is whole: make room "
                f"or mend the path, then go on with ew.resume_chains({str(checkpoint.path)!r}). The draws "
                "so far are also in the attribute .chains of this error.",
                self.chains(),
            ) from fault

    def _deal_with(self, course: Course, result: MissingData | Failure | BaseException) -> None:
        course.ticket, course.send_data = None, True
        if isinstance(result, Failure):
            course.failure, course.details = f"it raised {result.message}", result.details
        elif not isinstance(result, MissingData):
            self._count_fault(course, f"{type(result).__name__}: {result}")

    def _count_fault(self, course: Course, reason: str) -> None:
        course.faults += 1
        if course.faults >= self.tries:
            tried = "once" if self.tries == 1 else f"{self.tries} times"
            course.failure = (
                f"its chunk from iteration {course.state.iteration} failed {tried}, at last with {reason}"
            )

    def _wait(self) -> float:
        if self.timeout is None:
            return _LONGEST_WAIT
        return min(_LONGEST_WAIT, max(self.timeout / 4.0, 0.01))

    def _look_for_overdue(self) -> None:
        if self.timeout is None:
            return
        now = time.monotonic()
        out = {ticket: flight for ticket, flight in self._flights.items() if flight.course.ticket == ticket}
        overdue = [
            flight for flight in out.values() if now - flight.out_since(self._last_arrival) > self.timeout
        ]
        for flight in overdue:
            flight.course.ticket, flight.course.send_data = None, True
            self._count_fault(flight.course, f"no answer within {self.timeout:g} seconds")
            flight.future.cancel()
        if overdue and self.workers.stop_hung():
            # Those who shared the processes with it are innocent: they run again without a mark.
            for flight in out.values():
                flight.course.ticket, flight.course.send_data = None, True

    def _raise_failures(self) -> None:
        failed = [course for course in self.courses if course.failure is not None]
        if not failed:
            return
        others = [course for course in self.courses if course.failure is None]
        starts = tuple(self.plan.starts[course.number] for course in others)
        error = failed_chains_error(
            {course.number: str(course.failure) for course in failed},
            Chains(tuple(course.trace() for course in others), starts),
            {course.number: course.trace() for course in failed},
            f"Mend the cause and run it again{self._way_on()}",
        )
        for course in failed:
            if course.details:
                error.add_note(f"In the worker of chain {course.number}:\n{course.details}")
        raise error

    def _way_on(self) -> str:
        if self.checkpoint is None:
            return ", with checkpoint=... to go on from where it stopped."
        return f": ew.resume_chains({str(self.checkpoint.path)!r}) goes on from where it stopped."

    def _give_up(self) -> None:
        """Call off what is still out."""
        for flight in list(self._flights.values()):
            with contextlib.suppress(Exception):  # An executor may be gone by now; then so is the task.
                flight.future.cancel()
        self._flights.clear()
        if self.checkpoint is not None:
            self.checkpoint.close()
        forget_samplers(self.plan.setup.key)


def _result(future: "Future[Any]") -> Any:  # noqa: ANN401 - whatever came back
    """What the task returned, or the exception that came instead."""
    try:
        return future.result(timeout=0)
    except Exception as fault:  # noqa: BLE001 - of the executor, see `run_task`
        return fault
