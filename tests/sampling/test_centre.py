"""An unknown centre: its likelihood, and what is computed from draws with it.

Its chains are in `test_exact_chains`, `test_invariance` and `test_state`.
"""

import itertools
import math

import numpy as np
import pytest
from sampling.exact import MODELS, SIX, Floats
from sampling.test_invariance import data

import ewens_widgets as ew
from ewens_widgets.analysis.evidence_tree import evidence_of
from ewens_widgets.analysis.explanation import explain
from ewens_widgets.analysis.predictive import masses_and_densities
from ewens_widgets.model.own_shapes import statistics_of
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import all_partitions
from ewens_widgets.sampling.moves import Gibbs

GRID = [0.25, 1.0, 8.0]
SHAPES = ("common", "own")


def orbit_log_likelihood(X: Floats, labels: Floats, theta: float, model: str) -> float:
    """The definition, with the inverse of Γ: S is what generalised least squares leaves of the data."""
    (n_objects, n_features), ones = X.shape, np.ones(len(X))
    gamma = np.eye(n_objects) + theta * np.equal.outer(labels, labels)
    inverse = np.linalg.inv(gamma)
    total = float(ones @ inverse @ ones)
    rest = inverse - np.outer(inverse @ ones, inverse @ ones) / total
    forms = X.T @ rest @ X, (X - X.mean(axis=0)).T @ (X - X.mean(axis=0))
    scale = {
        "I": lambda S: n_features * np.log(np.trace(S)),
        "II": lambda S: np.log(np.diag(S)).sum(),
        "III": lambda S: np.linalg.slogdet(S)[1],
    }[model]
    log_det = np.linalg.slogdet(gamma)[1] + math.log(total)
    return float(-0.5 * (n_features * log_det + (n_objects - 1) * (scale(forms[0]) - scale(forms[1]))))


@pytest.mark.parametrize("model", MODELS)
def test_the_likelihood_is_its_definition(model: str) -> None:
    posterior = Posterior.from_data(SIX, model, theta_grid=GRID, centre="unknown")
    for labels in all_partitions(6)[::7]:
        expected = [orbit_log_likelihood(SIX, labels, theta, model) for theta in GRID]
        np.testing.assert_allclose(posterior.log_likelihoods(labels), expected, atol=1e-11)
        found = [ew.log_likelihood(SIX, labels, theta, model, centre="unknown") for theta in GRID]
        np.testing.assert_allclose(found, expected, atol=1e-11)


def test_one_cluster_says_nothing_of_theta_and_the_mean_favours_more_clusters() -> None:
    """The figures of docs/sampler.md: four clusters against one on the unit square."""
    square, together = ew.datasets.unit_square(seed=0), np.zeros(80, dtype=int)
    for model, centre in itertools.product(MODELS, ("unknown", "mean")):
        grid = np.exp2(np.arange(-3.0, 11.0))
        values = [ew.log_likelihood(square, together, theta, model, centre) for theta in grid]
        assert np.ptp(values) < 1e-10 if centre == "unknown" else np.ptp(values) > 8.0
    for centre, gain in (("mean", 115.9), ("unknown", 112.9)):
        four, one = (ew.log_likelihood(square, B, 16.0, "III", centre) for B in (square.labels, together))
        assert four - one == pytest.approx(gain, abs=0.05)


@pytest.mark.parametrize("model", MODELS)
def test_weights_of_theta_are_those_of_the_posterior(model: str) -> None:
    """Also where the kernel does not compute them, as they are too small; a known centre has others."""
    square = ew.datasets.unit_square(seed=0)
    trace = ew.Sampler(square, model=model, centre="unknown", seed=1).sample(60, progress=False)
    known, gaps = ew.Sampler(square, model=model).posterior, []
    for before, event in itertools.pairwise(trace):
        exact = trace.posterior.theta_conditional(before.labels)
        np.testing.assert_allclose(event.theta_weights, exact, atol=1e-6)
        gaps.append(np.abs(exact - known.theta_conditional(before.labels)).max())
    assert max(gaps) > 1e-3
    assert np.mean(trace.theta_weights == 0.0) > 0.05


def test_another_centre_is_refused() -> None:
    with pytest.raises(ValueError, match=r'centre must be "mean".*or "unknown"'):
        ew.Sampler(data(), centre="median")
    sampler = ew.Sampler(data(), centre="unknown")
    with pytest.raises(ValueError, match='use centre="mean" here'):
        explain(sampler.posterior, sampler.state, Gibbs())


@pytest.mark.parametrize("model", MODELS)
def test_a_new_object_has_the_density_that_one_more_row_makes(model: str) -> None:
    X, labels = data(), np.arange(18) % 3
    posterior = Posterior.from_data(X, model, centre="unknown")
    row = X[0] + [0.3, -1.0, 0.5]
    differences = []
    for partition, theta in ((labels, 4.0), (np.arange(18), 0.5), (np.zeros(18, dtype=int), 64.0)):
        masses, densities = masses_and_densities(posterior, partition, theta, 1.0, posterior.map(row[None]))
        found = masses + densities[0]
        for label in range(partition.max() + 2):
            grown = np.append(partition, label)
            likelihoods = [
                ew.log_likelihood(Y, B, theta, model, "unknown")
                for Y, B in ((np.vstack([X, row]), grown), (X, partition))
            ]
            priors = ew.ewens.log_pmf(grown, 1.0) - ew.ewens.log_pmf(partition, 1.0)
            differences.append(found[label] - priors - likelihoods[0] + likelihoods[1])
    np.testing.assert_allclose(differences, differences[0], atol=1e-8)


def test_the_density_of_a_new_object_is_one() -> None:
    X, places = data()[:, :1], np.sinh(np.linspace(-9.0, 9.0, 4001))
    for model, shapes in itertools.product(MODELS, SHAPES):
        trace = ew.Sampler(X, model=model, shapes=shapes, centre="unknown").sample(5, progress=False)
        labels, theta, nu = trace.labels[-1].astype(np.intp), float(trace.theta[-1]), float(trace.nu[-1])
        masses, densities = masses_and_densities(
            trace.posterior, labels, theta, 1.0, places[:, None], nu, trace.sigma[-1]
        )
        log_density = np.logaddexp.reduce(masses + densities, axis=1)
        assert np.trapezoid(np.exp(log_density), places) == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("model", MODELS)
def test_merges_lose_what_the_posterior_says(model: str, shapes: str) -> None:
    sampler = ew.Sampler(data(), model=model, shapes=shapes, centre="unknown", seed=2)
    trace, labels = sampler.sample(30, progress=False)[29:], np.arange(18) % 4
    posterior = sampler.posterior
    found = evidence_of(posterior, trace).all_losses(statistics_of(posterior.coordinates, labels, model))
    shape = int(trace.nu_index[0]), trace.sigma[0]

    def log_posterior(labels: Floats) -> float:
        if shapes == "common":
            return posterior.log_marginal(labels)
        g = int(trace.theta_index[0])
        return posterior.log_prior(labels) + float(posterior.log_likelihoods(labels, *shape)[g])

    for a, b in itertools.combinations(range(4), 2):
        merged = np.where(labels == b, a, labels)
        assert found[a, b] == pytest.approx(log_posterior(labels) - log_posterior(merged), abs=1e-8)


def test_clusters_and_estimates_know_it() -> None:
    rng = np.random.default_rng(4)
    X = np.vstack([rng.normal(size=(25, 2)), rng.normal([9.0, 0.0], size=(15, 2))])
    for shapes in SHAPES:
        found = ew.AffineClustering(
            shapes=shapes, centre="unknown", n_chains=2, draws=300, burn_in=50, random_state=0
        ).fit(X)
        assert found.trace_.posterior.centre == "unknown"
        assert found.n_clusters_ == 2
        sigma = found.trace_.sigma[-1] if shapes == "own" else None
        made = found.trace_.posterior.cluster_shapes(found.labels_, 16.0, 64.0, sigma)
        centres = found.trace_.posterior.map(np.array([X[:25].mean(axis=0), X[25:].mean(axis=0)]))
        np.testing.assert_allclose(made.centres, centres, atol=0.2)
        assert np.isfinite(found.score_samples(X[:3])).all()
    compared = ew.compare(X, models=["II"], folds=2, draws=40, burn_in=40, centre="unknown")
    assert all(not row.problem for row in compared.rows)
