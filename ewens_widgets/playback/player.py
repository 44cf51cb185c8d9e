"""The faces of playback: `Player` plays a chain in the background of a notebook, `Worker` any other work.

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
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any

from ewens_widgets.arguments import check_count
from ewens_widgets.playback.display import FanOut, Screen, ViewErrorHook
from ewens_widgets.playback.frame import Frame, PlayerState, PlayerStatus, Tick, WorkerStatus, number_text
from ewens_widgets.playback.loop import Engine, posted
from ewens_widgets.playback.pacing import Pacing, check_speed, thread_seconds
from ewens_widgets.playback.summaries import RunningSummaries
from ewens_widgets.playback.work import (
    EventRecorder,
    RecordedChain,
    Source,
    Work,
    compilation,
    helper_thread,
    prepare,
)
from ewens_widgets.sampling.draws import Block

__all__ = ["Player", "Worker"]

_PREPARING = "Preparing the sampler. Its first use compiles it, which can take some seconds."
_PATIENCE = 30.0  # seconds to wait for a busy event loop

_at_least_0 = partial(check_count, least=0)
_at_least_1 = partial(check_count, least=1)


class Player(Engine[Frame, PlayerStatus]):
    """Play, pause, step, seek.

    Commands return at once and may be given from any thread; the loop that carries them out is the one that
    was running when the player was made (or, if there was none, when it was first played).

    Parameters
    ----------
    source
        Runs in blocks of events, such as a `Sampler`; see `Source`.
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
    clock, effort, sleep
        The time, that which a thread has worked for, and how to wait; tests put their own here.
    """

    _longest_step = 1  # so that every step can tell what was proposed

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
        effort: Callable[[], float] = thread_seconds,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        self._chain = RecordedChain(source, recorder, _at_least_1("target_iterations", target_iterations))
        self._summaries = RunningSummaries(recorder, _at_least_0("burn_in", burn_in))
        self._preparing_message = preparing_message
        self._helper = helper_thread()
        self._shown: int | None = None  # the past iteration on display; None follows the present
        super().__init__(
            self._chain,
            FanOut(on_view_error, strict=strict),
            speed=check_speed("speed", speed),
            pacing=Pacing() if pacing is None else pacing,
            clock=clock,
            effort=effort,
            sleep=sleep,
        )

    @property
    def source(self) -> Source:
        """The source being played."""
        return self._chain.source

    @property
    def recorder(self) -> EventRecorder:
        """The recorder of all iterations."""
        return self._chain.recorder

    @property
    def views(self) -> tuple[Screen[Frame], ...]:
        """The attached views, in the order in which they are shown frames."""
        return self._fan_out.views

    @property
    def burn_in(self) -> int:
        """First iterations that the running summaries leave out."""
        return self._summaries.burn_in

    @burn_in.setter
    @posted(burn_in=_at_least_0)
    def burn_in(self, burn_in: int) -> None:
        self._summaries.burn_in = burn_in
        self._display.outdate(urgently=True)

    @property
    def target_iterations(self) -> int:
        """The iteration at which playing stops."""
        return self._chain.target

    @target_iterations.setter
    @posted(target_iterations=_at_least_1)
    def target_iterations(self, target_iterations: int) -> None:
        self._move_target(target_iterations)

    @posted(iterations=_at_least_1)
    def extend(self, iterations: int) -> None:
        """Move the target by so many iterations; a finished player can then go on."""
        self._move_target(self._chain.target + iterations)

    @posted(needs_loop=True)
    def run_to_end(self) -> None:
        """Run to the target as fast as it goes, whatever the speed."""
        self._play(to_end=True)

    @posted(needs_loop=True, iterations=_at_least_1)
    def step(self, iterations: int = 1) -> None:
        """Run so many more iterations one by one; fewer if the target or a pause comes first."""
        self._step(iterations)

    def run_to_end_sync(self) -> None:
        """Run to the target in the foreground, with or without a loop; raise what the source raises."""
        self._run_in_foreground(self._chain.target, "run_to_end")

    def step_sync(self, iterations: int = 1) -> None:
        """Run so many iterations in the foreground, or fewer if the target comes first."""
        self._run_in_foreground(_at_least_1("iterations", iterations), "step")

    @posted()
    def reset(self) -> None:
        """Stop, take the source back to its start, forget the record, and show the initial state."""
        with self._guarded():
            self._chain.reset()
            self._summaries.clear()
            self._become_idle()

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
        target = None if target_iterations is None else _at_least_1("target_iterations", target_iterations)
        self._replace(source, recorder, target)

    @posted()
    def _replace(self, source: Source, recorder: EventRecorder | None, target: int | None) -> None:
        self._catch_up()
        if recorder is None:
            recorder = self.recorder
            recorder.clear()
        self._chain = RecordedChain(source, recorder, self._chain.target if target is None else target)
        self._summaries = RunningSummaries(recorder, self.burn_in)
        self._take_up(self._chain)
        self._is_prepared = self._is_announced = False
        self._become_idle()

    def seek(self, iteration: int | None) -> None:
        """Pause, and show a recorded iteration; None shows the present again. The chain does not move."""
        if iteration is not None:
            first, last = self.status.first_iteration, self.status.iteration
            if not first <= _at_least_0("iteration", iteration) <= last:
                raise ValueError(
                    f"iteration {iteration} is not recorded; choose one from {first} to {last}, or None for "
                    "the present"
                )
        self._show_iteration(iteration)

    @posted()
    def _show_iteration(self, iteration: int | None) -> None:
        self._halt()
        if iteration is None or iteration >= self._chain.iteration:
            self._shown = None
        else:
            self._shown = max(iteration, self._chain.first_iteration)
        self._display.outdate(urgently=True)
        self._publish()

    def on_status(self, listener: Callable[[PlayerStatus], None]) -> Callable[[], None]:
        """Have changes of state, target, speed, message and following told at once, outside the frames.

        Returns
        -------
        function that ends this
        """
        self.post(lambda: self._fan_out.listen(listener))
        return lambda: self.post(lambda: self._fan_out.unlisten(listener))

    def catch_up(self) -> None:
        """Carry out the commands given before, and record what is under way: source and record agree."""
        if not self.mailbox.is_elsewhere:
            self._catch_up()
            return
        is_done = threading.Event()
        self.post(self._catch_up)
        self.post(is_done.set)
        if not is_done.wait(_PATIENCE):
            raise RuntimeError("the event loop is busy, so the chain cannot be stopped; try again")

    @property
    def _flight(self) -> "Future[Block] | None":
        flight = self._chain.flight
        return None if flight is None else flight.future

    @property
    def _can_work(self) -> bool:
        return prepare(self.source)

    def _launch(self) -> bool:
        # Steps, slow motion and the first block, which compiles, stay on the loop, where they are shown.
        is_free = self._state is PlayerState.PLAYING and self._is_prepared and not self._is_paced
        if self._helper is None or not is_free or not self.source.runs_aside:
            return False
        self._chain.launch(self._sizer.size(self._pacing.flight), self._helper, self._clock)
        return True

    def _land(self) -> None:
        flight = self._chain.flight
        if flight is not None:
            self._account(self._chain.land(), flight.seconds)

    def _move_target(self, target: int) -> None:
        self._catch_up()
        self._chain.target = target
        # A failed player stays failed, and one that never ran stays idle, wherever the target is.
        if self._state is PlayerState.FINISHED and self._chain.iteration < target:
            self._enter(PlayerState.PAUSED)
        elif self._state.is_running and self._chain.is_done:
            self._finish()
        self._publish()

    def _may_run(self) -> bool:
        if self._state is PlayerState.FAILED:
            return False
        if self._shown is not None:
            self._shown = None
            self._display.outdate(urgently=True)
        self._chain.is_exhausted = False  # it may have more by now
        if super()._may_run():
            return True
        self._finish()
        return False

    @property
    def _end_message(self) -> str:
        if self._chain.is_exhausted:
            return "The source has no more iterations."
        return f"All {number_text(self._chain.target)} iterations are done."

    def _become_idle(self) -> None:
        self._steps = 0
        self._shown = None
        self._display.outdate(urgently=True)
        self._enter(PlayerState.IDLE)

    def _make_frame(self, number: int) -> Frame:
        self._publish()
        shown = self.status.shown_iteration
        summary = self._summaries.up_to(self._chain.n_draws(shown))
        return Frame(number=number, event=self._chain.event(shown), status=self.status, summary=summary)

    def _make_status(self) -> PlayerStatus:
        is_running, iteration = self._state.is_running, self._chain.iteration
        is_preparing = is_running and not self._is_prepared
        return PlayerStatus(
            state=PlayerState.PREPARING if is_preparing else self._state,
            iteration=iteration,
            target=self._chain.target,
            shown_iteration=iteration if self._shown is None else self._shown,
            first_iteration=self._chain.first_iteration,
            speed=None if self._to_end and is_running else self.speed,
            iterations_per_second=self._meter.rate(self._clock()) if is_running else 0.0,
            frames_per_second=self._display.frames_per_second if is_running else 0.0,
            message=self._told_message(is_preparing),
        )

    def _told_message(self, is_preparing: bool) -> str:
        if is_preparing:
            return compilation(self.source) or self._preparing_message
        return compilation(self.source) if self._state.is_running else self._message

    @staticmethod
    def _headline(status: PlayerStatus) -> object:
        return status.state, status.target, status.speed, status.message, status.is_following


class Worker(Engine[Tick, WorkerStatus]):
    """Play, pause, step; or just run what is to be done.

    The little sibling of the player, for teaching widgets whose work is no Markov chain: nothing is recorded,
    and there is no past to look back at. Other work takes the place of the old at any time, so that the
    latest settings win. A view that raises stops the work.

    Parameters
    ----------
    work
        What is to be done.
    speed
        Steps a frame, below 1 for slow motion, or None for as fast as it goes.
    pacing
        Lengths of work and rest, frame rate, time-outs.
    clock, effort, sleep
        The time, that which a thread has worked for, and how to wait; tests put their own here.
    """

    def __init__(
        self,
        work: Work,
        *,
        speed: float | None = None,
        pacing: Pacing | None = None,
        clock: Callable[[], float] = time.perf_counter,
        effort: Callable[[], float] = thread_seconds,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        super().__init__(
            work,
            FanOut(strict=True),
            speed=check_speed("speed", speed),
            pacing=Pacing() if pacing is None else pacing,
            clock=clock,
            effort=effort,
            sleep=sleep,
        )

    @property
    def has_loop(self) -> bool:
        """Whether there is an event loop to work on."""
        return self.mailbox.capture_loop()

    @posted(needs_loop=True, steps=_at_least_1)
    def step(self, steps: int = 1) -> None:
        """Do so many more steps."""
        self._step(steps)

    def run_sync(self, steps: int = 2**31) -> None:
        """Do up to so many steps in the foreground, with or without a loop; raise what the work raises."""
        self._run_in_foreground(_at_least_1("steps", steps), "run")

    @posted()
    def replace(self, work: Work) -> None:
        """Turn to other work, at once; if work was under way, so is this."""
        self._take_up(work)
        if self._state.is_running and not work.is_done:
            self._enter(self._state)
        else:
            self._steps = 0
            self._enter(PlayerState.PAUSED)
        self._display.outdate(urgently=True)

    @posted()
    def refresh(self) -> None:
        """Show the work to all views now, whether or not anybody looks; raise what a view raises."""
        self._display.send()

    @posted()
    def outdate(self) -> None:
        """Have a frame sent as soon as the viewers can take it, as something else than the work changed."""
        self._display.outdate(urgently=True)

    def _make_status(self) -> WorkerStatus:
        return WorkerStatus(self._state.is_running, self._message)

    def _make_frame(self, number: int) -> Tick:
        return Tick(number, self.status)
