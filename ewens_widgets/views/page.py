"""The link between the pages that show the widgets and the player.

An invisible widget. Each page that displays it acknowledges the frames it has painted; the player sends no
more than the slowest page can take, and nothing where there is no page. It also carries downloads.

A picture for pages where no widget can run: nbconvert, or the preview of a code host.

Widgets side by side: the columns of the explorer and of the labs, which wrap on a narrow page.

Static pictures of several views: one PNG, or a page that needs nothing but itself.
"""

import base64
import logging
from collections.abc import Mapping, Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anywidget
from ipywidgets import HBox, VBox, Widget
from traitlets import Bool, Dict, Int

from ewens_widgets.playback import Frame, Player
from ewens_widgets.playback.worker import Tick, Worker
from ewens_widgets.views.base import View, assign

__all__ = ["Page", "Painted", "StillPicture", "in_columns", "overview_png", "static_page"]

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


_logger = logging.getLogger(__name__)


class StillPicture:
    """Comes before the widget among the bases of a class; adds a PNG of the current state to its display."""

    def picture(self, kind: str = "png") -> bytes:
        """Static picture of what is on display."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **keywords: Any) -> dict[str, Any]:  # noqa: ANN401 - passed on
        bundle: dict[str, Any] = super()._repr_mimebundle_(**keywords)  # type: ignore[misc]
        try:
            picture = self.picture()
        except Exception:
            # A page that can run widgets must not suffer because a static picture cannot be made.
            _logger.warning("no static picture of %s", type(self).__name__, exc_info=True)
            return bundle
        return {**bundle, "text/plain": repr(self), "image/png": base64.b64encode(picture).decode()}


def in_columns(columns: Mapping[str, Sequence[Widget]]) -> HBox:
    """Columns from left to right: by their CSS class, what each has from top to bottom."""
    boxes = []
    for css_class, widgets in columns.items():
        box = VBox(tuple(widgets))
        box.add_class(css_class)
        boxes.append(box)
    row = HBox(tuple(boxes))
    row.add_class("ew-columns")
    return row


if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1100px; padding: 0 1em;
  color: #222; background: #fff; }
figure { display: inline-block; margin: 0 0.5em 1em 0; vertical-align: top; }
svg { max-width: 100%; height: auto; background: #fff; }
table { border-collapse: collapse; } th, td { text-align: left; padding: 0.15em 1em 0.15em 0; }
textarea { width: 100%; height: 8em; font: 12px/1.4 monospace; }
"""


class Painted(Protocol):
    """Anything that can be drawn with matplotlib."""

    @property
    def title(self) -> str:
        """Heading."""

    def paint(self, axes: "Axes") -> None:
        """Draw what is on display."""


def overview_png(views: Sequence[Painted], title: str) -> bytes:
    """All views in one picture."""
    from matplotlib.figure import Figure

    # Fixed margins: finding good ones takes longer than drawing, and every display of a cell waits for this.
    figure = Figure(figsize=(12.0, 7.0))
    figure.subplots_adjust(left=0.06, right=0.94, bottom=0.08, top=0.88, wspace=0.35, hspace=0.35)
    figure.suptitle(title.replace("$", r"\$"), fontsize=11)
    columns = -(-len(views) // 2)
    all_axes = figure.subplots(2, columns, squeeze=False).ravel()
    for axes, view in zip(all_axes, views, strict=False):
        axes.set_title(view.title, fontsize=10)
        view.paint(axes)
    for axes in all_axes[len(views) :]:
        axes.set_axis_off()
    content = BytesIO()
    figure.savefig(content, format="png", dpi=72)
    return content.getvalue()


def static_page(views: Sequence[View], title: str, facts: Mapping[str, str], files: Mapping[str, str]) -> str:
    """A page with the views as vector graphics, facts in a table, and files as text to copy.

    Everything is inside the page: it works without a network, and it runs no script.
    """
    figures = "".join(f"<figure>{_svg(view)}</figure>" for view in views)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    texts = "".join(
        f"<details><summary>{escape(name)}</summary>"
        f'<textarea readonly aria-label="{escape(name)}">{escape(text)}</textarea></details>'
        for name, text in files.items()
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1><table>{rows}</table>{figures}{texts}</body></html>"
    )


def _svg(view: View) -> str:
    text = view.picture("svg").decode()
    start = text.index("<svg")
    return text[start:].replace("<svg", f'<svg role="img" aria-label="{escape(view.description)}"', 1)
