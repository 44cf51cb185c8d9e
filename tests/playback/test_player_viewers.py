"""Frames and acknowledgements: viewers that come, go, stay silent or lag; memory stays flat."""

import asyncio
import gc
import tracemalloc
from collections.abc import Callable

import pytest
from playback.fakes import FakeRecorder, FakeSource, FakeTime, Stage, empty_turns

from ewens_widgets.playback import Frame, Player, PlayerState

MakeStage = Callable[..., Stage]


def tasks(stage: Stage) -> int:
    return len(asyncio.all_tasks(stage.loop))


def test_without_a_viewer_no_frames_and_no_waiting(stage: MakeStage) -> None:
    one = stage(watched=False, target_iterations=600)
    one.do(one.player.play, 1.0)
    assert one.state is PlayerState.FINISHED
    assert one.iterations == [*range(1, 601)]
    assert one.viewer.shown == [0], "only the frame of its attachment"
    assert tasks(one) == 0


def test_viewer_that_comes_later_gets_the_latest_state_at_once(stage: MakeStage) -> None:
    one = stage(watched=False, target_iterations=100)
    one.do(one.player.play, 0.5)
    one.do(one.player.viewer_attached, 0.02)
    assert one.viewer.shown == [0, 100]


@pytest.mark.parametrize("speed", [None, 0.001])
def test_viewer_that_comes_while_playing_is_served_at_once(stage: MakeStage, speed: float | None) -> None:
    one = stage(watched=False, speed=speed)
    one.do(one.player.play, 0.5)
    one.do(one.player.viewer_attached, 0.02)
    assert len(one.viewer.frames) >= 2


def test_lost_acknowledgements_do_not_stall(stage: MakeStage) -> None:
    one = stage()
    one.acknowledges = False
    one.do(one.player.play, 1.0)
    assert len(one.viewer.frames) == 3, "the first, and two in flight"
    before = one.source.iteration
    one.advance(1.0)
    assert one.source.iteration > before + 500, "the chain goes on"
    assert len(one.viewer.frames) == 4, "after the time-out one more is sent, and waited for longer"


def test_who_waits_for_pages_sleeps_until_they_have_painted(stage: MakeStage) -> None:
    one = stage(speed=1)
    one.do(one.player.play, 0.5)
    one.acknowledges = False
    one.advance(0.3)
    sent = len(one.viewer.frames)
    rests: list[float] = []
    sleep = one.time.sleep
    one.player._sleep = lambda seconds: (rests.append(seconds), sleep(seconds))[1]
    one.advance(1.0)
    assert len(one.viewer.frames) == sent
    assert len(rests) <= 21, "twenty times a second, and not five hundred times"
    now = one.time.now
    one.acknowledge()
    one.advance(0.0, step=0.0)
    one.run(empty_turns(20))
    assert one.viewer.times[sent:] == [now], "nobody has to wait for the end of the sleep"
    assert tasks(one) <= 2, "one that plays, and one that sleeps for it"


def test_what_is_asked_for_in_a_turn_is_not_slept_over(stage: MakeStage) -> None:
    one = stage(speed=1)
    one.do(one.player.play, 0.5)
    one.acknowledges = False
    show = one.viewer.show

    def show_and_paint(frame: Frame) -> None:
        show(frame)
        one.player.acknowledge(frame.number)  # joins the queue: a turn is under way

    one.viewer.show = show_and_paint  # type: ignore[method-assign]
    sent = len(one.viewer.frames)
    one.advance(1.0)
    assert len(one.viewer.frames) >= sent + 18


def test_closed_tab_and_reopened(stage: MakeStage) -> None:
    one = stage(seconds=0.005)
    one.do(one.player.play, 0.5)
    one.acknowledges = False  # the tab is closed without a word
    one.advance(8.0)
    sent = len(one.viewer.frames)
    before = one.source.iteration
    one.advance(2.0)
    assert len(one.viewer.frames) == sent, "nobody looks, nothing is sent"
    assert one.source.iteration > before + 200
    one.acknowledges = True
    one.do(one.player.viewer_attached, 0.5)
    assert len(one.viewer.frames) >= sent + 6
    assert one.iterations == [*range(1, one.source.iteration + 1)]


def test_closed_tab_keeps_the_speed(stage: MakeStage) -> None:
    one = stage(speed=1)
    one.do(one.player.play, 1.0)
    one.acknowledges = False
    one.advance(8.0)
    before = one.source.iteration
    one.advance(2.0)
    assert 30 <= one.source.iteration - before <= 41


def test_viewer_that_takes_its_leave(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.play, 0.2)
    one.do(one.player.viewer_left)
    sent = len(one.viewer.frames)
    one.acknowledges = False
    one.advance(0.5)
    assert len(one.viewer.frames) == sent


def test_slow_frames_leave_most_time_to_the_chain(stage: MakeStage) -> None:
    one = stage(seconds=0.005)
    one.viewer.seconds = 0.030
    one.do(one.player.play, 2.0)
    before, start = one.source.iteration, one.time.now
    one.advance(4.0)
    rate = (one.source.iteration - before) / (one.time.now - start)
    assert rate > 100, "at least half of the bare 200 a second"


def test_latest_state_wins(stage: MakeStage) -> None:
    one = stage()
    one.do(lambda: one.player.step(50), 2.0)
    one.acknowledges = False
    one.advance(2.0)
    sent = len(one.viewer.frames)
    for iteration in range(40):
        one.do(lambda iteration=iteration: one.player.seek(iteration), 0.01)
    assert len(one.viewer.frames) == sent + 2, "two in flight, the others are dropped"
    one.acknowledges = True
    one.advance(0.2)
    assert one.viewer.shown[-1] == 39
    assert len(one.viewer.frames) == sent + 3


def test_refresh_shows_without_a_viewer(stage: MakeStage) -> None:
    one = stage(watched=False)
    one.do(lambda: one.player.step(3), 0.2)
    one.do(one.player.refresh)
    assert one.viewer.shown == [0, 3]


def test_current_frame_sends_nothing(stage: MakeStage) -> None:
    one = stage(watched=False)
    one.do(lambda: one.player.step(3), 0.2)
    frame = one.do(one.player.current_frame)
    assert frame.status.shown_iteration == 3
    assert one.viewer.shown == [0]


def test_burn_in_reaches_the_summaries(stage: MakeStage) -> None:
    one = stage(burn_in=4)
    one.do(lambda: one.player.step(10), 0.5)
    assert one.viewer.frames[-1].summary.n_draws == 6
    one.do(lambda: setattr(one.player, "burn_in", 7), 0.1)
    assert one.viewer.frames[-1].summary.n_draws == 3
    assert one.player.burn_in == 7


def test_close(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.play, 0.2)
    one.do(one.player.close, 0.1)
    assert one.player.views == ()
    assert one.state is PlayerState.PAUSED
    assert tasks(one) == 0


@pytest.mark.slow
def test_memory_stays_flat_over_20_000_frames() -> None:
    class Looking:
        last = 0

        def show(self, frame: Frame) -> None:
            frame.summary.similarity()
            frame.summary.theta_posterior()
            self.last = frame.number

    passing = FakeTime()
    player = Player(FakeSource(), FakeRecorder(), target_iterations=8, pacing=passing.pacing())
    view = Looking()
    player.attach(view)
    player.viewer_attached()
    player.run_to_end_sync()

    def show_frames(count: int) -> None:
        for number in range(count):
            passing.spend(0.05)
            player.seek(number % 8)
            player.refresh()
            player.acknowledge(view.last)

    show_frames(10)  # compiles what the frames need
    tracemalloc.start()
    show_frames(500)
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    show_frames(20_000)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert view.last == 20_510
    assert after - before < 50_000
