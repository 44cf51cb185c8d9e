"""The tutorials as pages of the documents, with their stored outputs, and a page of all their figures."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

CAPTION = re.compile(r"\*(Figure \d+\.\d+)\. ([^\n]+)\*(?:\n|$)")
# Below `make pages`, the site that runs in the browser lies beside the documents.
RUN = (
    '<p class="run-this-page"><a href="../try/notebooks/index.html?path={name}">'
    "Run this page in your browser</a> (nothing to install)</p>"
)
# The first page is the index of the others.
CONTENTS = "```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{pages}\n```"
GALLERY = """\
# Gallery

Every figure of the tutorials. Click a figure to see the code that draws it.

:::{{container}} gallery
{figures}
:::
"""
FIGURE = "[![{name}](figures/{anchor}.png)](#{anchor})\n{name}. {text}\n"


def write_tutorials(source: Path, target: Path) -> None:
    """Write a page for each notebook, and the gallery.

    Parameters
    ----------
    source
        Folder with the notebooks.
    target
        Folder for the pages, below the documents.
    """
    (target / "figures").mkdir(parents=True, exist_ok=True)
    shown = []
    first, *others = sorted(source.glob("*.ipynb"))
    for path in (first, *others):
        notebook = nbformat.read(path, as_version=4)
        for caption, picture in _figures(notebook):
            name, text = CAPTION.match(caption.source).groups()  # type: ignore[union-attr] - it has matched
            anchor = re.sub(r"\W", "-", name.lower())
            (target / "figures" / f"{anchor}.png").write_bytes(base64.b64decode(picture))
            caption.source = f"({anchor})=\n{caption.source}"
            shown.append(FIGURE.format(name=name, anchor=anchor, text=text))
        for cell in notebook.cells:
            if cell.cell_type == "markdown":  # headings are named as on code hosts, not as in JupyterLab
                cell.source = re.sub(
                    r"(?<=\.ipynb)#[\w-]+(?=\))", lambda found: found[0].lower(), cell.source
                )
            elif cell.metadata.get("jupyter", {}).get("source_hidden"):
                cell.metadata["tags"] = ["hide-input"]
        title, _, rest = notebook.cells[0].source.partition("\n")
        notebook.cells[0].source = f"{title}\n\n{RUN.format(name=path.name)}\n{rest}"
        if path == first:
            contents = CONTENTS.format(pages="\n".join(other.stem for other in others))
            notebook.cells.append(nbformat.v4.new_markdown_cell(contents))
        nbformat.write(notebook, target / path.name)
    (target / "gallery.md").write_text(GALLERY.format(figures="\n".join(shown)), encoding="utf-8")


def _figures(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, str]]:
    """Give each picture that has a caption, after the cell with its caption."""
    for cell, after in zip(notebook.cells, notebook.cells[1:], strict=False):
        for output in cell.get("outputs", ()):
            picture = output.get("data", {}).get("image/png")
            if picture and CAPTION.match(after.source):
                yield after, picture
