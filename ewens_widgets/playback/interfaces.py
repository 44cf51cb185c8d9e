"""What playback asks of the things it connects: a source of events, a recorder, and views.

These are protocols: any object with the right methods will do, so tests and teaching widgets can play
something other than a sampler.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from ewens_widgets.sampling.event import Event

if TYPE_CHECKING:  # frames carry a status and summaries, whose modules need the protocols below
    from ewens_widgets.playback.frame import Frame

__all__ = ["Absorbing", "EventRecorder", "RecordingAside", "SelfRecording", "Snapshots", "Source", "View"]


class Source(Protocol):
    """A chain that yields one event an iteration, such as `Sampler`."""

    @property
    def iteration(self) -> int:
        """Number of the last iteration done, 0 at the start."""

    def events(self, n: int, block: int | None = None) -> Iterator[Event]:
        """Run `n` iterations, `block` of them at a time, and yield one event for each."""

    def reset(self) -> None:
        """Go back to the initial state."""


@runtime_checkable
class Snapshots(Protocol):
    """A source that can tell where it is without moving: frames before the first iteration need that."""

    def snapshot(self) -> Event:
        """Event that describes the current state; its iteration is that of the source."""


@runtime_checkable
class SelfRecording(Protocol):
    """A source that can write a block straight into a recorder: at full speed no event has to be made."""

    def record(self, n: int, recorder: "EventRecorder") -> None:
        """Run `n` iterations as one block and record them.

        Interrupted, the source is where the record ends.
        """


@runtime_checkable
class RecordingAside(SelfRecording, Protocol):
    """One whose blocks may run on another thread: they touch only the source and the given recorder."""

    records_aside: bool


@runtime_checkable
class Absorbing(Protocol):
    """A recorder that takes over what another thread has recorded meanwhile, while it is looked at itself."""

    def sibling(self, capacity: int) -> "EventRecorder":
        """Return an empty recorder of the same chain for so many iterations; make room for them here too."""

    def absorb(self, other: Any) -> None:  # noqa: ANN401 - what `sibling` gave
        """Record what a sibling has recorded; interrupted, all of it or nothing."""


class EventRecorder(Protocol):
    """Where every iteration is kept, such as `Recorder`.

    Its arrays have one row for each iteration recorded so far, are read-only, and cost nothing to look at.
    What a view of them shows never changes, whatever is recorded later.
    """

    def __len__(self) -> int: ...

    @property
    def iterations(self) -> NDArray[Any]:
        """Numbers of the iterations."""

    @property
    def labels(self) -> NDArray[Any]:
        """Canonical labels."""

    @property
    def n_clusters(self) -> NDArray[Any]:
        """Numbers of clusters."""

    @property
    def theta(self) -> NDArray[Any]:
        """Variance ratios."""

    @property
    def theta_weights(self) -> NDArray[Any]:
        """Exact conditionals of θ on its grid."""

    @property
    def log_posterior(self) -> NDArray[Any]:
        """Unnormalised log posteriors."""

    @property
    def concentration(self) -> NDArray[Any]:
        """Concentrations λ."""

    @property
    def move_names(self) -> tuple[str, ...]:
        """Names of the schedule's moves."""

    @property
    def proposals(self) -> NDArray[Any]:
        """Proposals, a column a move."""

    @property
    def acceptances(self) -> NDArray[Any]:
        """Acceptances, a column a move."""

    def append(self, event: Event) -> None:
        """Keep one event."""

    def event(self, index: int) -> Event:
        """Return the event at a place, 0 being the first one kept."""

    def clear(self) -> None:
        """Forget everything."""


class View(Protocol):
    """Anything that shows frames. Views are called in the order in which they were attached.

    A view that also has a method ``show_error(error)`` is told when it was detached because it raised.
    """

    def show(self, frame: "Frame") -> None:
        """Show the state of a frame; called on the event loop, so it must not wait for anything."""
