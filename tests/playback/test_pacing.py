"""The parts that keep one number each: pacing, rates, frame times, and arguments."""

import dataclasses

import pytest

from ewens_widgets.arguments import check_count
from ewens_widgets.playback.display import FrameTimes, Pacing, RateMeter


@pytest.mark.parametrize(
    "name", [field.name for field in dataclasses.fields(Pacing) if not callable(field.default)]
)
def test_pacing_refuses_what_would_stop_playback(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be positive, got 0"):
        Pacing(**{name: 0})


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


def test_rate_restarts() -> None:
    meter = RateMeter()
    meter.add(100, 5.0)
    meter.restart(5.1)
    assert meter.rate(5.2) == 0.0


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


def test_slow_motion_makes_frame_times_longer() -> None:
    times = FrameTimes(0.1, 0.05)
    times.refill(10.0)
    assert times.remaining == 1
    assert times.wait_seconds(10.0) == pytest.approx(0.5)


def test_faster_speed_takes_effect_within_the_frame_time() -> None:
    times = FrameTimes(0.01, 0.05)
    times.refill(10.0)
    times.change(1.0, 10.0)
    assert times.wait_seconds(10.0) == pytest.approx(0.05)


@pytest.mark.parametrize("value", ["3", 2.5, None])
def test_counts_must_be_whole(value: object) -> None:
    with pytest.raises(TypeError, match="iterations must be a whole number; got"):
        check_count("iterations", value, least=1)


def test_counts_must_be_large_enough() -> None:
    with pytest.raises(ValueError, match="burn_in must be at least 0; got -1"):
        check_count("burn_in", -1, least=0)
    assert check_count("burn_in", 0, least=0) == 0
