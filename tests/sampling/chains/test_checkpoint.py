"""Checkpoints: a run goes on as if nothing had happened, and what is on disk is never lost."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chain_runs import assert_beginning, assert_same_draws, data, run

import ewens_widgets as ew
from ewens_widgets.sampling import archive
from ewens_widgets.sampling.chains.checkpoint import Checkpoint
from ewens_widgets.sampling.sampler import Sampler


class Killed(BaseException):
    """Stands for the end of the process: no code may handle it."""


def die(path: Path, after: int, **arguments: object) -> None:
    """End a run when it has written some rounds."""
    original, count = Checkpoint.write, iter(range(10**9))

    def write(self: Checkpoint, pieces: Any) -> None:  # noqa: ANN401 - as there
        if next(count) == after:
            raise Killed
        original(self, pieces)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Checkpoint, "write", write)
        with pytest.raises(Killed):
            run(checkpoint=path, **{"chunk": 5, **arguments})


def resume(path: Path, **arguments: Any) -> ew.Chains:  # noqa: ANN401 - of resume_chains
    return ew.resume_chains(path, **{"n_jobs": 1, "progress": False, **arguments})


def contents(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in sorted(path.glob("round-*.npz"))}


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Iterations at which tasks began."""
    found: list[int] = []
    original = Sampler.extend

    def extend(self: Sampler, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - whatever it takes
        found.append(self.iteration)
        original(self, *arguments, **named)

    monkeypatch.setattr(Sampler, "extend", extend)
    return found


@pytest.mark.parametrize(("after", "chunk"), [(0, 2), (1, None), (3, 2), (4, 5)])
def test_a_killed_run_goes_on_with_the_same_draws(tmp_path: Path, after: int, chunk: int | None) -> None:
    path = tmp_path / "run"
    die(path, after)
    done = contents(path)
    assert len(done) == after
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
        {"model": "III", "shapes": "own", "prior": ew.priors.FiniteMixture(0.5), "centre": "unknown"},
        {"shapes": "own", "prior": ew.priors.PitmanYor(1.0, 0.2), "nu_grid": [2.0, 9.0], "moves": "paper-1"},
        {"model": "I", "prior": ew.priors.DirichletMultinomial(3, 1.0), "initial": "one-cluster"},
    ],
)
def test_all_settings_are_in_the_checkpoint(tmp_path: Path, settings: dict[str, Any]) -> None:
    die(tmp_path / "run", 2, **settings)
    assert_same_draws(resume(tmp_path / "run"), run(**settings))


def test_the_same_call_goes_on_and_a_finished_run_is_only_read(tmp_path: Path, tasks: list[int]) -> None:
    die(tmp_path, 2)
    assert_beginning(ew.Chains.load(tmp_path), run())
    tasks.clear()
    chains = run(checkpoint=tmp_path, chunk=5)
    assert_same_draws(chains, run())
    assert min(tasks[:4]) == 10
    tasks.clear()
    assert_same_draws(resume(tmp_path), chains)
    # Data of another type are the same run.
    settings = {"draws": 20, "burn_in": 5, "seed": 3, "checkpoint": tmp_path, "progress": False}
    assert_same_draws(ew.sample_chains(data().tolist(), **settings), chains)
    assert tasks == []


def test_a_run_can_be_extended(tmp_path: Path) -> None:
    run(checkpoint=tmp_path, draws=8)
    assert_same_draws(resume(tmp_path, draws=20), run())
    assert_same_draws(resume(tmp_path), run())
    assert_same_draws(resume(tmp_path, draws=6), run(draws=6))


def test_a_stopping_rule_is_kept_and_can_be_given_later(tmp_path: Path) -> None:
    rule = ew.until(rhat=1.1, ess=200, most=3000, first=40)
    expected = run(draws=None, until=rule, burn_in=50)
    die(tmp_path / "one", 3, draws=None, until=rule, burn_in=50, chunk=30)
    resumed = resume(tmp_path / "one")
    run(draws=2000, burn_in=50, checkpoint=tmp_path / "two")
    for found in (resumed, resume(tmp_path / "two", until=rule)):
        assert_same_draws(found, expected)
        assert found.checks == expected.checks


def test_another_run_and_other_folders_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run(checkpoint=path)
    before = contents(path)
    for other in ({"seed": 4}, {"model": "I"}, {"chains": 3}, {"burn_in": 6}, {"thin": 2}):
        with pytest.raises(FileExistsError, match=r"another run.*resume_chains"):
            run(checkpoint=path, **other)
    assert contents(path) == before
    assert_same_draws(resume(path), run())
    thesis = tmp_path / "folder" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("all of it")
    with pytest.raises(FileExistsError, match=r"no checkpoint \(it holds 'thesis.txt'\)"):
        run(checkpoint=thesis.parent)
    with pytest.raises(FileExistsError, match="is a file"):
        run(checkpoint=thesis)
    assert list(thesis.parent.iterdir()) == [thesis]


def test_what_a_run_leaves_that_was_killed_at_once_is_used_again(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    (tmp_path / ".run.npz.0123456789ab.tmp").write_bytes(b"half a file")
    assert_same_draws(run(checkpoint=tmp_path), run())


def test_folders_without_a_checkpoint_or_that_cannot_be_made_are_refused_at_once(
    tmp_path: Path, tasks: list[int]
) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no checkpoint in .*nowhere"):
        resume(tmp_path / "nowhere")
    with pytest.raises(ew.ArchiveError, match="there is no checkpoint in"):
        resume(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        run(checkpoint=tmp_path / "file" / "run")
    assert tasks == []


def test_a_full_disk_loses_nothing_that_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0
    fsync = os.fsync

    def full(handle: int) -> None:
        nonlocal written
        written += 1
        if written > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    monkeypatch.setattr(archive.os, "fsync", full)
    with pytest.raises(ew.ChainsError, match=r"could not save.*No space left.*resume_chains") as caught:
        run(checkpoint=tmp_path, chunk=5)
    monkeypatch.undo()
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOSPC
    assert isinstance(caught.value.chains, ew.Chains)
    assert_beginning(caught.value.chains, run())
    assert not list(tmp_path.rglob("*.tmp"))
    before = contents(tmp_path)
    assert len(before) == 2
    assert_same_draws(resume(tmp_path), run())
    assert contents(tmp_path).items() >= before.items()


@pytest.mark.parametrize("left", [0, 10, 500, -1])
def test_a_truncated_round_is_named_and_can_be_made_again(tmp_path: Path, left: int) -> None:
    run(checkpoint=tmp_path, chunk=5)
    files = list(contents(tmp_path))
    whole = files[2].read_bytes()
    files[2].write_bytes(whole[:left])
    before = contents(tmp_path)
    with pytest.raises(ew.ArchiveError, match=r"round-00000002.npz.*delete the rounds.*resume"):
        resume(tmp_path)
    assert contents(tmp_path) == before
    for file in files[2:]:
        file.unlink()
    assert_same_draws(resume(tmp_path, chunk=5), run())
    assert contents(tmp_path).keys() == before.keys()


def test_lost_and_exchanged_rounds_are_noticed(tmp_path: Path) -> None:
    run(checkpoint=tmp_path, chunk=5)
    run(checkpoint=tmp_path / "other", chunk=5, seed=4)
    lost, later = tmp_path / "round-00000002.npz", tmp_path / "round-00000003.npz"
    whole = lost.read_bytes()
    for other in (later, tmp_path / "other" / lost.name):
        lost.write_bytes(other.read_bytes())
        with pytest.raises(ew.ArchiveError, match=r"do not follow on|belongs to another run"):
            resume(tmp_path)
    lost.unlink()
    with pytest.raises(ew.ArchiveError, match=r"00002.npz' is lost, but 'round-00000003.npz' is there"):
        resume(tmp_path)
    lost.write_bytes(whole)
    assert_same_draws(resume(tmp_path), run())


def test_a_damaged_plan_is_refused(tmp_path: Path) -> None:
    run(checkpoint=tmp_path)
    plan = tmp_path / "run.npz"
    plan.write_bytes(plan.read_bytes()[:-9])
    for go_on in (resume, lambda path: run(checkpoint=path)):
        with pytest.raises(ew.ArchiveError, match="damaged"):
            go_on(tmp_path)


def test_a_round_costs_the_same_however_long_the_run_is(tmp_path: Path) -> None:
    run(checkpoint=tmp_path, chains=1, draws=60, burn_in=0, chunk=10)
    sizes = [len(content) for content in contents(tmp_path).values()]
    assert len(sizes) == 6
    assert max(sizes) < 1.5 * min(sizes)


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


DRIVER = """
import sys
import ewens_widgets as ew
from ewens_widgets.sampling.chains.checkpoint import Checkpoint

original, rounds = Checkpoint.write, iter(range(10**9))

def write(self, pieces):
    if next(rounds) == 3:
        print("in the middle", flush=True)
        sys.stdin.read()  # until it is killed
    original(self, pieces)

Checkpoint.write = write
data = ew.datasets.unit_square(seed=1)
ew.sample_chains(data, draws=400, burn_in=60, seed=8, chunk=86, checkpoint=sys.argv[1], progress=False)
"""


@pytest.mark.slow
def test_a_kill_of_the_process_costs_nothing_that_was_done(tmp_path: Path) -> None:
    path, script = tmp_path / "run", tmp_path / "driver.py"
    script.write_text(DRIVER)
    command = [sys.executable, str(script), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "in the middle\n"
        driver.kill()
    assert len(contents(path)) == 3
    square = ew.datasets.unit_square(seed=1)
    undisturbed = ew.sample_chains(square, draws=400, burn_in=60, seed=8, progress=False)
    assert_same_draws(resume(path), undisturbed)
