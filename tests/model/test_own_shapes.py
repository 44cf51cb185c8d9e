"""Marginal likelihoods of clusters with shapes of their own: against quadrature, predictives and limits."""

import numpy as np
import pytest
from scipy import integrate, stats

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.own_shapes import (
    ClusterStatistics,
    cluster_shapes,
    log_marginals,
    log_predictive,
    log_sigma_prior,
    pack_sigma,
    packed_length,
    statistics_of,
    unpack_sigma,
)

MODELS = ("I", "II", "III")
N_FEATURES = 3


def scale_of(model: str, rng: np.random.Generator, n_features: int = N_FEATURES) -> FloatArray:
    """A scale in the form of the model."""
    if model == "I":
        return np.array(rng.gamma(3.0))
    if model == "II":
        return rng.gamma(3.0, size=n_features)
    root = rng.normal(size=(n_features, n_features)) + 2.0 * np.eye(n_features)
    return root @ root.T


def one_cluster(rows: FloatArray, model: str) -> ClusterStatistics:
    return statistics_of(rows, np.zeros(len(rows), dtype=np.intp), model)


@pytest.mark.parametrize("model", MODELS)
def test_marginal_of_one_column_is_the_integral_over_mean_and_variance(model: str) -> None:
    rows, theta, nu, sigma = np.array([[0.3], [-1.2], [0.9]]), 1.7, 2.5, 0.8
    variance_prior = stats.invgamma((nu + 2.0) / 2.0, scale=nu * sigma / 2.0)

    def density(variance: float) -> float:
        covariance = variance * (np.eye(3) + theta)
        return variance_prior.pdf(variance) * stats.multivariate_normal(np.zeros(3), covariance).pdf(
            rows[:, 0]
        )

    expected = integrate.quad(density, 0.0, np.inf, epsabs=1e-13, limit=200)[0]
    form = {"I": sigma, "II": np.array([sigma]), "III": np.array([[sigma]])}[model]
    found = log_marginals(one_cluster(rows, model), theta, nu, form, model)
    assert found == pytest.approx([np.log(expected)], abs=1e-8)


@pytest.mark.parametrize("model", MODELS)
def test_marginal_is_the_product_of_predictives(model: str) -> None:
    rng = np.random.default_rng(1)
    rows, sigma = rng.normal(size=(6, N_FEATURES)), scale_of(model, rng)
    total = 0.0
    for seen in range(len(rows)):
        nobody = one_cluster(np.zeros((1, N_FEATURES)), model)
        before = one_cluster(rows[:seen], model) if seen else nobody._replace(sizes=np.zeros(1))
        total += log_predictive(rows[seen : seen + 1], before, 0.6, 4.0, sigma, model)[0, 0]
    found = log_marginals(one_cluster(rows, model), 0.6, 4.0, sigma, model)
    assert found == pytest.approx([total], abs=1e-10)


@pytest.mark.parametrize("model", MODELS)
def test_marginals_broadcast_over_draws_and_partitions(model: str) -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(10, N_FEATURES))
    clusters = statistics_of(rows, np.repeat([0, 1, 2], [5, 3, 2]), model)
    thetas, nus = np.array([0.5, 8.0]), np.array([2.0, 64.0])
    sigmas = np.array([scale_of(model, rng) for _ in range(2)])
    together = log_marginals(clusters, thetas, nus, sigmas, model)
    assert together.shape == (2, 3)
    for draw in range(2):
        alone = log_marginals(clusters, thetas[draw], nus[draw], sigmas[draw], model)
        assert together[draw] == pytest.approx(alone, abs=1e-12)
    nobody = one_cluster(np.zeros((1, N_FEATURES)), model)._replace(sizes=np.zeros(1))
    assert log_marginals(nobody, 3.0, 8.0, sigmas[0], model) == pytest.approx([0.0], abs=1e-10)


@pytest.mark.parametrize("model", MODELS)
def test_many_degrees_of_freedom_are_one_gaussian_shape(model: str) -> None:
    rng = np.random.default_rng(5)
    rows, sigma, theta = rng.normal(size=(5, N_FEATURES)), scale_of(model, rng), 1.5
    covariance = {
        "I": lambda: sigma * np.eye(N_FEATURES),
        "II": lambda: np.diag(sigma),
        "III": lambda: sigma,
    }[model]()
    joint = np.kron(np.eye(5) + theta, covariance)
    expected = stats.multivariate_normal(np.zeros(5 * N_FEATURES), joint).logpdf(rows.ravel())
    found = log_marginals(one_cluster(rows, model), theta, 1e8, sigma, model)[0]
    assert found == pytest.approx(expected, abs=1e-4)


def test_shapes_are_the_posterior_means() -> None:
    rng = np.random.default_rng(6)
    rows, theta, nu = rng.normal(size=(7, 1)), 2.0, 5.0
    clusters = one_cluster(rows, "II")
    shapes = cluster_shapes(clusters, theta, nu, np.array([0.7]), "II")
    kappa = 1.0 / theta + 7.0
    volume = nu * 0.7 + np.sum(rows**2) - rows.sum() ** 2 / kappa
    posterior = stats.invgamma((nu + 2.0 + 7.0) / 2.0, scale=volume / 2.0)
    assert shapes.centres[0, 0] == pytest.approx(rows.sum() / kappa)
    assert shapes.covariances[0, 0, 0] == pytest.approx(posterior.mean())


@pytest.mark.parametrize("model", MODELS)
def test_packing_is_undone(model: str) -> None:
    rng = np.random.default_rng(8)
    sigmas = np.array([scale_of(model, rng) for _ in range(4)])
    packed = pack_sigma(sigmas, model)
    assert packed.shape == (4, packed_length(N_FEATURES, model))
    assert np.array_equal(unpack_sigma(packed, N_FEATURES, model), sigmas)
    with pytest.raises(ValueError, match="numbers; got"):
        unpack_sigma(np.zeros(99), N_FEATURES, model)


@pytest.mark.parametrize("model", MODELS)
def test_prior_of_the_scale_is_invariant(model: str) -> None:
    """A change of units multiplies the density by a constant, whatever the scale."""
    rng = np.random.default_rng(9)
    one, other = scale_of(model, rng), scale_of(model, rng)
    before = log_sigma_prior(one, model) - log_sigma_prior(other, model)
    if model == "III":
        linear = rng.normal(size=(N_FEATURES, N_FEATURES))
        one, other = linear @ one @ linear.T, linear @ other @ linear.T
    else:
        factor = 7.0 if model == "I" else np.array([2.0, 0.1, 5.0])
        one, other = factor * one, factor * other
    assert log_sigma_prior(one, model) - log_sigma_prior(other, model) == pytest.approx(before)
