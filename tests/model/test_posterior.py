"""The joint posterior puts its parts together, and cannot be disturbed; the grid of θ and its prior."""

import dataclasses
import math
import pickle

import numpy as np
import oracle
import pytest
from scipy.special import logsumexp

import ewens_widgets as ew
from ewens_widgets.model.checks import check_theta, check_theta_grid
from ewens_widgets.model.posterior import log_theta_prior

LABELS = [0, 0, 1, 2, 1, 0, 2, 1, 0, 0]
GRID = [0.5, 2.0, 8.0]


@pytest.fixture
def data(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(10, 2)) @ np.array([[1.0, 0.4], [0.0, 3.0]])


@pytest.mark.parametrize("model", oracle.MODELS)
def test_parts_of_the_posterior(data: np.ndarray, model: str) -> None:
    posterior = ew.Posterior.from_data(data, model=model, concentration=1.7, alpha=2.0, theta_grid=GRID)
    likelihoods = [oracle.log_likelihood(data, LABELS, theta, model) for theta in GRID]
    np.testing.assert_allclose(posterior.log_likelihoods(LABELS), likelihoods, rtol=1e-10)
    prior = np.log(oracle.theta_weights(GRID, 2.0))
    np.testing.assert_allclose(posterior.log_theta_prior, prior, rtol=1e-12)
    log_prior = ew.ewens.log_pmf(LABELS, 1.7)
    assert posterior.log_prior(LABELS) == pytest.approx(log_prior, rel=1e-13)
    for index in range(3):
        expected = log_prior + prior[index] + likelihoods[index]
        assert posterior.log_density(LABELS, index) == pytest.approx(expected, rel=1e-11)
        # A value of a concentration that is fixed anyway changes nothing.
        assert posterior.log_density(LABELS, index, concentration=1.7) == pytest.approx(expected, rel=1e-11)
    joint = log_prior + prior + likelihoods
    assert posterior.log_marginal(LABELS) == pytest.approx(float(logsumexp(joint)), rel=1e-11)
    conditional = posterior.theta_conditional(LABELS)
    assert math.fsum(conditional) == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(conditional, np.exp(joint - logsumexp(joint)), rtol=1e-9)


def test_a_gamma_prior_is_integrated_out_or_evaluated(data: np.ndarray) -> None:
    prior = ew.Gamma(2.0, 3.0)
    posterior = ew.Posterior.from_data(data, concentration=prior)
    log_prior = posterior.log_count_weights[3] + math.lgamma(5) + math.lgamma(3) + math.lgamma(2)
    assert posterior.log_prior(LABELS) == pytest.approx(log_prior)
    base = float(posterior.log_likelihoods(LABELS)[4] + posterior.log_theta_prior[4])
    assert posterior.log_density(LABELS, 4) == pytest.approx(base + posterior.log_prior(LABELS))
    given = posterior.log_density(LABELS, 4, concentration=0.8)
    assert given == pytest.approx(base + ew.ewens.log_pmf(LABELS, 0.8) + prior.log_density(0.8))
    # The density over the concentration integrates to the marginal.
    values = np.exp(np.linspace(-14, 5, 4001))
    joint = [
        posterior.log_density(LABELS, 4, concentration=float(value)) + math.log(value) for value in values
    ]
    step = math.log(values[1] / values[0])
    assert logsumexp(joint) + math.log(step) == pytest.approx(posterior.log_density(LABELS, 4), abs=1e-9)


def test_defaults_are_those_of_the_sampler(data: np.ndarray) -> None:
    posterior = ew.Posterior.from_data(data)
    assert (posterior.model, posterior.concentration, posterior.alpha) == ("II", 1.0, 1.0)
    assert posterior.theta_grid.tolist() == [2.0**power for power in range(-3, 11)]
    assert (posterior.n_objects, posterior.n_features) == (10, 2)
    np.testing.assert_array_equal(posterior.log_theta_prior, log_theta_prior(posterior.theta_grid))
    assert "coordinates" not in repr(posterior)


@pytest.mark.parametrize("model", oracle.MODELS)
def test_a_posterior_is_read_only(data: np.ndarray, model: str) -> None:
    grid = np.array(GRID)
    posterior = ew.Posterior.from_data(data, model=model, theta_grid=grid)
    for array in (
        posterior.coordinates,
        posterior.theta_grid,
        posterior.log_theta_prior,
        posterior.log_count_weights,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        posterior.alpha = 2.0
    assert posterior.coordinates.flags.c_contiguous
    assert grid.flags.writeable
    assert data.flags.writeable


def test_a_posterior_survives_pickling(data: np.ndarray) -> None:
    posterior = ew.Posterior.from_data(data, model="III", concentration=ew.Gamma(1.0, 2.0))
    copy = pickle.loads(pickle.dumps(posterior))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(copy.coordinates, posterior.coordinates)
    assert copy.concentration == posterior.concentration
    assert not copy.coordinates.flags.writeable
    assert not copy.theta_grid.flags.writeable
    assert copy.log_marginal(LABELS) == posterior.log_marginal(LABELS)


def test_names_of_clusters_do_not_matter(data: np.ndarray) -> None:
    posterior = ew.Posterior.from_data(data, model="III")
    names = np.array(["c", "a", "b"])[LABELS]
    assert posterior.log_marginal(names) == posterior.log_marginal(LABELS)
    with pytest.raises(ValueError, match="length 9, but there are 10 objects"):
        posterior.log_marginal(LABELS[1:])


def test_duplicated_points_and_extreme_options_stay_finite(rng: np.random.Generator) -> None:
    X = np.repeat(rng.normal(size=(4, 2)), 5, axis=0)
    labels = np.repeat(np.arange(4), 5)
    for model in oracle.MODELS:
        for concentration in (1e-6, 1e6, ew.Gamma(0.01, 0.01), ew.Gamma(1e3, 1.0)):
            posterior = ew.Posterior.from_data(
                X, model=model, concentration=concentration, alpha=0.01, theta_grid=[1e-10, 1.0, 2.0**30]
            )
            for part in (labels, np.zeros(20, dtype=int), np.arange(20)):
                assert np.all(np.isfinite(posterior.log_likelihoods(part)))
                assert math.isfinite(posterior.log_marginal(part))
                assert np.all(np.isfinite(posterior.theta_conditional(part)))


def test_the_symmetric_f_prior_is_symmetric_itself_and_has_the_masses_of_its_steps() -> None:
    grid = np.exp2(np.arange(-6.0, 7.0))
    masses = np.exp(log_theta_prior(grid, 1.7, "symmetric-F"))
    np.testing.assert_allclose(masses, masses[::-1], rtol=1e-12)
    # On a fine grid, even or not, it is the integral of the density: for α = 1, F(θ) = θ / (1 + θ).
    for fine in (np.exp2(np.linspace(-20, 20, 4001)), np.exp2(np.linspace(-4, 4, 3001) ** 3 / 4)):
        below = np.exp(log_theta_prior(fine, 1.0, "symmetric-F"))[fine <= 3.0].sum()
        assert below == pytest.approx(0.75, abs=2e-3)
    assert log_theta_prior(3.0, 1.0, "symmetric-F").tolist() == [0.0]
    with pytest.raises(ValueError, match="theta_prior must be one of as-printed, symmetric-F; got 'F'"):
        log_theta_prior(grid, 1.0, "F")


def test_grids_are_sorted_may_be_one_value_and_extreme() -> None:
    assert check_theta_grid([4, 1, 2]).tolist() == [1.0, 2.0, 4.0]
    assert check_theta_grid(3).tolist() == [3.0]
    assert log_theta_prior(3.0).tolist() == [0.0]
    given = np.array([1.0, 2.0])
    assert not np.shares_memory(check_theta_grid(given), given)
    log_prior = log_theta_prior([1e-300, 1.0, 2.0**30], 30.0)
    assert np.all(np.isfinite(log_prior))
    assert math.fsum(np.exp(log_prior)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        ([], ValueError, r"non-empty list of numbers; got shape \(0,\)"),
        ([[1.0, 2.0]], ValueError, r"non-empty list of numbers; got shape \(1, 2\)"),
        ([1.0, 0.0], ValueError, r"positive and finite; got \[1. 0.\]"),
        ([1.0, -2.0], ValueError, "positive and finite"),
        ([1.0, math.nan], ValueError, "positive and finite"),
        ([1.0, math.inf], ValueError, "positive and finite"),
        ([1.0, 2.0, 1.0], ValueError, "holds a value twice"),
        ([1.0, 1e12], ValueError, r"must not exceed 2\*\*30.*got .*1000000000000.0"),
        (["low", "high"], TypeError, "must be a list of numbers; got"),
        ({"from": 1}, TypeError, "must be a list of numbers; got"),
        ([1j], TypeError, "must be a list of numbers; got"),
    ],
)
def test_bad_grids_are_refused(grid: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_theta_grid(grid)


def test_alpha_and_theta_must_be_positive_and_not_too_large() -> None:
    for alpha in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"alpha must be positive and finite; got {alpha!r}"):
            log_theta_prior([1.0, 2.0], alpha)
    X = [[0.0], [1.0], [3.0]]
    with pytest.raises(ValueError, match="alpha is too large"):
        ew.Posterior.from_data(X, alpha=1e308)
    assert np.isfinite(ew.Posterior.from_data(X, alpha=1e300).log_theta_prior).all()
    for theta in (0.0, -1.0, math.nan, math.inf, 2.0**31, 1e300):
        for call in (check_theta, lambda theta: ew.log_likelihood(X, [0, 0, 1], theta, "II")):
            with pytest.raises(ValueError, match="theta must"):
                call(theta)
