"""What is played: a source of events and its recorder, kept in step, as work that the engine can do.

A source runs in blocks, ``source.advance(count)``; a block is a sequence of events, and goes into the record
as a whole, ``recorder.extend(block)``. That is the one stream of events: playing, stepping, several chains at
once and recorded draws that are shown again all go this way. `Source` and `EventRecorder` are protocols: any
object with the right methods will do, so tests and teaching widgets can play something other than a sampler.

No iteration is run without being recorded, and none is recorded twice. Room for a block is made before it is
run, and an interrupt is held back from the start of a block until it is in the record, since the source has
moved on by then and nobody else knows of it.

A block may also be launched: a helper thread runs it, while the event loop shows the ones before it. Compiled
code releases the interpreter's lock, so the two really go on at the same time. Nothing of the block is seen
before it has landed, that is, before the event loop has recorded it.
"""

import contextlib
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Protocol

from ewens_widgets.sampling.compiled import COMPILED
from ewens_widgets.sampling.draws import Block
from ewens_widgets.sampling.driver import interrupts_deferred
from ewens_widgets.sampling.event import Event

__all__ = [
    "EventRecorder",
    "Flight",
    "RecordedChain",
    "Source",
    "Work",
    "compilation",
    "helper_thread",
    "prepare",
]


class Work(Protocol):
    """Something to be done in small steps."""

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to do."""

    def advance(self, steps: int) -> int:
        """Do up to so many steps; return how many were done."""


class Source(Protocol):
    """A chain that runs in blocks of events, such as `Sampler`.

    One that is compiled may also have a method `prepare`, which says whether a block can be run now, and an
    attribute `compilation`, what there is to say about that in a status line.
    """

    @property
    def runs_aside(self) -> bool:
        """Whether `advance` may be called on another thread: it touches nothing but the source."""

    @property
    def iteration(self) -> int:
        """Number of the last iteration done, 0 at the start."""

    def advance(self, n: int) -> Block:
        """Run up to `n` iterations as one block; an empty one says that there are no more.

        Interrupted, nothing has happened.
        """

    def snapshot(self) -> Event | None:
        """Describe the current state without moving, for frames before any iteration; None if unknown."""

    def reset(self) -> None:
        """Go back to the initial state."""


def prepare(source: Source) -> bool:
    """Have a source get ready in the background if it has to; say whether a block can be run now."""
    asked: Callable[[], bool] | None = getattr(source, "prepare", None)
    return asked is None or asked()


def compilation(source: Source) -> str:
    """What a source has to say about its compiler; nothing if there is none."""
    return str(getattr(source, "compilation", ""))


class EventRecorder(Protocol):
    """Where every iteration is kept, such as `Recorder`."""

    def __len__(self) -> int: ...

    def reserve(self, extra: int) -> None:
        """Make room for so many more iterations, so that keeping them cannot fail for lack of memory."""

    def extend(self, block: Block) -> None:
        """Keep a block; interrupted, all of it or nothing."""

    def event(self, index: int) -> Event:
        """Return the event at a place, 0 being the first one kept."""

    def block(self) -> Block:
        """Give all that is kept as one block, without copying it; later iterations do not change it."""

    def clear(self) -> None:
        """Forget everything."""


class RecordedChain:
    """Work: runs a source towards a target and keeps every event.

    Parameters
    ----------
    source
        Gives the events.
    recorder
        Keeps them. It may already hold the iterations that led to where the source is.
    target
        The iteration at which the work is done.

    Attributes
    ----------
    is_exhausted
        Whether the source had no more iterations when it was last asked.
    flight
        The block that was launched and has not landed yet.
    """

    def __init__(self, source: Source, recorder: EventRecorder, target: int) -> None:
        self.source = source
        self.recorder = recorder
        self.target = target
        self.is_exhausted = False
        self.flight: Flight | None = None
        self._mark_start()

    def _mark_start(self) -> None:
        self._start = self.source.iteration - len(self.recorder)
        # Where there is a record, the source has left its initial state: it cannot be described any more.
        self._initial = None if len(self.recorder) else self.source.snapshot()
        self._newest: Block | None = None

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
        if not len(self.recorder):
            return self._initial
        # The block itself tells more than its record: what was proposed, and weights in full precision.
        return self._newest[-1] if self._newest else self.recorder.event(len(self.recorder) - 1)

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
        count = self._prepare(steps)
        with interrupts_deferred():
            return self._record(self.source.advance(count))

    def launch(self, steps: int, helper: Executor, clock: Callable[[], float]) -> None:
        """Have a block of up to so many iterations run on a helper thread; `land` records it."""
        self.land()
        if not self.source.runs_aside:
            raise TypeError("this source cannot run a block on another thread")
        count = self._prepare(steps)
        with interrupts_deferred():  # A block that nobody knows of would be lost.
            self.flight = Flight(self.source, count, helper, clock)

    def land(self) -> int:
        """Wait for the block that was launched, if one was, and record it; return its length."""
        if self.flight is None:
            return 0
        try:
            block = self.flight.result()
        except Exception:
            self.flight = None
            raise
        # Not twice: an interrupt may have come when it was recorded and not yet forgotten.
        if self.source.iteration != self.iteration or not block:
            self._record(block)
        self.flight = None
        self._check_in_step()
        return len(block)

    def reset(self) -> None:
        """Take the source back to its start and forget the record."""
        with contextlib.suppress(Exception):  # What went wrong in the block is forgotten with it.
            self.land()
        self.flight = None
        self.source.reset()
        self.recorder.clear()
        self._mark_start()

    def _prepare(self, steps: int) -> int:
        """Make room for a block; return how many iterations it may have."""
        self._check_in_step()
        count = min(steps, self.target - self.iteration)
        self.recorder.reserve(count)
        return count

    def _record(self, block: Block) -> int:
        """Record a block that the source has run, whatever interrupts that."""
        before, interrupt = len(self.recorder), None
        try:
            self.recorder.extend(block)
        except KeyboardInterrupt as fault:
            interrupt = fault
            if len(self.recorder) == before:
                self.recorder.extend(block)
        self._newest = block
        self.is_exhausted = not block
        if interrupt is not None:
            raise interrupt  # only now: whoever catches it finds source and record in step
        return len(block)

    def _check_in_step(self) -> None:
        if self.source.iteration != self.iteration:
            raise RuntimeError(
                f"the source is at iteration {self.source.iteration}, its record at {self.iteration}: it was "
                "moved from outside, or an interrupt came at a bad moment; reset to start again"
            )


def helper_thread() -> Executor | None:
    """Return a thread to run blocks on; it starts when first used, and ends when nobody has it any more.

    None where it would gain nothing: interpreted code holds the lock, and a browser starts no threads.
    """
    if not COMPILED or sys.platform == "emscripten":
        return None
    return ThreadPoolExecutor(1, thread_name_prefix="ewens_widgets playback")


class Flight:
    """A block under way on a helper thread.

    Parameters
    ----------
    source
        What is run.
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

    def __init__(self, source: Source, count: int, helper: Executor, clock: Callable[[], float]) -> None:
        self.seconds = 0.0
        self._source = source
        self._count = count
        self._clock = clock
        self._thread: int | None = None
        self.future: Future[Block] = helper.submit(self._run)

    def result(self) -> Block:
        """Wait for the end of the block and return it, or raise what the source raised."""
        if threading.get_ident() == self._thread and not self.future.done():
            # A player whose loop is gone may be collected as garbage on this very thread.
            raise RuntimeError("a block cannot wait for itself")
        return self.future.result()

    def _run(self) -> Block:
        self._thread = threading.get_ident()
        started = self._clock()
        block = self._source.advance(self._count)
        self.seconds = self._clock() - started
        return block
