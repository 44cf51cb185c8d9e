"""Who is shown frames, and when: the fan-out to the views, and the throttle that viewers open."""

import logging

import pytest
from playback.fakes import FakeRecorder, make_event

from ewens_widgets.playback.display import Display, FanOut, FrameThrottle
from ewens_widgets.playback.frame import Frame, PlayerState, PlayerStatus
from ewens_widgets.playback.pacing import Pacing
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


@pytest.fixture
def throttle() -> FrameThrottle:
    return FrameThrottle(Pacing())


def test_closed_without_a_viewer(throttle: FrameThrottle) -> None:
    assert not throttle.is_open(0.0)
    assert not throttle.has_viewers(0.0)


def test_open_as_soon_as_somebody_looks(throttle: FrameThrottle) -> None:
    assert throttle.greet("tab")
    assert throttle.is_open(0.0)
    assert not throttle.greet("tab"), "a heartbeat is no new viewer"


def test_frame_rate(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    throttle.sent(1, 10.0)
    throttle.acknowledge(1, "tab", 10.02)
    assert not throttle.is_open(10.049)
    assert throttle.wait_seconds(10.04) == pytest.approx(0.01)
    assert throttle.is_open(10.051)


def test_at_most_two_in_flight_until_acknowledged(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    throttle.sent(1, 10.0)
    throttle.sent(2, 10.1)
    assert throttle.unacknowledged(10.2) == 2
    assert not throttle.is_open(10.2)
    throttle.acknowledge(1, "tab", 10.2)
    assert throttle.unacknowledged(10.2) == 1
    assert throttle.is_open(10.2)


def test_acknowledgement_covers_earlier_frames(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    throttle.sent(1, 10.0)
    throttle.sent(2, 10.1)
    throttle.acknowledge(2, "tab", 10.2)
    assert throttle.unacknowledged(10.2) == 0


def test_lost_acknowledgements_time_out(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    throttle.sent(1, 10.0)
    throttle.sent(2, 10.1)
    assert not throttle.is_open(11.4)
    assert throttle.is_open(11.5)
    assert throttle.has_viewers(11.5)


def test_a_page_that_is_always_late_is_not_sent_more_than_it_paints(throttle: FrameThrottle) -> None:
    """It takes 4 s for a frame and says now and then that it is there: a queue could grow without end."""
    throttle.greet("tab")
    queue: list[int] = []
    number, longest, painted = 0, 0, 0
    for tick in range(20 * 600):
        now = tick / 20
        if tick % 40 == 0:
            throttle.greet("tab")
        if tick % 80 == 79 and queue:
            throttle.acknowledge(queue.pop(0), "tab", now)
            painted += 1
        if throttle.is_open(now):
            number += 1
            queue.append(number)
            throttle.sent(number, now)
        longest = max(longest, len(queue))
    assert painted == 150, "it always had something to paint"
    assert longest <= 4


def test_patience_with_a_page_that_is_quick_again_is_short(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    throttle.sent(1, 10.0)
    throttle.sent(2, 10.1)
    throttle.greet("tab")
    assert throttle.is_open(11.6)
    throttle.sent(3, 11.6)
    assert not throttle.is_open(12.9), "the frames before the last are waited for twice as long"
    assert throttle.is_open(13.1)
    throttle.acknowledge(3, "tab", 13.1)
    throttle.sent(4, 14.0)
    throttle.acknowledge(4, "tab", 14.1)
    throttle.sent(5, 15.0)
    throttle.sent(6, 15.1)
    assert not throttle.is_open(16.4)
    assert throttle.is_open(16.6)


def test_silence_after_frames_means_gone(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    throttle.sent(1, 10.0)
    assert throttle.has_viewers(15.0)
    assert not throttle.has_viewers(15.1)
    assert throttle.acknowledge(1, "tab", 15.1), "a late sign of life brings it back, as a new viewer"
    assert throttle.has_viewers(15.2)


def test_silence_without_frames_means_nothing(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    assert throttle.has_viewers(1e6)


def test_heartbeat_keeps_a_viewer(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    throttle.sent(1, 10.0)
    throttle.greet("tab")
    assert throttle.has_viewers(16.0)


def test_leaving(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    throttle.leave("tab")
    throttle.leave("never seen")
    assert not throttle.has_viewers(0.0)


def test_slowest_of_two_viewers_decides(throttle: FrameThrottle) -> None:
    throttle.greet("fast")
    throttle.greet("slow")
    throttle.sent(1, 10.0)
    throttle.sent(2, 10.1)
    throttle.acknowledge(2, "fast", 10.2)
    assert not throttle.is_open(10.2)
    throttle.leave("slow")
    assert throttle.is_open(10.2)


def test_new_viewer_owes_nothing_for_earlier_frames(throttle: FrameThrottle) -> None:
    throttle.greet("old")
    throttle.sent(1, 10.0)
    throttle.sent(2, 10.1)
    throttle.leave("old")
    throttle.greet("new")
    assert throttle.unacknowledged(10.2) == 0


def test_number_never_sent_is_only_a_sign_of_life(throttle: FrameThrottle) -> None:
    throttle.acknowledge(999, "page that outlived its kernel", 9.0)
    throttle.sent(1, 10.0)
    throttle.sent(2, 10.1)
    assert throttle.unacknowledged(10.2) == 2


def test_dear_frames_are_made_rarer_within_bounds(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    throttle.sent(1, 10.0, cost=0.030)
    assert throttle.wait_seconds(10.0) == pytest.approx(0.090)
    throttle.sent(2, 20.0, cost=5.0)
    assert throttle.wait_seconds(20.0) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("taken", "worked", "interval"), [(0.2, 0.01, 0.05), (0.2, 0.12, 0.18), (0.03, 0.0, 0.05)]
)
def test_frames_are_made_rarer_for_the_work_they_take_and_not_for_the_time(
    taken: float, worked: float, interval: float
) -> None:
    now = {"clock": 100.0, "effort": 7.0}

    def show(_: str) -> None:
        now["clock"] += taken
        now["effort"] += worked

    display = Display(str, show, Pacing(), lambda: now["clock"], lambda: now["effort"])
    display.greet("tab")
    display.send()
    assert display.throttle.wait_seconds(100.0) == pytest.approx(interval)  # a first frame counts half


def test_books_stay_small(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    for number in range(1, 20_001):
        throttle.sent(number, number * 0.05)
        throttle.acknowledge(number, "tab", number * 0.05)
        throttle.is_open(number * 0.05)
    assert len(throttle._in_flight) <= 1
