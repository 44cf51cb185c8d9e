"""Checks of what a caller hands to a loader."""

import math
import operator
from numbers import Real
from typing import SupportsIndex, TypeAlias

import numpy as np

__all__ = ["Seed", "check_count", "check_scale", "random_generator"]

Seed: TypeAlias = int | np.random.Generator | None


def check_count(name: str, value: SupportsIndex, minimum: int) -> int:
    """Return ``value`` as an int of at least ``minimum``; ``name`` is how the message calls it."""
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    # bool is an int to Python, but n=True is a slip, not a count.
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if count < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {count}")
    return count


def check_scale(name: str, value: object) -> float:
    """Return ``value`` as a positive finite float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    scale = float(value)
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return scale


def random_generator(seed: Seed) -> np.random.Generator:
    """Return a generator for a non-negative int, for a generator (itself), or for None (not reproducible)."""
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is None:
        return np.random.default_rng()
    return np.random.default_rng(check_count("seed", seed, minimum=0))
