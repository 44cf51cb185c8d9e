"""When the next frame may be sent: not too often, and never more than the viewers have digested.

Sending frames unasked fills the queue between kernel and browser; everything the user does then waits behind
that queue. So a viewer acknowledges the number of each frame once it is painted, and at most two frames are
on their way to it.

A viewer is known by its first sign of life (a greeting, a heartbeat or an acknowledgement). It is forgotten
when it takes its leave, or when it has been sent frames and stayed silent for some seconds: a closed tab, or
a hidden one, whose browser paints nothing. Its next sign of life brings it back. Without a viewer no frame
may be sent, and there is nothing to wait for.
"""

from collections import deque
from dataclasses import dataclass

from ewens_widgets.playback.pacing import Pacing

__all__ = ["FrameThrottle"]


@dataclass(slots=True)
class _Viewer:
    acknowledged: int
    waiting_since: float | None = None  # when it was sent the first frame after its last sign of life


class FrameThrottle:
    """Keeps the books of frames sent and acknowledged; told the time by its caller.

    Parameters
    ----------
    pacing
        Frame rate, frames in flight and time-outs.
    """

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing
        self._viewers: dict[str, _Viewer] = {}
        self._in_flight: deque[tuple[int, float]] = deque()
        self._last_number = 0
        self._last_sent: float | None = None
        self._interval = pacing.frame_interval(0.0)

    def greet(self, viewer: str) -> bool:
        """Note a sign of life; return whether the viewer is a new one."""
        known = self._viewers.get(viewer)
        if known is None:
            # What was sent before its time it can never acknowledge.
            self._viewers[viewer] = _Viewer(self._last_number)
            return True
        known.waiting_since = None
        return False

    def acknowledge(self, number: int, viewer: str) -> bool:
        """Note that a viewer has painted a frame, and so all before it; return whether it is a new one."""
        is_new = self.greet(viewer)
        # A number that was never sent comes from a page that outlived its kernel: a sign of life, no more.
        if number <= self._last_number:
            known = self._viewers[viewer]
            known.acknowledged = number if is_new else max(known.acknowledged, number)
        return is_new

    def leave(self, viewer: str) -> None:
        """Forget a viewer."""
        self._viewers.pop(viewer, None)

    def clear(self) -> None:
        """Forget all viewers."""
        self._viewers.clear()

    def has_viewers(self, now: float) -> bool:
        """Whether anybody is looking."""
        timeout = self._pacing.viewer_timeout
        for name, viewer in list(self._viewers.items()):
            if viewer.waiting_since is not None and now - viewer.waiting_since > timeout:
                del self._viewers[name]
        return bool(self._viewers)

    def unacknowledged(self, now: float) -> int:
        """Frames that the slowest viewer has been sent lately and has not acknowledged."""
        self._write_off(now)
        if not self.has_viewers(now):
            return 0
        slowest = min(viewer.acknowledged for viewer in self._viewers.values())
        return sum(number > slowest for number, _ in self._in_flight)

    def wait_seconds(self, now: float) -> float:
        """Time until the frame rate allows the next frame."""
        return 0.0 if self._last_sent is None else max(0.0, self._last_sent + self._interval - now)

    def is_open(self, now: float) -> bool:
        """Whether a frame may be sent now."""
        if not self.has_viewers(now) or self.wait_seconds(now) > 0.0:
            return False
        return self.unacknowledged(now) < self._pacing.max_in_flight

    def sent(self, number: int, now: float, cost: float = 0.0) -> None:
        """Note that a frame was sent, and how long it took to make."""
        self._last_number = number
        self._last_sent = now
        self._interval = self._pacing.frame_interval(cost)
        self._write_off(now)
        self._in_flight.append((number, now))
        for viewer in self._viewers.values():
            if viewer.waiting_since is None:
                viewer.waiting_since = now

    def _write_off(self, now: float) -> None:
        while self._in_flight and now - self._in_flight[0][1] >= self._pacing.acknowledgement_timeout:
            self._in_flight.popleft()
