"""What a frame says about the player, and a frame in words."""

import dataclasses

import numpy as np
import pytest
from views.chains import Chain

from ewens_widgets.playback.frame import PlayerState, PlayerStatus, number_text, status_text
from ewens_widgets.sampling.draws import MoveCount


@pytest.fixture
def chain() -> Chain:
    return Chain()


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


def test_an_iteration_in_words(chain: Chain) -> None:
    frame = chain.frame(12, n_clusters=7, moves=(MoveCount("a", 20, 3), MoveCount("b", 10, 2)))
    assert status_text(frame) == "iteration 12 of 40 · 5 of 30 moves accepted"


@pytest.mark.parametrize(
    ("proposed", "accepted", "text"),
    [
        ([0, 0, 1, 2], False, "split rejected"),
        ([0, 0, 0, 0], False, "merge rejected"),
        ([0, 1, 1, 0], False, "move rejected"),
    ],
)
def test_a_rejected_proposal(chain: Chain, proposed: list[int], accepted: bool, text: str) -> None:
    frame = chain.frame(
        5,
        n_clusters=2,
        labels=np.array([0, 0, 1, 1]),
        proposed_labels=np.array(proposed),
        accepted=accepted,
        moves=(MoveCount("split-merge", 1, 0),),
    )
    assert status_text(frame).endswith(f"of 40 · {text}")


def test_an_accepted_proposal_is_compared_with_the_draw_before(chain: Chain) -> None:
    before = chain.events[3].n_clusters
    frame = chain.frame(
        5,
        proposed_labels=np.arange(before + 1),
        accepted=True,
        moves=(MoveCount("split-merge", 1, 1),),
    )
    assert status_text(frame).endswith("split accepted")


@pytest.mark.parametrize(
    ("move", "text"),
    [
        (MoveCount("split-merge", 1, 0), "proposal rejected"),
        (MoveCount("split-merge", 1, 1), "proposal accepted"),
        (MoveCount("split-merge", 0, 0), "nothing proposed"),
    ],
)
def test_a_single_move_without_details(chain: Chain, move: MoveCount, text: str) -> None:
    assert status_text(chain.frame(5, moves=(move,))).endswith(text)


def test_the_past_is_told_from_the_present(chain: Chain) -> None:
    status = PlayerStatus(PlayerState.PAUSED, 1240, 3000, 5)
    text = status_text(chain.frame(5), status)
    assert text.startswith("iteration 5 of 3 000")
    assert text.endswith("looking back; the chain is at 1 240")


def test_a_status_ahead_of_its_frame_tells_nothing_old(chain: Chain) -> None:
    status = PlayerStatus(PlayerState.PAUSED, 6, 40, 6)
    assert status_text(chain.frame(5), status) == "iteration 6 of 40"


@pytest.mark.parametrize("state", [PlayerState.PREPARING, PlayerState.FAILED])
def test_messages_come_first(chain: Chain, state: PlayerState) -> None:
    status = PlayerStatus(state, 0, 40, 0, message="Wait for it.")
    assert status_text(chain.frame(0), status) == "Wait for it."


def test_speed_and_messages(chain: Chain) -> None:
    running = PlayerStatus(PlayerState.PLAYING, 5, 40, 5, iterations_per_second=1234.4)
    assert status_text(chain.frame(5), running).endswith("1 234 iterations/s")
    done = PlayerStatus(PlayerState.FINISHED, 5, 5, 5, message="All 5 iterations are done.")
    assert status_text(chain.frame(5), done).endswith("All 5 iterations are done")


def test_thousands_are_apart() -> None:
    assert number_text(1234567) == "1 234 567"
