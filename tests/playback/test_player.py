"""The player on fake time: commands, speed, looking back, the foreground, errors, viewers."""

import asyncio
import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playback.fakes import FakeRecorder, FakeSource, FakeTime, FakeViewer, Stage, empty_turns, labels_at

from ewens_widgets.analysis.similarity import similarity
from ewens_widgets.playback import Frame, Player, PlayerState, PlayerStatus

MakeStage = Callable[..., Stage]


def tasks(stage: Stage) -> int:
    return len(asyncio.all_tasks(stage.loop))


def test_starts_idle_and_shows_the_initial_state(stage: MakeStage) -> None:
    one = stage(watched=False)
    assert one.state is PlayerState.PAUSED
    assert one.viewer.shown == [0]
    event = one.viewer.frames[0].event
    assert event is not None
    assert np.array_equal(event.labels, labels_at(0))
    assert tasks(one) == 0


def test_play_runs_records_and_shows(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.play, 1.0)
    assert one.state is PlayerState.PLAYING
    assert one.iterations == [*range(1, one.source.iteration + 1)]
    assert one.source.iteration > 500, "most of the second is spent on iterations of a millisecond"
    assert 12 <= len(one.viewer.frames) <= 22
    assert one.viewer.shown == sorted(one.viewer.shown)
    assert one.player.status.iterations_per_second == pytest.approx(one.source.iteration, rel=0.2)


def test_pause_stops_at_once_and_play_goes_on(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.pause)
    assert one.state is PlayerState.PAUSED, "where nothing runs, nothing changes"
    one.do(one.player.play)
    one.do(one.player.play, 0.25)
    one.do(one.player.play, 0.25)
    assert tasks(one) == 1, "a second play makes no second task"
    one.do(one.player.pause)
    stopped = one.source.iteration
    assert one.state is PlayerState.PAUSED
    one.advance(0.3)
    assert one.source.iteration == stopped
    assert one.viewer.states[-1] is PlayerState.PAUSED
    assert one.viewer.shown[-1] == stopped
    assert one.player.status.iterations_per_second == 0.0
    assert tasks(one) == 0, "a player that stands still costs nothing"
    for _ in range(2):
        one.do(one.player.play, 0.1)
        one.do(one.player.pause, 0.1)
    assert one.iterations == [*range(1, one.source.iteration + 1)]
    assert one.source.resets == 0


def test_target_is_reached_exactly_and_can_be_extended(stage: MakeStage) -> None:
    one = stage(target_iterations=137)
    one.do(one.player.play, 1.0)
    assert one.state is PlayerState.FINISHED
    assert one.iterations == [*range(1, 138)]
    assert one.viewer.shown[-1] == 137
    assert one.player.status.message == ""
    assert tasks(one) == 0
    for command in (one.player.play, one.player.step, one.player.run_to_end):
        one.do(command, 0.1)
        assert one.state is PlayerState.FINISHED
    one.do(lambda: one.player.seek(4), 0.1)
    assert (one.state, one.viewer.shown[-1]) == (PlayerState.FINISHED, 4)
    one.do(lambda: one.player.extend(30))
    assert one.state is PlayerState.PAUSED
    assert one.player.target_iterations == 167
    one.do(one.player.play, 0.3)
    assert one.iterations == [*range(1, 168)]
    assert one.state is PlayerState.FINISHED


def test_target_below_the_present_and_the_end_of_the_source_finish(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.play, 0.2)
    one.do(lambda: setattr(one.player, "target_iterations", 5))
    reached = one.source.iteration
    one.advance(0.2)
    assert (one.state, one.source.iteration) == (PlayerState.FINISHED, reached)
    one.source.ends_at = reached + 40
    one.do(lambda: setattr(one.player, "target_iterations", 1000))
    one.do(one.player.play, 0.5)
    assert one.state is PlayerState.FINISHED
    assert one.iterations == [*range(1, reached + 41)]
    assert "no more iterations" in one.player.status.message


def test_steps_run_exactly_and_add_up(stage: MakeStage) -> None:
    one = stage()
    for expected in (1, 2, 3):
        one.do(one.player.step, 0.2)
        assert one.iterations[-1] == one.viewer.shown[-1] == expected
        assert one.state is PlayerState.PAUSED
    one.do(one.player.step)
    one.do(lambda: one.player.step(4))
    assert one.player.status.is_running
    one.advance(0.3)
    assert one.iterations == [*range(1, 9)]
    assert set(one.source.blocks) == {1}
    assert one.viewer.shown[-1] == 8
    one.do(one.player.play, 0.2)
    before = one.source.iteration
    one.do(one.player.step, 0.2)
    assert one.source.iteration == before + 1, "a step ends playing"
    assert one.state is PlayerState.PAUSED


def test_pause_and_play_while_stepping_forget_the_steps(stage: MakeStage) -> None:
    one = stage(seconds=0.02)
    for command, state in ((one.player.pause, PlayerState.PAUSED), (one.player.play, PlayerState.PLAYING)):
        before = one.source.iteration
        one.do(lambda: one.player.step(100), 0.2)
        assert one.state is PlayerState.STEPPING
        one.do(command, 0.1)
        assert one.state is state
        one.do(one.player.pause)
        stopped = one.source.iteration
        assert before < stopped < before + 100
        one.do(one.player.step, 0.2)
        assert one.source.iteration == stopped + 1


def test_blocks_grow_until_they_take_about_ten_milliseconds(stage: MakeStage) -> None:
    one = stage(seconds=0.0001)
    one.do(one.player.play, 0.5)
    assert one.source.blocks[0] == 1
    assert 50 <= max(one.source.blocks) <= 110


def test_speed_is_iterations_a_frame(stage: MakeStage) -> None:
    one = stage(speed=1)
    one.do(one.player.play, 1.0)
    assert [*dict.fromkeys(one.viewer.shown)] == [*range(one.viewer.shown[-1] + 1)]
    assert set(one.source.blocks) == {1}
    one.do(lambda: setattr(one.player, "speed", 3), 1.0)
    steps = np.diff(one.viewer.shown[-10:])
    assert set(steps) == {3}
    with pytest.raises(ValueError, match="speed must be positive"):
        one.do(lambda: setattr(one.player, "speed", 0))
    assert one.player.speed == 3
    assert one.state is PlayerState.PLAYING


def test_slow_motion_and_back(stage: MakeStage) -> None:
    one = stage(speed=0.1)
    one.do(one.player.play, 3.0)
    assert 5 <= one.source.iteration <= 7
    one.do(lambda: setattr(one.player, "speed", None), 0.5)
    assert one.source.iteration > 200
    assert one.player.status.speed is None


def test_run_to_end_ignores_the_speed(stage: MakeStage) -> None:
    one = stage(speed=1, target_iterations=400)
    one.do(one.player.run_to_end)
    assert one.player.status.speed is None
    one.advance(0.8)
    assert one.state is PlayerState.FINISHED
    assert one.iterations == [*range(1, 401)]
    assert one.player.status.speed == 1


def test_speed_paces_without_a_viewer_too(stage: MakeStage) -> None:
    one = stage(speed=2, watched=False)
    one.do(one.player.play, 2.0)
    assert 60 <= one.source.iteration <= 84
    one.do(one.player.viewer_attached, 0.1)  # a tab that is closed without a word
    one.acknowledges = False
    one.advance(8.0)
    before = one.source.iteration
    one.advance(2.0)
    assert 60 <= one.source.iteration - before <= 84


def test_preparing_is_told_before_the_first_block(stage: MakeStage) -> None:
    one = stage(first_seconds=7.0)
    heard: list[tuple[PlayerState, str, int]] = []
    one.do(
        lambda: one.player.on_status(
            lambda status: heard.append((status.state, status.message, len(one.source.blocks)))
        )
    )
    one.do(one.player.play)
    assert [(state, blocks) for state, _, blocks in heard] == [(PlayerState.PREPARING, 0)]
    assert heard[0][1].startswith("Preparing the sampler")
    while one.viewer.states[-1] is not PlayerState.PREPARING:
        one.run(one.time.advance(0.002))
        assert one.source.blocks == [], "nothing is run before the message is sent"
    assert one.time.now < 100.1
    one.advance(8.0)
    assert heard[1][:2] == (PlayerState.PLAYING, "")
    assert one.source.blocks[0] == 1
    assert max(one.source.blocks) > 4, "the slow first block is not taken as the measure"


def test_a_source_that_is_being_compiled_is_told_of_and_waited_for(stage: MakeStage) -> None:
    one = stage()
    source: Any = one.source
    source.compilation, source.prepare = "compiling (3 of 50)", lambda: False
    heard: list[tuple[PlayerState, str]] = []
    one.do(lambda: one.player.on_status(lambda status: heard.append((status.state, status.message))))
    one.do(one.player.play, 1.0)
    assert heard == [(PlayerState.PREPARING, "compiling (3 of 50)")]
    source.compilation = "compiling (4 of 50)"
    one.advance(1.0)
    assert heard[1:] == [(PlayerState.PREPARING, "compiling (4 of 50)")]
    assert one.source.blocks == []
    source.compilation, source.prepare = "interpreted until then", lambda: True
    one.advance(1.0)
    assert heard[-1] == (PlayerState.PLAYING, "interpreted until then")
    assert one.source.iteration > 10
    shown = one.player.current_frame()
    assert shown.status.iterations_per_second > 1.0
    assert shown.status.message == "interpreted until then"
    source.compilation = ""
    one.advance(0.1)
    assert heard[-1] == (PlayerState.PLAYING, "")
    one.do(one.player.pause)
    assert heard[-1] == (PlayerState.PAUSED, "")


def test_only_the_first_block_is_prepared_for(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.step, 0.1)
    heard: list[PlayerState] = []
    stop = one.do(lambda: one.player.on_status(lambda status: heard.append(status.state)))
    one.do(one.player.reset)
    one.do(one.player.step, 0.1)
    assert heard == [PlayerState.PAUSED, PlayerState.STEPPING, PlayerState.PAUSED]
    one.do(stop)
    one.do(one.player.play)
    assert len(heard) == 3


def test_seek_pauses_and_shows_the_past_only(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.play, 0.4)
    present = one.source.iteration
    one.do(lambda: one.player.seek(30), 0.2)
    assert one.state is PlayerState.PAUSED
    frame = one.viewer.frames[-1]
    assert frame.event is not None
    assert frame.event.iteration == frame.status.shown_iteration == 30
    assert not frame.status.is_following
    assert frame.status.iteration == present == one.source.iteration
    assert frame.summary.iterations.tolist() == [*range(1, 31)]
    assert np.allclose(frame.summary.similarity(), similarity(one.recorder.labels[:30]))


def test_seek_to_the_start_to_the_present_and_beyond(stage: MakeStage) -> None:
    one = stage()
    one.do(lambda: one.player.step(8), 0.5)
    for back in (None, 8):
        one.do(lambda: one.player.seek(3), 0.1)
        assert one.viewer.shown[-1] == 3
        one.do(lambda back=back: one.player.seek(back), 0.1)
        assert one.viewer.shown[-1] == 8
        assert one.player.status.is_following
    one.do(lambda: one.player.seek(0), 0.1)
    event = one.viewer.frames[-1].event
    assert (event.iteration, event.moves) == (0, ())
    for beyond in (9, 1000):
        with pytest.raises(ValueError, match=f"iteration {beyond} is not recorded; choose one from 0 to 8"):
            one.player.seek(beyond)
    one.do(one.player.reset, 0.1)
    assert one.viewer.shown[-1] == 0
    assert one.player.status.is_following


def test_reset_while_playing(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.play, 0.3)
    one.do(one.player.reset)
    assert one.state is PlayerState.PAUSED
    assert (one.source.resets, one.source.iteration, len(one.recorder)) == (1, 0, 0)
    one.advance(0.3)
    assert one.source.iteration == 0
    frame = one.viewer.frames[-1]
    assert frame.event is not None
    assert frame.event.iteration == 0
    assert len(frame.summary) == 0
    one.do(one.player.play, 0.1)
    assert one.iterations == [*range(1, one.source.iteration + 1)]


def test_reset_that_fails_is_shown(stage: MakeStage) -> None:
    one = stage()

    def broken() -> None:
        raise OSError("no start")

    one.source.reset = broken
    one.do(one.player.reset)
    assert one.state is PlayerState.FAILED
    assert one.player.status.message == "OSError: no start"


def test_other_source_while_playing_is_prepared_again(stage: MakeStage) -> None:
    one = stage(target_iterations=200)
    one.do(one.player.play, 0.1)
    old, kept = one.source, len(one.recorder)
    new, recorder = FakeSource(one.time), FakeRecorder()
    heard: list[PlayerStatus] = []
    one.do(lambda: one.player.on_status(heard.append))
    one.do(lambda: one.player.replace_source(new, recorder), 0.2)
    assert (one.state, one.viewer.shown[-1]) == (PlayerState.PAUSED, 0)
    assert (one.player.source, one.player.recorder) == (new, recorder)
    one.do(one.player.play)
    assert heard[-1].state is PlayerState.PREPARING
    one.advance(0.5)
    assert (old.iteration, len(one.recorder)) == (kept, kept), "the old ones are left alone"
    assert recorder.iterations_kept == [*range(1, 201)]
    assert one.state is PlayerState.FINISHED


def test_play_without_a_loop_says_what_to_do() -> None:
    player = Player(FakeSource(), FakeRecorder(), target_iterations=10)
    for command in ("play", "step", "run_to_end"):
        with pytest.raises(
            RuntimeError, match=rf"{command}\(\) works in the background.*call {command}_sync\(\)"
        ):
            getattr(player, command)()


def test_running_in_the_foreground() -> None:
    source, recorder, viewer = FakeSource(), FakeRecorder(), FakeViewer()
    player = Player(source, recorder, target_iterations=100)
    player.attach(viewer)
    player.step_sync(3)
    assert source.iteration == 3
    assert player.status.state is PlayerState.PAUSED
    player.seek(2)
    assert player.status.shown_iteration == 2
    player.run_to_end_sync()
    assert player.status.state is PlayerState.FINISHED
    assert [event.iteration for event in recorder.kept] == [*range(1, 101)]
    player.refresh()
    assert viewer.shown == [0, 100]
    player.reset()
    assert player.status.state is PlayerState.PAUSED
    player.step_sync()
    assert len(recorder) == 1


def test_foreground_faults_and_interrupts_raise() -> None:
    source, recorder = FakeSource(), FakeRecorder()
    player = Player(source, recorder, target_iterations=100)
    for at, error, state in (
        (4, KeyboardInterrupt, PlayerState.PAUSED),
        (10, ArithmeticError, PlayerState.FAILED),
    ):
        source.raise_at[at] = error("no")
        with pytest.raises(error):
            player.run_to_end_sync()
        assert (player.status.state, len(recorder)) == (state, at - 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_iterations": 0}, "target_iterations must be at least 1; got 0"),
        ({"target_iterations": 5, "speed": -1}, "speed must be positive"),
        ({"target_iterations": 5, "burn_in": -1}, "burn_in must be at least 0"),
    ],
)
def test_bad_settings_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Player(FakeSource(), FakeRecorder(), **options)


# Errors and interrupts.


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


@pytest.mark.parametrize("where", ["source", "view"])
def test_kernel_interrupt_pauses(stage: MakeStage, where: str) -> None:
    one = stage()
    pending = [True]

    def interrupt(_: object) -> None:
        if one.source.iteration >= 20 and pending:
            pending.clear()
            raise KeyboardInterrupt

    if where == "source":
        one.source.raise_at[20] = KeyboardInterrupt()
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


def test_a_cell_that_waits_can_be_interrupted_and_hears_of_faults(stage: MakeStage) -> None:
    one = stage()

    async def cell(seconds: float, *, cancelled: bool) -> list[object]:
        one.player.play()
        waiting = asyncio.ensure_future(one.player.wait())
        await one.time.advance(seconds)
        if cancelled:
            waiting.cancel()
        return await asyncio.gather(waiting, return_exceptions=True)

    one.run(cell(0.2, cancelled=True))
    assert one.state is PlayerState.PAUSED
    assert "Interrupted" in one.player.status.message
    one.source.raise_at[one.source.iteration + 5] = FloatingPointError("log of zero")
    (fault,) = one.run(cell(0.5, cancelled=False))
    assert isinstance(fault, FloatingPointError)


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
    one = stage(strict=False)
    faulty, last = FaultyView(at=50), FakeViewer()
    one.do(lambda: one.player.attach(faulty))
    one.do(lambda: one.player.attach(last))
    one.do(one.player.play, 0.5)
    assert len(faulty.boxed) == 1
    assert one.player.views == (one.viewer, last)
    assert one.state is PlayerState.PLAYING
    assert last.shown == one.viewer.shown[-len(last.shown) :]
    assert one.iterations == [*range(1, one.source.iteration + 1)]


def test_faulty_view_fails_a_strict_player(stage: MakeStage) -> None:
    one = stage(strict=True)
    with pytest.raises(LookupError):
        one.do(lambda: one.player.attach(FaultyView(at=0)))
    one = stage(strict=True)
    one.do(lambda: one.player.attach(FaultyView(at=50)))
    one.do(one.player.play, 0.5)
    assert one.state is PlayerState.FAILED
    assert isinstance(one.player.error, LookupError)


# Viewers: frames and acknowledgements.


def test_without_a_viewer_no_frames_and_no_waiting(stage: MakeStage) -> None:
    one = stage(watched=False, target_iterations=600)
    one.do(one.player.play, 1.0)
    assert one.state is PlayerState.FINISHED
    assert one.iterations == [*range(1, 601)]
    assert one.viewer.shown == [0], "only the frame of its attachment"
    assert tasks(one) == 0
    frame = one.do(one.player.current_frame)
    assert frame.status.shown_iteration == 600
    assert one.viewer.shown == [0], "this frame is not sent"
    one.do(one.player.refresh)
    assert one.viewer.shown == [0, 600]
    one.do(lambda: one.player.seek(3))
    one.do(one.player.viewer_attached, 0.06)
    assert one.viewer.shown == [0, 600, 3], "who comes later gets the latest state at once"


@pytest.mark.parametrize("speed", [None, 0.001])
def test_viewer_that_comes_while_playing_is_served_at_once(stage: MakeStage, speed: float | None) -> None:
    one = stage(watched=False, speed=speed)
    one.do(one.player.play, 0.5)
    one.do(one.player.viewer_attached, 0.02)
    assert len(one.viewer.frames) >= 2


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
    assert one.viewer.times[sent:] == [now], "an acknowledgement ends the sleep"
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
    assert len(one.viewer.frames) == sent, "without a viewer nothing is sent"
    assert one.source.iteration > before + 200
    one.acknowledges = True
    one.do(one.player.viewer_attached, 0.5)
    assert len(one.viewer.frames) >= sent + 6
    assert one.iterations == [*range(1, one.source.iteration + 1)]


def test_slow_frames_leave_most_time_to_the_chain(stage: MakeStage) -> None:
    one = stage(seconds=0.005)
    one.viewer.seconds = 0.030
    one.do(one.player.play, 2.0)
    before, start = one.source.iteration, one.time.now
    one.advance(4.0)
    rate = (one.source.iteration - before) / (one.time.now - start)
    assert rate > 100, "at least half of the bare 200 a second"


def test_burn_in_reaches_the_summaries(stage: MakeStage) -> None:
    one = stage(burn_in=4)
    one.do(lambda: one.player.step(10), 0.5)
    assert one.viewer.frames[-1].summary.n_draws == 6
    one.do(lambda: setattr(one.player, "burn_in", 7), 0.1)
    assert one.viewer.frames[-1].summary.n_draws == 3
    assert one.player.burn_in == 7


def test_a_page_that_leaves_and_the_end(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.play, 0.2)
    one.do(one.player.viewer_left)
    sent, one.acknowledges = len(one.viewer.frames), False
    one.advance(0.5)
    assert len(one.viewer.frames) == sent
    assert one.state is PlayerState.PLAYING
    one.do(one.player.close, 0.1)
    assert one.player.views == ()
    assert one.state is PlayerState.PAUSED
    assert tasks(one) == 0


@pytest.mark.slow
def test_memory_stays_flat_over_a_thousand_frames() -> None:
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
    show_frames(200)
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    show_frames(800)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert view.last == 1_010
    assert after - before < 8_000
