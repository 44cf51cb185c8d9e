"""Choosing data: one of the data sets that come along, or a file of one's own.

A file is read by the browser and sent as bytes; one that is too large stays where it is. Tables are parsed
without running anything (see `tables`). What cannot be used is explained beside the chooser.
"""

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import anywidget
from ipywidgets import HTML, Dropdown, VBox
from traitlets import Int, Unicode

from ewens_widgets.datasets import LOADERS, Dataset
from ewens_widgets.tables import LARGEST_FILE, read_table
from ewens_widgets.views.base import Silence, assign
from ewens_widgets.views.fields import Field

__all__ = ["DataPanel", "Upload"]


class DataPanel(VBox):
    """Chooser of data sets, upload, and a description.

    Parameters
    ----------
    given
        The data set shown at first.
    post
        Brings a command to the event loop.
    on_data
        Called with a data set that was chosen or uploaded; raises `ValueError` if it cannot be used.
    """

    def __init__(
        self,
        given: Dataset,
        post: Callable[[Callable[[], None]], None],
        on_data: Callable[[Dataset], None],
    ) -> None:
        self._post = post
        self._on_data = on_data
        self._extra: dict[str, Dataset] = {given.name: given}
        self._silence = Silence()
        self.chooser = Dropdown(description="data", tooltip="Data set to cluster")
        self.field = Field(self.chooser, str, "ew-data")
        self.upload = Upload(
            "Upload a CSV file",
            hint="Numbers, a row an object; a header and a column of known classes are recognised",
            accept=".csv,.tsv,.txt",
            on_file=lambda name, content: post(lambda: self._read(name, content)),
            on_too_large=lambda name, size: post(lambda: self._refuse(name, size)),
        )
        self.upload.add_class("ew-upload")
        self.about = HTML()
        self.about.add_class("ew-about")
        super().__init__((self.field, self.upload, self.about))
        self.show(given)
        self.chooser.observe(self._on_chosen, "value")

    def show(self, dataset: Dataset) -> None:
        """Show a data set as the chosen one; nobody is told."""
        known = next((name for name, data in self._extra.items() if data is dataset), None)
        name = dataset.name if known is None else known
        self._extra[name] = dataset
        names = [*self._extra, *(other for other in LOADERS if other not in self._extra)]
        with self._silence:
            assign(self.chooser, options=names, value=name)
        classes = "" if dataset.labels is None else f", {len(set(dataset.labels.tolist()))} known classes"
        shape = f"{dataset.n_objects} objects × {dataset.n_features} features{classes}."
        assign(self.about, value=escape(f"{shape} {_first_sentences(dataset.description)}"))
        self.field.problem = ""

    def _on_chosen(self, change: dict[str, Any]) -> None:
        if not self._silence:
            self._post(lambda: self._choose(str(change["new"])))

    def _choose(self, name: str) -> None:
        self._offer(lambda: self._extra[name] if name in self._extra else LOADERS[name](), name)

    def _read(self, name: str, content: bytes) -> None:
        self._offer(lambda: read_table(content, name), None)

    def _refuse(self, name: str, size: int) -> None:
        self.field.problem = (
            f"{name[:60]} has {size / 1e6:.1f} MB; at most {LARGEST_FILE / 1e6:.0f} MB are read. "
            "Keep fewer rows or columns."
        )

    def _offer(self, load: Callable[[], Dataset], name: str | None) -> None:
        """Hand over a data set; if it cannot be used, say why, and leave everything as it is."""
        try:
            dataset = load()
            self._on_data(dataset)
        except (ValueError, TypeError, OSError) as error:
            self.field.problem = str(error)
            return
        if name is not None:
            self._extra[name] = dataset
        self.show(dataset)


def _first_sentences(text: str, most: int = 160) -> str:
    """The beginning of a description, up to the end of a sentence where possible."""
    if len(text) <= most:
        return text
    end = text.rfind(". ", 0, most)
    return text[: end + 1] if end > 0 else text[: most - 1] + "…"


class Upload(anywidget.AnyWidget):
    """Sends one file at a time; one that is too large stays where it is.

    Parameters
    ----------
    label, hint
        What the button says.
    accept
        Extensions of the files that are offered.
    on_file
        Called with the name and the content of a file.
    on_too_large
        Called with the name and the size, in bytes, of a file that was not sent.
    largest
        Size of the largest file that is sent, in bytes.
    """

    _esm = Path(__file__).parent / "upload.js"

    label = Unicode().tag(sync=True)
    """Text of the button."""

    hint = Unicode().tag(sync=True)
    """Text that appears when the mouse rests on the button."""

    accept = Unicode().tag(sync=True)
    """Extensions of the files that are offered, with commas between them."""

    largest = Int(LARGEST_FILE).tag(sync=True)
    """Size of the largest file that is sent, in bytes."""

    def __init__(
        self,
        label: str,
        *,
        hint: str,
        accept: str,
        on_file: Callable[[str, bytes], None],
        on_too_large: Callable[[str, int], None],
        largest: int = LARGEST_FILE,
    ) -> None:
        super().__init__(label=label, hint=hint, accept=accept, largest=largest)
        self._on_file = on_file
        self._on_too_large = on_too_large
        self.on_msg(self._on_message)

    def _on_message(self, _: object, content: Any, buffers: Any) -> None:  # noqa: ANN401 - from a page
        if not isinstance(content, dict):
            return
        name = str(content.get("name", ""))
        if content.get("kind") == "file" and buffers:
            self._on_file(name, bytes(buffers[0]))
        elif content.get("kind") == "too-large" and isinstance(content.get("size"), int):
            self._on_too_large(name, content["size"])
