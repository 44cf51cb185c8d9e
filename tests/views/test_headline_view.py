"""The sentence is about what is on display, and the buttons choose what that is."""

import numpy as np
import pytest
from views.chains import Chain, Wire

from ewens_widgets.views import PartitionView, Stage
from ewens_widgets.views.headline_view import Headline
from ewens_widgets.views.stage import Cut


@pytest.fixture
def headline(wire: Wire, chain: Chain) -> Headline:
    stage = Stage()
    stage.prepare(chain.posterior, chain.dataset.labels)
    headline = Headline(stage)
    headline.prepare(chain.dataset)
    return headline


def stage_of(headline: Headline) -> Stage:
    return headline._stage


def test_it_tells_the_clusters_of_the_draw(headline: Headline, chain: Chain) -> None:
    headline.show(chain.frame(5, labels=np.array([0] * 20 + [1] * 8 + [2, 3])))
    assert headline.sentence.value.startswith("This draw: 4 clusters, 2 of them single objects")
    assert "agreement with classes" in headline.sentence.value


def test_it_tells_the_clusters_of_the_cut_where_colours_are_those(headline: Headline, chain: Chain) -> None:
    headline.show(chain.frame(20))
    stage_of(headline).set_cut(Cut(n_clusters=2))
    assert headline.sentence.value.startswith("Tree cut into 2 clusters")
    assert headline.colouring.value == "cut"


def test_the_buttons_colour_the_objects(headline: Headline, chain: Chain) -> None:
    stage = stage_of(headline)
    view = PartitionView(stage)
    view.prepare(chain.dataset, chain.posterior)
    frame = chain.frame(20)
    view.show(frame)
    headline.show(frame)
    headline.colouring.value = "classes"
    assert stage.colouring == "classes"
    classes, colours = chain.dataset.labels, np.array(view.points.colors)
    assert classes is not None
    for label in np.unique(classes):
        assert len(set(colours[classes == label].tolist())) == 1
    assert len(set(colours.tolist())) == np.unique(classes).size
    assert headline.sentence.value.startswith(f"Known classes: {np.unique(classes).size}")
    headline.colouring.value = "draw"
    assert headline.sentence.value.startswith("This draw")


def test_without_known_classes_they_are_not_offered(wire: Wire, chain: Chain) -> None:
    from dataclasses import replace

    stage = Stage()
    stage.colouring = "classes"
    stage.prepare(chain.posterior)
    headline = Headline(stage)
    headline.prepare(replace(chain.dataset, labels=None, label_names=None))
    assert [kind for _, kind in headline.colouring.options] == ["draw", "cut"]
    assert headline.colouring.value == "draw"


def test_other_kinds_of_colours_are_refused(wire: Wire) -> None:
    with pytest.raises(ValueError, match="colours can show draw, cut, classes"):
        Stage().set_colouring("rainbow")


def test_a_frame_is_two_messages_at_most(headline: Headline, chain: Chain, wire: Wire) -> None:
    headline.show(chain.frame(5))
    wire.clear()
    headline.show(chain.frame(6))
    assert sum(wire.updates().values()) <= 2
