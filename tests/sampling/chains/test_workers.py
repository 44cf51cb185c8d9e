"""Real processes, a real Dask cluster and real engines, some of them killed: the draws stay the same."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace
from typing import Any

import pytest
from chain_runs import assert_same_draws

import ewens_widgets as ew
from ewens_widgets.sampling.chains import run
from ewens_widgets.sampling.chains.workers import InSequence

pytestmark = pytest.mark.slow

PLAN: dict[str, Any] = {"chains": 4, "draws": 400, "burn_in": 60, "thin": 2, "seed": 8}
CHUNKS = 4 * 10  # of 86 iterations
DRIVER = """
import sys
import ewens_widgets as ew
from ewens_widgets.sampling.chains import run

original = run.Run._take
taken = 0

def take(self, course, piece):
    global taken
    taken += 1
    if taken > 12:
        print("in the middle", flush=True)
        sys.stdin.read()  # until it is killed
    return original(self, course, piece)

run.Run._take = take
data = ew.datasets.unit_square(seed=1)
ew.sample_chains(data, chunk=86, checkpoint=sys.argv[1], progress=False, **{plan!r})
"""
INTERRUPTED = """
import ewens_widgets as ew
from ewens_widgets.sampling.chains import run

original = run.Run._take
told = False

def take(self, course, piece):
    global told
    chunk = original(self, course, piece)
    # All of them: a process that starts late would leave its chain without draws.
    if not told and all(each.state.iteration >= 100 for each in self.courses):
        told = True
        print("running", flush=True)
    return chunk

run.Run._take = take
data = ew.datasets.unit_square(seed=1)
chains = ew.sample_chains(data, draws=10**6, burn_in=0, chunk=50, progress=False)
print("some draws" if 0 < chains.draws < 10**6 else "?")
chains = ew.sample_chains(data, draws=30, burn_in=0, progress=False)
print(len(chains), "chains of", chains.draws)
"""
ORPHANED = """
import sys
import ewens_widgets as ew
from joblib.externals.loky import reusable_executor

data = ew.datasets.unit_square(seed=1)
is_idle = sys.argv[1] == "idle"
heard = set()
for chunk in ew.stream_chains(data, chains=2, draws=200 if is_idle else 10**7, burn_in=0, chunk=100):
    heard.add(chunk.chain)
    if not is_idle and len(heard) == 2:
        print(*reusable_executor._executor._processes, flush=True)
        is_idle = None
print(*reusable_executor._executor._processes, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def square() -> ew.datasets.Dataset:
    return ew.datasets.unit_square(seed=1)


@pytest.fixture(scope="module")
def undisturbed(square: ew.datasets.Dataset) -> ew.Chains:
    return ew.sample_chains(square, **PLAN, executor=InSequence(), progress=False)


def disturbed(
    square: ew.datasets.Dataset,
    disturb: Callable[[], None],
    **arguments: Any,  # noqa: ANN401 - of the run
) -> tuple[list[ew.Trace], int]:
    """Run the chains, do something after the tenth chunk, and return the draws and the number of chunks."""
    pieces: list[list[ew.Trace]] = [[] for _ in range(PLAN["chains"])]
    count = 0
    for chunk in ew.stream_chains(square, **PLAN, chunk=86, **arguments):
        pieces[chunk.chain].append(chunk.trace)
        count += 1
        if count == 10:
            disturb()
    return [ew.Trace.concatenate(traces) for traces in pieces], count


def local_processes() -> list[int]:
    from joblib.externals.loky import reusable_executor

    return sorted(reusable_executor._executor._processes or ())


def wait_for(condition: Callable[[], bool], seconds: float = math.inf) -> None:
    """Wait for what another process does; nobody tells us when it is done, so look again and again."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it never happened"
        time.sleep(0.02)


def test_local_processes_survive_a_kill(square: ew.datasets.Dataset, undisturbed: ew.Chains) -> None:
    found, count = disturbed(square, lambda: os.kill(local_processes()[0], signal.SIGKILL))
    assert_same_draws(found, undisturbed)
    assert count == CHUNKS


def test_local_processes_that_hang_are_replaced(
    square: ew.datasets.Dataset, undisturbed: ew.Chains, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[int] = []
    clock = [100.0]

    def stop() -> None:
        # All of them: one alone may just have handed in its task, and the others would do the rest.
        stopped.extend(local_processes())
        for process in stopped:
            os.kill(process, signal.SIGSTOP)

    def monotonic() -> float:
        """Time passes while they hang, and stands still while new ones start, however long that takes."""
        if not set(stopped).isdisjoint(local_processes()):
            clock[0] += 1.0
        return clock[0]

    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=monotonic))
    found, count = disturbed(square, stop, timeout=0.5, tries=2)
    assert_same_draws(found, undisturbed)
    assert count == CHUNKS
    assert stopped
    assert set(stopped).isdisjoint(local_processes())


def test_local_processes_use_one_thread_each() -> None:
    from ewens_widgets.sampling.chains.workers import LocalProcesses

    seen = LocalProcesses(2).submit(os.getenv, "OMP_NUM_THREADS").result()
    assert seen == "1"


def test_local_processes_leave_interrupts_to_the_driver() -> None:
    from ewens_widgets.sampling.chains.workers import LocalProcesses

    handler = LocalProcesses(2).submit(signal.getsignal, signal.SIGINT).result()
    assert handler == signal.SIG_IGN


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_dask_cluster_survives_the_death_of_a_worker(
    square: ew.datasets.Dataset, undisturbed: ew.Chains
) -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        workers = client.run(os.getpid)
        assert len(set(workers.values())) == 2
        victim = next(iter(workers.values()))
        found, count = disturbed(
            square, lambda: os.kill(victim, signal.SIGKILL), executor=client.get_executor()
        )
        wait_for(lambda: victim not in client.run(os.getpid).values())
    assert_same_draws(found, undisturbed)
    assert count == CHUNKS


def test_the_death_of_the_driver_costs_nothing_that_was_done(tmp_path: Path, undisturbed: ew.Chains) -> None:
    path = tmp_path / "run"
    script = tmp_path / "driver.py"
    script.write_text(DRIVER.format(plan=PLAN))
    command = [sys.executable, str(script), str(path)]
    driver = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, start_new_session=True)
    assert driver.stdout is not None
    try:
        assert driver.stdout.readline() == "in the middle\n"
    finally:
        driver.kill()
        driver.communicate()
        # Its processes notice and end by themselves, but perhaps not before the test does.
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
    done = len(list(path.glob("chain-*/*.npz")))
    assert done == 12
    resumed = ew.resume_chains(path, executor=InSequence(), progress=False)
    assert_same_draws(resumed, undisturbed)


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.timing
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("workers_are", ["busy", "idle"])
def test_processes_end_when_their_driver_was_killed(tmp_path: Path, workers_are: str) -> None:
    script = tmp_path / "driver.py"
    script.write_text(ORPHANED)
    driver = subprocess.Popen(
        [sys.executable, str(script), workers_are],
        stdin=PIPE,
        stdout=PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert driver.stdout is not None
    workers = [int(number) for number in driver.stdout.readline().split()]
    try:
        assert len(workers) == 2
        assert all(map(is_running, workers))
        driver.kill()
        driver.wait()
        wait_for(lambda: not any(map(is_running, workers)), seconds=10.0)
    finally:
        for worker in filter(is_running, workers):
            os.kill(worker, signal.SIGKILL)
    driver.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_processes_let_go_of_the_standard_streams() -> None:
    from ewens_widgets.sampling.chains.workers import LocalProcesses

    workers = LocalProcesses(2)
    seen = [workers.submit(os.readlink, f"/proc/self/fd/{stream}").result() for stream in range(3)]
    assert seen == [os.devnull] * 3


def test_an_interrupt_of_the_whole_group_returns_what_there_is(tmp_path: Path) -> None:
    # A terminal and Jupyter send the signal to the processes too.
    script = tmp_path / "driver.py"
    script.write_text(INTERRUPTED)
    driver = subprocess.Popen(
        [sys.executable, "-W", "always", str(script)],
        start_new_session=True,
        stdout=PIPE,
        stderr=PIPE,
        text=True,
    )
    assert driver.stdout is not None
    assert driver.stdout.readline() == "running\n"
    os.killpg(driver.pid, signal.SIGINT)
    told, warned = driver.communicate()
    assert driver.returncode == 0, warned
    assert "interrupted after" in warned
    assert "of each chain, which are returned." in warned
    assert told == "some draws\n4 chains of 30\n"


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    ipyparallel = pytest.importorskip("ipyparallel")
    with ipyparallel.Cluster(n=2, log_level=40) as client:
        yield client


@pytest.mark.filterwarnings("ignore")  # of a package that is not ours
def test_engines_of_ipyparallel_give_the_same_draws(
    square: ew.datasets.Dataset,
    undisturbed: ew.Chains,
    engines: Any,  # noqa: ANN401 - without types
) -> None:
    view = engines.load_balanced_view()
    found, count = disturbed(square, lambda: None, executor=view.executor)
    assert_same_draws(found, undisturbed)
    assert count == CHUNKS
