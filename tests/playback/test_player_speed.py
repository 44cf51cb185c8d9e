"""Iterations a frame, slow motion, full speed, and what is said before the first block."""

from collections.abc import Callable
from typing import Any

import numpy as np
from playback.fakes import Stage

from ewens_widgets.playback import PlayerState
from ewens_widgets.playback.frame import status_text

MakeStage = Callable[..., Stage]


def test_blocks_grow_until_they_take_about_ten_milliseconds(stage: MakeStage) -> None:
    one = stage(seconds=0.0001)
    one.do(one.player.play, 0.5)
    assert one.source.blocks[0] == 1
    assert 50 <= max(one.source.blocks) <= 110


def test_speed_is_iterations_a_frame(stage: MakeStage) -> None:
    one = stage(speed=3)
    one.do(one.player.play, 1.0)
    steps = np.diff(one.viewer.shown[3:])
    assert set(steps) == {3}
    assert len(steps) >= 10


def test_speed_one_shows_every_iteration(stage: MakeStage) -> None:
    one = stage(speed=1)
    one.do(one.player.play, 1.0)
    assert [*dict.fromkeys(one.viewer.shown)] == [*range(one.viewer.shown[-1] + 1)]
    assert set(one.source.blocks) == {1}


def test_slow_motion(stage: MakeStage) -> None:
    one = stage(speed=0.1)
    one.do(one.player.play, 3.0)
    assert 5 <= one.source.iteration <= 7


def test_speed_changes_while_playing(stage: MakeStage) -> None:
    one = stage(speed=0.001)
    one.do(one.player.play, 0.5)
    assert one.source.iteration <= 3
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


def test_preparing_is_told_before_the_first_block(stage: MakeStage) -> None:
    one = stage(first_seconds=7.0, preparing_message="Compiling…")
    heard: list[tuple[PlayerState, str, int]] = []
    one.do(
        lambda: one.player.on_status(
            lambda status: heard.append((status.state, status.message, len(one.source.blocks)))
        )
    )
    one.do(one.player.play)
    assert heard == [(PlayerState.PREPARING, "Compiling…", 0)]
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
    assert status_text(shown).endswith("iterations/s · interpreted until then")
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
    assert heard == [PlayerState.IDLE, PlayerState.STEPPING, PlayerState.PAUSED]
    one.do(stop)
    one.do(one.player.play)
    assert len(heard) == 3
