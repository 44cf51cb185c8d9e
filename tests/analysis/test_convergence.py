"""R-hat and effective sample size against ArviZ, and the sentence about chains."""

import warnings

import numpy as np
import pytest
from numpy.typing import NDArray

from ewens_widgets.analysis.convergence import ChainAgreement, agreement_of, bulk_ess, largest_gap, rhat

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz

NAMES = ("chain 1", "chain 2", "chain 3", "chain 4")


def chains(n_draws: int, memory: float, seed: int, apart: float = 0.0) -> NDArray[np.float64]:
    """Autoregressive chains, each with a level of its own."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(4, n_draws))
    values = np.zeros((4, n_draws))
    for place in range(1, n_draws):
        values[:, place] = memory * values[:, place - 1] + steps[:, place]
    return values + apart * np.arange(4)[:, None]


@pytest.mark.parametrize("memory", [-0.4, 0.0, 0.5, 0.95])
@pytest.mark.parametrize("n_draws", [10, 23, 100, 401])
@pytest.mark.parametrize("apart", [0.0, 2.0])
def test_both_numbers_are_those_of_arviz(n_draws: int, memory: float, apart: float) -> None:
    for values in (chains(n_draws, memory, 3, apart), np.round(chains(n_draws, memory, 4, apart))):
        assert rhat(values) == pytest.approx(float(arviz.rhat(values)), rel=1e-9)
        assert bulk_ess(values) == pytest.approx(float(arviz.ess(values, method="bulk")), rel=1e-9)
        assert rhat(values) != pytest.approx(float(arviz.rhat(values, method="identity")), rel=1e-9)


def test_constant_and_stuck_chains() -> None:
    assert np.isnan(rhat(np.ones((3, 20))))
    assert bulk_ess(np.ones((3, 20))) == 60
    assert rhat(np.arange(3.0)[:, None] * np.ones((3, 20))) == np.inf
    # The folded values of two levels that are equally far from the median never vary.
    two = np.repeat([[0.0, 1.0]], 10, axis=0).reshape(1, -1).repeat(2, axis=0)
    assert np.isfinite(rhat(two))


def agreement(values: NDArray[np.float64], gap: float | None = None) -> ChainAgreement:
    return agreement_of(
        {"n_clusters": list(values), "log_posterior": list(values), "theta": list(values)}, gap
    )


def test_the_sentence_says_plainly_what_is_the_case() -> None:
    assert agreement(chains(6, 0.0, 0)).verdict == "unknown"
    assert "Too early" in agreement(chains(6, 0.0, 0)).sentence(NAMES)
    assert agreement(chains(400, 0.0, 0)).verdict == "agree"
    assert "The chains agree: no R-hat is above 1.0" in agreement(chains(400, 0.0, 0)).sentence(NAMES)
    far = agreement(chains(400, 0.0, 0, apart=3.0))
    assert far.verdict == "apart"
    assert far.worst_rhat > 1.2
    assert "do not agree" in far.sentence(NAMES)
    assert "in chain 1 and" in far.sentence(NAMES)
    assert "in chain 4." in far.sentence(NAMES)
    few = agreement(chains(12, 0.0, 5))
    assert few.least_ess < 100
    assert few.verdict in {"not yet", "apart"}
    near = agreement(chains(400, 0.0, 0, apart=0.25))
    assert 1.05 < near.worst_rhat < 1.2
    assert near.verdict == "not yet"
    assert "nearly agree" in near.sentence(NAMES)
    differing = agreement(chains(400, 0.0, 0), gap=0.3)
    assert differing.verdict == "apart"
    assert "put objects together differently, by 0.30" in differing.sentence(NAMES)


def test_stuck_chains_are_told_apart() -> None:
    stuck = agreement(np.arange(4.0)[:, None] * np.ones((4, 20)))
    assert "R-hat ∞" in stuck.sentence(NAMES)


def test_the_gap_is_that_of_the_two_chains_farthest_apart() -> None:
    one, two = np.eye(3), np.ones((3, 3))
    assert largest_gap([one, two, two]) == pytest.approx(6 / 9)
    assert largest_gap([one]) == 0.0
