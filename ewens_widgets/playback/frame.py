"""What a view is given to show."""

from dataclasses import dataclass

from ewens_widgets.playback.status import PlayerStatus
from ewens_widgets.playback.summaries import Summary
from ewens_widgets.sampling.event import Event

__all__ = ["Frame"]


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
