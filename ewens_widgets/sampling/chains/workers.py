"""Where tasks run: local processes, or any executor that is given; and what is said when they fail.

Of an executor only `submit` is asked. Ours may be killed and replaced when a worker hangs; one that was given
is used as it is, as its workers may have other things to do. An error carries the draws made so far, so that
none is lost. Our processes end within seconds of their driver's end, even if it was killed, and have no hold
on its standard streams.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from threading import Thread
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

__all__ = [
    "ChainsError",
    "ExecutorLike",
    "GivenExecutor",
    "InSequence",
    "LocalProcesses",
    "Workers",
    "failed_chains_error",
    "open_workers",
]

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")

# One thread for each process: chains run side by side, and more threads than cores only slow each other.
_ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)
_IDLE_SECONDS = 300  # Processes wait so long for the next call, which then need not start them.
_WATCH_SECONDS = 1.0  # How often they look whether their driver is still there.


class ExecutorLike(Protocol):
    """What is needed of an executor; `concurrent.futures.Executor` has it."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":  # noqa: ANN401 - as there
        """Run a function elsewhere and return a future of its result."""
        ...


class Workers(Protocol):
    """An executor, and what to do when it breaks."""

    def submit(self, function: Callable[[Any], Any], argument: object) -> "Future[Any]":
        """Hand out a task."""
        ...

    def stop_hung(self) -> bool:
        """End all workers because one of them hangs; False where that is not ours to do."""
        ...


class InSequence(Executor):
    """Runs each task at once, in this process: for a single chain or core, or where nothing else is."""

    def submit(
        self, function: Callable[Arguments, Value], /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> "Future[Value]":
        """Run the function now; its future is done when it is returned."""
        future: Future[Value] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as fault:  # noqa: BLE001 - belongs to the future, as in every executor
            future.set_exception(fault)
        return future


class GivenExecutor:
    """An executor of the caller's: it is used, never shut down or replaced."""

    def __init__(self, executor: ExecutorLike) -> None:
        self._executor = executor

    def submit(self, function: Callable[[Any], Any], argument: object) -> "Future[Any]":
        """Hand out a task."""
        return self._executor.submit(function, argument)

    def stop_hung(self) -> bool:
        """Leave the workers alone: they may have other things to do."""
        return False


def _serve(driver: int) -> None:
    """Make this process one that works for a driver only: first thing that is done in each.

    It ignores Ctrl-C, which a terminal sends to all processes. Raised in a process that is just taking its
    next task or sending a result, it may leave a queue locked. Once the call after an interrupt was seen to
    wait for ever, and this is the likely reason.

    It lets go of the driver's standard streams: whoever reads them would wait for this process too. And it
    ends when the driver does, however that ended: nobody else could tell it to.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.close(nothing)
    Thread(target=_end_with, args=(driver,), name="ewens_widgets driver watch", daemon=True).start()


def _end_with(driver: int) -> None:
    """Wait until the driver is gone, then end this process at once, in the middle of a task or not.

    Linux could send a signal by itself, but does so already when the *thread* that started the process ends.
    """
    try:
        if sys.platform == "win32":
            import _winapi

            handle = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, driver)
            _winapi.WaitForSingleObject(handle, _winapi.INFINITE)
        else:
            # Orphans are given another parent.
            while os.getppid() == driver:
                time.sleep(_WATCH_SECONDS)
    finally:
        os._exit(1)


class LocalProcesses:
    """Processes on this machine, kept for the next call; a broken set of them is replaced by a new one.

    Parameters
    ----------
    count
        Number of processes.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._executor = self._open()

    def submit(self, function: Callable[[Any], Any], argument: object) -> "Future[Any]":
        """Hand out a task, to new processes if the old ones have died or somebody shut them down."""
        try:
            return self._submit(function, argument)
        except RuntimeError:  # What loky raises for both is one.
            self._executor = self._open()
            return self._submit(function, argument)

    def stop_hung(self) -> bool:
        """Kill the processes; new ones are started for the next task."""
        self._executor.shutdown(wait=True, kill_workers=True)
        return True

    def _submit(self, function: Callable[[Any], Any], argument: object) -> "Future[Any]":
        future: Future[Any] = self._executor.submit(function, argument)
        return future

    def _open(self) -> Any:  # noqa: ANN401 - loky has no types
        # Not the package loky itself: joblib brings it, and scikit-learn brings joblib.
        from joblib.externals.loky import get_reusable_executor

        return get_reusable_executor(
            max_workers=self.count,
            timeout=_IDLE_SECONDS,
            env=_ONE_THREAD,
            initializer=_serve,
            initargs=(os.getpid(),),
        )


def open_workers(executor: ExecutorLike | None, chains: int, timeout: float | None = None) -> Workers:
    """Workers for a number of chains.

    Parameters
    ----------
    executor
        Any `concurrent.futures.Executor`, or None for local processes, as many as there are cores or chains.
    chains
        Number of chains.
    timeout
        Where there is one, even a single chain runs in a process of its own, which can be ended.
    """
    if executor is not None:
        _check_executor(executor)
        return GivenExecutor(executor)
    if sys.platform == "emscripten":  # A browser starts no processes.
        return GivenExecutor(InSequence())
    from joblib import cpu_count

    count = min(chains, cpu_count())
    return GivenExecutor(InSequence()) if count == 1 and timeout is None else LocalProcesses(count)


def _check_executor(executor: object) -> None:
    if isinstance(executor, Executor):
        return
    kind = type(executor).__name__
    if hasattr(executor, "get_executor"):
        raise TypeError(f"executor is a {kind}, not an executor; pass its get_executor().")
    if isinstance(getattr(executor, "executor", None), Executor):
        raise TypeError(f"executor is a {kind}, not an executor; pass its .executor.")
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(
            "executor must be a concurrent.futures.Executor, such as ThreadPoolExecutor() or Dask's "
            f"Client().get_executor(), or None for local processes; got {executor!r}."
        )


if TYPE_CHECKING:
    from ewens_widgets.sampling.chains.result import Chains
    from ewens_widgets.sampling.trace import Trace


class ChainsError(RuntimeError):
    """A run of several chains could not be finished.

    Attributes
    ----------
    chains
        The draws of all chains that did not fail, as far as they got.
    failed
        The draws of each chain that failed up to then, by its number.
    """

    def __init__(
        self, message: str, chains: "Chains | None" = None, failed: "Mapping[int, Trace] | None" = None
    ) -> None:
        super().__init__(message)
        self.chains = chains
        self.failed = dict(failed or {})


def failed_chains_error(
    reasons: Mapping[int, str], chains: "Chains", failed: "Mapping[int, Trace]", way_out: str
) -> ChainsError:
    """Name the chains that failed, why, and what is left."""
    told = "; ".join(f"chain {number}: {reason}" for number, reason in reasons.items())
    which = "a chain" if len(reasons) == 1 else f"{len(reasons)} chains"
    return ChainsError(
        f"{which} could not be finished ({told}). The draws of the others are in the attribute .chains of "
        f"this error. {way_out}",
        chains,
        failed,
    )
