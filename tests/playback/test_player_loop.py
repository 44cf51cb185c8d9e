"""The player on real event loops, with real time, threads and signals; kept short."""

import asyncio
import gc
import random
import signal
import threading
import time

import numpy as np
import pytest
from playback.fakes import FakeRecorder, FakeSource, at_rest

from ewens_widgets.playback import Frame, Pacing, Player, PlayerState
from ewens_widgets.sampling.event import Event


class BusySource(FakeSource):
    """Spends real time on each iteration and notes on which thread."""

    def __init__(self, seconds: float = 0.0005) -> None:
        super().__init__()
        self.seconds = seconds
        self.threads: set[int] = set()

    def advance(self, n: int) -> list[Event]:
        self.threads.add(threading.get_ident())
        end = time.perf_counter() + n * self.seconds
        while time.perf_counter() < end:
            pass
        return super().advance(n)


def iterations(recorder: FakeRecorder) -> list[int]:
    return [event.iteration for event in recorder.kept]


def test_play_and_wait() -> None:
    async def main() -> Player:
        player = Player(BusySource(), FakeRecorder(), target_iterations=300)
        player.play()
        status = await player.wait()
        assert status.state is PlayerState.FINISHED
        return player

    player = asyncio.run(main())
    assert player.recorder.iterations.tolist() == [*range(1, 301)]


def test_wait_gives_up_without_pausing() -> None:
    async def main() -> None:
        player = Player(BusySource(), FakeRecorder(), target_iterations=100_000)
        player.play()
        status = await player.wait(timeout=0.05)
        assert status.is_running
        player.pause()
        assert not (await player.wait()).is_running

    asyncio.run(main())


@pytest.mark.timing
def test_loop_stays_responsive_and_the_chain_fast() -> None:
    """Counted in processor time of this thread, so that a busy machine changes little."""

    class Working(FakeSource):
        def advance(self, n: int) -> list[Event]:
            end = time.thread_time() + n * 0.0005
            while time.thread_time() < end:
                pass
            return super().advance(n)

    stretches: list[float] = []

    async def main() -> float:
        source = Working()
        player = Player(
            source, FakeRecorder(), target_iterations=1_000_000, pacing=Pacing(clock=time.thread_time)
        )
        player.play()
        started = last = time.thread_time()
        while last - started < 0.6:
            await asyncio.sleep(0.001)
            stretches.append(time.thread_time() - last)
            last = time.thread_time()
        player.pause()
        return source.iteration * 0.0005 / (last - started)

    share = asyncio.run(main())
    assert np.median([one for one in stretches if one > 0.005]) < 0.020, (
        "others get their turn after a stretch"
    )
    assert share > 0.7, "most of the work is iterations"


def test_commands_from_another_thread() -> None:
    async def main() -> None:
        source, recorder = BusySource(), FakeRecorder()
        player = Player(source, recorder, target_iterations=1_000_000, strict=True)
        shown, frames = threading.Condition(), []

        class Browser:
            def show(self, frame: Frame) -> None:
                player.acknowledge(frame.number)
                with shown:
                    frames.append(frame)
                    shown.notify_all()

        player.attach(Browser())

        def until(state: str, iteration: int = 0) -> None:
            with shown:
                shown.wait_for(
                    lambda: (
                        frames[-1].status.state == state == player.status.state
                        and frames[-1].status.iteration >= iteration
                    )
                )

        def commands() -> tuple[int, int]:
            player.viewer_attached()
            player.play()
            until("playing", 20)
            player.pause()
            until("paused")
            paused_at = player.status.iteration
            player.step()
            player.step()
            until("paused", paused_at + 2)
            return paused_at, player.status.iteration

        paused_at, stepped_to = await asyncio.to_thread(commands)
        assert stepped_to == paused_at + 2
        await asyncio.to_thread(player.reset)
        await asyncio.to_thread(until, "idle")
        assert source.threads == {threading.get_ident()}, "the chain runs on the loop's thread only"
        assert len(frames) > 1

    asyncio.run(main())


def test_commands_from_a_thread_with_a_loop_of_its_own() -> None:
    async def main() -> None:
        source = BusySource()
        player = Player(source, FakeRecorder(), target_iterations=50)

        async def subshell() -> None:
            player.play()
            await player.wait()

        await asyncio.to_thread(lambda: asyncio.run(subshell()))
        assert player.status.state is PlayerState.FINISHED
        assert source.threads == {threading.get_ident()}

    asyncio.run(main())


def test_many_threads_at_once() -> None:
    async def main() -> None:
        source, recorder = BusySource(seconds=0.00005), FakeRecorder()
        faults: list[object] = []
        player = Player(source, recorder, target_iterations=10_000_000, strict=True)

        class Checking:
            def show(self, frame: Frame) -> None:
                if frame.status.iteration != len(recorder):
                    faults.append(frame)
                player.acknowledge(frame.number)

        player.attach(Checking())
        player.viewer_attached()
        player.step()
        await player.wait()

        def hammer(seed: int) -> None:
            choose = random.Random(seed)  # noqa: S311 - not about secrets
            commands = [player.play, player.pause, player.step, player.reset, lambda: player.seek(0)]
            for _ in range(150):
                choose.choice(commands)()
                is_done = threading.Event()
                player.post(is_done.set)
                is_done.wait()

        await asyncio.gather(*(asyncio.to_thread(hammer, seed) for seed in range(4)))
        player.pause()
        await player.wait()
        assert not faults
        assert player.error is None
        assert iterations(recorder) == [*range(1, source.iteration + 1)]
        assert source.threads == {threading.get_ident()}

    asyncio.run(main())


def test_foreground_running_off_the_loops_thread_is_refused() -> None:
    async def main() -> None:
        player = Player(BusySource(), FakeRecorder(), target_iterations=50)
        with pytest.raises(RuntimeError, match=r"off the event loop's thread; call step\(\)"):
            await asyncio.to_thread(player.step_sync)

    asyncio.run(main())


def test_shutdown_pauses_and_the_next_loop_goes_on() -> None:
    source, recorder = BusySource(), FakeRecorder()

    async def first() -> Player:
        player = Player(source, recorder, target_iterations=400)
        player.play()
        while not source.iteration:
            await asyncio.sleep(0)
        return player

    player = asyncio.run(first())
    assert player.status.state is PlayerState.PAUSED
    assert "shut down" in player.status.message
    assert 0 < source.iteration < 400

    async def second() -> None:
        player.play()
        await player.wait()

    asyncio.run(second())
    assert player.status.state is PlayerState.FINISHED
    assert iterations(recorder) == [*range(1, 401)]


@pytest.mark.parametrize("waits", [False, True])
def test_loop_closed_without_a_word(caplog: pytest.LogCaptureFixture, waits: bool) -> None:
    source, recorder = BusySource(), FakeRecorder()
    loop = asyncio.new_event_loop()

    async def first() -> Player:
        player = Player(source, recorder, target_iterations=100, speed=1 if waits else None)
        if waits:
            player.viewer_attached()  # and paints nothing
        player.play()
        while not source.iteration:
            await asyncio.sleep(0)
        while waits and len(asyncio.all_tasks()) < 3:  # this one, the one that plays, and its sleep
            await asyncio.sleep(0)
        return player

    player = loop.run_until_complete(first())
    loop.close()
    player.pause()
    player.speed = None

    async def second() -> None:
        player.play()
        gc.collect()  # the abandoned task goes now, and must not stop its heir
        await player.wait()

    asyncio.run(second())
    assert player.status.state is PlayerState.FINISHED
    assert iterations(recorder) == [*range(1, 101)]
    assert {record.name for record in caplog.records} == {"asyncio"}
    assert len(caplog.records) == 1 + waits, "of each task that was left"


def test_player_made_before_the_loop() -> None:
    player = Player(BusySource(), FakeRecorder(), target_iterations=20)

    async def main() -> None:
        player.play()
        await player.wait()

    asyncio.run(main())
    assert player.status.state is PlayerState.FINISHED


def test_real_interrupt_pauses_and_the_loop_survives() -> None:
    class Interrupting(BusySource):
        pending = True

        def advance(self, n: int) -> list[Event]:
            if self.iteration >= 20 and self.pending:
                self.pending = False
                signal.raise_signal(signal.SIGINT)
            return super().advance(n)

    source, recorder = Interrupting(), FakeRecorder()

    async def main() -> None:
        player = Player(source, recorder, target_iterations=200)
        player.play()
        status = await player.wait()
        assert status.state is PlayerState.PAUSED
        assert "Interrupted" in status.message
        assert iterations(recorder) == [*range(1, source.iteration + 1)]
        await at_rest(player)

    # Not asyncio.run, which turns the signal into a cancellation of its own.
    loop = asyncio.new_event_loop()
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        loop.run_until_complete(main())
    finally:
        signal.signal(signal.SIGINT, previous)
        loop.close()


def test_another_thread_can_have_the_chain_paused_and_wait_for_that() -> None:
    async def main() -> None:
        source, recorder = BusySource(), FakeRecorder()
        player = Player(source, recorder, target_iterations=1_000_000)
        player.play()

        def save() -> list[int]:
            while source.iteration < 20:
                time.sleep(0.001)
            player.pause(wait=True)
            assert player.status.state is PlayerState.PAUSED
            return iterations(recorder)

        saved = await asyncio.to_thread(save)
        assert saved == iterations(recorder) == [*range(1, source.iteration + 1)]

    asyncio.run(main())
