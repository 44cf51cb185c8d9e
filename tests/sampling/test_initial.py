"""Where a chain may start."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sampling.goodness import LEVEL, chi_square

import ewens_widgets as ew
from ewens_widgets.sampling.state import INITIAL, initial_labels


def data(n_objects: int = 30) -> NDArray[np.float64]:
    rng = np.random.default_rng(4)
    return rng.normal(size=(n_objects, 2)) + 20.0 * (np.arange(n_objects) % 3)[:, None]


def test_singletons_are_the_default() -> None:
    np.testing.assert_array_equal(ew.Sampler(data()).labels, np.arange(30))
    np.testing.assert_array_equal(ew.Sampler(data(), initial="singletons").labels, np.arange(30))


def test_one_cluster() -> None:
    np.testing.assert_array_equal(ew.Sampler(data(), initial="one-cluster").labels, np.zeros(30))


def test_k_means_finds_clusters_far_apart() -> None:
    """λ = 1 makes one expect four clusters of 30 objects: none of them mixes two of the three groups."""
    labels = ew.Sampler(data(), initial="k-means", seed=1).labels
    assert labels.max() + 1 == round(ew.ewens.expected_clusters(30, 1.0)) == 4
    for cluster in range(4):
        assert len(set(np.flatnonzero(labels == cluster) % 3)) == 1


def test_k_means_has_no_more_clusters_than_distinct_objects() -> None:
    X = np.repeat([[0.0], [1.0], [5.0]], 4, axis=0)
    labels = ew.Sampler(X, initial="k-means", concentration=50.0).labels
    assert labels.max() + 1 <= 3
    labels = ew.Sampler([[0.0], [1.0]], initial="k-means").labels
    np.testing.assert_array_equal(labels, [0, 1])


def test_k_means_with_a_gamma_prior_and_a_small_concentration() -> None:
    assert ew.Sampler(data(), initial="k-means", concentration=ew.Gamma(1.0, 1e6)).labels.max() + 1 == 2


def test_the_prior_is_drawn_from() -> None:
    posterior = ew.Sampler(data(6), concentration=1.5).posterior
    rng = np.random.default_rng(0)
    counts = np.bincount(
        [initial_labels(posterior, "prior", rng).max() + 1 for _ in range(4000)], minlength=7
    )
    assert chi_square(counts, 4000 * ew.ewens.cluster_count_pmf(6, 1.5)).p_value > LEVEL
    assert chi_square(counts, 4000 * ew.ewens.cluster_count_pmf(6, 2.0)).p_value < LEVEL


def test_the_prior_with_a_gamma_concentration_is_drawn_from() -> None:
    prior = ew.Gamma(2.0, 1.0)
    exact = ew.exact_posterior(data(6), concentration=prior, theta_grid=[1e-9])
    rng = np.random.default_rng(0)
    drawn = [initial_labels(exact.posterior, "prior", rng).max() + 1 for _ in range(4000)]
    counts = np.bincount(drawn, minlength=7)
    assert chi_square(counts, 4000 * exact.cluster_count_probabilities).p_value > LEVEL


@pytest.mark.parametrize("initial", ["k-means", "prior"])
def test_the_seed_decides_a_random_start(initial: str) -> None:
    starts = {
        seed: ew.Sampler(data(), initial=initial, seed=seed, concentration=3.0).labels.tobytes()
        for seed in range(8)
    }
    assert starts[3] == ew.Sampler(data(), initial=initial, seed=3, concentration=3.0).labels.tobytes()
    assert len(set(starts.values())) > 1


def test_labels_may_have_any_names_and_are_not_changed() -> None:
    given = np.array(list("bbacbacaccbbacbacaccbbacbacacc"))
    sampler = ew.Sampler(data(), initial=given)
    np.testing.assert_array_equal(sampler.labels[:4], [0, 0, 1, 2])
    numbers = np.repeat([7, -2, 5], 10)
    before = numbers.copy()
    sampler = ew.Sampler(data(), initial=numbers)
    sampler.sample(20, progress=False)
    np.testing.assert_array_equal(numbers, before)


@pytest.mark.parametrize("initial", INITIAL)
@pytest.mark.parametrize("n_objects", [2, 5])
def test_every_start_works_on_few_objects(initial: str, n_objects: int) -> None:
    sampler = ew.Sampler(data(n_objects), initial=initial, model="I", seed=2)
    assert sampler.labels.shape == (n_objects,)
    assert len(sampler.sample(20, progress=False)) == 20


def test_rows_equal_but_for_rounding_make_no_fuss() -> None:
    """Whitening may round equal rows differently; k-means then finds fewer clusters than it was asked for."""
    rng = np.random.default_rng(5272)
    X = rng.normal(size=(11, 1))[rng.integers(0, 3, 11)]
    sampler = ew.Sampler(X, model="III", concentration=30.0, initial="k-means", seed=5272)
    assert sampler.labels.max() + 1 == len(np.unique(X)) == 3
