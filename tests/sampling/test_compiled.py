"""The kernels interpreted and compiled: the same chain."""

import copy
import importlib
import itertools
import json
import os
import pickle
import pkgutil
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest
from sampling.exact import mixed
from sampling.short_chains import all_chains

import ewens_widgets as ew
from ewens_widgets.sampling import compiled, driver, kernel
from ewens_widgets.sampling import moves as all_moves
from ewens_widgets.sampling.kernel import partition_changes


def fresh_interpreter(code: str, **environment: str) -> str:
    """Run code in a new interpreter that finds the tests, and return what it prints."""
    tests = str(Path(__file__).resolve().parent.parent)
    paths = [tests, *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("moves", ["default", "paper-2"])
@pytest.mark.parametrize("shapes", ["common", "own"])
def test_a_family_is_compiled_once_without_and_once_with_categories(shapes: str, moves: str) -> None:
    """Gaps, the centre, the model and copies are values: each type takes some 15 seconds to compile."""
    numba = pytest.importorskip("numba")
    numbers = np.random.default_rng(0).normal(size=(8, 2))
    gaps = numbers.copy()
    gaps[[1, 4], [0, 1]] = np.nan
    categories = np.array([[0.0, 1.0] * 4]).T
    missing = categories.copy()
    missing[2] = np.nan
    found = []
    for tables in ([numbers, gaps], [mixed(X, C) for X in (numbers, gaps) for C in (categories, missing)]):
        types = set()
        for X, model, centre in itertools.product(tables, ("I", "III"), ("mean", "unknown")):
            sampler = ew.Sampler(X, model=model, shapes=shapes, moves=moves, centre=centre)
            for one in (sampler, copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))):  # noqa: S301 - its own
                for _, arguments in one._driver.trials().values():
                    types.add(tuple(map(str, map(numba.typeof, arguments))))
        found.append(types)
    assert [len(types) for types in found] == [1, 1]
    assert found[0] != found[1]


@pytest.mark.slow
@pytest.mark.skipif(not compiled.COMPILED, reason="without a compiler there is nothing to compare")
def test_interpreted_and_compiled_chains_are_the_same() -> None:
    code = (
        "import json; from sampling.short_chains import all_chains; "
        "from ewens_widgets.sampling import compiled; "
        "assert not compiled.COMPILED; print(json.dumps(all_chains()))"
    )
    interpreted = json.loads(fresh_interpreter(code, EWENS_WIDGETS_INTERPRETED="1"))
    chains = json.loads(json.dumps(all_chains()))
    assert interpreted.keys() == chains.keys()
    for name, chain in chains.items():
        other = interpreted[name]
        for exact in ("labels", "theta_index", "nu_index", "moves", "generator"):
            assert chain[exact] == other[exact], (name, exact)
        for close in ("log_posterior", "concentration", "theta_weights", "sigma"):
            np.testing.assert_allclose(chain[close], other[close], rtol=1e-10, atol=1e-10, err_msg=name)
        ratios = [np.array(side["log_ratio"], dtype=np.float64) for side in (chain, other)]
        np.testing.assert_allclose(*ratios, rtol=1e-9, atol=1e-9, err_msg=name)
        assert len({tuple(labels) for labels in chain["labels"]}) > 3, f"{name} hardly moved"


def test_the_switch_and_what_runs_without_numba() -> None:
    code = (
        "from ewens_widgets.sampling import compiled\n"
        "from ewens_widgets.sampling.kernel.partition_changes import choose\n"
        "import numpy as np\n"
        "print(compiled.COMPILED, compiled.COMPILED or [choose(np.array([0.0, 1.0, 3.0, 0.0]), 4, u)"
        " for u in (0.0, 0.2, 0.26, 0.999999)])"
    )
    for value, expected in (("0", "True True"), ("1", "False [1, 1, 2, 2]")):
        assert fresh_interpreter(code, EWENS_WIDGETS_INTERPRETED=value).strip() == expected
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import numpy as np, ewens_widgets as ew\n"
        "X = np.random.default_rng(0).normal(size=(6, 2))\n"
        "sampler = ew.Sampler(X, moves=['split-merge', 'gibbs'])\n"
        "print(len(sampler.sample(5, progress=False)))"
    )
    assert fresh_interpreter(code).strip() == "5"


def package_of(place: Path) -> Path:
    """A package with one kernel."""
    (place / "sampling" / "moves").mkdir(parents=True)
    (place / "sampling" / "moves" / "gibbs.py").write_text("first")
    return place


def test_machine_code_belongs_to_the_content_of_all_sources(tmp_path: Path) -> None:
    """Numba compares with the file of a function alone, not with the files of what it calls."""
    source = package_of(tmp_path) / "sampling" / "moves" / "gibbs.py"
    first = compiled.fingerprint(tmp_path)
    os.utime(source, ns=(1, 1))
    assert compiled.fingerprint(tmp_path) == first  # So a copy is as good as the original.
    (tmp_path / "sampling" / "unrelated.py").write_text("no kernel")
    assert compiled.fingerprint(tmp_path) == first
    source.write_text("second")
    assert compiled.fingerprint(tmp_path) != first
    source.write_text("first")
    (source.parent / "other.py").write_text("")
    assert compiled.fingerprint(tmp_path) != first


needs_compiler = pytest.mark.skipif(not compiled.COMPILED, reason="without a compiler")


@needs_compiler
def test_entries_are_kept_in_a_folder_of_these_sources_and_nothing_of_numba_changes() -> None:
    import numba

    folder = str(compiled.FOLDER)
    assert driver.advance_by_likelihood.stats.cache_path.startswith(folder)
    assert partition_changes.choose.stats.cache_path is None  # It is part of the entries that call it.
    assert not str(numba.config.CACHE_DIR).startswith(folder)
    assert not str(numba.njit(cache=True)(package_of).stats.cache_path).startswith(folder)


@needs_compiler
def test_other_sources_have_another_folder_and_old_ones_go(tmp_path: Path) -> None:
    package, chosen = package_of(tmp_path / "package"), tmp_path / "chosen"
    source = package / "sampling" / "moves" / "gibbs.py"
    folders = []
    for edit in range(8):
        source.write_text(f"edit {edit}")
        folder = compiled._find_folder(str(chosen), package)
        assert folder is not None
        os.utime(folder, (edit, edit))
        folders.append(folder)
    assert compiled._find_folder(str(chosen), package) == folders[-1]
    assert len(set(folders)) == 8
    assert sorted(chosen.iterdir()) == sorted(folders[-4:])
    beside = compiled._find_folder("", package)
    assert beside is not None
    assert beside.parent == package / "__pycache__"


@needs_compiler
def test_code_that_came_with_an_installation_is_taken_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = package_of(tmp_path / "package")
    came = compiled._find_folder("", package)
    assert came is not None
    (came / "loop.nbi").write_text("index")
    place = compiled._find_folder(str(tmp_path / "writable"), package)
    assert place is not None
    assert list(place.iterdir()) == []  # Who can write beside the sources may ask for an empty place.
    monkeypatch.setattr(compiled.os, "access", lambda *_: False)
    mine = compiled._find_folder(str(tmp_path / "mine"), package)
    assert mine is not None
    assert (mine / "loop.nbi").read_text() == "index"
    (mine / "loop.nbi").write_text("with more")
    assert compiled._find_folder(str(tmp_path / "mine"), package) == mine
    assert (mine / "loop.nbi").read_text() == "with more"


def test_inner_functions_return_no_arrays() -> None:
    """Without reference counts a view that is handed out would be freed while it is in use."""
    functions = {}
    for package in (kernel, all_moves):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(module.name)).items():
                function = getattr(value, "py_func", None)
                if function is not None and function.__module__ == module.name:
                    functions[f"{module.name}.{name}"] = typing.get_type_hints(function)["return"]
    assert len(functions) > 60 or not compiled.COMPILED
    allowed = (type(None), int, float, bool, tuple[int, int])
    assert {name: kind for name, kind in functions.items() if kind not in allowed} == {}
