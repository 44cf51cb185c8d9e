import numpy as np
import pytest

from ewens_widgets.paper import simulations
from ewens_widgets.paper.published import ALL
from ewens_widgets.paper.reproduction import SIMULATED
from ewens_widgets.paper.simulations import (
    BAYES_ERROR,
    SCENARIOS,
    SEEDS,
    Scenario,
    Score,
    Simulation,
    mclust_score,
    run_rival,
    scenario_named,
    score,
    simulation_table,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda entry: entry.key)
def test_a_seed_gives_the_same_data_and_another_one_others(scenario: Scenario) -> None:
    first, again, other = scenario.draw(3), scenario.draw(3), scenario.draw(4)
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert first.X.shape != other.X.shape or not np.allclose(first.X, other.X)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda entry: entry.key)
def test_what_is_announced_is_there(scenario: Scenario) -> None:
    for seed in range(4):
        found = scenario.draw(seed)
        assert len(np.unique(found.labels[found.labels >= 0])) == found.n_clusters
        assert 80 <= np.sum(found.labels >= 0) <= 1000
        assert np.linalg.matrix_rank(found.X - found.X.mean(axis=0)) == found.X.shape[1]
        assert found.bayes_error <= BAYES_ERROR + 1e-12
        assert np.any(found.labels < 0) == (scenario.key == "outliers")


def test_the_bayes_error_is_what_the_true_densities_misplace() -> None:
    # With one common shape and two clusters it is a normal tail at half their distance, whatever the mixing.
    from scipy.stats import norm

    for seed in range(40):
        found = scenario_named("common").draw(seed)
        if found.n_clusters != 2 or len(found.X) < 400:
            continue
        groups = [found.X[found.labels == k] for k in (0, 1)]
        within = sum(np.cov(group.T) * (len(group) - 1) for group in groups) / (len(found.X) - 2)
        gap = groups[1].mean(axis=0) - groups[0].mean(axis=0)
        distance = np.sqrt(gap @ np.linalg.solve(within, gap))
        assert norm.cdf(-distance / 2) == pytest.approx(found.bayes_error, abs=0.012)
        return
    raise AssertionError("no such data among the seeds")


def test_seeds_for_choosing_and_for_judging_are_apart() -> None:
    assert not set(SEEDS["tune"]) & set(SEEDS["held-out"])


def test_an_unknown_scenario_is_refused() -> None:
    with pytest.raises(ValueError, match="no scenario 'moons'; choose from gaussian"):
        scenario_named("moons")


def test_outliers_and_noise_are_not_scored() -> None:
    truth = Simulation(np.zeros((8, 1)), np.array([0, 0, 0, 1, 1, 1, -1, -1]), 2, 0.0)
    assert score(truth, np.array([0, 0, 0, 1, 1, 1, 2, 2])) == (1.0, 2)
    assert score(truth, np.array([0, 0, 0, 1, 1, 1, -1, 0])) == (1.0, 2)
    agreement, count = score(truth, np.array([0, 0, 2, 1, 1, 1, 0, 0]))
    assert count == 3
    assert agreement < 1.0


def test_scores_are_reproducible_and_tell_whether_the_number_is_right() -> None:
    first, second = (run_rival("one-gaussian", "k-means, told K", 1005) for _ in range(2))
    assert first == second
    assert (first.n_clusters, first.right, first.adjusted_rand) == (1, True, 1.0)


@pytest.mark.slow
def test_without_r_mclust_has_its_stored_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulations, "mclust_version", lambda: None)
    for scenario in SCENARIOS:
        for seed in SEEDS["held-out"][:SIMULATED]:
            assert run_rival(scenario.key, "mclust, BIC", seed).n_clusters >= 1
    for key in set(ALL) - {"unit-square-2", "unit-square-3", "half-moons-3-discussion"}:
        agreement, count = mclust_score(key, 0, scenario_named("gaussian").draw(0))
        assert count >= 1
        assert -1.0 <= agreement <= 1.0
    unknown = run_rival("gaussian", "mclust, BIC", 3)
    assert np.isnan(unknown.adjusted_rand)
    assert not unknown.right


def test_the_table_has_means_and_shares_of_right_numbers() -> None:
    scores = [
        Score("gaussian", "ours", 0, 1.0, 3, True),
        Score("gaussian", "ours", 1, 0.5, 2, False),
        Score("heavy", "ours", 0, float("nan"), 0, False),
    ]
    table = simulation_table(scores).splitlines()
    assert table[0] == "| simulation | ours |"
    assert table[2] == "| Gaussian, a shape for each cluster | 0.75, 50 % |"
    assert "| heavy tails (t, 4 degrees of freedom) | – |" in table


@pytest.mark.slow
def test_our_answer_on_data_that_no_rule_was_chosen_on() -> None:
    for key, least in (("gaussian", 0.85), ("heavy", 0.9), ("one-gaussian", 1.0), ("one-heavy", 1.0)):
        found = run_rival(key, "our answer", 1006)
        assert found.right, key
        assert found.adjusted_rand >= least, key
