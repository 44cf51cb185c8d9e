"""Several chains: the same draws wherever and however they run, also after interrupts and faults."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import count
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pytest
from chain_runs import assert_beginning, assert_same_draws, assert_same_trace, data, run
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import ewens_widgets as ew
from ewens_widgets.sampling.chains.sample import Run, make_plan
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.state import INITIAL

SETTINGS: list[dict[str, Any]] = [
    {"moves": "default", "concentration": ew.Gamma(2.0, 1.0)},
    {"moves": "paper-2", "metric": "euclidean"},
    {"moves": ["split-merge", "gibbs", "reassign"], "model": "III"},
]


def alone(number: int, draws: int, burn_in: int, thin: int, **settings: Any) -> ew.Trace:  # noqa: ANN401
    """The same chain, run by a sampler of its own in one go."""
    seed = np.random.SeedSequence(3).spawn(4)[number]
    sampler = ew.Sampler(data(), initial=INITIAL[number], seed=seed, **settings)
    return sampler.sample(draws, burn_in=burn_in, thin=thin, progress=False)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize(("burn_in", "thin", "chunk"), [(0, 1, 6), (7, 3, 5), (10, 4, 3), (3, 2, None)])
def test_each_chain_is_that_of_a_single_sampler(
    settings: dict[str, Any], burn_in: int, thin: int, chunk: int | None
) -> None:
    chains = run(draws=15, burn_in=burn_in, thin=thin, chunk=chunk, **settings)
    assert_same_draws(chains, [alone(k, 15, burn_in, thin, **settings) for k in range(4)])


@hypothesis_settings(max_examples=25)
@given(
    chunk=st.integers(1, 40),
    burn_in=st.integers(0, 12),
    thin=st.integers(1, 6),
    draws=st.integers(1, 12),
    n_jobs=st.integers(1, 5),
)
def test_chunks_and_threads_change_nothing(
    chunk: int, burn_in: int, thin: int, draws: int, n_jobs: int
) -> None:
    plan: dict[str, Any] = {"draws": draws, "burn_in": burn_in, "thin": thin, "moves": "paper-1"}
    assert_same_draws(run(chunk=chunk, n_jobs=n_jobs, **plan), run(**plan))


@contextmanager
def dask() -> Iterator[None]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster),
        joblib.parallel_config("dask"),
    ):
        yield


@contextmanager
def ipyparallel() -> Iterator[None]:
    package = pytest.importorskip("ipyparallel")
    from ipyparallel.joblib import IPythonParallelBackend

    with package.Cluster(n=2, log_level=40) as client:
        backend = IPythonParallelBackend(view=client.load_balanced_view())
        with joblib.parallel_config(backend):
            yield


BACKENDS: dict[str, Callable[[], Any]] = {
    "threads by default": nullcontext,
    "threading": partial(joblib.parallel_config, "threading", n_jobs=3),
    "loky": partial(joblib.parallel_config, "loky", n_jobs=2),
    "dask": dask,
    "ipyparallel": ipyparallel,
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "name",
    [
        *("threads by default", "threading"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("loky", "dask")),
        pytest.param("ipyparallel", marks=pytest.mark.nightly),
    ],
)
def test_every_backend_gives_the_draws_of_one_chain_after_another(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    expected = run(moves="paper-2")
    with BACKENDS[name]():
        assert_same_draws(run(moves="paper-2", n_jobs=None), expected)
        assert_same_draws(run(moves="paper-2", n_jobs=None, chunk=6), expected)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads in which tasks began, in order."""
    found: list[threading.Thread] = []
    original = Sampler.extend

    def extend(self: Sampler, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - whatever it takes
        found.append(threading.current_thread())
        original(self, *arguments, **named)

    monkeypatch.setattr(Sampler, "extend", extend)
    return found


def test_chains_run_in_threads_on_all_cores_unless_joblib_is_told_otherwise(
    threads: list[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "4")
    here = threading.current_thread()
    run(n_jobs=None)
    assert len(threads) == 4
    assert here not in threads
    threads.clear()
    run(n_jobs=1)
    assert set(threads) == {here}
    threads.clear()
    with joblib.parallel_config(n_jobs=1):
        run(n_jobs=None)
    assert set(threads) == {here}
    threads.clear()
    with joblib.parallel_config(n_jobs=2):
        run(n_jobs=None)
    assert here not in threads
    assert len(set(threads)) <= 2


def test_chains_in_a_worker_of_joblib_leave_the_other_cores_alone(threads: list[threading.Thread]) -> None:
    inner = joblib.Parallel(n_jobs=2, prefer="threads")(
        joblib.delayed(lambda: (run(n_jobs=None), threading.current_thread())[1])() for _ in range(2)
    )
    assert set(threads) == set(inner)


def test_seeds_matter_and_a_seed_sequence_is_not_used_up() -> None:
    chains, other = run(initial="prior"), run(initial="prior", seed=4)
    assert len({trace.labels.tobytes() for trace in [*chains, *other]}) == 8
    seed = np.random.SeedSequence(3)
    assert_same_draws(run(seed=seed), run(seed=seed))
    assert seed.n_children_spawned == 0
    assert_same_draws(run(seed=seed), run())
    seed.spawn(1)
    assert not np.array_equal(run(seed=seed)[0].labels, run()[0].labels)
    assert not np.array_equal(run(seed=None)[1].labels, run(seed=None)[1].labels)


def test_starts_are_dispersed_or_chosen() -> None:
    assert run(chains=6).starts == (*INITIAL, *INITIAL[:2])
    for initial, names in (
        ("prior", ("prior", "prior")),
        ([0] * 6 + [1] * 6, ("labels", "labels")),
        (np.arange(12), ("labels", "labels")),
        (["k-means", [0] * 12], ("k-means", "labels")),
        (np.zeros((2, 12), dtype=int), ("labels", "labels")),
    ):
        assert run(chains=2, initial=initial, draws=2).starts == names
    labels = [0, 1, 2] * 4
    chains = run(chains=2, initial=[labels, "one-cluster"], burn_in=0)
    first = ew.Sampler(data(), initial=labels, seed=np.random.SeedSequence(3).spawn(2)[0])
    assert_same_trace(chains[0], first.sample(20, progress=False))


def test_chains_start_only_where_the_prior_allows() -> None:
    X = np.random.default_rng(0).normal(size=(12, 2))
    plan = make_plan(X, 4, 10, 0, 1, None, None, 0, {"prior": ew.priors.DirichletMultinomial(4, 1.0)})
    assert plan.starts == ("one-cluster", "k-means", "prior", "one-cluster")
    assert all(int(state.labels.max()) < 4 for state in plan.first)
    free = make_plan(X, 4, 10, 0, 1, None, None, 0, {"shapes": "own", "prior": ew.priors.FiniteMixture()})
    assert free.starts == ("singletons", "one-cluster", "k-means", "prior")
    with pytest.raises(ValueError, match="at most 4 clusters"):
        make_plan(X, 1, 10, 0, 1, None, "singletons", 0, {"prior": ew.priors.DirichletMultinomial(4, 1.0)})


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"chains": 0}, ValueError, "chains must be at least 1"),
        ({"draws": 0}, ValueError, "draws must be at least 1"),
        ({"draws": 2.5}, TypeError, "draws must be a whole number"),
        ({"burn_in": -1}, ValueError, "burn_in must be at least 0"),
        ({"thin": 0}, ValueError, "thin must be at least 1"),
        ({"chunk": 0}, ValueError, "chunk must be at least 1"),
        ({"initial": ["prior"]}, ValueError, "lists 1 starts for 4 chains"),
        ({"initial": "nowhere"}, ValueError, "initial must be one of"),
        ({"models": "II"}, TypeError, "'models'; .* those of Sampler: acceptance, alpha"),
        ({"model": "IV"}, ValueError, "model"),
        ({"draws": 10, "until": ew.until()}, ValueError, "exclude each other"),
        ({"draws": None, "until": 1.01}, TypeError, r"such as ew\.until"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        run(**arguments)


def test_the_printed_ratio_warns_once() -> None:
    with pytest.warns(UserWarning, match="as-printed") as caught:
        chains = run(moves="paper-2", acceptance="as-printed", chunk=3)
    assert len(caught) == 1
    assert not np.array_equal(chains[0].labels, run(moves="paper-2")[0].labels)


def test_the_progress_bar_counts_the_iterations_of_all_chains(capsys: pytest.CaptureFixture[str]) -> None:
    run(draws=10, burn_in=4, thin=2, chunk=5, progress=True)
    assert "96/96" in capsys.readouterr().err


def test_chains_keep_step_when_time_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that end by time, not by number: each draw is made once, and no chain is left behind."""
    clock = count()
    fake = SimpleNamespace(monotonic=lambda: 0.2 * next(clock), sleep=None)
    monkeypatch.setattr("ewens_widgets.sampling.chains.sample.time", fake)
    monkeypatch.setattr(Sampler, "_largest_block", lambda _: 50)
    chained = Run(make_plan(data(), 3, 500, 10, 1, None, None, 3, {"moves": "paper-2"}), n_jobs=1)
    states = [sorted(state.iteration for state in chained.states) for _ in chained.stream()]
    assert len(states) > 3
    assert all(state[0] > 0 for state in states[2:])
    monkeypatch.undo()
    assert_same_draws(chained.chains(), run(chains=3, draws=500, burn_in=10, moves="paper-2"))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_of_a_chain_names_it_and_keeps_the_draws(
    n_jobs: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    original = Sampler.extend
    chain_2 = make_plan(data(), 4, 20, 5, 1, None, None, 3, {}).first[2].generator["state"]["inc"]

    def extend(self: Sampler, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - whatever it takes
        if self.iteration >= 10 and self.state.generator["state"]["inc"] == chain_2:
            raise FloatingPointError("nothing but noise")
        original(self, *arguments, **named)

    expected = run()
    with monkeypatch.context() as patched:
        patched.setattr(Sampler, "extend", extend)
        message = r"chain 2 raised FloatingPointError: nothing but noise.*resume_chains"
        with pytest.raises(ew.ChainsError, match=message) as caught:
            run(chunk=5, n_jobs=n_jobs, checkpoint=tmp_path)
    assert isinstance(caught.value.chains, ew.Chains)
    assert_beginning(caught.value.chains, expected)
    assert_same_draws(ew.resume_chains(tmp_path, progress=False), expected)


def interrupting(monkeypatch: pytest.MonkeyPatch, number: int) -> threading.Event:
    """Interrupt the main thread during a task, counted from 0; the event says that this task has ended."""
    original, tasks, ended = Sampler.extend, count(), threading.Event()

    def extend(self: Sampler, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - whatever it takes
        if next(tasks) == number:
            signal.raise_signal(signal.SIGINT)
            arguments = (arguments[0], 10**9, *arguments[2:])
            original(self, *arguments, **named)
            ended.set()
        else:
            original(self, *arguments, **named)

    monkeypatch.setattr(Sampler, "extend", extend)
    return ended


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupted_it_returns_the_draws_so_far(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run()
    with monkeypatch.context() as patched:
        ended = interrupting(patched, 13)
        with pytest.warns(UserWarning, match=r"interrupted after 1\d to \d+ draws of each chain"):
            chains = run(chunk=5, n_jobs=n_jobs)
        # A thread ends its task soon, though it was to make a thousand million draws.
        assert n_jobs == 1 or ended.wait(10)
    assert_beginning(chains, expected)
    assert_same_draws(run(n_jobs=n_jobs), expected)


def test_interrupted_before_the_first_draw_there_is_nothing_to_return(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    interrupting(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        run(chunk=5)


INTERRUPTED = """
import joblib
import ewens_widgets as ew
from ewens_widgets.sampling.chains.sample import Run

original = Run._unfinished
told = False

def unfinished(self):
    global told
    if not told and all(state.iteration >= 100 for state in self.states):
        told = True
        print("running", flush=True)
    return original(self)

Run._unfinished = unfinished
data = ew.datasets.unit_square(seed=1)
with joblib.parallel_config({backend!r}, n_jobs=2):
    chains = ew.sample_chains(data, draws=10**6, burn_in=0, chunk=50, progress=False)
    print("some draws" if 0 < chains.draws < 10**6 else "?")
    chains = ew.sample_chains(data, draws=30, burn_in=0, progress=False)
print(len(chains), "chains of", chains.draws)
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.nightly)])
def test_an_interrupt_of_the_whole_group_returns_the_draws_so_far(backend: str, tmp_path: Path) -> None:
    # A terminal and Jupyter send the signal to the processes too.
    script = tmp_path / "driver.py"
    script.write_text(INTERRUPTED.format(backend=backend))
    command = [sys.executable, "-W", "always", str(script)]
    driver = subprocess.Popen(command, start_new_session=True, stdout=PIPE, stderr=PIPE, text=True)
    assert driver.stdout is not None
    assert driver.stdout.readline() == "running\n"
    os.killpg(driver.pid, signal.SIGINT)
    printed, warned = driver.communicate()
    assert driver.returncode == 0, warned
    assert "interrupted after" in warned
    assert "of each chain, which are returned." in warned
    assert printed == "some draws\n4 chains of 30\n"


@pytest.mark.slow
def test_the_death_of_a_worker_loses_nothing_that_was_checkpointed(tmp_path: Path) -> None:
    from joblib.externals.loky import reusable_executor

    plan = make_plan(data(), 4, 400, 5, 1, None, None, 3, {})
    with joblib.parallel_config("loky", n_jobs=2):
        chained = Run(plan, chunk=50, checkpoint=tmp_path)
        stream = chained.stream()
        for _ in range(6):
            next(stream)
        for process in reusable_executor._executor._processes:
            os.kill(process, signal.SIGKILL)
        message = r"(?s)could not be finished \(.*terminated.*resume_chains"
        with pytest.raises(ew.ChainsError, match=message) as caught:
            list(stream)
    expected = run(draws=400)
    assert isinstance(caught.value.chains, ew.Chains)
    assert_beginning(caught.value.chains, expected)
    assert_same_draws(ew.Chains.load(tmp_path), caught.value.chains)
    assert_same_draws(ew.resume_chains(tmp_path, progress=False), expected)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_dask_cluster_replaces_a_worker_that_dies() -> None:
    from distributed import get_client

    with dask():
        chained = Run(make_plan(data(), 4, 400, 5, 1, None, None, 3, {}), chunk=50)
        stream = chained.stream()
        for _ in range(6):
            next(stream)
        workers = get_client().run(os.getpid)
        assert len(set(workers.values())) == 2
        os.kill(next(iter(workers.values())), signal.SIGKILL)
        list(stream)
    assert_same_draws(chained.chains(), run(draws=400))
