"""The Gibbs sweep: its conditionals against the posterior (see also test_transition_matrices)."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracle import ewens_probability, log_likelihood
from sampling.exact import FIVE, MODELS, canonical

import ewens_widgets as ew
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import to_clusters
from ewens_widgets.sampling.kernel import common_weights
from ewens_widgets.sampling.moves.gibbs import conditional_probabilities


def conditional(
    log_posterior: Callable[[list[int]], float], labels: Sequence[int], item: int
) -> NDArray[np.float64]:
    """The object's conditional over the clusters and a new one, from the posterior of every partition."""
    alone = labels.count(labels[item]) == 1
    targets = range(max(labels) + (1 if alone else 2))
    log_weights = np.array(
        [log_posterior([*labels[:item], target, *labels[item + 1 :]]) for target in targets]
    )
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def conditional_of_the_oracle(
    X: NDArray[np.float64], labels: Sequence[int], item: int, theta: float, concentration: float, model: str
) -> NDArray[np.float64]:
    def log_posterior(changed: list[int]) -> float:
        log_prior = math.log(ewens_probability(to_clusters(changed), concentration))
        return log_prior + log_likelihood(X, changed, theta, model)

    return conditional(log_posterior, labels, item)


def conditional_of_the_posterior(
    posterior: Posterior, labels: Sequence[int], item: int
) -> NDArray[np.float64]:
    """From the package's own log density, for what is too large for the oracle."""
    return conditional(lambda changed: posterior.log_density(changed, 0), labels, item)


@pytest.mark.parametrize("model", MODELS)
@given(st.data())
def test_conditionals_are_those_of_the_oracle(model: str, data: st.DataObject) -> None:
    """Ratios of Ewens' formula times the likelihood with the dense Γ."""
    n_objects = data.draw(st.integers(5, 9))
    X = np.random.default_rng(data.draw(st.integers(0, 10**6))).normal(size=(n_objects, 3))
    labels = canonical(data.draw(st.lists(st.integers(0, 4), min_size=n_objects, max_size=n_objects)))
    item = data.draw(st.integers(0, n_objects - 1))
    theta, concentration = data.draw(st.sampled_from([0.125, 2.0, 1024.0])), data.draw(st.floats(0.01, 30.0))
    posterior = Posterior.from_data(X, model=model, concentration=concentration, theta_grid=[theta])
    found = conditional_probabilities(posterior, labels, item, 0)
    expected = conditional_of_the_oracle(X, labels, item, theta, concentration, model)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("n_features", [18, 19, 200, pytest.param(2_000, marks=pytest.mark.slow)])
@given(st.data())
@settings(max_examples=30)
def test_products_over_many_features_do_not_underflow(n_features: int, data: st.DataObject) -> None:
    n_objects = data.draw(st.integers(3, 8))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    spread = data.draw(st.sampled_from([1e-3, 1.0, 30.0]))
    X = rng.normal(size=(2, n_features))[rng.integers(0, 2, n_objects)] * spread
    X += rng.normal(size=X.shape)
    labels = canonical(data.draw(st.lists(st.integers(0, 3), min_size=n_objects, max_size=n_objects)))
    item = data.draw(st.integers(0, n_objects - 1))
    theta = data.draw(st.sampled_from([0.125, 1024.0, 2.0**30]))
    posterior = Posterior.from_data(X, model="II", theta_grid=[theta])
    found = conditional_probabilities(posterior, labels, item, 0)
    expected = conditional_of_the_oracle(X, labels, item, theta, 1.0, "II")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 6_000), (5, 20_000)])
def test_products_over_very_many_features_do_not_overflow(shape: tuple[int, int]) -> None:
    X = np.random.default_rng(0).normal(size=shape)
    posterior = Posterior.from_data(X, model="II", theta_grid=[1024.0])
    labels = (0,) * shape[0]
    expected = conditional_of_the_posterior(posterior, labels, 0)
    np.testing.assert_allclose(conditional_probabilities(posterior, labels, 0, 0), expected, atol=1e-9)


def test_candidates_that_were_lifted_differently_are_compared() -> None:
    """Two clusters in one place and another far away: products lie on both sides of the threshold."""
    compared = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        sides = rng.choice([-1.0, 1.0], 5)
        X = sides[:, None] + 0.0135 * rng.normal(size=(5, 48))
        labels = canonical(rng.integers(0, 3, 5).tolist())
        posterior = Posterior.from_data(X, model="II", theta_grid=[1024.0])
        expected = conditional_of_the_posterior(posterior, labels, 0)
        compared += np.sum(expected > 1e-6) > 1
        np.testing.assert_allclose(conditional_probabilities(posterior, labels, 0, 0), expected, atol=1e-5)
    assert compared > 50, "the candidates of many draws compete"


@pytest.mark.parametrize("concentration", [5e-324, 1e-300, 1e-100, 1e-9, 1e9, 1e100, 1e250, 1.7e308])
@pytest.mark.parametrize("theta", [1.0, 2.0**30])
@pytest.mark.parametrize(
    ("model", "n_objects", "n_features"),
    [("I", 2, 1), ("I", 2, 40), ("III", 3, 1), ("III", 8, 6)]
    + [("II", 2, n_features) for n_features in (1, 2, 5, 9, 18, 19, 60)]
    + [("II", 4, 18)],
)
def test_no_concentration_is_too_small_or_too_large(
    model: str, n_objects: int, n_features: int, theta: float, concentration: float
) -> None:
    X = np.random.default_rng(0).normal(size=(n_objects, n_features))
    posterior = Posterior.from_data(X, model=model, concentration=concentration, theta_grid=[theta])
    for labels in ((0,) * n_objects, tuple(range(n_objects)), (0,) * (n_objects - 1) + (1,)):
        expected = conditional_of_the_posterior(posterior, labels, 0)
        np.testing.assert_allclose(
            conditional_probabilities(posterior, labels, 0, 0), expected, rtol=1e-5, atol=1e-12
        )


@pytest.mark.parametrize("exponent", [4, 5])
def test_candidates_without_a_scale_have_no_weight(exponent: int) -> None:
    """Rounding can leave nothing, or less; the others keep their weights."""
    weights = np.zeros(5)
    powers = getattr(common_weights.powers, "py_func", common_weights.powers)
    powers(np.array([2.0, -1.0, 4.0, 0.0, np.inf]), 5, exponent, weights)
    np.testing.assert_allclose(weights, [1.0, 0.0, 0.5 ** (exponent / 2), 0.0, 0.0], rtol=1e-14)


def test_a_gamma_prior_takes_a_given_concentration_or_its_mean() -> None:
    labels = [0, 0, 1, 1, 2]
    with_prior = Posterior.from_data(FIVE, concentration=ew.Gamma(3.0, 2.0))
    for given_value, fixed in ((None, 1.5), (0.2, 0.2)):
        expected = conditional_probabilities(Posterior.from_data(FIVE, concentration=fixed), labels, 0, 3)
        found = conditional_probabilities(with_prior, labels, 0, 3, given_value)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_acceptances_count_the_objects_that_changed_cluster() -> None:
    sampler = ew.Sampler(FIVE, moves=["gibbs"], seed=1, initial="one-cluster")
    before = sampler.labels
    for event in sampler.events(50):
        assert event.moves[0].proposals == 5
        unchanged = np.array_equal(event.labels, before)
        assert unchanged or event.moves[0].acceptances > 0
        assert event.moves[0].acceptances <= 5
        before = event.labels


@pytest.mark.slow
def test_equal_rows_and_the_largest_theta_leave_exact_conditionals(rng: np.random.Generator) -> None:
    """Where clusters of equal rows leave no scatter but 1/θ, determinants are differences of equal numbers.

    With determinants from products alone, some candidates of probability 1 were never chosen.
    """
    theta, compared = 2.0**30, 0
    for _ in range(300):
        n_features = int(rng.integers(1, 4))
        rows = rng.normal(size=(int(rng.integers(n_features + 1, n_features + 4)), n_features))
        chosen = rng.integers(0, len(rows), int(rng.integers(2, 8)))
        X = np.concatenate([rows, rows[chosen]])
        if len(X) <= n_features + 1:
            continue
        labels = canonical(rng.integers(0, rng.integers(2, len(rows) + 2), len(X)))
        posterior = Posterior.from_data(X, model="III", theta_grid=[theta])
        for item in range(len(X)):
            found = conditional_probabilities(posterior, labels, item, 0)
            expected = conditional(
                lambda changed, X=X: (
                    ew.ewens.log_pmf(changed, 1.0) + ew.log_likelihood(X, changed, theta, "III")
                ),
                labels,
                item,
            )
            np.testing.assert_allclose(found, expected, atol=1e-4)
            compared += 1
    assert compared > 2000
