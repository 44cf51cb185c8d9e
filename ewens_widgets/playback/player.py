"""Checks of what the player is told.

Plays a chain in the background of a notebook: one asyncio task, commands from any thread, frames.

The task works for about 10 ms, then leaves the event loop to others for eight turns and a nap of 2 ms; so the
kernel goes on answering, and a pause takes effect within some milliseconds. At full speed the iterations are
run on a helper thread, 20 ms at a time, where there can be one; the task is then free for the frames.

Every iteration is recorded. Frames are another matter: they show the latest state, at most 20 times a second
and never more than two ahead of what the viewers have acknowledged. Without a viewer none is sent, and the
chain waits for nobody.

What happens when
-----------------
Play while playing
    Nothing; there is never a second task.
Step while playing
    Playing ends and one more iteration is run. Several steps add up. Pause cancels those not yet run.
Seek while playing
    The chain pauses and the past is shown: two clocks on one screen would mislead. Play and step go on from
    the present.
Reset, or another source, while playing
    The chain stops, the record is cleared, and the initial state is shown.
The target is reached
    The player is finished; `extend` it to go on.
Kernel interrupt
    Paused after the iterations that were under way have been recorded; play continues.
The source or the recorder raises
    Failed; the message is kept, and so is all that was recorded. Reset starts again.
A view raises
    It is detached and reported; the chain goes on. With ``strict=True``, for tests, the player fails.
The browser tab is closed
    The chain goes on at the same speed, without frames. A tab opened later gets the latest state at once.
The event loop shuts down
    Paused; play goes on under the next loop.
"""

import asyncio
import math
import operator
import time
from collections.abc import Awaitable, Callable

from ewens_widgets.playback.display import FanOut, StatusListener, ViewErrorHook
from ewens_widgets.playback.engine import Engine
from ewens_widgets.playback.frame import Frame, PlayerStatus
from ewens_widgets.playback.loop import BackgroundTask
from ewens_widgets.playback.pacing import Pacing
from ewens_widgets.playback.work import EventRecorder, RecordedChain, Source, View, helper_thread

__all__ = ["Player", "check_count", "check_speed"]


def check_count(name: str, value: int, least: int = 1) -> int:
    """Return a whole number that is large enough."""
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if count < least:
        raise ValueError(f"{name} must be at least {least}, got {count}")
    return count


def check_speed(speed: float | None) -> float | None:
    """Return a positive number of iterations a frame, or None."""
    if speed is None:
        return None
    try:
        number = float(speed)
    except (TypeError, ValueError):
        raise TypeError(
            f"speed must be a number of iterations a frame, or None for as fast as it goes; got {speed!r}"
        ) from None
    if not 0.0 < number < math.inf:
        raise ValueError(f"speed must be positive and finite, got {speed!r}; use None for as fast as it goes")
    return number


_PREPARING = "Preparing the sampler. Its first use compiles it, which can take some seconds."


class Player:
    """Play, pause, step, seek.

    Commands return at once and may be given from any thread; the loop that carries them out is the one that
    was running when the player was made (or, if there was none, when it was first played).

    Parameters
    ----------
    source
        Anything with ``events(n, block)``, ``iteration`` and ``reset()``, such as a `Sampler`. If it also has
        ``snapshot()``, frames can show its state before the first iteration.
    recorder
        Keeps every event. It may hold the iterations that led to where the source is.
    target_iterations
        The iteration at which playing stops.
    speed
        Iterations a frame, below 1 for slow motion, or None for as fast as it goes.
    burn_in
        First iterations that the running summaries leave out.
    on_view_error
        Called with a view that raised and the exception, after the view was detached.
    strict
        Let the fault of a view fail the player; for tests.
    preparing_message
        Status message while the first block of a source is waited for.
    pacing
        Lengths of work and rest, frame rate, time-outs.
    clock, sleep
        The time, and how to wait for it; tests put their own here.
    """

    def __init__(
        self,
        source: Source,
        recorder: EventRecorder,
        *,
        target_iterations: int,
        speed: float | None = None,
        burn_in: int = 0,
        on_view_error: ViewErrorHook | None = None,
        strict: bool = False,
        preparing_message: str = _PREPARING,
        pacing: Pacing | None = None,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        pacing = Pacing() if pacing is None else pacing
        self._engine = Engine(
            RecordedChain(source, recorder),
            FanOut(on_view_error, strict=strict),
            target=check_count("target_iterations", target_iterations),
            speed=check_speed(speed),
            burn_in=check_count("burn_in", burn_in, least=0),
            pacing=pacing,
            clock=clock,
            preparing_message=preparing_message,
            helper=helper_thread(),
        )
        self._background = BackgroundTask(self._engine, pacing, sleep)
        self._post = self._background.mailbox.post

    @property
    def status(self) -> PlayerStatus:
        """Where the player is; a frozen value, safe to read from any thread."""
        return self._engine.status

    @property
    def error(self) -> Exception | None:
        """What made the player fail."""
        return self._engine.error

    @property
    def source(self) -> Source:
        """The source being played."""
        return self._engine.chain.source

    @property
    def recorder(self) -> EventRecorder:
        """The recorder of all iterations."""
        return self._engine.chain.recorder

    @property
    def views(self) -> tuple[View, ...]:
        """The attached views, in the order in which they are shown frames."""
        return self._engine.fan_out.views

    def settle(self) -> None:
        """Carry out the commands given before, and record what is under way: source and record agree."""
        self._background.settle(self._engine.land)

    def current_frame(self) -> Frame:
        """Return what a frame sent now would show, for static pictures; on the event loop's thread only."""
        return self._engine.make_frame(self._engine.display.number)

    def play(self) -> None:
        """Run from the present until paused or at the target."""
        self._background.need_loop("play")
        self._post(self._engine.play)

    def run_to_end(self) -> None:
        """Run to the target as fast as it goes, whatever the speed."""
        self._background.need_loop("run_to_end")
        self._post(lambda: self._engine.play(to_end=True))

    def step(self, iterations: int = 1) -> None:
        """Run so many more iterations one by one; fewer if the target or a pause comes first."""
        count = check_count("iterations", iterations)
        self._background.need_loop("step")
        self._post(lambda: self._engine.step(count))

    def pause(self) -> None:
        """Let the chain stand still: no further iteration once this has reached the loop."""
        self._post(self._engine.pause)

    def reset(self) -> None:
        """Stop, take the source back to its start, forget the record, and show the initial state."""
        self._post(self._engine.reset)

    def replace_source(
        self, source: Source, recorder: EventRecorder | None = None, *, target_iterations: int | None = None
    ) -> None:
        """Stop and change to another source, for instance because a setting was changed.

        Parameters
        ----------
        source
            Takes the place of the old one. It is not reset: playing begins where it is.
        recorder
            Takes the place of the old one; by default the old one is cleared and used again. Data of another
            shape need another recorder.
        target_iterations
            The new target; by default the old one.
        """
        target = None if target_iterations is None else check_count("target_iterations", target_iterations)

        def replace() -> None:
            self.settle()
            kept = self.recorder if recorder is None else recorder
            if recorder is None:
                kept.clear()
            self._engine.replace(RecordedChain(source, kept), target)

        self._post(replace)

    def run_to_end_sync(self) -> None:
        """Run to the target in the foreground, with or without a loop; raise what the source raises."""
        self._background.run_sync(max(1, self._engine.target), "run_to_end")

    def step_sync(self, iterations: int = 1) -> None:
        """Run so many iterations in the foreground, or fewer if the target comes first."""
        self._background.run_sync(check_count("iterations", iterations), "step")

    async def wait(self, timeout: float | None = None) -> PlayerStatus:
        """Wait until the chain stands still; return the status, or raise what the source raised.

        Cancelling this pauses the player: interrupting a notebook cell that waits must stop the chain. The
        time-out, in seconds, does not.
        """
        await self._background.wait(timeout)
        if self.error is not None:
            raise self.error
        return self.status

    @property
    def speed(self) -> float | None:
        """Iterations a frame, below 1 for slow motion, or None for as fast as it goes."""
        return self._engine.speed

    @speed.setter
    def speed(self, speed: float | None) -> None:
        checked = check_speed(speed)
        self._post(lambda: self._engine.set_speed(checked))

    @property
    def burn_in(self) -> int:
        """First iterations that the running summaries leave out."""
        return self._engine.summaries.burn_in

    @burn_in.setter
    def burn_in(self, burn_in: int) -> None:
        checked = check_count("burn_in", burn_in, least=0)
        self._post(lambda: self._engine.set_burn_in(checked))

    @property
    def target_iterations(self) -> int:
        """The iteration at which playing stops."""
        return self._engine.target

    @target_iterations.setter
    def target_iterations(self, target_iterations: int) -> None:
        checked = check_count("target_iterations", target_iterations)
        self._post(lambda: self._engine.set_target(checked))

    def extend(self, iterations: int) -> None:
        """Move the target by so many iterations; a finished player can then go on."""
        count = check_count("iterations", iterations)
        self._post(lambda: self._engine.set_target(self._engine.target + count))

    def seek(self, iteration: int | None) -> None:
        """Pause, and show a recorded iteration; None shows the present again. The chain does not move."""
        if iteration is not None:
            first, last = self.status.first_iteration, self.status.iteration
            if not first <= check_count("iteration", iteration, least=0) <= last:
                raise ValueError(
                    f"iteration {iteration} is not recorded; choose one from {first} to {last}, or None for "
                    "the present"
                )
        self._post(lambda: self._engine.seek(iteration))

    def attach(self, view: View) -> None:
        """Add a view, show it the latest state, and from now on every frame, after the views before it."""

        def attach() -> None:
            self._engine.fan_out.attach(view)
            self._engine.fan_out.show_to(view, self.current_frame())

        self._post(attach)

    def detach(self, view: View) -> None:
        """Remove a view; one that is not attached is ignored."""
        self._post(lambda: self._engine.fan_out.detach(view))

    def on_status(self, listener: StatusListener) -> Callable[[], None]:
        """Have changes of state, target, speed, message and following told at once, outside the frames.

        Returns
        -------
        function that ends this
        """
        self._post(lambda: self._engine.fan_out.listen(listener))
        return lambda: self._post(lambda: self._engine.fan_out.unlisten(listener))

    def viewer_attached(self, viewer: str = "viewer") -> None:
        """Note that somebody looks: a page was opened, became visible, or still is visible."""
        self._post(lambda: self._engine.display.greet(viewer))

    def acknowledge(self, frame_number: int, viewer: str = "viewer") -> None:
        """Note that a viewer has painted this frame, and so all before it."""
        self._post(lambda: self._engine.display.acknowledge(frame_number, viewer))

    def viewer_left(self, viewer: str = "viewer") -> None:
        """Note that a viewer has gone: its page was closed or hidden."""
        self._post(lambda: self._engine.display.leave(viewer))

    def refresh(self) -> None:
        """Show the latest state to all views now, whether or not anybody looks; for a static export, say."""
        self._post(self._engine.send_now)

    def close(self) -> None:
        """Stop, and let go of all views and viewers."""

        def close() -> None:
            self._engine.pause()
            self._engine.fan_out.clear()
            self._engine.display.forget_viewers()

        self._post(close)
