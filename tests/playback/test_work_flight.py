"""Blocks on a helper thread: the loop goes on meanwhile, and nothing is seen, lost or done twice."""

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from playback.fakes import FakeRecorder, FakeSource

from ewens_widgets import Sampler
from ewens_widgets.datasets import unit_square
from ewens_widgets.playback import Player, PlayerState, work
from ewens_widgets.playback.ensemble import Ensemble
from ewens_widgets.playback.work import RecordedChain
from ewens_widgets.sampling.draws import Block
from ewens_widgets.sampling.event import Event
from ewens_widgets.sampling.recorder import Recorder

TARGET = 1_000_000


class FlyingSource(FakeSource):
    """Runs blocks on whichever thread, and can be made to wait or to fail there."""

    runs_aside = True

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.held = threading.Event()
        self.fault: Exception | None = None

    def advance(self, n: int) -> list[Event]:
        self.threads.add(threading.current_thread().name)
        if not self.gate.is_set():
            self.held.set()
        assert self.gate.wait(120)
        if self.fault is not None:
            raise self.fault
        return super().advance(n)


class Cockpit:
    """A player at full speed on a real loop, whose blocks can be held up."""

    def __init__(self, target: int = 1_000_000) -> None:
        self.source, self.recorder = FlyingSource(), FakeRecorder()
        self.player = Player(self.source, self.recorder, target_iterations=target, strict=True)

    async def in_flight(self) -> None:
        """Play, and hold up a block that was launched."""
        self.player.play()
        while len(self.recorder) < 20:
            await asyncio.sleep(0)
        self.source.held.clear()
        self.source.gate.clear()
        while not self.source.held.is_set():
            await asyncio.sleep(0)
        assert self.player._flight is not None
        assert not self.player._flight.done()

    def release_when_awaited(self) -> None:
        """Hold the block up until somebody waits for it."""
        flight = self.player._chain.flight
        assert flight is not None
        result = flight.result

        def release() -> Block:
            self.source.gate.set()
            return result()

        flight.result = release  # type: ignore[method-assign]

    @property
    def iterations(self) -> list[int]:
        return [event.iteration for event in self.recorder.kept]

    def assert_in_step(self) -> None:
        assert self.iterations == list(range(1, self.source.iteration + 1))


def run(scene: Callable[[Cockpit], Coroutine[Any, Any, None]], **options: int) -> Cockpit:
    async def main() -> Cockpit:
        cockpit = Cockpit(**options)
        try:
            await scene(cockpit)
        finally:
            cockpit.source.gate.set()
        return cockpit

    return asyncio.run(main())


pytestmark = pytest.mark.skipif(
    work.helper_thread() is None, reason="there is no compiler, so no helper thread"
)


def test_full_speed_runs_on_the_helper_thread_and_ends_at_the_target() -> None:
    async def scene(cockpit: Cockpit) -> None:
        cockpit.player.play()
        assert (await cockpit.player.wait()).state is PlayerState.FINISHED

    cockpit = run(scene, target=500)
    assert cockpit.source.iteration == 500
    cockpit.assert_in_step()
    assert any(name.startswith("ewens_widgets playback") for name in cockpit.source.threads)


def test_the_loop_goes_on_while_a_block_runs_and_sees_nothing_of_it() -> None:
    async def scene(cockpit: Cockpit) -> None:
        await cockpit.in_flight()
        before, turns = len(cockpit.recorder), 0
        frame = cockpit.player.current_frame()
        while turns < 50:
            await asyncio.sleep(0)
            turns += 1
        assert len(cockpit.recorder) == before == cockpit.player.status.iteration
        assert cockpit.player.current_frame().status.iteration == frame.status.iteration

    run(scene).assert_in_step()


@pytest.mark.parametrize("command", ["pause", "catch up", "step", "seek", "set the target"])
def test_commands_wait_for_the_block(command: str) -> None:
    commands: dict[str, Callable[[Player], None]] = {
        "pause": Player.pause,
        "catch up": Player.catch_up,
        "step": Player.step,
        "seek": lambda player: player.seek(3),
        "set the target": lambda player: setattr(player, "target_iterations", 21),
    }

    async def scene(cockpit: Cockpit) -> None:
        await cockpit.in_flight()
        before = len(cockpit.recorder)
        cockpit.release_when_awaited()
        commands[command](cockpit.player)
        assert len(cockpit.recorder) > before
        cockpit.assert_in_step()
        if command == "catch up":
            cockpit.player.pause()
        await cockpit.player.wait()
        cockpit.assert_in_step()

    run(scene)


def test_another_thread_can_have_the_chain_stopped_and_in_step() -> None:
    async def scene(cockpit: Cockpit) -> None:
        await cockpit.in_flight()
        cockpit.release_when_awaited()

        def save() -> tuple[int, list[int]]:
            cockpit.player.pause()
            cockpit.player.catch_up()
            return cockpit.source.iteration, cockpit.iterations

        source, recorded = await asyncio.to_thread(save)
        assert recorded == list(range(1, source + 1))
        assert cockpit.player.status.state is PlayerState.PAUSED
        assert cockpit.iterations == recorded

    run(scene)


def test_running_in_the_foreground_raises_what_the_block_under_way_raised() -> None:
    async def scene(cockpit: Cockpit) -> None:
        await cockpit.in_flight()
        cockpit.source.fault = ValueError("no such partition")
        cockpit.release_when_awaited()
        with pytest.raises(ValueError, match="no such partition"):
            cockpit.player.step_sync(3)
        cockpit.assert_in_step()

    run(scene)


def test_a_failure_is_not_overwritten_by_the_end_of_the_last_block() -> None:
    async def scene(cockpit: Cockpit) -> None:
        await cockpit.in_flight()
        player = cockpit.player
        player._chain.target = cockpit.source.iteration + 1
        with player._guarded():
            raise ZeroDivisionError
        cockpit.source.gate.set()
        player.catch_up()
        assert cockpit.player.status.state is PlayerState.FAILED

    run(scene).assert_in_step()


def test_a_task_that_is_cancelled_leaves_no_fault_unseen() -> None:
    seen: list[dict[str, Any]] = []

    async def scene(cockpit: Cockpit) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(context))
        await cockpit.in_flight()
        cockpit.source.fault = ValueError("no such partition")
        background = cockpit.player._task
        assert background is not None
        cockpit.release_when_awaited()
        background.cancel()
        with pytest.raises(ValueError, match="no such partition"):
            await cockpit.player.wait()
        del background

    run(scene)
    gc.collect()
    assert seen == []


def test_reset_forgets_the_block() -> None:
    async def scene(cockpit: Cockpit) -> None:
        await cockpit.in_flight()
        cockpit.release_when_awaited()
        cockpit.player.reset()
        assert (len(cockpit.recorder), cockpit.source.iteration) == (0, 0)
        cockpit.player.step(3)
        await cockpit.player.wait()

    assert run(scene).iterations == [1, 2, 3]


def test_another_source_with_the_same_recorder_starts_empty() -> None:
    async def scene(cockpit: Cockpit) -> None:
        await cockpit.in_flight()
        cockpit.release_when_awaited()
        other = FlyingSource()
        cockpit.player.replace_source(other, target_iterations=40)
        assert len(cockpit.recorder) == 0
        cockpit.player.play()
        await cockpit.player.wait()
        assert other.iteration == 40

    assert run(scene).iterations == list(range(1, 41))


def test_a_fault_in_the_block_fails_the_player_and_keeps_the_record() -> None:
    async def scene(cockpit: Cockpit) -> None:
        await cockpit.in_flight()
        cockpit.source.fault = ValueError("no such partition")
        cockpit.source.gate.set()
        with pytest.raises(ValueError, match="no such partition"):
            await cockpit.player.wait()
        assert cockpit.player.status.state is PlayerState.FAILED
        cockpit.assert_in_step()
        cockpit.source.fault = None
        cockpit.player.reset()
        cockpit.player.step(2)
        await cockpit.player.wait()

    assert run(scene).iterations == [1, 2]


def test_a_block_does_not_wait_for_itself() -> None:
    said: list[str] = []

    class Selfish(FlyingSource):
        def advance(self, n: int) -> list[Event]:
            try:
                chain.land()
            except RuntimeError as error:
                said.append(str(error))
            return super().advance(n)

    source = Selfish()
    chain = RecordedChain(source, FakeRecorder(), TARGET)
    with ThreadPoolExecutor(1) as helper:
        is_known = threading.Event()
        helper.submit(is_known.wait)
        chain.launch(5, helper, time.perf_counter)
        is_known.set()
    assert said == ["a block cannot wait for itself"]


def test_an_ensemble_at_full_speed_stays_on_the_loop() -> None:
    # It records its other chains by itself, and their records are looked at meanwhile.
    samplers = [Sampler(unit_square(per_cluster=4, seed=3), seed=seed) for seed in range(2)]
    recorders = [Recorder(sampler.posterior, sampler.move_names) for sampler in samplers]
    assert not Ensemble(samplers, recorders).runs_aside


def test_room_is_made_before_the_block_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = Sampler(unit_square(per_cluster=4, seed=3), seed=1)
    recorder = Recorder(sampler.posterior, sampler.move_names, capacity=4)
    chain = RecordedChain(sampler, recorder, TARGET)
    chain.advance(4)

    def full(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr("ewens_widgets.sampling.recorder.empty_columns", full)
    with ThreadPoolExecutor(1) as helper, pytest.raises(MemoryError, match="no room"):
        chain.launch(5, helper, time.perf_counter)
    with pytest.raises(MemoryError, match="no room"):
        chain.advance(5)
    assert sampler.iteration == len(recorder) == 4


def test_a_block_is_not_recorded_twice() -> None:
    source, recorder = FlyingSource(), FakeRecorder()
    chain = RecordedChain(source, recorder, TARGET)
    with ThreadPoolExecutor(1) as helper:
        chain.launch(5, helper, time.perf_counter)
        interrupts = [KeyboardInterrupt()]

        def interrupt(_: Event) -> None:
            if interrupts:
                raise interrupts.pop()

        recorder.after_append = interrupt
        with pytest.raises(KeyboardInterrupt):
            chain.land()
        assert chain.land() == 5
    assert [event.iteration for event in recorder.kept] == [1, 2, 3, 4, 5]
    assert chain.latest is recorder.kept[-1]


def test_a_source_that_was_moved_meanwhile_is_noticed() -> None:
    source, recorder = FlyingSource(), FakeRecorder()
    chain = RecordedChain(source, recorder, TARGET)
    with ThreadPoolExecutor(1) as helper:
        chain.launch(5, helper, time.perf_counter)
        assert chain.land() == 5
        source.iteration = 9
        with pytest.raises(RuntimeError, match="moved from outside"):
            chain.launch(5, helper, time.perf_counter)


def test_what_cannot_fly_says_so() -> None:
    chain = RecordedChain(FakeSource(), FakeRecorder(), TARGET)
    assert not chain.source.runs_aside
    with ThreadPoolExecutor(1) as helper, pytest.raises(TypeError, match="another thread"):
        chain.launch(5, helper, time.perf_counter)


@pytest.mark.parametrize(("compiled", "platform"), [(False, "linux"), (True, "emscripten")])
def test_without_compiler_or_threads_everything_runs_on_the_loop(
    compiled: bool, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "COMPILED", compiled)
    monkeypatch.setattr(work.sys, "platform", platform)
    assert work.helper_thread() is None

    async def scene(cockpit: Cockpit) -> None:
        cockpit.player.play()
        await cockpit.player.wait()

    cockpit = run(scene, target=300)
    cockpit.assert_in_step()
    assert cockpit.source.threads <= {threading.current_thread().name}


def test_a_flown_chain_is_the_sampled_chain_bit_for_bit() -> None:
    sampler = Sampler(unit_square(per_cluster=6, seed=3), model="I", seed=5)
    sampled = Sampler(unit_square(per_cluster=6, seed=3), model="I", seed=5).sample(400, progress=False)
    recorder = Recorder(sampler.posterior, sampler.move_names)
    chain = RecordedChain(sampler, recorder, TARGET)
    with ThreadPoolExecutor(1) as helper:
        for size in (1, 150, 49, 200):
            chain.launch(size, helper, time.perf_counter)
            assert chain.land() == size
    trace = recorder.trace()
    for name in ("labels", "theta_index", "theta_weights", "log_posterior", "iterations"):
        assert np.array_equal(getattr(trace, name), getattr(sampled, name)), name
    assert trace.acceptance == sampled.acceptance
