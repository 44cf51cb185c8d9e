"""The grid of θ and its prior."""

import math

import numpy as np
import oracle
import pytest

from ewens_widgets.model.checks import check_theta, check_theta_grid
from ewens_widgets.model.posterior import default_theta_grid, log_theta_prior


def test_default_grid_is_the_powers_of_two_from_an_eighth_to_1024() -> None:
    assert default_theta_grid().tolist() == [2.0**power for power in range(-3, 11)]


@pytest.mark.parametrize("alpha", [0.1, 1.0, 2.5, 40.0])
def test_prior_is_normalised_and_has_the_stated_shape(alpha: float) -> None:
    grid = default_theta_grid()
    log_prior = log_theta_prior(grid, alpha)
    assert math.fsum(np.exp(log_prior)) == pytest.approx(1.0, abs=1e-13)
    np.testing.assert_allclose(np.exp(log_prior), oracle.theta_weights(grid.tolist(), alpha), rtol=1e-10)


def test_prior_is_symmetric_under_inversion_on_a_logarithmic_scale() -> None:
    # p(θ) θ is the same at θ and 1/θ, the density of log θ.
    grid = np.exp2(np.arange(-6.0, 7.0))
    log_density = log_theta_prior(grid, 1.7) + np.log(grid)
    np.testing.assert_allclose(log_density, log_density[::-1], rtol=1e-12)


def test_extreme_grids_stay_finite() -> None:
    log_prior = log_theta_prior([1e-300, 1.0, 2.0**30], 30.0)
    assert np.all(np.isfinite(log_prior))
    assert math.fsum(np.exp(log_prior)) == pytest.approx(1.0)


def test_grid_is_sorted_and_a_single_value_is_a_grid() -> None:
    assert check_theta_grid([4, 1, 2]).tolist() == [1.0, 2.0, 4.0]
    assert check_theta_grid(3).tolist() == [3.0]
    assert log_theta_prior(3.0).tolist() == [0.0]
    given = np.array([1.0, 2.0])
    assert not np.shares_memory(check_theta_grid(given), given)


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


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan, math.inf])
def test_alpha_must_be_positive(alpha: float) -> None:
    with pytest.raises(ValueError, match=f"alpha must be positive and finite; got {alpha!r}"):
        log_theta_prior([1.0, 2.0], alpha)


@pytest.mark.parametrize("theta", [0.0, -1.0, math.nan, math.inf, 2.0**31])
def test_theta_must_be_positive_and_not_too_large(theta: float) -> None:
    with pytest.raises(ValueError, match="theta must"):
        check_theta(theta)
