"""θ is drawn from its exact conditional, and every event tells that conditional."""

import numpy as np
import pytest
from sampling.goodness import LEVEL, chi_square, explain

import ewens_widgets as ew
from ewens_widgets.sampling.moves import SplitMerge

KEEP = SplitMerge(probabilities=(0.0, 0.0, 1.0))
SCHEDULES = ("default", "paper-1", "paper-2", ["split-merge", "gibbs", "reassign"])


def data(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(14, 3)) + 2.0 * rng.integers(0, 2, (14, 1))


@pytest.mark.parametrize("model", ["I", "II", "III"])
@pytest.mark.parametrize("moves", SCHEDULES, ids=str)
def test_weights_are_the_conditional_given_the_labels_before(model: str, moves: object) -> None:
    sampler = ew.Sampler(data(), model=model, moves=moves, alpha=0.7, seed=2, initial="k-means")
    before = sampler.labels
    for event in sampler.events(40):
        expected = sampler.posterior.theta_conditional(before)
        np.testing.assert_allclose(event.theta_weights, expected, rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(event.theta_weights.sum(), 1.0, rtol=1e-12)
        assert event.theta == sampler.posterior.theta_grid[event.theta_index]
        before = event.labels


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_theta_is_drawn_with_these_weights(model: str) -> None:
    """A schedule that always keeps the partition draws nothing but θ."""
    labels = np.arange(14) % 3
    sampler = ew.Sampler(data(), model=model, moves=[KEEP], initial=labels, seed=5)
    trace = sampler.sample(20_000, progress=False)
    expected = 20_000 * sampler.posterior.theta_conditional(labels)
    counts = np.bincount(trace.theta_index, minlength=expected.size)
    fit = chi_square(counts, expected)
    assert fit.p_value > LEVEL, explain(list(sampler.posterior.theta_grid), counts, expected)
    uniform = np.full(expected.size, 20_000 / expected.size)
    assert chi_square(counts, uniform).p_value < 1e-3 * LEVEL


def test_for_singletons_theta_keeps_its_prior() -> None:
    """θ cancels where every object is alone."""
    sampler = ew.Sampler(data(), moves=[KEEP], initial="singletons")
    event = next(sampler.events(1))
    np.testing.assert_allclose(event.theta_weights, np.exp(sampler.posterior.log_theta_prior), rtol=1e-9)


def test_a_grid_of_one_value_fixes_theta() -> None:
    for event in ew.Sampler(data(), theta_grid=[3.5], moves="default").events(20):
        assert (event.theta, event.theta_index) == (3.5, 0)
        np.testing.assert_array_equal(event.theta_weights, [1.0])
