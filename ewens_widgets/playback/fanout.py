"""Hands frames to the views, one after another, and keeps a faulty view from stopping the chain."""

import logging
from collections.abc import Callable

from ewens_widgets.playback.frame import Frame
from ewens_widgets.playback.interfaces import View
from ewens_widgets.playback.status import PlayerStatus

__all__ = ["FanOut", "StatusListener", "ViewErrorHook"]

StatusListener = Callable[[PlayerStatus], None]
ViewErrorHook = Callable[[object, Exception], None]

_logger = logging.getLogger(__name__)


class FanOut:
    """The views and status listeners, in the order in which they came.

    One that raises is detached and reported: to its own ``show_error`` method if it has one, to the error
    hook, and to the log. The others and the chain go on.

    Parameters
    ----------
    on_view_error
        Called with the faulty view or listener and its exception.
    strict
        Let faults raise instead; for tests.
    """

    def __init__(self, on_view_error: ViewErrorHook | None = None, *, strict: bool = False) -> None:
        self._on_view_error = on_view_error
        self._strict = strict
        self._views: list[View] = []
        self._listeners: list[StatusListener] = []

    @property
    def views(self) -> tuple[View, ...]:
        """The attached views in order."""
        return tuple(self._views)

    def attach(self, view: View) -> None:
        """Add a view; attaching it twice changes nothing."""
        if not callable(getattr(view, "show", None)):
            raise TypeError(f"a view needs a method show(frame), got {type(view).__name__}")
        if view not in self._views:
            self._views.append(view)

    def detach(self, view: View) -> None:
        """Remove a view; one that is not attached is ignored."""
        if view in self._views:
            self._views.remove(view)

    def listen(self, listener: StatusListener) -> None:
        """Add a listener to changes of the status."""
        self._listeners.append(listener)

    def unlisten(self, listener: StatusListener) -> None:
        """Remove a listener; an unknown one is ignored."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def clear(self) -> None:
        """Remove all views and listeners."""
        self._views.clear()
        self._listeners.clear()

    def show(self, frame: Frame) -> None:
        """Show a frame to every view."""
        for view in self.views:
            self.show_to(view, frame)

    def show_to(self, view: View, frame: Frame) -> None:
        """Show a frame to one view."""
        try:
            view.show(frame)
        except Exception as error:
            self.detach(view)
            if self._strict:
                raise
            self._report(view, error)

    def tell(self, status: PlayerStatus) -> None:
        """Tell the listeners a new status."""
        for listener in tuple(self._listeners):
            try:
                listener(status)
            except Exception as error:
                self.unlisten(listener)
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
