"""Where the chain is, in words."""

import numpy as np

from ewens_widgets.playback import Frame, PlayerState, PlayerStatus

__all__ = ["move_text", "number_text", "status_text"]


def number_text(number: int) -> str:
    """A whole number with its thousands apart."""
    return f"{number:,}".replace(",", " ")


def status_text(frame: Frame, status: PlayerStatus | None = None) -> str:
    """One line: iteration, number of clusters, what happened.

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
        parts.append("1 cluster" if event.n_clusters == 1 else f"{event.n_clusters} clusters")
        move = move_text(frame)
        if move:
            parts.append(move)
    if not now.is_following:
        parts.append(f"looking back; the chain is at {number_text(now.iteration)}")
    elif now.iterations_per_second >= 1.0:
        parts.append(f"{number_text(round(now.iterations_per_second))} iterations/s")
    elif now.message:
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
    if before is None or event.moves[0].name == "reassign":
        return "move"
    return "split" if after > before else "merge" if after < before else "move"
