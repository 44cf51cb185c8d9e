"""What the labs have in common: panels with a heading, the link to the page, the picture for paper."""

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipywidgets import HTML, HBox, VBox, Widget

from ewens_widgets.playback import Worker
from ewens_widgets.views.page import Page, Painted, StillPicture, overview_png

__all__ = ["Lab", "LabPanel", "chip", "note"]

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_HERE = Path(__file__).parent


class _LabPage(Page):
    """The explorer's link to the page, with some more styles."""

    _css: Any = (_HERE / "page.css").read_text("utf-8") + (_HERE / "lab.css").read_text("utf-8")


class LabPanel(VBox):
    """A picture with a heading, in the style of the explorer's views.

    Parameters
    ----------
    children
        What is below the heading.
    tools
        What is beside it.
    """

    title: str = ""
    """Heading."""

    css_class: str = "ew-view"
    """Class of its element, for styles and for tests in a browser."""

    description: str = ""
    """What a screen reader says."""

    def __init__(self, children: tuple[Widget, ...], tools: tuple[Widget, ...] = ()) -> None:
        header = HBox((HTML(f"<b>{escape(self.title)}</b>"), *tools))
        header.add_class("ew-heading")
        super().__init__((header, *children))
        self.add_class("ew-view")
        self.add_class(self.css_class)

    def paint(self, axes: "Axes") -> None:
        """Draw what is on display with matplotlib, for static pictures."""
        raise NotImplementedError


class Lab(StillPicture, VBox):
    """A teaching widget: panels, the link to the page, and a static picture where no widget can be shown.

    Parameters
    ----------
    css_class
        Class of its element.
    children
        What it shows.
    worker
        Works for it in the background.
    names
        Attributes for screen readers, by CSS selector.
    """

    def __init__(
        self,
        css_class: str,
        children: tuple[Widget, ...],
        worker: Worker,
        names: dict[str, dict[str, str]],
    ) -> None:
        self.page = _LabPage(names)
        super().__init__((*children, self.page))
        # The first class brings the explorer's styles along.
        for name in ("ew-explorer", "ew-lab", css_class):
            self.add_class(name)
        self._worker = worker

    @property
    def panels(self) -> tuple[Painted, ...]:
        """What the static picture shows."""
        raise NotImplementedError

    def status_line(self) -> str:
        """What is on display, in words."""
        raise NotImplementedError

    def picture(self, kind: str = "png") -> bytes:
        """Static picture of what is on display."""
        if kind != "png":
            raise ValueError(f"the picture of a lab is a PNG; got {kind!r}")
        self._worker.refresh()
        return overview_png(self.panels, self.status_line())

    def close(self) -> None:
        """Stop working and close the page."""
        if hasattr(self, "_worker"):  # a widget that could not be made is closed too
            self._worker.close()
        super().close()


def note(css_class: str = "ew-note", text: str = "") -> HTML:
    """A line of text."""
    line = HTML(text)
    line.add_class(css_class)
    return line


def chip(colour: str, text: str, *, is_line: bool = False) -> str:
    """An entry of a legend."""
    kind = "ew-swatch ew-line" if is_line else "ew-swatch"
    return (
        f'<span class="ew-chip"><span class="{kind}" style="background:{colour}"></span>{escape(text)}</span>'
    )
