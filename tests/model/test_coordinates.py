"""Canonical coordinates of an orbit, and their rounding to a grid on which sums are exact."""

import math

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ewens_widgets as ew
from ewens_widgets.model.coordinates import canonical_coordinates, on_exact_grid

tables = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 40), st.integers(1, 4)), elements=st.floats(-4.0, 4.0)
)


@pytest.mark.parametrize("model", oracle.MODELS)
@pytest.mark.parametrize("shape", [(12, 1), (60, 8), (9, 3)])
def test_canonical_coordinates_are_centred_and_scaled(
    model: str, shape: tuple[int, int], rng: np.random.Generator
) -> None:
    Y = canonical_coordinates(rng.normal(3.0, 2.0, size=shape), model)[0]
    n_objects, n_features = shape
    np.testing.assert_allclose(Y.mean(axis=0), 0.0, atol=1e-14)
    total = Y.T @ Y / n_objects
    assert np.trace(total) == pytest.approx(n_features, rel=1e-13)
    if model != "I":
        np.testing.assert_allclose(np.diag(total), 1.0, rtol=1e-13)
    if model == "III":
        np.testing.assert_allclose(total, np.eye(n_features), atol=1e-13)
    assert Y.flags.c_contiguous
    assert Y.dtype == np.float64


def test_model_one_keeps_the_shape_of_the_cloud(rng: np.random.Generator) -> None:
    X = rng.normal(size=(10, 3)) * [1.0, 2.0, 30.0]
    Y = canonical_coordinates(X, "I")[0]
    ratio = (X - X.mean(axis=0)) / Y
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-10)


def test_distances_of_model_three_are_mahalanobis(rng: np.random.Generator) -> None:
    X = rng.normal(size=(15, 3)) @ rng.normal(size=(3, 3))
    Y = canonical_coordinates(X, "III")[0]
    precision = np.linalg.inv(np.cov(X.T, bias=True))
    difference = X[4] - X[9]
    assert np.sum((Y[4] - Y[9]) ** 2) == pytest.approx(float(difference @ precision @ difference), rel=1e-10)


@pytest.mark.parametrize("model", oracle.MODELS)
def test_one_large_offset_costs_no_more_digits_than_it_hides(model: str, rng: np.random.Generator) -> None:
    # A grid of sixteenths is exact with an offset of 2^40, so that the same coordinates must come out.
    X = np.round(rng.normal(size=(20, 3)) * 16) / 16
    plain = canonical_coordinates(X, model)[0]
    shifted = canonical_coordinates(X + 2.0**40, model)[0]
    np.testing.assert_allclose(shifted @ shifted.T, plain @ plain.T, atol=1e-12)


def test_values_at_both_ends_of_the_range_of_floats() -> None:
    largest = np.finfo(np.float64).max
    Y = canonical_coordinates(np.array([[largest], [-largest], [0.0]]), "II")[0]
    np.testing.assert_allclose(Y[:, 0], [math.sqrt(1.5), -math.sqrt(1.5), 0.0], atol=1e-15)
    Y = canonical_coordinates(np.array([[5e-324], [0.0]]), "II")[0]
    np.testing.assert_allclose(Y[:, 0], [1.0, -1.0], rtol=1e-15)


@pytest.mark.parametrize("model", ["II", "III"])
def test_columns_that_vary_by_rounding_error_alone_are_refused(model: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 2))
    almost_constant = 0.1 + np.where(rng.random(30) < 0.5, 0.0, 2.0**-56)
    assert len(set(almost_constant)) == 2
    X = np.column_stack([X, almost_constant])
    with pytest.raises(ValueError, match=r'\(s\) 2 are constant up to rounding error; drop .* model "I"'):
        canonical_coordinates(X, model)
    canonical_coordinates(X, "I")


def test_rows_that_differ_by_rounding_error_alone_are_refused() -> None:
    X = np.array([[0.1, 0.2], [0.1, 0.2 + 2.0**-55], [0.1, 0.2]])
    with pytest.raises(ValueError, match="all rows are equal up to rounding error"):
        canonical_coordinates(X, "I")


@pytest.mark.parametrize("offset", [0.0, 1e2, 1e6, 1e10])
def test_linear_combinations_are_found_behind_any_offset(offset: float, rng: np.random.Generator) -> None:
    first, second = rng.normal(size=(2, 50)) + offset
    dependent = np.column_stack([first, second, first - 3.0 * second + 7.0])
    with pytest.raises(ValueError, match=r'rank 2, less than their 3 columns.*PCA.*model "I" or "II"'):
        canonical_coordinates(dependent, "III")
    # With as little as 1e-3 of its own variation the third column carries information again.
    dependent[:, 2] += 1e-3 * rng.normal(size=50)
    canonical_coordinates(dependent, "III")


def sums_in_orders(Y: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Column sums accumulated in several orders, with detours through removals."""
    sums = [np.add.reduce(Y), np.array([math.fsum(column) for column in Y.T])]
    for _ in range(5):
        total = np.zeros(Y.shape[1])
        for row in rng.permutation(len(Y)):
            total += Y[row]
            visitor = Y[rng.integers(len(Y))]
            total += visitor
            total -= visitor
        sums.append(total)
    return sums


@given(tables, st.integers(0, 2**32 - 1))
def test_sums_on_the_grid_are_exact_in_any_order(table: np.ndarray, seed: int) -> None:
    # A visitor at most doubles the sum of absolute values, which stays within 2^53 steps.
    first, *others = sums_in_orders(on_exact_grid(table), np.random.default_rng(seed))
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_sums_off_the_grid_are_not_exact(rng: np.random.Generator) -> None:
    first, *others = sums_in_orders(rng.normal(size=(200, 3)), rng)
    assert any(not np.array_equal(other, first) for other in others)


def test_subsets_on_the_grid_are_exact(rng: np.random.Generator) -> None:
    Y = on_exact_grid(rng.normal(size=(500, 4)))
    for _ in range(50):
        subset = Y[rng.random(500) < rng.random()]
        exact = [math.fsum(column) for column in subset.T]
        np.testing.assert_array_equal(np.zeros(4) + subset.sum(axis=0), exact)


@given(tables)
def test_the_grid_moves_no_coordinate_noticeably_and_is_left_alone_by_itself(table: np.ndarray) -> None:
    rounded = on_exact_grid(table)
    assert np.abs(rounded - table).max() <= np.abs(table).sum(axis=0).max() * 2.0**-52
    np.testing.assert_array_equal(on_exact_grid(rounded), rounded)
    assert rounded.flags.c_contiguous


@pytest.mark.parametrize("model", oracle.MODELS)
def test_the_grid_does_not_change_the_likelihood(model: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(178, 6))
    labels = rng.integers(0, 9, size=178)
    posterior = ew.Posterior.from_data(X, model=model)
    exact = [ew.log_likelihood(X, labels, theta, model) for theta in posterior.theta_grid]
    np.testing.assert_allclose(posterior.log_likelihoods(labels), exact, rtol=0, atol=1e-9)
