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
import math
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ewens_widgets.arguments import check_count, check_positive
from ewens_widgets.playback.display import Display, FanOut, FrameTimes, Pacing, RateMeter, Screen
from ewens_widgets.playback.frame import PlayerState, Status, Tick
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


def can_work(work: object) -> bool:
    """Whether work, or a source, can do a step now; without a method `prepare` it always can."""
    prepare: Callable[[], bool] | None = getattr(work, "prepare", None)
    return prepare is None or prepare()


class Worker:
    """Plays, pauses and steps any work, and shows it; `Player` adds what a chain needs.

    Other work can replace the old at any time, so that the latest settings apply.

    Parameters
    ----------
    work
        What is to be done.
    speed
        Steps per frame, or None for as fast as possible.
    pacing
        Durations of work and rest, frame rate, time-outs, clock.
    strict
        Whether a view that raises stops the work; otherwise it is detached.

    Attributes
    ----------
    work
        What is being done.
    status
        Progress of the work; a frozen value, safe to read from any thread.
    error
        The exception that stopped the work, or None.
    """

    status: Status
    _longest_step: int | None = None  # largest block while stepping

    def __init__(
        self, work: Work, *, speed: float | None = None, pacing: Pacing | None = None, strict: bool = True
    ) -> None:
        self._pacing = pacing = Pacing() if pacing is None else pacing
        self._clock, self._sleep = pacing.clock, pacing.sleep
        self.mailbox = Mailbox(after=self._resume)
        self.post = self.mailbox.post
        self.error: Exception | None = None
        self.work = work
        self._views: FanOut[Screen] = FanOut(lambda view, frame: view.show(frame), strict=strict)
        self._listeners: FanOut[Callable[[Any], object]] = FanOut(
            lambda call, status: call(status), strict=strict
        )
        self._display = Display(pacing)
        self._frame_times = FrameTimes(_checked(speed), 1.0 / pacing.frames_per_second)
        self._sizer = BlockSizer()
        self._meter = RateMeter()
        self._message = ""
        self._left = 0.0  # steps yet to be run: none at rest, infinitely many while playing
        self._to_end = False  # at full speed, whatever the speed
        # Whether the first block, which may compile, is over; and whether a frame has announced it.
        self._is_prepared = self._is_announced = False
        self._task: asyncio.Task[None] | None = None
        self._called: asyncio.Future[None] | None = None  # done when a command has come since the turn began
        self.status = self._make_status()

    @property
    def _state(self) -> PlayerState:
        if self.error is not None:
            return PlayerState.FAILED
        if not self._left:
            return PlayerState.FINISHED if self.work.is_done else PlayerState.PAUSED
        if not self._is_prepared:
            return PlayerState.PREPARING
        return PlayerState.PLAYING if self._left == math.inf else PlayerState.STEPPING

    def _make_status(self) -> Status:
        return Status(self._state, message=self._message)

    def _make_frame(self, number: int, status: Any) -> Any:  # noqa: ANN401 - what the views show
        return Tick(number, status)

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
                self._to_end = False
                self._set_left(iterations + (0.0 if self._left == math.inf else self._left))

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

    def replace(self, work: Work) -> None:
        """Change to other work at once; if the old work was running, the new one runs."""

        def replace() -> None:
            self._take_up(work)
            self._set_left(0.0 if work.is_done else self._left)

        self.post(replace)

    def attach(self, view: Screen) -> None:
        """Add a view behind the others, and show it the latest state and all later frames."""
        if not callable(getattr(view, "show", None)):
            raise TypeError(f"a view needs a method show(frame), got {type(view).__name__}")

        def attach() -> None:
            self._views.add(view)
            self._views.tell_one(view, self.current_frame())

        self.post(attach)

    def detach(self, view: Screen) -> None:
        """Remove a view, if it is attached."""
        self.post(lambda: self._views.remove(view))

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
        """Show the latest state to all views now, with or without a viewer; errors of strict views raise."""
        self.post(self._send)

    def outdate(self) -> None:
        """Have a frame sent as soon as possible, because something else than the work has changed."""
        self.post(lambda: self._display.outdate(urgently=True))

    def close(self) -> None:
        """Stop, and remove all views and viewers."""

        def close() -> None:
            self._halt()
            self._views.clear()
            self._listeners.clear()
            self._display.clear()

        self.post(close)

    async def wait(self, timeout: float | None = None) -> Status:
        """Wait until nothing runs; return the status, or raise the error that stopped the work.

        Cancelling this pauses the work, so that interrupting a notebook cell that waits stops it. The
        time-out, in seconds, does not pause it.
        """
        deadline = None if timeout is None else self._clock() + timeout
        try:
            # Polling works on whichever loop and thread this runs.
            while self.mailbox or self._left:
                if deadline is not None and self._clock() >= deadline:
                    break
                await self._sleep(self._pacing.poll)
        except asyncio.CancelledError:
            self.post(lambda: self._halt(INTERRUPTED))
            raise
        if self.error is not None:
            raise self.error
        return self.status

    def current_frame(self) -> Any:  # noqa: ANN401 - a frame
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
        is_playing = self._left == math.inf and self._to_end == to_end
        if not is_playing and self._may_run():
            self._to_end = to_end
            self._frame_times.restart(self._clock())
            self._set_left(math.inf)

    def _halt(self, message: str = "") -> None:
        """Stop running, if something runs."""
        if self._left:
            self._set_left(0.0, message)

    def run_sync(self, steps: int = 2**31) -> None:
        """Do at most `steps` steps in the foreground, without rest and frames; errors raise."""
        check_count("steps", steps, least=1)
        if self.mailbox.is_elsewhere:
            raise RuntimeError(
                "a command that ends in _sync was called off the event loop's thread; give the command "
                "without _sync there"
            )

        def run() -> None:
            with self._guarded(reraise=True):
                self._halt()
                if not self._may_run():
                    return
                self._to_end = self._is_announced = True
                self._set_left(math.inf)
                left = steps
                while left > 0 and self._left:
                    left -= self._run_block(self._pacing.work, left)
                self._halt()

        self.post(run)

    def _may_run(self) -> bool:
        """Whether there is something to run; if so, begin to measure the rate."""
        if self.work.is_done:
            return False
        if not self._left:
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
        return bool(self._left) or self._display.is_outdated

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
                    if self._left and self._is_announced and can_work(self.work):
                        self._run_blocks()
                    self._publish()
                    self._send_if_due()
                    if self._left and not self._is_announced:
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
            if left <= 0.0 or not self._left or self._awaits_frame:
                break
            self._run_block(left)

    def _run_block(self, seconds: float, most: float = math.inf) -> int:
        """Run a block of steps that should take at most these seconds; return how many steps."""
        limits = [self._sizer.size(seconds), most, self._left]
        if self._left < math.inf:
            limits += [self._longest_step or math.inf]
        elif self._is_paced:
            limits += [self._frame_times.remaining]
        started = self._clock()
        done = self.work.advance(int(min(limits)))
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
        self._left -= done
        if not self._left or self.work.is_done:
            self._set_left(0.0)
        elif done == 0:
            raise RuntimeError(
                f"{type(self.work).__name__}.advance() did no step although is_done is False; it must do at "
                "least one"
            )
        return done

    def _rest_seconds(self) -> float:
        if self._left and not self._awaits_frame:
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
        self._display.send(lambda number: self._views.tell(self._make_frame(number, self.status)))

    @property
    def _is_paced(self) -> bool:
        """Whether steps wait for frames."""
        is_playing = self._left == math.inf and self._is_prepared
        return is_playing and not self._to_end and self._frame_times.speed is not None

    @property
    def _awaits_frame(self) -> bool:
        return self._is_paced and self._frame_times.remaining == 0

    def _set_left(self, left: float, message: str = "", error: Exception | None = None) -> None:
        self._left, self._message, self.error = left, message, error
        self._publish()

    def _publish(self) -> None:
        """Make a new status, and call the listeners if more than its counts has changed."""
        old, self.status = self.status, self._make_status()
        if old.headline != self.status.headline:
            self._display.outdate(urgently=True)
            self._listeners.tell(self.status)

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
            self._set_left(0.0, f"{type(error).__name__}: {error}", error)
            if reraise:
                raise
