"""Files that an explorer can make of its current state, among them a page that needs nothing but itself."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ewens_widgets._version import __version__
from ewens_widgets.analysis.export import draws_csv, labels_csv
from ewens_widgets.views.base import View

__all__ = ["Exports", "static_page"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1100px; padding: 0 1em;
  color: #222; background: #fff; }
figure { display: inline-block; margin: 0 0.5em 1em 0; vertical-align: top; }
svg { max-width: 100%; height: auto; background: #fff; }
table { border-collapse: collapse; } th, td { text-align: left; padding: 0.15em 1em 0.15em 0; }
textarea { width: 100%; height: 8em; font: 12px/1.4 monospace; }
"""

if TYPE_CHECKING:
    from ewens_widgets.views.explorer.explorer import Explorer
    from ewens_widgets.views.explorer.files_panel import File


class Exports:
    """Makes files.

    Parameters
    ----------
    explorer
        Whose state is written.
    """

    def __init__(self, explorer: "Explorer") -> None:
        self._explorer = explorer

    def makers(self) -> dict[str, Callable[[], "File"]]:
        """What can be exported, by the name that the user reads."""
        makers: dict[str, Callable[[], File]] = {
            "labels of the last draw (CSV)": lambda: self._csv("labels", self._explorer.labels),
            "labels of the tree's cut (CSV)": self._cut_labels,
            "all draws (trace file)": self._trace,
            "all draws (CSV)": self._draws,
            "explorer, to load again": lambda: (
                self._name("ewens"),
                self._explorer.packed(),
                "application/zip",
            ),
            "page of the current state (HTML)": self._page,
            "overview (PNG)": lambda: (self._name("png"), self._explorer.picture(), "image/png"),
        }
        for name in self._explorer.views:
            for kind, media_type in (("png", "image/png"), ("svg", "image/svg+xml")):
                makers[f"{name} ({kind.upper()})"] = self._picture_maker(name, kind, media_type)
        return makers

    def _picture_maker(self, name: str, kind: str, media_type: str) -> "Callable[[], File]":
        def make() -> "File":
            self._refresh()
            view = self._explorer.views[name]
            return self._name(kind, f"-{name}"), view.picture(kind), media_type

        return make

    def _refresh(self) -> None:
        """Bring the views up to date: nobody may have looked at them lately."""
        self._explorer.player.refresh()

    def _name(self, extension: str, part: str = "") -> str:
        plain = "".join(letter if letter.isalnum() else "-" for letter in self._explorer.dataset.name)
        return f"{plain.strip('-') or 'data'}{part}.{extension}"

    def _csv(self, part: str, labels: NDArray[np.intp]) -> "File":
        data = self._explorer.dataset
        known = {} if data.labels is None else {"known_class": data.labels}
        return self._name("csv", f"-{part}"), labels_csv(labels, columns=known).encode(), "text/csv"

    def _cut_labels(self) -> "File":
        explorer = self._explorer
        labels = explorer.stage.cut_labels(explorer.player.current_frame())
        if labels is None:
            raise ValueError(explorer.stage.cut_problem or "there is no tree yet; play the chain first")
        return self._csv("cut", labels)

    def _trace(self) -> "File":
        return self._name("npz", "-trace"), self._explorer.trace.to_bytes(), "application/octet-stream"

    def _draws(self) -> "File":
        return self._name("csv", "-draws"), draws_csv(self._explorer.trace).encode(), "text/csv"

    def _page(self) -> "File":
        self._refresh()
        explorer = self._explorer
        settings, data = explorer.settings, explorer.dataset
        facts = {
            "data": f"{data.name}, {data.n_objects} objects × {data.n_features} features",
            "state": explorer.status_line(),
            "model": settings.model,
            "concentration": str(settings.concentration),
            "moves": " + ".join(f"{entry.repeats} × {entry.move.name}" for entry in settings.moves),
            "seed": str(settings.seed),
            "burn-in": str(explorer.player.burn_in),
            "made with": f"ewens_widgets {__version__}",
        }
        files = {"labels of the last draw (CSV)": self._csv("labels", explorer.labels)[1].decode()}
        title = f"Clusters of {explorer.dataset.name}"
        page = static_page(tuple(explorer.views.values()), title, facts, files)
        return self._name("html"), page.encode(), "text/html"


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
