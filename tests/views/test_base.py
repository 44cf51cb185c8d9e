"""What every view promises, tested once for all. A new view joins by one row."""

import numpy as np
import pytest
from ipywidgets import Widget
from views.chains import Chain, Wire, made, widgets_below

from ewens_widgets.datasets import Dataset
from ewens_widgets.playback import Frame, Player, PlayerState
from ewens_widgets.sampling.draws import DrawTable
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.views import CountView, HeatmapView, PartitionView, ThetaView, TracesView, TreeView, View
from ewens_widgets.views.shared_state import SharedState

VIEWS = (PartitionView, CountView, ThetaView, HeatmapView, TreeView, TracesView)


@pytest.fixture(params=VIEWS, ids=lambda kind: kind.__name__)
def view(request: pytest.FixtureRequest, shared: SharedState, chain: Chain) -> View:
    return made(request.param, shared, chain)


def test_traits_of_the_box_are_accepted_and_other_keywords_named(view: View) -> None:
    assert type(view)(layout={"width": "200px"}).layout.width == "200px"
    with pytest.raises(TypeError, match=r"has no keyword 'colour', 'speed'"):
        type(view)(speed=1, colour="red")


def test_a_frame_makes_no_widget_and_sends_one_message_a_widget_at_most(
    view: View, chain: Chain, wire: Wire
) -> None:
    view.show(chain.frame(1))
    before = len(Widget.get_manager_state()["state"])
    for iteration in range(2, 12):
        wire.clear()
        view.show(chain.frame(iteration))
        assert wire.updates(), "a new iteration changes the picture"
        assert max(wire.updates().values()) == 1
        assert not wire.custom()
    assert len(Widget.get_manager_state()["state"]) == before


def test_the_same_frame_twice_sends_nothing(view: View, chain: Chain, wire: Wire) -> None:
    frame = chain.frame(7)
    for shown in (chain.frame(0), chain.frame(3), chain.frame(0)):  # the start can be shown too
        view.show(shown)
    assert view.picture("png").startswith(b"\x89PNG")
    view.show(frame)
    wire.clear()
    view.show(frame)
    view.redraw()
    assert wire.messages == []


def test_state_survives_a_round_trip(view: View, chain: Chain) -> None:
    view.show(chain.frame(20))
    for widget in widgets_below(view):
        state = widget.get_state()
        kept = {key: value for key, value in state.items() if not key.startswith("_")}
        assert set(kept) <= set(widget.keys)
        again = widget.get_state(key=list(kept))
        assert {key: _plain(value) for key, value in again.items()} == {
            key: _plain(value) for key, value in kept.items()
        }


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return bytes(value) if isinstance(value, memoryview) else value


def test_a_running_chain_is_drawn_at_the_view_s_own_pace(view: View, chain: Chain, wire: Wire) -> None:
    view.show(chain.frame(1, PlayerState.PLAYING))
    wire.clear()
    view.show(chain.frame(9, PlayerState.PLAYING))
    assert bool(wire.updates()) == (view.rest == 0.0)
    wire.clear()
    view.show(chain.frame(9))
    view.show(chain.frame(10))
    assert wire.updates(), "where the chain rests the picture is up to date"


@pytest.mark.slow
def test_pictures_are_the_same_for_the_same_state(view: View, chain: Chain) -> None:
    view.show(chain.frame(15))
    assert view.picture("svg").lstrip().startswith(b"<?xml")
    assert view.picture("png") == view.picture("png")
    with pytest.raises(ValueError, match="one of png, svg, pdf; got 'gif'"):
        view.picture("gif")


def test_other_data_can_be_shown(view: View, chain: Chain) -> None:
    view.show(chain.frame(15))
    other = Chain(n_objects=17, n_draws=9)
    view.shared.prepare(other.posterior)
    view.prepare(other.dataset, other.posterior)
    view.show(other.frame(9))
    assert view.frame is not None
    assert view.frame.event is not None
    assert view.frame.event.labels.size == 17


def test_a_fault_is_shown_in_the_view_s_own_box(
    view: View, chain: Chain, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def raise_fault(_: Frame) -> None:
        raise RuntimeError("<b>broken</b>")

    view.show(chain.frame(1))
    monkeypatch.setattr(view, "draw", raise_fault)
    view.redraw()
    assert view._error.layout.display == ""
    assert "&lt;b&gt;broken" in view._error.value
    assert "raised" in caplog.text
    monkeypatch.undo()
    view.show(chain.frame(2))
    assert view.frame is not None
    assert view.frame.status.iteration == 1, "a faulty view stays out of the way"
    view.prepare(chain.dataset, chain.posterior)
    view.show(chain.frame(2))
    assert view._error.layout.display == "none"


def test_a_fault_detaches_the_view_and_the_chain_goes_on(
    view: View, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = Sampler(chain.dataset, moves="paper-1", seed=0)
    player = Player(sampler, DrawTable(sampler.posterior, sampler.move_names), target_iterations=10)
    player.attach(view)
    monkeypatch.setattr(view, "draw", lambda _: 1 / 0)
    player.step_sync(2)
    player.refresh()
    assert player.views == ()
    assert "ZeroDivisionError" in view._error.value
    player.step_sync(2)
    assert player.status.iteration == 4


def test_hostile_names_are_escaped(wire: Wire, chain: Chain) -> None:
    script = "<script>alert(1)</script>"
    n_features = chain.dataset.n_features
    names = tuple(f"{script}{k}" for k in range(n_features))
    hostile = Dataset(X=np.array(chain.dataset.X), name=script, feature_names=names)
    for kind in VIEWS:
        view = kind(SharedState())
        view.shared.prepare(chain.posterior)
        view.prepare(hostile, chain.posterior)
        view.show(chain.frame(5))
        html = [widget.value for widget in widgets_below(view) if type(widget).__name__ == "HTML"]
        assert all("<script" not in text for text in html)
        assert b"<script" not in view.picture("svg")
