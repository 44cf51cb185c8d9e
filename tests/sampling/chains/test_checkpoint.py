"""Checkpoints: a run goes on as if nothing had happened, and what is on disk is never lost."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain_runs import Faulty, assert_same_draws, data, run

import ewens_widgets as ew
from ewens_widgets.sampling import archive
from ewens_widgets.sampling.archive import read_archive, write_archive
from ewens_widgets.sampling.chains.checkpoint import Checkpoint
from ewens_widgets.sampling.chains.task import Task
from ewens_widgets.sampling.chains.workers import InSequence


class Killed(BaseException):
    """Stands for the end of the process: nobody may handle it."""


class Mortal(InSequence):
    """Ends the whole run when it is given a certain task, counted from 0."""

    def __init__(self, last: int) -> None:
        self.left = last

    def submit(self, function: Callable[..., Any], /, *arguments: Task) -> Future[Any]:  # type: ignore[override]
        if self.left == 0:
            raise Killed
        self.left -= 1
        return super().submit(function, *arguments)


def die(path: Path, after: int, **arguments: object) -> None:
    with pytest.raises(Killed):
        run(checkpoint=path, executor=Mortal(after), **{"chunk": 5, **arguments})


def resume(path: Path, **arguments: Any) -> ew.Chains:  # noqa: ANN401 - of resume_chains
    return ew.resume_chains(path, **{"executor": InSequence(), "progress": False, **arguments})


def chunks(path: Path) -> list[Path]:
    return sorted(path.glob("chain-*/*.npz"))


def contents(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in chunks(path)}


@pytest.mark.parametrize("after", [0, 1, 6, 13, 19])
@pytest.mark.parametrize("chunk", [2, 5, None])
@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_same_draws(tmp_path: Path, after: int, chunk: int | None) -> None:
    path = tmp_path / "run"
    die(path, after)
    done = contents(path)
    chains = resume(path, chunk=chunk)
    assert_same_draws(chains, run())
    assert chains.starts == run().starts
    assert contents(path).items() >= done.items()


@pytest.mark.parametrize(
    "settings",
    [
        {"moves": "paper-2", "metric": "euclidean", "thin": 3},
        {"moves": [("split-merge", 2), "gibbs"], "concentration": ew.Gamma(2.0, 1.0)},
        {"model": "I", "theta_grid": [0.5, 1.0, 8.0], "alpha": 2.0, "initial": [[0] * 12] * 4},
        {"model": "III", "shapes": "own", "prior": ew.priors.FiniteMixture(0.5)},
        {"shapes": "own", "prior": ew.priors.PitmanYor(1.0, 0.2), "nu_grid": [2.0, 9.0], "moves": "paper-1"},
        {"model": "I", "prior": ew.priors.DirichletMultinomial(3, 1.0), "initial": "one-cluster"},
    ],
)
def test_all_settings_are_in_the_checkpoint(tmp_path: Path, settings: dict[str, Any]) -> None:
    die(tmp_path / "run", 9, **settings)
    assert_same_draws(resume(tmp_path / "run"), run(**settings))


def test_the_same_call_goes_on_too(tmp_path: Path) -> None:
    die(tmp_path, 9)
    executor = Faulty({})
    assert_same_draws(run(checkpoint=tmp_path, executor=executor, chunk=5), run())
    assert 4 * 5 - 9 <= len(executor.tasks) < 4 * 5


def test_a_finished_run_is_read_without_running_anything(tmp_path: Path) -> None:
    chains = run(checkpoint=tmp_path, chunk=5)
    executor = Faulty({})
    assert_same_draws(resume(tmp_path, executor=executor), chains)
    assert executor.tasks == []


def test_a_run_can_be_extended(tmp_path: Path) -> None:
    run(checkpoint=tmp_path, draws=8)
    assert_same_draws(resume(tmp_path, draws=20), run())
    assert_same_draws(resume(tmp_path), run())
    assert_same_draws(resume(tmp_path, draws=6), run(draws=6))


def test_what_is_there_can_be_loaded(tmp_path: Path) -> None:
    die(tmp_path, 9)
    loaded = ew.Chains.load(tmp_path)
    assert sum(len(trace) for trace in loaded) > 0
    assert_same_draws(loaded, [trace[: len(part)] for trace, part in zip(run(), loaded, strict=True)])


@pytest.mark.parametrize("other", [{"seed": 4}, {"model": "I"}, {"chains": 3}, {"burn_in": 6}, {"thin": 2}])
def test_another_run_is_not_overwritten(tmp_path: Path, other: dict[str, Any]) -> None:
    run(checkpoint=tmp_path)
    before = contents(tmp_path)
    with pytest.raises(FileExistsError, match=r"another run.*resume_chains"):
        run(checkpoint=tmp_path, **other)
    assert contents(tmp_path) == before
    assert_same_draws(resume(tmp_path), run())


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("all of it")
    with pytest.raises(FileExistsError, match=r"no checkpoint \(it holds 'thesis.txt'\)"):
        run(checkpoint=tmp_path)
    with pytest.raises(FileExistsError, match="is a file"):
        run(checkpoint=tmp_path / "thesis.txt")
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_what_a_run_leaves_that_was_killed_at_once_is_used_again(tmp_path: Path) -> None:
    (tmp_path / "chain-0000").mkdir()
    (tmp_path / ".run.npz.0123456789ab.tmp").write_bytes(b"half a file")
    assert_same_draws(run(checkpoint=tmp_path), run())


def test_there_must_be_a_checkpoint_to_resume(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no checkpoint in .*nowhere"):
        resume(tmp_path / "nowhere")
    with pytest.raises(ew.ArchiveError, match="there is no checkpoint in"):
        resume(tmp_path)


def test_a_path_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    executor = Faulty({})
    with pytest.raises(OSError, match="file"):
        run(checkpoint=tmp_path / "file" / "run", executor=executor)
    assert executor.tasks == []


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything can be written by root")
def test_a_folder_without_permission_is_refused_at_once(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="run"):
        run(checkpoint=tmp_path / "run")
    tmp_path.chmod(0o700)


def test_a_full_disk_loses_nothing_that_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0
    fsync = os.fsync

    def full(handle: int) -> None:
        nonlocal written
        written += 1
        if written > 14:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    monkeypatch.setattr(archive.os, "fsync", full)
    with pytest.raises(ew.ChainsError, match=r"could not be written.*No space left.*resume_chains") as caught:
        run(checkpoint=tmp_path, chunk=5)
    monkeypatch.undo()
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOSPC
    kept = caught.value.chains
    assert kept is not None
    assert sum(len(trace) for trace in kept) > 0
    assert_same_draws(kept, [trace[: len(part)] for trace, part in zip(run(), kept, strict=True)])
    assert not list(tmp_path.rglob("*.tmp"))
    before = contents(tmp_path)
    assert before
    assert_same_draws(resume(tmp_path), run())
    assert contents(tmp_path).items() >= before.items()


@pytest.mark.parametrize("left", [0, 10, 500, -1])
def test_a_truncated_chunk_is_named_and_can_be_made_again(tmp_path: Path, left: int) -> None:
    run(checkpoint=tmp_path, chunk=5)
    files = sorted((tmp_path / "chain-0002").iterdir())
    whole = files[2].read_bytes()
    files[2].write_bytes(whole[:left])
    before = contents(tmp_path)
    with pytest.raises(ew.ArchiveError, match=r"chain-0002/000000000010.npz.*delete the files.*resume"):
        resume(tmp_path)
    assert contents(tmp_path) == before
    for file in files[2:]:
        file.unlink()
    assert_same_draws(resume(tmp_path, chunk=5), run())
    assert contents(tmp_path).keys() == before.keys()
    assert files[2].read_bytes() == whole


def test_a_lost_chunk_is_noticed(tmp_path: Path) -> None:
    run(checkpoint=tmp_path, chunk=5)
    (tmp_path / "chain-0001" / "000000000010.npz").unlink()
    with pytest.raises(ew.ArchiveError, match=r"has lost .*chain-0001/000000000010.npz"):
        resume(tmp_path)


def test_a_chunk_of_another_chain_is_noticed(tmp_path: Path) -> None:
    run(checkpoint=tmp_path, chunk=5)
    stolen = (tmp_path / "chain-0001" / "000000000010.npz").read_bytes()
    (tmp_path / "chain-0003" / "000000000010.npz").write_bytes(stolen)
    with pytest.raises(ew.ArchiveError, match="belongs to another run or place"):
        resume(tmp_path)


def test_a_damaged_plan_is_refused(tmp_path: Path) -> None:
    run(checkpoint=tmp_path)
    plan = tmp_path / "run.npz"
    plan.write_bytes(plan.read_bytes()[:-9])
    with pytest.raises(ew.ArchiveError, match="damaged"):
        resume(tmp_path)
    with pytest.raises(ew.ArchiveError, match="damaged"):
        run(checkpoint=tmp_path)


def test_a_chunk_costs_the_same_however_long_the_run_is(tmp_path: Path) -> None:
    run(checkpoint=tmp_path, chains=1, draws=60, burn_in=0, chunk=10)
    sizes = [file.stat().st_size for file in chunks(tmp_path)]
    assert len(sizes) == 6
    assert max(sizes) < 1.5 * min(sizes)


def test_failed_chains_are_in_the_checkpoint_as_well(tmp_path: Path) -> None:
    executor = Faulty(dict.fromkeys(range(6, 100), RuntimeError("out of order")))
    with pytest.raises(ew.ChainsError, match=r"4 chains could not be finished.*resume_chains"):
        run(executor=executor, chunk=5, tries=2, checkpoint=tmp_path)
    assert_same_draws(resume(tmp_path), run())


def test_data_of_another_type_are_the_same_run(tmp_path: Path) -> None:
    run(checkpoint=tmp_path)
    again = ew.stream_chains(data().tolist(), draws=20, burn_in=5, seed=3, checkpoint=tmp_path)
    assert list(again) == []


@pytest.mark.skipif(os.name == "nt", reason="no such locks")
def test_two_processes_do_not_work_on_one_checkpoint(tmp_path: Path) -> None:
    run(checkpoint=tmp_path, draws=8)
    code = (
        "import fcntl, sys\nfile = open(sys.argv[1], 'a')\nfcntl.lockf(file, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\nsys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(ew.ChainsError, match="another process is working on"):
            resume(tmp_path)
        other.kill()
        other.wait()
        assert_same_draws(resume(tmp_path, draws=20), run())


JUNK: list[Any] = [
    None,
    [],
    {},
    "x",
    -1,
    1e308,
    True,
    [[1]],
    {"draws": -3},
    {"until": {"rhat": 0}},
    ["a", "b"],
]
ARRAYS = [
    np.zeros(0),
    np.zeros((2, 2)),
    np.array([np.nan]),
    np.array(["x"]),
    np.full((4, 12), 200, dtype=np.uint8),
]


def variants(content: dict[str, Any], junk: list[Any]) -> Iterator[dict[str, Any]]:
    """The content with one entry missing or replaced, also one level down."""
    for key, value in content.items():
        yield {name: entry for name, entry in content.items() if name != key}
        for other in junk:
            yield {**content, key: other}
        if isinstance(value, dict) and junk is JUNK:
            for inner in variants(value, junk):
                yield {**content, key: inner}


def chains_file(folder: Path) -> tuple[Path, str, Callable[[], object]]:
    path = folder / "chains.npz"
    run(chains=2, draws=9).save(path)
    return path, "chains", lambda: ew.Chains.load(path)


def plan_file(folder: Path) -> tuple[Path, str, Callable[[], object]]:
    run(chains=2, draws=9, checkpoint=folder)
    return folder / "run.npz", "run of chains", lambda: ew.Chains.load(folder)


def chunk_file(folder: Path) -> tuple[Path, str, Callable[[], object]]:
    run(chains=2, draws=9, burn_in=0, checkpoint=folder)
    checkpoint = Checkpoint.open(folder)
    return folder / "chain-0001" / "000000000000.npz", "chunk of a chain", lambda: list(checkpoint.read(1))


@pytest.mark.parametrize("make", [chains_file, plan_file, chunk_file])
def test_strange_content_is_refused(
    make: Callable[[Path], tuple[Path, str, Callable[[], object]]], tmp_path: Path
) -> None:
    path, kind, load = make(tmp_path)
    load()
    metadata, arrays = read_archive(path, kind)
    refused = total = 0
    for settings, stored in [
        *((strange, arrays) for strange in variants(metadata, JUNK)),
        *((metadata, strange) for strange in variants(arrays, ARRAYS)),
    ]:
        write_archive(path, kind, settings, stored)
        total, refused = total + 1, refused + 1
        with suppress(ew.ArchiveError):
            load()
            refused -= 1
    assert refused > 0.6 * total
