"""What a frame says about the player."""

import dataclasses

import pytest

from ewens_widgets.playback.frame import PlayerState, PlayerStatus


def test_status_is_frozen_and_tells_progress() -> None:
    status = PlayerStatus(PlayerState.PLAYING, iteration=30, target=120, shown_iteration=30)
    assert status.progress == 0.25
    assert status.is_running
    assert status.is_following
    assert dataclasses.replace(status, iteration=500).progress == 1.0
    assert not dataclasses.replace(status, shown_iteration=3).is_following
    with pytest.raises(dataclasses.FrozenInstanceError):
        status.iteration = 31


def test_states_that_run() -> None:
    assert {state for state in PlayerState if state.is_running} == {"preparing", "playing", "stepping"}
