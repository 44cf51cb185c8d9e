#!/usr/bin/env python3
"""Steps of a release that need no network and can be taken back (`make release VERSION=0.2.0` takes them).

    scripts/release.py prepare VERSION     version, citation and changelog get the version and today's date
    scripts/release.py notes               print what the changelog says about this version
    scripts/release.py tagged TAG          fail unless the tag is the version, and the changelog has its date

The tag is set by hand, when all of this has been looked at: `git tag -s v0.2.0`, then `git push --tags`.
"""

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
SECTION = re.compile(
    r"^## (?P<version>\S+) \((?P<date>[^)]*)\)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)
UNRELEASED = "not released yet"


def main() -> None:
    """Take the step that the command line names."""
    match sys.argv[1:]:
        case ["prepare", version] if VERSION.fullmatch(version):
            prepare(REPOSITORY, version, datetime.now(UTC).strftime("%Y-%m-%d"))
        case ["notes"]:
            print(notes(REPOSITORY))
        case ["tagged", tag]:
            check_tag(REPOSITORY, tag)
        case _:
            sys.exit(__doc__)


def current(folder: Path) -> str:
    """Version of the package."""
    text = (folder / "ewens_widgets" / "_version.py").read_text(encoding="utf-8")
    return re.search(r'__version__ = "(.*)"', text)[1]  # type: ignore[index]


def section(folder: Path) -> re.Match[str]:
    """Latest section of the changelog."""
    found = SECTION.search((folder / "CHANGELOG.md").read_text(encoding="utf-8"))
    if found is None:
        sys.exit("release: CHANGELOG.md has no section such as '## 0.2.0 (not released yet)'")
    return found


def prepare(folder: Path, version: str, date: str) -> None:
    """Write version and date where they stand."""
    latest = section(folder)
    if latest["date"] != UNRELEASED and (latest["version"], latest["date"]) != (version, date):
        known = f"{latest['version']}, released on {latest['date']}"
        sys.exit(f"release: CHANGELOG.md begins with {known}: what is new?")
    for name, pattern, new in (
        ("ewens_widgets/_version.py", r'(?<=__version__ = ").*(?=")', version),
        ("CHANGELOG.md", rf"(?<=^## ){re.escape(latest['version'])} \([^)]*\)", f"{version} ({date})"),
        ("recipe/meta.yaml", r'(?<=version = ").*(?=")', version),
        ("CITATION.cff", r"(?<=^version: ).*", version),
        ("CITATION.cff", r"(?<=^date-released: ).*", date),
    ):
        path = folder / name
        text, count = re.subn(pattern, new, path.read_text(encoding="utf-8"), count=1, flags=re.MULTILINE)
        if not count:
            sys.exit(f"release: {name} has no place for {new}")
        path.write_text(text, encoding="utf-8")
    zenodo = folder / ".zenodo.json"
    content = json.loads(zenodo.read_text(encoding="utf-8")) | {"version": version}
    zenodo.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def notes(folder: Path) -> str:
    """What the changelog says about this version."""
    latest = section(folder)
    if latest["version"] != current(folder):
        sys.exit(f"release: CHANGELOG.md begins with {latest['version']}, the package is {current(folder)}")
    return latest["text"].strip()


def check_tag(folder: Path, tag: str) -> None:
    """Fail unless the tag is the version, and the changelog has its date."""
    if tag != f"v{current(folder)}":
        sys.exit(f"release: the tag is {tag}, the package is {current(folder)}")
    notes(folder)
    if section(folder)["date"] == UNRELEASED:
        sys.exit("release: CHANGELOG.md has no date; run  make release VERSION=…")


if __name__ == "__main__":
    main()
