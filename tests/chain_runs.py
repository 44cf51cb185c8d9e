"""Runs of several chains on small data, and executors that misbehave on purpose."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ewens_widgets as ew
from ewens_widgets.sampling.chains.workers import InSequence


def data(n_objects: int = 12) -> NDArray[np.float64]:
    rng = np.random.default_rng(4)
    return rng.normal(size=(n_objects, 2)) + 3.0 * rng.integers(0, 3, (n_objects, 1))


def run(**arguments: object) -> ew.Chains:
    """Four short chains in this process, unless told otherwise."""
    settings: dict[str, Any] = {
        "draws": 20,
        "burn_in": 5,
        "seed": 3,
        "executor": InSequence(),
        "progress": False,
    }
    return ew.sample_chains(data(), **{**settings, **arguments})


def assert_same_trace(found: ew.Trace, expected: ew.Trace) -> None:
    """Every column and count is the same, bit for bit."""
    for name, values in expected.columns().items():
        np.testing.assert_array_equal(getattr(found, name), values, err_msg=name)
    assert list(found.move_counts) == list(expected.move_counts)
    for name, pair in expected.move_counts.items():
        np.testing.assert_array_equal(np.stack(found.move_counts[name]), np.stack(pair), err_msg=name)


def assert_same_draws(found: Iterable[ew.Trace], expected: Iterable[ew.Trace]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert_same_trace(one, other)


class Faulty(InSequence):
    """Runs tasks at once, but does something else with those that are listed, counted from 0.

    Parameters
    ----------
    faults
        By the number of the task: an exception to fail with, or a function of the future that is returned.
    """

    def __init__(self, faults: dict[int, BaseException | Callable[[Future[Any]], None]]) -> None:
        self.faults = faults
        self.tasks: list[Any] = []

    def submit(self, function: Callable[..., Any], /, *arguments: object) -> Future[Any]:
        fault = self.faults.get(len(self.tasks))
        self.tasks.append(arguments[0])
        if fault is None:
            return super().submit(function, *arguments)
        future: Future[Any] = Future()
        if isinstance(fault, BaseException):
            future.set_exception(fault)
        else:
            fault(future)
        return future


class Choosing(Executor):
    """One thread that does not take tasks in their order, but as `choose` says, given how many wait."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose
        self._waiting: list[tuple[Future[Any], Callable[[], Any]]] = []
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def submit(self, function: Callable[..., Any], /, *arguments: object) -> Future[Any]:
        future: Future[Any] = Future()
        with self._changed:
            self._waiting.append((future, lambda: function(*arguments)))
            self._changed.notify()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 - as there
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                future, call = self._waiting.pop(self._choose(len(self._waiting)))
            if future.set_running_or_notify_cancel():
                future.set_result(call())
