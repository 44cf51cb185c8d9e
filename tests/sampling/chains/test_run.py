"""Workers that die, hang or raise, and Ctrl-C: no draw is lost, and none is different."""

import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chain_runs import Faulty, assert_same_draws, assert_same_trace, run

import ewens_widgets as ew
from ewens_widgets.sampling.chains import run as run_module
from ewens_widgets.sampling.chains.run import Run
from ewens_widgets.sampling.chains.task import Task
from ewens_widgets.sampling.chains.workers import InSequence
from ewens_widgets.sampling.sampler import Sampler

DEATH = BrokenProcessPool("a worker died")


def is_of_chain(task: Task, number: int) -> bool:
    """Whether a task of `run` is of this chain: each stream of random numbers has its own increment."""
    stream = np.random.PCG64(np.random.SeedSequence(3).spawn(4)[number])
    return bool(task.state.generator["state"]["inc"] == stream.state["state"]["inc"])


class Deadly(Faulty):
    """The worker dies of every task of a chain that begins after a certain iteration."""

    def __init__(self, chain: int, iteration: int, fault: BaseException = DEATH) -> None:
        super().__init__({})
        self.deadly = (chain, iteration)
        self.fault = fault

    def submit(self, function: Callable[..., Any], /, *arguments: Task) -> Future[Any]:
        (task,) = arguments
        chain, iteration = self.deadly
        if task.state.iteration == iteration and is_of_chain(task, chain):
            self.faults[len(self.tasks)] = self.fault
        return super().submit(function, task)


class Pool(Executor):
    """Processes that die together: a deadly task takes those with it that are out at the same time.

    Tasks come back in groups of the given sizes, then one by one.
    """

    def __init__(self, deadly: int, groups: list[int]) -> None:
        self.deadly = deadly
        self.groups = groups
        self.out: list[tuple[Task, Future[Any]]] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Task) -> Future[Any]:
        future: Future[Any] = Future()
        self.out.append((arguments[0], future))
        if len(self.out) == (self.groups[0] if self.groups else 1):
            self.groups, out, self.out = self.groups[1:], self.out, []
            dead = any(is_of_chain(task, self.deadly) for task, _ in out)
            for task, other in out:
                other.set_exception(DEATH) if dead else other.set_result(function(task))
        return future


def cancel(future: Future[Any]) -> None:
    future.cancel()
    future.set_running_or_notify_cancel()


def hang(future: Future[Any]) -> None:
    future.set_running_or_notify_cancel()


@pytest.mark.parametrize(
    "fault", [DEATH, cancel, MemoryError("no room"), ConnectionResetError("gone"), OSError(5, "worker lost")]
)
def test_a_chunk_whose_worker_dies_is_run_again(fault: Any) -> None:  # noqa: ANN401 - two kinds of faults
    executor = Faulty(dict.fromkeys((0, 2, 5, 7, 11), fault))
    assert_same_draws(run(executor=executor, chunk=5), run())
    assert len(executor.tasks) == 4 * 5 + 5


def test_dask_and_loky_report_deaths_by_exceptions_of_their_own() -> None:
    from distributed.scheduler import KilledWorker
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    worker: Any = SimpleNamespace(address="tcp://127.0.0.1:1234")
    executor = Faulty({1: TerminatedWorkerError("killed"), 3: KilledWorker("task", worker, 3)})
    assert_same_draws(run(executor=executor, chunk=5), run())
    assert len(executor.tasks) == 4 * 5 + 2


def test_faults_are_counted_anew_for_each_chunk() -> None:
    # Each of the five chunks fails twice and succeeds at its third and last try.
    executor = Faulty({number: DEATH for number in range(15) if number % 3 < 2})
    assert_same_draws(run(executor=executor, chains=1, chunk=5), run(chains=1))
    assert len(executor.tasks) == 15


@pytest.mark.parametrize("tries", [1, 2, 3])
def test_after_the_last_try_the_error_names_the_chain_and_keeps_the_others(tries: int) -> None:
    expected = run()
    executor = Deadly(chain=2, iteration=10)
    times = {1: "once", 2: "2 times", 3: "3 times"}[tries]
    with pytest.raises(
        ew.ChainsError, match=rf"chain 2: its chunk from iteration 10 failed {times}.*died"
    ) as caught:
        run(executor=executor, chunk=5, tries=tries)
    error = caught.value
    assert error.chains is not None
    assert_same_draws(error.chains, [expected[0], expected[1], expected[3]])
    assert error.chains.starts == ("singletons", "one-cluster", "prior")
    assert list(error.failed) == [2]
    assert_same_trace(error.failed[2], expected[2][:5])
    assert len(executor.tasks) == 3 * 5 + 2 + tries


def test_where_workers_die_together_the_right_chain_is_named() -> None:
    expected = run()
    with pytest.raises(ew.ChainsError, match=r"^a chain could not be finished \(chain 1: ") as caught:
        run(executor=Pool(deadly=1, groups=[4, 4]), chunk=5)
    assert caught.value.chains is not None
    assert_same_draws(caught.value.chains, [expected[0], expected[2], expected[3]])


def test_an_error_of_the_chain_itself_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Sampler.extend

    def broken(self: Sampler, *arguments: Any) -> None:  # noqa: ANN401 - whatever it takes
        if self.iteration >= 10:
            raise FloatingPointError("nothing but noise")
        original(self, *arguments)

    expected = run()
    monkeypatch.setattr(Sampler, "extend", broken)
    executor = Faulty({})
    with pytest.raises(
        ew.ChainsError, match=r"4 chains could not.*FloatingPointError: nothing but noise"
    ) as caught:
        run(executor=executor, chunk=5)
    assert len(executor.tasks) == 4 * 3
    assert len(caught.value.chains or []) == 0
    assert_same_draws(caught.value.failed.values(), [trace[:5] for trace in expected])
    assert "in broken" in "".join(caught.value.__notes__)


def test_a_hung_chunk_is_run_again() -> None:
    executor = Faulty({1: hang, 6: hang})
    assert_same_draws(run(executor=executor, chunk=5, timeout=0.05), run())
    assert len(executor.tasks) == 4 * 5 + 2


def test_a_chunk_that_hangs_each_time_is_given_up() -> None:
    executor = Faulty({1: hang, 2: hang})
    with pytest.raises(ew.ChainsError, match=r"chain 0.*failed 2 times.*no answer within 0\.05 seconds"):
        run(executor=executor, chains=1, chunk=5, timeout=0.05, tries=2)


def test_a_late_answer_is_as_good_as_any() -> None:
    late: list[Future[Any]] = []

    class Late(Faulty):
        """The answer to the first task comes together with that to its second try."""

        def submit(self, function: Callable[..., Any], /, *arguments: Task) -> Future[Any]:
            if late and not late[0].done() and len(self.tasks) > 1:
                late[0].set_result(function(self.tasks[0]))
            return super().submit(function, *arguments)

    def be_late(future: Future[Any]) -> None:
        hang(future)
        late.append(future)

    executor = Late({0: be_late})
    assert_same_draws(run(executor=executor, chains=1, chunk=5, timeout=0.05), run(chains=1))


def test_waiting_in_line_is_not_hanging(monkeypatch: pytest.MonkeyPatch) -> None:
    # One thread for six chains: a task waits longer than the time limit, but never runs that long. The clock
    # is moved by the tasks, each of which ends only when the driver has looked for hanging ones.
    clock, looked = [1.0], threading.Event()
    look = Run._look_for_overdue

    def look_and_tell(self: Run) -> None:
        look(self)
        looked.set()

    class Slow(ThreadPoolExecutor):
        def submit(self, function: Callable[..., Any], /, *arguments: Task) -> Future[Any]:  # type: ignore[override]
            def slowly(task: Task) -> object:
                looked.clear()
                clock[0] += 0.12
                looked.wait()
                return function(task)

            self.tasks = getattr(self, "tasks", 0) + 1
            return super().submit(slowly, *arguments)

    with monkeypatch.context() as patched, Slow(1) as executor:
        patched.setattr(run_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        patched.setattr(Run, "_look_for_overdue", look_and_tell)
        chains = run(executor=executor, chains=6, draws=2, burn_in=0, chunk=2, timeout=0.3)
        assert executor.tasks == 6
    assert clock[0] > 1.6
    assert_same_draws(chains, run(chains=6, draws=2, burn_in=0))


def test_an_executor_that_takes_no_more_work_is_named() -> None:
    class Closing(Faulty):
        def submit(self, function: Callable[..., Any], /, *arguments: Task) -> Future[Any]:
            if len(self.tasks) == 10:
                raise RuntimeError("cannot schedule new futures after shutdown")
            return super().submit(function, *arguments)

    with pytest.raises(
        ew.ChainsError, match=r"takes no more work \(RuntimeError.*Give a fresh one"
    ) as caught:
        run(executor=Closing({}), chunk=5)
    assert caught.value.chains is not None
    assert_same_draws(
        caught.value.chains,
        [trace[: len(part)] for trace, part in zip(run(), caught.value.chains, strict=True)],
    )
    assert sum(len(trace) for trace in caught.value.chains) > 0


def interrupting(number: int) -> Faulty:
    def interrupt(future: Future[Any]) -> None:
        hang(future)
        signal.raise_signal(signal.SIGINT)

    return Faulty({number: interrupt})


def test_interrupted_it_returns_what_there_is() -> None:
    with pytest.warns(UserWarning, match="interrupted after 5 to 10 draws of each chain"):
        chains = run(executor=interrupting(13), chunk=5)
    assert [len(trace) for trace in chains] == [10, 10, 5, 5]
    assert_same_draws(chains, [trace[: len(part)] for trace, part in zip(run(), chains, strict=True)])


def test_interrupted_before_the_first_draw_there_is_nothing_to_return() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(executor=interrupting(2), chunk=5)


def test_interrupted_while_waiting_tasks_are_called_off(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: list[Future[Any]] = []

    class Stuck(InSequence):
        def submit(self, function: Callable[..., Any], /, *arguments: Task) -> Future[Any]:  # type: ignore[override]
            if not arguments[0].state.iteration:
                return super().submit(function, *arguments)
            waiting.append(Future())
            return waiting[-1]

    original = Run._wait

    def wait(self: Run) -> float:
        if len(waiting) == 4:
            signal.raise_signal(signal.SIGINT)
        return original(self)

    monkeypatch.setattr(Run, "_wait", wait)
    with pytest.warns(UserWarning, match="interrupted after 5 to 5 draws"):
        chains = run(executor=Stuck(), chunk=10)
    assert [len(trace) for trace in chains] == [5] * 4
    assert all(future.cancelled() for future in waiting)
