"""Who is shown frames, and when; rates and frame times."""

import logging
from collections.abc import Callable

import pytest
from playback.fakes import FakeTime

from ewens_widgets.playback.display import Display, FanOut, FrameTimes, Pacing, RateMeter

Listener = Callable[[object], object]


def fan_out(*listeners: Listener, strict: bool = False) -> FanOut[Listener]:
    made: FanOut[Listener] = FanOut(lambda call, news: call(news), strict=strict)
    for listener in listeners:
        made.add(listener)
    return made


class Raising:
    def __init__(self, error: type[BaseException], *, hook_fails: bool = False) -> None:
        self.error, self.hook_fails = error, hook_fails
        self.boxed: list[Exception] = []

    def __call__(self, news: object) -> None:
        raise self.error(f"no colours left for {news}")

    def show_error(self, error: Exception) -> None:
        self.boxed.append(error)
        if self.hook_fails:
            raise OSError("no box")


def test_receivers_are_told_in_order_and_once() -> None:
    log: list[str] = []
    first, second = (lambda news: log.append(f"a{news}")), (lambda news: log.append(f"b{news}"))
    made = fan_out(first, second, first)
    made.tell(1)
    made.remove(first)
    made.remove(first)
    made.tell(2)
    made.clear()
    made.tell(3)
    assert log == ["a1", "b1", "b2"]


@pytest.mark.parametrize("hook_fails", [False, True])
def test_one_that_raises_is_removed_and_reported_once(
    caplog: pytest.LogCaptureFixture, hook_fails: bool
) -> None:
    heard: list[object] = []
    faulty = Raising(ZeroDivisionError, hook_fails=hook_fails)
    made = fan_out(faulty, heard.append)
    with caplog.at_level(logging.WARNING):
        made.tell(1)
        made.tell(2)
    assert heard == [1, 2]
    assert [type(error) for error in faulty.boxed] == [ZeroDivisionError]
    assert caplog.records[0].getMessage() == "Raising was detached because it raised"
    assert len(caplog.records) == 1 + hook_fails


@pytest.mark.parametrize(("error", "strict"), [(KeyboardInterrupt, False), (ZeroDivisionError, True)])
def test_interrupts_and_strict_mode_raise(error: type[BaseException], strict: bool) -> None:
    faulty = Raising(error)
    made = fan_out(faulty, strict=strict)
    with pytest.raises(error):
        made.tell(1)
    assert made.all == (faulty,)


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
