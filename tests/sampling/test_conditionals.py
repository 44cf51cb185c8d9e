"""The conditional of one object, which a Gibbs sweep draws from, against the posterior of every partition.

Also where rounding is hard on it: many features, extreme concentrations, equal rows with the largest θ.
"""

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sampling.exact import FIVE, MODELS, canonical, make_space

import ewens_widgets as ew
from ewens_widgets.model.checks import LARGEST_THETA
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import to_clusters
from ewens_widgets.sampling.compiled import interpreted
from ewens_widgets.sampling.kernel import common_family, common_weights, scatter
from ewens_widgets.sampling.kernel.partition_changes import gather_members, single_split
from ewens_widgets.sampling.kernel.workspace import make_problem, make_workspace
from ewens_widgets.sampling.moves.gibbs import conditional_probabilities

Floats = NDArray[np.float64]


def conditional(log_posterior: Callable[[list[int]], float], labels: Sequence[int], item: int) -> Floats:
    """The object's conditional over the clusters and a new one, from the posterior of every partition."""
    alone = labels.count(labels[item]) == 1
    targets = range(max(labels) + (1 if alone else 2))
    log_weights = np.array(
        [log_posterior([*labels[:item], target, *labels[item + 1 :]]) for target in targets]
    )
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def log_of_the_oracle(X: Floats, theta: float, concentration: float, model: str, labels: list[int]) -> float:
    """Ewens' formula times the likelihood with the dense Γ."""
    log_prior = math.log(oracle.ewens_probability(to_clusters(labels), concentration))
    return log_prior + oracle.log_likelihood(X, labels, theta, model)


def assert_conditional(
    posterior: Posterior, labels: Sequence[int], rtol: float = 0.0, atol: float = 1e-12
) -> Floats:
    """The first object's is that of the package's own log density, for what is too large for the oracle."""
    expected = conditional(lambda changed: posterior.log_density(changed, 0), labels, 0)
    found = conditional_probabilities(posterior, labels, 0, 0)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
    return expected


@pytest.mark.parametrize("model", MODELS)
@given(st.data())
def test_conditionals_are_those_of_the_oracle(model: str, data: st.DataObject) -> None:
    n_objects = data.draw(st.integers(5, 9))
    X = np.random.default_rng(data.draw(st.integers(0, 10**6))).normal(size=(n_objects, 3))
    labels = canonical(data.draw(st.lists(st.integers(0, 4), min_size=n_objects, max_size=n_objects)))
    item = data.draw(st.integers(0, n_objects - 1))
    theta, concentration = data.draw(st.sampled_from([0.125, 2.0, 1024.0])), data.draw(st.floats(0.01, 30.0))
    posterior = Posterior.from_data(X, model=model, concentration=concentration, theta_grid=[theta])
    found = conditional_probabilities(posterior, labels, item, 0)
    exact = functools.partial(log_of_the_oracle, X, theta, concentration, model)
    np.testing.assert_allclose(found, conditional(exact, labels, item), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("n_features", [18, 19, 200, pytest.param(2_000, marks=pytest.mark.nightly)])
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
    found = conditional_probabilities(Posterior.from_data(X, model="II", theta_grid=[theta]), labels, item, 0)
    exact = functools.partial(log_of_the_oracle, X, theta, 1.0, "II")
    np.testing.assert_allclose(found, conditional(exact, labels, item), rtol=1e-4, atol=1e-12)


def test_products_over_very_many_features_do_not_overflow() -> None:
    for shape in ((3, 6_000), (5, 20_000)):
        X = np.random.default_rng(0).normal(size=shape)
        assert_conditional(Posterior.from_data(X, theta_grid=[1024.0]), (0,) * shape[0], atol=1e-9)


def test_candidates_that_were_lifted_differently_are_compared() -> None:
    """Two clusters in one place and another far away: products lie on both sides of the threshold."""
    compared = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        sides = rng.choice([-1.0, 1.0], 5)
        X = sides[:, None] + 0.0135 * rng.normal(size=(5, 48))
        labels = canonical(rng.integers(0, 3, 5).tolist())
        expected = assert_conditional(Posterior.from_data(X, theta_grid=[1024.0]), labels, atol=1e-5)
        compared += np.sum(expected > 1e-6) > 1
    assert compared > 50, "the candidates of many draws compete"


@pytest.mark.parametrize(
    ("model", "n_objects", "n_features"),
    [("I", 2, 1), ("I", 2, 40), ("III", 3, 1), ("III", 8, 6), ("II", 4, 18)]
    + [("II", 2, n_features) for n_features in (1, 2, 5, 9, 18, 19, 60)],
)
def test_no_concentration_is_too_small_or_too_large(model: str, n_objects: int, n_features: int) -> None:
    X = np.random.default_rng(0).normal(size=(n_objects, n_features))
    for concentration in (5e-324, 1e-300, 1e-100, 1e-9, 1e9, 1e100, 1e250, 1.7e308):
        for theta in (1.0, 2.0**30):
            posterior = Posterior.from_data(X, model=model, concentration=concentration, theta_grid=[theta])
            for labels in ((0,) * n_objects, tuple(range(n_objects)), (0,) * (n_objects - 1) + (1,)):
                assert_conditional(posterior, labels, rtol=1e-5)


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
        assert np.array_equal(event.labels, before) or event.moves[0].acceptances > 0
        assert event.moves[0].acceptances <= 5
        before = event.labels


# Clusters of equal rows leave no scatter but 1/θ: determinants are differences of equal numbers


@pytest.mark.slow
def test_equal_rows_and_the_largest_theta_leave_exact_conditionals(rng: np.random.Generator) -> None:
    """With determinants from products alone, some candidates of probability 1 were never chosen."""
    compared = 0
    for _ in range(100):
        n_features = int(rng.integers(1, 4))
        rows = rng.normal(size=(int(rng.integers(n_features + 1, n_features + 4)), n_features))
        X = np.concatenate([rows, rows[rng.integers(0, len(rows), int(rng.integers(2, 8)))]])
        if len(X) <= n_features + 1:
            continue
        labels = canonical(rng.integers(0, rng.integers(2, len(rows) + 2), len(X)))
        posterior = Posterior.from_data(X, model="III", theta_grid=[LARGEST_THETA])

        def exact(changed: list[int], X: Floats = X) -> float:
            return ew.ewens.log_pmf(changed, 1.0) + ew.log_likelihood(X, changed, LARGEST_THETA, "III")

        for item in range(len(X)):
            found = conditional_probabilities(posterior, labels, item, 0)
            np.testing.assert_allclose(found, conditional(exact, labels, item), atol=1e-4)
            compared += 1
    assert compared > 500


EQUAL_ROWS = {
    "two of each": [[0.0], [0.0], [1.0], [1.0], [5.0], [5.0]],
    "three and one": [[0.0], [0.0], [0.0], [2.0], [7.0], [7.0]],
    "in a plane": [[0.0, 0.0], [0.0, 0.0], [1.0, 0.2], [1.0, 0.2], [0.3, 1.0], [0.3, 1.0]],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EQUAL_ROWS)
@pytest.mark.parametrize("model", MODELS)
def test_splits_and_merges_of_equal_rows_are_exact_with_the_largest_theta(name: str, model: str) -> None:
    """With determinants from products alone, the right split was refused, as its ratio was not a number."""
    X = np.array(EQUAL_ROWS[name])
    space = make_space(X, model, 1.0, [LARGEST_THETA])
    exact = [
        oracle.exact_log_likelihood(X, labels, LARGEST_THETA, model) + ew.ewens.log_pmf(labels, 1.0)
        for labels in space.labels
    ]
    problem = make_problem(space.posterior)
    for fine, coarse in space.merges:
        slot, other, moved = single_split(np.array(space.labels[fine]), np.array(space.labels[coarse]))  # type: ignore[misc]
        apart, together = (
            make_workspace(problem, np.array(space.labels[place]), 0, 0.0) for place in (fine, coarse)
        )
        for workspace in (apart, together):
            interpreted(scatter.refresh)(problem, workspace)
        whole = space.labels[coarse][int(np.argmax(moved))]
        count = interpreted(gather_members)(together, whole, whole)
        together.sides[:count] = moved[together.members[:count]]
        interpreted(common_family.weigh_sides)(problem, together, count)
        split = interpreted(common_family.log_change_of_split)(problem, together, whole, int(moved.sum()))
        merge = interpreted(common_family.log_change_of_merge)(problem, apart, slot, other)
        assert split == pytest.approx(exact[fine] - exact[coarse], abs=1e-4)
        assert merge == pytest.approx(exact[coarse] - exact[fine], abs=1e-4)
