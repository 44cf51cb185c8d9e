#!/usr/bin/env python3
"""Check the links in the documents and the notebooks.

    scripts/check_links.py                 links to files and headings of this project; needs no network
    scripts/check_links.py --external      links to other sites too
    scripts/check_links.py --site FOLDER   links within built pages

The tests do the first. The second is `make links`, as a site that is down is no fault of a change.
`make pages` does the third.
"""

import argparse
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import unquote

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDERS = (".", "docs", "notebooks", "benchmarks", "ewens_widgets/data")

FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"!?\[[^\]]*\](?:\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\))")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
HTML = re.compile(r"<(?:a|img)\b[^>]*\b(?:href|src)=[\"']([^\"']+)[\"']")
LOADED = re.compile(
    r"<(?:script|img)\b[^>]*\bsrc=[\"'](https?:[^\"']+)|<link\b[^>]*stylesheet[^>]*href=[\"'](https?:[^\"']+)"
)
BARE = re.compile(r"<(https?://[^>\s]+)>")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)

SECONDS = 20
# Stands for an account that is not known yet.
PLACEHOLDER = re.compile(r"^https://([\w.]+/(v2/gh/)?OWNER/|OWNER\.github\.io/)")


@dataclass(frozen=True)
class Document:
    """A page: its Markdown text, and where it lies."""

    path: Path
    text: str

    def links(self) -> Iterator[str]:
        """Addresses that the text links to."""
        outside = FENCE.sub("", self.text)
        for pattern in (INLINE, REFERENCE, HTML, BARE):
            yield from pattern.findall(outside)

    def anchors(self) -> set[str]:
        """Names of the headings, as code hosts and JupyterLab make them from the text."""
        found = set()
        for heading in HEADING.findall(FENCE.sub("", self.text)):
            text = re.sub(r"[`*_]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading))
            found.add(re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-"))
            found.add(heading.replace(" ", "-"))
        return found


def read_document(path: Path) -> Document:
    """Read Markdown, from a file of its own or from the cells of a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return Document(path, text)


def documents(repository: Path = REPOSITORY) -> list[Document]:
    """Everything that a reader may click in."""
    paths = [path for folder in FOLDERS for path in sorted((repository / folder).glob("*"))]
    return [read_document(path) for path in paths if path.suffix in {".md", ".ipynb"}]


def is_external(link: str) -> bool:
    """Whether a link leads to another site."""
    return re.match(r"[a-z][a-z+.-]*:", link) is not None


def fault_of_local_link(document: Document, link: str) -> str | None:
    """What is wrong with a link to a file or heading, if anything."""
    name, _, anchor = unquote(link).partition("#")
    target = (document.path.parent / name).resolve() if name else document.path
    if not target.exists():
        return f"{name} does not exist"
    if anchor and target.suffix in {".md", ".ipynb"} and anchor not in read_document(target).anchors():
        return f"{target.name} has no heading for #{anchor}"
    return None


def fault_of_external_link(link: str) -> str | None:
    """What is wrong with a link to another site, if anything."""
    if not link.startswith(("http://", "https://")):
        return None
    request = urllib.request.Request(link, headers={"User-Agent": "Mozilla/5.0 (link check)"})  # noqa: S310 - http(s)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS):  # noqa: S310 - http(s), see above
            return None
    except urllib.error.HTTPError as error:
        # Many publishers turn programs away; that the page is there they say all the same.
        return None if error.code in {403, 405, 418, 429} else f"answers {error.code}"
    except OSError as error:
        return f"cannot be reached: {error}"


def faults(pages: list[Document], *, external: bool = False) -> Iterator[str]:
    """Every link that leads nowhere, with the page it is on."""
    asked: dict[str, str | None] = {}
    for page in pages:
        for link in page.links():
            if not is_external(link):
                fault = fault_of_local_link(page, link)
            elif external and not PLACEHOLDER.match(link):
                fault = asked[link] if link in asked else asked.setdefault(link, fault_of_external_link(link))
            else:
                continue
            if fault:
                yield f"{page.path.relative_to(REPOSITORY)}: [{link}] {fault}"


def faults_of_site(folder: Path) -> Iterator[str]:
    """Every link of a built site to no file or place in it, and what a page loads from elsewhere."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.html"))}
    for page, text in texts.items():
        for script, style in LOADED.findall(text):
            yield f"{page.relative_to(folder)}: [{script or style}] is loaded from another site"
        for link in set(HTML.findall(text)):
            name, _, anchor = unescape(link).partition("#")
            name = unquote(name.partition("?")[0])
            if is_external(link) or name.startswith("/"):
                continue
            target = (page.parent / name).resolve() if name else page
            target /= "index.html" if target.is_dir() else ""
            if not target.exists():
                yield f"{page.relative_to(folder)}: [{link}] does not exist"
            elif anchor and target in texts and f'id="{unquote(anchor)}"' not in texts[target]:
                yield f"{page.relative_to(folder)}: [{link}] has no such place"


def main() -> int:
    """Print the faults."""
    parser = argparse.ArgumentParser(description="Check the links in the documents and the notebooks.")
    parser.add_argument("--external", action="store_true", help="ask other sites too")
    parser.add_argument("--site", type=Path, metavar="FOLDER", help="check built pages instead")
    options = parser.parse_args()
    if options.site:
        found = list(faults_of_site(options.site.resolve()))
    else:
        found = list(faults(documents(), external=options.external))
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(found)} broken links", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
