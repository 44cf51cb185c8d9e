"""Saving, loading and exporting: the panel, and the files that it makes of the current state.

The HTML page is self-contained: it works without a network and runs no script. Every file is downloaded by
the browser, in parts if it is large (`Page.download`); nothing is left on the server.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from ipywidgets import Dropdown, VBox
from numpy.typing import NDArray

from ewens_widgets._version import __version__
from ewens_widgets.analysis.export import cite, draws_csv, labels_csv
from ewens_widgets.sampling.trace import Trace
from ewens_widgets.views.base import View, assign, button, look, make, note
from ewens_widgets.views.explorer.data_panel import Upload
from ewens_widgets.views.prior_chooser import prior_name

if TYPE_CHECKING:
    from ewens_widgets.views.explorer.explorer import Explorer

_PICTURES = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}
_DPI = 300  # of exported pictures
_LARGEST_UPLOAD = 8_000_000
_TOO_LARGE = "is too large for an upload; use explorer.load(path) in a cell."

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1100px; padding: 0 1em;
  color: #222; background: #fff; }
figure { display: inline-block; margin: 0 0.5em 1em 0; vertical-align: top; }
svg { max-width: 100%; height: auto; background: #fff; }
table { border-collapse: collapse; } th, td { text-align: left; padding: 0.15em 1em 0.15em 0; }
textarea { width: 100%; height: 8em; font: 12px/1.4 monospace; }
"""

File = tuple[str, bytes, str]
"""Name, content and media type."""


class FilesPanel(VBox):
    """A chooser of what to export of an explorer, and buttons.

    Parameters
    ----------
    explorer
        Its state is written.
    on_load
        Called with the content of a session file; raises `ValueError` for other content.
    """

    def __init__(self, explorer: "Explorer", on_load: Callable[[bytes], None]) -> None:
        self._explorer = explorer
        self._on_load = on_load
        post = explorer.post
        self._makers: dict[str, Callable[[], File]] = {
            "answer by object (CSV)": self._answer,
            "methods paragraph and references (TXT)": self._methods,
            "labels of the last draw (CSV)": lambda: self._csv("labels", explorer.labels),
            "labels of the tree's cut (CSV)": self._cut_labels,
            "all draws (trace file)": self._trace,
            "all draws (CSV)": self._draws,
            "session, to load later (.ewens)": self._session,
            "web page of the current state (HTML)": self._page,
            "all views (PNG)": lambda: (self._name("png"), explorer.picture(), "image/png"),
        }
        for name in explorer.views:
            for kind, media_type in _PICTURES.items():
                self._makers[f"{name} ({kind.upper()})"] = partial(self._picture, name, kind, media_type)
        self.chooser = make(
            Dropdown,
            "ew-export-choice",
            options=list(self._makers),
            description="what",
            tooltip="What to export",
        )
        self.button = button(
            "Download", "ew-export", "Download it as a file", lambda: post(self._export), icon="download"
        )
        tooltip = "Copy Python code that makes this Explorer"
        self.copy = button("Copy Python", "ew-copy", tooltip, lambda: post(self._copy), icon="clipboard")
        self.upload = Upload(
            "Load a session",
            "ew-load",
            hint="Continue a session that was saved as .ewens",
            accept=".ewens",
            on_file=lambda name, content: post(lambda: self._load(name, content)),
            on_too_large=lambda name, _: post(lambda: self._say(f"{name[:60]} {_TOO_LARGE}")),
            largest=_LARGEST_UPLOAD,
        )
        self.message = note("ew-file-message")
        parts = self.chooser, self.button, self.copy, self.upload, self.message
        super().__init__(parts, **look("ew-files"))

    def _export(self) -> None:
        try:
            name, content, media_type = self._makers[self.chooser.value]()
        except (ValueError, OSError) as error:
            # Before the first draw, for example, there is no tree to cut.
            self._say(str(error))
            return
        size = f"{len(content) / 1e6:.1f} MB" if len(content) >= 1e6 else f"{-(-len(content) // 1000)} kB"
        self._explorer.page.download(name, content, media_type)
        self._say(f"{name} ({size})")

    def _copy(self) -> None:
        code = self._explorer.python
        self._explorer.page.copy(code)
        assign(self.message, value=f'<pre class="ew-code">{escape(code)}</pre>')

    def _load(self, name: str, content: bytes) -> None:
        try:
            self._on_load(content)
        except ValueError as error:
            self._say(f"{name[:60]}: {error}")
        else:
            self._say(f"loaded {name[:60]}")

    def _say(self, text: str) -> None:
        assign(self.message, value=escape(text))

    def _name(self, extension: str, part: str = "") -> str:
        plain = "".join(letter if letter.isalnum() else "-" for letter in self._explorer.dataset.name)
        return f"{plain.strip('-') or 'data'}{part}.{extension}"

    def _picture(self, name: str, kind: str, media_type: str) -> File:
        self._explorer.player.refresh()  # without a viewer, the views may be out of date
        return self._name(kind, f"-{name}"), self._explorer.views[name].picture(kind, dpi=_DPI), media_type

    def _session(self) -> File:
        return self._name("ewens"), self._explorer.packed(), "application/zip"

    def _methods(self) -> File:
        trace = self._drawn("methods paragraph")
        text = f"{trace.methods()}\n\n{cite(trace)}\n"
        return self._name("txt", "-methods"), text.encode(), "text/plain"

    def _drawn(self, what: str) -> Trace:
        """The draws, if there are any."""
        if not len(self._explorer.recorder):
            raise ValueError(f"there are no draws yet, and so no {what}; press Play first")
        return self._explorer.trace

    def _answer(self) -> File:
        trace, player = self._drawn("answer"), self._explorer.player
        player.complete()
        frame = player.current_frame()
        is_whole = frame.answer is not None and frame.answer_is_complete
        answer = frame.answer.answer if frame.answer is not None and is_whole else trace.answer()
        second = answer.second_choice
        chances = answer.memberships[np.arange(second.size), second]
        columns: dict[str, NDArray[Any]] = {
            "group": answer.labels,
            "probability": np.round(answer.certainty, 4),
            "second_choice": second,
            "second_probability": np.round(np.where(second >= 0, chances, 0.0), 4),
            "component": trace.point_estimate().labels,
        }
        return self._csv("answer", None, columns)

    def _csv(
        self, part: str, labels: NDArray[np.intp] | None, columns: Mapping[str, NDArray[Any]] | None = None
    ) -> File:
        """A table of the objects: labels, or given columns, and the known classes."""
        data = self._explorer.dataset
        known = {} if data.classes is None else {"known_class": np.array(data.classes, dtype=object)}
        text = labels_csv(labels, names=data.row_names, columns={**(columns or {}), **known})
        return self._name("csv", f"-{part}"), text.encode(), "text/csv"

    def _cut_labels(self) -> File:
        explorer = self._explorer
        labels = explorer.shared.cut_labels(explorer.player.current_frame())
        if labels is None:
            problem = explorer.shared.cut_problem
            raise ValueError(problem or "there is no tree before the first draw; press Play first")
        return self._csv("cut", labels)

    def _trace(self) -> File:
        return self._name("npz", "-trace"), self._explorer.trace.to_bytes(), "application/octet-stream"

    def _draws(self) -> File:
        text = draws_csv(self._explorer.trace, names=self._explorer.dataset.row_names)
        return self._name("csv", "-draws"), text.encode(), "text/csv"

    def _page(self) -> File:
        explorer = self._explorer
        explorer.player.complete()
        settings, data, frame = explorer.settings, explorer.dataset, explorer.player.current_frame()
        facts = {
            "answer": explorer.headline.text(frame),
            "verdict": explorer.headline.aside(frame),
            "data": f"{data.name}, {data.n_objects} objects × {data.n_features} features",
            "state": explorer.status_line(),
            "model": settings.model,
            "shapes": {"common": "one for all clusters", "own": "one per cluster"}[settings.shapes],
            "prior": prior_name(settings.prior),
            "moves": " + ".join(f"{entry.repeats} × {entry.move.name}" for entry in settings.moves),
            "seed": str(settings.seed),
            "burn-in": str(explorer.player.burn_in),
            "made with": f"ewens_widgets {__version__}",
        }
        files = {"labels of the last draw (CSV)": self._csv("labels", explorer.labels)[1].decode()}
        if frame.answer_is_complete:
            answer, methods = self._answer()[1].decode(), self._methods()[1].decode()
            files = {"answer (CSV)": answer, "methods paragraph and references": methods, **files}
        page = _static_page(tuple(explorer.views.values()), f"Clusters of {data.name}", facts, files)
        return self._name("html"), page.encode(), "text/html"


def _static_page(
    views: Sequence[View], title: str, facts: Mapping[str, str], files: Mapping[str, str]
) -> str:
    """A page with the views as vector graphics, facts in a table, and files as text to copy."""
    figures = ""
    for view in views:
        drawing = view.picture("svg").decode()
        label = f'<svg role="img" aria-label="{escape(view.description)}"'
        figures += f"<figure>{drawing[drawing.index('<svg') :].replace('<svg', label, 1)}</figure>"
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
