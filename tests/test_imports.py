"""The direction of imports, and how light `import ewens_widgets` is, seen from fresh interpreters."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import ewens_widgets

PACKAGE = Path(ewens_widgets.__file__).parent

# A module may import from its own rank and from lower ones.
RANKS = {
    "__init__": 0,  # resolves public names lazily, so it imports the version only
    "_version": 0,
    "arguments": 0,
    "course": 0,
    "files": 0,
    "partition": 1,
    "datasets": 1,
    "tables": 2,
    "model": 2,
    "sampling": 3,
    "analysis": 4,
    "group_profile": 5,
    "label_summary": 5,
    "estimator": 5,
    "model_choice": 5,
    "paper": 5,
    "paper/moves": 3,  # They enter samplers through `register`.
    "paper/denmark": 1,
    "playback": 6,
    "views": 7,
    "app": 8,
}

# A trace, and several, offer what `analysis` computes as methods: facades, importing inside functions and for
# types only.
FACADES = {("sampling/trace.py", "analysis"), ("sampling/chains/result.py", "analysis")}

WIDGET_PACKAGES = {"IPython", "anywidget", "bqplot", "ipywidgets", "traitlets"}

# Imported inside functions, so that no user of one part waits for another part's packages.
HEAVY_PACKAGES = {
    "arviz",
    "arviz_stats",
    "dask",
    "distributed",
    "matplotlib",
    "narwhals",
    "pandas",
    "sklearn",
    "tqdm",
    "xarray",
}
HEAVY_EXCEPTIONS = {("estimator", "sklearn")}  # inherits from its classes


class Import(NamedTuple):
    file: str
    line: int
    layer: str
    name: tuple[str, ...]
    deferred: bool  # inside a function, or seen by type checkers only

    def fault(self, package: str) -> str | None:
        """What is wrong with this import, if anything."""
        where, top, pure = f"{self.file}:{self.line}", self.name[0], RANKS[self.layer] < RANKS["views"]
        if pure and top in WIDGET_PACKAGES:
            return f"{where}: {self.layer} imports {top}, a widget package"
        if pure and top in HEAVY_PACKAGES and not self.deferred and (self.layer, top) not in HEAVY_EXCEPTIONS:
            return f"{where}: {self.layer} imports {top} outside a function"
        if top != package or len(self.name) == 1 or self.name[1] not in RANKS:
            return None
        facade = self.deferred and (self.file, self.name[1]) in FACADES
        part = "/".join(self.name[1:3])
        if RANKS.get(part, RANKS[self.name[1]]) > RANKS[self.layer] and not facade:
            return f"{where}: {self.layer} imports {self.name[1]}, which builds on it"
        return None


def names_of(node: ast.Import | ast.ImportFrom, parent: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Full names that an import statement may load; relative ones are resolved from the parent package."""
    if isinstance(node, ast.Import):
        yield from (tuple(alias.name.split(".")) for alias in node.names)
        return
    base = parent[: len(parent) - node.level + 1] if node.level else ()
    base += tuple(node.module.split(".")) if node.module else ()
    # `from package import name` may load a submodule of that name.
    yield from ((*base, alias.name) for alias in node.names)


def defers(node: ast.AST) -> bool:
    """Whether importing the module leaves this block alone."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def imports_of(package: Path) -> Iterator[Import]:
    """Every import statement of the package, wherever it stands."""
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        parent = (package.name, *relative.parent.parts)
        chapter = "/".join(relative.parts[:2]).removesuffix(".py")
        layer = chapter if chapter in RANKS else relative.parts[0].removesuffix(".py")
        for node, is_deferred in statements_of(ast.parse(path.read_text(encoding="utf-8"))):
            for name in names_of(node, parent):
                yield Import(relative.as_posix(), node.lineno, layer, name, is_deferred)


def statements_of(
    node: ast.AST, is_deferred: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Import statements below a node, and whether importing the module leaves them alone."""
    is_deferred = is_deferred or defers(node)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, is_deferred
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):  # No expression imports.
            yield from statements_of(child, is_deferred)


def faults_of(package: Path) -> list[str]:
    known = (statement for statement in imports_of(package) if statement.layer in RANKS)
    return [fault for statement in known if (fault := statement.fault(package.name))]


def run_python(code: str) -> str:
    """What a fresh interpreter prints."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_every_layer_has_a_rank() -> None:
    layers = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")}
    assert layers <= set(RANKS), "give the new layer a place in RANKS"


def test_imports_follow_the_layers() -> None:
    assert len(list(imports_of(PACKAGE))) > 20
    assert faults_of(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "code", "complaint"),
    [
        ("partition.py", "from ewens_widgets import model", "partition imports model"),
        ("model/prior.py", "def late():\n    from ..sampling import sampler", "model imports sampling"),
        (
            "sampling/sampler.py",
            "def late():\n    import ewens_widgets.analysis.trees",
            "sampling imports analysis",
        ),
        ("sampling/trace.py", "def late():\n    from ewens_widgets import views", "sampling imports views"),
        ("sampling/trace.py", "def late():\n    from ewens_widgets import analysis", None),
        ("playback/player.py", "def late():\n    import ipywidgets.widgets", "playback imports ipywidgets"),
        ("analysis/plots.py", "from matplotlib import pyplot", "imports matplotlib outside a function"),
        ("analysis/plots.py", "if TYPE_CHECKING:\n    from matplotlib import pyplot", None),
        ("estimator.py", "from sklearn.base import ClusterMixin", None),
    ],
)
def test_wrong_imports_are_found(tmp_path: Path, file: str, code: str, complaint: str | None) -> None:
    path = tmp_path / "ewens_widgets" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    found = faults_of(path.parents[len(Path(file).parts) - 1])
    assert len(found) == (complaint is not None)
    assert all(complaint in fault for fault in found)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import json, sys, ewens_widgets; print(json.dumps([name.split('.')[0] for name in sys.modules]))"
    loaded = set(json.loads(run_python(code)))
    assert "ewens_widgets" in loaded
    assert loaded.isdisjoint(WIDGET_PACKAGES | HEAVY_PACKAGES | {"numba"})


def test_the_layers_left_of_the_views_load_no_widget_package() -> None:
    # From the files, not by pkgutil: that imports every package it walks through, the views too.
    files = (path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py"))
    parts = [path.parts[:-1] if path.name == "__init__" else path.parts for path in files]
    modules = [".".join(name) for name in parts if len(name) > 1 and RANKS[name[1]] < RANKS["views"]]
    assert {"ewens_widgets.partition", "ewens_widgets.datasets", "ewens_widgets.model.posterior"} <= set(
        modules
    )
    code = f"""
import importlib, json, sys
for name in {modules}:
    importlib.import_module(name)
print(json.dumps([name.split(".")[0] for name in sys.modules]))
"""
    assert WIDGET_PACKAGES.isdisjoint(json.loads(run_python(code)))


def test_an_explorer_loads_only_what_its_first_picture_needs() -> None:
    # bqplot brings pandas. SciPy's statistics alone take longer than the rest of SciPy, seconds in a browser.
    code = """
import json, sys, ewens_widgets as ew
ew.Explorer(ew.datasets.unit_square(seed=0), seed=0)
print(json.dumps([".".join(name.split(".")[:2]) for name in sys.modules]))
"""
    loaded = set(json.loads(run_python(code)))
    assert "ewens_widgets.views" in loaded
    assert loaded.isdisjoint((HEAVY_PACKAGES - {"pandas"}) | {"scipy.stats"})


@pytest.mark.parametrize("name", ewens_widgets.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert name in dir(ewens_widgets)
    assert getattr(ewens_widgets, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'partitions'"):
        ewens_widgets.partitions  # noqa: B018


@pytest.mark.timing
def test_import_takes_less_than_half_a_second_more_than_numpy_and_scipy() -> None:
    code = """
import numpy, scipy, time
start = time.process_time()
import ewens_widgets
print(time.process_time() - start)
"""
    # The best of three: the first may find modules that are not compiled yet.
    assert min(float(run_python(code)) for _ in range(3)) < 0.5
