"""Saving, loading and exporting from the page."""

from collections.abc import Callable
from html import escape
from pathlib import Path

from ipywidgets import HTML, Button, Dropdown, VBox

from ewens_widgets.views.base import assign
from ewens_widgets.views.explorer.data_panel import Upload
from ewens_widgets.views.page import Page

__all__ = ["File", "FilesPanel"]

# What a Jupyter server passes on in one message: larger ones are dropped, or break the connection.
_LARGEST_DOWNLOAD = 2_000_000
_LARGEST_UPLOAD = 8_000_000

File = tuple[str, bytes, str]
"""Name, content and media type."""


class FilesPanel(VBox):
    """A chooser of what to export, and buttons.

    Parameters
    ----------
    makers
        What can be exported: the name that the user reads, and what makes the file.
    page
        Carries the download.
    post
        Brings a command to the event loop.
    on_load
        Called with the content of a saved explorer; raises `ValueError` if it is none.
    """

    def __init__(
        self,
        makers: dict[str, Callable[[], File]],
        page: Page,
        post: Callable[[Callable[[], None]], None],
        on_load: Callable[[bytes], None],
    ) -> None:
        self._makers = makers
        self._page = page
        self._on_load = on_load
        self.chooser = Dropdown(options=list(makers), description="what", tooltip="What to save")
        self.chooser.add_class("ew-export-choice")
        self.button = Button(description="Download", icon="download", tooltip="Save it as a file")
        self.button.add_class("ew-export")
        self.button.on_click(lambda _: post(self._export))
        self.upload = Upload(
            "Load a saved explorer",
            hint="Go on with an explorer that was saved before",
            accept=".ewens",
            on_file=lambda name, content: post(lambda: self._load(name, content)),
            on_too_large=lambda name, _: post(
                lambda: self._say(f"{name[:60]} is too large for the page; use explorer.load(path).")
            ),
            largest=_LARGEST_UPLOAD,
        )
        self.upload.add_class("ew-load")
        self.message = HTML()
        self.message.add_class("ew-file-message")
        super().__init__((self.chooser, self.button, self.upload, self.message))
        self.add_class("ew-files")

    def _export(self) -> None:
        try:
            name, content, media_type = self._makers[self.chooser.value]()
        except (ValueError, OSError) as error:
            self._say(str(error))
            return
        if len(content) <= _LARGEST_DOWNLOAD:
            self._page.download(name, content, media_type)
            self._say(f"{name} ({_size(len(content))})")
        else:
            Path(name).write_bytes(content)
            self._say(f"{name} ({_size(len(content))}) is beside the notebook: too large for the page")

    def _load(self, name: str, content: bytes) -> None:
        try:
            self._on_load(content)
        except ValueError as error:
            self._say(f"{name[:60]}: {error}")
        else:
            self._say(f"loaded {name[:60]}")

    def _say(self, text: str) -> None:
        assign(self.message, value=escape(text))


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(1, round(count / 1e3))} kB"
