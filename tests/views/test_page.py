"""What a dashboard gives to the explorer and to every lab."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets
import pytest
from ipywidgets import HTML
from views.chains import Chain, Wire, made

import ewens_widgets as ew
from ewens_widgets.playback import Frame, Player
from ewens_widgets.playback.display import FanOut
from ewens_widgets.views import Stage, ThetaView
from ewens_widgets.views.base import Panel
from ewens_widgets.views.page import STATUS, Dashboard, Page, Parcel, Room, in_columns

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
        self.view = made(ThetaView, Stage(), chain)
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


def test_pages_with_further_styles_are_of_a_class_of_their_own(chain: Chain, tmp_path: Path) -> None:
    sheet = tmp_path / "board.css"
    sheet.write_text(".ew-board { color: teal; }")

    class Styled(Board):
        stylesheet = sheet

    plain, styled = Board(chain).page, Styled(chain).page
    assert isinstance(plain, Page)
    assert isinstance(styled, Page)
    # A browser keeps one set of styles for each class: two with the same would fight.
    assert plain._anywidget_id != styled._anywidget_id
    assert styled._css == plain._css + sheet.read_text()


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


# Frames in parcels.


def looked_at(board: Board, *viewers: str, painted: bool = True) -> None:
    """Pages that look at a board, and have painted a frame or have not yet."""
    for viewer in viewers:
        board.page._handle_custom_msg({"kind": "here", "viewer": viewer}, [])
        if painted:
            painted_one = {"kind": "painted", "viewer": viewer, "number": 0, "unpacks": True}
            board.page._handle_custom_msg(painted_one, [])


def shown(chain: Chain, wire: Wire, *viewers: str, painted: bool = True) -> tuple[Board, list[Any]]:
    """A board after a frame, and the messages of that frame."""
    fan_out: FanOut[Frame, object] = FanOut(strict=True)
    board = Board(chain, Engine())
    board.attach(board.view)
    for view in board._engine.views:
        fan_out.attach(view)
    looked_at(board, *viewers, painted=painted)
    wire.clear()
    fan_out.show(chain.frame(3))
    return board, list(wire.messages)


def test_a_frame_is_one_message_to_pages_that_have_shown_that_they_take_it(chain: Chain, wire: Wire) -> None:
    board, [(receiver, message)] = shown(chain, wire, "one", "other")
    assert receiver == board.page.comm.comm_id
    assert message["method"] == "custom"
    updates = message["content"]["updates"]
    # The page itself comes last: when it hears of the frame, everything else has been handed out.
    assert updates[-1] == {
        "model": board.page.comm.comm_id,
        "state": {"frame": chain.number},
        "paths": [],
    }
    assert len(updates) > 1


def test_a_parcel_has_what_would_have_been_sent_one_by_one(wire: Wire) -> None:
    (_, [(_, parcel)]), (_, alone) = (shown(Chain(), wire, *viewers) for viewers in (("one",), ()))
    packed = [(update["state"], update["paths"]) for update in parcel["content"]["updates"]]
    assert packed == [(data["state"], data["buffer_paths"]) for _, data in alone]
    assert all(data["method"] == "update" for _, data in alone)


@pytest.mark.parametrize(("viewers", "painted"), [((), True), (("one",), False)])
def test_pages_that_have_shown_nothing_are_told_one_by_one(
    chain: Chain, wire: Wire, viewers: tuple[str, ...], painted: bool
) -> None:
    # A page may greet although its scripts came too late for it to hear of anything sent to it.
    _, messages = shown(chain, wire, *viewers, painted=painted)
    assert len(messages) > 1
    assert not wire.custom()


def test_one_page_that_takes_no_parcels_is_enough(chain: Chain, wire: Wire) -> None:
    board, _ = shown(chain, wire, "one")

    def is_packed() -> bool:
        wire.clear()
        with board.page.enclose():
            board.view.add_class("ew-told")
            board.view.remove_class("ew-told")
        return [content["kind"] for content in wire.custom()] == ["parcel"]

    assert is_packed()
    looked_at(board, "late", painted=False)
    assert not is_packed()
    board.page._handle_custom_msg({"kind": "painted", "viewer": "late", "number": 1}, [])
    assert not is_packed(), "it has painted, and does not say that it unpacks"
    board.page._handle_custom_msg({"kind": "gone", "viewer": "late"}, [])
    assert is_packed()


def test_buffers_follow_their_changes(wire: Wire) -> None:
    sent: list[tuple[dict[str, Any], list[Any]]] = []
    pictures = [ipywidgets.Image(value=b""), ipywidgets.Image(value=b"")]
    with Parcel(lambda content, buffers: sent.append((content, buffers))).packed():
        for picture, value in zip(pictures, (b"first", b"second"), strict=True):
            picture.value = value
    [(content, buffers)] = sent
    assert [bytes(buffer) for buffer in buffers] == [b"first", b"second"]
    assert [update["paths"] for update in content["updates"]] == [[["value"]], [["value"]]]
    assert [update["model"] for update in content["updates"]] == [one.model_id for one in pictures]


def test_what_cannot_wait_comes_after_what_was_packed_before_it(wire: Wire) -> None:
    line, page = HTML("one"), Page()
    wire.clear()
    with Parcel(page.send).packed():
        line.value = "two"
        page.tip("viewer", "told")
        line.value = "three"
    assert [content["kind"] for content in wire.custom()] == ["parcel", "tip", "parcel"]
    assert not wire.updates()


def test_other_threads_send_for_themselves(wire: Wire) -> None:
    line, page = HTML("one"), Page()
    wire.clear()
    with Parcel(page.send).packed():
        thread = threading.Thread(target=lambda: setattr(line, "value", "two"))
        thread.start()
        thread.join()
        assert wire.updates() == {line.comm.comm_id: 1}
    assert not wire.custom()


def test_a_fault_in_a_frame_loses_nothing(wire: Wire) -> None:
    line, page = HTML("one"), Page()
    wire.clear()

    def faulty() -> None:
        with Parcel(page.send).packed():
            line.value = "two"
            raise RuntimeError("in a view")

    with pytest.raises(RuntimeError, match="in a view"):
        faulty()
    line.value = "three"
    [packed] = wire.custom()
    assert packed["updates"][0]["state"] == {"value": "two"}
    assert wire.updates() == {line.comm.comm_id: 1}, "nothing is packed after the frame"


def test_what_a_view_has_begun_in_a_frame_sends_for_itself_later(wire: Wire) -> None:
    line, page = HTML("one"), Page()

    async def later() -> None:
        line.value = "three"

    async def scene() -> None:
        with Parcel(page.send).packed():
            line.value = "two"
            task = asyncio.create_task(later())
        wire.clear()
        await task

    asyncio.run(scene())
    assert wire.updates() == {line.comm.comm_id: 1}


def test_one_that_cannot_be_sent_keeps_nobody_from_the_frame(wire: Wire) -> None:
    """And from the next frame on each sends for itself, so that the fault is that of its view."""
    good, bad, page = HTML("one"), HTML("one"), Page()
    page._engine = Engine()  # type: ignore[assignment]
    page._handle_custom_msg({"kind": "painted", "viewer": "one", "number": 0, "unpacks": True}, [])

    def refuse(content: dict[str, Any], buffers: list[Any]) -> None:
        raise TypeError("not JSON serializable")

    page.send = refuse  # type: ignore[method-assign]
    wire.clear()
    with page.enclose():
        good.value = bad.value = "two"
    assert wire.updates() == {good.comm.comm_id: 1, bad.comm.comm_id: 1}
    wire.clear()
    with page.enclose():
        good.value = "three"
        assert wire.updates() == {good.comm.comm_id: 1}


def test_a_hidden_page_counts_until_it_is_closed(chain: Chain) -> None:
    board = Board(chain, Engine())
    board.attach(board.view)
    looked_at(board, "good")
    looked_at(board, "poor", painted=False)
    board.page._handle_custom_msg({"kind": "gone", "viewer": "poor", "hidden": True}, [])
    assert board.page._unpacks == {"good": True, "poor": False}
    board.page._handle_custom_msg({"kind": "gone", "viewer": "poor"}, [])
    assert board.page._unpacks == {"good": True}
    board.page._handle_custom_msg({"kind": "failed"}, [])
    assert board.page._unpacks == {"good": False}
