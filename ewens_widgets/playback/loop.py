"""The engine of playback: it does some work in turns on the event loop of a notebook, and shows it.

Work is anything with ``advance(steps)`` and ``is_done``: a chain with its record, or what a teaching widget
computes. One asyncio task runs it while there is something to do. A turn of the task works for about 10 ms
and sends a frame, if one is due. Then the task leaves the loop to others for eight empty turns and a short
rest. With fewer empty turns, messages to and from the browser lag behind; in a thread or a blocking cell,
some kernels would not answer at all. All work is done in turns, so between two turns the work, its record and
its status agree. Where a turn has to wait for the pages, the rest is longer and ends with the next command
(an acknowledgement is one).

Commands may come from any thread, because handlers of browser messages may run on a thread of their own
(ipykernel 7 has subshells). From there a command is queued for the loop that was running before. On the
loop's own thread it is carried out at once. If a turn is under way (a view may give commands), it follows
when the turn is over. Methods without an underscore may be called from any thread; the others run on the
loop's thread.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, Protocol

from ewens_widgets.arguments import check_count, check_positive
from ewens_widgets.playback.display import (
    Display,
    FanOut,
    FrameT,
    FrameTimes,
    Pacing,
    RateMeter,
    Screen,
    StatusT,
)
from ewens_widgets.playback.frame import PlayerState, Tick, WorkerStatus
from ewens_widgets.sampling.draws import BlockSizer

INTERRUPTED = "Interrupted. Play continues from here."
_SHUT_DOWN = "The event loop was shut down. Play continues from here."
_PATIENCE = 30.0  # seconds to wait for a busy event loop

# Enough for blocks to double from one step to the longest; a bound, because a clock may stand still.
_MOST_BLOCKS = 16


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs on this thread, if there is one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Mailbox:
    """A queue of commands and the loop that carries them out, in the order in which they were given.

    Parameters
    ----------
    after
        Called on the loop's thread when commands have been carried out.
    """

    def __init__(self, after: Callable[[], None] | None = None) -> None:
        self._after = after
        self._commands: deque[Callable[[], object]] = deque()
        self._is_held = False
        self.loop = running_loop()

    def __bool__(self) -> bool:
        return bool(self._commands)

    @property
    def is_elsewhere(self) -> bool:
        """Whether the loop runs on another thread than this one."""
        return self.loop is not None and self.loop.is_running() and running_loop() is not self.loop

    def capture_loop(self) -> bool:
        """Make sure that there is a running loop: the one captured before, or else this thread's."""
        if self.loop is None or not self.loop.is_running():
            self.loop = running_loop()
        return self.loop is not None

    def post(self, command: Callable[[], object]) -> None:
        """Have a command carried out on the loop's thread: now if this is that thread, soon if not."""
        self._commands.append(command)
        if self.loop is not None and self.is_elsewhere:
            # If the loop was closed in the meantime, commands are carried out here.
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self.deliver)
                return
        self.deliver()

    def deliver(self) -> None:
        """Carry out the queued commands, unless they are held."""
        if self._is_held or not self._commands:
            return
        with self.held():
            while self._commands:
                self._commands.popleft()()
        if self._after is not None:
            self._after()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep commands in the queue during something that they must not disturb."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False


def _checked(speed: float | None) -> float | None:
    return None if speed is None else check_positive("speed", speed)


class Work(Protocol):
    """Something to be done in small steps.

    An optional method `prepare` starts what has to be done first, and returns whether a step can be done now.
    """

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to do."""

    def advance(self, steps: int) -> int:
        """Do at most `steps` steps; return how many were done."""


class Engine(Generic[FrameT, StatusT]):
    """Does some work and shows it; `Player` and `Worker` define its status and its frames.

    Parameters
    ----------
    work
        What is to be done.
    fan_out
        The views and status listeners.
    speed
        Steps per frame, or None for as fast as possible.
    pacing
        Durations of work and rest, frame rate, time-outs, clock.

    Attributes
    ----------
    work
        What is being done.
    status
        Progress of the work; a frozen value, safe to read from any thread.
    error
        The exception that stopped the work, or None.
    """

    _longest_step: int | None = None  # largest block while stepping

    def __init__(
        self, work: Work, fan_out: FanOut[FrameT, StatusT], speed: float | None, pacing: Pacing | None
    ) -> None:
        self._pacing = pacing = Pacing() if pacing is None else pacing
        self._clock, self._sleep = pacing.clock, pacing.sleep
        self.mailbox = Mailbox(after=self._resume)
        self.post = self.mailbox.post
        self.error: Exception | None = None
        self.work = work
        self._fan_out = fan_out
        self._display = Display(pacing)
        self._frame_times = FrameTimes(_checked(speed), 1.0 / pacing.frames_per_second)
        self._sizer = BlockSizer()
        self._meter = RateMeter()
        self._state = PlayerState.IDLE
        self._message = ""
        self._steps = 0  # requested and not yet run
        self._to_end = False  # at full speed, whatever the speed
        # Whether the first block, which may compile, is over; and whether a frame has announced it.
        self._is_prepared = self._is_announced = False
        self._task: asyncio.Task[None] | None = None
        self._called: asyncio.Future[None] | None = None  # done when a command has come since the turn began
        self.status = self._make_status()

    def _make_status(self) -> StatusT:
        raise NotImplementedError

    def _make_frame(self, number: int, status: StatusT) -> FrameT:
        raise NotImplementedError

    # Commands, from any thread.

    @property
    def speed(self) -> float | None:
        """Iterations (or steps) per frame, below 1 for slow motion, or None for as fast as possible."""
        return self._frame_times.speed

    @speed.setter
    def speed(self, speed: float | None) -> None:
        checked = _checked(speed)

        def change() -> None:
            self._frame_times.change(checked, self._clock())
            self._publish()

        self.post(change)

    def play(self) -> None:
        """Run from the present until paused or done."""
        self._need_loop("play")
        self.post(self._play)

    def step(self, iterations: int = 1) -> None:
        """Run this many more iterations (or steps); fewer if the end or a pause comes first."""
        check_count("iterations", iterations, least=1)
        self._need_loop("step")

        def step() -> None:
            if self._may_run():
                self._steps += iterations
                self._to_end = False
                self._enter(PlayerState.STEPPING)

        self.post(step)

    def pause(self, *, wait: bool = False) -> None:
        """Stop as soon as the command has reached the loop.

        Parameters
        ----------
        wait
            Return only then, where this is called from another thread than the loop's.
        """
        self.post(self._halt)
        if wait and self.mailbox.is_elsewhere:
            is_done = threading.Event()
            self.post(is_done.set)
            if not is_done.wait(_PATIENCE):
                raise RuntimeError("the event loop is busy, so the chain cannot be stopped; try again")

    def attach(self, view: Screen[FrameT]) -> None:
        """Add a view behind the others, and show it the latest state and all later frames."""

        def attach() -> None:
            self._fan_out.attach(view)
            self._fan_out.show_to(view, self.current_frame())

        self.post(attach)

    def detach(self, view: Screen[FrameT]) -> None:
        """Remove a view, if it is attached."""
        self.post(lambda: self._fan_out.detach(view))

    def viewer_attached(self, viewer: str = "viewer") -> None:
        """Register a message of a viewer: a page was opened, became visible, or is still visible."""
        self.post(lambda: self._display.greet(viewer))

    def acknowledge(self, frame_number: int, viewer: str = "viewer") -> None:
        """Count this frame and all before it as painted by a viewer."""
        self.post(lambda: self._display.acknowledge(frame_number, viewer))

    def viewer_left(self, viewer: str = "viewer") -> None:
        """Remove a viewer: its page was closed or hidden."""
        self.post(lambda: self._display.leave(viewer))

    def refresh(self) -> None:
        """Show the latest state to all views now, with or without a viewer; for example for an export."""

        def refresh() -> None:
            with self._guarded():
                self._send()

        self.post(refresh)

    def outdate(self) -> None:
        """Have a frame sent as soon as possible, because something else than the work has changed."""
        self.post(lambda: self._display.outdate(urgently=True))

    def close(self) -> None:
        """Stop, and remove all views and viewers."""

        def close() -> None:
            self._halt()
            self._fan_out.clear()
            self._display.clear()

        self.post(close)

    async def wait(self, timeout: float | None = None) -> StatusT:
        """Wait until nothing runs; return the status, or raise the error that stopped the work.

        Cancelling this pauses the work, so that interrupting a notebook cell that waits stops it. The
        time-out, in seconds, does not pause it.
        """
        deadline = None if timeout is None else self._clock() + timeout
        try:
            # Polling works on whichever loop and thread this runs.
            while self.mailbox or self._state.is_running:
                if deadline is not None and self._clock() >= deadline:
                    break
                await self._sleep(self._pacing.poll)
        except asyncio.CancelledError:
            self.post(lambda: self._halt(INTERRUPTED))
            raise
        if self.error is not None:
            raise self.error
        return self.status

    def current_frame(self) -> FrameT:
        """Return a frame without sending it, for static pictures; on the event loop's thread only."""
        return self._make_frame(self._display.number, self._make_status())

    # What commands do, on the loop's thread.

    def _need_loop(self, command: str) -> None:
        if not self.mailbox.capture_loop():
            raise RuntimeError(
                f"{command}() works in the background and needs a running event loop, as notebooks have; in "
                f"a plain script call {command}_sync(), or sample() of the sampler, or use asyncio.run"
            )

    def _play(self, *, to_end: bool = False) -> None:
        is_playing = self._state is PlayerState.PLAYING and self._to_end == to_end
        if not is_playing and self._may_run():
            self._steps = 0
            self._to_end = to_end
            self._frame_times.restart(self._clock())
            self._enter(PlayerState.PLAYING)

    def _halt(self, message: str = "") -> None:
        """Stop running, if something runs."""
        if self._state.is_running:
            self._enter(PlayerState.PAUSED, message)

    def _run_in_foreground(self, steps: int, command: str) -> None:
        """Run at most `steps` steps without rest and without frames; errors and interrupts raise."""
        if self.mailbox.is_elsewhere:
            raise RuntimeError(
                f"{command}_sync() was called off the event loop's thread; call {command}() there"
            )

        def run() -> None:
            with self._guarded(reraise=True):
                self._halt()
                if not self._may_run():
                    return
                self._to_end = self._is_announced = True
                self._enter(PlayerState.PLAYING)
                left = steps
                while left > 0 and self._state.is_running:
                    left -= self._run_block(self._pacing.work, left)
                self._halt()

        self.post(run)

    def _may_run(self) -> bool:
        """Whether there is something to run; if so, begin to measure the rate."""
        if self.work.is_done:
            return False
        if not self._state.is_running:
            self._meter.restart(self._clock())
            self._is_announced = self._is_prepared
        return True

    def _take_up(self, work: Work) -> None:
        """Change to other work, whose steps may take more or less time."""
        self.work = work
        self._sizer.restart()
        self._display.outdate(urgently=True)

    # Turns.

    @property
    def _has_work(self) -> bool:
        return self._state.is_running or self._display.is_outdated

    def _resume(self) -> None:
        """End the rest, or start the task: commands have been carried out."""
        loop, called, self._called = running_loop(), self._called, None
        if called is not None and not called.done() and not called.get_loop().is_closed():
            called.set_result(None)
        if loop is None or loop is not self.mailbox.loop or not self._has_work:
            return
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._run(), name="ewens_widgets playback")

    async def _run(self) -> None:
        task = asyncio.current_task()
        try:
            while self._has_work:
                # Before the turn: commands that come in the middle of it are carried out at its end.
                called = self._called = asyncio.get_running_loop().create_future()
                await self._rest(self._turn(), called)
        finally:
            # Finished, cancelled, or destroyed with its loop. An abandoned task must not stop the next one.
            if self._task is task:
                self._task = None
                self._halt(_SHUT_DOWN)

    async def _rest(self, seconds: float, called: "asyncio.Future[None]") -> None:
        for _ in range(self._pacing.yields):
            await asyncio.sleep(0)
        if seconds <= self._pacing.nap:
            await self._sleep(seconds)
        elif not called.done():
            sleep = asyncio.create_task(self._sleep(seconds), name="ewens_widgets rest")
            try:
                await asyncio.wait((sleep, called), return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not sleep.get_loop().is_closed():
                    sleep.cancel()

    def _turn(self) -> float:
        """Work for some milliseconds; return how long to rest."""
        rest = self._pacing.nap
        try:
            with self.mailbox.held():
                with self._guarded():
                    if self._state.is_running and self._is_announced and can_work(self.work):
                        self._run_blocks()
                    self._publish()
                    self._send_if_due()
                    if self._state.is_running and not self._is_announced:
                        # The first block may compile: a frame with that message is sent before it is run.
                        self._is_announced = not self._display.is_outdated
                rest = self._rest_seconds()
            self.mailbox.deliver()
        except KeyboardInterrupt:  # between two turns; if it got through, it would end the event loop
            self._halt(INTERRUPTED)
        return rest

    def _run_blocks(self) -> None:
        started = self._clock()
        for _ in range(_MOST_BLOCKS):
            left = self._pacing.work - (self._clock() - started)
            if left <= 0.0 or not self._state.is_running or self._awaits_frame:
                break
            self._run_block(left)

    def _run_block(self, seconds: float, most: int | None = None) -> int:
        """Run a block of steps that should take at most these seconds; return how many steps."""
        limits = [self._sizer.size(seconds), most]
        if self._state is PlayerState.STEPPING:
            limits += [self._steps, self._longest_step]
        elif self._is_paced:
            limits += [self._frame_times.remaining]
        started = self._clock()
        done = self.work.advance(min(limit for limit in limits if limit is not None))
        now = self._clock()
        if not self._is_prepared:
            # The first block may have included compilation, so its time does not predict the next one.
            self._is_prepared = True
            self._meter.restart(now)
        elif done:
            self._meter.add(done, now)
            self._sizer.measured(done, now - started)
        self._display.outdate()
        self._frame_times.count(done)
        self._steps -= min(done, self._steps)
        if self.work.is_done:
            self._enter(PlayerState.FINISHED)
        elif done == 0:
            raise RuntimeError(
                f"{type(self.work).__name__}.advance() did no step although is_done is False; it must do at "
                "least one"
            )
        elif self._state is PlayerState.STEPPING and self._steps == 0:
            self._enter(PlayerState.PAUSED)
        return done

    def _rest_seconds(self) -> float:
        if self._state.is_running and not self._awaits_frame:
            return self._pacing.nap
        longest = self._pacing.longest_rest
        if self._display.is_full:
            return longest
        frame = self._frame_times.wait_seconds(self._clock()) if self._is_paced else 0.0
        return min(max(self._display.wait_seconds(), frame, self._pacing.nap), longest)

    def _send_if_due(self) -> None:
        display, is_open = self._display, self._display.is_open
        is_due = self._is_paced and self._frame_times.is_due(self._clock())
        if is_open and (is_due or display.is_urgent or (display.is_stale and not self._is_paced)):
            self._send()
        if is_due and (is_open or not display.is_watched):
            self._frame_times.refill(self._clock())

    def _send(self) -> None:
        """Show the latest state to every view."""
        self._publish()
        self._display.send(lambda number: self._fan_out.show(self._make_frame(number, self.status)))

    @property
    def _is_paced(self) -> bool:
        """Whether steps wait for frames."""
        is_playing = self._state is PlayerState.PLAYING and self._is_prepared
        return is_playing and not self._to_end and self._frame_times.speed is not None

    @property
    def _awaits_frame(self) -> bool:
        return self._is_paced and self._frame_times.remaining == 0

    # States.

    def _enter(self, state: PlayerState, message: str = "", error: Exception | None = None) -> None:
        if state is not PlayerState.STEPPING:
            self._steps = 0
        self._state = state
        self._message = message
        self.error = error
        self._publish()

    def _publish(self) -> None:
        """Make a new status, and call the listeners if more than its counts has changed."""
        old, self.status = self.status, self._make_status()
        if old.headline != self.status.headline:
            self._display.outdate(urgently=True)
            self._fan_out.publish(self.status)

    @contextlib.contextmanager
    def _guarded(self, *, reraise: bool = False) -> Iterator[None]:
        """Turn an interrupt into a pause, and any error into the state FAILED with a message."""
        try:
            yield
        except KeyboardInterrupt:
            self._halt(INTERRUPTED)
            if reraise:
                raise
        except Exception as error:
            self._enter(PlayerState.FAILED, f"{type(error).__name__}: {error}", error)
            if reraise:
                raise


def can_work(work: object) -> bool:
    """Whether work, or a source, can do a step now; without a method `prepare` it always can."""
    prepare: Callable[[], bool] | None = getattr(work, "prepare", None)
    return prepare is None or prepare()


class Worker(Engine[Tick, WorkerStatus]):
    """Plays, pauses and steps any work, for teaching widgets; parameters as for `Engine`.

    Nothing is recorded, so there is no looking back. Other work can replace the old at any time, so that the
    latest settings apply. A view that raises stops the work.
    """

    def __init__(self, work: Work, *, speed: float | None = None, pacing: Pacing | None = None) -> None:
        super().__init__(work, FanOut(strict=True), speed, pacing)

    def run_sync(self, steps: int = 2**31) -> None:
        """Do at most `steps` steps in the foreground, with or without a loop; errors of the work raise."""
        self._run_in_foreground(check_count("steps", steps, least=1), "run")

    def replace(self, work: Work) -> None:
        """Change to other work at once; if the old work was running, the new one runs."""

        def replace() -> None:
            self._take_up(work)
            is_running = self._state.is_running and not work.is_done
            self._enter(self._state if is_running else PlayerState.PAUSED)

        self.post(replace)

    def refresh(self) -> None:
        """Show the work to all views now, with or without a viewer; errors of a view raise."""
        self.post(self._send)

    def _make_status(self) -> WorkerStatus:
        return WorkerStatus(self._state.is_running, self._message)

    def _make_frame(self, number: int, status: WorkerStatus) -> Tick:
        return Tick(number, status)
