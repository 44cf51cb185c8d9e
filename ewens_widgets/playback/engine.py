"""The player without event loop: a state machine that is asked to work, turn by turn.

One turn runs iterations for about 10 ms and then sends a frame, if one is due and the viewers can take it.
Between two turns the caller gives the event loop a rest. At full speed a helper thread, where there is one,
runs the iterations meanwhile: then a turn records what it has done and launches its next block. Everything
else happens on one thread.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future

from ewens_widgets.playback.display import Display, FanOut
from ewens_widgets.playback.frame import Frame, PlayerState, PlayerStatus
from ewens_widgets.playback.pacing import FrameSlots, Pacing
from ewens_widgets.playback.summaries import RunningSummaries
from ewens_widgets.playback.work import RecordedChain, Runner

__all__ = ["INTERRUPTED", "Engine"]

INTERRUPTED = "Interrupted. Play continues from here."

# Enough for blocks to double from one iteration to the longest; a clock that stands still must not trap us.
_MOST_BLOCKS = 16


class Engine:
    """Runs a chain, and shows it.

    Parameters
    ----------
    chain
        The source with its recorder.
    fan_out
        The views and status listeners.
    target
        The iteration at which playing stops.
    speed
        Iterations a frame, or None for as fast as it goes.
    burn_in
        First draws that the running summaries leave out.
    pacing
        Lengths of work and rest, frame rate.
    clock
        Seconds from an arbitrary start.
    preparing_message
        What to say before the first block of a source is run.
    helper
        A thread for the blocks of full speed, or None.
    """

    def __init__(
        self,
        chain: RecordedChain,
        fan_out: FanOut,
        *,
        target: int,
        speed: float | None,
        burn_in: int,
        pacing: Pacing,
        clock: Callable[[], float],
        preparing_message: str,
        helper: Executor | None = None,
    ) -> None:
        self.fan_out = fan_out
        self.summaries = RunningSummaries(chain.recorder, burn_in)
        self.display = Display(self.make_frame, fan_out, pacing, clock)
        self.error: Exception | None = None
        self.target = target
        self.clock = clock
        self._pacing = pacing
        self._preparing_message = preparing_message
        self._helper = helper
        self._runner = Runner(chain, clock, helper)
        self._slots = FrameSlots(speed, 1.0 / pacing.frames_per_second)
        self._state = PlayerState.IDLE
        self._message = ""
        self._shown: int | None = None
        self._steps = 0
        self._to_end = False
        self._is_announced = False
        self.status = self._make_status()

    @property
    def chain(self) -> RecordedChain:
        """The source with its recorder."""
        return self._runner.chain

    @property
    def speed(self) -> float | None:
        """Iterations a frame, or None for as fast as it goes."""
        return self._slots.speed

    @property
    def flight(self) -> "Future[None] | None":
        """Done when the helper thread's block is; None if it has none."""
        flight = self.chain.flight
        return None if flight is None else flight.future

    @property
    def has_work(self) -> bool:
        """Whether there is a reason for another turn."""
        return self._state.is_running or self.display.owes_frame

    def play(self, *, to_end: bool = False) -> None:
        """Run from the present until paused or at the target; to the end means at full speed."""
        is_playing = self._state is PlayerState.PLAYING and self._to_end == to_end
        if not is_playing and self._may_run():
            self._steps = 0
            self._to_end = to_end
            self._slots.restart(self.clock())
            self._enter(PlayerState.PLAYING)

    def step(self, count: int) -> None:
        """Run so many more iterations one by one, then pause."""
        self.land()
        if self._may_run():
            self._steps += count
            self._to_end = False
            self._enter(PlayerState.STEPPING)

    def pause(self, message: str = "") -> None:
        """Stop running; without effect on a chain that stands still."""
        self.land()
        if self._state.is_running:
            self._steps = 0
            self._enter(PlayerState.PAUSED, message)

    def seek(self, iteration: int | None) -> None:
        """Pause and show a recorded iteration, or the present again if it is None."""
        self.pause()
        if iteration is None or iteration >= self.chain.iteration:
            self._shown = None
        else:
            self._shown = max(iteration, self.chain.first_iteration)
        self.display.outdate(urgently=True)
        self._publish()

    def reset(self) -> None:
        """Stop, take the chain back to its start, and show that."""
        self._guard(self._reset)

    def replace(self, chain: RecordedChain, target: int | None) -> None:
        """Stop and go on with another chain."""
        self.land()
        self._runner = Runner(chain, self.clock, self._helper)
        self.summaries = RunningSummaries(chain.recorder, self.summaries.burn_in)
        self.target = self.target if target is None else target
        self._is_announced = False
        self._become_idle()

    def set_speed(self, speed: float | None) -> None:
        """Change the iterations a frame."""
        self._slots.change(speed, self.clock())
        self._publish()

    def set_target(self, target: int) -> None:
        """Change where playing stops; a finished chain with work left is paused again."""
        self.land()
        self.target = target
        if self._state is PlayerState.FINISHED and self.chain.iteration < target:
            self._enter(PlayerState.PAUSED)
        elif self._state.is_running and self.chain.iteration >= target:
            self._finish()
        self._publish()

    def set_burn_in(self, burn_in: int) -> None:
        """Change how many draws the running summaries leave out."""
        self.summaries.burn_in = burn_in
        self.display.outdate(urgently=True)

    def land(self) -> None:
        """Record what the helper thread is running, so that source and record are in step."""
        self._guard(self._land)

    def turn(self) -> float:
        """Work for a moment; return for how long to rest."""
        self._guard(self._turn)
        if self._state.is_running and not self._awaits_slot:
            return self._pacing.nap
        wait = max(
            self.display.wait_seconds, self._slots.wait_seconds(self.clock()) if self._is_paced else 0.0
        )
        return min(max(wait, self._pacing.nap), self._pacing.poll)

    def run(self, count: int) -> None:
        """Run up to `count` iterations without rest and without frames; let faults and interrupts raise."""
        self._guard(lambda: self._run(count), reraise=True)

    def send_now(self) -> None:
        """Show the latest state to the views, whether or not anybody looks."""
        self._guard(self.display.send)

    def make_frame(self, number: int) -> Frame:
        """Make a frame of what is on display."""
        self._publish()
        shown = self.status.shown_iteration
        summary = self.summaries.up_to(self.chain.n_draws(shown))
        return Frame(number=number, event=self.chain.event(shown), status=self.status, summary=summary)

    def _turn(self) -> None:
        self._land()
        if self._state.is_running and self._is_announced:
            self._work()
        self._publish()
        self._send_if_due()
        if self._state.is_running and not self._is_announced:
            # Nothing is run before the message is on its way; the rest after this turn lets it be painted.
            self._is_announced = not self.display.owes_frame

    def _work(self) -> None:
        if self._state is PlayerState.PLAYING and not self._is_paced and self._runner.can_launch:
            self._runner.launch(self.target - self.chain.iteration, self._pacing.flight)
        else:
            self._work_here()

    def _work_here(self) -> None:
        started = self.clock()
        for _ in range(_MOST_BLOCKS):
            left = self._pacing.work - (self.clock() - started)
            if left <= 0.0 or not self._state.is_running or self._awaits_slot:
                break
            self._run_block(left)

    def _run(self, count: int) -> None:
        self._land()  # What goes wrong here is for the caller; a pause would keep it to itself.
        self.pause()
        if not self._may_run():
            return
        self._to_end = self._is_announced = True
        self._enter(PlayerState.PLAYING)
        stop = self.chain.iteration + count
        while self._state.is_running and self.chain.iteration < stop:
            self._run_block(self._pacing.work, stop - self.chain.iteration)
        self.pause()

    def _run_block(self, seconds: float, limit: int | None = None) -> None:
        left = self.target - self.chain.iteration
        if self._state is PlayerState.STEPPING:
            left = 1
        elif self._is_paced:
            left = min(left, self._slots.remaining)
        self._account(self._runner.run_block(left if limit is None else min(left, limit), seconds))

    def _land(self) -> None:
        if self.chain.flight is not None:
            self._account(self._runner.land())

    def _account(self, done: int) -> None:
        """Take note of the iterations that were run."""
        self.display.outdate()
        self._slots.count(done)
        self._steps -= min(done, self._steps)
        if not self._state.is_running:
            return
        if self.chain.iteration >= self.target:
            self._finish()
        elif done == 0:
            self._steps = 0
            self._enter(PlayerState.FINISHED, "The source has no more iterations.")
        elif self._state is PlayerState.STEPPING and self._steps == 0:
            self._enter(PlayerState.PAUSED)

    def _send_if_due(self) -> None:
        is_open = self.display.is_open
        is_due = self._is_paced and self._slots.is_due(self.clock())
        if is_open and (is_due or self.display.is_urgent or (self.display.is_stale and not self._is_paced)):
            self.display.send()
        if is_due and (is_open or not self.display.is_watched):
            self._slots.refill(self.clock())

    @property
    def _is_paced(self) -> bool:
        """Whether iterations wait for frames."""
        is_playing = self._state is PlayerState.PLAYING and self._runner.is_prepared
        return is_playing and not self._to_end and self.speed is not None

    @property
    def _awaits_slot(self) -> bool:
        return self._is_paced and self._slots.remaining == 0

    def _may_run(self) -> bool:
        if self._state is PlayerState.FAILED:
            return False
        if self._shown is not None:
            self._shown = None
            self.display.outdate(urgently=True)
        if self.chain.iteration >= self.target:
            self._finish()
            return False
        if not self._state.is_running:
            self._runner.start_counting()
            self._is_announced = self._runner.is_prepared
        return True

    def _finish(self) -> None:
        self._steps = 0
        self._enter(PlayerState.FINISHED, f"All {self.target} iterations are done.")

    def _reset(self) -> None:
        self.chain.reset()
        self.summaries.clear()
        self._become_idle()

    def _become_idle(self) -> None:
        self.error = None
        self._steps = 0
        self._shown = None
        self.display.outdate(urgently=True)
        self._enter(PlayerState.IDLE)

    def _enter(self, state: PlayerState, message: str = "") -> None:
        self._state = state
        self._message = message
        self._publish()

    def _guard(self, action: Callable[[], None], *, reraise: bool = False) -> None:
        """Act so that whatever goes wrong ends in a state that the user can see."""
        try:
            action()
        except KeyboardInterrupt:
            self.pause(INTERRUPTED)
            if reraise:
                raise
        except Exception as error:
            self.error = error
            self._steps = 0
            self._enter(PlayerState.FAILED, f"{type(error).__name__}: {error}")
            if reraise:
                raise

    def _publish(self) -> None:
        old, self.status = self.status, self._make_status()
        if _headline(old) != _headline(self.status):
            self.display.outdate(urgently=True)
            self.fan_out.tell(self.status)

    def _make_status(self) -> PlayerStatus:
        is_running = self._state.is_running
        preparing = is_running and not self._runner.is_prepared
        iteration = self.chain.iteration
        return PlayerStatus(
            state=PlayerState.PREPARING if preparing else self._state,
            iteration=iteration,
            target=self.target,
            shown_iteration=iteration if self._shown is None else self._shown,
            first_iteration=self.chain.first_iteration,
            speed=None if self._to_end and is_running else self.speed,
            iterations_per_second=self._runner.iterations_per_second if is_running else 0.0,
            frames_per_second=self.display.frames_per_second if is_running else 0.0,
            message=self._preparing_message if preparing else self._message,
        )


def _headline(status: PlayerStatus) -> tuple[object, ...]:
    """Return what listeners are told at once; numbers that change all the time come with the frames."""
    return status.state, status.target, status.speed, status.message, status.is_following
