"""Files that an explorer can make of its current state."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ewens_widgets._version import __version__
from ewens_widgets.analysis.export import labels_csv
from ewens_widgets.views.page import overview_png, static_page

__all__ = ["Exports"]

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
            "overview (PNG)": lambda: (self._name("png"), self.overview(), "image/png"),
        }
        for name in self._explorer.views:
            for kind, media_type in (("png", "image/png"), ("svg", "image/svg+xml")):
                makers[f"{name} ({kind.upper()})"] = self._picture_maker(name, kind, media_type)
        return makers

    def overview(self, kind: str = "png") -> bytes:
        """All views in one picture."""
        if kind != "png":
            raise ValueError(f"the overview is a PNG; {kind!r} is offered for single views")
        self._refresh()
        title = f"{self._explorer.dataset.name} · {self._explorer.status_line()}"
        return overview_png(tuple(self._explorer.views.values()), title)

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
        with TemporaryDirectory() as folder:
            path = Path(folder) / "trace.npz"
            self._explorer.trace.save(path)
            return self._name("npz", "-trace"), path.read_bytes(), "application/octet-stream"

    def _draws(self) -> "File":
        with TemporaryDirectory() as folder:
            path = Path(folder) / "draws.csv"
            self._explorer.trace.to_csv(path)
            return self._name("csv", "-draws"), path.read_bytes(), "text/csv"

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
