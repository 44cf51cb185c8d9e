"""Limits and ticks."""

import pytest

from ewens_widgets.views.figures import nice_limits, nice_ticks


def test_limits_change_rarely() -> None:
    assert nice_limits(3.0, 7.0) == nice_limits(3.1, 7.05)
    low, high = nice_limits(5.0, 5.0)
    assert low < 5.0 < high
    assert nice_limits(float("-inf"), 0.0) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.0, 1.0, [0.0, 0.5, 1.0]),
        (-4.5, 4.9, [-4.0, -2.0, 0.0, 2.0, 4.0]),
        (0.0, 3000.0, [0.0, 1000.0, 2000.0, 3000.0]),
        (2.0, 2.0, [2.0]),
    ],
)
def test_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high, 5 if low < 0 else 4).tolist() == ticks
