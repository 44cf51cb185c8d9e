"""How many cases the fuzz tests run in all."""

import re
from pathlib import Path

PARAMETERS = {"test_saved_files.py": 2}  # traces and samplers


def test_ten_thousand_cases() -> None:
    total = 0
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        counts = map(int, re.findall(r"max_examples=(\d+)\)", path.read_text()))
        total += PARAMETERS.get(path.name, 1) * sum(counts)
    assert total >= 10_000
