"""A full disk, a home that cannot be written to: nothing is lost, and what can go on does."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ewens_widgets as ew

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
