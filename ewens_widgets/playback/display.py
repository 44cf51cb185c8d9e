"""The side of playback that faces the viewers: which frame is owed to them, and when it is sent.

Only the latest state is ever owed. A frame that could not be sent in time is not kept; when the throttle
opens, a frame is made from the state of that moment.
"""

from collections.abc import Callable

from ewens_widgets.playback.fanout import FanOut
from ewens_widgets.playback.frame import Frame
from ewens_widgets.playback.pacing import Pacing
from ewens_widgets.playback.rates import RateMeter
from ewens_widgets.playback.throttle import FrameThrottle

__all__ = ["Display"]


class Display:
    """Sends frames to the views while somebody is looking.

    Parameters
    ----------
    make_frame
        Makes a frame with the given number from the state of the moment.
    fan_out
        The views.
    pacing
        Frame rate, frames in flight and time-outs.
    clock
        Seconds from an arbitrary start.
    """

    def __init__(
        self,
        make_frame: Callable[[int], Frame],
        fan_out: FanOut,
        pacing: Pacing,
        clock: Callable[[], float],
    ) -> None:
        self._make_frame = make_frame
        self._fan_out = fan_out
        self._clock = clock
        self._throttle = FrameThrottle(pacing)
        self._meter = RateMeter()
        self._cost = 0.0
        self.number = 0
        self.is_stale = True
        self.is_urgent = True

    @property
    def is_open(self) -> bool:
        """Whether a frame may be sent now."""
        return self._throttle.is_open(self._clock())

    @property
    def is_watched(self) -> bool:
        """Whether anybody is looking."""
        return self._throttle.has_viewers(self._clock())

    @property
    def owes_frame(self) -> bool:
        """Whether somebody is looking at an old state."""
        return self.is_stale and self.is_watched

    @property
    def frames_per_second(self) -> float:
        """Frames sent a second, lately."""
        return self._meter.rate(self._clock())

    @property
    def wait_seconds(self) -> float:
        """Time until the frame rate allows the next frame."""
        return self._throttle.wait_seconds(self._clock())

    def send(self) -> None:
        """Make a frame from the state of the moment and show it to every view."""
        started = self._clock()
        self.number += 1
        self._meter.add(1, started)
        try:
            self._fan_out.show(self._make_frame(self.number))
        finally:
            # Smoothed, as the first frame is often the slowest.
            self._cost = 0.5 * (self._cost + self._clock() - started)
            self._throttle.sent(self.number, started, self._cost)
        self.is_stale = self.is_urgent = False

    def outdate(self, *, urgently: bool = False) -> None:
        """Note that the state has changed; urgently if the next frame should not wait for its time."""
        self.is_stale = True
        self.is_urgent |= urgently

    def greet(self, viewer: str) -> None:
        """Note a sign of life of a viewer; a new one is owed a frame at once."""
        if self._throttle.greet(viewer):
            self.outdate(urgently=True)

    def acknowledge(self, number: int, viewer: str) -> None:
        """Note that a viewer has painted a frame."""
        if self._throttle.acknowledge(number, viewer):
            self.outdate(urgently=True)

    def leave(self, viewer: str) -> None:
        """Note that a viewer has gone."""
        self._throttle.leave(viewer)

    def forget_viewers(self) -> None:
        """Count nobody as looking."""
        self._throttle.clear()
