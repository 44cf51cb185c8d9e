"""The plan of a run, and its folder on disk: states and draws that outlive the process.

``run.npz`` holds the plan: data, settings, the state that each chain starts from, and the goal.
``round-00000012.npz`` holds the draws of one round of tasks and the states at its end. Each file is written
whole or not at all and never changed, so what is on disk is always a run up to some point, and the cost of a
round does not grow with the length of the run.

One process at a time works in a folder. It holds a lock on the file ``.lock``, which the system releases when
the process ends. The mere existence of a file would not do: it would remain after a `kill -9`.
"""

import errno
import hashlib
import json
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import inf
from pathlib import Path
from typing import IO, Any

import numpy as np

from ewens_widgets.arguments import check_count
from ewens_widgets.sampling.archive import (
    ArchiveError,
    MissingArchiveError,
    prefixed,
    read_archive,
    under,
    write_archive,
)
from ewens_widgets.sampling.chains.result import Chains, ChainsError, Until, until
from ewens_widgets.sampling.draws import DrawTable, label_type
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.state import State, pack_sampler, pack_state, unpack_sampler, unpack_state
from ewens_widgets.sampling.trace import Trace, pack_draws, unpack_draws

_PLAN, _LOCK = "run.npz", ".lock"
# What content raises that does not fit; no OSError, as a disk that fails says nothing about its files.
_UNFIT = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)
_LAST_ITERATION = 2**53  # More than any computer does.
_latest: list["Plan"] = []  # In a worker process, the plan of the last task.


@dataclass(eq=False)
class Plan:
    """All that determines the draws of a run, and its goal; not where or in which pieces it is done.

    Attributes
    ----------
    sampler
        A sampler with the data and settings of all chains.
    first
        State of each chain before its first iteration.
    starts
        What each chain starts from, in words.
    burn_in, thin
        Iterations before the first draw, and per draw.
    goal
        Draws of each chain, or a stopping rule.
    deadline
        When the tasks of this process are to end; None, as other processes have it, leaves that to the task.
    running, results
        Of the tasks in this process: chains that are being advanced, and what came of the others.
    """

    sampler: Sampler
    first: tuple[State, ...]
    starts: tuple[str, ...]
    burn_in: int
    thin: int
    goal: int | Until
    deadline: float | None = None
    running: set[int] = field(default_factory=set, repr=False)
    results: list[Any] = field(default_factory=list, repr=False)
    _samplers: dict[int, Sampler] = field(default_factory=dict, repr=False)
    _key: str = field(default_factory=lambda: secrets.token_hex(8))

    def sampler_at(self, chain: int, state: State) -> Sampler:
        """The sampler of a chain, put into a state; it is kept, as some moves compute distances first."""
        found = self._samplers.get(chain)
        if found is None:
            own = self.sampler
            parts = own.posterior, own.schedule, own.raw_data, own.acceptance
            found = Sampler.from_parts(*parts, first=self.first[0], current=state, warn=False)
            self._samplers[chain] = found
        found.restore(state)
        return found

    def kept(self, state: State) -> int:
        """Draws of a chain up to a state."""
        return max(0, state.iteration - self.burn_in) // self.thin

    def share(self, state: State, goal: int, chunk: int | None) -> tuple[int, int]:
        """Iterations of burn-in and draws to run next; of at most a chunk, rounded up to a whole draw."""
        burn_in, draws = max(0, self.burn_in - state.iteration), goal - self.kept(state)
        if chunk is None:
            return burn_in, draws
        burn_in = min(burn_in, chunk)
        return burn_in, min(draws, -(-(chunk - burn_in) // self.thin))

    @cached_property
    def identity(self) -> str:
        """Digest of what determines the draws: everything but the goal."""
        metadata, arrays = _pack(self)
        del metadata["goal"]
        digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
        for name, array in sorted(arrays.items()):
            digest.update(f"{name} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        own = self.sampler
        parts = own.posterior, own.schedule, own.raw_data, own.acceptance
        deadline = inf if self.deadline == inf else None
        return _in_worker, (self._key, parts, self.first[:1], self.burn_in, self.thin, deadline)


def _in_worker(key: str, parts: tuple[Any, ...], first: tuple[State, ...], *rest: Any) -> Plan:  # noqa: ANN401
    """What the tasks of a run need of its plan: in one process the same object, with its samplers."""
    if not _latest or _latest[0]._key != key:  # noqa: SLF001 - of this module
        sampler = Sampler.from_parts(*parts, first=first[0], current=first[0], warn=False)
        burn_in, thin, deadline = rest
        _latest[:] = [Plan(sampler, first, (), burn_in, thin, 0, deadline, _key=key)]
    return _latest[0]


class Checkpoint:
    """The folder of a run.

    Parameters
    ----------
    path
        The folder.
    plan
        The run that it holds.
    lock
        An open file that keeps other processes out while this one writes.
    """

    def __init__(self, path: Path, plan: Plan, lock: IO[str] | None = None) -> None:
        self.path = path
        self.plan = plan
        self._lock = lock
        self._n_rounds = 0  # That have been read or written.

    @classmethod
    def begin(cls, path: str | os.PathLike[str], plan: Plan) -> "Checkpoint":
        """Make the checkpoint of a run, or go on with the one that an earlier call of the same run left."""
        folder = Path(path)
        _check_place(folder)
        folder.mkdir(parents=True, exist_ok=True)
        checkpoint = cls(folder, plan, _locked(folder))
        try:
            if (folder / _PLAN).exists() and cls.open(folder).plan.identity != plan.identity:
                raise FileExistsError(
                    f"{str(folder)!r} holds the checkpoint of another run, with other data, settings, starts "
                    f"or seed. Give another path, or go on with that run: ew.resume_chains({str(folder)!r})."
                )
            write_archive(folder / _PLAN, "run of chains", *_pack(plan))
        except BaseException:
            checkpoint.close()
            raise
        return checkpoint

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Checkpoint":
        """Open the checkpoint that a run left."""
        file = Path(path) / _PLAN
        try:
            metadata, arrays = read_archive(file, "run of chains")
        except MissingArchiveError as fault:
            raise MissingArchiveError(
                f"there is no checkpoint in {str(file.parent)!r}: it has no file {_PLAN!r}. Check the path."
            ) from fault
        try:
            return cls(file.parent, _unpack(metadata, arrays))
        except _UNFIT as fault:
            raise ArchiveError(f"{str(file)!r} does not hold a complete run ({fault}).") from fault

    def close(self) -> None:
        """Let others work on the folder."""
        if self._lock is not None:
            self._lock.close()

    def write(self, pieces: Mapping[int, tuple[Trace, State]]) -> None:
        """Keep the draws of a round by the number of their chain, each with the state at their end."""
        chains: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        for number, (trace, state) in pieces.items():
            (settings, labels), (moves, draws) = pack_state(state), pack_draws(trace)
            chains[str(number)] = {"state": settings, **moves}
            arrays |= prefixed(str(number), {**draws, "state": labels.astype(label_type(labels.size))})
        metadata = {"run": self.plan.identity, "chains": chains}
        write_archive(self._file(self._n_rounds), "round of chains", metadata, arrays)
        self._n_rounds += 1

    def read(self) -> Iterator[dict[int, tuple[Trace, State]]]:
        """The rounds in order, as they were written."""
        states, self._n_rounds = list(self.plan.first), 0
        while (path := self._file(self._n_rounds)).exists():
            try:
                pieces = self._read_round(path, states)
            except _UNFIT as fault:
                raise ArchiveError(f"{str(path)!r} cannot be used ({fault}). {_way_out(path)}") from fault
            for number, (_, state) in pieces.items():
                states[number] = state
            self._n_rounds += 1
            yield pieces
        if later := [file.name for file in self.path.glob("round-*.npz") if file > path]:
            raise ArchiveError(f"{str(path)!r} is lost, but {min(later)!r} is there. {_way_out(path)}")

    def chains(self) -> Chains:
        """All draws so far."""
        traces = [[DrawTable(self.plan.sampler.posterior).trace()] for _ in self.plan.first]
        for pieces in self.read():
            for number, (trace, _) in pieces.items():
                traces[number].append(trace)
        return Chains(tuple(Trace.concatenate(each[1:] or each) for each in traces), self.plan.starts)

    def _read_round(self, path: Path, states: list[State]) -> dict[int, tuple[Trace, State]]:
        """Read a round; what does not belong at this place of the run raises one of several errors."""
        plan, posterior = self.plan, self.plan.sampler.posterior
        metadata, arrays = read_archive(path, "round of chains")
        if metadata["run"] != plan.identity:
            raise ValueError("it belongs to another run")
        pieces = {}
        for name, settings in metadata["chains"].items():
            own, before = under(name, arrays), states[check_count("the chain", int(name), 0)]
            after = unpack_state(settings["state"], own["state"], posterior)
            generator: Any = np.random.PCG64(0)
            generator.state = after.generator  # raises for anything but the state of one
            trace = unpack_draws(settings, own, posterior)
            due = plan.burn_in + plan.thin * (1 + np.arange(plan.kept(before), plan.kept(after)))
            is_later = before.iteration < after.iteration <= _LAST_ITERATION
            if not is_later or not np.array_equal(trace.iterations, due):
                raise ValueError("its draws and states do not follow on from those before")
            pieces[int(name)] = trace, after
        return pieces

    def _file(self, number: int) -> Path:
        return self.path / f"round-{number:08d}.npz"


def _pack(plan: Plan) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings and arrays that a file needs to hold a plan."""
    states = [pack_state(state) for state in plan.first]
    sampler, arrays = pack_sampler(plan.sampler)
    metadata = {
        "sampler": sampler,
        "states": [settings for settings, _ in states],
        "starts": list(plan.starts),
        "burn_in": plan.burn_in,
        "thin": plan.thin,
        "goal": {"until": asdict(plan.goal)} if isinstance(plan.goal, Until) else {"draws": plan.goal},
    }
    smallest = label_type(plan.sampler.posterior.n_objects)
    return metadata, {**arrays, "states": np.stack([labels.astype(smallest) for _, labels in states])}


def _unpack(metadata: dict[str, Any], arrays: dict[str, Any]) -> Plan:
    """Read what `_pack` wrote; what does not fit raises one of several errors."""
    sampler, goal = unpack_sampler(metadata["sampler"], arrays, Sampler), metadata["goal"]
    rows = zip(metadata["starts"], metadata["states"], arrays["states"], strict=True)
    chains = [(str(start), unpack_state(parts, row, sampler.posterior)) for start, parts, row in rows]
    if not chains:
        raise ValueError("it has no chains")
    return Plan(
        sampler=sampler,
        first=tuple(state for _, state in chains),
        starts=tuple(start for start, _ in chains),
        burn_in=check_count("burn_in", metadata["burn_in"], 0),
        thin=check_count("thin", metadata["thin"], 1),
        goal=until(**goal["until"]) if "until" in goal else check_count("draws", goal["draws"], 1),
    )


def _check_place(folder: Path) -> None:
    """Refuse a folder that holds other things; what a run left that was killed at once may be used again."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{str(folder)!r} is a file; the checkpoint of a run is a folder of its own.")
    if not folder.exists() or (folder / _PLAN).exists():
        return
    others = [path.name for path in folder.iterdir() if not path.name.startswith((f".{_PLAN}.", _LOCK))]
    if others:
        raise FileExistsError(
            f"{str(folder)!r} is not empty and no checkpoint (it holds {others[0]!r}); give a new or empty "
            "folder."
        )


def _locked(folder: Path) -> IO[str]:
    """Lock a folder until the file that is returned is closed; Windows has no such locks."""
    file = (folder / _LOCK).open("a", encoding="utf-8")
    if sys.platform == "win32":
        return file
    import fcntl

    try:
        # A record lock: forked children do not inherit it, so none can outlive its owner with it.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as fault:
        if fault.errno in {errno.EACCES, errno.EAGAIN}:  # Otherwise it is a file system without locks.
            file.close()
            raise ChainsError(
                f"another process is working on the checkpoint {str(folder)!r}; wait for it or end it, or "
                "give another path."
            ) from fault
    return file


def _way_out(path: Path) -> str:
    return (
        "All other files are as they were. Restore a good copy, or delete the rounds from "
        f"{path.name!r} on and resume: their draws are then made again, the same as before."
    )
