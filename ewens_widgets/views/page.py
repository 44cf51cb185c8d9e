"""Dashboards and the pages that show them, living or still.

`Page` is the link between the pages that show the widgets and the player: an invisible widget. Each page that
displays it acknowledges the frames it has painted; the player sends no more than the slowest page can take,
and nothing where there is no page. It also carries downloads, names the parts of the page for screen readers
and lets them have their arrow keys.

`Dashboard` puts panels on a page. It ends with the invisible widget, which therefore is told of a frame after
everything else; and where no widget can run (nbconvert, the preview of a code host) a PNG of the current
state stands in for it.
"""

import base64
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

import anywidget
from ipywidgets import HBox, VBox, Widget
from traitlets import Bool, Dict, Int

from ewens_widgets.playback import Frame, Player, Tick, Worker
from ewens_widgets.playback.loop import Mailbox
from ewens_widgets.views.base import Panel, assign

__all__ = ["STATUS", "Dashboard", "Page", "Post", "in_columns"]

_HERE = Path(__file__).parent
_logger = logging.getLogger(__name__)

Post = Callable[[Callable[[], None]], None]
"""Brings a command to the event loop."""

STATUS = {"role": "status", "aria-live": "polite"}
"""Attributes of what a screen reader reads out when it changes."""


class Page(anywidget.AnyWidget):
    """Acknowledges frames."""

    _esm = _HERE / "page.js"
    _css = _HERE / "page.css"

    frame = Int(0).tag(sync=True)
    """Number of the last frame; set after everything else of that frame has been sent."""

    is_running = Bool(False).tag(sync=True)
    """Whether the chain was running then; only while it runs a page that hears nothing speaks up."""

    names = Dict().tag(sync=True)
    """Attributes for screen readers, by CSS selector."""

    def __init__(self) -> None:
        super().__init__()
        self._engine: Player | Worker | None = None
        self.on_msg(self._on_message)

    def attach_to(self, engine: Player | Worker) -> None:
        """Acknowledge the frames of a player or worker; to be called after its other views were attached."""
        self._engine = engine
        engine.attach(self)

    def show(self, frame: Frame | Tick) -> None:
        """Ask the pages to acknowledge a frame."""
        assign(self, frame=frame.number, is_running=frame.status.is_running)

    def download(self, name: str, content: bytes, media_type: str) -> None:
        """Have the visible pages save a file."""
        self.send({"kind": "download", "name": name, "type": media_type}, buffers=[content])

    def _on_message(self, _: object, content: Any, buffers: object) -> None:  # noqa: ANN401, ARG002 - from a page
        if self._engine is None or not isinstance(content, dict):
            return
        kind, viewer = content.get("kind"), str(content.get("viewer", "viewer"))
        number = content.get("number")
        if kind == "painted" and isinstance(number, int):
            self._engine.acknowledge(number, viewer)
        elif kind == "here":
            self._engine.viewer_attached(viewer)
        elif kind == "gone":
            self._engine.viewer_left(viewer)


class Dashboard(VBox):
    """Base of the explorer and of the labs: panels on a page, and a still picture where no widget can run.

    A subclass checks what it was given, calls this constructor, makes its widgets (whose handlers `post`),
    shows them by `lay_out` and has its engine's frames shown by `attach`.

    Parameters
    ----------
    engine
        Plays the chain or works in the background; it is closed along with the dashboard. None where all is
        done at once.
    post
        Brings a command to the event loop; by default a mailbox of its own does it.
    """

    css_class: ClassVar[str] = ""
    """Classes of its element, with spaces between them."""

    stylesheet: ClassVar[Path | None] = None
    """File with further styles."""

    def __init__(self, engine: Player | Worker | None = None, post: Post | None = None) -> None:
        super().__init__()
        # The first class brings the common styles along.
        for name in ("ew-explorer", *self.css_class.split()):
            self.add_class(name)
        self._engine = engine
        self.post: Post = Mailbox().post if post is None else post
        self.page = _page_class(self.stylesheet)()

    def lay_out(self, *children: Widget, names: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """Show these widgets from top to bottom, and the invisible page after them.

        Parameters
        ----------
        children
            The widgets.
        names
            Attributes for screen readers, by CSS selector, besides those of the panels and of the status.
        """
        groups = {
            f".{panel.css_class}": {"role": "group", "aria-label": panel.description} for panel in self.panels
        }
        # ipywidgets has no trait for these attributes; the page sets them on the elements.
        self.page.names = {**groups, ".ew-status": STATUS, **(names or {})}
        self.children = (*children, self.page)

    def attach(self, *views: Any) -> None:  # noqa: ANN401 - whatever the engine can show its frames to
        """Have the engine's frames shown by these views, in this order.

        The page comes last: what it acknowledges has been sent by all others.
        """
        if self._engine is None:
            raise ValueError(f"{type(self).__name__} has no engine, and so there are no frames to show.")
        for view in views:
            self._engine.attach(view)
        self.page.attach_to(self._engine)

    @property
    def panels(self) -> tuple[Panel, ...]:
        """Its panels: groups for a screen reader, and what the still picture shows."""
        raise NotImplementedError

    def caption(self) -> str:
        """Heading of the still picture: what is on display, in words."""
        raise NotImplementedError

    def picture(self, kind: str = "png") -> bytes:
        """Static picture of what is on display."""
        if kind != "png":
            raise ValueError(f"the picture of all panels is a PNG; got {kind!r}")
        if self._engine is not None:
            self._engine.refresh()  # nobody may have looked at them lately
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
        return {**bundle, "text/plain": repr(self), "image/png": base64.b64encode(picture).decode()}


@cache
def _page_class(stylesheet: Path | None) -> type[Page]:
    """Class of the pages that have some more styles; browsers keep one set of styles for each class."""
    if stylesheet is None:
        return Page
    styles = (_HERE / "page.css").read_text("utf-8") + stylesheet.read_text("utf-8")
    return type(f"Page_{stylesheet.stem}", (Page,), {"_css": styles})


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


def _overview(panels: Sequence[Panel], title: str) -> bytes:
    """All panels in one PNG."""
    from matplotlib.figure import Figure

    # Fixed margins: finding good ones takes longer than drawing, and every display of a cell waits for this.
    figure = Figure(figsize=(12.0, 7.0))
    figure.subplots_adjust(left=0.06, right=0.94, bottom=0.08, top=0.88, wspace=0.35, hspace=0.35)
    figure.suptitle(title.replace("$", r"\$"), fontsize=11)
    columns = -(-len(panels) // 2)
    all_axes = figure.subplots(2, columns, squeeze=False).ravel()
    for axes, panel in zip(all_axes, panels, strict=False):
        axes.set_title(panel.title, fontsize=10)
        panel.paint(axes)
    for axes in all_axes[len(panels) :]:
        axes.set_axis_off()
    content = BytesIO()
    figure.savefig(content, format="png", dpi=72)
    return content.getvalue()
