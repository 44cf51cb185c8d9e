#!/usr/bin/env python3
"""Ask the package index whether any of the pinned versions has a known vulnerability, or was withdrawn.

    scripts/audit_pins.py [binder/constraints.txt]

Ends with 1 if one has, and with 0, after saying so, where the index cannot be reached.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

INDEX = "https://pypi.org/pypi/{name}/{version}/json"
SECONDS = 20.0
PINS = Path(__file__).resolve().parent.parent / "binder" / "constraints.txt"

Answer = dict[str, object]


def ask(name: str, version: str) -> Answer:
    """Return what the index knows of a version."""
    with urlopen(INDEX.format(name=name, version=version), timeout=SECONDS) as stream:  # noqa: S310 - https
        return dict(json.load(stream))


def pins(text: str) -> Iterator[tuple[str, str]]:
    """Names and versions of a list of pins."""
    for line in text.splitlines():
        name, equals, version = line.partition("#")[0].partition("==")
        if equals:
            yield name.strip(), version.partition(";")[0].strip()


def findings(name: str, version: str, answer: Answer) -> Iterator[str]:
    """What is known about a version."""
    reports = answer.get("vulnerabilities") or []
    for report in reports if isinstance(reports, list) else []:
        if not report.get("withdrawn"):
            better = ", ".join(report.get("fixed_in") or []) or "no version yet"
            yield f"{name} {version}: {report['id']}, mended in {better}: {report.get('link', '')}"
    info = answer.get("info")
    if isinstance(info, dict) and info.get("yanked"):
        yield f"{name} {version}: withdrawn, {info.get('yanked_reason') or 'no reason given'}"


def audit(text: str, ask: Callable[[str, str], Answer] = ask) -> int:
    """Check all pins; print what was found."""
    found: list[str] = []
    unknown: list[str] = []
    count = 0
    for name, version in pins(text):
        try:
            found += findings(name, version, ask(name, version))
        except HTTPError as error:
            unknown.append(f"{name} {version}: the index answers {error.code}")
        except (URLError, OSError) as error:
            print(f"SKIPPED after {count} pins: the package index cannot be reached ({error})")
            return 1 if found else 0
        count += 1
    if len(unknown) == count:
        print(f"SKIPPED: this package index tells nothing of any of the {count} pins ({INDEX})")
        return 0
    found += unknown
    print(*found, f"{count} pinned versions checked, {len(found)} findings", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(audit(Path(*sys.argv[1:2] or [PINS]).read_text()))
