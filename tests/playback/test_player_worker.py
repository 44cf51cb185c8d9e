"""The worker: steps in the background, the latest work wins, frames only as fast as they are painted."""

import asyncio
import threading
from collections.abc import Callable, Coroutine

import pytest
from playback.fakes import FakeTime

from ewens_widgets.playback import Tick, Worker

Scene = Callable[["Bench"], Coroutine[None, None, None]]


class Counting:
    """Counts its steps."""

    def __init__(self, time: FakeTime, most: int = 10**9, seconds: float = 0.001) -> None:
        self.time, self.most, self.seconds = time, most, seconds
        self.done = 0
        self.raises: Exception | None = None

    @property
    def is_done(self) -> bool:
        return self.done >= self.most

    def advance(self, steps: int) -> int:
        if self.raises is not None:
            raise self.raises
        count = min(steps, self.most - self.done)
        self.done += count
        self.time.spend(count * self.seconds)
        return count


class Screen:
    """Notes what it is shown."""

    def __init__(self, bench: "Bench") -> None:
        self.bench = bench
        self.shown: list[tuple[int, bool, int]] = []
        self.raises: Exception | None = None

    def show(self, tick: Tick) -> None:
        if self.raises is not None:
            raise self.raises
        self.shown.append((tick.number, tick.status.is_running, self.bench.work.done))


class Bench:
    def __init__(self, most: int = 10**9, speed: float | None = None) -> None:
        self.time = FakeTime()
        self.work = Counting(self.time, most)
        self.worker = Worker(self.work, speed=speed, pacing=self.time.pacing())
        self.screen = Screen(self)
        self.worker.attach(self.screen)

    async def watch(self, seconds: float) -> None:
        """Let time pass while somebody looks and acknowledges everything."""
        for _ in range(round(seconds / 0.01)):
            await self.time.advance(0.01)
            self.worker.acknowledge(self.screen.shown[-1][0])


def play(scene: Scene, most: int = 10**9, speed: float | None = None) -> None:
    async def run() -> None:
        await scene(Bench(most, speed))

    asyncio.run(run())


def test_play_pause_and_step() -> None:
    async def scene(bench: Bench) -> None:
        bench.worker.play()
        await bench.time.advance(0.5)
        assert bench.work.done > 50
        bench.worker.pause()
        done = bench.work.done
        await bench.time.advance(0.5)
        assert bench.work.done == done
        bench.worker.step(3)
        bench.worker.step()
        await bench.time.advance(0.5)
        assert bench.work.done == done + 4
        assert not bench.worker.status.is_running

    play(scene)


def test_it_ends_when_the_work_is_done() -> None:
    async def scene(bench: Bench) -> None:
        bench.worker.play()
        await bench.time.advance(2.0)
        assert bench.work.done == 20
        assert not bench.worker.status.is_running
        bench.worker.play()
        bench.worker.step()
        assert not bench.worker.status.is_running

    play(scene, most=20)


def test_a_speed_is_kept() -> None:
    async def scene(bench: Bench) -> None:
        bench.worker.viewer_attached()
        bench.worker.play()
        await bench.watch(2.0)
        assert 60 <= bench.work.done <= 90, "two steps a frame at 20 frames a second"
        bench.worker.speed = 0.1
        slow = bench.work.done
        await bench.watch(2.0)
        assert 3 <= bench.work.done - slow <= 6, "two steps a second"
        bench.worker.speed = None
        await bench.watch(0.5)
        assert bench.work.done > slow + 100

    play(scene, speed=2.0)


def test_the_latest_work_wins_and_goes_on_running() -> None:
    async def scene(bench: Bench) -> None:
        old = bench.work
        bench.worker.play()
        await bench.time.advance(0.1)
        bench.work = Counting(bench.time, most=5)
        bench.worker.replace(bench.work)
        done = old.done
        await bench.time.advance(0.5)
        assert (old.done, bench.work.done) == (done, 5)
        bench.worker.replace(Counting(bench.time))
        assert not bench.worker.status.is_running, "work that follows a rest waits for play"

    play(scene)


def test_without_a_viewer_no_frame_is_sent_and_a_new_one_gets_the_latest() -> None:
    async def scene(bench: Bench) -> None:
        bench.worker.play()
        await bench.time.advance(0.5)
        bench.worker.pause()
        await bench.time.advance(0.5)
        assert len(bench.screen.shown) == 1, "only what it was shown when it was attached"
        bench.worker.viewer_attached()
        await bench.time.advance(0.2)
        assert bench.screen.shown[-1][1:] == (False, bench.work.done)
        count = len(bench.screen.shown)
        await bench.watch(0.5)
        assert len(bench.screen.shown) == count, "nothing new, nothing sent"

    play(scene)


def test_at_most_two_frames_are_on_their_way() -> None:
    async def scene(bench: Bench) -> None:
        bench.worker.viewer_attached()
        bench.worker.play()
        await bench.time.advance(1.0)
        assert len(bench.screen.shown) == 1 + 2
        bench.worker.acknowledge(bench.screen.shown[-1][0])
        await bench.time.advance(0.3)
        assert len(bench.screen.shown) == 1 + 4
        bench.worker.viewer_left()
        await bench.time.advance(3.0)
        assert len(bench.screen.shown) == 1 + 4

    play(scene)


def test_the_first_picture_is_out_before_anything_is_begun() -> None:
    async def scene(bench: Bench) -> None:
        bench.worker.viewer_attached()
        bench.worker.play()
        await bench.watch(0.2)
        assert bench.screen.shown[1][1:] == (True, 0)
        assert bench.work.done

    play(scene)


def test_a_fault_is_kept_and_other_work_makes_it_forgotten() -> None:
    async def scene(bench: Bench) -> None:
        bench.work.raises = ValueError("no such thing")
        bench.worker.play()
        await bench.time.advance(0.2)
        assert bench.worker.status.message == "ValueError: no such thing"
        with pytest.raises(ValueError, match="no such thing"):
            await bench.worker.wait()
        bench.worker.replace(Counting(bench.time, most=3))
        assert bench.worker.error is None
        assert bench.worker.status.message == ""

    play(scene)


def test_a_view_that_raises_stops_the_work() -> None:
    async def scene(bench: Bench) -> None:
        bench.screen.raises = RuntimeError("cannot draw")
        bench.worker.viewer_attached()
        bench.worker.play()
        await bench.time.advance(0.2)
        assert bench.worker.status.message == "RuntimeError: cannot draw"
        assert not bench.worker.status.is_running

    play(scene)


def test_a_view_that_raises_in_the_foreground_is_heard_and_asked_again() -> None:
    bench = Bench(most=5)
    bench.screen.raises = RuntimeError("cannot draw")
    with pytest.raises(RuntimeError, match="cannot draw"):
        bench.worker.refresh()
    bench.screen.raises = None
    bench.worker.refresh()
    assert bench.screen.shown[-1] == (2, False, 0)


def test_work_that_does_nothing_is_a_fault_and_no_endless_loop() -> None:
    async def scene(bench: Bench) -> None:
        bench.work.advance = lambda _: 0  # type: ignore[method-assign]
        bench.worker.play()
        await bench.time.advance(0.2)
        assert "Counting.advance() did no step" in bench.worker.status.message

    play(scene)


def test_commands_from_another_thread_reach_the_loop() -> None:
    async def scene(bench: Bench) -> None:
        thread = threading.Thread(target=bench.worker.play)
        thread.start()
        thread.join()
        assert not bench.worker.status.is_running
        await bench.time.advance(0.1)
        assert bench.work.done

    play(scene)


def test_without_a_loop_it_works_in_the_foreground() -> None:
    bench = Bench(most=50)
    assert not bench.worker.has_loop
    with pytest.raises(RuntimeError, match="needs a running event loop"):
        bench.worker.play()
    bench.worker.run_sync(7)
    assert bench.work.done == 7
    bench.worker.run_sync()
    assert bench.work.done == 50
    bench.worker.refresh()
    assert bench.screen.shown[-1] == (1, False, 50)


def test_a_closed_worker_rests() -> None:
    async def scene(bench: Bench) -> None:
        bench.worker.viewer_attached()
        bench.worker.play()
        await bench.watch(0.2)
        bench.worker.close()
        done, count = bench.work.done, len(bench.screen.shown)
        await bench.time.advance(0.5)
        assert (bench.work.done, len(bench.screen.shown)) == (done, count)

    play(scene)
