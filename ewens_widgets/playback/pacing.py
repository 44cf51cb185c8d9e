"""Times: how playback shares the event loop, how iterations are portioned out over frames, how many a second.

`Pacing` says how long playback works and rests, and how many frames it sends. Where the user chose a number
of iterations a frame, `FrameTimes` portions them out: frame times follow one another at the frame rate; each
is filled with as many iterations as the speed says, then the chain waits for it to pass. A speed below one
makes frame times longer: at 0.1 an iteration lasts ten frames. `RateMeter` counts what happens a second.
"""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields

__all__ = ["FrameTimes", "Pacing", "RateMeter", "check_speed", "thread_seconds"]

# Not every system counts what a thread works; a browser has one thread, and gives all its time to it.
thread_seconds: Callable[[], float] = getattr(time, "thread_time", time.perf_counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """Times in seconds. The defaults were measured in notebooks; change them for tests only.

    Attributes
    ----------
    work
        Length of a stretch of iterations between two rests.
    flight
        Length of a block that a helper thread runs: the event loop need not wait for it, but a pause does.
    nap
        Length of a rest. It comes after `yields` empty turns of the loop: with fewer turns, messages to and
        from the browser lag behind.
    yields
        Empty turns of the loop at each rest.
    longest_rest
        Longest rest while a frame is waited for: until it falls due, or until those on their way have been
        acknowledged. A command ends it.
    poll
        How often somebody who waits for the end looks whether it has come.
    frames_per_second
        Most frames a second.
    fewest_frames_per_second
        Frames that cost much time are made rarer, but not rarer than this.
    frame_share
        Share of the time that making frames may work for before they are made rarer.
    max_in_flight
        Most frames sent to a viewer and not yet acknowledged.
    acknowledgement_timeout
        After this time a frame counts as no longer in flight: acknowledgements do get lost.
    longest_patience
        The same for a viewer whose acknowledgements are always late.
    viewer_timeout
        A viewer that has been sent frames and stayed silent for so long counts as gone.
    """

    work: float = 0.010
    flight: float = 0.020
    nap: float = 0.002
    yields: int = 8
    longest_rest: float = 0.05
    poll: float = 0.005
    frames_per_second: float = 20.0
    fewest_frames_per_second: float = 4.0
    frame_share: float = 1 / 3
    max_in_flight: int = 2
    acknowledgement_timeout: float = 1.5
    longest_patience: float = 24.0
    viewer_timeout: float = 5.0

    def __post_init__(self) -> None:
        """Refuse values that would stop playback."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"{field.name} must be positive, got {value!r}")

    def frame_interval(self, cost: float) -> float:
        """Shortest time between two frames that take `cost` seconds of work to make."""
        shortest, longest = 1.0 / self.frames_per_second, 1.0 / self.fewest_frames_per_second
        return max(shortest, min(cost / self.frame_share, longest))

    def patience(self, seconds: float) -> float:
        """How long to wait for an acknowledgement, if so many seconds would be right."""
        return max(self.acknowledgement_timeout, min(seconds, self.longest_patience))


class FrameTimes:
    """Counts the iterations of the current frame time; told the time by its caller.

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
        # Below one it is the frame time that is stretched, not the iteration that is divided.
        return 1 if self.speed is None else max(1, round(self.speed))

    @property
    def _length(self) -> float:
        return self._interval if self.speed is None else self._interval / min(1.0, self.speed)

    def restart(self, now: float) -> None:
        """Begin with a frame time that may pass as soon as it is filled."""
        self.remaining = self._portion
        self._end = now

    def change(self, speed: float | None, now: float) -> None:
        """Change the speed, from the current frame time on."""
        self.speed = speed
        # Slower: what was begun ends as it was; faster: nobody waits for the end of slow motion.
        self.remaining = min(self.remaining, self._portion)
        self._end = min(self._end, now + self._length)

    def count(self, iterations: int) -> None:
        """Note iterations done."""
        self.remaining = max(0, self.remaining - iterations)

    def wait_seconds(self, now: float) -> float:
        """Time until the frame time has passed."""
        return max(0.0, self._end - now)

    def is_due(self, now: float) -> bool:
        """Whether the frame time is filled and has passed."""
        return self.remaining == 0 and self._end <= now

    def refill(self, now: float) -> None:
        """Begin the next frame time."""
        self.remaining = self._portion
        self._end = now + self._length


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


def check_speed(name: str, speed: object) -> float | None:
    """Return a positive number of iterations a frame, or None."""
    if speed is None:
        return None
    try:
        number = float(speed)  # type: ignore[arg-type]  # that is the question
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be a number of iterations a frame, or None for as fast as it goes; got {speed!r}"
        ) from None
    if not 0.0 < number < math.inf:
        raise ValueError(
            f"{name} must be positive and finite, got {speed!r}; use None for as fast as it goes"
        )
    return number
