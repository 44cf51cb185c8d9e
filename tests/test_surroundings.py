"""A full disk, a home that cannot be written to, a clock that jumps: nothing is lost, all else goes on."""

import asyncio
import errno
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ewens_widgets as ew
from ewens_widgets.sampling import cold_start, compiled
from ewens_widgets.sampling.kernel.own_draws import _solve_lower

X = np.random.default_rng(3).normal(size=(12, 2))
WORK = """
import numpy as np
import ewens_widgets as ew

trace = ew.Sampler(np.random.default_rng(3).normal(size=(12, 2)), seed=1).sample(5, progress=False)
print(trace.labels.tolist())
"""


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


SAVERS: dict[str, Callable[[], object]] = {
    "sampler": lambda: ew.Sampler(X, seed=1),
    "trace": lambda: ew.Sampler(X, seed=1).sample(3, progress=False),
    "explorer": lambda: ew.Explorer(X, iterations=10, burn_in=0),
}


@pytest.mark.parametrize("name", sorted(SAVERS))
def test_a_full_disk_leaves_the_file_that_was_there(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, saver = tmp_path / "file.npz", SAVERS[name]()
    saver.save(path)  # type: ignore[attr-defined]
    before = path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="could not save, and changed nothing: No space left"):
            saver.save(path)  # type: ignore[attr-defined]
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["file.npz"]
    saver.save(path)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_without_a_home_and_a_place_for_caches_the_chain_is_the_same(tmp_path: Path) -> None:
    nowhere = os.devnull + "/nowhere"  # Not even an administrator can make that folder.
    homeless = {**os.environ, "HOME": nowhere, "XDG_CACHE_HOME": nowhere, "EWENS_WIDGETS_DATA": nowhere}
    said = [
        subprocess.run(
            [sys.executable, "-c", WORK],
            env=variables,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for variables in (dict(os.environ), homeless)
    ]
    assert said[0] == said[1] != ""


@pytest.mark.skipif(not compiled.COMPILED, reason="without a compiler")
@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.ENOENT], ids=os.strerror)
def test_machine_code_that_cannot_be_kept_is_used(
    fault: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full, or the folder of caches cannot be written to any more, or is gone."""
    from numba.core import caching

    tries: list[str] = []

    def refuse(_: object, path: str) -> None:
        tries.append(path)
        raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(compiled, "FOLDER", tmp_path)
    monkeypatch.setattr(cold_start, "FOLDER", tmp_path)
    monkeypatch.setattr(cold_start.Code, "_start", lambda _: None)  # no child process compiles either
    monkeypatch.setattr(caching.IndexDataCacheFile, "_open_for_write", refuse)
    solve = compiled.entry(_solve_lower.py_func)  # small, and not compiled yet
    solution = np.zeros(2)
    arguments = np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([4.0, 5.0]), solution
    assert cold_start.code_for(solve, arguments).is_at_hand()
    solve(*arguments)
    assert solution.tolist() == [2.0, 3.0]
    assert solve.signatures
    assert tries
    assert not list(tmp_path.rglob("*.nb[ci]"))


def test_a_clock_that_jumps_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody sets it, or a laptop wakes up: the time of day is a year off, forth or back, at each look."""
    expected = ew.Sampler(X, model="III", seed=1).sample(40, progress=False)
    jumps, now = itertools.cycle([3.2e7, -6.4e7, 3.2e7]), time.time()

    def wall_clock() -> float:
        nonlocal now
        now += next(jumps)
        return now

    monkeypatch.setattr(time, "time", wall_clock)

    async def play() -> ew.Trace:
        explorer = ew.Explorer(X, model="III", seed=1, iterations=40, burn_in=0, speed=None)
        explorer.player.play()
        await explorer.player.wait()
        explorer.save(tmp_path / "explorer.npz")
        again = ew.Explorer(X)
        again.load(tmp_path / "explorer.npz")
        trace = again.recorder.trace()
        for one in (explorer, again):
            one.close()
        return trace

    np.testing.assert_array_equal(asyncio.run(play()).labels, expected.labels)
