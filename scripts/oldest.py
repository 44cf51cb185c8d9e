#!/usr/bin/env python3
"""Print the oldest versions that pyproject.toml allows, of what users install; test tools are left free.

scripts/oldest.py > artefacts/oldest.txt        (make oldest)
"""

import re
import tomllib
from pathlib import Path

EXTRAS = ("lab", "arviz", "dask")
BOUND = re.compile(r"([\w.-]+)(?:\[\w+\])?>=([\w.]+)")


def main() -> None:
    """Print a constraints file."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    extras = [text for extra in EXTRAS for text in project["optional-dependencies"][extra]]
    for text in (*project["dependencies"], *extras):
        found = BOUND.match(text)
        if found is None:
            raise SystemExit(f"oldest.py: {text!r} has no lower bound")
        print(f"{found[1]}=={found[2]}")
    print("pyparsing<3.3")  # a later one warns of what this matplotlib calls


if __name__ == "__main__":
    main()
