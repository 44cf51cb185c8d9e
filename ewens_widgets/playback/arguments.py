"""Checks of what the player is told."""

import math
import operator

__all__ = ["check_count", "check_speed"]


def check_count(name: str, value: int, least: int = 1) -> int:
    """Return a whole number that is large enough."""
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if count < least:
        raise ValueError(f"{name} must be at least {least}, got {count}")
    return count


def check_speed(speed: float | None) -> float | None:
    """Return a positive number of iterations a frame, or None."""
    if speed is None:
        return None
    try:
        number = float(speed)
    except (TypeError, ValueError):
        raise TypeError(
            f"speed must be a number of iterations a frame, or None for as fast as it goes; got {speed!r}"
        ) from None
    if not 0.0 < number < math.inf:
        raise ValueError(f"speed must be positive and finite, got {speed!r}; use None for as fast as it goes")
    return number
