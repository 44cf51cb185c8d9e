"""States and draws on disk, so that a run survives the end of its process.

A checkpoint is a folder. ``run.npz`` tells what the run is: data, settings, the state that each chain starts
from, and the goal. ``chain-0003/000000000500.npz`` holds the chunk of chain 3 that begins after iteration
500: its draws and the state at its end. Each file is written whole or not at all and never touched again, so
what is on disk is always a run up to some point, and a chunk costs the same however long the run is by then.

One process at a time works in a folder. The lock belongs to the process and ends with it, however it ends; a
file that merely exists would stay after a `kill -9`, and stand in the way of whoever resumes.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.arguments import check_count
from ewens_widgets.model.checks import check_data
from ewens_widgets.sampling.archive import (
    ArchiveError,
    MissingArchiveError,
    pack_posterior,
    read_archive,
    unpack_posterior,
    write_archive,
)
from ewens_widgets.sampling.chains.plan import Plan, Until, until
from ewens_widgets.sampling.chains.result import Chains
from ewens_widgets.sampling.chains.task import Setup
from ewens_widgets.sampling.chains.workers import ChainsError
from ewens_widgets.sampling.draws import label_type
from ewens_widgets.sampling.moves.schedule import from_plain, resolve_schedule, to_plain
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.sampler import ACCEPTANCES
from ewens_widgets.sampling.state import State, pack_state, unpack_state
from ewens_widgets.sampling.trace import Trace, pack_draws, unpack_draws

__all__ = ["Checkpoint", "FolderLock", "Place"]

_PLAN = "run.npz"
_PLAN_KIND = "run of chains"
_CHUNK_KIND = "chunk of a chain"
_LOCK = ".lock"
# What content raises that does not fit; no OSError, as a disk that fails says nothing about its files.
_UNFIT = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)
_LAST_ITERATION = 2**53  # More than any computer does.


class Place(NamedTuple):
    """Where a chunk belongs: the number of its chain, and the state that it begins at."""

    chain: int
    before: State


class Checkpoint:
    """The folder of a run.

    Parameters
    ----------
    path
        The folder.
    plan
        The run that it holds.
    lock
        Keeps other processes out while this one writes.
    """

    def __init__(self, path: Path, plan: Plan, lock: "FolderLock | None" = None) -> None:
        self.path = path
        self.plan = plan
        self._lock = lock

    @classmethod
    def begin(cls, path: str | os.PathLike[str], plan: Plan) -> "Checkpoint":
        """Make the checkpoint of a run, or go on with the one that an earlier call of the same run left."""
        folder = Path(path)
        _check_place(folder)
        folder.mkdir(parents=True, exist_ok=True)
        checkpoint = cls(folder, plan, FolderLock(folder))
        try:
            checkpoint._prepare()
        except BaseException:
            checkpoint.close()
            raise
        return checkpoint

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Checkpoint":
        """Open the checkpoint that a run left."""
        folder = Path(path)
        return cls(folder, _read_plan(folder / _PLAN))

    def close(self) -> None:
        """Let others work on the folder."""
        if self._lock is not None:
            self._lock.release()

    def write(self, place: Place, trace: Trace, state: State) -> None:
        """Keep a chunk: where it belongs, its draws, and the state at its end."""
        path = self._file(place)
        _write_chunk(path, self.plan, place, trace, state)
        _flush(path.parent)

    def read(self, chain: int) -> Iterator[tuple[Trace, State]]:
        """The chunks of a chain in order, each with the state at its end."""
        place = Place(chain, self.plan.first[chain])
        while (path := self._file(place)).exists():
            trace, state = self._read_chunk(path, place)
            yield trace, state
            place = Place(chain, state)
        later = [file for file in self._folder(chain).glob("*.npz") if file > path]
        if later:
            raise ArchiveError(
                f"the checkpoint has lost {str(path)!r}, but holds later chunks of the chain, such as "
                f"{later[0].name!r}. Bring it back, or {_delete_later(path)}"
            )

    def _prepare(self) -> None:
        """Write the plan, unless the folder has that of another run."""
        if (self.path / _PLAN).exists():
            found = _read_plan(self.path / _PLAN)
            if found.identity != self.plan.identity:
                raise FileExistsError(
                    f"{str(self.path)!r} holds the checkpoint of another run, with other data, settings, "
                    "starts or seed. Give another path, or go on with that run: "
                    f"ew.resume_chains({str(self.path)!r})."
                )
        for number in range(len(self.plan.first)):
            self._folder(number).mkdir(exist_ok=True)
        _write_plan(self.path / _PLAN, self.plan)
        _flush(self.path)

    def chains(self) -> Chains:
        """All draws so far."""
        nothing = Recorder(self.plan.setup.posterior).trace()
        numbers = range(len(self.plan.first))
        pieces = [[trace for trace, _ in self.read(number)] for number in numbers]
        traces = (Trace.concatenate(traces) if traces else nothing for traces in pieces)
        return Chains(tuple(traces), self.plan.starts)

    def _read_chunk(self, path: Path, place: Place) -> tuple[Trace, State]:
        try:
            return _read_chunk_file(path, self.plan, place)
        except _UNFIT as fault:
            raise ArchiveError(
                f"a chunk of the checkpoint cannot be used: {str(path)!r} ({fault}) All other files are as "
                f"they were. Bring back a good copy, or {_delete_later(path)}"
            ) from fault

    def _folder(self, chain: int) -> Path:
        return self.path / f"chain-{chain:04d}"

    def _file(self, place: Place) -> Path:
        return self._folder(place.chain) / f"{place.before.iteration:012d}.npz"


class FolderLock:
    """A lock on a folder, held from the beginning until `release`; Windows has no such locks.

    Parameters
    ----------
    folder
        An existing folder.
    """

    def __init__(self, folder: Path) -> None:
        self._file = (folder / _LOCK).open("a", encoding="utf-8")
        if sys.platform != "win32":
            self._lock(folder)

    def _lock(self, folder: Path) -> None:
        import fcntl

        try:
            # A record lock: forked children do not inherit it, so none can outlive its owner with it.
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            if fault.errno not in {errno.EACCES, errno.EAGAIN}:
                return  # A file system without locks.
            self.release()
            raise ChainsError(
                f"another process is working on the checkpoint {str(folder)!r}; wait for it or end it, or "
                "give another path."
            ) from fault

    def release(self) -> None:
        """Let others in."""
        with contextlib.suppress(OSError):
            self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.release()


def _write_plan(path: Path, plan: Plan) -> None:
    """Write data, settings, first states and goal."""
    setup = plan.setup
    settings, arrays = pack_posterior(setup.posterior)
    states = [pack_state(state) for state in plan.first]
    smallest = label_type(setup.posterior.n_objects)
    goal = plan.goal
    metadata = {
        "posterior": settings,
        "moves": to_plain(setup.schedule),
        "acceptance": setup.acceptance,
        "states": [parts for parts, _ in states],
        "starts": list(plan.starts),
        "burn_in": plan.burn_in,
        "thin": plan.thin,
        "goal": {"until": asdict(goal)} if isinstance(goal, Until) else {"draws": goal},
    }
    stored: dict[str, NDArray[Any]] = {
        **arrays,
        "labels": np.stack([labels.astype(smallest) for _, labels in states]),
    }
    if setup.raw is not None:
        stored["raw"] = setup.raw
    write_archive(path, _PLAN_KIND, metadata, stored)


def _read_plan(path: Path) -> Plan:
    """Read what `_write_plan` wrote."""
    try:
        metadata, arrays = read_archive(path, _PLAN_KIND)
    except MissingArchiveError as fault:
        raise MissingArchiveError(
            f"there is no checkpoint in {str(path.parent)!r}: it has no file {path.name!r}. Check the path."
        ) from fault
    try:
        return _plan_of(metadata, arrays)
    except _UNFIT as fault:
        raise ArchiveError(f"{str(path)!r} does not hold a complete run ({fault}).") from fault


def _plan_of(metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Plan:
    posterior = unpack_posterior(metadata["posterior"], arrays)
    rows = zip(metadata["states"], arrays["labels"], strict=True)
    if metadata["acceptance"] not in ACCEPTANCES:
        raise ValueError(f"unknown acceptance {metadata['acceptance']!r}")
    if len(metadata["starts"]) != len(metadata["states"]) or not metadata["states"]:
        raise ValueError("its starts and states do not match")
    goal = metadata["goal"]
    return Plan(
        setup=Setup(
            posterior=posterior,
            schedule=resolve_schedule(from_plain(metadata["moves"])),
            raw=np.ascontiguousarray(check_data(arrays["raw"])) if "raw" in arrays else None,
            acceptance=metadata["acceptance"],
        ),
        first=tuple(unpack_state(parts, labels, posterior) for parts, labels in rows),
        starts=tuple(str(start) for start in metadata["starts"]),
        burn_in=check_count("burn_in", metadata["burn_in"], 0),
        thin=check_count("thin", metadata["thin"], 1),
        goal=until(**goal["until"]) if "until" in goal else check_count("draws", goal["draws"], 1),
    )


def _write_chunk(path: Path, plan: Plan, place: Place, trace: Trace, after: State) -> None:
    """Write a chunk; with it goes which run and place it belongs to."""
    settings, labels = pack_state(after)
    moves, draws = pack_draws(trace)
    metadata = {
        "run": plan.identity,
        "chain": place.chain,
        "after": place.before.iteration,
        "state": settings,
        **moves,
    }
    compact = labels.astype(label_type(labels.size))
    write_archive(path, _CHUNK_KIND, metadata, {**draws, "state.labels": compact})


def _read_chunk_file(path: Path, plan: Plan, place: Place) -> tuple[Trace, State]:
    """Read a chunk; what does not belong at this place of the run raises one of several errors."""
    posterior = plan.setup.posterior
    metadata, arrays = read_archive(path, _CHUNK_KIND)
    wanted = plan.identity, place.chain, place.before.iteration
    if (metadata["run"], metadata["chain"], metadata["after"]) != wanted:
        raise ValueError("it belongs to another run or place")
    state = unpack_state(metadata["state"], arrays["state.labels"], posterior)
    trace = unpack_draws(metadata, arrays, posterior)
    if not _fit_together(plan, place.before, trace, state):
        raise ValueError("its draws and its state do not fit together")
    return trace, state


def _fit_together(plan: Plan, before: State, trace: Trace, after: State) -> bool:
    """Whether these are the draws from one state to another."""
    if not before.iteration < after.iteration <= _LAST_ITERATION:
        return False
    first, last = (plan.kept(state) for state in (before, after))
    due = plan.burn_in + plan.thin * (first + np.arange(1, len(trace) + 1))
    return len(trace) == last - first and bool(np.array_equal(trace.iterations, due))


def _check_place(folder: Path) -> None:
    """Refuse a folder that holds other things."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{str(folder)!r} is a file; the checkpoint of a run is a folder of its own.")
    if not folder.exists() or (folder / _PLAN).exists():
        return
    # What a run leaves that was killed before it had written its plan may be used again.
    ours = ("chain-", f".{_PLAN}.", _LOCK)
    others = [entry.name for entry in folder.iterdir() if not entry.name.startswith(ours)]
    if others:
        raise FileExistsError(
            f"{str(folder)!r} is not empty and no checkpoint (it holds {others[0]!r}); give a new or empty "
            "folder."
        )


def _delete_later(path: Path) -> str:
    return (
        f"delete the files of {path.parent.name!r} from {path.name!r} on and resume: those draws are then "
        "made again, the same as before."
    )


def _flush(folder: Path) -> None:
    """Have the names in a folder on disk too, where the system allows it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
