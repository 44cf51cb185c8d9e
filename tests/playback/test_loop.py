"""Commands and the event loop; real loops, threads and signals; then work that is not a chain."""

import asyncio
import gc
import random
import signal
import threading
import time

import numpy as np
import pytest
from playback.fakes import FakeRecorder, FakeSource, FakeTime, at_rest

from ewens_widgets.playback import Frame, Pacing, Player, PlayerState, Tick, Worker
from ewens_widgets.playback.loop import Mailbox, running_loop
from ewens_widgets.sampling.draws import Event


def test_commands_keep_their_order_wait_while_held_and_need_no_loop() -> None:
    log: list[str] = []
    mailbox = Mailbox(after=lambda: log.append("after"))
    assert mailbox.loop is None
    mailbox.post(lambda: log.append("one"))
    assert log == ["one", "after"]
    with mailbox.held():
        mailbox.post(lambda: log.append("two"))
        mailbox.post(lambda: (mailbox.post(lambda: log.append("inner")), log.append("three")))
        assert log == ["one", "after"]
        assert mailbox
    mailbox.deliver()
    assert log[2:] == ["two", "three", "inner", "after"]
    assert not mailbox


def test_other_threads_commands_arrive_on_the_loops_thread_in_order() -> None:
    log: list[tuple[int, int]] = []

    async def main() -> None:
        mailbox = Mailbox()

        def from_elsewhere() -> None:
            assert mailbox.is_elsewhere
            for number in range(100):
                mailbox.post(lambda number=number: log.append((number, threading.get_ident())))

        await asyncio.to_thread(from_elsewhere)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert log == [(number, threading.get_ident()) for number in range(100)]


def test_a_closed_loop_swallows_no_commands_and_another_is_captured() -> None:
    log: list[int] = []

    async def make() -> Mailbox:
        return Mailbox()

    mailbox = asyncio.run(make())
    mailbox.post(lambda: log.append(1))
    assert log == [1]
    assert not mailbox.capture_loop()

    async def use() -> None:
        assert mailbox.capture_loop()
        assert mailbox.loop is running_loop()

    asyncio.run(use())


def test_arguments_are_checked_where_the_command_is_given() -> None:
    async def main() -> None:
        source = FakeSource()
        player = Player(source, FakeRecorder(), target_iterations=10)

        def elsewhere() -> None:
            with pytest.raises(ValueError, match="iterations must be at least 1; got 0"):
                player.step(0)
            with pytest.raises(TypeError, match="iterations must be a whole number"):
                player.extend(iterations=2.5)
            with pytest.raises(ValueError, match="burn_in must be at least 0"):
                player.burn_in = -1
            with pytest.raises(TypeError, match="unexpected keyword argument 'steps'"):
                player.step(steps=3)
            player.step(iterations=2)

        await asyncio.to_thread(elsewhere)
        await player.wait()
        assert (source.iteration, player.target_iterations) == (2, 10)

    asyncio.run(main())


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


def test_commands_from_a_thread_with_a_loop_of_its_own() -> None:
    async def main() -> None:
        source, recorder = BusySource(), FakeRecorder()
        player = Player(source, recorder, target_iterations=50)

        async def subshell() -> None:
            player.play()
            await player.wait()

        with pytest.raises(RuntimeError, match="off the event loop's thread; give the command without _sync"):
            await asyncio.to_thread(player.step_sync)
        await asyncio.to_thread(lambda: asyncio.run(subshell()))
        assert player.status.state is PlayerState.FINISHED
        assert source.threads == {threading.get_ident()}
        assert recorder.iterations_kept == [*range(1, 51)]

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
        assert recorder.iterations_kept == [*range(1, source.iteration + 1)]
        assert source.threads == {threading.get_ident()}

    asyncio.run(main())


def test_shutdown_pauses_and_the_next_loop_goes_on() -> None:
    source, recorder = BusySource(), FakeRecorder()
    player = Player(source, recorder, target_iterations=400)  # before there is any loop

    async def first() -> None:
        player.play()
        while not source.iteration:
            await asyncio.sleep(0)

    asyncio.run(first())
    assert player.status.state is PlayerState.PAUSED
    assert "shut down" in player.status.message
    assert 0 < source.iteration < 400

    async def second() -> None:
        player.play()
        await player.wait()

    asyncio.run(second())
    assert player.status.state is PlayerState.FINISHED
    assert recorder.iterations_kept == [*range(1, 401)]


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
    assert recorder.iterations_kept == [*range(1, 101)]
    assert {record.name for record in caplog.records} == {"asyncio"}
    assert len(caplog.records) == 1 + waits, "of each task that was left"


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
        assert recorder.iterations_kept == [*range(1, source.iteration + 1)]
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
            return recorder.iterations_kept

        saved = await asyncio.to_thread(save)
        assert saved == recorder.iterations_kept == [*range(1, source.iteration + 1)]

    asyncio.run(main())


class Counting:
    """Counts its steps, and a screen notes them."""

    def __init__(self, time: FakeTime, most: int = 10**9) -> None:
        self.time, self.most = time, most
        self.done = 0
        self.shown: list[tuple[int, bool, int]] = []
        self.raises: Exception | None = None

    @property
    def is_done(self) -> bool:
        return self.done >= self.most

    def advance(self, steps: int) -> int:
        count = min(steps, self.most - self.done)
        self.done += count
        self.time.spend(count * 0.001)
        return count

    def show(self, tick: Tick) -> None:
        if self.raises is not None:
            raise self.raises
        self.shown.append((tick.number, tick.status.is_running, self.done))


def bench(most: int = 10**9) -> tuple[FakeTime, Counting, Worker]:
    passing = FakeTime()
    work = Counting(passing, most)
    worker = Worker(work, pacing=passing.pacing())
    worker.attach(work)
    return passing, work, worker


def test_work_that_is_no_chain_is_played_stepped_and_replaced() -> None:
    async def use() -> None:
        passing, work, worker = bench()
        worker.play()
        await passing.advance(0.5)
        assert work.done > 50
        worker.pause()
        done = work.done
        worker.step(3)
        worker.step()
        await passing.advance(0.5)
        assert work.done == done + 4
        assert not worker.status.is_running
        worker.play()
        await passing.advance(0.1)
        done, other = work.done, Counting(passing, most=20)
        worker.replace(other)
        await passing.advance(2.0)
        assert (work.done, other.done) == (done, 20), "the latest work goes on running"
        for command in (worker.play, worker.step):
            command()
            assert not worker.status.is_running
        worker.replace(work)
        assert not worker.status.is_running, "work that follows a rest waits for play"

    asyncio.run(use())


def test_a_fault_of_work_is_kept_until_there_is_other_work() -> None:
    async def use() -> None:
        passing, work, worker = bench()
        work.advance = lambda _: 0  # type: ignore[method-assign]
        worker.play()
        await passing.advance(0.2)
        assert worker.status.message.startswith("RuntimeError: Counting.advance() did no step")
        with pytest.raises(RuntimeError, match="did no step"):
            await worker.wait()
        work.raises = ValueError("cannot draw")
        worker.replace(Counting(passing))
        assert (worker.error, worker.status.message) == (None, "")
        worker.viewer_attached()
        worker.play()
        await passing.advance(0.2)
        assert worker.status.message == "ValueError: cannot draw", "a view that raises stops the work"
        assert not worker.status.is_running

    asyncio.run(use())


def test_without_a_loop_it_works_in_the_foreground() -> None:
    _, work, worker = bench(most=50)
    with pytest.raises(RuntimeError, match="needs a running event loop"):
        worker.play()
    worker.run_sync(7)
    assert work.done == 7
    worker.run_sync()
    work.raises = RuntimeError("cannot draw")
    with pytest.raises(RuntimeError, match="cannot draw"):
        worker.refresh()
    work.raises = None
    worker.refresh()
    assert work.shown[-1] == (2, False, 50)
    with pytest.raises(TypeError, match=r"show\(frame\), got int"):
        worker.attach(3)
