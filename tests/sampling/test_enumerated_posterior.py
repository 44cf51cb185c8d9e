"""Long chains against the posterior of every partition of five or six points, found by enumeration."""

import functools

import numpy as np
import pytest
from sampling.exact import FIVE, MODELS, SIX, Floats, Space, make_space
from sampling.goodness import LEVEL, batch_score, chi_square, explain, limit, partition_names
from scipy.special import gammaln

import ewens_widgets as ew
from ewens_widgets.sampling.moves import SplitMerge
from ewens_widgets.sampling.trace import Trace

pytestmark = pytest.mark.slow

GRID = [0.25, 1.0, 8.0]
CONCENTRATION = 1.3
SLOWLY_MIXING = ("paper-1", "paper-2")  # Some 40 iterations until a draw is as good as independent.
MIXED = ["split-merge", "gibbs", (SplitMerge(within="minimum", between="hausdorff"), 2), "reassign"]


@functools.cache
def space_of(n_objects: int, model: str) -> Space:
    return make_space(SIX[:n_objects], model, CONCENTRATION, GRID)


def compare(space: Space, trace: Trace) -> tuple[float, str]:
    counts = np.bincount(space.places(trace.labels), minlength=len(space.labels))
    expected = len(trace) * space.exact.probabilities
    return chi_square(counts, expected).p_value, explain(partition_names(space.labels), counts, expected)


def assert_samples_the_posterior(space: Space, trace: Trace) -> None:
    p_value, table = compare(space, trace)
    assert p_value > LEVEL, table
    thetas = np.bincount(trace.theta_index, minlength=len(GRID))
    expected = len(trace) * space.exact.theta_probabilities
    assert chi_square(thetas, expected).p_value > LEVEL, explain(GRID, thetas, expected)
    for g, probability in enumerate(space.exact.theta_probabilities):
        assert abs(batch_score(trace.theta_weights[:, g], probability)) < limit()


# Objects, schedule, seed, draws, burn-in and thinning.
CHAINS: list[tuple[int, object, int, int, int, int]] = [
    (6, "default", 21, 6000, 50, 2),
    (5, MIXED, 23, 1500, 50, 2),
    *((5, moves, 22, 4000, 2000, 40) for moves in SLOWLY_MIXING),
    *((6, moves, 25, 12_000, 2000, 60) for moves in SLOWLY_MIXING),
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("n_objects", "moves", "seed", "draws", "burn_in", "thin"), CHAINS)
def test_every_schedule_samples_the_posterior(
    model: str, n_objects: int, moves: object, seed: int, draws: int, burn_in: int, thin: int
) -> None:
    settings = {"model": model, "concentration": CONCENTRATION, "theta_grid": GRID, "moves": moves}
    sampler = ew.Sampler(SIX[:n_objects], seed=seed, **settings)
    space, trace = space_of(n_objects, model), sampler.sample(draws, burn_in, thin, progress=False)
    assert_samples_the_posterior(space, trace)
    if moves == "default":
        np.testing.assert_allclose(trace.similarity(), space.exact.similarity(), atol=0.035)


@pytest.mark.filterwarnings("ignore:acceptance=")
def test_the_printed_ratio_samples_something_else() -> None:
    settings = {"concentration": CONCENTRATION, "theta_grid": GRID, "acceptance": "as-printed"}
    sampler = ew.Sampler(FIVE, moves="paper-2", seed=22, **settings)
    trace = sampler.sample(4000, burn_in=2000, thin=40, progress=False)
    assert compare(space_of(5, "II"), trace)[0] < 1e-3 * LEVEL


def test_another_posterior_is_told_apart() -> None:
    """The right chain against the enumeration of another concentration, θ grid and model."""
    settings = {"concentration": CONCENTRATION, "theta_grid": GRID}
    trace = ew.Sampler(FIVE, model="II", seed=21, **settings).sample(4000, thin=2, progress=False)
    for other in (
        make_space(FIVE, "II", 0.8, GRID),
        make_space(FIVE, "II", CONCENTRATION, [1.0, 8.0, 32.0]),
        make_space(FIVE, "III", CONCENTRATION, GRID),
    ):
        assert compare(other, trace)[0] < 1e-3 * LEVEL


def concentration_law(prior: ew.Gamma, counts: Floats, n_objects: int) -> tuple[Floats, Floats]:
    """Posterior distribution function of λ: a mixture over the number of clusters, by quadrature."""
    log_value = np.linspace(-40.0, 6.0, 100_001)
    value = np.exp(log_value)
    distribution = np.zeros_like(value)
    for n_clusters in range(1, n_objects + 1):
        log_density = (prior.shape + n_clusters) * log_value - prior.rate * value
        log_density += gammaln(value) - gammaln(n_objects + value)
        weights = np.exp(log_density - log_density.max())
        distribution += counts[n_clusters] * np.cumsum(weights) / weights.sum()
    return value, distribution


@pytest.mark.parametrize(
    ("model", "moves", "thin"),
    [("I", "default", 3), ("III", "default", 3), ("II", "paper-2", 40), ("I", "paper-1", 40)],
)
def test_a_gamma_prior_of_the_concentration(model: str, moves: str, thin: int) -> None:
    prior = ew.Gamma(2.0, 1.0)
    space = Space(ew.exact_posterior(FIVE, model=model, concentration=prior, theta_grid=GRID))
    sampler = ew.Sampler(FIVE, model=model, concentration=prior, theta_grid=GRID, moves=moves, seed=24)
    trace = sampler.sample(5000, burn_in=500, thin=thin, progress=False)
    assert_samples_the_posterior(space, trace)
    value, distribution = concentration_law(prior, space.exact.cluster_count_probabilities, 5)
    for probability in (0.1, 0.3, 0.5, 0.7, 0.9):
        place = np.searchsorted(distribution, probability)
        assert abs(batch_score(trace.concentration <= value[place], distribution[place])) < limit()
    # λ is not ignored: with it fixed at the prior mean the partitions have another law.
    assert compare(make_space(FIVE, model, 2.0, GRID), trace)[0] < LEVEL
