"""What a converged run must reach on the paper's data, at the true number of clusters."""

import numpy as np
import pytest

import ewens_widgets as ew
from ewens_widgets.paper.published import ALL
from ewens_widgets.sampling.trace import Trace

SEEDS = range(5)


def converged(data: ew.datasets.Dataset, model: str, seed: int) -> Trace:
    return ew.Sampler(data, model=model, seed=seed).sample(draws=1000, burn_in=500, progress=False)


def errors(key: str, seeds: range = SEEDS) -> list[float]:
    """Errors of the experiment's reading of the default schedule."""
    experiment, found = ALL[key], []
    for seed in seeds:
        data = experiment.load(seed)
        trace = converged(data, experiment.model, seed)
        found.append(ew.error_rate(data.labels, experiment.cut(trace, experiment.reading)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("key", ["half-moons-2", "half-moons-3"])
def test_half_moons_are_told_apart(key: str) -> None:
    assert max(errors(key)) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("key", ["unit-square-1", "unit-square-2", "unit-square-3"])
def test_unit_square(key: str) -> None:
    assert np.mean(errors(key)) <= 0.075


@pytest.mark.slow
def test_leukemia() -> None:
    assert max(errors("leukemia-1", range(3))) <= 2 / 38 + 1e-12


@pytest.mark.slow
def test_wine_in_raw_units() -> None:
    assert max(errors("wine-2", range(3))) <= 0.07
    # Why wine is read by consensus: near the top of the posterior, trees of single draws differ.
    wine, single, consensus = ew.datasets.wine(), [], []
    for seed in range(3):
        trace = converged(wine, "III", seed)
        single.append(ew.error_rate(wine.labels, trace.evidence_tree().cut(n_clusters=3)))
        consensus.append(ew.error_rate(wine.labels, ALL["wine-3"].cut(trace, "consensus")))
    assert max(consensus) <= 0.03
    assert np.ptp(consensus) <= np.ptp(single)
    assert np.mean(consensus) <= np.mean(single)


@pytest.mark.slow
def test_roads_drawn_from_the_published_figures() -> None:
    for seed in range(3):
        data = ew.datasets.denmark_roads_standin(seed=seed)
        trace = converged(data, "III", seed)
        assert ew.error_rate(data.labels, trace.evidence_tree().cut(n_clusters=2)) == 0.0
        assert ew.error_rate(data.labels, trace.consensus_tree(2).cut(n_clusters=2)) == 0.0
