"""`Player` plays a chain in the background of a notebook: a source of events, and its recorder.

A source runs in blocks, ``source.advance(count)``. A block is a sequence of events and goes into the record
as a whole, ``recorder.extend(block)``; the recorder is a `DrawTable`. Playing, stepping, several chains at
once and recorded draws shown again all use these two calls. `Source` is a protocol, so tests and teaching
widgets can play something other than a sampler.

Every iteration is recorded, but not every iteration is shown. Frames show the latest state, at most 20 times
a second and at most two ahead of what the viewers have acknowledged. Without a viewer no frame is sent.

What happens when
-----------------
Play while playing
    Nothing; there is never a second task.
Step while playing
    Playing ends and one more iteration is run. Several steps add up. Pause cancels those not yet run.
Seek while playing
    The chain pauses and the past is shown. Play and step continue from the present.
Reset, or another source, while playing
    The chain stops, the record is cleared, and the initial state is shown.
The target is reached
    The player is finished; `extend` allows more.
Kernel interrupt
    Paused after the current block has been recorded; play continues.
The source or the recorder raises
    Failed; the message and the record are kept. Reset starts again.
A view raises
    The view is detached and the error reported; the chain continues. With ``strict=True``, for tests, the
    player fails.
The browser tab is closed
    The chain continues at the same speed, without frames. A tab opened later gets the latest state at once.
The event loop shuts down
    Paused; play continues on the next loop.
"""

from collections.abc import Callable
from typing import Any, Protocol

from ewens_widgets.arguments import check_count
from ewens_widgets.playback.display import FanOut, Pacing, Screen
from ewens_widgets.playback.frame import (
    Frame,
    LiveAnswer,
    PlayerState,
    PlayerStatus,
    RunningSummaries,
)
from ewens_widgets.playback.loop import Worker, can_work
from ewens_widgets.sampling.draws import DrawTable, Event
from ewens_widgets.sampling.driver import interrupts_deferred

_PREPARING = "Preparing the sampler. Its first use compiles it, which can take some seconds."


class Source(Protocol):
    """A chain that runs in blocks of events, such as `Sampler`.

    A source that is compiled may also have a method `prepare`, which returns whether a block can be run now,
    and an attribute `compilation`, its progress as a text for the status line.
    """

    @property
    def iteration(self) -> int:
        """Number of the last iteration done, 0 at the start."""

    def advance(self, n: int) -> DrawTable:
        """Run at most `n` iterations as one block, empty if there are no more.

        An interrupt leaves the source as it was before.
        """

    def snapshot(self) -> Event | None:
        """Describe the current state without moving, for frames before any iteration; None if unknown."""

    def reset(self) -> None:
        """Go back to the initial state."""


def compilation(source: Source) -> str:
    """Progress of the compilation of a source as a text, empty if it is not compiled."""
    return str(getattr(source, "compilation", ""))


class Replay:
    """A source that returns recorded draws in blocks, like a chain.

    Parameters
    ----------
    draws
        The draws; their iterations are numbered from 1.
    """

    def __init__(self, draws: DrawTable) -> None:
        self.draws = draws
        self.move_names = draws.move_names
        self.iteration = 0

    def advance(self, n: int) -> DrawTable:
        """Return the next `n` draws, or as many as are left."""
        block = self.draws[self.iteration : self.iteration + n]
        self.iteration += len(block)
        return block

    def snapshot(self) -> None:
        """The initial state is not recorded."""

    def reset(self) -> None:
        """Begin with the first draw again."""
        self.iteration = 0


class RecordedChain:
    """Work that runs a source towards a target and keeps every event.

    Every iteration is recorded exactly once. Room for a block is made before it is run, and an interrupt is
    held back from the start of a block until it is in the record.

    Parameters
    ----------
    source
        Runs the chain.
    recorder
        Keeps the events. It may already hold the iterations that led to the state of the source.
    target
        The iteration at which the work is done.
    on_block
        Called with each block that has been recorded.

    Attributes
    ----------
    is_exhausted
        Whether the source had no more iterations when it was last asked.
    """

    def __init__(
        self,
        source: Source,
        recorder: DrawTable,
        target: int,
        on_block: Callable[[DrawTable], None] = lambda _: None,
    ) -> None:
        self._on_block = on_block
        self.source = source
        self.recorder = recorder
        self.target = target
        self._mark_start()

    def _mark_start(self) -> None:
        self.is_exhausted = False
        self._start = self.source.iteration - len(self.recorder)
        # Where there is a record, the source has left its initial state and cannot describe it any more.
        self._initial = None if len(self.recorder) else self.source.snapshot()
        self._newest: DrawTable | None = None

    @property
    def first_iteration(self) -> int:
        """The earliest iteration that can be shown: the start, if it is known."""
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
        # The block holds more than its record: the proposal, and weights in full precision.
        return self._newest[-1] if self._newest else self.recorder[len(self.recorder) - 1]

    def event(self, iteration: int) -> Event | None:
        """Return what was recorded at an iteration."""
        if iteration == self.iteration:
            return self.latest
        if iteration == self._start:
            return self._initial
        return self.recorder[self.n_draws(iteration) - 1]

    def n_draws(self, iteration: int) -> int:
        """Return how many draws are recorded up to an iteration."""
        return iteration - self._start

    @property
    def is_done(self) -> bool:
        """Whether the target is reached, or the source has no more iterations."""
        return self.iteration >= self.target or self.is_exhausted

    def prepare(self) -> bool:
        """Have the source get ready in the background if it has to; return whether a block can be run now."""
        return can_work(self.source)

    def advance(self, steps: int) -> int:
        """Run and record at most `steps` iterations as one block; return how many there were."""
        if self.source.iteration != self.iteration:
            raise RuntimeError(
                f"the source is at iteration {self.source.iteration}, its record at {self.iteration}: it was "
                "run from outside; reset to start again"
            )
        count = min(steps, self.target - self.iteration)
        self.recorder.reserve(count)
        with interrupts_deferred():
            block = self.source.advance(count)
            self.recorder.extend(block)
            self._newest, self.is_exhausted = block, not block
        if block:
            self._on_block(block)
        return len(block)

    def reset(self) -> None:
        """Take the source back to its start and clear the record."""
        self.source.reset()
        self.recorder.clear()
        self._mark_start()


class Player(Worker):
    """Play, pause, step, seek.

    Commands return at once and may be given from any thread; the loop that carries them out is the one that
    was running when the player was made (or, if there was none, when it was first played).

    Parameters
    ----------
    source
        Runs in blocks of events, such as a `Sampler`; see `Source`.
    recorder
        Keeps every event. It may hold the iterations that led to the state of the source.
    target_iterations
        The iteration at which playing stops.
    speed
        Iterations per frame, below 1 for slow motion, or None for as fast as possible.
    burn_in
        First iterations that the running summaries leave out.
    wants_answer
        Returns whether the answer is to be shown. Without this function, frames carry no answers.
    strict
        Fail when a view raises; for tests.
    pacing
        Durations of work and rest, frame rate, time-outs, clock.
    """

    status: PlayerStatus
    _longest_step = 1  # so that the event of every step has its proposal

    def __init__(
        self,
        source: Source,
        recorder: DrawTable,
        *,
        target_iterations: int,
        speed: float | None = None,
        burn_in: int = 0,
        wants_answer: Callable[[], bool] | None = None,
        strict: bool = False,
        pacing: Pacing | None = None,
    ) -> None:
        target = check_count("target_iterations", target_iterations, least=1)
        self._blocks: FanOut[Callable[[DrawTable], object]] = FanOut(lambda call, block: call(block))
        self._chain = RecordedChain(source, recorder, target, self._blocks.tell)
        self._summaries = RunningSummaries(recorder, check_count("burn_in", burn_in, least=0))
        self._shown: int | None = None  # the past iteration on display; None follows the present
        self._answer: LiveAnswer | None = None
        super().__init__(self._chain, speed=speed, pacing=pacing, strict=strict)
        if wants_answer is not None:
            self._answer = LiveAnswer(self.mailbox, self.outdate, wants_answer, clock=self._clock)

    @property
    def source(self) -> Source:
        """The source being played."""
        return self._chain.source

    @property
    def recorder(self) -> DrawTable:
        """The recorder of all iterations."""
        return self._chain.recorder

    @property
    def views(self) -> tuple[Screen, ...]:
        """The attached views, in the order in which they are shown frames."""
        return self._views.all

    @property
    def burn_in(self) -> int:
        """First iterations that the running summaries leave out."""
        return self._summaries.burn_in

    @burn_in.setter
    def burn_in(self, burn_in: int) -> None:
        check_count("burn_in", burn_in, least=0)

        def change() -> None:
            self._summaries.burn_in = burn_in
            self._display.outdate(urgently=True)

        self.post(change)

    @property
    def target_iterations(self) -> int:
        """The iteration at which playing stops."""
        return self._chain.target

    @target_iterations.setter
    def target_iterations(self, target_iterations: int) -> None:
        check_count("target_iterations", target_iterations, least=1)
        self.post(lambda: self._move_target(target_iterations))

    def extend(self, iterations: int) -> None:
        """Raise the target by this many iterations; a finished player can then continue."""
        check_count("iterations", iterations, least=1)
        self.post(lambda: self._move_target(self._chain.target + iterations))

    def _move_target(self, target: int) -> None:
        self._chain.target = target
        self._chain.is_exhausted = False  # the source may have more by now
        if self._chain.is_done:
            self._halt()
        self._publish()

    def run_to_end(self) -> None:
        """Run to the target as fast as possible, whatever the speed."""
        self._need_loop("run_to_end")
        self.post(lambda: self._play(to_end=True))

    def run_to_end_sync(self) -> None:
        """Run to the target in the foreground, with or without a loop; raise what the source raises."""
        self.run_sync(self._chain.target)

    def step_sync(self, iterations: int = 1) -> None:
        """Run this many iterations in the foreground, or fewer if the target comes first."""
        self.run_sync(check_count("iterations", iterations, least=1))

    def reset(self) -> None:
        """Stop, take the source back to its start, clear the record, and show the initial state."""

        def reset() -> None:
            with self._guarded():
                self._chain.reset()
                self._summaries.clear()
                self._begin()

        self.post(reset)

    def replace_source(self, source: Source, recorder: DrawTable) -> None:
        """Stop and change to another source and its recorder, for example because a setting was changed.

        The source is not reset: playing begins at its present iteration.
        """

        def change() -> None:
            self._chain = RecordedChain(source, recorder, self._chain.target, self._blocks.tell)
            self._summaries = RunningSummaries(recorder, self.burn_in)
            if self._answer is not None:
                self._answer.clear()
            self._take_up(self._chain)
            self._is_prepared = self._is_announced = False
            self._begin()

        self.post(change)

    def _begin(self) -> None:
        self._shown = None
        self._display.outdate(urgently=True)
        self._set_left(0.0)
        self._listeners.tell(self.status)  # it may look the same but for the iteration

    def seek(self, iteration: int | None) -> None:
        """Pause, and show a recorded iteration, or with None the present. The chain keeps its state."""
        if iteration is not None:
            first, last = self.status.first_iteration, self.status.iteration
            if not first <= check_count("iteration", iteration, least=0) <= last:
                raise ValueError(
                    f"iteration {iteration} is not recorded; choose one from {first} to {last}, or None for "
                    "the present"
                )

        def seek() -> None:
            self._halt()
            self._shown = None
            if iteration is not None and iteration < self._chain.iteration:
                self._shown = max(iteration, self._chain.first_iteration)
            self._display.outdate(urgently=True)
            self._publish()

        self.post(seek)

    def on_status(self, listener: Callable[[PlayerStatus], None]) -> Callable[[], None]:
        """Call a listener as soon as state, target, speed, message or following change.

        One that raises is removed.

        Returns
        -------
        function that removes the listener
        """
        return self._listen(self._listeners, listener)

    def on_block(self, listener: Callable[[DrawTable], None]) -> Callable[[], None]:
        """Call a listener with each block of iterations once it is recorded; as `on_status`."""
        return self._listen(self._blocks, listener)

    def _listen(self, fan_out: FanOut[Any], listener: Callable[[Any], None]) -> Callable[[], None]:
        self.post(lambda: fan_out.add(listener))
        return lambda: self.post(lambda: fan_out.remove(listener))

    @property
    def is_watched(self) -> bool:
        """Whether a page shows frames."""
        return self._display.is_watched

    def close(self) -> None:
        """Stop, and remove all views, viewers and listeners."""
        super().close()
        self.post(self._blocks.clear)

    def complete(self) -> None:
        """Show the latest state, and wait for an answer under way; for still pictures."""
        self.refresh()
        if self._answer is not None and self._answer.wait():
            self.refresh()

    def _may_run(self) -> bool:
        if self.error is not None:
            return False
        if self._shown is not None:
            self._shown = None
            self._display.outdate(urgently=True)
        self._chain.is_exhausted = False  # the source may have more by now
        may_run = super()._may_run()
        self._publish()
        return may_run

    def _send(self) -> None:
        if self._answer is not None:
            self._answer.ask(self.current_frame())
        super()._send()

    def _make_frame(self, number: int, status: PlayerStatus) -> Frame:
        shown = status.shown_iteration
        summary = self._summaries.up_to(self._chain.n_draws(shown))
        frame = Frame(number, self._chain.event(shown), status, summary)
        return frame if self._answer is None else self._answer.add_to(frame)

    def _make_status(self) -> PlayerStatus:
        is_running, chain, state = bool(self._left), self._chain, self._state
        message = compilation(chain.source) if is_running else self._message
        if state is PlayerState.PREPARING:
            message = message or _PREPARING
        elif state is PlayerState.FINISHED and chain.is_exhausted:
            message = "The source has no more iterations."
        return PlayerStatus(
            state=state,
            iteration=chain.iteration,
            target=chain.target,
            shown_iteration=chain.iteration if self._shown is None else self._shown,
            first_iteration=chain.first_iteration,
            speed=None if self._to_end and is_running else self.speed,
            iterations_per_second=self._meter.rate(self._clock()) if is_running else 0.0,
            message=message,
        )
