"""The prior of many objects: fast, and as exact as that of few."""

import math

import numpy as np
import pytest
from scipy.special import gammaln

import ewens_widgets as ew
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.partition_prior import log_rising_factorial


@pytest.mark.parametrize("count", [1001, 5000, 100_000])
def test_long_products(count: int) -> None:
    """From tiny factors, where the plain sum is exact enough, to huge ones, where log Gammas would cancel."""
    start = np.array([1e-300, 1e-3, 0.7, 1.0, 15.9, 16.0, 300.0, 1e6, 1e12, 1e300])
    expected = [math.fsum(np.log(value + np.arange(count))) for value in start]
    np.testing.assert_allclose(log_rising_factorial(start, count), expected, rtol=3e-15)
    naive = gammaln(1e12 + count) - gammaln(1e12)
    assert abs(naive - expected[8]) > 1e-5  # what the series is there to avoid


def test_the_first_weights_are_those_of_all() -> None:
    prior = ew.Gamma(2.0, 0.7)
    np.testing.assert_allclose(
        ew.priors.Ewens(prior).log_count_weights(300, 5),
        ew.priors.Ewens(prior).log_count_weights(300)[:6],
        rtol=1e-14,
    )
    np.testing.assert_allclose(
        ew.priors.Ewens(2.0).log_count_weights(300, 5),
        ew.priors.Ewens(2.0).log_count_weights(300)[:6],
        rtol=1e-14,
    )


def test_a_gamma_prior_of_many_objects_computes_only_what_is_asked_for() -> None:
    X = np.random.default_rng(0).normal(size=(3000, 1))
    posterior = Posterior.from_data(X, concentration=ew.Gamma(1.0, 1.0))
    labels = np.arange(3000) % 4
    value = posterior.log_prior(labels)
    assert "log_count_weights" not in posterior.__dict__
    assert posterior.__dict__["_first_count_weights"].size < 20
    expected = ew.priors.Ewens(ew.Gamma(1.0, 1.0)).log_count_weights(3000, 4)[4] + 4 * gammaln(750)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(posterior.count_weights(2), posterior.count_weights(30)[:3])


@pytest.mark.parametrize(("shape", "rate"), [(1e-101, 1.0), (1.0, 1e-300), (1e300, 1.0), (1.0, 1e101)])
def test_priors_whose_draws_could_overflow_are_refused(shape: float, rate: float) -> None:
    with pytest.raises(ValueError, match=r"must lie between 1e-100 and 1e\+100"):
        ew.Gamma(shape, rate)


def test_an_alpha_beyond_numbers_is_refused() -> None:
    X = [[0.0], [1.0], [3.0]]
    with pytest.raises(ValueError, match="alpha is too large"):
        Posterior.from_data(X, alpha=1e308)
    assert np.isfinite(Posterior.from_data(X, alpha=1e300).log_theta_prior).all()
