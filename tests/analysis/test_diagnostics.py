import sys

import numpy as np
import pytest
from traces import blobs, random_partitions, synthetic_trace

from ewens_widgets.analysis.convergence import autocorrelation, diagnose, quantities, similarity_gap
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.sampling.trace import Trace


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return Posterior.from_data(blobs(np.random.default_rng(0), 20)[0], model="II")


def chain(posterior: Posterior, seed: int, n_draws: int = 400, n_clusters: int = 4) -> Trace:
    """Independent draws: a chain that mixes perfectly."""
    rng = np.random.default_rng(seed)
    return synthetic_trace(random_partitions(rng, n_draws, 20, n_clusters), posterior, rng)


def test_independent_draws_are_found_good(posterior: Posterior) -> None:
    found = diagnose([chain(posterior, seed) for seed in range(3)])
    assert (found.n_chains, found.n_draws) == (3, 400)
    assert found.worst_rhat < 1.02
    assert found.least_ess > 600
    assert found.similarity_gap < 0.05
    assert (
        set(found.rhat) == set(found.ess_bulk) == {"n_clusters", "theta", "log_posterior", "largest_cluster"}
    )


def test_chains_that_differ_are_found_out(posterior: Posterior) -> None:
    found = diagnose([chain(posterior, 0, n_clusters=3), chain(posterior, 1, n_clusters=8)])
    assert found.rhat["n_clusters"] > 1.5
    assert found.similarity_gap > 0.1


def test_one_chain_that_drifts_is_found_out(posterior: Posterior) -> None:
    halves = [chain(posterior, 0, 200, n_clusters=3), chain(posterior, 1, 200, n_clusters=8)]
    drifting = Trace.concatenate(halves)
    assert diagnose(drifting).rhat["n_clusters"] > 1.5
    assert diagnose(drifting).similarity_gap > 0.1
    assert diagnose(chain(posterior, 0)).worst_rhat < 1.05


def test_sticky_chains_are_worth_less(posterior: Posterior) -> None:
    rng = np.random.default_rng(1)
    labels = np.repeat(random_partitions(rng, 40, 20, 4), 10, axis=0)
    found = diagnose(synthetic_trace(labels, posterior, rng))
    assert found.least_ess < 100
    assert autocorrelation(synthetic_trace(labels, posterior, rng))[5] > 0.3


def test_what_never_changes(posterior: Posterior) -> None:
    rng = np.random.default_rng(2)
    same = np.tile(random_partitions(rng, 1, 20, 4), (50, 1))
    other = np.tile(random_partitions(rng, 1, 20, 9), (50, 1))
    still, elsewhere = (synthetic_trace(labels, posterior, rng) for labels in (same, other))
    found = diagnose([still, still])
    assert np.isnan(found.rhat["n_clusters"])
    assert found.ess_bulk["n_clusters"] == 100
    assert np.isinf(diagnose([still, elsewhere]).rhat["n_clusters"])
    assert np.all(np.isnan(autocorrelation(still)))


def test_two_values_only(posterior: Posterior) -> None:
    # Both values are equally far from their median, so that the spread has no variance to compare.
    rng = np.random.default_rng(3)
    kinds = random_partitions(rng, 1, 20, 3)[0], random_partitions(rng, 1, 20, 7)[0]
    mixing = [
        synthetic_trace(np.array([kinds[k] for k in rng.integers(0, 2, 200)]), posterior, rng)
        for _ in range(2)
    ]
    assert 0.99 < diagnose(mixing).rhat["n_clusters"] < 1.1
    switching = np.repeat(np.array(kinds), 100, axis=0)
    stuck = [synthetic_trace(rows, posterior, rng) for rows in (switching, switching[::-1])]
    assert diagnose(stuck).rhat["n_clusters"] > 1.5


def test_quantities_do_not_depend_on_names(posterior: Posterior) -> None:
    trace = chain(posterior, 3, 30)
    followed = quantities([trace])
    assert followed["largest_cluster"][0].tolist() == [np.bincount(row).max() for row in trace.labels]
    assert followed["n_clusters"][0].tolist() == trace.n_clusters.tolist()


def test_the_concentration_is_followed_where_it_is_sampled() -> None:
    rng = np.random.default_rng(0)
    sampled = Posterior.from_data(blobs(rng, 20)[0], concentration=Gamma(1.0, 1.0))
    assert "concentration" in diagnose(chain(sampled, 0, 50)).rhat


def test_longer_chains_are_cut(posterior: Posterior) -> None:
    found = diagnose([chain(posterior, 0, 100), chain(posterior, 1, 60)])
    assert found.n_draws == 60


def test_acceptance_is_pooled(posterior: Posterior) -> None:
    chains = [chain(posterior, seed, 20) for seed in range(2)]
    made = sum(int(np.sum(trace.move_counts["gibbs"][0])) for trace in chains)
    taken = sum(int(np.sum(trace.move_counts["gibbs"][1])) for trace in chains)
    assert diagnose(chains).acceptance["gibbs"] == pytest.approx(taken / made)


def test_autocorrelation_of_an_autoregression(posterior: Posterior) -> None:
    rng = np.random.default_rng(0)
    values = np.zeros(4000)
    for step in range(1, 4000):
        values[step] = 0.8 * values[step - 1] + rng.normal()
    trace = synthetic_trace(random_partitions(rng, 4000, 20, 3), posterior, rng)
    object.__setattr__(trace, "log_posterior", values)
    found = autocorrelation(trace, "log_posterior", max_lag=5)
    np.testing.assert_allclose(found, 0.8 ** np.arange(6), atol=0.08)


def test_refusals(posterior: Posterior) -> None:
    trace = chain(posterior, 0, 20)
    other = Posterior.from_data(blobs(np.random.default_rng(9), 20)[0])
    with pytest.raises(ValueError, match="no traces"):
        diagnose([])
    with pytest.raises(ValueError, match="at least 8 draws"):
        diagnose(trace[:5])
    with pytest.raises(ValueError, match="same data"):
        diagnose([trace, chain(other, 0, 20)])
    with pytest.raises(ValueError, match="quantity must be one of"):
        autocorrelation(trace, "labels")
    with pytest.raises(ValueError, match="max_lag"):
        autocorrelation(trace, max_lag=20)


def test_the_gap_is_left_out_where_it_does_not_fit(
    posterior: Posterior, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = chain(posterior, 0, 20)
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "10")
    assert diagnose(trace).similarity_gap is None
    assert similarity_gap([]) == 0.0


def test_says_what_to_install(posterior: Posterior, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"ewens-widgets\[arviz\]"):
        diagnose(chain(posterior, 0, 20))
