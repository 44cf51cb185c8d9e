"""How playback shares the event loop: how long it works, how long it rests, how many frames it sends."""

from dataclasses import dataclass, fields

__all__ = ["Pacing"]


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
    poll
        Longest rest while waiting for a frame to fall due.
    frames_per_second
        Most frames a second.
    fewest_frames_per_second
        Frames that cost much time are made rarer, but not rarer than this.
    frame_share
        Share of the time that making frames may take before they are made rarer.
    max_in_flight
        Most frames sent to a viewer and not yet acknowledged.
    acknowledgement_timeout
        After this time a frame counts as no longer in flight: acknowledgements do get lost.
    viewer_timeout
        A viewer that has been sent frames and stayed silent for so long counts as gone.
    """

    work: float = 0.010
    flight: float = 0.020
    nap: float = 0.002
    yields: int = 8
    poll: float = 0.005
    frames_per_second: float = 20.0
    fewest_frames_per_second: float = 4.0
    frame_share: float = 1 / 3
    max_in_flight: int = 2
    acknowledgement_timeout: float = 1.5
    viewer_timeout: float = 5.0

    def __post_init__(self) -> None:
        """Refuse values that would stop playback."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"{field.name} must be positive, got {value!r}")

    def frame_interval(self, cost: float) -> float:
        """Shortest time between two frames that take `cost` seconds to make."""
        shortest, longest = 1.0 / self.frames_per_second, 1.0 / self.fewest_frames_per_second
        return max(shortest, min(cost / self.frame_share, longest))
