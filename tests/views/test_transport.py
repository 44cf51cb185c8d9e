"""The buttons, the speed and the slider, on an explorer."""

import asyncio

import numpy as np
import pytest
from views.chains import Chain
from views.explorer.small_explorer import html_of, square, step

from ewens_widgets.playback import PlayerState, PlayerStatus
from ewens_widgets.playback.frame import number_text
from ewens_widgets.sampling.draws import MoveCount
from ewens_widgets.views.explorer.explorer import Explorer
from ewens_widgets.views.transport import status_text

pytestmark = pytest.mark.usefixtures("wire")


@pytest.fixture
def explorer() -> Explorer:
    return Explorer(square(), model="I", iterations=200, burn_in=20)


class TestTransport:
    def test_buttons_work_on_the_event_loop(self, explorer: Explorer) -> None:
        async def use() -> None:
            explorer.transport.buttons["Step"].click()
            await explorer.player.wait()
            assert explorer.player.status.iteration == 1
            explorer.transport.buttons["Run to end"].click()
            await explorer.player.wait()
            assert explorer.player.status.state is PlayerState.FINISHED
            explorer.transport.buttons["Reset"].click()
            assert explorer.player.status.iteration == 0
            play = explorer.transport.buttons["Play"]
            assert (play.description, play.button_style) == ("Play", "primary")
            play.click()
            explorer.player.refresh()
            assert play.description == "Pause"
            play.click()
            assert explorer.player.status.state is PlayerState.PAUSED

        asyncio.run(use())

    def test_at_the_end_the_large_button_adds_iterations(self, explorer: Explorer) -> None:
        play = explorer.transport.buttons["Play"]
        explorer.player.run_to_end_sync()
        explorer.player.refresh()
        assert play.description == "Run 1 000 more"

        async def use() -> None:
            play.click()
            assert explorer.player.target_iterations == 1200
            assert play.description == "Pause"
            play.click()

        asyncio.run(use())

    def test_seeking_shows_the_past_and_leaves_the_chain_alone(self, explorer: Explorer) -> None:
        step(explorer, 40)
        labels = explorer.labels
        explorer.transport.timeline.value = 5
        explorer.player.refresh()
        assert explorer.player.status.shown_iteration == 5
        assert "looking back; the chain is at 40" in html_of(explorer)
        frame = explorer.views["partition"].frame
        assert frame is not None
        np.testing.assert_array_equal(frame.event.labels, explorer.recorder.labels[4])
        np.testing.assert_array_equal(explorer.labels, labels)
        explorer.transport.timeline.value = 150
        assert explorer.player.status.is_following

    def test_showing_a_frame_seeks_nothing(self, explorer: Explorer) -> None:
        step(explorer, 10)
        assert explorer.transport.timeline.value == 10
        assert explorer.player.status.is_following
        timeline = explorer.transport.timeline
        assert (timeline.done, timeline.max, timeline.burn_in, timeline.jump) == (10, 200, 20, -1)

    def test_what_is_recorded_beyond_a_lowered_target_can_be_looked_at(self, explorer: Explorer) -> None:
        step(explorer, 40)
        explorer.player.target_iterations = 20
        explorer.player.refresh()
        assert explorer.transport.timeline.value == explorer.transport.timeline.max == 40
        explorer.transport.timeline.value = 30
        assert explorer.player.status.shown_iteration == 30

    def test_speed(self, explorer: Explorer) -> None:
        explorer.transport.speed.label = "as fast as possible"
        assert explorer.player.speed is None
        explorer.transport.speed.label = "5 iterations per frame"
        assert explorer.player.speed == 5

    def test_another_speed_is_offered_too(self) -> None:
        assert Explorer(square(), speed=7).transport.speed.label == "7 iterations per frame"
        assert Explorer(square(), speed=None).transport.speed.label == "as fast as possible"

    def test_at_first_the_speed_rises(self, explorer: Explorer) -> None:
        assert explorer.transport.speed.label == "slowly, then faster"
        speeds = []
        for _ in range(19):
            speeds.append(explorer.player.speed)
            step(explorer, 10)
        assert speeds[0] == 1.0
        assert speeds == sorted(speeds)
        assert speeds[-1] == 20.0
        # The clusters of the first data set appear at iteration 130: within two seconds of 15 frames.
        assert sum(10 / speed for speed in speeds[:13]) <= 30
        explorer.player.reset()
        explorer.player.refresh()
        assert explorer.player.speed == 1.0

    def test_who_tells_the_player_how_fast_to_go_is_obeyed(self, explorer: Explorer) -> None:
        explorer.player.speed = 0.1
        step(explorer, 100)
        assert explorer.player.speed == 0.1
        assert explorer.transport.speed.label == "2 iterations per second"
        explorer.transport.choose_speed("rising")
        assert explorer.player.speed == 20.0

    def test_preparing_is_told(self, explorer: Explorer) -> None:
        told = []

        async def use() -> None:
            explorer.transport.status.observe(lambda change: told.append(change["new"]), "value")
            explorer.player.step()
            await explorer.player.wait()

        asyncio.run(use())
        assert "Preparing the sampler" in told[0]


@pytest.mark.parametrize(
    ("made", "moved"), [(30, "12 of 30 points moved"), (90, "12 points moved in 3 sweeps")]
)
def test_an_iteration_in_words(chain: Chain, made: int, moved: str) -> None:
    moves = (MoveCount("a", 20, 3), MoveCount("gibbs", made, 12), MoveCount("b", 10, 2))
    told = f"5 of 30 proposals accepted, {moved}"
    assert status_text(chain.frame(12, n_clusters=7, moves=moves)) == f"iteration 12 of 40 · {told}"


@pytest.mark.parametrize(
    ("proposed", "text"), [([0, 0, 1, 2], "split"), ([0, 0, 0, 0], "merge"), ([0, 1, 1, 0], "move")]
)
def test_a_rejected_proposal(chain: Chain, proposed: list[int], text: str) -> None:
    event = {"n_clusters": 2, "labels": np.array([0, 0, 1, 1]), "proposed_labels": np.array(proposed)}
    frame = chain.frame(5, **event, accepted=False, moves=(MoveCount("split-merge", 1, 0),))
    assert status_text(frame).endswith(f"of 40 · {text} rejected")


def test_an_accepted_proposal_is_compared_with_the_draw_before(chain: Chain) -> None:
    proposed = np.arange(chain.events[3].n_clusters + 1)
    moves = (MoveCount("split-merge", 1, 1),)
    assert status_text(chain.frame(5, proposed_labels=proposed, accepted=True, moves=moves)).endswith(
        "split accepted"
    )
    for counts, text in (((1, 0), "proposal rejected"), ((1, 1), "proposal accepted"), ((0, 0), "nothing")):
        told = status_text(chain.frame(5, moves=(MoveCount("split-merge", *counts),)))
        assert told.rpartition(" · ")[2].startswith(text), "without details"


@pytest.mark.parametrize(
    ("shown", "status", "start", "end"),
    [
        (
            5,
            (PlayerState.PAUSED, 1240, 3000, 5),
            "iteration 5 of 3 000",
            "looking back; the chain is at 1 240",
        ),
        (5, (PlayerState.PAUSED, 6, 40, 6), "iteration 6 of 40", "iteration 6 of 40"),  # ahead of its frame
        (0, (PlayerState.PREPARING, 0, 40, 0, "Wait for it."), "Wait for it.", "Wait for it."),
        (0, (PlayerState.FAILED, 0, 40, 0, "Wait for it."), "Wait for it.", "Wait for it."),
        (5, (PlayerState.PLAYING, 5, 40, 5, "", 1234.4), "iteration 5", "1 234 iterations/s"),
        (5, (PlayerState.PLAYING, 5, 40, 5, "", 1.2), "iteration 5", "· 1 iteration/s"),
        (5, (PlayerState.FINISHED, 5, 5, 5, "All are done."), "iteration 5 of 5", "· All are done"),
    ],
)
def test_the_status_in_words(
    chain: Chain, shown: int, status: tuple[object, ...], start: str, end: str
) -> None:
    state, iteration, target, on_display, *rest = status
    names = dict(zip(("message", "iterations_per_second"), rest, strict=False))
    text = status_text(chain.frame(shown), PlayerStatus(state, iteration, target, on_display, **names))
    assert text.startswith(start)
    assert text.endswith(end)


def test_thousands_are_apart() -> None:
    assert number_text(1234567) == "1 234 567"
