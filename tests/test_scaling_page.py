"""The examples of docs/scaling.md print what the page says, on real processes and a real Dask cluster."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "scaling.md"
EXAMPLES = re.findall(
    r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
)


def test_every_example_shows_what_it_prints() -> None:
    assert len(EXAMPLES) == PAGE.read_text(encoding="utf-8").count("```python") == 4
    assert any("dask" in code for code, _ in EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize(("code", "output"), EXAMPLES, ids=["local", "dask", "checkpoint", "until"])
def test_an_example_prints_what_is_shown(code: str, output: str, tmp_path: Path) -> None:
    # As a script, because that is the hardest case: processes that are started import it again.
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout == output
