"""Who is shown frames, and when; rates and frame times."""

import dataclasses
import logging

import pytest
from playback.fakes import FakeRecorder, FakeTime, make_event

from ewens_widgets.playback.display import Display, FanOut, FrameTimes, Pacing, RateMeter
from ewens_widgets.playback.frame import Frame, PlayerState, PlayerStatus, RunningSummaries

STATUS = PlayerStatus(PlayerState.PAUSED, 1, 10, 1)
FRAME = Frame(1, make_event(1), STATUS, RunningSummaries(FakeRecorder()).up_to(0))


class Recording:
    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    def show(self, frame: Frame) -> None:
        self.log.append(f"{self.name}{frame.number}")


class Faulty:
    def show(self, frame: Frame) -> None:
        raise ZeroDivisionError(f"no colours left for frame {frame.number}")


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


@pytest.mark.parametrize("hook_fails", [False, True])
def test_fault_detaches_and_is_reported_once(caplog: pytest.LogCaptureFixture, hook_fails: bool) -> None:
    log: list[str] = []
    fan_out, faulty = FanOut(), Faulty()
    boxed: list[Exception] = []

    def show_error(error: Exception) -> None:
        boxed.append(error)
        if hook_fails:
            raise OSError("no box")

    faulty.show_error = show_error  # type: ignore[method-assign]
    fan_out.attach(faulty)
    fan_out.attach(Recording("b", log))
    with caplog.at_level(logging.WARNING):
        fan_out.show(FRAME)
        fan_out.show(FRAME)
    assert log == ["b1", "b1"]
    assert [type(error) for error in boxed] == [ZeroDivisionError]
    assert faulty not in fan_out.views
    assert caplog.records[0].getMessage() == "Faulty was detached because it raised"
    assert len(caplog.records) == 1 + hook_fails


@pytest.mark.parametrize(("error", "strict"), [(KeyboardInterrupt, False), (ZeroDivisionError, True)])
def test_interrupts_and_strict_mode_raise(error: type[BaseException], strict: bool) -> None:
    class Raising:
        def show(self, frame: Frame) -> None:
            raise error(frame)

    fan_out, view = FanOut(strict=strict), Raising()
    fan_out.attach(view)
    with pytest.raises(error):
        fan_out.show(FRAME)
    assert fan_out.views == (view,)
    with pytest.raises(TypeError, match=r"show\(frame\), got int"):
        FanOut().attach(3)


def test_listeners(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[PlayerStatus] = []

    def faulty(status: PlayerStatus) -> None:
        raise ValueError("deaf")

    fan_out = FanOut()
    fan_out.listeners.append(faulty)
    fan_out.listeners.append(heard.append)
    with caplog.at_level(logging.WARNING):
        fan_out.publish(STATUS)
        fan_out.publish(STATUS)
    assert heard == [STATUS, STATUS]
    assert len(caplog.records) == 1
    fan_out.clear()
    fan_out.publish(STATUS)
    assert len(heard) == 2


class Page(FakeTime):
    """A display at times of the test's choice."""

    def __init__(self) -> None:
        super().__init__()
        self.display = Display(self.pacing())

    def at(self, now: float) -> Display:
        self.now = now
        return self.display

    def send(self, *times: float, seconds: float = 0.0) -> None:
        for now in times:
            self.at(now).send(lambda _: self.spend(seconds))


@pytest.fixture
def page() -> Page:
    page = Page()
    page.at(0.0).greet("tab")
    return page


def test_frame_rate(page: Page) -> None:
    display = Page().display
    assert not display.is_open
    assert not display.is_watched
    display.greet("tab")
    assert display.is_open, "as soon as somebody looks"
    page.send(10.0)
    page.at(10.02).acknowledge(1, "tab")
    assert not page.at(10.049).is_open
    assert page.at(10.04).wait_seconds() == pytest.approx(0.01)
    assert page.at(10.051).is_open


def test_at_most_two_in_flight_until_acknowledged(page: Page) -> None:
    page.display.acknowledge(999, "tab")  # of a page that outlived its kernel
    page.send(10.0, 10.1)
    assert page.at(10.2).unacknowledged() == 2
    assert not page.display.is_open
    page.display.acknowledge(1, "tab")
    assert page.display.unacknowledged() == 1
    assert page.display.is_open
    page.send(10.2)
    page.at(10.3).acknowledge(3, "tab")
    assert page.display.unacknowledged() == 0, "an acknowledgement covers earlier frames"


def test_a_page_that_is_always_late_is_not_sent_more_than_it_paints(page: Page) -> None:
    """It takes 4 s for a frame and sends a heartbeat now and then: a queue could grow without end."""
    queue: list[int] = []
    longest = painted = 0
    for tick in range(20 * 600):
        display = page.at(tick / 20)
        if tick % 40 == 0:
            display.greet("tab")
        if tick % 80 == 79 and queue:
            display.acknowledge(queue.pop(0), "tab")
            painted += 1
        if display.is_open:
            page.send(page.now)
            queue.append(display.number)
        longest = max(longest, len(queue))
    assert painted == 150, "it always had something to paint"
    assert longest <= 4


def test_patience_with_a_page_that_is_quick_again_is_short(page: Page) -> None:
    page.send(10.0, 10.1)
    assert not page.at(11.4).is_open
    page.display.greet("tab")
    assert page.at(11.6).is_open, "lost acknowledgements time out"
    assert page.display.is_watched
    page.send(11.6)
    assert not page.at(12.9).is_open, "the frames before the last are waited for twice as long"
    assert page.at(13.1).is_open
    page.display.acknowledge(3, "tab")
    page.send(14.0)
    page.at(14.1).acknowledge(4, "tab")
    page.send(15.0, 15.1)
    assert not page.at(16.4).is_open
    assert page.at(16.6).is_open


def test_silence_after_frames_means_gone(page: Page) -> None:
    assert page.at(9.0).is_watched, "silence without frames means nothing"
    page.send(10.0)
    assert page.at(15.0).is_watched
    assert not page.at(15.1).is_watched
    page.display.is_urgent = False
    page.display.acknowledge(1, "tab")
    assert page.display.is_urgent, "a late message brings it back, as a new viewer"
    assert page.at(15.2).is_watched
    page.display.is_urgent = False
    page.send(20.0)
    page.display.greet("tab")
    assert not page.display.is_urgent
    assert page.at(26.0).is_watched, "after a heartbeat silence counts from the next frame"
    page.display.leave("tab")
    page.display.leave("never seen")
    assert not page.display.is_watched


def test_slowest_of_two_viewers_decides(page: Page) -> None:
    page.display.greet("slow")
    page.send(10.0, 10.1)
    page.at(10.2).acknowledge(2, "tab")
    assert not page.display.is_open
    page.display.leave("slow")
    assert page.display.is_open
    page.send(10.3, 10.4)
    page.display.leave("tab")
    page.display.greet("new")
    assert page.display.unacknowledged() == 0, "a new viewer owes nothing for earlier frames"


@pytest.mark.parametrize(("cost", "interval"), [(0.030, 0.05), (0.060, 0.09), (5.0, 0.25)])
def test_slow_frames_are_made_rarer_within_bounds(page: Page, cost: float, interval: float) -> None:
    page.send(10.0, seconds=cost)
    assert page.at(10.0).wait_seconds() == pytest.approx(interval)  # a first frame counts half


def test_frames_are_made_rarer_for_the_work_they_take_and_not_for_the_time() -> None:
    page, worked = Page(), 0.0
    display = Display(Pacing(clock=page.clock, effort=lambda: worked))
    display.send(lambda _: page.spend(0.2))
    assert display.wait_seconds() == 0.0
    assert display._next == pytest.approx(100.05)


def test_books_stay_small(page: Page) -> None:
    for number in range(1, 20_001):
        page.send(number * 0.05)
        page.display.acknowledge(number, "tab")
    assert len(page.display._in_flight) <= 1


def test_rate_over_the_last_second() -> None:
    meter = RateMeter()
    meter.restart(10.0)
    assert meter.rate(10.0) == 0.0
    meter.add(5, 10.5)
    assert meter.rate(10.5) == pytest.approx(10.0)
    meter.add(7, 11.2)
    assert meter.rate(11.2) == pytest.approx(12.0)
    assert meter.rate(11.6) == pytest.approx(7.0), "what is older than a second no longer counts"
    assert meter.rate(13.0) == 0.0
    meter.add(100, 14.0)
    meter.restart(14.1)
    assert meter.rate(14.2) == 0.0


def test_frame_is_due_when_filled_and_passed() -> None:
    times = FrameTimes(3.0, 0.05)
    times.restart(10.0)
    times.count(2)
    assert times.remaining == 1
    assert not times.is_due(11.0)
    times.count(1)
    assert times.is_due(10.0)
    times.refill(10.0)
    times.count(3)
    assert not times.is_due(10.04)
    assert times.wait_seconds(10.04) == pytest.approx(0.01)
    assert times.is_due(10.06)


def test_slow_motion_makes_frame_times_longer_until_the_speed_changes() -> None:
    times = FrameTimes(0.1, 0.05)
    times.refill(10.0)
    assert times.remaining == 1
    assert times.wait_seconds(10.0) == pytest.approx(0.5)
    times.change(1.0, 10.0)
    assert times.wait_seconds(10.0) == pytest.approx(0.05)


def test_status_is_frozen_and_tells_progress() -> None:
    status = PlayerStatus(PlayerState.PLAYING, iteration=30, target=120, shown_iteration=30)
    assert status.is_running
    assert status.is_following
    assert not dataclasses.replace(status, shown_iteration=3).is_following
    with pytest.raises(dataclasses.FrozenInstanceError):
        status.iteration = 31

    assert {state for state in PlayerState if state.is_running} == {"preparing", "playing", "stepping"}
