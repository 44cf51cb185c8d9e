r"""θ and λ are drawn from their exact conditionals, and every event tells that of θ.

With a Gamma(a, b) prior, Escobar & West's draw of the concentration leaves p(λ | K) unchanged.

.. math:: p(\lambda \mid K) \propto \lambda^{a-1+K} e^{-b\lambda} \, \Gamma(\lambda) / \Gamma(n + \lambda)

is integrated by quadrature here. A schedule that always keeps the partition draws λ and θ and nothing else,
so that their draws can be compared alone.
"""

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray
from sampling.goodness import LEVEL, batch_score, chi_square, explain, limit
from scipy import stats
from scipy.special import gammaln

import ewens_widgets as ew
from ewens_widgets.sampling.moves import SplitMerge

KEEP = SplitMerge(probabilities=(0.0, 0.0, 1.0))
SCHEDULES = ("default", "paper-1", "paper-2", ["split-merge", "gibbs", "reassign"])
N_OBJECTS = 12
PRIORS = [ew.Gamma(2.0, 1.0), ew.Gamma(0.3, 0.1), ew.Gamma(9.0, 4.0)]


def rows() -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(14, 3)) + 2.0 * rng.integers(0, 2, (14, 1))


@pytest.mark.parametrize("model", ["I", "II", "III"])
@pytest.mark.parametrize("moves", SCHEDULES, ids=str)
def test_weights_are_the_conditional_given_the_labels_before(model: str, moves: object) -> None:
    sampler = ew.Sampler(rows(), model=model, moves=moves, alpha=0.7, seed=2, initial="k-means")
    before, changes = sampler.labels, 0
    # The kernel computes them again only where a move was accepted: with and without that.
    for event in sampler.events(300 if isinstance(moves, str) and moves != "default" else 40):
        expected = sampler.posterior.theta_conditional(before)
        np.testing.assert_allclose(event.theta_weights, expected, rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(event.theta_weights.sum(), 1.0, rtol=1e-12)
        assert event.theta == sampler.posterior.theta_grid[event.theta_index]
        changes += not np.array_equal(before, event.labels)
        before = event.labels
    assert 0 < changes < 290


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_theta_is_drawn_with_these_weights(model: str) -> None:
    """A schedule that always keeps the partition draws nothing but θ."""
    labels = np.arange(14) % 3
    sampler = ew.Sampler(rows(), model=model, moves=[KEEP], initial=labels, seed=5)
    trace = sampler.sample(20_000, progress=False)
    expected = 20_000 * sampler.posterior.theta_conditional(labels)
    counts = np.bincount(trace.theta_index, minlength=expected.size)
    fit = chi_square(counts, expected)
    assert fit.p_value > LEVEL, explain(list(sampler.posterior.theta_grid), counts, expected)
    uniform = np.full(expected.size, 20_000 / expected.size)
    assert chi_square(counts, uniform).p_value < 1e-3 * LEVEL


def test_for_singletons_theta_keeps_its_prior() -> None:
    """θ cancels where every object is alone."""
    sampler = ew.Sampler(rows(), moves=[KEEP], initial="singletons")
    event = next(sampler.events(1))
    np.testing.assert_allclose(event.theta_weights, np.exp(sampler.posterior.log_theta_prior), rtol=1e-9)


def test_a_grid_of_one_value_fixes_theta() -> None:
    for event in ew.Sampler(rows(), theta_grid=[3.5], moves="default").events(20):
        assert (event.theta, event.theta_index) == (3.5, 0)
        np.testing.assert_array_equal(event.theta_weights, [1.0])


# λ


def quadrature(prior: ew.Gamma, n_clusters: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fine grid of λ with its distribution function given K."""
    log_value = np.linspace(-60.0, 8.0, 400_001)
    value = np.exp(log_value)
    log_density = (prior.shape + n_clusters) * log_value - prior.rate * value
    log_density += gammaln(value) - gammaln(N_OBJECTS + value)
    weights = np.exp(log_density - log_density.max())
    return value, np.cumsum(weights) / weights.sum()


def data() -> NDArray[np.float64]:
    return np.random.default_rng(1).normal(size=(N_OBJECTS, 2))


def labels_with(n_clusters: int) -> NDArray[np.int64]:
    return np.arange(N_OBJECTS) % n_clusters


def fixed_partition_chain(prior: ew.Gamma, n_clusters: int, steps: int) -> NDArray[np.float64]:
    sampler = ew.Sampler(
        data(), concentration=prior, moves=[KEEP], initial=labels_with(n_clusters), seed=7, theta_grid=[1.0]
    )
    return sampler.sample(steps, burn_in=100, progress=False).concentration


@pytest.mark.parametrize("prior", PRIORS, ids=str)
@pytest.mark.parametrize("n_clusters", [1, 4, N_OBJECTS])
def test_a_long_chain_has_the_exact_conditional_law(prior: ew.Gamma, n_clusters: int) -> None:
    drawn = fixed_partition_chain(prior, n_clusters, 60_000)
    value, distribution = quadrature(prior, n_clusters)
    for probability in (0.05, 0.25, 0.5, 0.75, 0.95):
        quantile = value[np.searchsorted(distribution, probability)]
        exact = distribution[np.searchsorted(value, quantile)]
        assert abs(batch_score(drawn <= quantile, exact)) < limit()


def test_a_chain_for_another_number_of_clusters_is_told_apart() -> None:
    drawn = fixed_partition_chain(PRIORS[0], 4, 60_000)
    value, distribution = quadrature(PRIORS[0], 5)
    median = value[np.searchsorted(distribution, 0.5)]
    assert abs(batch_score(drawn <= median, 0.5)) > 2 * limit()


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [1, 4, N_OBJECTS])
def test_one_draw_from_the_exact_law_stays_in_it(n_clusters: int) -> None:
    """Independent starts from p(λ | K) by inversion, one step each: a test without autocorrelation."""
    prior, draws = PRIORS[0], 3000
    value, distribution = quadrature(prior, n_clusters)
    uniform = np.random.default_rng(3).random(draws)
    starts = value[np.searchsorted(distribution, uniform)]
    settings = {"concentration": prior, "moves": [KEEP], "theta_grid": [1.0]}
    sampler = ew.Sampler(data(), initial=labels_with(n_clusters), seed=8, **settings)
    ends = []
    for start in starts:
        # The generator goes on; only λ is set back.
        sampler.first_state = dataclasses.replace(sampler.state, log_concentration=float(np.log(start)))
        sampler.reset()
        ends.append(next(sampler.events(1, block=1)).concentration)
    p_values = np.interp(ends, value, distribution)
    assert stats.kstest(p_values, "uniform").pvalue > LEVEL
    assert stats.kstest(np.interp(2.0 * np.array(ends), value, distribution), "uniform").pvalue < LEVEL
    # A step does move: the test is not passed by standing still.
    assert abs(np.corrcoef(starts, ends)[0, 1]) < 0.9


def test_a_number_stays_what_it_is() -> None:
    for event in ew.Sampler(data(), concentration=2.5).events(20):
        assert event.concentration == pytest.approx(2.5, rel=1e-15)


@pytest.mark.parametrize("moves", ["default", "paper-1", "paper-2"])
def test_the_concentration_starts_at_its_prior_mean_and_is_drawn_each_iteration(moves: str) -> None:
    sampler = ew.Sampler(data(), concentration=ew.Gamma(3.0, 2.0), moves=moves)
    assert sampler.state.concentration == pytest.approx(1.5)
    values = [event.concentration for event in sampler.events(30)]
    assert len(set(values)) == 30
    assert sampler.state.concentration == pytest.approx(values[-1], rel=1e-15)


def test_a_prior_with_almost_no_mass_away_from_zero_stays_finite() -> None:
    trace = ew.Sampler(data(), concentration=ew.Gamma(1e-3, 1e3)).sample(200, progress=False)
    assert np.all(np.isfinite(trace.log_posterior))
    assert np.all(trace.concentration > 0.0)
