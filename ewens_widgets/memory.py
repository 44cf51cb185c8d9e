"""The limit of memory for one result, checked before it is computed."""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

__all__ = ["TooLargeError", "check_fits", "memory_limit"]

_SHARE = 0.25
_UNKNOWN_MEMORY = 4 * 2**30
# A container may have less than the machine: version 2 and version 1 of Linux control groups.
_CONTAINER_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_VARIABLE = "EWENS_WIDGETS_MEMORY_LIMIT"


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
