#!/usr/bin/env python
"""Make stored outputs of notebooks the same from run to run, and readable without a kernel.

    scripts/tidy_outputs.py notebooks/*.ipynb

What a cell printed arrives in pieces that differ from run to run: they are joined. A live widget is stored as
a number that means nothing without the kernel that made it, and JupyterLab would show an error in its place:
it is dropped where the widget has left a still picture. Pictures are reduced to 256 colours, which halves the
notebooks and cannot be seen. The caption below a picture becomes its alternative text.
"""

import base64
import sys
from io import BytesIO
from pathlib import Path

import nbformat
from check_lessons import caption_of
from nbformat import NotebookNode
from PIL import Image

WIDGET = "application/vnd.jupyter.widget-view+json"


def tidied(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Outputs of one cell with pieces of a stream joined, and without widgets that have a picture."""
    joined: list[NotebookNode] = []
    for output in outputs:
        before = joined[-1] if joined else None
        if output.output_type == "stream" and before is not None and before.get("name") == output.name:
            before.text += output.text
            continue
        if "image/png" in output.get("data", {}):
            output.data.pop(WIDGET, None)
            output.data["image/png"] = smaller(output.data["image/png"])
        joined.append(output)
    return joined


def describe(outputs: list[NotebookNode], caption: str | None) -> None:
    """Give the pictures of a cell the caption as their alternative text."""
    for output in outputs:
        if caption and "image/png" in output.get("data", {}):
            output.metadata.setdefault("image/png", {})["alt"] = caption


def smaller(picture: str) -> str:
    """The same picture with at most 256 colours, or the picture itself if that is no larger."""
    reduced = BytesIO()
    image = Image.open(BytesIO(base64.b64decode(picture)))
    image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(reduced, "png", optimize=True)
    return min(picture, base64.b64encode(reduced.getvalue()).decode(), key=len)


def main(paths: list[str]) -> None:
    """Tidy the notebooks in place."""
    for path in map(Path, paths):
        notebook = nbformat.read(path, as_version=4)
        for cell, after in zip(notebook.cells, [*notebook.cells[1:], None], strict=True):
            if cell.cell_type == "code":
                cell.outputs = tidied(cell.outputs)
                describe(cell.outputs, after and caption_of(after))
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main(sys.argv[1:])
