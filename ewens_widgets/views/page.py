"""The link between the pages that show the widgets and the player.

An invisible widget. Each page that displays it acknowledges the frames it has painted; the player sends no
more than the slowest page can take, and nothing where there is no page. It also carries downloads.
"""

from pathlib import Path
from typing import Any

import anywidget
from traitlets import Bool, Dict, Int

from ewens_widgets.playback import Frame, Player
from ewens_widgets.playback.worker import Tick, Worker
from ewens_widgets.views.base import assign

__all__ = ["Page"]

_HERE = Path(__file__).parent


class Page(anywidget.AnyWidget):
    """Acknowledges frames.

    Parameters
    ----------
    names
        Attributes for screen readers, by CSS selector.
    """

    _esm = _HERE / "page.js"
    _css = _HERE / "page.css"

    frame = Int(0).tag(sync=True)
    """Number of the last frame; set after everything else of that frame has been sent."""

    is_running = Bool(False).tag(sync=True)
    """Whether the chain was running then; only while it runs a page that hears nothing speaks up."""

    names = Dict().tag(sync=True)
    """Attributes for screen readers, by CSS selector."""

    def __init__(self, names: dict[str, dict[str, str]] | None = None) -> None:
        super().__init__(names=names or {})
        self._player: Player | Worker | None = None
        self.on_msg(self._on_message)

    def attach_to(self, player: Player | Worker) -> None:
        """Acknowledge the frames of a player; to be called after its other views were attached."""
        self._player = player
        player.attach(self)

    def show(self, frame: Frame | Tick) -> None:
        """Ask the pages to acknowledge a frame."""
        assign(self, frame=frame.number, is_running=frame.status.is_running)

    def download(self, name: str, content: bytes, media_type: str) -> None:
        """Have the visible pages save a file."""
        self.send({"kind": "download", "name": name, "type": media_type}, buffers=[content])

    def _on_message(self, _: object, content: Any, buffers: object) -> None:  # noqa: ANN401, ARG002 - from a page
        if self._player is None or not isinstance(content, dict):
            return
        kind, viewer = content.get("kind"), str(content.get("viewer", "viewer"))
        number = content.get("number")
        if kind == "painted" and isinstance(number, int):
            self._player.acknowledge(number, viewer)
        elif kind == "here":
            self._player.viewer_attached(viewer)
        elif kind == "gone":
            self._player.viewer_left(viewer)
