"""The examples of README and documents print what it says there that they print."""

import re
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("README.md", marks=pytest.mark.slow),
        "docs/exact.md",
        "docs/priors.md",
        "docs/tables.md",
        pytest.param("docs/programming.md", marks=pytest.mark.slow),
    ],
)
def test_the_examples_print_what_is_shown(
    repository: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text = (repository / name).read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, flags=re.DOTALL)
    assert len(examples) == len(re.findall("```python", text)) >= 1
    names: dict[str, object] = {}
    for code, output in examples:
        # Examples stand alone, but for those of the page on tables.
        names = names if name == "docs/tables.md" else {}
        exec(compile(code, name, "exec"), names)  # noqa: S102 — our own text, and running it is the point
        assert capsys.readouterr().out == output


def test_make_targets_named_in_the_documents_exist(repository: Path) -> None:
    targets = set(
        re.findall(
            r"^([a-z]+):.*## ", (repository / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE
        )
    )
    documents = ["README.md", "CONTRIBUTING.md", "benchmarks/README.md"]
    documents += [f"docs/{path.name}" for path in (repository / "docs").glob("*.md")]
    for name in documents:
        text = (repository / name).read_text(encoding="utf-8")
        named = set(re.findall(r"(?:^|`)make ([a-z]+)", text, flags=re.MULTILINE))
        assert named <= targets, name
    assert {"lab", "test"} <= targets
