"""Several chains: the same draws however they are run."""

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from chain_runs import Choosing, Faulty, assert_same_draws, assert_same_trace, data, run
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import ewens_widgets as ew
from ewens_widgets.sampling.chains import run as run_module
from ewens_widgets.sampling.chains.task import Task, forget_samplers, run_task
from ewens_widgets.sampling.chains.workers import InSequence
from ewens_widgets.sampling.state import INITIAL

SCHEDULES: list[Any] = ["default", "paper-2", ["split-merge", "gibbs", "reassign"]]


def alone(number: int, draws: int, burn_in: int, thin: int, **settings: Any) -> ew.Trace:  # noqa: ANN401
    """The same chain, run by a sampler of its own in one go."""
    seed = np.random.SeedSequence(3).spawn(4)[number]
    sampler = ew.Sampler(data(), initial=INITIAL[number], seed=seed, **settings)
    return sampler.sample(draws, burn_in=burn_in, thin=thin, progress=False)


@pytest.mark.parametrize("moves", SCHEDULES)
@pytest.mark.parametrize(("burn_in", "thin", "chunk"), [(0, 1, 6), (7, 3, 5), (10, 4, 3), (3, 2, None)])
def test_each_chain_is_that_of_a_single_sampler(
    moves: object, burn_in: int, thin: int, chunk: int | None
) -> None:
    chains = run(draws=15, burn_in=burn_in, thin=thin, chunk=chunk, moves=moves)
    assert_same_draws(chains, [alone(k, 15, burn_in, thin, moves=moves) for k in range(4)])


@pytest.mark.parametrize(
    "settings",
    [{"concentration": ew.Gamma(2.0, 1.0)}, {"model": "III"}, {"moves": "paper-2", "metric": "euclidean"}],
)
def test_settings_reach_the_workers(settings: dict[str, Any]) -> None:
    chains = run(chunk=4, **settings)
    assert_same_draws(chains, [alone(k, 20, 5, 1, **settings) for k in range(4)])


@hypothesis_settings(max_examples=25)
@given(
    chunk=st.integers(1, 40),
    burn_in=st.integers(0, 12),
    thin=st.integers(1, 6),
    draws=st.integers(1, 12),
    order=st.integers(0, 2**32 - 1),
)
def test_chunks_and_order_change_nothing(chunk: int, burn_in: int, thin: int, draws: int, order: int) -> None:
    plan: dict[str, Any] = {"draws": draws, "burn_in": burn_in, "thin": thin, "moves": "paper-1"}
    with Choosing(np.random.default_rng(order).integers) as executor:
        found = run(chunk=chunk, executor=executor, **plan)
    assert_same_draws(found, run(chunk=10**6, **plan))


@pytest.mark.parametrize(
    "executor", [ThreadPoolExecutor(3), Choosing(lambda waiting: waiting - 1), Choosing(lambda _: 0)]
)
def test_threads_and_adverse_orders_give_the_same_draws(executor: Executor) -> None:
    with executor:
        found = run(executor=executor, chunk=4, moves="paper-2")
    assert_same_draws(found, run(moves="paper-2"))


def test_chains_differ_and_seeds_matter() -> None:
    chains, other = run(initial="prior"), run(initial="prior", seed=4)
    assert len({trace.labels.tobytes() for trace in [*chains, *other]}) == 8


def test_a_seed_sequence_is_not_used_up() -> None:
    seed = np.random.SeedSequence(3)
    assert_same_draws(run(seed=seed), run(seed=seed))
    assert seed.n_children_spawned == 0
    assert_same_draws(run(seed=seed), run())
    seed.spawn(1)
    assert not np.array_equal(run(seed=seed)[0].labels, run()[0].labels)


def test_without_a_seed_runs_differ() -> None:
    assert not np.array_equal(run(seed=None)[1].labels, run(seed=None)[1].labels)


def test_starts_are_dispersed_by_default() -> None:
    assert run(chains=6).starts == (*INITIAL, *INITIAL[:2])


@pytest.mark.parametrize(
    ("initial", "names"),
    [
        ("prior", ("prior", "prior")),
        ([0] * 6 + [1] * 6, ("labels", "labels")),
        (np.arange(12), ("labels", "labels")),
        (["k-means", [0] * 12], ("k-means", "labels")),
        (np.zeros((2, 12), dtype=int), ("labels", "labels")),
    ],
)
def test_starts_can_be_chosen(initial: object, names: tuple[str, ...]) -> None:
    assert run(chains=2, initial=initial).starts == names


def test_a_start_is_where_the_chain_starts() -> None:
    labels = [0, 1, 2] * 4
    chains = run(chains=2, initial=[labels, "one-cluster"], burn_in=0)
    first = ew.Sampler(data(), initial=labels, seed=np.random.SeedSequence(3).spawn(2)[0])
    assert_same_trace(chains[0], first.sample(20, progress=False))


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"chains": 0}, ValueError, "chains must be at least 1"),
        ({"draws": 0}, ValueError, "draws must be at least 1"),
        ({"draws": 2.5}, TypeError, "draws must be a whole number"),
        ({"burn_in": -1}, ValueError, "burn_in must be at least 0"),
        ({"thin": 0}, ValueError, "thin must be at least 1"),
        ({"chunk": 0}, ValueError, "chunk must be at least 1"),
        ({"timeout": 0.0}, ValueError, "timeout must be"),
        ({"tries": 0}, ValueError, "tries must be at least 1"),
        ({"initial": ["prior"]}, ValueError, "lists 1 starts for 4 chains"),
        ({"initial": "nowhere"}, ValueError, "initial must be one of"),
        ({"models": "II"}, TypeError, "'models'; .* those of Sampler: acceptance, alpha"),
        ({"model": "IV"}, ValueError, "model"),
        ({"draws": 10, "until": ew.until()}, ValueError, "exclude each other"),
        ({"draws": None, "until": 1.01}, TypeError, r"such as ew\.until"),
        ({"executor": "threads"}, TypeError, r"concurrent\.futures\.Executor"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        run(**arguments)


def test_a_client_in_place_of_its_executor_is_explained() -> None:
    class Client:
        def get_executor(self) -> None: ...

    class View:
        executor = InSequence()

    with pytest.raises(TypeError, match=r"pass its get_executor\(\)"):
        run(executor=Client())
    with pytest.raises(TypeError, match=r"pass its \.executor"):
        run(executor=View())


def test_the_stream_tells_how_far_each_chain_is() -> None:
    chunks = list(
        ew.stream_chains(data(), chains=2, draws=9, burn_in=4, thin=2, seed=3, chunk=4, executor=InSequence())
    )
    first = [chunk for chunk in chunks if chunk.chain == 0]
    assert [(len(chunk.trace), chunk.iteration, chunk.kept) for chunk in first] == [
        (0, 4, 0),
        (2, 8, 2),
        (2, 12, 4),
        (2, 16, 6),
        (2, 20, 8),
        (1, 22, 9),
    ]
    assert {(chunk.wanted, chunk.start) for chunk in first} == {(9, "singletons")}
    whole = ew.Trace.concatenate([chunk.trace for chunk in first])
    assert_same_trace(whole, run(chains=2, draws=9, burn_in=4, thin=2)[0])


def test_the_stream_refuses_at_once_and_can_be_closed() -> None:
    with pytest.raises(ValueError, match="draws must be"):
        ew.stream_chains(data(), draws=-1)
    executor = Faulty({})
    stream = ew.stream_chains(data(), draws=1000, chunk=2, executor=executor)
    next(stream)
    stream.close()
    handed_out = len(executor.tasks)
    assert next(stream, None) is None
    assert len(executor.tasks) == handed_out


def test_the_printed_ratio_warns_once() -> None:
    with pytest.warns(UserWarning, match="as-printed") as caught:
        chains = run(moves="paper-2", acceptance="as-printed", chunk=3)
    assert len(caught) == 1
    assert not np.array_equal(chains[0].labels, run(moves="paper-2")[0].labels)


def test_the_progress_bar_counts_the_iterations_of_all_chains(capsys: pytest.CaptureFixture[str]) -> None:
    run(draws=10, burn_in=4, thin=2, chunk=5, progress=True)
    assert "96/96" in capsys.readouterr().err


def test_large_data_are_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "_LIGHT", 0)
    executor = Faulty({})
    assert_same_draws(run(executor=executor, chunk=5), run(chunk=5))
    assert sum(task.setup is not None for task in executor.tasks) == 4
    assert len(executor.tasks) == 4 * 5


def test_a_worker_without_the_data_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(Faulty):
        """Each task comes to a worker that has just been started."""

        def submit(self, function: Callable[..., Any], /, *arguments: Task) -> Future[Any]:
            assert function is run_task
            forget_samplers(arguments[0].key)
            return super().submit(function, *arguments)

    monkeypatch.setattr(run_module, "_LIGHT", 0)
    executor = Forgetful({})
    assert_same_draws(run(executor=executor, chunk=5), run(chunk=5))
    assert sum(task.setup is not None for task in executor.tasks) == 4 * 5


def test_nothing_of_a_finished_run_is_kept_in_this_process() -> None:
    from ewens_widgets.sampling.chains import task

    run(moves="paper-2")
    assert task._SAMPLERS._idle == {}


def test_chunks_grow_to_about_a_second() -> None:
    stream = ew.stream_chains(data(), chains=1, draws=4000, burn_in=0, moves="paper-1", executor=InSequence())
    sizes = [len(chunk.trace) for chunk in stream]
    assert sizes[0] == 64
    assert len(sizes) <= 6
    assert sum(sizes) == 4000
