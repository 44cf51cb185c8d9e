"""A source and its recorder, kept in step: no iteration is run without being recorded.

Iterations are run in blocks. If the user interrupts the kernel while a block is being recorded, the rest of
that block is recorded before the interrupt goes on its way, because the source has run it already.

A block may also be launched: a helper thread runs it and records it aside, while the record proper is looked
at and shown. Nothing of it is seen before it has landed.
"""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor

from ewens_widgets.playback.flight import Flight
from ewens_widgets.playback.interfaces import (
    Absorbing,
    EventRecorder,
    RecordingAside,
    SelfRecording,
    Snapshots,
    Source,
)
from ewens_widgets.sampling.event import Event
from ewens_widgets.sampling.interrupts import interrupts_deferred

__all__ = ["RecordedChain"]


class RecordedChain:
    """Runs a source and keeps every event.

    Parameters
    ----------
    source
        Yields the events.
    recorder
        Keeps them. It may already hold the iterations that led to where the source is.

    Attributes
    ----------
    flight
        The block that was launched and has not landed yet.
    """

    def __init__(self, source: Source, recorder: EventRecorder) -> None:
        self.source = source
        self.recorder = recorder
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

    def advance(self, count: int) -> int:
        """Run and record up to `count` iterations as one block; return how many there were."""
        self.land()
        self._check_in_step()
        before = len(self.recorder)
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
                self._settle(events)
                raise
        return len(self.recorder) - before

    @property
    def can_launch(self) -> bool:
        """Whether blocks can be run on another thread."""
        return isinstance(self.source, RecordingAside) and isinstance(self.recorder, Absorbing)

    def launch(self, count: int, helper: Executor, clock: Callable[[], float]) -> None:
        """Have a block of `count` iterations run on a helper thread; `land` records it."""
        self.land()
        self._check_in_step()
        if not isinstance(self.source, RecordingAside) or not isinstance(self.recorder, Absorbing):
            raise TypeError("this source and this recorder cannot run a block on another thread")
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

    def _settle(self, events: Iterator[Event]) -> None:
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
