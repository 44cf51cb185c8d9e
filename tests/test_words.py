"""`make lint` finds phrases that the project replaces, and long sentences."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def check(repository: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(repository / "scripts" / "check_words.py"), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("page.md", "Model III minds nothing.\n"),
        ("page.md", "One two three.\n\n" + "word " * 36 + "end.\n"),
        ("module.py", '"""The law of K."""\n'),
        ("module.py", "VALUE = 1  # nobody waits for this\n"),
        ("module.py", 'TEXT = f"{VALUE} objects are sure"\n'),
        ("script.js", "// 171 wines are in doubt\n"),
        ("lesson.ipynb", json.dumps({"cells": [{"cell_type": "markdown", "source": ["The leftovers."]}]})),
        ("lesson.ipynb", json.dumps({"cells": [{"cell_type": "code", "source": ["print('put right')"]}]})),
    ],
)
def test_a_planted_phrase_is_found(repository: Path, tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    found = check(repository, path)
    assert found.returncode == 1
    assert found.stdout.startswith(f"{path}:")
    assert found.stdout.count("\n") == 1


def test_plain_english_is_left_alone(repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    table = "| " + " ".join(["cell"] * 60) + " |\n"
    path.write_text(
        f"Model III is invariant to shears.\n\n{table}\n```\nnobody = 1\n```\n".replace("nobody", "x")
    )
    module = tmp_path / "module.py"
    module.write_text("nobody = 1\n")  # names are checked by readers, strings and comments here
    found = check(repository, path, module)
    assert found.returncode == 0, found.stdout
