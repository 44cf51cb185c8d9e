import pytest

from ewens_widgets.playback.display import FrameThrottle
from ewens_widgets.playback.pacing import Pacing


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
    throttle.acknowledge(1, "tab")
    assert not throttle.is_open(10.049)
    assert throttle.wait_seconds(10.04) == pytest.approx(0.01)
    assert throttle.is_open(10.051)


def test_at_most_two_in_flight_until_acknowledged(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    throttle.sent(1, 10.0)
    throttle.sent(2, 10.1)
    assert throttle.unacknowledged(10.2) == 2
    assert not throttle.is_open(10.2)
    throttle.acknowledge(1, "tab")
    assert throttle.unacknowledged(10.2) == 1
    assert throttle.is_open(10.2)


def test_acknowledgement_covers_earlier_frames(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    throttle.sent(1, 10.0)
    throttle.sent(2, 10.1)
    throttle.acknowledge(2, "tab")
    assert throttle.unacknowledged(10.2) == 0


def test_lost_acknowledgements_time_out(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    throttle.sent(1, 10.0)
    throttle.sent(2, 10.1)
    assert not throttle.is_open(11.4)
    assert throttle.is_open(11.5)
    assert throttle.has_viewers(11.5)


def test_silence_after_frames_means_gone(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    throttle.sent(1, 10.0)
    assert throttle.has_viewers(15.0)
    assert not throttle.has_viewers(15.1)
    assert throttle.acknowledge(1, "tab"), "a late sign of life brings it back, as a new viewer"
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
    throttle.acknowledge(2, "fast")
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
    throttle.acknowledge(999, "page that outlived its kernel")
    throttle.sent(1, 10.0)
    throttle.sent(2, 10.1)
    assert throttle.unacknowledged(10.2) == 2


def test_dear_frames_are_made_rarer_within_bounds(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    throttle.sent(1, 10.0, cost=0.030)
    assert throttle.wait_seconds(10.0) == pytest.approx(0.090)
    throttle.sent(2, 20.0, cost=5.0)
    assert throttle.wait_seconds(20.0) == pytest.approx(0.25)


def test_books_stay_small(throttle: FrameThrottle) -> None:
    throttle.greet("tab")
    for number in range(1, 20_001):
        throttle.sent(number, number * 0.05)
        throttle.acknowledge(number, "tab")
        throttle.is_open(number * 0.05)
    assert len(throttle._in_flight) <= 31
