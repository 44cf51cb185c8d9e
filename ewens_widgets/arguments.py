"""Checks of single arguments, and of the memory that one result may take; used by every layer.

Errors name the problem and the value. Checks of data and model parameters are in `model.checks`.
"""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np

Seed: TypeAlias = int | np.random.Generator | None

_SHARE = 0.25
_UNKNOWN_MEMORY = 4 * 2**30
# A container may have less than the machine: version 2 and version 1 of Linux control groups.
_CONTAINER_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_VARIABLE = "EWENS_WIDGETS_MEMORY_LIMIT"


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


class TooLargeError(ValueError, MemoryError):
    """A result would not fit in memory."""


def memory_limit() -> int:
    """Bytes that one result may take.

    A quarter of the memory of the machine or container, or what the environment variable
    ``EWENS_WIDGETS_MEMORY_LIMIT`` says, in bytes.
    """
    given = os.environ.get(_VARIABLE, "")
    if given:
        if not given.isdecimal():
            raise ValueError(f"{_VARIABLE} must be a whole number of bytes; got {given!r}.")
        return int(given)
    return int(_SHARE * _available())


def check_fits(n_bytes: int, what: str, way_out: str, most: int | None = None) -> None:
    """Refuse a result above the limit, or above `most` bytes if the limit was not set by the user."""
    limit = memory_limit()
    if most is not None and not os.environ.get(_VARIABLE):
        limit = min(limit, most)
    if n_bytes > limit:
        raise TooLargeError(
            f"{what} would take {_readable(n_bytes)} of memory; the limit is {_readable(limit)}. {way_out} "
            f"(Set {_VARIABLE} to allow more.)"
        )


@cache
def _available() -> int:
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, OSError, ValueError):  # Windows and Pyodide have no sysconf.
        limits = [_UNKNOWN_MEMORY]
    for name in _CONTAINER_FILES:
        with suppress(OSError):
            text = Path(name).read_text().strip()
            limits += [int(text)] if text.isdecimal() else []
    return min(limits)


def _readable(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.0f} MiB"
