"""Checks of single arguments, used by every layer; errors name the problem and the value.

Checks of data and model parameters are in `model.checks`.
"""

from typing import TypeAlias, cast

import numpy as np

__all__ = ["Seed", "check_count", "check_positive", "random_generator"]

Seed: TypeAlias = int | np.random.Generator | None


def check_positive(name: str, value: object) -> float:
    """Return `value` as a float; refuse one that is not positive and finite."""
    # bool is a number in Python, but scale=True is a mistake.
    if isinstance(value, str | bytes | bool | np.bool_):
        raise TypeError(f"{name} must be a number; got {value!r}.")
    try:
        number = float(cast("float", value))
    except (TypeError, ValueError) as fault:
        raise TypeError(f"{name} must be a number; got {value!r}.") from fault
    except OverflowError:
        number = np.inf
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be positive and finite; got {value!r}.")
    return number


def check_count(name: str, value: object, least: int) -> int:
    """Return a whole number of at least `least`; refuse other values."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)
    if not whole:
        raise TypeError(f"{name} must be a whole number; got {value!r}.")
    number = int(cast("int", value))
    if number < least:
        raise ValueError(f"{name} must be at least {least}; got {number}.")
    return number


def random_generator(seed: Seed) -> np.random.Generator:
    """Return a generator for a non-negative int, for a generator (itself), or for None (not reproducible)."""
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is None:
        return np.random.default_rng()
    return np.random.default_rng(check_count("seed", seed, 0))
