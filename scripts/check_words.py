#!/usr/bin/env python3
"""Find phrases that this project replaces, and long sentences, in documents, notebooks and code.

    scripts/check_words.py [PATH ...]      without a path: everything that a reader sees

`scripts/words.txt` holds one phrase per line, a regular expression, and what to write instead after `->`.
Strings and comments of Python files are searched, other files as a whole. In documents and in the text of
notebooks a sentence of more than 35 words is a fault too: `LONGEST`.
"""

import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
READ = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs",
    "notebooks",
    "ewens_widgets",
    "benchmarks",
    "scripts",
]
KINDS = {".py", ".ipynb", ".md", ".txt", ".js", ".j2", ".html", ".css"}
LONGEST = 35
SPOKEN = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
# Not running text: code, formulas and tables; a list item or a heading is a paragraph of its own.
FENCED = re.compile(r"```.*?```|~~~.*?~~~|\$\$.*?\$\$", re.DOTALL)
PARAGRAPHS = re.compile(r"\n\s*\n|\n(?=\s*[-*#|>] ?)|\n(?=\s*\d+\. )")


def phrases(path: Path = REPOSITORY / "scripts" / "words.txt") -> list[tuple[re.Pattern[str], str]]:
    """Read patterns and what to write instead."""
    rows = [
        line.split(" -> ")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line and line[0] != "#"
    ]
    return [(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), advice) for pattern, advice in rows]


def spoken(code: str) -> Iterator[tuple[int, str]]:
    """Lines of the strings and comments of Python code, with their numbers."""
    code = re.sub(r"(?m)^[%!].*$", "", code)
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type in SPOKEN:
            yield from enumerate(token.string.splitlines(), token.start[0])


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """What a reader sees in a file, with where it is."""
    if path.suffix not in KINDS:
        return
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from ((str(number), line) for number, line in spoken(content))
    elif path.suffix == ".ipynb":
        for number, cell in enumerate(json.loads(content)["cells"]):
            source = "".join(cell["source"])
            lines = [source] if cell["cell_type"] == "markdown" else [line for _, line in spoken(source)]
            yield from ((f"cell {number}", line) for line in lines)
    else:
        if path.name == "CHANGELOG.md":
            content = content.split("\n### Renamed\n")[0]  # the table that follows quotes old names
        yield from ((str(number), line) for number, line in enumerate(content.splitlines(), 1))


def long_sentences(path: Path) -> Iterator[str]:
    """Sentences of the running text that are too long."""
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        content = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    elif path.suffix == ".md":
        content = path.read_text(encoding="utf-8")
    else:
        return
    for paragraph in PARAGRAPHS.split(FENCED.sub("", content)):
        if not paragraph.lstrip().startswith(("|", "#")):
            for sentence in re.split(r"(?<=[.!?:;])\s+", " ".join(paragraph.split())):
                if len(sentence.split()) > LONGEST:
                    yield sentence


def faults(path: Path, replaced: list[tuple[re.Pattern[str], str]]) -> Iterator[str]:
    """What to rewrite in a file."""
    for place, text in texts(path):
        for pattern, advice in replaced:
            for match in pattern.finditer(text):
                yield f"{path}:{place}: {match.group(0)!r}: write {advice}"
    for sentence in long_sentences(path):
        yield f"{path}: {len(sentence.split())} words in one sentence: {sentence[:80]}…"


def main(arguments: list[str]) -> int:
    """Print the faults of the named files and folders."""
    roots = [Path(name) for name in arguments] or [REPOSITORY / name for name in READ]
    files = [path for root in roots for path in (sorted(root.rglob("*")) if root.is_dir() else [root])]
    listed = {"words.txt", "check_words.py", "american.txt"}  # they hold the phrases themselves
    hidden = {"__pycache__", "reference", ".ipynb_checkpoints"}
    files = [
        path for path in files if path.is_file() and path.name not in listed and not hidden & set(path.parts)
    ]
    replaced = phrases()
    found = [fault for path in files for fault in faults(path, replaced)]
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(found)} faults of language in {len(files)} files", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
