"""Chains that start before they are compiled: interpreted until then, with the same draws."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ewens_widgets as ew
from ewens_widgets.sampling import cold_start, compiled, driver
from ewens_widgets.sampling.moves import gibbs

BACKGROUND = "compiling in the background; interpreted until then"
WAITING = "compiling, once for all later runs"

needs_compiler = pytest.mark.skipif(not compiled.COMPILED, reason="without a compiler")


def data(n: int) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(n, 2)) + 3.0 * (np.arange(n) % 2)[:, None]


class PatientCode:
    """Stands for machine code that is at hand when it has been looked for so many times."""

    def __init__(self, looks: int) -> None:
        self.left = looks
        self.is_known = False
        self.waits = 0

    def is_at_hand(self) -> bool:
        self.left -= 1
        self.is_known = self.is_known or self.left < 0
        return self.is_known

    def wait(self, seconds: float) -> bool:
        assert seconds > 0
        self.waits += 1
        return self.is_at_hand()


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], PatientCode]:
    """Have the chains that are made from now on find no machine code at first."""

    def make(looks: int) -> PatientCode:
        code = PatientCode(looks)
        monkeypatch.setenv("EWENS_WIDGETS_WAIT", "")
        monkeypatch.setattr(driver, "code_for", lambda *_: code)
        return code

    return make


SCHEDULES: dict[str, Any] = {"default": "default", "paper-2": "paper-2", "mixed": ["gibbs", "split-merge"]}


@pytest.mark.parametrize("thin", [1, 4])
@pytest.mark.parametrize("name", sorted(SCHEDULES))
@pytest.mark.parametrize("looks", [2, 8, 40])
def test_a_block_changes_over_in_its_middle(
    name: str, thin: int, looks: int, cold: Callable[[int], PatientCode]
) -> None:
    def run() -> tuple[list[object], object]:
        sampler = ew.Sampler(data(9), moves=SCHEDULES[name], seed=4)
        block = sampler.advance(5, thin=thin)
        names = ("iterations", "labels", "log_posterior", "theta_index", "theta_weights", "acceptances")
        return [np.asarray(getattr(block, name)).tolist() for name in names], sampler.state.generator

    expected = run()
    code = cold(looks)
    assert run() == expected
    assert code.left < looks - 2


def test_interpreted_functions_call_interpreted_ones() -> None:
    loop = compiled.interpreted(driver.advance_by_likelihood)
    assert not hasattr(loop, "py_func")
    assert not hasattr(loop.__globals__["gibbs_sweep"], "py_func")
    assert not hasattr(loop.__globals__["gibbs_sweep"].__globals__["conditional_weights"], "py_func")
    assert compiled.interpreted(loop) is loop
    assert loop.__globals__["gibbs_sweep"] is compiled.interpreted(gibbs.gibbs_sweep)


def test_what_waits_for_the_compiler_says_so(
    cold: Callable[[int], PatientCode], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = cold(30)
    assert len(ew.Sampler(data(9), seed=4).sample(100, progress=True)) == 100
    said = capsys.readouterr().err
    assert BACKGROUND in said
    assert BACKGROUND not in said.split("\r")[-1]
    assert WAITING not in said
    assert code.waits == 0
    # Large data wait.
    code = cold(20)
    sampler = ew.Sampler(data(5000), seed=4, initial="one-cluster")
    assert not sampler.prepare()
    assert sampler.compilation == WAITING
    sampler.sample(1, progress=True)
    said = capsys.readouterr().err
    assert WAITING in said
    assert BACKGROUND not in said
    assert code.waits > 5
    assert sampler.prepare()
    assert sampler.compilation == ""
    # So does who wants compiled code only.
    code = cold(10)
    monkeypatch.setattr(driver, "interpreted", None)
    ew.Sampler(data(9), seed=4).compile(progress=False)
    assert code.is_known
    code = cold(10)
    monkeypatch.setenv("EWENS_WIDGETS_WAIT", "1")
    ew.Sampler(data(9), seed=4).sample(3, progress=False)
    assert code.is_known
    assert code.waits > 3


@needs_compiler
@pytest.mark.parametrize("fault", ["no cache", "no interpreter", "no process"])
def test_where_nobody_can_compile_in_the_background_the_call_does(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError

    asked: list[object] = []
    code = cold_start.Code(compiled.entry(data), (object,))
    code._function = SimpleNamespace(py_func=data, compile=asked.append)
    assert not code.is_known
    if fault == "no cache":
        code._mark = None
    elif fault == "no interpreter":
        monkeypatch.setattr(cold_start.sys, "executable", "")
    else:
        monkeypatch.setattr(cold_start.subprocess, "Popen", refuse)
    assert code.is_at_hand()
    assert asked == ([] if fault == "no cache" else [(object,)])  # Without a cache the call itself compiles.


# A chain in a process of its own, whose folder of machine code is empty at first; what is said, and the draws
# until after it has changed over, are printed.
COLD = """
import json, sys
import numpy as np
import ewens_widgets as ew
from ewens_widgets.sampling.moves import gibbs

n, thin, rows = map(int, sys.argv[1:])
X = np.random.default_rng(3).normal(size=(n, 2)) + 3.0 * (np.arange(n) % 2)[:, None]
print(json.dumps("ready"), flush=True)
sys.stdin.readline()
sampler = ew.Sampler(X, seed=12, initial="one-cluster")
can_run = sampler.prepare()
said = [sampler.compilation]
blocks = [sampler.advance(rows or 1, thin=thin)]  # where machine code is found, so many at once
said.append(sampler.compilation)
compiled_here = len(gibbs.gibbs_sweep.signatures)
while sampler.compilation:
    blocks.append(sampler.advance(2, thin=thin))
    said.append(sampler.compilation)
blocks += [sampler.advance(2, thin=thin) for _ in range(0 if rows else 3)]
print(json.dumps({
    "can_run": can_run, "said": said, "compiled_here": compiled_here,
    "rows": sum(len(block) for block in blocks),
    "state": [sampler.state.generator["state"], sampler.labels.tolist(), sampler.iteration],
    "labels": [row.tolist() for block in blocks for row in block.labels],
    "log_posterior": [value for block in blocks for value in block.log_posterior.tolist()],
    "acceptances": [row.tolist() for block in blocks for row in block.acceptances],
}))
"""


def start(code: str, *arguments: int, cwd: Path, **environment: str) -> "subprocess.Popen[str]":
    """Run code in a new interpreter that need not wait for the compiler."""
    paths = [environment.pop("PYTHONPATH", str(Path(ew.__file__).parent.parent))]
    variables = {**os.environ, "EWENS_WIDGETS_WAIT": "", "PYTHONPATH": os.pathsep.join(paths), **environment}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, env=variables, cwd=cwd, text=True, **pipes)


def end(process: "subprocess.Popen[str]") -> Any:  # noqa: ANN401 - whatever it printed
    """Wait until it has ended, and return what it said."""
    out, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(out.splitlines()[-1])


@needs_compiler
@pytest.mark.slow
def test_cold_chains_change_over_to_what_one_child_compiles(tmp_path: Path) -> None:
    """Three processes at once, then warm ones."""
    cache = tmp_path / "cache"
    cache.mkdir()
    sizes = ((12, 3, 0), (12, 3, 0), (5000, 1, 0))
    running = [start(COLD, *size, cwd=tmp_path, NUMBA_CACHE_DIR=str(cache)) for size in sizes]
    # All are there before the first begins: one that starts late on a busy machine would find it compiled.
    for process in running:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == "ready"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    *chains, large = map(end, running)
    for chain in chains:
        assert chain["can_run"]
        assert chain["said"][:2] == [BACKGROUND, BACKGROUND]
        assert chain["said"][-1] == ""
        assert chain["compiled_here"] == 0
        assert len({tuple(labels) for labels in chain["labels"]}) > 3
        warm = end(start(COLD, 12, 3, chain["rows"], cwd=tmp_path, NUMBA_CACHE_DIR=str(cache)))
        assert set(warm["said"]) == {""}
        for name in ("state", "labels", "log_posterior", "acceptances"):
            assert chain[name] == warm[name]
    assert not large["can_run"]
    assert large["said"][0].startswith(WAITING)
    assert large["said"][1] == ""  # Not one iteration was interpreted.
    assert len(list(cache.rglob("*.lock"))) == 1, "all three want the same code"


@needs_compiler
def test_without_any_place_for_machine_code_there_is_nobody_to_wait_for(tmp_path: Path) -> None:
    package = Path(ew.__file__).parent
    shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / package.name / "__pycache__").write_text("in the way, even of an administrator")
    nowhere = os.devnull + "/nowhere"
    code = """
import json, numpy as np, ewens_widgets as ew
from ewens_widgets.sampling import driver
sampler = ew.Sampler(np.arange(6.0).reshape(3, 2), seed=1)
print(json.dumps([driver.__file__, driver.advance_by_likelihood.stats.cache_path,
                  sampler.prepare(), sampler.compilation]))
"""
    places = {"HOME": nowhere, "XDG_CACHE_HOME": nowhere, "NUMBA_CACHE_DIR": nowhere}
    process = start(code, cwd=tmp_path, PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1", **places)
    file = str(tmp_path / package.name / "sampling" / "driver.py")
    assert end(process) == [file, None, True, ""]  # So the first call compiles, as numba does.
