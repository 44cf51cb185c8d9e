import logging

import pytest
from playback.fakes import FakeRecorder, make_event

from ewens_widgets.playback.display import FanOut
from ewens_widgets.playback.frame import Frame, PlayerState, PlayerStatus
from ewens_widgets.playback.summaries import RunningSummaries

STATUS = PlayerStatus(PlayerState.PAUSED, 1, 10, 1)
FRAME = Frame(1, make_event(1), STATUS, RunningSummaries(FakeRecorder()).up_to(0))


class Recording:
    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    def show(self, frame: Frame) -> None:
        self.log.append(f"{self.name}{frame.number}")


class Faulty:
    def __init__(self) -> None:
        self.boxed: list[Exception] = []

    def show(self, frame: Frame) -> None:
        raise ZeroDivisionError(f"no colours left for frame {frame.number}")

    def show_error(self, error: Exception) -> None:
        self.boxed.append(error)


def test_views_are_shown_in_order_and_once() -> None:
    log: list[str] = []
    fan_out = FanOut()
    first, second = Recording("a", log), Recording("b", log)
    for view in (first, second, first):
        fan_out.attach(view)
    fan_out.show(FRAME)
    assert log == ["a1", "b1"]
    fan_out.detach(first)
    fan_out.detach(first)
    fan_out.show(FRAME)
    assert log == ["a1", "b1", "b1"]


def test_fault_detaches_and_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    log: list[str] = []
    reports: list[tuple[object, Exception]] = []
    fan_out = FanOut(lambda view, error: reports.append((view, error)))
    faulty = Faulty()
    fan_out.attach(faulty)
    fan_out.attach(Recording("b", log))
    with caplog.at_level(logging.WARNING):
        fan_out.show(FRAME)
        fan_out.show(FRAME)
    assert log == ["b1", "b1"]
    assert [view for view, _ in reports] == [faulty]
    assert faulty.boxed == [reports[0][1]]
    assert isinstance(reports[0][1], ZeroDivisionError)
    assert [record.getMessage() for record in caplog.records] == ["Faulty was detached because it raised"]


def test_report_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    log: list[str] = []

    def broken_hook(view: object, error: Exception) -> None:
        raise OSError("no box")

    fan_out = FanOut(broken_hook)
    fan_out.attach(Faulty())
    fan_out.attach(Recording("b", log))
    with caplog.at_level(logging.WARNING):
        fan_out.show(FRAME)
    assert log == ["b1"]
    assert len(caplog.records) == 2


def test_strict_mode_raises() -> None:
    fan_out = FanOut(strict=True)
    fan_out.attach(Faulty())
    with pytest.raises(ZeroDivisionError):
        fan_out.show(FRAME)


def test_interrupt_in_a_view_is_no_fault_of_the_view() -> None:
    class Interrupted:
        def show(self, frame: Frame) -> None:
            raise KeyboardInterrupt(frame)

    fan_out = FanOut()
    view = Interrupted()
    fan_out.attach(view)
    with pytest.raises(KeyboardInterrupt):
        fan_out.show(FRAME)
    assert fan_out.views == (view,)


def test_what_cannot_show_is_refused() -> None:
    with pytest.raises(TypeError, match=r"show\(frame\), got int"):
        FanOut().attach(3)


def test_listeners(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[PlayerStatus] = []

    def faulty(status: PlayerStatus) -> None:
        raise ValueError("deaf")

    fan_out = FanOut()
    fan_out.listen(faulty)
    fan_out.listen(heard.append)
    with caplog.at_level(logging.WARNING):
        fan_out.tell(STATUS)
        fan_out.tell(STATUS)
    assert heard == [STATUS, STATUS]
    assert len(caplog.records) == 1
    fan_out.clear()
    fan_out.tell(STATUS)
    assert len(heard) == 2
