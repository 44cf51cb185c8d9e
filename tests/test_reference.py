"""The reference documents every name of the package that the notebooks use."""

import ast
import json
import runpy
from collections.abc import Iterator
from pathlib import Path

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
