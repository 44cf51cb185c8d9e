"""Playing the real sampler: the same chain as sampling it, whatever the user does in between."""

import asyncio
import itertools
import signal
from collections.abc import Callable

import numpy as np
import pytest
from playback.fakes import kernel_entries

from ewens_widgets.datasets import unit_square
from ewens_widgets.playback import Frame, Player, PlayerState
from ewens_widgets.sampling import driver
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.trace import Trace

ITERATIONS = 300


def make_sampler(**options: object) -> Sampler:
    return Sampler(unit_square(per_cluster=6, seed=3), model="I", seed=5, **options)


def make_player(sampler: Sampler, **options: object) -> tuple[Player, Recorder]:
    recorder = Recorder(sampler.posterior, sampler.move_names)
    return Player(sampler, recorder, target_iterations=ITERATIONS, strict=True, **options), recorder


def assert_same_chain(played: Trace, sampled: Trace) -> None:
    for name in ("labels", "theta_index", "log_posterior", "concentration", "iterations"):
        assert np.array_equal(getattr(played, name), getattr(sampled, name)), name
    assert played.acceptance == pytest.approx(sampled.acceptance)


@pytest.fixture(scope="module")
def sampled() -> Trace:
    return make_sampler().sample(draws=ITERATIONS, progress=False)


def test_played_chain_is_the_sampled_chain(sampled: Trace) -> None:
    async def main() -> Recorder:
        player, recorder = make_player(make_sampler())
        player.step(5)
        await player.wait()
        player.play()
        await player.wait(timeout=0.02)
        player.pause()
        player.seek(2)
        player.run_to_end()
        assert (await player.wait()).state is PlayerState.FINISHED
        return recorder

    assert_same_chain(asyncio.run(main()).trace(), sampled)


def test_interrupts_lose_nothing_and_repeat_nothing(sampled: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = itertools.count(1)

    def interrupted(entry: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object) -> object:
            if next(calls) % 3 == 0:
                signal.raise_signal(signal.SIGINT)
            return entry(*args)

        return call

    for name in kernel_entries():
        monkeypatch.setattr(driver, name, interrupted(getattr(driver, name)))
    player, recorder = make_player(make_sampler())
    interrupts = 0
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        while player.status.state is not PlayerState.FINISHED:
            try:
                player.step_sync(20)
            except KeyboardInterrupt:
                interrupts += 1
                assert player.status.state is PlayerState.PAUSED
                assert player.status.iteration == player.source.iteration == len(recorder)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert interrupts > 3
    assert_same_chain(recorder.trace(), sampled)


def test_reset_plays_the_same_chain_again(sampled: Trace) -> None:
    player, recorder = make_player(make_sampler())
    player.step_sync(40)
    player.reset()
    player.run_to_end_sync()
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
    assert any(recorder.event(place).proposed_labels is not None for place in range(20))
