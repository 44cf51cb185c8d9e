"""Faults of the source, the recorder and views, and interrupts: each ends in a state the user can see."""

import asyncio
from collections.abc import Callable

import pytest
from playback.fakes import FakeViewer, Stage

from ewens_widgets.playback import Frame, PlayerState

MakeStage = Callable[..., Stage]


def test_fault_of_the_source(stage: MakeStage) -> None:
    one = stage()
    one.source.raise_at[51] = FloatingPointError("log of zero")
    one.do(one.player.play, 0.5)
    assert one.state is PlayerState.FAILED
    assert one.player.status.message == "FloatingPointError: log of zero"
    assert isinstance(one.player.error, FloatingPointError)
    assert one.iterations == [*range(1, 51)]
    assert one.viewer.states[-1] is PlayerState.FAILED
    assert one.viewer.shown[-1] == 50
    one.do(one.player.play, 0.1)
    assert one.state is PlayerState.FAILED, "only a reset helps"
    one.do(lambda: one.player.seek(20), 0.1)
    assert one.viewer.shown[-1] == 20, "what was recorded can still be looked at"
    one.do(one.player.reset)
    assert one.player.error is None
    one.do(one.player.play, 0.2)
    assert one.state is PlayerState.PLAYING
    assert one.iterations == [*range(1, one.source.iteration + 1)]


def test_wait_raises_what_the_source_raised(stage: MakeStage) -> None:
    one = stage()
    one.source.raise_at[5] = FloatingPointError("log of zero")

    async def cell() -> None:
        one.player.play()
        waiting = asyncio.ensure_future(one.player.wait())
        await one.time.advance(0.5)
        await waiting

    with pytest.raises(FloatingPointError):
        one.run(cell())


def test_fault_of_the_recorder(stage: MakeStage) -> None:
    one = stage(speed=1)

    def full(event: object) -> None:
        if len(one.recorder) == 30:
            raise MemoryError("no room")

    one.recorder.before_append = full
    one.do(one.player.play, 3.0)
    assert one.state is PlayerState.FAILED
    assert one.iterations == [*range(1, 31)]
    one.recorder.before_append = None
    one.do(one.player.reset)
    one.do(one.player.step, 0.1)
    assert one.iterations == [1]


@pytest.mark.parametrize("where", ["source", "recorder", "view"])
def test_kernel_interrupt_pauses(stage: MakeStage, where: str) -> None:
    one = stage()
    pending = [True]

    def interrupt(_: object) -> None:
        if one.source.iteration >= 20 and pending:
            pending.clear()
            raise KeyboardInterrupt

    if where == "source":
        one.source.raise_at[20] = KeyboardInterrupt()
    elif where == "recorder":
        one.recorder.before_append = interrupt
    else:
        view = FakeViewer()
        view.show = interrupt
        one.do(lambda: one.player.attach(view))
    one.do(one.player.play, 0.3)
    assert one.state is PlayerState.PAUSED
    assert "Interrupted" in one.player.status.message
    assert one.iterations == [*range(1, one.source.iteration + 1)]
    assert one.viewer.shown[-1] == one.source.iteration
    one.do(one.player.play, 0.2)
    assert one.state is PlayerState.PLAYING
    assert one.player.status.message == ""
    assert one.iterations == [*range(1, one.source.iteration + 1)]


def test_interrupting_a_cell_that_waits_pauses(stage: MakeStage) -> None:
    one = stage()

    async def cell() -> None:
        one.player.play()
        waiting = asyncio.ensure_future(one.player.wait())
        await one.time.advance(0.2)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    one.run(cell())
    assert one.state is PlayerState.PAUSED
    assert "Interrupted" in one.player.status.message


class FaultyView:
    def __init__(self, at: int) -> None:
        self.at = at
        self.calls = 0
        self.boxed: list[Exception] = []

    def show(self, frame: Frame) -> None:
        self.calls += 1
        if frame.status.shown_iteration >= self.at:
            raise LookupError("no such colour")

    def show_error(self, error: Exception) -> None:
        self.boxed.append(error)


def test_faulty_view_is_detached_and_the_chain_goes_on(stage: MakeStage) -> None:
    reports: list[object] = []
    one = stage(strict=False, on_view_error=lambda view, _: reports.append(view))
    faulty, last = FaultyView(at=50), FakeViewer()
    one.do(lambda: one.player.attach(faulty))
    one.do(lambda: one.player.attach(last))
    one.do(one.player.play, 0.5)
    assert reports == [faulty]
    assert len(faulty.boxed) == 1
    assert one.player.views == (one.viewer, last)
    assert one.state is PlayerState.PLAYING
    assert last.shown == one.viewer.shown[-len(last.shown) :]
    assert one.iterations == [*range(1, one.source.iteration + 1)]


def test_faulty_view_fails_a_strict_player(stage: MakeStage) -> None:
    one = stage(strict=True)
    one.do(lambda: one.player.attach(FaultyView(at=50)))
    one.do(one.player.play, 0.5)
    assert one.state is PlayerState.FAILED
    assert isinstance(one.player.error, LookupError)


def test_faulty_view_raises_when_attached_in_strict_mode(stage: MakeStage) -> None:
    one = stage(strict=True)
    with pytest.raises(LookupError):
        one.do(lambda: one.player.attach(FaultyView(at=0)))


def test_recorder_comes_before_the_views(stage: MakeStage) -> None:
    one = stage()
    seen: list[bool] = []

    class Checking:
        def show(self, frame: Frame) -> None:
            seen.append(len(one.recorder) == frame.status.iteration == one.source.iteration)

    one.do(lambda: one.player.attach(Checking()))
    one.do(one.player.play, 0.3)
    assert len(seen) > 3
    assert all(seen)


def test_view_may_give_commands(stage: MakeStage) -> None:
    one = stage()

    class Stopping:
        def show(self, frame: Frame) -> None:
            if frame.status.iteration >= 30:
                one.player.reset()

    one.do(lambda: one.player.attach(Stopping()))
    one.do(one.player.play, 0.3)
    assert one.state is PlayerState.IDLE
    assert len(one.recorder) == 0
