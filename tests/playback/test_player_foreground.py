"""Without an event loop, and settings that are refused."""

from collections.abc import Callable

import pytest
from playback.fakes import FakeRecorder, FakeSource, FakeViewer, Stage

from ewens_widgets.playback import Player, PlayerState

MakeStage = Callable[..., Stage]


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
    assert player.status.state is PlayerState.IDLE
    player.step_sync()
    assert len(recorder) == 1


def test_foreground_faults_and_interrupts_raise() -> None:
    source, recorder = FakeSource(), FakeRecorder()
    player = Player(source, recorder, target_iterations=100)
    source.raise_at[4] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        player.run_to_end_sync()
    assert player.status.state is PlayerState.PAUSED
    assert len(recorder) == 3
    source.raise_at[10] = ArithmeticError("no")
    with pytest.raises(ArithmeticError):
        player.run_to_end_sync()
    assert player.status.state is PlayerState.FAILED
    assert len(recorder) == 9


def test_foreground_while_playing_takes_over(stage: MakeStage) -> None:
    one = stage(target_iterations=5000)
    one.do(one.player.play, 0.2)
    before = one.source.iteration
    one.do(lambda: one.player.step_sync(5))
    assert one.source.iteration == before + 5
    assert one.state is PlayerState.PAUSED
    one.advance(0.2)
    assert one.source.iteration == before + 5
    assert one.viewer.shown[-1] == before + 5


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


def test_bad_speed_while_playing_leaves_the_chain_alone(stage: MakeStage) -> None:
    one = stage(speed=5)
    one.do(one.player.play, 0.1)
    with pytest.raises(ValueError, match="speed must be positive"):
        one.do(lambda: setattr(one.player, "speed", 0))
    assert one.player.speed == 5
    assert one.state is PlayerState.PLAYING
