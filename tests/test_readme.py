"""The README's example prints what the README says it prints."""

import re
from pathlib import Path

import pytest


def test_the_example_prints_what_is_shown(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (repository / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, flags=re.DOTALL)
    assert len(examples) == len(re.findall("```python", text)) >= 1
    for code, output in examples:
        exec(compile(code, "README.md", "exec"), {})  # noqa: S102 — our own text, and running it is the point
        assert capsys.readouterr().out == output


def test_links_to_files_lead_somewhere(repository: Path) -> None:
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (repository / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", text):
            assert (repository / target).exists(), f"{name} links to {target}"


def test_make_targets_named_in_the_documents_exist(repository: Path) -> None:
    targets = set(
        re.findall(
            r"^([a-z]+):.*## ", (repository / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE
        )
    )
    for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md"):
        text = (repository / name).read_text(encoding="utf-8")
        named = set(re.findall(r"(?:^|`)make ([a-z]+)", text, flags=re.MULTILINE))
        assert named <= targets, name
    assert {"lab", "test"} <= targets
