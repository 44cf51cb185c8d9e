"""The buttons, the speed and the slider, on an explorer."""

import asyncio

import numpy as np
import pytest
from views.explorer.small_explorer import html_of, square, step

from ewens_widgets.playback import PlayerState
from ewens_widgets.views.explorer.explorer import Explorer

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
            explorer.transport.buttons["Play"].click()
            explorer.transport.buttons["Pause"].click()
            assert explorer.player.status.state is PlayerState.PAUSED

        asyncio.run(use())

    def test_seeking_shows_the_past_and_leaves_the_chain_alone(self, explorer: Explorer) -> None:
        step(explorer, 40)
        labels = explorer.labels
        explorer.transport.seek.value = 5
        explorer.player.refresh()
        assert explorer.player.status.shown_iteration == 5
        assert "looking back; the chain is at 40" in html_of(explorer)
        frame = explorer.views["partition"].frame
        assert frame is not None
        np.testing.assert_array_equal(frame.event.labels, explorer.recorder.labels[4])
        np.testing.assert_array_equal(explorer.labels, labels)
        explorer.transport.seek.value = 150
        assert explorer.player.status.is_following

    def test_showing_a_frame_seeks_nothing(self, explorer: Explorer) -> None:
        step(explorer, 10)
        assert explorer.transport.seek.value == 10
        assert explorer.player.status.is_following
        assert explorer.transport.progress.value == 10
        assert explorer.transport.progress.max == 200

    def test_what_is_recorded_beyond_a_lowered_target_can_be_looked_at(self, explorer: Explorer) -> None:
        step(explorer, 40)
        explorer.player.target_iterations = 20
        explorer.player.refresh()
        assert explorer.transport.seek.value == explorer.transport.seek.max == 40
        explorer.transport.seek.value = 30
        assert explorer.player.status.shown_iteration == 30

    def test_speed(self, explorer: Explorer) -> None:
        explorer.transport.speed.label = "as fast as it goes"
        assert explorer.player.speed is None
        explorer.transport.speed.label = "5 iterations a frame"
        assert explorer.player.speed == 5

    def test_another_speed_is_offered_too(self) -> None:
        assert Explorer(square(), speed=7).transport.speed.label == "7 iterations a frame"
        assert Explorer(square(), speed=None).transport.speed.label == "as fast as it goes"

    def test_at_first_the_speed_rises(self, explorer: Explorer) -> None:
        assert explorer.transport.speed.label == "slowly, then faster"
        speeds = []
        for _ in range(19):
            speeds.append(explorer.player.speed)
            step(explorer, 10)
        assert speeds[0] == 1.0
        assert speeds == sorted(speeds)
        assert speeds[-1] == 5.0
        explorer.player.reset()
        explorer.player.refresh()
        assert explorer.player.speed == 1.0

    def test_who_tells_the_player_how_fast_to_go_is_obeyed(self, explorer: Explorer) -> None:
        explorer.player.speed = 0.1
        step(explorer, 100)
        assert explorer.player.speed == 0.1
        assert explorer.transport.speed.label == "2 iterations a second"
        explorer.transport.choose_speed("rising")
        assert explorer.player.speed == 2.0

    def test_preparing_is_told(self, explorer: Explorer) -> None:
        told = []

        async def use() -> None:
            explorer.transport.status.observe(lambda change: told.append(change["new"]), "value")
            explorer.player.step()
            await explorer.player.wait()

        asyncio.run(use())
        assert "Preparing the sampler" in told[0]
