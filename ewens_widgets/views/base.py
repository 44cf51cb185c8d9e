"""What all panels and views have in common.

A panel is a picture with a heading, which can also be painted for paper. A view is a panel that shows the
frames of a chain. It makes its marks once. A frame only assigns traits, each mark inside its own
``hold_sync``, so that at most one message per mark is sent. A view that raises shows the error in its own box
and is switched off until it is prepared for other data.

The number of widgets and messages decides how soon a dashboard appears. So widgets get their classes when
they are made (`add_class` would send one message per class), and layouts and styles are shared: never
change a trait of a shared layout; `show_if` hides a widget by giving it another one.
"""

import logging
import time
from collections.abc import Callable, Mapping
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ipywidgets import HTML, Button, HBox, Layout, VBox, Widget

from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.views.shared_state import SharedState

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ewens_widgets.views.figures import Canvas

_logger = logging.getLogger(__name__)

W = TypeVar("W", bound=Widget)

Post = Callable[[Callable[[], None]], None]
"""Brings a command to the event loop."""

_cached: dict[tuple[object, ...], Widget] = {}


def assign(widget: Widget, **traits: Any) -> None:  # noqa: ANN401 - traits are of any type
    """Assign traits of one widget; what has changed is sent as one message."""
    with widget.hold_sync():
        for name, value in traits.items():
            setattr(widget, name, value)


def cached_widget(kind: type[W], **traits: Any) -> W:  # noqa: ANN401 - traits are of any type
    """Return the shared widget of a kind with these traits, such as a layout; never change its traits."""
    key = (kind, *sorted(traits.items()))
    known = _cached.get(key)
    if known is None or known.comm is None:  # it was closed
        _cached[key] = known = kind(**traits)
    return known


def look(css_class: str = "", **layout: str) -> dict[str, Any]:
    """Traits of a widget that has these classes from the start, and a shared layout."""
    layout.setdefault("display", "")
    return {"layout": cached_widget(Layout, **layout), "_dom_classes": tuple(css_class.split())}


def make(kind: type[W], css_class: str = "", *arguments: object, **traits: Any) -> W:  # noqa: ANN401 - any
    """Make a control with these classes (separated by spaces), and with a shared layout and style.

    Arguments and traits are those of the widget; layout and style are given as dictionaries.
    """
    style = kind.class_traits().get("style")
    if style is not None:
        traits["style"] = cached_widget(style.klass, **traits.get("style", {}))
    return kind(*arguments, **look(css_class, **traits.pop("layout", {})), **traits)


def show_if(widget: Widget, is_wanted: bool) -> None:
    """Show or hide a widget whose layout has no traits of its own."""
    assign(widget, layout=cached_widget(Layout, display="" if is_wanted else "none"))


class Silence:
    """Tells changes by the program from changes by the user: handlers of a control are called for both.

    The program sets values inside ``with self._silence:``, and a handler begins with ``if self._silence:
    return``. `commands` writes that for controls whose handler is a command.
    """

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    def __bool__(self) -> bool:
        return self._depth > 0

    def commands(self, post: Post, of: Mapping[Widget, Callable[[], None]]) -> None:
        """Post the command of a control whenever the user changes its value."""
        for control, command in of.items():
            control.observe(lambda _, command=command: None if self else post(command), "value")


def note(css_class: str = "ew-note", text: str = "", *, is_shown: bool = True) -> HTML:
    """Make a line of text."""
    return make(HTML, css_class, text, layout={} if is_shown else {"display": "none"})


def button(name: str, css_class: str, tooltip: str, on_click: Callable[[], None], **traits: object) -> Button:
    """Make a button that calls a function."""
    made = make(Button, css_class, description=name, tooltip=tooltip, **traits)
    made.on_click(lambda _: on_click())
    return made


def chip(colour: str, text: str, *, shape: str = "patch") -> str:
    """Entry of a legend: a patch, a line or a marker of a colour, and what it stands for."""
    swatch = f'<span class="ew-swatch ew-{shape}" style="background:{colour}"></span>'
    return f'<span class="ew-chip">{swatch}{escape(text)}</span>'


class Panel(VBox):
    """A picture with a heading.

    Parameters
    ----------
    children
        What is below the heading.
    tools
        What is next to it, such as choosers.
    traits
        Traits of the box, such as ``layout``. An unknown name raises `TypeError`.
    """

    title: str = ""
    """Heading."""

    css_class: str = "ew-view"
    """Class of its element, for styles and for tests in a browser."""

    description: str = ""
    """What a screen reader says."""

    about: str = ""
    """Two or three sentences that open at the question mark."""

    figure: "Canvas"
    """Its figure, if it has one."""

    def __init__(
        self, children: tuple[Widget, ...], tools: tuple[Widget, ...] = (), **traits: object
    ) -> None:
        unknown = sorted(set(traits) - set(type(self).class_trait_names()))
        if unknown:
            raise TypeError(f"{type(self).__name__} has no keyword {', '.join(map(repr, unknown))}")
        header = HBox((make(HTML, "", self._heading()), *tools), **look("ew-heading"))
        super().__init__((header, *children), _dom_classes=("ew-view", self.css_class), **traits)

    def darken(self, is_dark: bool) -> None:
        """Follow the theme of the page, if there is anything that its stylesheet cannot do."""

    def enlarge(self, scale: float) -> None:
        """Follow the size of the page's type, 1 being the default, likewise."""

    def _heading(self) -> str:
        """Heading, a question mark that explains, and a button that enlarges, which page.js handles."""
        title = escape(self.title)
        larger = (
            f'<button type="button" class="ew-enlarge" aria-label="Enlarge {title}" aria-pressed="false" '
            'title="Enlarge">⤢</button>'
        )
        return f"<b>{title}</b>{self.explanation()}{larger}"

    def explanation(self) -> str:
        """Return a question mark that opens `about`; an empty text if there is none."""
        if not self.about:
            return ""
        return (
            f'<details class="ew-explain"><summary aria-label="What is {escape(self.title.rstrip("?"))}?" '
            f'title="What is this?">?</summary><div>{escape(self.about)}</div></details>'
        )

    def paint(self, axes: "Axes") -> None:
        """Draw what is on display with matplotlib, for static pictures: by default its `figure`."""
        self.figure.paint(axes)


class View(Panel):
    """A picture of the chain.

    Parameters
    ----------
    shared
        State that it shares with other views; by default a new one.
    traits
        Traits of the box, such as ``layout``. An unknown name raises `TypeError`.
    """

    rest: ClassVar[float] = 0.0
    """Least time between two pictures while the chain runs, in seconds; the last one is always drawn."""

    def __init__(self, shared: SharedState | None = None, **traits: object) -> None:
        self.shared = SharedState() if shared is None else shared
        self.frame: Frame | None = None  # on display
        self._due = 0.0
        self._failed = False
        self.is_seen = True  # otherwise it is drawn only while the chain rests
        self._error = note("ew-view-error", is_shown=False)
        self.tools: tuple[Widget, ...] = ()
        # Marks are made before the box: they depend on the shared state alone, and the box is sent whole.
        body = self.build()
        super().__init__((*body, self._error), self.tools, **traits)
        self.shared.observe(self.redraw)

    def build(self) -> tuple[Widget, ...]:
        """Make the marks; return the children below the heading. Put choosers next to it into `tools`."""
        raise NotImplementedError

    def prepare(self, dataset: Dataset, posterior: Posterior) -> None:
        """Turn to other data or another model."""
        self.frame = None
        self._due = 0.0
        self._failed = False
        assign(self._error, value="")
        show_if(self._error, False)
        self.adapt(dataset, posterior)

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:
        """Fit the marks to other data or another model."""
        raise NotImplementedError

    def draw(self, frame: Frame) -> None:
        """Assign the marks' traits."""
        raise NotImplementedError

    def show(self, frame: Frame) -> None:
        """Show a frame."""
        if self._failed:
            return
        self.frame = frame
        now = time.perf_counter()
        # A running chain sends the next frame soon; one that rests may send none.
        if frame.status.is_running and (now < self._due or not self.is_seen):
            return
        self.draw(frame)
        self._due = now + self.rest

    def redraw(self) -> None:
        """Draw the last frame again, because something other than the chain has changed."""
        if self.frame is None or self._failed:
            return
        # The shared state calls this, not the player, which would catch the fault.
        try:
            self.draw(self.frame)
        except Exception as error:
            _logger.warning("%s raised and is switched off", type(self).__name__, exc_info=error)
            self.show_error(error)

    def show_error(self, error: Exception) -> None:
        """Show why this view is switched off."""
        self._failed = True
        reason = f"{escape(type(error).__name__)}: {escape(str(error))}"
        assign(
            self._error,
            value=f"<b>This view is switched off</b> ({reason}). "
            "The chain continues. The view returns when you change data or settings.",
        )
        show_if(self._error, True)

    def picture(self, kind: str = "png", size: tuple[float, float] = (5.0, 4.0), dpi: int = 120) -> bytes:
        """Static picture of what is on display: ``"png"``, ``"svg"`` or ``"pdf"``."""
        from matplotlib.figure import Figure

        # Without a date, the same picture is the same file.
        undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
        if kind not in undated:
            raise ValueError(f"kind must be one of {', '.join(undated)}; got {kind!r}")
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        axes.set_title(self.title)
        self.paint(axes)
        content = BytesIO()
        figure.savefig(content, format=kind, dpi=dpi, metadata=undated[kind])
        return content.getvalue()
