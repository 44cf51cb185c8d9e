"""A recorded chain to be shown, and a stand-in for the connection to a page."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from ipywidgets import Widget
from traces import blob_trace, events_of

from ewens_widgets.datasets import Dataset
from ewens_widgets.playback import Frame, PlayerState, PlayerStatus
from ewens_widgets.playback.frame import LiveAnswer, RunningSummaries
from ewens_widgets.playback.loop import Mailbox
from ewens_widgets.sampling.draws import DrawTable
from ewens_widgets.views import SharedState, View


class Wire:
    """Counts the messages from widgets to pages."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, dict[str, Any]]] = []
        self.opened: list[str] = []
        self.buffers: list[bytes] = []

    def clear(self) -> None:
        self.messages.clear()
        self.buffers.clear()

    def updates(self) -> Counter[str]:
        """Number of updates by widget."""
        return Counter(sender for sender, data in self.messages if data.get("method") == "update")

    def custom(self) -> list[dict[str, Any]]:
        return [data["content"] for _, data in self.messages if data.get("method") == "custom"]


class Chain:
    """A recorded chain on three blobs, to be shown frame by frame."""

    def __init__(self, n_objects: int = 30, n_draws: int = 40, burn_in: int = 0) -> None:
        self.trace = blob_trace(n_objects=n_objects, n_draws=n_draws)
        self.posterior = self.trace.posterior
        self.dataset = Dataset(
            X=np.array(self.posterior.coordinates), labels=np.arange(n_objects) % 3, name="blobs"
        )
        self.events = events_of(self.trace)
        self.recorder = DrawTable(self.posterior, self.trace.move_names)
        self.recorder.extend(self.trace)
        self.summaries = RunningSummaries(self.recorder, burn_in)
        self.number = 0

    def frame(
        self,
        iteration: int,
        state: PlayerState = PlayerState.PAUSED,
        target: int | None = None,
        **event: object,
    ) -> Frame:
        """Frame that shows an iteration of a run to a target; keywords change its event."""
        self.number += 1
        status = PlayerStatus(state, iteration, target or len(self.events), iteration)
        shown = None if iteration == 0 else self.events[iteration - 1]._replace(**event)
        return Frame(self.number, shown, status, self.summaries.up_to(iteration))

    def answers(
        self, shared: SharedState, on_answer: Callable[[], None] = lambda: None, *, has_thread: bool = True
    ) -> LiveAnswer:
        """What a player has beside the chain, for views that share a state."""
        return LiveAnswer(Mailbox(), on_answer, shared.wants_answer, has_thread=has_thread)


def widgets_below(widget: Widget) -> set[Widget]:
    """A widget with everything that it refers to."""
    found, waiting = set(), [widget]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.add(one)
        for name in one.keys:
            value = getattr(one, name)
            several = value.values() if isinstance(value, dict) else value
            parts = several if isinstance(value, list | tuple | dict) else (value,)
            waiting.extend(part for part in parts if isinstance(part, Widget))
    return found


def made(kind: type[View], shared: SharedState, chain: Chain) -> View:
    """A view of a kind, ready to show the chain."""
    view = kind(shared)
    view.prepare(chain.dataset, chain.posterior)
    return view
