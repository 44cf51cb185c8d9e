"""What views are given to show: frozen values that any thread may read, and that cannot disturb the chain.

A `Frame` is one picture of a chain, with the status of its player; a `Tick` asks for a picture of work that
is no chain.
"""

from dataclasses import dataclass
from enum import StrEnum

from ewens_widgets.playback.summaries import Summary
from ewens_widgets.sampling.event import Event

__all__ = ["Frame", "PlayerState", "PlayerStatus", "Tick", "WorkerStatus"]


class PlayerState(StrEnum):
    """What the player is doing."""

    IDLE = "idle"
    """Nothing has been run since the start or the last reset."""

    PREPARING = "preparing"
    """The first block is about to run; compiling may take some seconds."""

    PLAYING = "playing"
    """The chain runs until it is paused or reaches the target."""

    STEPPING = "stepping"
    """The chain runs the steps that were asked for, then pauses."""

    PAUSED = "paused"
    """The chain stands still."""

    FINISHED = "finished"
    """The target is reached; extending it or resetting allows more."""

    FAILED = "failed"
    """The source, the recorder or (in strict mode) a view raised; only a reset helps."""

    @property
    def is_running(self) -> bool:
        """Whether iterations are being run."""
        return self in (PlayerState.PREPARING, PlayerState.PLAYING, PlayerState.STEPPING)


@dataclass(frozen=True, slots=True)
class PlayerStatus:
    """What a status line needs to know.

    Attributes
    ----------
    state
        What the player is doing.
    iteration
        Where the chain is: every iteration up to this one has been recorded.
    target
        The iteration at which playing stops.
    shown_iteration
        The iteration on display; less than `iteration` only while looking at the past.
    first_iteration
        The earliest iteration that can be shown, usually 0.
    speed
        Iterations a frame, or None for as fast as it goes.
    iterations_per_second, frames_per_second
        Measured over the last second or so; 0 when standing still.
    message
        A sentence for the user where there is something to say (an interrupt, a failure, what is being waited
        for).
    """

    state: PlayerState
    iteration: int
    target: int
    shown_iteration: int
    first_iteration: int = 0
    speed: float | None = None
    iterations_per_second: float = 0.0
    frames_per_second: float = 0.0
    message: str = ""

    @property
    def is_running(self) -> bool:
        """Whether iterations are being run."""
        return self.state.is_running

    @property
    def is_following(self) -> bool:
        """Whether the present is on display, and not the past."""
        return self.shown_iteration == self.iteration

    @property
    def progress(self) -> float:
        """Share of the target that is done, between 0 and 1."""
        return min(1.0, self.iteration / self.target) if self.target > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture: the state on display and what led to it. Nothing in it can disturb the chain.

    Attributes
    ----------
    number
        The number to acknowledge once the frame is painted; it only ever grows.
    event
        The iteration on display. Before the first iteration it describes the initial state, with no moves, if
        the source can tell it; otherwise it is None.
    status
        Where the player is; ``status.shown_iteration`` is the iteration on display.
    summary
        Traces and averages up to the iteration on display, not beyond it.
    """

    number: int
    event: Event | None
    status: PlayerStatus
    summary: Summary


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """Whether steps are being done; and a sentence where there is something to say."""

    is_running: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    """Asks the views to show the work as it is now; the number is acknowledged once that is painted."""

    number: int
    status: WorkerStatus
