"""The reference documents every name of the package that the notebooks use."""

import ast
import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

import ewens_widgets as ew

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def sources(path: Path) -> Iterator[ast.Module]:
    """Code cells of a notebook; magics are left out."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            lines = "".join(cell["source"]).splitlines()
            yield ast.parse("\n".join(line for line in lines if not line.startswith(("%", "!"))))


def chain(node: ast.expr) -> list[str]:
    """Names of ``a.b.c``, or nothing for what is no such chain."""
    if isinstance(node, ast.Attribute):
        before = chain(node.value)
        return [*before, node.attr] if before else []
    return [node.id] if isinstance(node, ast.Name) else []


def used_names(tree: ast.Module) -> Iterator[str]:
    """Full addresses of what is taken from the package, by import or as ``ew.something``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ewens_widgets":
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Attribute) and chain(node)[:1] == ["ew"]:
            names = chain(node)[1:]
            value = getattr(ew, names[0])
            if len(names) > 1 and not callable(value):
                value, names = getattr(value, names[1]), names[:2]
                if callable(value):
                    yield f"{value.__module__}.{value.__qualname__}"
            elif len(names) == 1 and callable(value):
                yield f"{value.__module__}.{value.__qualname__}"


def documented() -> set[str]:
    reference = runpy.run_path(str(ROOT / "docs" / "public_names.py"))["Reference"]()
    return {*reference.addresses, *reference.addresses.values()}


def test_every_name_in_a_notebook_is_in_the_reference() -> None:
    known = documented()
    used = {name for path in NOTEBOOKS for tree in sources(path) for name in used_names(tree)}
    assert len(used) > 20
    assert {"ewens_widgets.tables.read_table", "ewens_widgets.analysis.export.labels_csv"} <= known
    assert sorted(used - known) == []


@pytest.mark.parametrize(
    "code",
    ["from ewens_widgets.files import write_atomically", "import ewens_widgets as ew\new.plots.palette"],
)
def test_a_name_outside_the_reference_would_be_seen(code: str) -> None:
    known = documented()
    found = set(used_names(ast.parse(code)))
    assert found - known or not found


def test_the_examples_of_the_page_on_tables_print_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
    assert len(examples) == page.count("```python") == 3
    names: dict[str, object] = {}
    for code, expected in examples:
        exec(code, names)  # noqa: S102 - our own page
        assert capsys.readouterr().out == expected


def test_tutorials_become_pages_that_can_be_run_and_a_gallery(tmp_path: Path) -> None:
    runpy.run_path(str(ROOT / "docs" / "tutorial_pages.py"))["write_tutorials"](ROOT / "notebooks", tmp_path)
    gallery = (tmp_path / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(r"\]\((figures/[\w-]+\.png)\)\]\(#([\w-]+)\)", gallery)
    stored = sum(path.read_text(encoding="utf-8").count('"image/png": "') for path in NOTEBOOKS)
    assert len(set(shown)) == len(shown) == stored > 40
    texts = []
    for path in NOTEBOOKS:
        cells = nbformat.read(tmp_path / path.name, as_version=4).cells
        texts.append("\n".join(cell.source for cell in cells))
        assert f"try/notebooks/index.html?path={path.name}" in cells[0].source
    for picture, anchor in shown:
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
        assert sum(f"({anchor})=" in text for text in texts) == 1
    assert all(f"\n{path.stem}\n" in texts[0] for path in NOTEBOOKS[1:])
