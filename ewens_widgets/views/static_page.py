"""Static pictures of several views: one PNG, or a page that needs nothing but itself."""

from collections.abc import Mapping, Sequence
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Protocol

from ewens_widgets.views.base import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Painted", "overview_png", "static_page"]

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
