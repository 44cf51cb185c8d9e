"""How many iterations to run in one call of the compiled driver."""

import time
from types import TracebackType

__all__ = ["BlockSize"]


class BlockSize:
    """Grows and shrinks blocks so that each takes about the wanted time; used as a context around a block.

    Parameters
    ----------
    seconds
        Wanted time for a block: long enough to make calls cheap, short enough for an interrupt or a
        progress bar.
    largest
        Upper limit, which bounds the memory of the records.
    """

    def __init__(self, seconds: float, largest: int) -> None:
        self.rows = 1
        self._seconds = seconds
        self._largest = max(1, largest)
        self._started = 0.0

    def __enter__(self) -> int:
        self._started = time.perf_counter()
        return self.rows

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, traceback: TracebackType | None
    ) -> None:
        elapsed = time.perf_counter() - self._started
        if elapsed < 0.5 * self._seconds:
            self.rows = min(2 * self.rows, self._largest)
        elif elapsed > 2.0 * self._seconds:
            self.rows = max(self.rows // 2, 1)
