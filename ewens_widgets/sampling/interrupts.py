"""Keeping Ctrl-C out of a compiled call.

While numba converts the arguments of a call it runs a little Python; an interrupt raised just there is not
expected, and crashes the process. So an interrupt that arrives during a call is raised after it.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["interrupts_deferred"]


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Hold back the interrupts that arrive in the block, and let the last of them through at its end."""
    previous = signal.getsignal(signal.SIGINT)
    # Only the main thread receives signals; where they are ignored there is nothing to hold back.
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return
    arrived: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: arrived.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if arrived:
        previous(*arrived[-1])
