"""Store the numbers of the paper's experiments where the documents and their tests read them.

    make paper && .venv/bin/python scripts/store_results.py artefacts/paper

Numbers that the folder has replace those in tests/paper/results.json; docs/results.md gets the tables.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from ewens_widgets.paper.published import ALL, published_table

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))
from other_methods import METHODS, comparison_table

REPOSITORY = Path(__file__).resolve().parent.parent
STORED, PAGE = REPOSITORY / "tests" / "paper" / "results.json", REPOSITORY / "docs" / "results.md"
COLUMNS = ("as printed", "corrected", "converged", "default", *METHODS, "mclust")
TABLE = r"^\| {0} \|.*\n(?:\|.*\n)+"


def main(folder: str) -> None:
    """Write both files."""
    results = json.loads(STORED.read_text(encoding="utf-8"))
    found = json.loads((Path(folder) / "results.json").read_text(encoding="utf-8"))
    if found["seeds"] != results["seeds"]:
        sys.exit(f"the stored numbers are of {results['seeds']} seeds, these of {found['seeds']}.")
    old, new = results["experiments"], found["experiments"]
    write_results({**results, "experiments": {key: old.get(key, {}) | new.get(key, {}) for key in ALL}})


def write_results(results: dict[str, Any]) -> None:
    """Write the numbers, and the tables of the page."""
    results["experiments"] = {
        key: {"settings": entry.settings()}
        | {name: results["experiments"][key][name] for name in COLUMNS if name in results["experiments"][key]}
        for key, entry in ALL.items()
    }
    text = re.sub(
        r"\[\s+([^\[\]{}]*?)\s+\]", lambda one: f"[{' '.join(one[1].split())}]", json.dumps(results, indent=1)
    )
    STORED.write_text(text + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    for head, table in (("experiment", published_table(results)), ("data", comparison_table(results))):
        page = re.sub(
            TABLE.format(head), lambda _, table=table: table + "\n", page, count=1, flags=re.MULTILINE
        )
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
