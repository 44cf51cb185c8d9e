"""The tour shows what its captions speak of."""

import pytest
from views.explorer.small_explorer import square, step

from ewens_widgets.analysis.agreement import adjusted_rand
from ewens_widgets.playback import PlayerState
from ewens_widgets.views import Cut, Explorer
from ewens_widgets.views.explorer.presets import STOPS

pytestmark = pytest.mark.usefixtures("wire")


def test_each_stop_sets_the_state_that_it_speaks_of() -> None:
    explorer = Explorer(square(), model="II")
    step(explorer, 3)
    explorer.tour_button.click()
    tour = explorer.tour
    assert tour.layout.display == ""
    assert "1 of 6" in tour.caption.value
    assert explorer.dataset.n_objects == 80
    assert explorer.settings.model == "I"
    assert explorer.player.status.iteration == 0
    # Without an event loop nothing can be played; a test in a browser does.
    explorer.player.run_to_end_sync()
    explorer.player.refresh()
    tour._place = 3
    tour.next()
    assert explorer.shared.cut == Cut(n_clusters=4)
    assert explorer.shared.colouring == "cut"
    assert "Tree cut into 4 clusters" in explorer.headline.sentence.value
    labels = explorer.shared.labels(explorer.player.current_frame())
    assert adjusted_rand(explorer.dataset.labels, labels) > 0.8, "its branches are the four corners"
    tour.next()
    assert explorer.shared.colouring == "classes"
    assert tour.place == len(STOPS) - 1
    assert tour.buttons["Next"].layout.display == "none"
    tour.next()
    assert tour.place == -1
    assert tour.layout.display == "none"
    assert explorer.player.status.state is PlayerState.FINISHED


def test_it_can_be_left() -> None:
    explorer = Explorer(square())
    explorer.tour.begin()
    explorer.tour.buttons["Close"].click()
    assert explorer.tour.layout.display == "none"
    explorer.tour.begin()
    assert explorer.tour.place == 0
    assert explorer.tour.buttons["Next"].layout.display == ""
