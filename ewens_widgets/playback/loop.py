"""The engine of playback: some work, done turn by turn on the event loop of a notebook, and shown.

Work is anything with ``advance(steps)`` and ``is_done``: a chain with its record, or what a teaching widget
computes. One asyncio task gives it turns, as long as there is something to do. A turn works for about 10 ms
and sends a frame, if one is due and the viewers can take it; then the loop belongs to others for eight empty
turns and a nap. With fewer empty turns messages to and from the browser lag behind; without the task, in a
thread or a blocking cell, some kernels would not answer at all. At full speed the work may be done on a
helper thread: then a turn takes over what that has done, and launches its next block. Where there is nothing
to do but to wait for the pages, the rest is longer, and a command (an acknowledgement is one) ends it: many
kernels that looked every few milliseconds would keep each other and the browsers from their work.

Commands come from any thread, since handlers of browser messages may run on one of their own (ipykernel 7 has
subshells). There a command only joins a queue; the loop that was captured earlier takes it out. On the loop's
own thread it is carried out at once, unless a turn is under way (a view may give commands): then it follows
when the turn is over. A method marked `posted` is such a command; all other methods belong to the loop's
thread.
"""

import asyncio
import contextlib
import functools
import inspect
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from ewens_widgets.playback.display import Display, FanOut, FrameT, Screen, StatusT
from ewens_widgets.playback.frame import PlayerState
from ewens_widgets.playback.pacing import FrameTimes, Pacing, RateMeter, check_speed
from ewens_widgets.playback.work import Work
from ewens_widgets.sampling.draws import BlockSizer

__all__ = ["Engine", "Mailbox", "posted", "running_loop"]

INTERRUPTED = "Interrupted. Play continues from here."
_SHUT_DOWN = "The event loop was shut down. Play continues from here."

# Enough for blocks to double from one step to the longest; a clock that stands still must not trap us.
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
        self._commands: deque[Callable[[], None]] = deque()
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

    def post(self, command: Callable[[], None]) -> None:
        """Have a command carried out on the loop's thread: now if this is that thread, soon if not."""
        self._commands.append(command)
        if self.loop is not None and self.is_elsewhere:
            # A loop that was closed in the meantime takes nothing; then nobody else handles commands either.
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self.deliver)
                return
        self.deliver()

    def deliver(self) -> None:
        """Carry out the commands that wait, unless they are held."""
        if self._is_held or not self._commands:
            return
        with self.held():
            while self._commands:
                self._commands.popleft()()
        if self._after is not None:
            self._after()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let commands wait: something is going on that they must not disturb."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False


Owner = TypeVar("Owner", bound="Engine[Any, Any]")
Arguments = ParamSpec("Arguments")
Command = Callable[Concatenate[Owner, Arguments], None]


def posted(
    *, needs_loop: bool = False, **checks: Callable[[str, Any], object]
) -> Callable[[Command[Owner, Arguments]], Command[Owner, Arguments]]:
    """Make a method of an engine a command: it may be called on any thread, and is done on the loop's.

    Parameters
    ----------
    needs_loop
        Refuse it where no event loop runs: what it starts goes on in the background.
    checks
        For an argument, by its name: called with name and value, raises at once or returns what to use.
    """

    def decorate(method: Command[Owner, Arguments]) -> Command[Owner, Arguments]:
        signature = inspect.signature(method)

        @functools.wraps(method)
        def command(self: Owner, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
            given = signature.bind(self, *args, **kwargs)
            given.apply_defaults()
            for name, check in checks.items():
                given.arguments[name] = check(name, given.arguments[name])
            if needs_loop and not self.mailbox.capture_loop():
                raise RuntimeError(
                    f"{method.__name__}() works in the background and needs a running event loop, as "
                    f"notebooks have; in a plain script call {method.__name__}_sync(), or sample() of the "
                    "sampler, or use asyncio.run"
                )
            self.mailbox.post(lambda: method(*given.args, **given.kwargs))

        return command

    return decorate


class Engine(Generic[FrameT, StatusT]):
    """Does some work and shows it; `Player` and `Worker` say what the work, its status and its frames are.

    Parameters
    ----------
    work
        What is to be done.
    fan_out
        The views and status listeners.
    speed
        Steps a frame, or None for as fast as it goes.
    pacing
        Lengths of work and rest, frame rate, time-outs.
    clock, effort, sleep
        Seconds from an arbitrary start, seconds that a thread has worked for, and how to wait.

    Attributes
    ----------
    status
        Where the work is; a frozen value, safe to read from any thread.
    error
        What went wrong, if something did.
    """

    _longest_step: int | None = None  # Steps that are run at once when steps are asked for.

    def __init__(
        self,
        work: Work,
        fan_out: FanOut[FrameT, StatusT],
        *,
        speed: float | None,
        pacing: Pacing,
        clock: Callable[[], float],
        effort: Callable[[], float],
        sleep: Callable[[float], Coroutine[Any, Any, None]],
    ) -> None:
        self.mailbox = Mailbox(after=self._resume)
        self.post = self.mailbox.post
        self.error: Exception | None = None
        self._work = work
        self._fan_out = fan_out
        self._pacing = pacing
        self._clock = clock
        self._sleep = sleep
        self._display = Display(self._make_frame, fan_out.show, pacing, clock, effort)
        self._frame_times = FrameTimes(speed, 1.0 / pacing.frames_per_second)
        self._sizer = BlockSizer()
        self._meter = RateMeter()
        self._state = PlayerState.IDLE
        self._message = ""
        self._steps = 0  # left to run, of those that were asked for
        self._to_end = False  # at full speed, whatever the speed
        self._is_prepared = self._is_announced = False
        self._task: asyncio.Task[None] | None = None
        self._called: asyncio.Future[None] | None = None  # done when a command has come since the turn began
        self.status = self._make_status()

    # What the faces say.

    def _make_status(self) -> StatusT:
        raise NotImplementedError

    def _make_frame(self, number: int) -> FrameT:
        raise NotImplementedError

    @staticmethod
    def _headline(status: StatusT) -> object:
        """Return what listeners are told at once; numbers that change all the time come with the frames."""
        return status

    @property
    def _end_message(self) -> str:
        return ""

    @property
    def _flight(self) -> "Future[Any] | None":
        """Done when there is something to take over from another thread; None if nothing is under way."""
        return None

    def _land(self) -> None:
        """Take over what another thread has done, and wait for it if need be."""

    @property
    def _can_work(self) -> bool:
        """Whether a block could be run now; if not, a turn only tells what is being waited for."""
        return True

    def _launch(self) -> bool:
        """Have the next block run on another thread; return whether that was possible."""
        return False

    # Commands, from any thread.

    @property
    def speed(self) -> float | None:
        """Iterations (or steps) a frame, below 1 for slow motion, or None for as fast as it goes."""
        return self._frame_times.speed

    @speed.setter
    @posted(speed=check_speed)
    def speed(self, speed: float | None) -> None:
        self._frame_times.change(speed, self._clock())
        self._publish()

    @posted(needs_loop=True)
    def play(self) -> None:
        """Run from the present until paused or done."""
        self._play()

    @posted()
    def pause(self) -> None:
        """Stand still: nothing further is run once this has reached the loop."""
        self._halt()

    @posted()
    def attach(self, view: Screen[FrameT]) -> None:
        """Add a view, show it the latest state, and from now on every frame, after the views before it."""
        self._fan_out.attach(view)
        self._fan_out.show_to(view, self.current_frame())

    @posted()
    def detach(self, view: Screen[FrameT]) -> None:
        """Remove a view; one that is not attached is ignored."""
        self._fan_out.detach(view)

    @posted()
    def viewer_attached(self, viewer: str = "viewer") -> None:
        """Note that somebody looks: a page was opened, became visible, or still is visible."""
        self._display.greet(viewer)

    @posted()
    def acknowledge(self, frame_number: int, viewer: str = "viewer") -> None:
        """Note that a viewer has painted this frame, and so all before it."""
        self._display.acknowledge(frame_number, viewer)

    @posted()
    def viewer_left(self, viewer: str = "viewer") -> None:
        """Note that a viewer has gone: its page was closed or hidden."""
        self._display.throttle.leave(viewer)

    @posted()
    def refresh(self) -> None:
        """Show the latest state to all views now, whether or not anybody looks; for a static export, say."""
        with self._guarded():
            self._display.send()

    @posted()
    def close(self) -> None:
        """Stop, and let go of all views and viewers."""
        self._halt()
        self._fan_out.clear()
        self._display.throttle.clear()

    async def wait(self, timeout: float | None = None) -> StatusT:
        """Wait until it stands still; return the status, or raise what went wrong.

        Cancelling this pauses the work: interrupting a notebook cell that waits must stop it. The time-out,
        in seconds, does not.
        """
        deadline = None if timeout is None else self._clock() + timeout
        try:
            # Looking again and again is robust whichever loop and thread this runs on.
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
        """Return what a frame sent now would show, for static pictures; on the event loop's thread only."""
        return self._make_frame(self._display.number)

    # What commands do, on the loop's thread.

    def _play(self, *, to_end: bool = False) -> None:
        is_playing = self._state is PlayerState.PLAYING and self._to_end == to_end
        if not is_playing and self._may_run():
            self._steps = 0
            self._to_end = to_end
            self._frame_times.restart(self._clock())
            self._enter(PlayerState.PLAYING)

    def _step(self, count: int) -> None:
        self._catch_up()
        if self._may_run():
            self._steps += count
            self._to_end = False
            self._enter(PlayerState.STEPPING)

    def _halt(self, message: str = "") -> None:
        """Stop running; without effect on what stands still."""
        self._catch_up()
        if self._state.is_running:
            self._steps = 0
            self._enter(PlayerState.PAUSED, message)

    def _catch_up(self) -> None:
        with self._guarded():
            self._land()

    def _run_in_foreground(self, steps: int, command: str) -> None:
        """Run up to so many steps without rest and without frames; faults and interrupts raise."""
        if self.mailbox.is_elsewhere:
            raise RuntimeError(
                f"{command}_sync() was called off the event loop's thread; call {command}() there"
            )
        self.post(lambda: self._run_here(steps))

    def _run_here(self, steps: int) -> None:
        with self._guarded(reraise=True):
            self._land()  # What goes wrong here is for the caller; a pause would keep it to itself.
            self._halt()
            if not self._may_run():
                return
            self._to_end = self._is_announced = True
            self._enter(PlayerState.PLAYING)
            while steps > 0 and self._state.is_running:
                steps -= self._run_block(self._pacing.work, steps)
            self._halt()

    def _take_up(self, work: Work) -> None:
        """Turn to other work; nothing is known of how long its steps take."""
        self._work = work
        self._sizer.restart()

    # Turns.

    @property
    def _has_work(self) -> bool:
        return self._state.is_running or self._display.owes_frame

    def _resume(self) -> None:
        """Go on at once: commands have been carried out."""
        if self._called is not None and self._called.get_loop().is_closed():
            self._called = None  # nobody is left to be woken
        if self._called is not None and not self._called.done():
            self._called.set_result(None)
        self._ensure_task()

    def _ensure_task(self) -> None:
        loop = running_loop()
        if loop is None or loop is not self.mailbox.loop or not self._has_work:
            return
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._run(), name="ewens_widgets playback")

    async def _run(self) -> None:
        task = asyncio.current_task()
        try:
            while self._has_work:
                # Before the turn: what comes in the middle of it is carried out at its end.
                called = self._called = asyncio.get_running_loop().create_future()
                await self._rest(self._turn(), called)
        finally:
            # Out of work, cancelled, or destroyed with its loop. An abandoned task must not stop its heir.
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
        if self._flight is not None:
            landing = asyncio.wrap_future(self._flight)
            # Somebody has to look at its fault; the turn that follows raises it.
            landing.add_done_callback(lambda done: done.cancelled() or done.exception())
            await asyncio.wait((landing,))

    def _turn(self) -> float:
        """Work for a moment; return for how long to rest."""
        rest = self._pacing.nap
        try:
            with self.mailbox.held():
                with self._guarded():
                    self._land()
                    is_due = self._state.is_running and self._is_announced and self._can_work
                    if is_due and not self._launch():
                        self._run_blocks()
                    self._publish()
                    self._send_if_due()
                    if self._state.is_running and not self._is_announced:
                        # Nothing is run before the message is on its way; the rest after this turn lets it be
                        # painted.
                        self._is_announced = not self._display.owes_frame
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
            if self._launch():  # only the first block, which compiles, has to stay here
                break

    def _run_block(self, seconds: float, most: int | None = None) -> int:
        """Run steps that should take at most so many seconds; return how many."""
        limits = [self._sizer.size(seconds), most]
        if self._state is PlayerState.STEPPING:
            limits += [self._steps, self._longest_step]
        elif self._is_paced:
            limits += [self._frame_times.remaining]
        started = self._clock()
        done = self._work.advance(min(limit for limit in limits if limit is not None))
        self._account(done, self._clock() - started)
        return done

    def _account(self, done: int, seconds: float) -> None:
        """Take note of the steps that were run, and how long they took."""
        if not self._is_prepared:
            # The first block may have been compiled: its time says nothing about the next one's.
            self._is_prepared = True
            self._meter.restart(self._clock())
        elif done:
            self._meter.add(done, self._clock())
            self._sizer.measured(done, seconds)
        self._display.outdate()
        self._frame_times.count(done)
        self._steps -= min(done, self._steps)
        if not self._state.is_running:
            return
        if self._work.is_done:
            self._finish()
        elif done == 0:
            raise RuntimeError(f"{type(self._work).__name__} did nothing, although it is not done")
        elif self._state is PlayerState.STEPPING and self._steps == 0:
            self._enter(PlayerState.PAUSED)

    def _rest_seconds(self) -> float:
        if self._state.is_running and not self._awaits_frame:
            return self._pacing.nap
        longest = self._pacing.longest_rest
        if self._display.is_full:
            return longest
        frame = self._frame_times.wait_seconds(self._clock()) if self._is_paced else 0.0
        return min(max(self._display.wait_seconds, frame, self._pacing.nap), longest)

    def _send_if_due(self) -> None:
        display, is_open = self._display, self._display.is_open
        is_due = self._is_paced and self._frame_times.is_due(self._clock())
        if is_open and (is_due or display.is_urgent or (display.is_stale and not self._is_paced)):
            display.send()
        if is_due and (is_open or not display.is_watched):
            self._frame_times.refill(self._clock())

    @property
    def _is_paced(self) -> bool:
        """Whether steps wait for frames."""
        is_playing = self._state is PlayerState.PLAYING and self._is_prepared
        return is_playing and not self._to_end and self._frame_times.speed is not None

    @property
    def _awaits_frame(self) -> bool:
        return self._is_paced and self._frame_times.remaining == 0

    # States.

    def _may_run(self) -> bool:
        """Whether there is something to run; if so, begin to count."""
        if self._work.is_done:
            return False
        if not self._state.is_running:
            self._meter.restart(self._clock())
            self._is_announced = self._is_prepared
        return True

    def _finish(self) -> None:
        self._steps = 0
        self._enter(PlayerState.FINISHED, self._end_message)

    def _enter(self, state: PlayerState, message: str = "", error: Exception | None = None) -> None:
        self._state = state
        self._message = message
        self.error = error
        self._publish()

    def _publish(self) -> None:
        old, self.status = self.status, self._make_status()
        if self._headline(old) != self._headline(self.status):
            self._display.outdate(urgently=True)
            self._fan_out.tell(self.status)

    @contextlib.contextmanager
    def _guarded(self, *, reraise: bool = False) -> Iterator[None]:
        """Act so that whatever goes wrong ends in a state that the user can see."""
        try:
            yield
        except KeyboardInterrupt:
            self._halt(INTERRUPTED)
            if reraise:
                raise
        except Exception as error:
            self._steps = 0
            self._enter(PlayerState.FAILED, f"{type(error).__name__}: {error}", error)
            if reraise:
                raise
