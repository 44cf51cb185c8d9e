#!/usr/bin/env python3
"""Set the account that hosts the project, wherever its name stands.

    scripts/address.py NAME        (make address OWNER=NAME)
    scripts/address.py             print it

The name is kept in the address of the source in pyproject.toml. `OWNER` stands for an account that is not
known yet.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
# Where an account's name stands: repository, Binder, Pages, badges, and who is asked to review.
PLACES = re.compile(
    rf"(?P<before>github\.com/|githubusercontent\.com/|mybinder\.org/v2/gh/|github/[\w/-]+/)(?P<owner>{NAME})(?=/ewens_widgets\b)"
    rf"|(?P<host>https://)(?P<site>{NAME})(?=\.github\.io/ewens_widgets\b)"
    rf"|(?P<at>^\* @|recipe-maintainers:\n    - )(?P<reviewer>{NAME})$",
    re.MULTILINE,
)


def owner(text: str) -> str:
    """Read the name from pyproject.toml."""
    found = re.search(rf'^Source = "https://github\.com/({NAME})/', text, re.MULTILINE)
    if found is None:
        raise SystemExit("address.py: pyproject.toml has no address of the source")
    return found[1]


def owners(text: str) -> set[str]:
    """Accounts that a text names."""
    return {one["owner"] or one["site"] or one["reviewer"] for one in PLACES.finditer(text)}


def renamed(text: str, name: str) -> str:
    """A text with another account."""
    return PLACES.sub(lambda one: f"{one['before'] or one['host'] or one['at']}{name}", text)


def files(folder: Path) -> Iterator[Path]:
    """Text files of the project."""
    command = ["git", "-C", str(folder), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
    endings = {".md", ".toml", ".yml", ".yaml", ".cff", ".json", ".py", ".ipynb", ".html", ".txt", ".bib"}
    for name in names:
        path = folder / name
        if path.is_file() and (path.suffix in endings or path.name in {"CODEOWNERS", "Dockerfile"}):
            yield path


def main() -> None:
    """Print the account, or replace it everywhere."""
    if len(sys.argv) == 1:
        print(owner((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")))
        return
    if len(sys.argv) != 2 or not re.fullmatch(NAME, sys.argv[1]):
        sys.exit(__doc__)
    for path in files(REPOSITORY):
        text = path.read_text(encoding="utf-8")
        if (new := renamed(text, sys.argv[1])) != text:
            path.write_text(new, encoding="utf-8")
            print(path.relative_to(REPOSITORY))


if __name__ == "__main__":
    main()
