"""The state of a chain: saved, pickled or copied at any moment, it continues bit for bit."""

import copy
import functools
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sampling.exact import mixed
from sampling.goodness import LEVEL, chi_square

import ewens_widgets as ew
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling import driver
from ewens_widgets.sampling.compiled import COMPILED
from ewens_widgets.sampling.moves import SplitMerge
from ewens_widgets.sampling.state import INITIAL, initial_labels

SETTINGS: dict[str, dict[str, object]] = {
    "default": {"model": "III"},
    "gamma": {"concentration": ew.Gamma(2.0, 1.5), "alpha": 0.5, "theta_grid": [0.3, 1.0, 7.0]},
    "paper-1": {"moves": "paper-1", "model": "I"},
    "paper-2": {"moves": "paper-2", "initial": "k-means", "model": "III"},
    "euclidean": {"moves": "paper-2", "metric": "euclidean", "initial": "prior"},
    "options": {
        "moves": [
            SplitMerge("minimum", "hausdorff", (0.3, 0.4, 0.3), 0.2),
            ("gibbs", 2),
            SplitMerge("maximum"),
            "reassign",
        ],
        "concentration": ew.Gamma(1.0, 1.0),
    },
    "centre": {"model": "III", "centre": "unknown"},
    "centre, far away": {"model": "I", "centre": "unknown", "theta_grid": [1e-3, 1.0, 1e6]},
    "categories": {"model": "I"},
    "own, categories": {"model": "III", "shapes": "own", "initial": "k-means"},
    "own, centre": {"shapes": "own", "centre": "unknown"},
    "mixture": {"prior": ew.priors.FiniteMixture(0.7, ew.priors.Poisson(3.0))},
    "own I": {"model": "I", "shapes": "own", "moves": "paper-1", "prior": ew.priors.PitmanYor(1.0, 0.3)},
    "own II": {"shapes": "own", "concentration": ew.Gamma(2.0, 1.5), "nu_grid": [3.0, 9.0]},
    "own III": {"model": "III", "shapes": "own", "prior": ew.priors.FiniteMixture()},
    "own, mixed": {
        "model": "III",
        "shapes": "own",
        "prior": ew.priors.DirichletMultinomial(4, 2.0),
        "moves": ["reassign", "gibbs", SplitMerge("maximum", core_jump=0.2), "informed-split-merge"],
    },
}
LENGTH = 60


def data() -> NDArray[np.float64]:
    rng = np.random.default_rng(6)
    return rng.normal(size=(14, 2)) * [1.0, 30.0] + 3.0 * rng.integers(0, 3, (14, 1))


def make(name: str) -> ew.Sampler:
    categories = (np.arange(28).reshape(14, 2) * 5 % 4).astype(float)
    X = mixed(data(), categories) if name.endswith("categories") else data()
    return ew.Sampler(X, seed=31, **SETTINGS[name])


def run(sampler: ew.Sampler, count: int) -> list[tuple[object, ...]]:
    """Everything that the next events say, to the last bit."""
    return [
        (
            event.iteration,
            event.labels.tobytes(),
            event.theta_weights.tobytes(),
            event.theta_index,
            event.log_posterior.hex(),
            event.concentration.hex(),
            int(event.nu_index),
            event.sigma.tobytes(),
            event.moves,
        )
        for event in sampler.events(count)
    ]


@functools.cache
def chain(name: str) -> list[tuple[object, ...]]:
    return run(make(name), LENGTH)


def pickled(sampler: ew.Sampler) -> ew.Sampler:
    return pickle.loads(pickle.dumps(sampler))  # noqa: S301 - made here


@pytest.mark.parametrize("name", SETTINGS)
@settings(max_examples=5)
@given(stop=st.integers(0, LENGTH - 1), block=st.integers(1, 25))
def test_a_chain_continues_bit_for_bit_from_a_file_a_pickle_or_a_copy(
    name: str, stop: int, block: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Taken after any iteration, also in the middle of a block of events."""
    path = tmp_path_factory.mktemp("saved") / "chain.npz"
    sampler, whole = make(name), chain(name)
    events = sampler.events(None, block=block)
    for _ in range(stop):
        next(events)
    sampler.save(path)
    for other in (ew.Sampler.load(path), pickled(sampler), copy.deepcopy(sampler), sampler):
        assert other.iteration == stop
        assert run(other, LENGTH - stop) == whole[stop:]


def test_a_state_does_not_change_with_the_chain() -> None:
    sampler = make("gamma")
    before = sampler.state
    kept = copy.deepcopy(before)
    sampler.sample(50, progress=False)
    np.testing.assert_array_equal(before.labels, kept.labels)
    assert (before.generator, before.iteration) == (kept.generator, kept.iteration)
    assert sampler.state.generator != kept.generator


def test_a_loaded_sampler_is_as_it_was(tmp_path: Path) -> None:
    for name in SETTINGS:
        sampler = make(name)
        sampler.sample(10, progress=False)
        sampler.save(tmp_path / "chain.npz")
        loaded = ew.Sampler.load(tmp_path / "chain.npz")
        assert repr(loaded) == repr(sampler)
        assert loaded.schedule == sampler.schedule
        assert (loaded.metric, loaded.acceptance) == (sampler.metric, sampler.acceptance)
        assert loaded.posterior.prior == sampler.posterior.prior
        assert loaded.posterior.shapes == sampler.posterior.shapes
        np.testing.assert_array_equal(loaded.posterior.coordinates, sampler.posterior.coordinates)
        loaded.reset()
        sampler.reset()
        assert run(loaded, 20) == run(sampler, 20)


@pytest.mark.filterwarnings("ignore:The acceptance ratio")
def test_the_printed_ratio_is_saved_too(tmp_path: Path) -> None:
    sampler = ew.Sampler(data(), moves="paper-2", acceptance="as-printed", seed=1)
    sampler.save(tmp_path / "chain.npz")
    loaded = ew.Sampler.load(tmp_path / "chain.npz")
    assert loaded.acceptance == "as-printed"
    assert run(loaded, 30) == run(sampler, 30)


@pytest.mark.skipif(not COMPILED, reason="without a compiler")
def test_a_loaded_sampler_needs_no_new_compilation(tmp_path: Path) -> None:
    sampler = make("default")
    sampler.sample(2, progress=False)
    known = len(driver.advance_by_likelihood.signatures)
    sampler.save(tmp_path / "chain.npz")
    ew.Sampler.load(tmp_path / "chain.npz").sample(2, progress=False)
    pickled(sampler).sample(2, progress=False)
    assert len(driver.advance_by_likelihood.signatures) == known


def test_saving_leaves_events_being_watched_alone_and_makes_a_small_file(tmp_path: Path) -> None:
    sampler, path, seen = make("paper-2"), tmp_path / "chain.npz", []
    for event in sampler.events(LENGTH, block=10):
        seen.append(event.labels.tobytes())
        if event.iteration % 7 == 0:
            sampler.save(path)
    assert seen == [event[1] for event in chain("paper-2")]
    assert path.stat().st_size < 10_000
    with np.load(path, allow_pickle=False) as content:
        assert {"labels", "coordinates"} <= set(content.files)


def test_more_clusters_than_the_prior_allows_are_no_start() -> None:
    prior = ew.priors.DirichletMultinomial(3, 1.0)
    for initial in ("singletons", np.arange(14) % 4):
        with pytest.raises(ValueError, match=r'at most 3 clusters.*initial="one-cluster"'):
            ew.Sampler(data(), prior=prior, initial=initial)
    for shapes in ("common", "own"):
        for initial in (None, "one-cluster", "k-means", "prior", np.arange(14) % 3):
            sampler = ew.Sampler(data(), prior=prior, initial=initial, shapes=shapes)
            assert sampler.sample(30, progress=False).n_clusters.max() <= 3


def test_another_thread_sees_whole_blocks_only() -> None:
    """Compiled code lets other threads run: one that looks on must not see half an iteration."""
    sampler = ew.Sampler(ew.datasets.wine(), moves="paper-2", initial="k-means", seed=0)
    sampler.sample(10, progress=False)
    start = sampler.iteration
    traces: list[ew.Trace] = []
    is_seen = threading.Event()

    def work() -> None:
        while not is_seen.is_set():
            traces.append(sampler.sample(20_000, progress=False))

    worker = threading.Thread(target=work)
    worker.start()
    seen = {}
    # Some looks fall between two calls, but not all.
    while len(seen) < 8:
        state = sampler.state
        seen[state.iteration] = state.labels
    is_seen.set()
    worker.join()
    drawn = np.concatenate([trace.labels for trace in traces])
    for iteration, labels in seen.items():
        if iteration > start:
            np.testing.assert_array_equal(canonical_labels(labels), drawn[iteration - start - 1])


def spread_data(n_objects: int = 30) -> NDArray[np.float64]:
    rng = np.random.default_rng(4)
    return rng.normal(size=(n_objects, 2)) + 20.0 * (np.arange(n_objects) % 3)[:, None]


def start(initial: object, **settings: object) -> NDArray[np.intp]:
    return ew.Sampler(spread_data(), initial=initial, **settings).labels


def test_the_starts_that_are_fixed() -> None:
    for initial in (None, "singletons"):
        np.testing.assert_array_equal(start(initial), np.arange(30))
    assert not start("one-cluster").any()
    np.testing.assert_array_equal(start(np.array(list("bba") * 10))[:4], [0, 0, 1, 0])
    numbers = np.repeat([7, -2, 5], 10)
    before = numbers.copy()
    ew.Sampler(spread_data(), initial=numbers).sample(20, progress=False)
    np.testing.assert_array_equal(numbers, before)


def test_k_means_has_as_many_clusters_as_the_prior_expects_if_the_rows_allow() -> None:
    """λ = 1 makes one expect four clusters of 30 objects: none of them mixes two of the three groups."""
    labels = start("k-means", seed=1)
    assert labels.max() + 1 == round(ew.ewens.expected_clusters(30, 1.0)) == 4
    for cluster in range(4):
        assert len(set(np.flatnonzero(labels == cluster) % 3)) == 1
    assert start("k-means", concentration=ew.Gamma(1.0, 1e6)).max() + 1 == 2
    few = np.repeat([[0.0], [1.0], [5.0]], 4, axis=0)
    assert ew.Sampler(few, initial="k-means", concentration=50.0).labels.max() + 1 <= 3
    np.testing.assert_array_equal(ew.Sampler([[0.0], [1.0]], initial="k-means").labels, [0, 1])


@pytest.mark.parametrize("concentration", [1.5, ew.Gamma(2.0, 1.0)], ids=str)
def test_the_prior_is_drawn_from(concentration: object) -> None:
    posterior = ew.Sampler(spread_data(6), concentration=concentration).posterior
    rng = np.random.default_rng(0)
    drawn = [initial_labels(posterior, "prior", rng).max() + 1 for _ in range(4000)]
    counts = np.bincount(drawn, minlength=7)
    assert chi_square(counts, 4000 * posterior.prior.count_pmf(6)).p_value > LEVEL
    assert chi_square(counts, 4000 * ew.ewens.cluster_count_pmf(6, 3.0)).p_value < LEVEL


@pytest.mark.parametrize("shapes", ["own", "common"])
def test_a_mixture_separates_clusters_of_one_shape_or_leaves_it_to_k_means(shapes: str) -> None:
    rng = np.random.default_rng(0)
    known = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 8)) @ rng.normal(size=(8, 8))
    posterior = ew.Sampler(X, shapes=shapes, model="III").posterior
    labels = initial_labels(posterior, "mixture", np.random.default_rng(1))
    assert labels.max() == initial_labels(posterior, "k-means", np.random.default_rng(1)).max() > 3
    apart = ew.Sampler(
        X + np.outer(known, 8.0 * X.std(axis=0)), shapes=shapes, model="III", initial="mixture"
    )
    np.testing.assert_array_equal(apart.labels, known)
    state = apart.state
    if shapes == "own":  # Σ is that within clusters, and shapes are alike.
        assert state.nu_index == apart.posterior.nu_grid.size - 1
        gaps = apart.posterior.coordinates - np.array(
            [apart.posterior.coordinates[known == k].mean(axis=0) for k in known]
        )
        scale = apart.posterior.scale(state.sigma)
        np.testing.assert_allclose(scale, gaps.T @ gaps / 120, atol=0.002)


@pytest.mark.parametrize("initial", ["k-means", "prior"])
def test_the_seed_decides_a_random_start(initial: str) -> None:
    starts = [start(initial, seed=seed, concentration=3.0).tobytes() for seed in (*range(8), 3)]
    assert starts[3] == starts[8]
    assert len(set(starts)) > 1


@pytest.mark.parametrize("initial", INITIAL)
@pytest.mark.parametrize("n_objects", [2, 5])
def test_every_start_works_on_few_objects(initial: str, n_objects: int) -> None:
    sampler = ew.Sampler(spread_data(n_objects), initial=initial, model="I", seed=2)
    assert sampler.labels.shape == (n_objects,)
    assert len(sampler.sample(20, progress=False)) == 20


def test_rows_equal_but_for_rounding_make_no_fuss() -> None:
    """Whitening may round equal rows differently; k-means then finds fewer clusters than it was asked for."""
    rng = np.random.default_rng(5272)
    X = rng.normal(size=(11, 1))[rng.integers(0, 3, 11)]
    sampler = ew.Sampler(X, model="III", concentration=30.0, initial="k-means", seed=5272)
    assert sampler.labels.max() + 1 == len(np.unique(X)) == 3
