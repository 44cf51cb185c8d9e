"""Chains on real data agree with each other, and the paper's schedule with ours, if it is given the time."""

import numpy as np
import pytest
from sampling.goodness import batch_error

import ewens_widgets as ew

STARTS = ("singletons", "one-cluster", "k-means", "prior")


@pytest.mark.slow
def test_chains_from_dispersed_starts_agree_on_wine() -> None:
    arviz = pytest.importorskip("arviz")
    counts, log_posteriors = [], []
    for seed, initial in enumerate(STARTS):
        sampler = ew.Sampler(ew.datasets.wine(), model="II", initial=initial, seed=seed)
        trace = sampler.sample(2500, burn_in=500, progress=False)
        counts.append(trace.n_clusters.astype(float))
        log_posteriors.append(trace.log_posterior)
    assert float(arviz.rhat(np.array(counts))) < 1.03
    assert float(arviz.rhat(np.array(log_posteriors))) < 1.01
    # Short pieces of two chains do not agree so well: the figure is not small by itself.
    assert float(arviz.rhat(np.array(counts)[:2, :30])) > 1.03


@pytest.mark.slow
def test_a_million_iterations_of_the_papers_schedule_find_what_the_default_finds() -> None:
    square = ew.datasets.unit_square(seed=0)
    ours = ew.Sampler(square, model="I", seed=1).sample(6000, burn_in=500, progress=False)
    papers = ew.Sampler(square, model="I", moves="paper-2", seed=2)
    trace = papers.sample(7000, burn_in=300_000, thin=100, progress=False)
    assert papers.iteration == 1_000_000
    difference = trace.n_clusters.mean() - ours.n_clusters.mean()
    error = np.hypot(batch_error(ours.n_clusters, batches=30), batch_error(trace.n_clusters, batches=30))
    assert error < 0.25
    assert abs(difference) < 4.0 * error
    # Another concentration is told apart, so the comparison has some power.
    other = ew.Sampler(square, model="I", seed=1, concentration=2.5).sample(6000, burn_in=500, progress=False)
    assert abs(trace.n_clusters.mean() - other.n_clusters.mean()) > 4.0 * error


def test_the_papers_iterations_are_too_few() -> None:
    """The paper's 1500 iterations from singletons end at values of θ that the posterior all but excludes."""
    square = ew.datasets.unit_square(seed=0)
    ours = ew.Sampler(square, model="I", seed=1).sample(300, burn_in=100, progress=False)
    papers = ew.Sampler(square, model="I", moves="paper-2", seed=2).sample(500, burn_in=1000, progress=False)
    assert np.mean(ours.theta_weights[:, ours.posterior.theta_grid >= 2.0].sum(axis=1)) > 0.95
    assert np.all(papers.theta < 2.0)
