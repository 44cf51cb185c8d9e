"""The site that runs in a browser, as far as that can be checked without one and without a network."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import nbformat
import pytest


@pytest.fixture(scope="module")
def lite(repository: Path) -> ModuleType:
    path = repository / "scripts" / "build_lite.py"
    spec = importlib.util.spec_from_file_location("build_lite", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_notebook_installs_the_package_below_its_title(
    lite: ModuleType, repository: Path, tmp_path: Path
) -> None:
    originals = sorted((repository / "notebooks").glob("*.ipynb"))
    assert lite.copy_notebooks(repository / "notebooks", tmp_path / "files") == len(originals)
    for original in originals:
        before = nbformat.read(original, as_version=4)
        after = nbformat.read(tmp_path / "files" / original.name, as_version=4)
        nbformat.validate(after)
        assert after.cells[0] == before.cells[0]
        assert after.cells[1].source.endswith("%pip install -q ewens-widgets")
        assert after.cells[2:] == before.cells[1:]


def test_a_compiled_wheel_is_refused(
    lite: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(*_: object, **__: object) -> None:
        (tmp_path / "ewens_widgets-1.0-cp311-cp311-linux_x86_64.whl").write_text("")

    monkeypatch.setattr(lite.subprocess, "run", build)
    with pytest.raises(SystemExit, match="not pure Python"):
        lite.build_wheel(tmp_path)


@pytest.mark.slow
def test_the_explorer_plays_without_compiler_and_threads() -> None:
    code = """
import asyncio, sys, threading
sys.modules["numba"] = None  # importing it fails, as where it is not installed
def refuse(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
import ewens_widgets as ew
from ewens_widgets.sampling.compiled import COMPILED
assert not COMPILED
async def play():
    explorer = ew.Explorer(ew.datasets.unit_square(seed=0), iterations=5)
    explorer.player.play()
    await explorer.player.wait(timeout=60)
    return explorer.player.status.iteration
assert asyncio.run(play()) == 5
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_the_site_has_the_wheel_the_notebooks_and_the_widgets(
    lite: ModuleType, repository: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    lite.build_site(site)
    names = {path.name for path in (site / "files").glob("*.ipynb")}
    assert names == {path.name for path in (repository / "notebooks").glob("*.ipynb")}
    index = json.loads((site / "pypi" / "all.json").read_text())
    (release,) = index["ewens-widgets"]["releases"].values()
    assert release[0]["filename"].endswith("-py3-none-any.whl")
    assert (site / "pypi" / release[0]["filename"]).is_file()
    extensions = {path.parent.name for path in (site / "extensions").rglob("package.json")}
    assert {"bqplot", "anywidget", "jupyterlab-manager"} <= extensions
