"""States and draws on disk, so that a run survives the end of its process.

A checkpoint is a folder. ``run.npz`` tells what the run is: data, settings, the state that each chain starts
from, and the goal. ``chain-0003/000000000500.npz`` holds the chunk of chain 3 that begins after iteration
500: its draws and the state at its end. Each file is written whole or not at all and never touched again, so
what is on disk is always a run up to some point, and a chunk costs the same however long the run is by then.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from ewens_widgets.sampling.archive import ArchiveError
from ewens_widgets.sampling.chains.chunk_file import Place, read_chunk, write_chunk
from ewens_widgets.sampling.chains.folder_lock import LOCK, FolderLock
from ewens_widgets.sampling.chains.plan import Plan
from ewens_widgets.sampling.chains.plan_file import read_plan, write_plan
from ewens_widgets.sampling.chains.result import Chains
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.state import State
from ewens_widgets.sampling.trace import Trace

__all__ = ["Checkpoint"]

_PLAN = "run.npz"


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

    def __init__(self, path: Path, plan: Plan, lock: FolderLock | None = None) -> None:
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
        return cls(folder, read_plan(folder / _PLAN))

    def close(self) -> None:
        """Let others work on the folder."""
        if self._lock is not None:
            self._lock.release()

    def write(self, place: Place, trace: Trace, state: State) -> None:
        """Keep a chunk: where it belongs, its draws, and the state at its end."""
        path = self._file(place)
        write_chunk(path, self.plan, place, trace, state)
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
            found = read_plan(self.path / _PLAN)
            if found.identity != self.plan.identity:
                raise FileExistsError(
                    f"{str(self.path)!r} holds the checkpoint of another run, with other data, settings, "
                    "starts or seed. Give another path, or go on with that run: "
                    f"ew.resume_chains({str(self.path)!r})."
                )
        for number in range(len(self.plan.first)):
            self._folder(number).mkdir(exist_ok=True)
        write_plan(self.path / _PLAN, self.plan)
        _flush(self.path)

    def chains(self) -> Chains:
        """All draws so far."""
        nothing = Recorder(self.plan.problem.posterior).trace()
        numbers = range(len(self.plan.first))
        pieces = [[trace for trace, _ in self.read(number)] for number in numbers]
        traces = (Trace.concatenate(traces) if traces else nothing for traces in pieces)
        return Chains(tuple(traces), self.plan.starts)

    def _read_chunk(self, path: Path, place: Place) -> tuple[Trace, State]:
        try:
            return read_chunk(path, self.plan, place)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as fault:
            raise ArchiveError(
                f"a chunk of the checkpoint cannot be used: {str(path)!r} ({fault}) All other files are as "
                f"they were. Bring back a good copy, or {_delete_later(path)}"
            ) from fault

    def _folder(self, chain: int) -> Path:
        return self.path / f"chain-{chain:04d}"

    def _file(self, place: Place) -> Path:
        return self._folder(place.chain) / f"{place.before.iteration:012d}.npz"


def _check_place(folder: Path) -> None:
    """Refuse a folder that holds other things."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{str(folder)!r} is a file; the checkpoint of a run is a folder of its own.")
    if not folder.exists() or (folder / _PLAN).exists():
        return
    # What a run leaves that was killed before it had written its plan may be used again.
    ours = ("chain-", f".{_PLAN}.", LOCK)
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
