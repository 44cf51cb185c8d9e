"""The tour shows and points at what its captions speak of, and leaves everything as it was."""

import asyncio

import numpy as np
import pytest
from views.explorer.small_explorer import square, step

from ewens_widgets.views import Explorer
from ewens_widgets.views.explorer.presets import STOPS

pytestmark = pytest.mark.usefixtures("wire")

TOPICS = ("Partition", "Invariance", "λ", "θ", "Similarity", "How many", "The answer")


def pointed_at(explorer: Explorer) -> list[str]:
    return [name for name in explorer._dom_classes if name.startswith("ew-at-")]


def test_each_stop_sets_its_state_and_points_at_its_part() -> None:
    async def use() -> None:
        explorer = Explorer(square(), model="II", iterations=70, burn_in=10)
        explorer.player.step_sync(30)
        explorer.transport.choose_speed(5.0)
        explorer.shared.set_colouring("classes")
        labels, state, tour = explorer.labels, explorer.state, explorer.tour
        explorer.tour_button.click()
        assert explorer.dataset.n_objects == 80
        assert explorer.settings.model == "III"
        for place, (topic, stop) in enumerate(zip(TOPICS, STOPS, strict=True), start=1):
            assert tour.caption.value.startswith(f"{place} of 7 · {topic}")
            assert pointed_at(explorer) == [f"ew-at-{stop.part.removeprefix('ew-')}"]
            if topic == "Invariance":
                assert not np.array_equal(explorer.transform.matrix, np.eye(2))
                assert explorer.player.status.is_running
            if topic == "θ":
                assert explorer.pictures_shown.value
            if topic == "Similarity":
                await explorer.player.wait()
                assert explorer.player.status.iteration == 800
            if topic == "The answer":
                explorer.player.complete()
                assert "group" in explorer.headline.sentence.value
            tour.buttons["Next"].click()
        assert tour.place == -1
        assert tour.layout.display == "none"
        assert not pointed_at(explorer)
        assert "ew-touring" not in explorer._dom_classes
        assert explorer.state == state
        np.testing.assert_array_equal(explorer.labels, labels)
        assert (explorer.player.speed, explorer.pictures_shown.value) == (5.0, False)
        step(explorer, 5)
        assert explorer.player.status.iteration == 35, "the chain goes on where it was"
        explorer.player.refresh()
        explorer.on_frame(lambda frame: starts.append(frame.summary.start))
        explorer.tour.begin()
        explorer.tour.leave()
        assert starts[-1] == 10, "the burn-in comes back before any answer is asked for"
        assert 200 not in starts
        explorer.close()

    starts: list[int] = []
    asyncio.run(use())


def test_it_can_be_left_and_begun_again() -> None:
    async def use() -> None:
        explorer = Explorer(square())
        for _ in range(2):
            explorer.tour.begin()
            assert (explorer.tour.place, explorer.dataset.n_objects) == (0, 80)
            explorer.tour.begin()
            assert explorer.tour.place == 0, "one tour at a time"
            explorer.tour.buttons["Close"].click()
            assert explorer.dataset.n_objects == 20
            assert explorer.tour.layout.display == "none"
        explorer.close()

    asyncio.run(use())
