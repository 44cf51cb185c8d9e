"""When frames are sent, and to which views.

A frame shows the state at the moment when it is sent; states in between are not shown.

Frames sent without limit would fill the queue between kernel and browser, and every click would wait behind
it. So a viewer (a browser page) acknowledges each frame once it is painted, and at most two frames are
unacknowledged. A viewer is registered by its first message: a greeting, a heartbeat or an acknowledgement. It
is removed when it leaves, or when it has been sent frames and was silent for some seconds, because its tab
was closed or hidden. Its next message registers it again. Without a viewer no frame is sent.

Acknowledgements can get lost, so a frame that is not acknowledged in time stops counting. On a busy machine
they are only late, and sending more frames would delay them further. So the time-out is twice what the
viewer took last, and doubles with each frame that is sent while earlier ones are unacknowledged.

Frames that take long to make are sent less often. This is measured in processor time: while a browser paints
on the same machine, a frame takes twice as long by the clock.
"""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

Receiver = TypeVar("Receiver")

# A browser has a single thread and no clock for it.
_thread_seconds: Callable[[], float] = getattr(time, "thread_time", time.perf_counter)

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """Times in seconds, and how they are measured. Change them for tests only.

    Attributes
    ----------
    work, nap, yields
        Duration of a turn of iterations, of the rest after it, and the empty turns of the event loop before
        the rest: with fewer than eight, messages to and from the browser lag behind.
    longest_rest
        Longest rest while waiting for a frame's time or an acknowledgement; a command ends it.
    poll
        Interval at which `Player.wait` checks whether the player has stopped.
    frames_per_second, fewest_frames_per_second, frame_share
        Largest frame rate. Making frames may take at most this share of the time; where it would take more,
        the rate falls, down to the second number.
    max_in_flight
        Most frames sent to a viewer and not yet acknowledged.
    acknowledgement_timeout, longest_timeout
        When a frame stops counting as unacknowledged; the longest such time for a viewer that is always late.
    viewer_timeout
        A viewer that has been sent frames and was silent for this long is removed.
    clock, effort, sleep
        Seconds from an arbitrary start, processor seconds of this thread, and the function that waits.
    """

    work: float = 0.010
    nap: float = 0.002
    yields: int = 8
    longest_rest: float = 0.05
    poll: float = 0.005
    frames_per_second: float = 20.0
    fewest_frames_per_second: float = 4.0
    frame_share: float = 1 / 3
    max_in_flight: int = 2
    acknowledgement_timeout: float = 1.5
    longest_timeout: float = 24.0
    viewer_timeout: float = 5.0
    clock: Callable[[], float] = time.perf_counter
    effort: Callable[[], float] = _thread_seconds
    sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep

    def timeout(self, seconds: float) -> float:
        """Return these seconds, kept between the shortest and the longest time-out."""
        return max(self.acknowledgement_timeout, min(seconds, self.longest_timeout))


class FrameTimes:
    """Divides iterations among frames, where the user chose a number of iterations per frame.

    Frame times follow one another at the frame rate. The chain runs the chosen number of iterations in each,
    then waits for its end. A speed below one makes frame times longer: at 0.1 an iteration lasts ten frames.
    A speed of None means as fast as possible.
    """

    def __init__(self, speed: float | None, interval: float) -> None:
        self.speed = speed
        self._interval = interval
        self.restart(0.0)

    def restart(self, now: float) -> None:
        """Begin with a frame time that ends as soon as its iterations are done."""
        self.remaining = 1 if self.speed is None else max(1, round(self.speed))
        self._end = now

    def refill(self, now: float) -> None:
        """Begin the next frame time."""
        self.restart(now + self._interval / min(1.0, self.speed or 1.0))

    def change(self, speed: float | None, now: float) -> None:
        """Change the speed, from the current frame time on."""
        remaining, end = self.remaining, self._end
        self.speed = speed
        self.refill(now)
        # A slower speed lets the frame time end as it began; a faster one cuts slow motion short.
        self.remaining, self._end = min(remaining, self.remaining), min(end, self._end)

    def count(self, iterations: int) -> None:
        """Count iterations that were run."""
        self.remaining = max(0, self.remaining - iterations)

    def wait_seconds(self, now: float) -> float:
        """Time until the end of the frame time."""
        return max(0.0, self._end - now)

    def is_due(self, now: float) -> bool:
        """Whether the frame time is over and its iterations are done."""
        return self.remaining == 0 and self._end <= now


class RateMeter:
    """Measures the rate of events over the last second."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()
        self._started = 0.0

    def restart(self, now: float) -> None:
        """Begin counting now."""
        self._counts.clear()
        self._started = now

    def add(self, count: int, now: float) -> None:
        """Add `count` events at this moment."""
        self._counts.append((now, count))
        self.rate(now)

    def rate(self, now: float) -> float:
        """Events per second in the second that ends now."""
        while self._counts and self._counts[0][0] <= now - 1.0:
            self._counts.popleft()
        elapsed = min(1.0, now - self._started)
        return sum(count for _, count in self._counts) / elapsed if elapsed > 0.0 else 0.0


class Screen(Protocol):
    """Anything that shows frames. Screens are called in the order in which they were attached.

    An optional method ``show_error(error)`` is called with the exception for which the screen was detached.
    """

    def show(self, frame: Any, /) -> None:  # noqa: ANN401 - a `Frame` or a `Tick`
        """Show a frame; called on the event loop, so it must return soon."""


class FanOut(Generic[Receiver]):
    """Receivers of news, such as views, in the order in which they were added.

    One that raises is removed. The error goes to its own ``show_error`` method if it has one, and to the log;
    the others and the chain go on.

    Parameters
    ----------
    tell
        Brings one receiver the news.
    strict
        Whether errors raise instead, and all receivers stay.
    """

    def __init__(self, tell: Callable[[Receiver, Any], object], *, strict: bool = False) -> None:
        self._tell = tell
        self._strict = strict
        self.all: tuple[Receiver, ...] = ()

    def add(self, receiver: Receiver) -> None:
        """Add a receiver; adding it twice changes nothing."""
        if receiver not in self.all:
            self.all += (receiver,)

    def remove(self, receiver: Receiver) -> None:
        """Remove a receiver; one that was not added is ignored."""
        self.all = tuple(one for one in self.all if one != receiver)

    def clear(self) -> None:
        """Remove all of them."""
        self.all = ()

    def tell(self, news: object) -> None:
        """Tell every receiver."""
        for receiver in self.all:
            self.tell_one(receiver, news)

    def tell_one(self, receiver: Receiver, news: object) -> None:
        """Tell one receiver."""
        try:
            self._tell(receiver, news)
        except Exception as error:
            if self._strict:
                raise
            self.remove(receiver)
            _logger.warning("%s was detached because it raised", type(receiver).__name__, exc_info=error)
            try:
                getattr(receiver, "show_error", lambda _: None)(error)
            except Exception:
                _logger.exception("reporting this error raised another one")


@dataclass(slots=True)
class _Viewer:
    timeout: float  # seconds after which a frame to this viewer stops counting as unacknowledged
    # Number and time of the frames that it has not acknowledged; of very many, the last ones.
    unpainted: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=100))
    waiting_since: float | None = None  # time of the first frame after its last message


class Display:
    """Counts frames sent and acknowledged, and decides when the next one may be sent.

    Attributes
    ----------
    number
        Number of the last frame.
    is_stale, is_urgent
        Whether the state has changed since then, and whether the next frame is sent before its time.
    """

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing
        self._clock = pacing.clock
        self._viewers: dict[str, _Viewer] = {}
        self._cost = 0.0
        self._next = -math.inf  # when the frame rate allows the next frame
        self.number = 0
        self.is_stale = self.is_urgent = True

    @property
    def is_watched(self) -> bool:
        """Whether there is a viewer."""
        # Silence counts from the first frame after the last message: a page that gets nothing may be silent.
        longest, now = self._pacing.viewer_timeout, self._clock()
        for name, viewer in list(self._viewers.items()):
            if viewer.waiting_since is not None and now - viewer.waiting_since > longest:
                del self._viewers[name]
        return bool(self._viewers)

    @property
    def is_outdated(self) -> bool:
        """Whether there is a viewer that sees an old state."""
        return self.is_stale and self.is_watched

    @property
    def is_full(self) -> bool:
        """Whether the largest allowed number of frames is unacknowledged."""
        return self.unacknowledged() >= self._pacing.max_in_flight

    @property
    def is_open(self) -> bool:
        """Whether a frame may be sent now."""
        return self.is_watched and self.wait_seconds() <= 0.0 and not self.is_full

    def wait_seconds(self) -> float:
        """Time until the frame rate allows the next frame."""
        return max(0.0, self._next - self._clock())

    def unacknowledged(self) -> int:
        """Number of recent frames that the slowest viewer has not acknowledged."""
        if not self.is_watched:
            return 0
        now = self._clock()
        # Frames are the same for all viewers, so the slowest one sets the pace.
        return max(
            sum(now - then < viewer.timeout for _, then in viewer.unpainted)
            for viewer in self._viewers.values()
        )

    def outdate(self, *, urgently: bool = False) -> None:
        """Mark the frame on display as old; urgently if the next one should be sent before its time."""
        self.is_stale = True
        self.is_urgent |= urgently

    def greet(self, viewer: str) -> None:
        """Register a message of a viewer; a new one gets a frame at once."""
        known = self._viewers.get(viewer)
        if known is None:
            self._viewers[viewer] = _Viewer(self._pacing.acknowledgement_timeout)
            self.outdate(urgently=True)
        else:
            known.waiting_since = None

    def acknowledge(self, number: int, viewer: str) -> None:
        """Count a frame and all before it as painted by a viewer."""
        self.greet(viewer)
        # A number that was never sent comes from a page of an earlier kernel: it counts as a message only.
        if number > self.number:
            return
        known, taken = self._viewers[viewer], 0.0
        while known.unpainted and known.unpainted[0][0] <= number:
            sent, then = known.unpainted.popleft()
            taken = self._clock() - then if sent == number else 0.0
        known.timeout = self._pacing.timeout(2.0 * taken)

    def leave(self, viewer: str) -> None:
        """Remove a viewer."""
        self._viewers.pop(viewer, None)

    def clear(self) -> None:
        """Remove all viewers."""
        self._viewers.clear()

    def send(self, show: Callable[[int], None]) -> None:
        """Call `show` with the number of the next frame, and count the frame as sent."""
        now, worked = self._clock(), self._pacing.effort()
        self.number += 1
        # Before the frame is shown: a view that raises every time must not be called again and again.
        self.is_stale = self.is_urgent = False
        try:
            show(self.number)
        finally:
            # Smoothed, because the first frame is often the slowest.
            self._cost = 0.5 * (self._cost + self._pacing.effort() - worked)
            pacing = self._pacing
            interval = min(self._cost / pacing.frame_share, 1.0 / pacing.fewest_frames_per_second)
            self._next = now + max(interval, 1.0 / pacing.frames_per_second)
            for viewer in self._viewers.values():
                if viewer.unpainted and now - viewer.unpainted[0][1] >= viewer.timeout:
                    viewer.timeout = pacing.timeout(2.0 * viewer.timeout)
                if viewer.waiting_since is None:
                    viewer.waiting_since = now
                viewer.unpainted.append((self.number, now))
