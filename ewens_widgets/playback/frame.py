"""What views are given to show: frozen values that any thread may read, and that cannot disturb the chain.

A `Frame` is one picture of a chain, with the status of its player; a `Tick` asks for a picture of work that
is no chain. `status_text` tells a frame in words.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ewens_widgets.playback.summaries import Summary
from ewens_widgets.sampling.event import Event
from ewens_widgets.sampling.moves.move import MOVES

__all__ = [
    "Frame",
    "PlayerState",
    "PlayerStatus",
    "Tick",
    "WorkerStatus",
    "move_text",
    "number_text",
    "status_text",
]


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


def number_text(number: int) -> str:
    """A whole number with its thousands apart."""
    return f"{number:,}".replace(",", " ")


def status_text(frame: Frame, status: PlayerStatus | None = None) -> str:
    """One line: iteration, what happened, how fast it goes.

    Parameters
    ----------
    frame
        What is on display.
    status
        A newer status than that of the frame.
    """
    now = frame.status if status is None else status
    if now.state is PlayerState.PREPARING or now.state is PlayerState.FAILED:
        return now.message
    event = frame.event
    parts = [f"iteration {number_text(now.shown_iteration)} of {number_text(now.target)}"]
    if event is not None and event.iteration == now.shown_iteration:
        move = move_text(frame)
        if move:
            parts.append(move)
    if not now.is_following:
        parts.append(f"looking back; the chain is at {number_text(now.iteration)}")
        return " · ".join(parts)
    if now.iterations_per_second >= 1.0:
        parts.append(f"{number_text(round(now.iterations_per_second))} iterations/s")
    if now.message:
        parts.append(now.message.rstrip("."))
    return " · ".join(parts)


def move_text(frame: Frame) -> str:
    """What the iteration on display did."""
    event = frame.event
    if event is None or not event.moves:
        return ""
    if event.proposed_labels is not None and event.accepted is not None:
        decision = "accepted" if event.accepted else "rejected"
        return f"{_kind(frame)} {decision}"
    made = sum(move.proposals for move in event.moves)
    taken = sum(move.acceptances for move in event.moves)
    if made == 0:
        return "nothing proposed"
    if len(event.moves) == 1 and made == 1:
        return "proposal accepted" if taken else "proposal rejected"
    return f"{taken} of {made} moves accepted"


def _kind(frame: Frame) -> str:
    """Whether the proposal splits, merges, or moves an object."""
    event = frame.event
    if event is None or event.proposed_labels is None:
        return "proposal"
    previous = frame.summary.n_clusters[-2:-1]
    before = event.n_clusters if not event.accepted else int(previous[0]) if len(previous) else None
    after = int(np.max(event.proposed_labels)) + 1
    made = MOVES.get(event.moves[0].name)
    if made is None:  # Of a record whose move is not registered here.
        return "proposal"
    if before is None or made.moves_one:
        return "move"
    return "split" if after > before else "merge" if after < before else "move"
