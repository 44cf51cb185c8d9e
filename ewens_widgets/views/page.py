"""Dashboards and the pages that show them, living or still.

`Page` is an invisible widget, the link between the player and the pages that show the widgets. Each page
acknowledges the frames that it has painted. The player sends no more than the slowest page can take, and
nothing without a page. `Page` also carries downloads and names the parts of the page for screen readers.

`Dashboard` puts panels on a page and fits its figures to the room that a page has. It ends with the invisible
widget, which therefore gets a frame after everything else. Where no widget can run (nbconvert, the preview of
a code host) a PNG of the current state replaces it.
"""

import base64
import logging
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import metadata
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

import anywidget
from ipywidgets import HBox, VBox, Widget
from traitlets import Bool, Dict, Int

from ewens_widgets.playback import Frame, Player, Tick, Worker
from ewens_widgets.playback.loop import Mailbox
from ewens_widgets.views.base import Panel, Post, View, assign, look
from ewens_widgets.views.figures import Canvas

_HERE = Path(__file__).parent
_logger = logging.getLogger(__name__)

# Bytes of a file in one message: a server drops messages beyond a million bytes per second.
_PART = 512_000

STATUS = {"role": "status", "aria-live": "polite"}
"""Attributes of what a screen reader reads out when it changes."""


@dataclass(frozen=True)
class Room:
    """What a page has room for."""

    scale: float  # size of its type, 1 being the default
    sizes: Mapping[str, tuple[float, float]]  # of each figure in pixels, by the class of its element
    is_dark: bool = False

    @classmethod
    def of_message(cls, content: Mapping[str, Any]) -> "Room | None":
        """Read a page's message; None for one that makes no sense."""
        try:
            scale = float(content["scale"])
            sizes = {str(name): (float(w), float(h)) for name, (w, h) in content["sizes"].items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        return cls(scale, sizes, content.get("dark") is True) if 0.5 <= scale <= 4.0 else None


class Page(anywidget.AnyWidget):
    """Acknowledges frames, and reports what a page has room for and where its mouse rests.

    Parameters
    ----------
    on_room
        Called when a page has a new layout, on the thread of the message: with what it has room for, and with
        a function to be called when all that follows from this has been sent.
    on_point
        Called when the mouse rests on a figure, or has left it: with the viewer, the class of the figure and
        the pixel in it. `tip` answers.
    """

    _esm = _HERE / "page.js"
    _css = _HERE / "page.css"

    frame = Int(0).tag(sync=True)
    """Number of the last frame; set after everything else of that frame has been sent."""

    is_running = Bool(False).tag(sync=True)
    """Whether the chain was running then; only while it runs does a page without frames report itself."""

    names = Dict().tag(sync=True)
    """Attributes for screen readers, by CSS selector."""

    announces = Bool(False).tag(sync=True)
    """Whether a page reports that it is first seen; `on_seen` is then called, on the message's thread."""

    on_seen: Callable[[], None] | None = None

    def __init__(
        self,
        on_room: Callable[["Room", Callable[[], None]], None] | None = None,
        on_point: Callable[[str, str, tuple[float, float] | None], None] | None = None,
    ) -> None:
        super().__init__(**look())
        self._engine: Player | Worker | None = None
        self._on_room = on_room
        self._on_point = on_point
        self._file = "", b"", ""
        self.on_msg(self._on_message)

    def attach_to(self, engine: Player | Worker) -> None:
        """Acknowledge the frames of a player or worker; to be called after its other views were attached."""
        self._engine = engine
        engine.attach(self)

    def show(self, frame: Frame | Tick) -> None:
        """Ask the pages to acknowledge a frame."""
        assign(self, frame=frame.number, is_running=frame.status.is_running)

    def tip(self, viewer: str, text: str) -> None:
        """Have a page show a text beside its mouse; an empty one: nothing."""
        self.send({"kind": "tip", "viewer": viewer, "text": text})

    def copy(self, text: str) -> None:
        """Have the visible pages put a text on the clipboard."""
        self.send({"kind": "copy", "text": text})

    def download(self, name: str, content: bytes, media_type: str) -> None:
        """Have the visible pages save a file; they ask for further parts of a large one."""
        self._file = name, content, media_type
        self._send_part(0)

    def _send_part(self, start: int) -> None:
        name, content, media_type = self._file
        message = {"kind": "download", "name": name, "type": media_type, "start": start, "size": len(content)}
        self.send(message, buffers=[content[start : start + _PART]])

    def _on_message(self, _: object, content: Any, buffers: object) -> None:  # noqa: ANN401, ARG002 - from a page
        if not isinstance(content, dict):
            return
        viewer, engine = str(content.get("viewer", "viewer")), self._engine
        match content:
            case {"kind": "room"} if (room := Room.of_message(content)) and self._on_room is not None:
                answer = {"kind": "fitted", "viewer": viewer, "number": content.get("number")}
                self._on_room(room, lambda: self.send(answer))
            case {"kind": "point", "x": int() | float() as x, "y": int() | float() as y} if self._on_point:
                self._on_point(viewer, str(content.get("figure", "")), (float(x), float(y)))
            case {"kind": "point"} if self._on_point is not None:
                self._on_point(viewer, str(content.get("figure", "")), None)
            case {"kind": "more", "start": int(start)} if 0 < start < len(self._file[1]):
                self._send_part(start)
            case {"kind": "seen"} if self.on_seen is not None:
                self.on_seen()
            case {"kind": "painted", "number": int(number)} if engine is not None:
                engine.acknowledge(number, viewer)
            case {"kind": "here"} if engine is not None:
                engine.viewer_attached(viewer)
            case {"kind": "gone"} if engine is not None:
                engine.viewer_left(viewer)


class Dashboard(VBox):
    """Base of the explorer and of the labs: panels on a page, and a still picture where no widget can run.

    A subclass checks its arguments, calls this constructor, makes its widgets (whose handlers `post`), shows
    them by `lay_out` and has its engine's frames shown by `attach`.

    Parameters
    ----------
    engine
        Plays the chain or works in the background, and is closed with the dashboard. None: all is done at
        once.
    post
        Brings a command to the event loop; by default a mailbox of its own does it.
    """

    css_class: ClassVar[str] = ""
    """Classes of its element, with spaces between them."""

    def __init__(self, engine: Player | Worker | None = None, post: Post | None = None) -> None:
        # The first class brings the common styles along.
        super().__init__(_dom_classes=("ew-explorer", *self.css_class.split()))
        self._engine = engine
        self.post: Post = Mailbox().post if post is None else post
        self._pointed: Canvas | None = None
        self.page = Page(
            lambda room, answer: self.post(lambda: self._make_room(room, answer)),
            lambda *where: self.post(lambda: self.point(*where)),
        )

    def open(self) -> None:
        """Send it to pages once it has children: a page that connects earlier would keep it empty."""
        if self.children:
            super().open()

    def lay_out(self, *children: Widget, names: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """Show these widgets from top to bottom, and the invisible page after them.

        `names` are attributes for screen readers, by CSS selector, in addition to those of panels and status.
        """
        groups = {
            f".{panel.css_class}": {"role": "group", "aria-label": panel.description} for panel in self.panels
        }
        # ipywidgets has no trait for these attributes; the page sets them on the elements.
        self.page.names = {**groups, ".ew-status": STATUS, **(names or {})}
        self.children = (*children, self.page)
        self.open()

    def fit(self, room: Room) -> None:
        """Follow the page: margins grow with its type, and units are equally long in both directions.

        Where several pages show the same widget, the one that was laid out last decides.
        """
        for canvas in _canvases(self):
            canvas.fit(room.scale, room.sizes.get(canvas.css_class))
        for panel in self.panels:
            panel.darken(room.is_dark)
            panel.enlarge(room.scale)

    def _make_room(self, room: Room, answer: Callable[[], None]) -> None:
        self.fit(room)
        answer()

    def point(self, viewer: str, figure: str, pixel: tuple[float, float] | None) -> None:
        """Answer a page what is under its mouse: at a pixel of a figure (None: it has left), by its class."""
        canvas = next((one for one in _canvases(self) if one.css_class == figure), None)
        if self._pointed is not None and self._pointed is not canvas:
            self._pointed.point(None)
        self._pointed = canvas
        if canvas is not None:
            self.page.tip(viewer, canvas.point(pixel))

    def attach(self, *views: Any) -> None:  # noqa: ANN401 - whatever the engine can show its frames to
        """Have the engine's frames shown by these views in this order, and then by the page."""
        if self._engine is None:
            raise ValueError(f"{type(self).__name__} has no engine, and so there are no frames to show.")
        for view in views:
            self._engine.attach(view)
        self.page.attach_to(self._engine)

    views: dict[str, View]
    """Its views by name, if it has some."""

    @property
    def panels(self) -> tuple[Panel, ...]:
        """Its panels: groups for a screen reader, and what the still picture shows."""
        return tuple(self.views.values())

    def caption(self) -> str:
        """Heading of the still picture: what is on display, in words."""
        raise NotImplementedError

    def picture(self, kind: str = "png") -> bytes:
        """Static picture of what is on display."""
        if kind != "png":
            raise ValueError(f"the picture of all panels is a PNG; got {kind!r}")
        if self._engine is not None:
            self._engine.refresh()  # without a viewer, views may be out of date
        for panel in self.panels:
            if isinstance(panel, View):
                panel.redraw()  # some rest between two pictures while the chain runs
        return _overview(self.panels, self.caption())

    def close(self) -> None:
        """Stop what is going on and close the page."""
        engine = getattr(self, "_engine", None)  # a widget that could not be made is closed too
        if engine is not None:
            engine.close()
        super().close()

    def _repr_mimebundle_(self, **keywords: Any) -> dict[str, Any]:  # noqa: ANN401 - passed on
        bundle: dict[str, Any] = super()._repr_mimebundle_(**keywords)
        try:
            picture = self.picture()
        except Exception:
            # A page that can run widgets must not suffer because a static picture cannot be made.
            _logger.warning("no static picture of %s", type(self).__name__, exc_info=True)
            return bundle
        shown = base64.b64encode(picture).decode()
        if front_end := next((name for it, name in _WITHOUT_WIDGETS.items() if it in sys.modules), ""):
            words = f"{front_end} does not show live widgets of this kind. {self.elsewhere()}"
            html = f'<p>{words}</p><img alt="{escape(self.caption())}" src="data:image/png;base64,{shown}">'
            return {"text/plain": f"{self!r}\n{words}", "text/html": html}
        return {**bundle, "text/plain": repr(self), "image/png": shown}

    def elsewhere(self) -> str:
        """Say where it can be seen alive."""
        return f'Use the <a href="{live_address()}">site that runs in your browser</a>, or JupyterLab.'


# Modules that only these front ends have loaded; they show no layouts of ipywidgets 8, or no bqplot.
_WITHOUT_WIDGETS = {"google.colab": "Google Colab", "marimo._runtime": "marimo"}


def live_address(query: str = "") -> str:
    """Address on the site without a server: its first page, or the Explorer in a state."""
    urls = dict(text.split(", ", 1) for text in metadata("ewens-widgets").get_all("Project-URL") or ())
    return urls.get("Try it", "") + (f"explorer.html?{query}" if query else "")


def _canvases(box: Widget) -> Iterator[Canvas]:
    """The figures within a widget."""
    for child in getattr(box, "children", ()):
        if isinstance(child, Canvas):
            yield child
        else:
            yield from _canvases(child)


def in_columns(columns: Mapping[str, Sequence[Widget]], *css_classes: str) -> HBox:
    """Columns from left to right: by its CSS class, what each has from top to bottom."""
    boxes = [VBox(tuple(widgets), **look(css_class)) for css_class, widgets in columns.items()]
    return HBox(tuple(boxes), **look(" ".join(("ew-columns", *css_classes))))


def _overview(panels: Sequence[Panel], title: str) -> bytes:
    """All panels in one PNG."""
    from matplotlib.figure import Figure

    rows = 1 if len(panels) <= 2 else 2
    height = 5.2 if rows == 1 else 7.0
    # Fixed margins: finding good ones takes longer than drawing, and every display of a cell waits for this.
    figure = Figure(figsize=(12.0, height))
    lines = [wrapped for line in title.split("\n") for wrapped in textwrap.wrap(line, 130)]
    top = 0.95 - 0.21 * len(lines) / height
    figure.subplots_adjust(left=0.06, right=0.94, bottom=0.08, top=top, wspace=0.35, hspace=0.35)
    figure.suptitle("\n".join(lines).replace("$", r"\$"), fontsize=11)
    all_axes = figure.subplots(rows, -(-len(panels) // rows), squeeze=False).ravel()
    for axes, panel in zip(all_axes, panels, strict=False):
        axes.set_title(panel.title, fontsize=10)
        panel.paint(axes)
    for axes in all_axes[len(panels) :]:
        axes.set_axis_off()
    content = BytesIO()
    figure.savefig(content, format="png", dpi=72)
    return content.getvalue()
