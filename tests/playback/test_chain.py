"""Sources and their records: fakes with faults, then the real sampler."""

import asyncio
import itertools
import signal
import sys
from collections.abc import Callable
from types import FrameType

import numpy as np
import pytest
from chain_runs import wrap_loops
from playback.fakes import FakeRecorder, FakeSource, make_event

from ewens_widgets.datasets import unit_square
from ewens_widgets.playback import Frame, Player, PlayerState
from ewens_widgets.playback.loop import Worker
from ewens_widgets.playback.player import RecordedChain
from ewens_widgets.sampling.draws import DrawTable, Event
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.trace import Trace

TARGET = 1_000_000


def test_source_without_snapshot() -> None:
    class Plain:
        iteration = 0

        def advance(self, n: int) -> list[Event]:
            self.iteration += n
            return [make_event(iteration) for iteration in range(self.iteration - n + 1, self.iteration + 1)]

        def snapshot(self) -> None:
            return None

        def reset(self) -> None:
            self.iteration = 0

    chain = RecordedChain(Plain(), FakeRecorder(), TARGET)
    assert chain.latest is None
    assert chain.first_iteration == 0
    chain.advance(2)
    assert chain.first_iteration == 1, "nothing is known of the start"


def test_resumed_source_with_its_record_and_with_a_new_one() -> None:
    source, recorder = FakeSource(), FakeRecorder()
    RecordedChain(source, recorder, TARGET).advance(5)
    chain = RecordedChain(source, recorder, TARGET)
    assert (chain.iteration, chain.first_iteration, chain.n_draws(5)) == (5, 1, 5)
    chain.advance(2)
    assert recorder.iterations_kept == [*range(1, 8)]
    chain = RecordedChain(source, FakeRecorder(), TARGET)
    assert (chain.first_iteration, chain.iteration) == (7, 7)
    chain.advance(3)
    assert chain.n_draws(9) == 2
    assert chain.event(9).iteration == 9
    source.ends_at = 12
    assert [chain.advance(5), chain.advance(5)] == [2, 0]
    assert chain.is_exhausted


def test_source_moved_from_outside_is_noticed() -> None:
    source, recorder = FakeSource(), FakeRecorder()
    chain = RecordedChain(source, recorder, TARGET)
    chain.advance(2)
    source.advance(5)
    with pytest.raises(RuntimeError, match=r"at iteration 7, its record at 2.*reset to start again"):
        chain.advance(1)
    chain.reset()
    chain.advance(1)
    assert recorder.iterations_kept == [1]


def test_a_signal_between_run_and_record_waits() -> None:
    class Signalling(FakeSource):
        def advance(self, n: int) -> list[Event]:
            block = super().advance(n)
            signal.raise_signal(signal.SIGINT)  # the source has moved on, and this is not yet recorded
            return block

    recorder = FakeRecorder()
    chain = RecordedChain(Signalling(), recorder, TARGET)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            chain.advance(6)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert recorder.iterations_kept == [*range(1, 7)]
    assert chain.latest is recorder.kept[-1]


ITERATIONS = 300


def make_sampler(**options: object) -> Sampler:
    return Sampler(unit_square(per_cluster=6, seed=3), model="I", seed=5, **options)


def make_player(sampler: Sampler, **options: object) -> tuple[Player, DrawTable]:
    recorder = DrawTable(sampler.posterior, sampler.move_names)
    return Player(sampler, recorder, target_iterations=ITERATIONS, strict=True, **options), recorder


def assert_same_chain(played: Trace, sampled: Trace) -> None:
    for name in ("labels", "theta_index", "log_posterior", "concentration", "iterations"):
        assert np.array_equal(getattr(played, name), getattr(sampled, name)), name
    assert played.acceptance == pytest.approx(sampled.acceptance)


@pytest.fixture(scope="module")
def sampled() -> Trace:
    return make_sampler().sample(draws=ITERATIONS, progress=False)


def test_played_chain_is_the_sampled_chain(sampled: Trace) -> None:
    player, recorder = make_player(make_sampler())

    async def main() -> None:
        player.step(5)
        await player.wait()
        player.play()
        await player.wait(timeout=0.02)
        player.pause()
        player.seek(2)
        player.run_to_end()
        assert (await player.wait()).state is PlayerState.FINISHED

    asyncio.run(main())
    assert_same_chain(recorder.trace(), sampled)
    player.reset()
    player.run_to_end_sync()
    assert_same_chain(recorder.trace(), sampled)


def test_interrupts_lose_nothing_and_repeat_nothing(sampled: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = itertools.count(1)

    def interrupted(entry: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object) -> object:
            if next(calls) % 3 == 0:
                signal.raise_signal(signal.SIGINT)
            return entry(*args)

        return call

    wrap_loops(monkeypatch, interrupted)
    player, recorder = make_player(make_sampler())
    interrupts = 0
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        while player.status.state is not PlayerState.FINISHED:
            try:
                player.step_sync(20)
            except KeyboardInterrupt:
                interrupts += 1
                assert not player.status.is_running
                assert player.status.iteration == player.source.iteration == len(recorder)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert interrupts > 3
    assert_same_chain(recorder.trace(), sampled)


def test_frames_carry_what_the_trace_says(sampled: Trace) -> None:
    frames: list[Frame] = []

    class Keeping:
        def show(self, frame: Frame) -> None:
            frames.append(frame)

    player, _ = make_player(make_sampler(), burn_in=100)
    player.attach(Keeping())
    player.run_to_end_sync()
    player.refresh()
    player.seek(150)
    player.refresh()
    for frame, kept in zip(frames[1:], (sampled[100:], sampled[100:150]), strict=True):
        assert np.allclose(frame.summary.similarity(), kept.similarity(), atol=1e-6)
        assert np.allclose(frame.summary.theta_posterior(), kept.theta_posterior(), atol=1e-6)
        assert frame.summary.acceptance() == pytest.approx(kept.acceptance)
        assert frame.event is not None
        assert np.array_equal(frame.event.labels, kept.labels[-1])
    best = frames[1].summary.best()
    assert best is not None
    assert np.array_equal(best[1], sampled.best)


def test_stepping_a_metropolis_move_tells_the_proposal() -> None:
    player, recorder = make_player(make_sampler(moves="paper-1"))

    async def main() -> None:
        player.step(20)
        await player.wait()

    asyncio.run(main())
    assert any(recorder[place].proposed_labels is not None for place in range(20))


MOST_FRAMES = 9

Stack = list[FrameType]


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> list[Stack]:
    """The stack at each call of a compiled loop from now on, innermost frame first."""
    seen: list[Stack] = []

    def watched(entry: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object) -> object:
            frame, stack = sys._getframe(1), []
            while frame is not None:
                stack.append(frame)
                frame = frame.f_back
            seen.append(stack)
            return entry(*args)

        return call

    wrap_loops(monkeypatch, watched)
    return seen


def listed(frames: Stack) -> str:
    return "\n".join(f"{frame.f_code.co_filename}: {frame.f_code.co_qualname}" for frame in frames)


@pytest.mark.parametrize("moves", ["default", "paper-1", "paper-2"])
def test_the_stack_between_task_and_kernel_is_short(stacks: list[Stack], moves: str) -> None:
    async def play() -> None:
        sampler = Sampler(unit_square(per_cluster=4, seed=3), model="I", moves=moves, seed=5)
        recorder = DrawTable(sampler.posterior, sampler.move_names)
        player = Player(sampler, recorder, target_iterations=6, speed=1.0)
        player.play()
        assert (await player.wait()).state is PlayerState.FINISHED

    asyncio.run(play())
    depths = []
    for stack in stacks:
        codes = [frame.f_code for frame in stack]
        assert Worker._run.__code__ in codes, f"not called by the task:\n{listed(stack)}"
        between = stack[: codes.index(Worker._run.__code__)]
        assert len(between) <= MOST_FRAMES, f"{len(between)} frames:\n{listed(between)}"
        depths.append(len(between))
    assert depths
