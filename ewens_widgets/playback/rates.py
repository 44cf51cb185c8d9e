"""How many things happen a second, over the last second."""

from collections import deque

__all__ = ["RateMeter"]


class RateMeter:
    """Counts over a sliding window of time.

    Parameters
    ----------
    window
        Length of the window in seconds.
    """

    def __init__(self, window: float = 1.0) -> None:
        self._window = window
        self._counts: deque[tuple[float, int]] = deque()
        self._total = 0
        self._started = 0.0

    def restart(self, now: float) -> None:
        """Forget everything and begin counting now."""
        self._counts.clear()
        self._total = 0
        self._started = now

    def add(self, count: int, now: float) -> None:
        """Count `count` things that happened just now."""
        self._counts.append((now, count))
        self._total += count
        self._forget(now)

    def rate(self, now: float) -> float:
        """Things a second in the window that ends now."""
        self._forget(now)
        elapsed = min(self._window, now - self._started)
        return self._total / elapsed if elapsed > 0.0 else 0.0

    def _forget(self, now: float) -> None:
        while self._counts and self._counts[0][0] <= now - self._window:
            self._total -= self._counts.popleft()[1]
