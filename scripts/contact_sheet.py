#!/usr/bin/env python3
"""Write a page with all stored figures of the tutorials: on light, on dark, and in grey, with their captions.

scripts/contact_sheet.py [PAGE]      default: artefacts/figures.html
"""

import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

from check_lessons import NOTEBOOKS, REPOSITORY, caption_of, cells_of

STYLE = """
body { font: 14px sans-serif; margin: 1em } figure { break-inside: avoid; margin: 0 0 1.5em }
div { display: grid; grid-template-columns: repeat(3, 1fr); gap: 4px }
span { padding: 6px } img { max-width: 100%; max-height: 20em }
span:nth-child(2) { background: #111 } span:nth-child(3) img { filter: grayscale(1) }
"""


def figures() -> Iterator[tuple[str, str]]:
    """Caption and picture of each figure, in the order of the lessons."""
    for path in NOTEBOOKS:
        cells = cells_of(path)
        for cell, after in zip(cells, [*cells[1:], {"cell_type": "", "source": ""}], strict=True):
            for output in cell.get("outputs", []):
                if "image/png" in output.get("data", {}):
                    yield (
                        caption_of(after) or f"{path.name}: no caption",
                        "".join(output["data"]["image/png"]),
                    )


def page() -> str:
    """The page as HTML, with the pictures in it."""
    rows = []
    for caption, picture in figures():
        image = f'<span><img src="data:image/png;base64,{picture.strip()}" alt="{escape(caption)}"></span>'
        rows.append(f"<figure><div>{3 * image}</div><figcaption>{escape(caption)}</figcaption></figure>")
    return f'<!doctype html><meta charset="utf-8"><title>Figures</title><style>{STYLE}</style>{"".join(rows)}'


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY / "artefacts" / "figures.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(), encoding="utf-8")
    print(target)
