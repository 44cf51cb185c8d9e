"""How many iterations to run in one go, so that a block takes about the time it is given."""

__all__ = ["BlockSizer"]


class BlockSizer:
    """Learns the time of an iteration from the blocks run so far.

    A block may be at most twice as long as the one before it: the estimate from a short block is dominated by
    the cost of starting it, and a wrong guess must not freeze the display. It shrinks at once.

    Parameters
    ----------
    largest
        Longest block; bounds the memory that the records of one block take.
    """

    def __init__(self, largest: int = 4096) -> None:
        self._largest = largest
        self.restart()

    def restart(self) -> None:
        """Forget what was learnt: the source is another one."""
        self._limit = 1
        self._seconds = 0.0

    def size(self, seconds: float) -> int:
        """Iterations that should fit into `seconds`, at least one."""
        if self._seconds * self._limit <= seconds:
            return self._limit
        return max(1, int(seconds / self._seconds))

    def measured(self, iterations: int, seconds: float) -> None:
        """Learn from a block of so many iterations that took so many seconds."""
        each = max(seconds, 0.0) / iterations
        # Half the weight to the newest block: one slow block (garbage collection, a busy machine) is soon
        # forgotten.
        self._seconds = each if self._seconds == 0.0 else 0.5 * (self._seconds + each)
        if iterations >= self._limit:
            self._limit = min(self._largest, 2 * iterations)
