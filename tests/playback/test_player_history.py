"""Looking back through the record, resetting, changing the source."""

from collections.abc import Callable

import numpy as np
import pytest
from playback.fakes import FakeRecorder, FakeSource, Stage

from ewens_widgets.analysis.similarity import similarity
from ewens_widgets.playback import PlayerState, PlayerStatus

MakeStage = Callable[..., Stage]


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


@pytest.mark.parametrize("command", ["play", "step", "run_to_end"])
def test_going_on_after_seek_starts_from_the_present(stage: MakeStage, command: str) -> None:
    one = stage()
    one.do(lambda: one.player.step(20), 1.0)
    one.do(lambda: one.player.seek(5), 0.1)
    one.do(getattr(one.player, command), 0.1)
    assert one.iterations == [*range(1, one.source.iteration + 1)]
    assert one.source.iteration > 20
    assert one.viewer.frames[-1].status.is_following


def test_seek_none_and_seek_to_the_present_follow_again(stage: MakeStage) -> None:
    one = stage()
    one.do(lambda: one.player.step(8), 0.5)
    for back in (None, 8):
        one.do(lambda: one.player.seek(3), 0.1)
        assert one.viewer.shown[-1] == 3
        one.do(lambda back=back: one.player.seek(back), 0.1)
        assert one.viewer.shown[-1] == 8
        assert one.player.status.is_following


def test_seek_to_the_start_shows_the_initial_state(stage: MakeStage) -> None:
    one = stage()
    one.do(lambda: one.player.step(8), 0.5)
    one.do(lambda: one.player.seek(0), 0.1)
    event = one.viewer.frames[-1].event
    assert event is not None
    assert (event.iteration, event.moves) == (0, ())


def test_seek_keeps_a_finished_player_finished(stage: MakeStage) -> None:
    one = stage(target_iterations=10)
    one.do(one.player.play, 0.3)
    one.do(lambda: one.player.seek(4), 0.1)
    assert one.state is PlayerState.FINISHED
    assert one.viewer.shown[-1] == 4


@pytest.mark.parametrize("iteration", [9, 1000])
def test_seek_beyond_the_record_is_refused(stage: MakeStage, iteration: int) -> None:
    one = stage()
    one.do(lambda: one.player.step(8), 0.5)
    with pytest.raises(ValueError, match=f"iteration {iteration} is not recorded; choose one from 0 to 8"):
        one.do(lambda: one.player.seek(iteration))


def test_reset_while_playing(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.play, 0.3)
    one.do(one.player.reset)
    assert one.state is PlayerState.IDLE
    assert (one.source.resets, one.source.iteration, len(one.recorder)) == (1, 0, 0)
    one.advance(0.3)
    assert one.source.iteration == 0
    frame = one.viewer.frames[-1]
    assert frame.event is not None
    assert frame.event.iteration == 0
    assert len(frame.summary) == 0
    one.do(one.player.play, 0.1)
    assert one.iterations == [*range(1, one.source.iteration + 1)]


def test_reset_while_looking_back(stage: MakeStage) -> None:
    one = stage()
    one.do(lambda: one.player.step(8), 0.5)
    one.do(lambda: one.player.seek(3))
    one.do(one.player.reset, 0.1)
    assert one.viewer.shown[-1] == 0
    assert one.player.status.is_following


def test_reset_that_fails_is_shown(stage: MakeStage) -> None:
    one = stage()

    def broken() -> None:
        raise OSError("no way back")

    one.source.reset = broken
    one.do(one.player.reset)
    assert one.state is PlayerState.FAILED
    assert one.player.status.message == "OSError: no way back"


def test_other_source_while_playing(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.play, 0.3)
    old, new = one.source, FakeSource(one.time)
    one.do(lambda: one.player.replace_source(new, target_iterations=60))
    reached = old.iteration
    one.advance(0.2)
    assert one.state is PlayerState.IDLE
    assert one.viewer.shown[-1] == 0
    assert one.player.source is new
    one.do(one.player.play, 0.3)
    assert old.iteration == reached
    assert one.iterations == [*range(1, 61)]
    assert one.state is PlayerState.FINISHED


def test_other_source_with_its_own_recorder(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.play, 0.2)
    kept = len(one.recorder)
    recorder = FakeRecorder()
    one.do(lambda: one.player.replace_source(FakeSource(one.time), recorder))
    one.do(one.player.step, 0.2)
    assert len(one.recorder) == kept, "the old record is left alone"
    assert len(recorder) == 1
    assert one.player.recorder is recorder


def test_other_source_is_prepared_again(stage: MakeStage) -> None:
    one = stage()
    one.do(one.player.step, 0.1)
    heard: list[PlayerStatus] = []
    one.do(lambda: one.player.on_status(heard.append))
    one.do(lambda: one.player.replace_source(FakeSource(one.time)))
    one.do(one.player.play)
    assert heard[-1].state is PlayerState.PREPARING
