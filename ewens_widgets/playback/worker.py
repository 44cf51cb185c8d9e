"""Does some work in the background of a notebook, step by step, and shows how far it is.

The little sibling of the player, for teaching widgets whose work is no Markov chain: the same asyncio task,
the same pace of frames and acknowledgements, but nothing is recorded, and there is no past to look back at.
Commands return at once and may be given from any thread. Other work takes the place of the old at any time,
so that the latest settings win.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from ewens_widgets.playback.display import FrameThrottle
from ewens_widgets.playback.engine import INTERRUPTED
from ewens_widgets.playback.loop import BackgroundTask
from ewens_widgets.playback.pacing import FrameSlots, Pacing
from ewens_widgets.playback.player import check_count, check_speed
from ewens_widgets.playback.work import BlockSizer

__all__ = ["Tick", "TickView", "Work", "Worker", "WorkerStatus"]


class Work(Protocol):
    """Something to be done in small steps."""

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to do."""

    def advance(self, steps: int) -> int:
        """Do up to so many steps; return how many were done."""


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """Whether steps are being done; and a sentence where there is something to say."""

    is_running: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    """Asks the views to show the work as it is now; the number is acknowledged once that is painted."""

    number: int
    status: WorkerStatus


class TickView(Protocol):
    """Anything that shows work. It is called on the event loop, so it must not wait for anything."""

    def show(self, tick: Tick) -> None:
        """Show the work as it is now."""


class _Engine:
    """The worker without threads and event loop; everything here happens on one thread."""

    def __init__(self, work: Work, speed: float | None, pacing: Pacing, clock: Callable[[], float]) -> None:
        self.work = work
        self.throttle = FrameThrottle(pacing)
        self.views: list[TickView] = []
        self.status = WorkerStatus(is_running=False)
        self.error: Exception | None = None
        self.number = 0
        self.clock = clock
        self.slots = FrameSlots(speed, 1.0 / pacing.frames_per_second)
        self._pacing = pacing
        self._sizer = BlockSizer()
        self._steps: int | None = None  # Steps left before the next pause; None is no limit.
        self._is_stale = self._is_urgent = True
        self._is_announced = False

    @property
    def flight(self) -> None:
        """Nothing is done on other threads."""
        return

    @property
    def has_work(self) -> bool:
        return self.status.is_running or (self._is_stale and self.throttle.has_viewers(self.clock()))

    def play(self) -> None:
        if self.work.is_done:
            return
        if not self.status.is_running or self._steps is not None:
            self.slots.restart(self.clock())
        self._steps = None
        self._enter(True)

    def step(self, count: int) -> None:
        if self.work.is_done:
            return
        left = self._steps if self.status.is_running and self._steps is not None else 0
        self._steps = left + count
        self._enter(True)

    def pause(self, message: str = "") -> None:
        if self.status.is_running:
            self._steps = None
            self._enter(False, message)

    def replace(self, work: Work) -> None:
        """Turn to other work; a pause and a fault belonged to the old."""
        self.work = work
        self.error = None
        self._sizer.restart()
        self._enter(self.status.is_running and not work.is_done)

    def set_speed(self, speed: float | None) -> None:
        self.slots.change(speed, self.clock())

    def outdate(self) -> None:
        """Note that there is something new to show."""
        self._is_stale = self._is_urgent = True

    def turn(self) -> float:
        """Work for a moment; return for how long to rest."""
        try:
            # Nothing is begun before the first picture is out: the first step may take long.
            if self.status.is_running and self._is_announced:
                self._work()
        except KeyboardInterrupt:
            self.pause(INTERRUPTED)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong ends in a state that the user can see
            self._fail(error)
        self._send_if_due()
        self._is_announced |= not (self._is_stale and self.throttle.has_viewers(self.clock()))
        if self.status.is_running and not self._awaits_slot:
            return self._pacing.nap
        now = self.clock()
        wait = max(self.throttle.wait_seconds(now), self.slots.wait_seconds(now) if self._is_paced else 0.0)
        return min(max(wait, self._pacing.nap), self._pacing.poll)

    def run(self, count: int) -> None:
        """Do up to so many steps without rest and without frames; let faults raise."""
        self._is_announced = True
        self._steps = None
        done = 0
        try:
            while done < count and not self.work.is_done:
                done += self._advance(min(count - done, self._sizer.size(self._pacing.work)))
        finally:
            self._enter(False)

    def send(self) -> None:
        """Show the work to all views, whether or not anybody looks."""
        started = self.clock()
        self.number += 1
        tick = Tick(self.number, self.status)
        self._is_stale = self._is_urgent = False
        try:
            for view in tuple(self.views):
                view.show(tick)
        finally:
            self.throttle.sent(self.number, started, self.clock() - started)

    def _work(self) -> None:
        started = self.clock()
        while self.status.is_running and not self._awaits_slot:
            left = self._pacing.work - (self.clock() - started)
            if left <= 0.0:
                break
            most = self._sizer.size(left)
            if self._steps is not None:
                most = min(most, self._steps)
            elif self._is_paced:
                most = min(most, self.slots.remaining)
            self._advance(max(1, most))
            if self._steps == 0 or self.work.is_done:
                self.pause()

    def _advance(self, most: int) -> int:
        started = self.clock()
        done = self.work.advance(most)
        if done:
            self._sizer.measured(done, self.clock() - started)
        self.slots.count(done)
        if self._steps is not None:
            self._steps -= min(done, self._steps)
        self._is_stale = True
        if not done and not self.work.is_done:
            raise RuntimeError(f"{type(self.work).__name__} did nothing, although it is not done")
        return done

    def _send_if_due(self) -> None:
        now = self.clock()
        is_open, is_due = self.throttle.is_open(now), self._is_paced and self.slots.is_due(now)
        if is_open and self._is_stale and (is_due or self._is_urgent or not self._is_paced):
            try:
                self.send()
            except Exception as error:  # noqa: BLE001 - as above
                self._fail(error)
        if is_due and (is_open or not self.throttle.has_viewers(now)):
            self.slots.refill(now)

    @property
    def _is_paced(self) -> bool:
        return self.status.is_running and self._steps is None and self.slots.speed is not None

    @property
    def _awaits_slot(self) -> bool:
        return self._is_paced and self.slots.remaining == 0

    def _fail(self, error: Exception) -> None:
        self.error = error
        self._steps = None
        self._enter(False, f"{type(error).__name__}: {error}")

    def _enter(self, is_running: bool, message: str = "") -> None:
        self.status = WorkerStatus(is_running, message)
        self.outdate()


class Worker:
    """Play, pause, step; or just run what is to be done.

    Parameters
    ----------
    work
        What is to be done.
    speed
        Steps a frame, below 1 for slow motion, or None for as fast as it goes.
    pacing
        Lengths of work and rest, frame rate, time-outs.
    clock, sleep
        The time, and how to wait for it; tests put their own here.
    """

    def __init__(
        self,
        work: Work,
        *,
        speed: float | None = None,
        pacing: Pacing | None = None,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        pacing = Pacing() if pacing is None else pacing
        self._engine = _Engine(work, check_speed(speed), pacing, clock)
        self._background = BackgroundTask(self._engine, pacing, sleep)
        self.post = self._background.mailbox.post

    @property
    def status(self) -> WorkerStatus:
        """Whether steps are being done."""
        return self._engine.status

    @property
    def error(self) -> Exception | None:
        """What went wrong, if something did; other work makes it forgotten."""
        return self._engine.error

    @property
    def has_loop(self) -> bool:
        """Whether there is an event loop to work on."""
        return self._background.mailbox.capture_loop()

    def play(self) -> None:
        """Work until paused or done."""
        self._background.need_loop("play")
        self.post(self._engine.play)

    def step(self, steps: int = 1) -> None:
        """Do so many more steps."""
        count = check_count("steps", steps)
        self._background.need_loop("step")
        self.post(lambda: self._engine.step(count))

    def pause(self) -> None:
        """Let the work rest."""
        self.post(self._engine.pause)

    def replace(self, work: Work) -> None:
        """Turn to other work, at once; if work was under way, so is this."""
        self.post(lambda: self._engine.replace(work))

    def set_speed(self, speed: float | None) -> None:
        """Change the steps a frame; None is as fast as it goes."""
        checked = check_speed(speed)
        self.post(lambda: self._engine.set_speed(checked))

    def run_sync(self, steps: int = 2**31) -> None:
        """Do up to so many steps in the foreground, with or without a loop; raise what the work raises."""
        self._background.run_sync(check_count("steps", steps), "run")

    async def wait(self, timeout: float | None = None) -> WorkerStatus:
        """Wait until all commands are carried out and nothing is being done, or until the time is over."""
        await self._background.wait(timeout)
        if self.error is not None:
            raise self.error
        return self.status

    def attach(self, view: TickView) -> None:
        """Add a view; it is shown the work now and with every frame, after the views before it."""

        def attach() -> None:
            self._engine.views.append(view)
            view.show(Tick(self._engine.number, self.status))

        self.post(attach)

    def outdate(self) -> None:
        """Have a frame sent as soon as the viewers can take it, as something else than the work changed."""
        self.post(self._engine.outdate)

    def refresh(self) -> None:
        """Show the work to all views now, whether or not anybody looks."""
        self.post(self._engine.send)

    def viewer_attached(self, viewer: str = "viewer") -> None:
        """Note that somebody looks."""

        def greet() -> None:
            if self._engine.throttle.greet(viewer):
                self._engine.outdate()

        self.post(greet)

    def acknowledge(self, frame_number: int, viewer: str = "viewer") -> None:
        """Note that a viewer has painted this frame, and so all before it."""

        def acknowledge() -> None:
            if self._engine.throttle.acknowledge(frame_number, viewer):
                self._engine.outdate()

        self.post(acknowledge)

    def viewer_left(self, viewer: str = "viewer") -> None:
        """Note that a viewer has gone."""
        self.post(lambda: self._engine.throttle.leave(viewer))

    def close(self) -> None:
        """Stop, and let go of all views and viewers."""

        def close() -> None:
            self._engine.pause()
            self._engine.views.clear()
            self._engine.throttle.clear()

        self.post(close)
