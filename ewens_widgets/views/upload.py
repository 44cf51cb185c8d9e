"""A button that sends a file to the kernel."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anywidget
from traitlets import Int, Unicode

from ewens_widgets.tables import LARGEST_FILE

__all__ = ["Upload"]


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
