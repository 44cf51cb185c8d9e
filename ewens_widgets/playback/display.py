"""The side of playback that faces the viewers: which frame is owed to them, when, and who shows it.

Only the latest state is ever owed. A frame that could not be sent in time is not kept; when the throttle
opens, a frame is made from the state of that moment.

Sending frames unasked fills the queue between kernel and browser; everything the user does then waits behind
that queue. So a viewer acknowledges the number of each frame once it is painted, and at most two frames are
on their way to it. A viewer is known by its first sign of life (a greeting, a heartbeat or an
acknowledgement). It is forgotten when it takes its leave, or when it has been sent frames and stayed silent
for some seconds: a closed tab, or a hidden one, whose browser paints nothing. Its next sign of life brings it
back. Without a viewer no frame may be sent, and there is nothing to wait for.

Acknowledgements do get lost, so a frame that is not answered in time no longer counts as on its way. But on a
machine with too much to do answers are merely late, and sending more would make them later still, without
end. So the time that a viewer is given follows what it took lately, and doubles with each frame that is sent
without an answer to those before it.

Frames that take long to make are made rarer. What counts is the processor's time, not the clock's: beside a
chain at full speed and a browser that paints, a frame takes twice as long, and to send fewer of them for that
would only leave more to the chain.

Within a frame the views come one after another, and a faulty one does not stop the chain.
"""

import logging
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ewens_widgets.playback.pacing import Pacing, RateMeter

__all__ = ["Display", "FanOut", "FrameThrottle", "Screen", "ViewErrorHook"]

FrameT = TypeVar("FrameT")
FrameT_contra = TypeVar("FrameT_contra", contravariant=True)
StatusT = TypeVar("StatusT")

ViewErrorHook = Callable[[object, Exception], None]

_logger = logging.getLogger(__name__)


class Screen(Protocol[FrameT_contra]):
    """Anything that shows frames. Screens are called in the order in which they were attached.

    One that also has a method ``show_error(error)`` is told when it was detached because it raised. One that
    has a method ``enclose()`` gives a context, in which each frame is shown to all of them.
    """

    def show(self, frame: FrameT_contra) -> None:
        """Show the state of a frame; called on the event loop, so it must not wait for anything."""


class Display(Generic[FrameT]):
    """Sends frames to the views while somebody is looking.

    Parameters
    ----------
    make_frame
        Makes a frame with the given number from the state of the moment.
    show
        Shows a frame to every view.
    pacing
        Frame rate, frames in flight and time-outs.
    clock
        Seconds from an arbitrary start.
    effort
        Seconds that this thread has worked for.
    """

    def __init__(
        self,
        make_frame: Callable[[int], FrameT],
        show: Callable[[FrameT], None],
        pacing: Pacing,
        clock: Callable[[], float],
        effort: Callable[[], float],
    ) -> None:
        self._make_frame = make_frame
        self._show = show
        self._clock = clock
        self._effort = effort
        self.throttle = FrameThrottle(pacing)
        self._meter = RateMeter()
        self._cost = 0.0
        self.number = 0
        self.is_stale = True
        self.is_urgent = True

    @property
    def is_open(self) -> bool:
        """Whether a frame may be sent now."""
        return self.throttle.is_open(self._clock())

    @property
    def is_full(self) -> bool:
        """Whether as many frames are on their way as may be: an acknowledgement has to come first."""
        return self.throttle.is_full(self._clock())

    @property
    def is_watched(self) -> bool:
        """Whether anybody is looking."""
        return self.throttle.has_viewers(self._clock())

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
        return self.throttle.wait_seconds(self._clock())

    def send(self) -> None:
        """Make a frame from the state of the moment and show it to every view."""
        started, worked = self._clock(), self._effort()
        self.number += 1
        self._meter.add(1, started)
        try:
            frame = self._make_frame(self.number)
            # Before it is shown: a view that raises every time must not be asked for ever.
            self.is_stale = self.is_urgent = False
            self._show(frame)
        finally:
            # Smoothed, as the first frame is often the slowest.
            self._cost = 0.5 * (self._cost + self._effort() - worked)
            self.throttle.sent(self.number, started, self._cost)

    def outdate(self, *, urgently: bool = False) -> None:
        """Note that the state has changed; urgently if the next frame should not wait for its time."""
        self.is_stale = True
        self.is_urgent |= urgently

    def greet(self, viewer: str) -> None:
        """Note a sign of life of a viewer; a new one is owed a frame at once."""
        if self.throttle.greet(viewer):
            self.outdate(urgently=True)

    def acknowledge(self, number: int, viewer: str) -> None:
        """Note that a viewer has painted a frame."""
        if self.throttle.acknowledge(number, viewer, self._clock()):
            self.outdate(urgently=True)


class FanOut(Generic[FrameT, StatusT]):
    """The views and status listeners, in the order in which they came.

    One that raises is detached and reported: to its own ``show_error`` method if it has one, to the error
    hook, and to the log. The others and the chain go on.

    Parameters
    ----------
    on_view_error
        Called with the faulty view or listener and its exception.
    strict
        Let faults raise instead, and detach nobody: for tests, and where a fault must stop the work.
    """

    def __init__(self, on_view_error: ViewErrorHook | None = None, *, strict: bool = False) -> None:
        self._on_view_error = on_view_error
        self._strict = strict
        self._views: list[Screen[FrameT]] = []
        self._listeners: list[Callable[[StatusT], None]] = []

    @property
    def views(self) -> tuple[Screen[FrameT], ...]:
        """The attached views in order."""
        return tuple(self._views)

    def attach(self, view: Screen[FrameT]) -> None:
        """Add a view; attaching it twice changes nothing."""
        if not callable(getattr(view, "show", None)):
            raise TypeError(f"a view needs a method show(frame), got {type(view).__name__}")
        if view not in self._views:
            self._views.append(view)

    def detach(self, view: Screen[FrameT]) -> None:
        """Remove a view; one that is not attached is ignored."""
        if view in self._views:
            self._views.remove(view)

    def listen(self, listener: Callable[[StatusT], None]) -> None:
        """Add a listener to changes of the status."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[StatusT], None]) -> None:
        """Remove a listener; an unknown one is ignored."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def clear(self) -> None:
        """Remove all views and listeners."""
        self._views.clear()
        self._listeners.clear()

    def show(self, frame: FrameT) -> None:
        """Show a frame to every view."""
        views = self.views
        with ExitStack() as around:
            for view in views:
                if hasattr(view, "enclose"):
                    around.enter_context(view.enclose())
            for view in views:
                self.show_to(view, frame)

    def show_to(self, view: Screen[FrameT], frame: FrameT) -> None:
        """Show a frame to one view."""
        try:
            view.show(frame)
        except Exception as error:
            if self._strict:
                raise
            self.detach(view)
            self._report(view, error)

    def tell(self, status: StatusT) -> None:
        """Tell the listeners a new status."""
        for listener in tuple(self._listeners):
            try:
                listener(status)
            except Exception as error:
                self.unlisten(listener)  # in any case: the failure itself is going to be told
                if self._strict:
                    raise
                self._report(listener, error)

    def _report(self, culprit: object, error: Exception) -> None:
        _logger.warning("%s was detached because it raised", type(culprit).__name__, exc_info=error)
        hooks = [getattr(culprit, "show_error", None)]
        if self._on_view_error is not None:
            hooks.append(lambda error: self._on_view_error(culprit, error))
        for hook in hooks:
            try:
                if hook is not None:
                    hook(error)
            except Exception:
                _logger.exception("the report of this fault failed too")


@dataclass(slots=True)
class _Viewer:
    acknowledged: int
    patience: float  # how long its answer to a frame is waited for
    waiting_since: float | None = None  # when it was sent the first frame after its last sign of life


class FrameThrottle:
    """Keeps the books of frames sent and acknowledged; told the time by its caller.

    Parameters
    ----------
    pacing
        Frame rate, frames in flight and time-outs.
    """

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing
        self._viewers: dict[str, _Viewer] = {}
        self._in_flight: deque[tuple[int, float]] = deque()
        self._last_number = 0
        self._last_sent: float | None = None
        self._interval = pacing.frame_interval(0.0)

    def greet(self, viewer: str) -> bool:
        """Note a sign of life; return whether the viewer is a new one."""
        known = self._viewers.get(viewer)
        if known is None:
            # What was sent before its time it can never acknowledge.
            self._viewers[viewer] = _Viewer(self._last_number, self._pacing.acknowledgement_timeout)
            return True
        known.waiting_since = None
        return False

    def acknowledge(self, number: int, viewer: str, now: float) -> bool:
        """Note that a viewer has painted a frame, and so all before it; return whether it is a new one."""
        is_new = self.greet(viewer)
        # A number that was never sent comes from a page that outlived its kernel: a sign of life, no more.
        if number <= self._last_number:
            known = self._viewers[viewer]
            known.acknowledged = number if is_new else max(known.acknowledged, number)
            taken = [now - then for other, then in self._in_flight if other == number]
            known.patience = self._pacing.patience(2.0 * taken[0] if taken else 0.0)
        return is_new

    def leave(self, viewer: str) -> None:
        """Forget a viewer."""
        self._viewers.pop(viewer, None)

    def clear(self) -> None:
        """Forget all viewers."""
        self._viewers.clear()

    def has_viewers(self, now: float) -> bool:
        """Whether anybody is looking."""
        # Silence counts only from the first frame that was not answered: nobody has to speak unasked.
        timeout = self._pacing.viewer_timeout
        for name, viewer in list(self._viewers.items()):
            if viewer.waiting_since is not None and now - viewer.waiting_since > timeout:
                del self._viewers[name]
        return bool(self._viewers)

    def unacknowledged(self, now: float) -> int:
        """Frames that the slowest viewer has been sent lately and has not acknowledged."""
        self._write_off(now)
        if not self.has_viewers(now):
            return 0
        # Frames are the same for all, so the slowest one sets the pace; one that is gone times out.
        return max(
            sum(
                number > viewer.acknowledged and now - then < viewer.patience
                for number, then in self._in_flight
            )
            for viewer in self._viewers.values()
        )

    def wait_seconds(self, now: float) -> float:
        """Time until the frame rate allows the next frame."""
        return 0.0 if self._last_sent is None else max(0.0, self._last_sent + self._interval - now)

    def is_full(self, now: float) -> bool:
        """Whether as many frames are on their way as may be."""
        return self.unacknowledged(now) >= self._pacing.max_in_flight

    def is_open(self, now: float) -> bool:
        """Whether a frame may be sent now."""
        return self.has_viewers(now) and self.wait_seconds(now) <= 0.0 and not self.is_full(now)

    def sent(self, number: int, now: float, cost: float = 0.0) -> None:
        """Note that a frame was sent, and how long it took to make."""
        self._last_number = number
        self._last_sent = now
        self._interval = self._pacing.frame_interval(cost)
        self._write_off(now)
        for viewer in self._viewers.values():
            if self._is_overdue(viewer, now):
                viewer.patience = self._pacing.patience(2.0 * viewer.patience)
            if viewer.waiting_since is None:
                viewer.waiting_since = now
        self._in_flight.append((number, now))

    def _is_overdue(self, viewer: _Viewer, now: float) -> bool:
        """Whether a frame that the viewer has not acknowledged was waited for long enough."""
        return any(
            number > viewer.acknowledged and now - then >= viewer.patience for number, then in self._in_flight
        )

    def _write_off(self, now: float) -> None:
        done = min((viewer.acknowledged for viewer in self._viewers.values()), default=self._last_number)
        while self._in_flight and (
            self._in_flight[0][0] <= done or now - self._in_flight[0][1] >= self._pacing.longest_patience
        ):
            self._in_flight.popleft()
