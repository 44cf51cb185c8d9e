#!/usr/bin/env python3
"""Report for each lesson whether it has the form that CONTRIBUTING.md describes, and what is missing.

    scripts/check_lessons.py [NOTEBOOK ...]      without a path: all of them

A lesson says what a reader will be able to do. It defines the terms of `docs/glossary.md` in bold, with a
link to the glossary, before any lesson uses them. It takes a prediction before a result. It has an exercise
by hand, with a solution that folds out, and one with code, and ends with a summary and further reading. Every
picture has a caption, which is its alternative text too. The first notebook is the index, the second a
preview.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
GLOSSARY = REPOSITORY / "docs" / "glossary.md"
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
CLASSROOM = 18  # a lesson for a class, with a teacher who has the solutions
LINES = 3

ROW = re.compile(r"^\| (\*\*.*) \| (\d\d) \|$", re.MULTILINE)
# A term is bold where it is defined, and the bold words link to the index, which ends with the glossary.
DEFINED = re.compile(r"\[\*\*([^*]+)\*\*\]\(00_index\.ipynb#[\w-]+\)")
CITATION = re.compile(r"\b(?:1[89]|20)\d\d\b")
NOT_SPOKEN = re.compile(r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|<[^>]*>", re.DOTALL)
# The same words with another meaning.
OTHERWISE = re.compile(r"principal components?|number of components|another example", re.IGNORECASE)


class Term(NamedTuple):
    """Words that mean the same, and the lesson that defines them."""

    names: tuple[str, ...]
    lesson: int


def terms() -> list[Term]:
    """Terms of the glossary that lessons define."""
    rows = ROW.findall(GLOSSARY.read_text(encoding="utf-8"))
    return [
        Term(tuple(re.findall(r"\*\*([^*]+)\*\*", row.split(" | ")[0])), int(number)) for row, number in rows
    ]


def number_of(path: Path) -> int:
    """Number of a lesson."""
    return int(path.name[:2])


def cells_of(path: Path) -> list[dict[str, Any]]:
    """Cells of a notebook, with the source as one text."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in cells]


def markdown(cells: list[dict[str, Any]]) -> str:
    """Text of a lesson."""
    return "\n\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")


def code(cells: list[dict[str, Any]]) -> str:
    """Code of a lesson."""
    return "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "code")


def items_after(text: str, heading: str) -> list[str]:
    """Items of the list after a heading."""
    (part, *_) = [*text.split(heading)[1:], ""]
    return re.findall(
        r"^(?:-|\d\.) (.+(?:\n  .+)*)", re.split(r"\n#|\n\n(?!-|\d\.)", part.lstrip())[0], re.MULTILINE
    )


def pattern(name: str) -> re.Pattern[str]:
    """How a term is found in a text: also in the plural."""
    ignore = re.IGNORECASE if name.lower() == name else 0
    return re.compile(
        rf"(?<![\w-]){re.escape(name).replace(chr(92) + ' ', chr(92) + 's+')}s?(?![\w-])", ignore
    )


def missing_parts(path: Path) -> Iterator[str]:
    """What a lesson lacks."""
    cells, number = cells_of(path), number_of(path)
    text, program = markdown(cells), code(cells)
    if len(items_after(text, "After this lesson you can**")) != LINES and number != CLASSROOM:
        yield f"no list of {LINES} objectives"
    asked, shown = program.find("predict("), program.find("reveal(")
    if not 0 <= asked < shown or "**Predict first.**" not in text:
        yield "no prediction before a result"
    exercises = set(re.findall(rf'check\("{number:02}\.(E\d+)"', program))
    described = set(re.findall(r"^\*\*(E\d+)[^*]*\.\*\*", text, re.MULTILINE))
    if len(exercises) < 2 or exercises != described:
        yield f"exercises {sorted(described)}, of which {sorted(exercises)} are checked"
    kinds = set(re.findall(r"^\*\*E\d+ \((by hand|with code)\)\.\*\*", text, re.MULTILINE))
    if number != CLASSROOM and not ("<details>" in text and len(kinds) == 2):
        yield "no exercise by hand with a solution that folds out, or none with code"
    if len(items_after(text, "## Summary")) != LINES:
        yield f"no summary of {LINES} lines"
    reading = items_after(text, "## Further reading")
    if not any(CITATION.search(item) for item in reading):
        yield "no further reading with a citation"
    for place in (1, -1):
        cell = [cell for cell in cells if cell["cell_type"] == "code"][min(place, 0)]
        if not cell["metadata"].get("jupyter", {}).get("source_hidden"):
            yield f"the {'last' if place < 0 else 'first'} cell of code is not collapsed"


def faulty_captions(path: Path) -> Iterator[str]:
    """Pictures without a caption that has the right number, or without it as their alternative text."""
    cells, count = cells_of(path), 0
    for cell, after in zip(cells, [*cells[1:], {"cell_type": "", "source": ""}], strict=True):
        pictures = [output for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
        for picture in pictures:
            count += 1
            caption = caption_of(after)
            if caption is None or not caption.startswith(f"Figure {number_of(path)}.{count}. "):
                yield f"no caption of figure {number_of(path)}.{count}"
            elif picture["metadata"].get("image/png", {}).get("alt") != caption:
                yield f"the alternative text of figure {number_of(path)}.{count} is not its caption"


def caption_of(cell: Any) -> str | None:  # noqa: ANN401 - a cell as a dict or a node
    """The caption with which a cell of text begins."""
    found = re.match(r"\*(Figure \d+\.\d+\. [^\n]+)\*(?:\n|$)", cell["source"])
    return found[1] if found and cell["cell_type"] == "markdown" else None


def words_too_early(paths: list[Path], known: list[Term]) -> Iterator[str]:
    """Terms used before the lesson that defines them, or not defined by their own lesson."""
    for path in paths:
        text = markdown(cells_of(path))
        bold = [name.lower() for name in DEFINED.findall(text)]
        defined = {form for name in bold for form in (name, name.removesuffix("s"))}
        # Titles of books and of other lessons are not ours to choose.
        own_words = text.split("## Further reading")[0]
        spoken = OTHERWISE.sub(" ", NOT_SPOKEN.sub(" ", own_words))
        for term in known:
            if term.lesson == number_of(path) and not {name.lower() for name in term.names} <= defined:
                names = ", ".join(term.names)
                yield f"{path.name}: does not define {names} in bold, with a link to the glossary"
            if 0 < number_of(path) < term.lesson:
                for name in term.names:
                    for found in pattern(name).finditer(spoken):
                        around = " ".join(spoken[max(0, found.start() - 30) : found.end() + 20].split())
                        yield f"{path.name}: {name!r} is defined in lesson {term.lesson:02}: …{around}…"


def faults(paths: list[Path]) -> list[str]:
    """Everything that the lessons lack."""
    lessons = [path for path in paths if number_of(path) > 1]
    found = [f"{path.name}: {fault}" for path in lessons for fault in missing_parts(path)]
    found += [f"{path.name}: {fault}" for path in paths for fault in faulty_captions(path)]
    return found + list(words_too_early(paths, terms()))


def main(arguments: list[str]) -> int:
    """Print the faults of the named notebooks."""
    found = faults([Path(name) for name in arguments] or NOTEBOOKS)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(found)} faults", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
