"""The simulated data of benchmarks/simulations.py, and how methods are scored on them."""

import json
from pathlib import Path

import numpy as np
import pytest
import simulations
from scipy.stats import norm


@pytest.mark.parametrize("scenario", simulations.SCENARIOS, ids=lambda entry: entry.key)
def test_the_data_of_a_seed_are_what_is_announced(scenario: simulations.Scenario) -> None:
    draws = [scenario.draw(seed) for seed in range(4)]
    for found in draws:
        assert len(np.unique(found.labels[found.labels >= 0])) == found.n_clusters
        assert 80 <= np.sum(found.labels >= 0) <= 1000
        assert np.linalg.matrix_rank(found.X - found.X.mean(axis=0)) == found.X.shape[1]
        assert found.bayes_error <= simulations.BAYES_ERROR + 1e-12
        assert np.any(found.labels < 0) == (scenario.key == "outliers")
    again, other = scenario.draw(3), draws[2]
    np.testing.assert_array_equal(draws[3].X, again.X)
    np.testing.assert_array_equal(draws[3].labels, again.labels)
    assert again.X.shape != other.X.shape or not np.allclose(again.X, other.X)


def test_the_bayes_error_is_what_the_true_densities_misplace() -> None:
    # With one common shape and two clusters it is a normal tail at half their distance, whatever the mixing.
    draws = (simulations.scenario_named("common").draw(seed) for seed in range(40))
    found = next(draw for draw in draws if draw.n_clusters == 2 and len(draw.X) >= 400)
    groups = [found.X[found.labels == k] for k in (0, 1)]
    within = sum(np.cov(group.T) * (len(group) - 1) for group in groups) / (len(found.X) - 2)
    gap = groups[1].mean(axis=0) - groups[0].mean(axis=0)
    distance = np.sqrt(gap @ np.linalg.solve(within, gap))
    assert norm.cdf(-distance / 2) == pytest.approx(found.bayes_error, abs=0.012)


def test_outliers_and_noise_are_not_scored() -> None:
    truth = simulations.Simulation(np.zeros((8, 1)), np.array([0, 0, 0, 1, 1, 1, -1, -1]), 2, 0.0)
    assert simulations.score(truth, np.array([0, 0, 0, 1, 1, 1, 2, 2])) == (1.0, 2)
    assert simulations.score(truth, np.array([0, 0, 0, 1, 1, 1, -1, 0])) == (1.0, 2)
    agreement, count = simulations.score(truth, np.array([0, 0, 2, 1, 1, 1, 0, 0]))
    assert count == 3
    assert agreement < 1.0


def test_methods_are_run_on_a_seed_and_their_scores_are_reproducible() -> None:
    first, second = (simulations.run_method("one-gaussian", "k-means, told K", 1005) for _ in range(2))
    assert first == second == simulations.Score("one-gaussian", "k-means, told K", 1005, 1.0, 1, True)
    assert not set(simulations.SEEDS["tune"]) & set(simulations.SEEDS["held-out"])
    with pytest.raises(ValueError, match="no scenario 'moons'; choose from gaussian"):
        simulations.run_method("moons", "HDBSCAN", 0)


def test_mclust_has_stored_figures_for_what_the_tables_show(repository: Path) -> None:
    for scenario in simulations.SCENARIOS:
        for seed in simulations.SEEDS["held-out"][: simulations.SIMULATED]:
            agreement, count = simulations.stored_mclust(scenario.key, seed)
            assert count >= 1
            assert -1.0 <= agreement <= 1.0
    unknown = simulations.run_method("gaussian", simulations.MCLUST, 3)
    assert np.isnan(unknown.adjusted_rand)
    assert not unknown.right
    stored = json.loads((repository / "tests" / "paper" / "results.json").read_text(encoding="utf-8"))
    assert all("mclust" in found for found in stored["experiments"].values())


def test_the_table_has_means_and_shares_of_right_numbers() -> None:
    scores = [
        simulations.Score("gaussian", "ours", 0, 1.0, 3, True),
        simulations.Score("gaussian", "ours", 1, 0.5, 2, False),
        simulations.Score("heavy", "ours", 0, float("nan"), 0, False),
    ]
    table = simulations.simulation_table(scores).splitlines()
    assert table[0] == "| simulation | ours |"
    assert table[2] == "| Gaussian, a shape for each cluster | 0.75, 50 % |"
    assert "| heavy tails (t, 4 degrees of freedom) | – |" in table


@pytest.mark.slow
def test_our_answer_on_data_that_no_rule_was_chosen_on() -> None:
    for key, least in (("gaussian", 0.85), ("heavy", 0.9), ("one-gaussian", 1.0), ("one-heavy", 1.0)):
        found = simulations.run_method(key, "our answer", 1006)
        assert found.right, key
        assert found.adjusted_rand >= least, key
