"""Frame slots: how iterations are portioned out when the user chose a number of iterations a frame.

Slots follow one another at the frame rate. Each is filled with as many iterations as the speed says; then the
chain waits for the slot to pass. A speed below one makes slots longer: at 0.1 an iteration lasts ten frames.
"""

__all__ = ["FrameSlots"]


class FrameSlots:
    """Counts the iterations of the current slot; told the time by its caller.

    Parameters
    ----------
    speed
        Iterations a frame, or None for as fast as it goes.
    interval
        Seconds between two frames.
    """

    def __init__(self, speed: float | None, interval: float) -> None:
        self.speed = speed
        self._interval = interval
        self._end = 0.0
        self.remaining = self._portion

    @property
    def _portion(self) -> int:
        return 1 if self.speed is None else max(1, round(self.speed))

    @property
    def _length(self) -> float:
        return self._interval if self.speed is None else self._interval / min(1.0, self.speed)

    def restart(self, now: float) -> None:
        """Begin with a slot that may pass as soon as it is filled."""
        self.remaining = self._portion
        self._end = now

    def change(self, speed: float | None, now: float) -> None:
        """Change the speed, from the current slot on."""
        self.speed = speed
        self.remaining = min(self.remaining, self._portion)
        self._end = min(self._end, now + self._length)

    def count(self, iterations: int) -> None:
        """Note iterations done."""
        self.remaining = max(0, self.remaining - iterations)

    def wait_seconds(self, now: float) -> float:
        """Time until the slot has passed."""
        return max(0.0, self._end - now)

    def is_due(self, now: float) -> bool:
        """Whether the slot is filled and has passed."""
        return self.remaining == 0 and self._end <= now

    def refill(self, now: float) -> None:
        """Begin the next slot."""
        self.remaining = self._portion
        self._end = now + self._length
