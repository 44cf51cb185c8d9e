"""What a dashboard gives to the explorer and to every lab."""

from collections.abc import Callable
from typing import Any

import pytest
from ipywidgets import HTML
from views.chains import Chain, Wire, made

import ewens_widgets as ew
from ewens_widgets.playback import Player
from ewens_widgets.views import SharedState, ThetaView
from ewens_widgets.views.base import Panel
from ewens_widgets.views.page import STATUS, Dashboard, Page, Room, in_columns

pytestmark = pytest.mark.usefixtures("wire")


class Engine:
    """Remembers what a dashboard asks of its player."""

    def __init__(self) -> None:
        self.views: list[Any] = []
        self.calls: list[str] = []

    def attach(self, view: object) -> None:
        self.views.append(view)

    def refresh(self) -> None:
        self.calls.append("refresh")

    def viewer_attached(self, viewer: str) -> None:
        self.calls.append(f"{viewer} here")

    def acknowledge(self, number: int, viewer: str) -> None:
        self.calls.append(f"{viewer} painted {number}")

    def viewer_left(self, viewer: str) -> None:
        self.calls.append(f"{viewer} gone")

    def close(self) -> None:
        self.calls.append("close")


class Board(Dashboard):
    css_class = "ew-lab ew-board"

    def __init__(self, chain: Chain, engine: Player | None = None) -> None:
        super().__init__(engine)
        self.view = made(ThetaView, SharedState(), chain)
        self.lay_out(self.view, HTML("below"), names={".ew-told": STATUS})

    @property
    def panels(self) -> tuple[Panel, ...]:
        return (self.view,)

    def caption(self) -> str:
        return "$5 for a picture"

    def __repr__(self) -> str:
        return "Board()"


def test_pages_hear_of_it_when_it_is_whole(chain: Chain, wire: Wire) -> None:
    # A page that connects meanwhile asks for the state of all widgets, and may show that for good.
    board = Board(chain)
    assert wire.opened[-1] == board.comm.comm_id
    assert wire.updates()[board.comm.comm_id] == 0


def test_the_page_comes_last(chain: Chain) -> None:
    engine = Engine()
    board = Board(chain, engine)
    assert board.children[-1] is board.page
    board.attach(board.view)
    assert engine.views == [board.view, board.page]


def test_without_an_engine_there_are_no_frames(chain: Chain) -> None:
    with pytest.raises(ValueError, match="Board has no engine"):
        Board(chain).attach()


def test_styles_and_names(chain: Chain) -> None:
    board = Board(chain)
    assert {"ew-explorer", "ew-lab", "ew-board"} <= set(board._dom_classes)
    assert board.page.names[".ew-theta"] == {"role": "group", "aria-label": ThetaView.description}
    assert board.page.names[".ew-status"] == board.page.names[".ew-told"] == STATUS


def test_a_page_tells_what_it_has_room_for() -> None:
    told: list[Room] = []
    page = Page(lambda room, answer: told.append(room))  # noqa: ARG005 - nobody waits here
    for content in (
        {"kind": "room", "scale": 1.6, "sizes": {"ew-scatter": [300, 200]}, "dark": True},
        {"kind": "room", "scale": "wide", "sizes": {}},
        {"kind": "room", "scale": 99, "sizes": {}},
        {"kind": "room", "scale": 1, "sizes": {"ew-scatter": [1]}},
        {"kind": "room"},
    ):
        page._handle_custom_msg(content, [])
    assert told == [Room(1.6, {"ew-scatter": (300.0, 200.0)}, is_dark=True)]


def test_a_page_hears_when_all_has_been_sent_that_follows_from_its_room(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = Board(chain)
    margin, sent = dict(board.view.figure.fig_margin), []
    monkeypatch.setattr(
        board.page, "send", lambda content: sent.append((content, dict(board.view.figure.fig_margin)))
    )
    board.page._handle_custom_msg(
        {"kind": "room", "viewer": "one", "number": 3, "scale": 2.0, "sizes": {}}, []
    )
    [(answer, then)] = sent
    assert answer == {"kind": "fitted", "viewer": "one", "number": 3}
    assert then == {side: 2 * pixels for side, pixels in margin.items()}


def test_figures_follow_the_room(chain: Chain) -> None:
    board = Board(chain)
    figure = board.view.figure
    before = dict(figure.fig_margin)
    board.fit(Room(2.0, {}))
    assert figure.fig_margin == {side: 2 * pixels for side, pixels in before.items()}


def test_commands_are_carried_out(chain: Chain) -> None:
    done: list[str] = []
    Board(chain).post(lambda: done.append("command"))
    assert done == ["command"]


def test_a_still_picture_stands_in(chain: Chain) -> None:
    engine = Engine()
    bundle = Board(chain, engine)._repr_mimebundle_()
    assert engine.calls == ["refresh"]
    assert bundle["text/plain"] == "Board()"
    assert "image/png" in bundle
    with pytest.raises(ValueError, match="is a PNG; got 'svg'"):
        Board(chain).picture("svg")


def test_a_picture_that_cannot_be_made_does_no_harm(
    chain: Chain, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = Board(chain)
    monkeypatch.delattr(Board, "caption")
    assert "image/png" not in board._repr_mimebundle_()
    assert "no static picture of Board" in caplog.text


def test_closing_ends_the_engine(chain: Chain) -> None:
    engine = Engine()
    board = Board(chain, engine)
    board.close()
    assert engine.calls == ["close"]
    Board(chain).close()


def test_columns() -> None:
    row = in_columns({"ew-left": (HTML("a"), HTML("b")), "ew-right": ()})
    assert "ew-columns" in row._dom_classes
    assert [len(box.children) for box in row.children] == [2, 0]
    assert "ew-left" in row.children[0]._dom_classes


@pytest.mark.parametrize(
    "make",
    [
        ew.Explorer,
        lambda: ew.ChainsView(chains=2),
        lambda: ew.AffineLab(draws=1, burn_in=0),
        lambda: ew.MoveInspector(ew.datasets.unit_square(seed=0), model="I"),
        lambda: ew.PriorLab(compare=ew.priors.FiniteMixture()),
    ],
    ids=["explorer", "chains", "affine", "moves", "prior"],
)
def test_every_panel_explains_itself(make: Callable[[], Dashboard]) -> None:
    dashboard = make()
    assert dashboard.panels
    for panel in dashboard.panels:
        heading = panel.children[0].children[0]
        assert len(panel.about.split()) > 10
        assert 'class="ew-explain"' in heading.value
    dashboard.close()
