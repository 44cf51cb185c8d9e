"""What is sent to a worker, what it does, and what it sends back."""

import hashlib
import json
import threading
import time
import traceback
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.archive import pack_posterior
from ewens_widgets.sampling.moves.schedule import Repeated, to_plain
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.state import State
from ewens_widgets.sampling.trace import Trace

__all__ = ["Failure", "MissingData", "Piece", "Setup", "Task", "forget_samplers", "run_task"]

_KEPT_SETUPS = 2  # Data sets that a worker remembers.


@dataclass(frozen=True, eq=False)
class Setup:
    """What all chains of a run share: the posterior and how to sample it."""

    posterior: Posterior
    schedule: tuple[Repeated, ...]
    raw: FloatArray | None = field(repr=False)
    acceptance: str

    @classmethod
    def of(cls, sampler: Sampler) -> "Setup":
        """Take the setup from a sampler."""
        return cls(sampler.posterior, sampler.schedule, sampler.raw_data, sampler.acceptance)

    @cached_property
    def key(self) -> str:
        """Digest of the content: the same data and settings have the same key."""
        settings, arrays = pack_posterior(self.posterior)
        described = [settings, to_plain(self.schedule), self.acceptance]
        digest = hashlib.sha256(json.dumps(described).encode())
        for array in (*arrays.values(), *(() if self.raw is None else (self.raw,))):
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    @property
    def n_bytes(self) -> int:
        """Size of the data."""
        return self.posterior.coordinates.nbytes + (0 if self.raw is None else self.raw.nbytes)

    def sampler(self, state: State) -> Sampler:
        """Make a sampler that stands at a state; whoever set up the run has seen its warnings."""
        parts = self.posterior, self.schedule, self.raw, self.acceptance
        return Sampler.from_parts(*parts, first=state, current=state, warn=False)


@dataclass(frozen=True, eq=False)
class Task:
    """One chunk of one chain.

    Attributes
    ----------
    key
        Key of the setup.
    setup
        The setup itself, or None where the worker may have it from an earlier chunk.
    state
        Where the chain stands.
    burn_in
        Iterations to run before the first draw.
    draws, thin
        Draws to keep, and iterations for each.
    ticket
        Different for each task handed out: Dask takes equal tasks for one, and gives an old fault back.
    """

    key: str
    setup: Setup | None
    state: State
    burn_in: int
    draws: int
    thin: int
    ticket: str


@dataclass(frozen=True, eq=False)
class Piece:
    """What a task brings back: the new state, the draws without their posterior, and the time it took."""

    state: State
    columns: dict[str, NDArray[Any]]
    counts: dict[str, tuple[ArrayLike, ArrayLike]]
    seconds: float

    def trace(self, posterior: Posterior) -> Trace:
        """The draws as a trace."""
        return Trace.of_columns(self.columns, self.counts, posterior)


@dataclass(frozen=True)
class MissingData:
    """The worker has never seen the setup: send it along."""


@dataclass(frozen=True)
class Failure:
    """The chain itself raised an error; running it again would raise it again."""

    message: str
    details: str = field(repr=False)


class _IdleSamplers:
    """Samplers that wait for the next chunk, so that distances are computed and data sent only once.

    A sampler serves one task at a time: it is taken out while it works, as workers may be threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: OrderedDict[str, list[Sampler]] = OrderedDict()

    def take(self, task: Task) -> Sampler | None:
        with self._lock:
            idle = self._idle.get(task.key)
            known = idle.pop() if idle else None
        if known is not None:
            known.restore(task.state)
            return known
        return None if task.setup is None else task.setup.sampler(task.state)

    def give_back(self, key: str, sampler: Sampler) -> None:
        with self._lock:
            self._idle.setdefault(key, []).append(sampler)
            self._idle.move_to_end(key)
            while len(self._idle) > _KEPT_SETUPS:
                self._idle.popitem(last=False)

    def forget(self, key: str) -> None:
        with self._lock:
            self._idle.pop(key, None)


_SAMPLERS = _IdleSamplers()


def run_task(task: Task) -> Piece | MissingData | Failure:
    """Advance a chain by one chunk.

    An error of the chain comes back as a `Failure`; so what is raised is the fault of a worker or its
    executor, and worth another try. Running out of memory is that too.
    """
    try:
        sampler = _SAMPLERS.take(task)
        if sampler is None:
            return MissingData()
        recorder = Recorder(sampler.posterior, sampler.move_names)
        started = time.perf_counter()
        sampler.extend(recorder, task.draws, task.burn_in, task.thin)
        seconds = time.perf_counter() - started
    except MemoryError:
        raise
    except Exception as fault:  # noqa: BLE001 - whatever it is, the driver must name the chain
        return Failure(f"{type(fault).__name__}: {fault}", traceback.format_exc())
    trace = recorder.trace()
    state = sampler.state
    _SAMPLERS.give_back(task.key, sampler)
    return Piece(state, trace.columns(), dict(trace.move_counts), seconds)


def forget_samplers(key: str) -> None:
    """Free what this process remembers of a setup."""
    _SAMPLERS.forget(key)
