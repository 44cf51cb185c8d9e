r"""λ is drawn from its exact conditional.

With a Gamma(a, b) prior, Escobar & West's draw of the concentration leaves p(λ | K) unchanged,

.. math:: p(\lambda \mid K) \propto \lambda^{a-1+K} e^{-b\lambda} \, \Gamma(\lambda) / \Gamma(n + \lambda) .

It is integrated by quadrature here. A schedule that always keeps the partition draws λ and θ alone, so that
the draws can be compared. (θ: `test_exact_chains`, and `fuzz/test_chains` for its weights.)
"""

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray
from sampling.goodness import LEVEL
from scipy import stats
from scipy.special import gammaln

import ewens_widgets as ew
from ewens_widgets.sampling.moves import SplitMerge

KEEP = SplitMerge(probabilities=(0.0, 0.0, 1.0))
N_OBJECTS = 12
PRIORS = [ew.Gamma(2.0, 1.0), ew.Gamma(0.3, 0.1), ew.Gamma(9.0, 4.0)]


def data() -> NDArray[np.float64]:
    return np.random.default_rng(1).normal(size=(N_OBJECTS, 2))


def quadrature(prior: ew.Gamma, n_clusters: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fine grid of λ with its distribution function given K."""
    log_value = np.linspace(-60.0, 8.0, 400_001)
    value = np.exp(log_value)
    log_density = (prior.shape + n_clusters) * log_value - prior.rate * value
    log_density += gammaln(value) - gammaln(N_OBJECTS + value)
    weights = np.exp(log_density - log_density.max())
    return value, np.cumsum(weights) / weights.sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prior", "n_clusters"), [(PRIORS[0], 1), (PRIORS[0], 4), (PRIORS[1], N_OBJECTS), (PRIORS[2], 4)]
)
def test_one_draw_from_the_exact_law_stays_in_it(prior: ew.Gamma, n_clusters: int) -> None:
    """Independent starts from p(λ | K) by inversion, one step each: a test without autocorrelation."""
    value, distribution = quadrature(prior, n_clusters)
    starts = value[np.searchsorted(distribution, np.random.default_rng(3).random(2000))]
    settings = {"concentration": prior, "moves": [KEEP], "theta_grid": [1.0]}
    sampler = ew.Sampler(data(), initial=np.arange(N_OBJECTS) % n_clusters, seed=8, **settings)
    ends = []
    for start in starts:
        # The generator goes on; only λ is set back.
        sampler.first_state = dataclasses.replace(sampler.state, log_concentration=float(np.log(start)))
        sampler.reset()
        ends.append(sampler.advance(1)[0].concentration)
    assert stats.kstest(np.interp(ends, value, distribution), "uniform").pvalue > LEVEL
    assert stats.kstest(np.interp(2.0 * np.array(ends), value, distribution), "uniform").pvalue < LEVEL
    # A step does move: the test is not passed by standing still.
    assert abs(np.corrcoef(starts, ends)[0, 1]) < 0.9


def test_parameters_that_are_fixed() -> None:
    for event in ew.Sampler(data(), concentration=2.5, theta_grid=[3.5]).events(20):
        assert event.concentration == pytest.approx(2.5, rel=1e-15)
        assert (event.theta, event.theta_index) == (3.5, 0)
        np.testing.assert_array_equal(event.theta_weights, [1.0])


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
