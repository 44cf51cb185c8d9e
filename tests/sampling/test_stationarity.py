"""Exact draws stay exact: start from the target itself, make a few steps, and nothing may have changed.

With θ next to nothing the likelihood is constant and the target is the Ewens prior, which can be drawn
exactly. Every start is independent of the others, so no autocorrelation blurs the comparison.
"""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from sampling.exact import Space, make_space
from sampling.goodness import LEVEL, Fit, chi_square, explain, partition_names
from scipy import stats

import ewens_widgets as ew
from ewens_widgets.sampling.draws import Event
from ewens_widgets.sampling.moves import SplitMerge

pytestmark = pytest.mark.slow

SCHEDULES: dict[str, object] = {
    "default": "default",
    "paper-1": ["reassign"] * 3,
    "paper-2": [(SplitMerge(core_jump=0.1), 3)],
    "gibbs": ["gibbs"],
    "informed": ["informed-split-merge"],
    "mixed": ["split-merge", "gibbs", SplitMerge(within="minimum", between="hausdorff"), "reassign"],
}
FLAT = [1e-9]
X = np.random.default_rng(2).normal(size=(5, 2))

Draw = Callable[[np.random.Generator], tuple[NDArray[np.intp], float]]


def ewens_draw(concentration: float, believed: float | None = None, n_objects: int = 5) -> Draw:
    """Draw partitions from the prior, and λ as the sampler believes it to be."""

    def draw(rng: np.random.Generator) -> tuple[NDArray[np.intp], float]:
        return ew.ewens.sample(n_objects, concentration, rng), believed or concentration

    return draw


def after_steps(sampler: ew.Sampler, draw: Draw, starts: int, steps: int) -> list[Event]:
    """Events that end `steps` iterations, each from an exact draw of partition and λ."""
    rng = np.random.default_rng(17)
    ends = []
    for _ in range(starts):
        labels, concentration = draw(rng)
        # Only the generator goes on.
        sampler.first_state = dataclasses.replace(
            sampler.state, labels=labels.astype(np.int64), log_concentration=float(np.log(concentration))
        )
        sampler.reset()
        ends.append(list(sampler.events(steps, block=steps))[-1])
    return ends


@functools.cache
def prior_space(concentration: float) -> Space:
    return make_space(X, "II", concentration, FLAT)


def fit_partitions(space: Space, events: list[Event]) -> tuple[Fit, str]:
    places = space.places(np.array([event.labels for event in events]))
    counts = np.bincount(places, minlength=len(space.labels))
    expected = len(events) * space.exact.probabilities
    return chi_square(counts, expected), explain(partition_names(space.labels), counts, expected)


@pytest.mark.parametrize("name", SCHEDULES)
def test_draws_from_the_prior_stay_so(name: str) -> None:
    concentration = 1.3
    sampler = ew.Sampler(X, concentration=concentration, theta_grid=FLAT, moves=SCHEDULES[name], seed=5)
    fit, table = fit_partitions(
        prior_space(concentration), after_steps(sampler, ewens_draw(concentration), 2000, 2)
    )
    assert fit.p_value > LEVEL, table


@pytest.mark.parametrize("name", ["default", "paper-1", "paper-2"])
def test_the_law_of_the_number_of_clusters_stays_on_more_objects(name: str) -> None:
    concentration, n_objects = 2.0, 20
    table = np.random.default_rng(3).normal(size=(n_objects, 2))
    sampler = ew.Sampler(
        table, model="III", concentration=concentration, theta_grid=FLAT, moves=SCHEDULES[name], seed=6
    )
    events = after_steps(sampler, ewens_draw(concentration, n_objects=n_objects), 1000, 3)
    counts = np.bincount([event.n_clusters for event in events], minlength=n_objects + 1)
    expected = len(events) * ew.ewens.cluster_count_pmf(n_objects, concentration)
    assert chi_square(counts, expected).p_value > LEVEL, explain(range(n_objects + 1), counts, expected)


@pytest.mark.parametrize("name", ["default", "paper-2"])
def test_joint_draws_of_partition_and_concentration_stay_so(name: str) -> None:
    prior = ew.Gamma(2.0, 1.5)
    sampler = ew.Sampler(X, concentration=prior, theta_grid=FLAT, moves=SCHEDULES[name], seed=7)

    def draw(rng: np.random.Generator) -> tuple[NDArray[np.intp], float]:
        concentration = rng.gamma(prior.shape, 1.0 / prior.rate)
        return ew.ewens.sample(5, concentration, rng), concentration

    events = after_steps(sampler, draw, 2000, 2)
    space = Space(ew.exact_posterior(X, concentration=prior, theta_grid=FLAT))
    fit, table = fit_partitions(space, events)
    assert fit.p_value > LEVEL, table
    drawn = np.array([event.concentration for event in events])
    law = stats.gamma(prior.shape, scale=1.0 / prior.rate)
    assert stats.kstest(drawn, law.cdf).pvalue > LEVEL
    # Jointly: the number of clusters, given λ, is Ewens'; compared through its distribution function.
    counts = np.array([event.n_clusters for event in events])
    pmf = np.array([ew.ewens.cluster_count_pmf(5, value) for value in drawn])
    below = np.where(np.arange(6) < counts[:, None], pmf, 0.0).sum(axis=1)
    spread = below + np.random.default_rng(0).random(len(drawn)) * pmf[np.arange(len(drawn)), counts]
    assert stats.kstest(spread, "uniform").pvalue > LEVEL
    assert abs(stats.spearmanr(spread, drawn).statistic) < 5.0 / np.sqrt(len(drawn))


@pytest.mark.parametrize("name", ["default", "paper-1", "paper-2"])
def test_draws_from_another_prior_are_found(name: str) -> None:
    """The sampler believes in λ = 1.3, the draws come from λ = 3: a few steps must show."""
    sampler = ew.Sampler(X, concentration=1.3, theta_grid=FLAT, moves=SCHEDULES[name], seed=5)
    events = after_steps(sampler, ewens_draw(3.0, believed=1.3), 2000, 2)
    assert fit_partitions(prior_space(3.0), events)[0].p_value < 1e-3 * LEVEL


@pytest.mark.filterwarnings("ignore:acceptance=")
def test_the_printed_ratio_is_found() -> None:
    settings = {"theta_grid": FLAT, "moves": [SplitMerge()], "acceptance": "as-printed"}
    sampler = ew.Sampler(X, concentration=1.3, seed=5, **settings)
    events = after_steps(sampler, ewens_draw(1.3), 2000, 2)
    assert fit_partitions(prior_space(1.3), events)[0].p_value < 1e-3 * LEVEL
