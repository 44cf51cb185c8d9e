"""What playback asks of the things it connects: a source of events, a recorder, and views.

These are protocols: any object with the right methods will do, so tests and teaching widgets can play
something other than a sampler.

How many iterations to run in one go, so that a block takes about the time it is given.

A block of iterations that a helper thread runs while the event loop shows the ones before it.

Compiled code releases the interpreter's lock, so the two really go on at the same time. The block is recorded
aside: nobody sees anything of it before the event loop takes it over.

A source and its recorder, kept in step: no iteration is run without being recorded.

Iterations are run in blocks. If the user interrupts the kernel while a block is being recorded, the rest of
that block is recorded before the interrupt goes on its way, because the source has run it already.

A block may also be launched: a helper thread runs it and records it aside, while the record proper is looked
at and shown. Nothing of it is seen before it has landed.

Runs a chain in blocks that fit the time they are given.
"""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from ewens_widgets.sampling.compiled import COMPILED
from ewens_widgets.sampling.driver import interrupts_deferred
from ewens_widgets.sampling.event import Event

__all__ = [
    "Absorbing",
    "EventRecorder",
    "Flight",
    "RecordedChain",
    "RecordingAside",
    "SelfRecording",
    "Snapshots",
    "Source",
    "Work",
    "helper_thread",
]


class Work(Protocol):
    """Something to be done in small steps."""

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to do."""

    def advance(self, steps: int) -> int:
        """Do up to so many steps; return how many were done."""


class Source(Protocol):
    """A chain that yields one event an iteration, such as `Sampler`."""

    @property
    def iteration(self) -> int:
        """Number of the last iteration done, 0 at the start."""

    def events(self, n: int, block: int | None = None) -> Iterator[Event]:
        """Run `n` iterations, `block` of them at a time, and yield one event for each."""

    def reset(self) -> None:
        """Go back to the initial state."""


@runtime_checkable
class Snapshots(Protocol):
    """A source that can tell where it is without moving: frames before the first iteration need that."""

    def snapshot(self) -> Event:
        """Event that describes the current state; its iteration is that of the source."""


@runtime_checkable
class SelfRecording(Protocol):
    """A source that can write a block straight into a recorder: at full speed no event has to be made."""

    def record(self, n: int, recorder: "EventRecorder") -> None:
        """Run `n` iterations as one block and record them.

        Interrupted, the source is where the record ends.
        """


@runtime_checkable
class RecordingAside(SelfRecording, Protocol):
    """One whose blocks may run on another thread: they touch only the source and the given recorder."""

    records_aside: bool


@runtime_checkable
class Absorbing(Protocol):
    """A recorder that takes over what another thread has recorded meanwhile, while it is looked at itself."""

    def sibling(self, capacity: int) -> "EventRecorder":
        """Return an empty recorder of the same chain for so many iterations; make room for them here too."""

    def absorb(self, other: Any) -> None:  # noqa: ANN401 - what `sibling` gave
        """Record what a sibling has recorded; interrupted, all of it or nothing."""


class EventRecorder(Protocol):
    """Where every iteration is kept, such as `Recorder`.

    Its arrays have one row for each iteration recorded so far, are read-only, and cost nothing to look at.
    What a view of them shows never changes, whatever is recorded later.
    """

    def __len__(self) -> int: ...

    @property
    def iterations(self) -> NDArray[Any]:
        """Numbers of the iterations."""

    @property
    def labels(self) -> NDArray[Any]:
        """Canonical labels."""

    @property
    def n_clusters(self) -> NDArray[Any]:
        """Numbers of clusters."""

    @property
    def theta(self) -> NDArray[Any]:
        """Variance ratios."""

    @property
    def theta_weights(self) -> NDArray[Any]:
        """Exact conditionals of θ on its grid."""

    @property
    def log_posterior(self) -> NDArray[Any]:
        """Unnormalised log posteriors."""

    @property
    def concentration(self) -> NDArray[Any]:
        """Concentrations λ."""

    @property
    def move_names(self) -> tuple[str, ...]:
        """Names of the schedule's moves."""

    @property
    def proposals(self) -> NDArray[Any]:
        """Proposals, a column a move."""

    @property
    def acceptances(self) -> NDArray[Any]:
        """Acceptances, a column a move."""

    def append(self, event: Event) -> None:
        """Keep one event."""

    def event(self, index: int) -> Event:
        """Return the event at a place, 0 being the first one kept."""

    def clear(self) -> None:
        """Forget everything."""


def helper_thread() -> Executor | None:
    """Return a thread to run blocks on; it starts when first used, and ends when nobody has it any more.

    None where it would gain nothing: interpreted code holds the lock, and a browser starts no threads.
    """
    if not COMPILED or sys.platform == "emscripten":
        return None
    return ThreadPoolExecutor(1, thread_name_prefix="ewens_widgets playback")


class Flight:
    """A block under way.

    Parameters
    ----------
    source
        What is run.
    aside
        An empty recorder for this block.
    count
        Iterations of the block.
    helper
        The thread that runs it.
    clock
        Seconds from an arbitrary start.

    Attributes
    ----------
    future
        Done when the block is.
    seconds
        How long it took, known by then.
    """

    def __init__(
        self,
        source: SelfRecording,
        aside: EventRecorder,
        count: int,
        helper: Executor,
        clock: Callable[[], float],
    ) -> None:
        self.seconds = 0.0
        self._aside = aside
        self._source = source
        self._count = count
        self._clock = clock
        self._thread: int | None = None
        self.future: Future[None] = helper.submit(self._run)

    def result(self) -> EventRecorder:
        """Wait for the end of the block; return its record, or raise what the source raised."""
        if threading.get_ident() == self._thread and not self.future.done():
            # A player whose loop is gone may be collected as garbage on this very thread.
            raise RuntimeError("a block cannot wait for itself")
        self.future.result()
        return self._aside

    def _run(self) -> None:
        self._thread = threading.get_ident()
        started = self._clock()
        self._source.record(self._count, self._aside)
        self.seconds = self._clock() - started


class RecordedChain:
    """Runs a source and keeps every event.

    Parameters
    ----------
    source
        Yields the events.
    recorder
        Keeps them. It may already hold the iterations that led to where the source is.
    target
        The iteration at which the work is done.

    Attributes
    ----------
    flight
        The block that was launched and has not landed yet.
    """

    def __init__(self, source: Source, recorder: EventRecorder, target: int) -> None:
        self.source = source
        self.recorder = recorder
        self.target = target
        self.is_exhausted = False
        self._latest: Event | None = None
        self._block_source = source if isinstance(source, SelfRecording) else None
        self.flight: Flight | None = None
        self._mark_start()

    def _mark_start(self) -> None:
        self._start = self.source.iteration - len(self.recorder)
        is_at_start = len(self.recorder) == 0
        self._initial = self.source.snapshot() if is_at_start and isinstance(self.source, Snapshots) else None
        self._in_hand: Event | None = None
        self._look_up_latest()

    @property
    def first_iteration(self) -> int:
        """The earliest iteration that can be shown: the start, unless nothing is known of it."""
        return self._start + 1 if self._initial is None and len(self.recorder) else self._start

    @property
    def iteration(self) -> int:
        """Last iteration recorded."""
        return self._start + len(self.recorder)

    @property
    def latest(self) -> Event | None:
        """The newest event, or a description of the initial state if the source can give one."""
        return self._initial if self._latest is None else self._latest

    def event(self, iteration: int) -> Event | None:
        """Return what was recorded at an iteration."""
        if iteration == self.iteration:
            return self.latest
        if iteration == self._start:
            return self._initial
        return self.recorder.event(iteration - self._start - 1)

    def n_draws(self, iteration: int) -> int:
        """Return how many draws are recorded up to an iteration."""
        return iteration - self._start

    @property
    def is_done(self) -> bool:
        """Whether the target is reached, or the source has no more iterations."""
        return self.iteration >= self.target or self.is_exhausted

    def advance(self, steps: int) -> int:
        """Run and record up to so many iterations as one block; return how many there were."""
        self.land()
        self._check_in_step()
        before, count = len(self.recorder), min(steps, self.target - self.iteration)
        if count > 1 and self._block_source is not None:
            try:
                self._block_source.record(count, self.recorder)
            finally:
                self._look_up_latest()
        else:
            events = self.source.events(count, block=count)
            try:
                self._record(events)
            except KeyboardInterrupt:
                self._record_rest(events)
                raise
        done = len(self.recorder) - before
        self.is_exhausted = done == 0
        return done

    @property
    def can_launch(self) -> bool:
        """Whether blocks can be run on another thread."""
        return isinstance(self.source, RecordingAside) and isinstance(self.recorder, Absorbing)

    def launch(self, count: int, helper: Executor, clock: Callable[[], float]) -> None:
        """Have a block of up to `count` iterations run on a helper thread; `land` records it."""
        self.land()
        self._check_in_step()
        if not isinstance(self.source, RecordingAside) or not isinstance(self.recorder, Absorbing):
            raise TypeError("this source and this recorder cannot run a block on another thread")
        count = min(count, self.target - self.iteration)
        aside = self.recorder.sibling(count)
        with interrupts_deferred():  # A block that nobody knows of would be lost.
            self.flight = Flight(self.source, aside, count, helper, clock)

    def land(self) -> int:
        """Wait for the block that was launched, if one was, and record it; return its length."""
        if self.flight is None:
            return 0
        try:
            aside = self.flight.result()
        except Exception:
            self.flight = None
            raise
        # Not twice: an interrupt may have come when it was recorded and not yet forgotten.
        if self.source.iteration != self.iteration and isinstance(self.recorder, Absorbing):
            self.recorder.absorb(aside)
        self._look_up_latest()
        self.flight = None
        self._check_in_step()
        return len(aside)

    def reset(self) -> None:
        """Take the source back to its start and forget the record."""
        with contextlib.suppress(Exception):  # What went wrong in the block is forgotten with it.
            self.land()
        self.flight = None
        self.source.reset()
        self.recorder.clear()
        self._mark_start()

    def _record(self, events: Iterator[Event]) -> None:
        for event in events:
            self._in_hand = event
            self.recorder.append(event)
            self._latest = event

    def _record_rest(self, events: Iterator[Event]) -> None:
        if self._in_hand is not None and self._in_hand.iteration > self.iteration:
            self.recorder.append(self._in_hand)
        self._record(events)
        self._look_up_latest()
        self._check_in_step()

    def _look_up_latest(self) -> None:
        self._latest = self.recorder.event(len(self.recorder) - 1) if len(self.recorder) else None

    def _check_in_step(self) -> None:
        if self.source.iteration != self.iteration:
            raise RuntimeError(
                f"the source is at iteration {self.source.iteration}, its record at {self.iteration}: it was "
                "moved from outside, or an interrupt came at a bad moment; reset to start again"
            )
