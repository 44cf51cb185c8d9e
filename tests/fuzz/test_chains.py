"""Random small data sets, models and schedules: whatever the chain does, some things always hold."""

import copy
import math
from random import Random
from typing import Any

import numpy as np
import oracle
import pytest
from fuzz.hostile import seeded
from numpy.typing import NDArray

import ewens_widgets as ew
from ewens_widgets.model.likelihood import cluster_sums
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.draws import Event
from ewens_widgets.sampling.kernel.workspace import CLUSTERS, LOG_DETERMINANT, Workspace
from ewens_widgets.sampling.moves import SplitMerge
from ewens_widgets.sampling.moves.gibbs import _conditional

Floats = NDArray[np.float64]

SCHEDULES: list[Any] = [
    "default",
    "default",
    "paper-1",
    "paper-2",
    [("gibbs", 2)],
    [("informed-split-merge", 3), "reassign", "split-merge"],
    [SplitMerge("minimum", "hausdorff", (0.4, 0.4, 0.2), 0.3), "gibbs", SplitMerge("maximum", "minimum")],
]
GAMMAS = [ew.Gamma(1.0, 1.0), ew.Gamma(0.01, 0.01), ew.Gamma(50.0, 2.0)]
CONCENTRATIONS = [1.0, 1.0, 0.01, 30.0, 1e-12, 1e9, *GAMMAS]
GRIDS: list[Any] = [None, None, [1.0], [2.0**-20, 0.3, 2.0**20], np.geomspace(0.01, 100.0, 30)]
REFUSED = ("rank", "needs more than", "constant", "all rows are equal")  # what a model is not defined on
INITIAL = ["singletons", "one-cluster", "k-means", "prior"]
SHAPES = ["normal", "clusters", "whole numbers", "duplicates", "scales", "far away", "line"]


def table(shape: str, n_objects: int, n_features: int, rng: np.random.Generator) -> Floats:
    """Data of one kind."""
    X = rng.normal(size=(n_objects, n_features))
    if shape == "clusters":
        X = 0.05 * X + rng.integers(0, 3, (n_objects, 1)) * rng.normal(size=n_features)
    elif shape == "whole numbers":
        X = np.round(2.0 * X)
    elif shape == "duplicates":
        X = X[rng.integers(0, max(2, n_objects // 3), n_objects)]
    elif shape == "scales":
        X = X * 10.0 ** rng.integers(-9, 9, n_features)
    elif shape == "far away":
        X = X + 1e8 * rng.normal(size=n_features)
    elif shape == "line":
        X = X[:, :1] * rng.normal(size=n_features) + 1e-3 * X
    return X


def workspace_of(sampler: ew.Sampler) -> Workspace:
    sampler.state  # noqa: B018 - goes back to the last event that was given out
    return sampler._driver._workspace


def statistics_error(sampler: ew.Sampler) -> float:
    """Largest relative difference between the statistics of the chain and recomputed ones.

    Sizes and sums are exact and must be equal.
    """
    kept, problem = workspace_of(sampler), sampler._driver._problem
    n_clusters, model = int(kept.integers[CLUSTERS]), problem.model
    sums = cluster_sums(problem.coordinates, kept.labels)
    np.testing.assert_array_equal(kept.sizes[:n_clusters], np.bincount(kept.labels))
    assert not kept.sizes[n_clusters:].any()
    np.testing.assert_array_equal(kept.sums[:n_clusters], sums)
    np.testing.assert_array_equal(kept.columns[:, :n_clusters], sums.T)
    fresh = copy.deepcopy(kept)
    _conditional(problem, fresh, 0)  # computes the scatter anew first
    if model == 1:
        pairs = [(kept.scatter[:1], fresh.scatter[:1]), (kept.gram[:n_clusters], fresh.gram[:n_clusters])]
    elif model == 2:
        pairs = [(kept.scatter, fresh.scatter)]
    else:
        determinant = slice(LOG_DETERMINANT, LOG_DETERMINANT + 1)
        pairs = [(kept.inverse, fresh.inverse), (kept.reals[determinant], fresh.reals[determinant])]
    return max(float(np.max(np.abs(a - b) / (1.0 + np.abs(b)))) for a, b in pairs)


def expected_log_posterior(X: Floats, sampler: ew.Sampler, event: Event) -> float:
    """By brute force, from the data and the formulas."""
    posterior = sampler.posterior
    log_prior = ew.ewens.log_pmf(event.labels, event.concentration)
    if isinstance(posterior.concentration, ew.Gamma):
        log_prior += posterior.concentration.log_density(event.concentration)
    log_theta = math.log(oracle.theta_weights(posterior.theta_grid, posterior.alpha)[event.theta_index])
    return log_theta + log_prior + oracle.log_likelihood(X, event.labels, event.theta, posterior.model)


def keep_promises(rng: Random, seed: int) -> None:
    """A chain on random data with random settings: what each of five iterations tells is right."""
    shape, n_objects, n_features = rng.choice(SHAPES), rng.randint(2, 14), rng.randint(1, 4)
    X = table(shape, n_objects, n_features, np.random.default_rng(seed))
    theta_grid = rng.choice(GRIDS)
    options = {
        "model": rng.choice(["I", "II", "III"]),
        "moves": rng.choice(SCHEDULES),
        "concentration": rng.choice(CONCENTRATIONS),
        "initial": rng.choice(INITIAL),
    }
    try:
        sampler = ew.Sampler(X, theta_grid=theta_grid, seed=seed, **options)
    except ValueError as fault:
        if any(word in str(fault) for word in REFUSED):
            return
        raise
    labels = sampler.labels
    for event in sampler.events(5):
        np.testing.assert_allclose(event.theta_weights.sum(), 1.0, rtol=1e-12)
        weights = sampler.posterior.theta_conditional(labels)
        np.testing.assert_allclose(event.theta_weights, weights, rtol=1e-5, atol=1e-7)
        labels = event.labels
        np.testing.assert_array_equal(labels, canonical_labels(labels))
        assert labels.shape == (n_objects,)
        assert event.n_clusters == labels.max() + 1
        again = sampler.posterior.log_density(labels, event.theta_index, event.concentration)
        assert math.isfinite(event.log_posterior)
        assert event.log_posterior == pytest.approx(again, rel=1e-10, abs=1e-6)
        assert statistics_error(sampler) < 1e-7
    if shape in {"normal", "whole numbers", "duplicates"} and theta_grid is None:
        expected = expected_log_posterior(X, sampler, event)
        assert event.log_posterior == pytest.approx(expected, rel=1e-9, abs=1e-5)


@pytest.mark.filterwarnings("ignore::ewens_widgets.model.checks.DataWarning")  # duplicates
@pytest.mark.parametrize("count", [150, pytest.param(5000, marks=pytest.mark.nightly)])
def test_every_chain_keeps_its_promises(count: int) -> None:
    for seed in range(count):
        try:
            keep_promises(seeded(seed), seed)
        except AssertionError as fault:
            raise AssertionError(f"seed {seed}") from fault
