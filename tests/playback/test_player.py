"""What the player does, on fake time: playing and stepping."""

import asyncio
from collections.abc import Callable

import numpy as np
import pytest
from playback.fakes import Stage, labels_at

from ewens_widgets.playback import PlayerState

MakeStage = Callable[..., Stage]


def tasks(stage: Stage) -> int:
    return len(asyncio.all_tasks(stage.loop))


def test_starts_idle_and_shows_the_initial_state(stage: MakeStage) -> None:
    one = stage(watched=False)
    assert one.state is PlayerState.IDLE
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
    assert one.player.status.frames_per_second == pytest.approx(18, abs=3)


def test_play_twice_makes_no_second_task(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.play)
    one.do(one.player.play, 0.1)
    one.do(one.player.play, 0.1)
    assert tasks(one) == 1
    assert one.iterations == [*range(1, one.source.iteration + 1)]


def test_pause_stops_at_once_and_is_shown(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.play, 0.5)
    one.do(one.player.pause)
    stopped = one.source.iteration
    assert one.state is PlayerState.PAUSED
    one.advance(0.3)
    assert one.source.iteration == stopped
    assert one.viewer.states[-1] is PlayerState.PAUSED
    assert one.viewer.shown[-1] == stopped
    assert one.player.status.iterations_per_second == 0.0
    assert tasks(one) == 0, "a player that stands still costs nothing"


def test_play_after_pause_goes_on(stage: MakeStage) -> None:
    one = stage()
    for _ in range(3):
        one.do(one.player.play, 0.1)
        one.do(one.player.pause, 0.1)
    assert one.iterations == [*range(1, one.source.iteration + 1)]
    assert one.source.resets == 0


def test_pause_when_nothing_runs_changes_nothing(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.pause)
    assert one.state is PlayerState.IDLE


def test_target_is_reached_exactly(stage: MakeStage) -> None:
    one = stage(target_iterations=137)
    one.do(one.player.play, 1.0)
    assert one.state is PlayerState.FINISHED
    assert one.iterations == [*range(1, 138)]
    assert one.viewer.shown[-1] == 137
    assert one.player.status.progress == 1.0
    assert one.player.status.message == "All 137 iterations are done."
    assert tasks(one) == 0


def test_play_at_the_target_stays_finished_until_extended(stage: MakeStage) -> None:
    one = stage(target_iterations=20)
    one.do(one.player.play, 0.2)
    for command in (one.player.play, one.player.step, one.player.run_to_end):
        one.do(command, 0.1)
        assert one.state is PlayerState.FINISHED
    one.do(lambda: one.player.extend(30))
    assert one.state is PlayerState.PAUSED
    assert one.player.target_iterations == 50
    one.do(one.player.play, 0.3)
    assert one.iterations == [*range(1, 51)]
    assert one.state is PlayerState.FINISHED


def test_target_moved_below_the_present_finishes(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.play, 0.2)
    one.do(lambda: setattr(one.player, "target_iterations", 5))
    reached = one.source.iteration
    one.advance(0.2)
    assert one.state is PlayerState.FINISHED
    assert one.source.iteration == reached


def test_source_that_ends_early(stage: MakeStage) -> None:
    one = stage()
    one.source.ends_at = 40
    one.do(one.player.play, 0.5)
    assert one.state is PlayerState.FINISHED
    assert one.iterations == [*range(1, 41)]
    assert "no more iterations" in one.player.status.message


def test_step_runs_exactly_one_iteration(stage: MakeStage) -> None:
    one = stage()
    for expected in (1, 2, 3):
        one.do(one.player.step, 0.2)
        assert one.iterations[-1] == expected
        assert one.state is PlayerState.PAUSED
        assert one.viewer.shown[-1] == expected
    assert one.source.blocks == [1, 1, 1]


def test_steps_add_up(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.step)
    one.do(lambda: one.player.step(4))
    assert one.player.status.is_running
    one.advance(0.3)
    assert one.iterations == [1, 2, 3, 4, 5]
    assert set(one.source.blocks) == {1}
    assert one.viewer.shown[-1] == 5


def test_step_while_playing_plays_no_further(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.play, 0.2)
    before = one.source.iteration
    one.do(one.player.step, 0.2)
    assert one.source.iteration == before + 1
    assert one.state is PlayerState.PAUSED


def test_pause_while_stepping_cancels_the_rest(stage: MakeStage) -> None:
    one = stage(seconds=0.02)
    one.do(lambda: one.player.step(100), 0.2)
    assert one.state is PlayerState.STEPPING
    one.do(one.player.pause)
    stopped = one.source.iteration
    assert 0 < stopped < 100
    one.advance(0.2)
    assert one.source.iteration == stopped
    one.do(one.player.step, 0.2)
    assert one.source.iteration == stopped + 1


def test_play_while_stepping_forgets_the_steps(stage: MakeStage) -> None:
    one = stage(seconds=0.02)
    one.do(lambda: one.player.step(100), 0.1)
    one.do(one.player.play, 0.1)
    assert one.state is PlayerState.PLAYING
    one.do(one.player.pause)
    one.do(one.player.step)
    before = one.source.iteration
    one.advance(0.2)
    assert one.source.iteration == before + 1
