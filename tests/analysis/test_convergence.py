"""The one verdict: R-hat and effective sample size against ArviZ, what is followed, what is said of it."""

import sys
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from traces import altered, blobs, own_trace, random_partitions, synthetic_trace

import ewens_widgets as ew
from ewens_widgets.analysis.convergence import (
    FEWEST_DRAWS,
    Diagnostics,
    compare,
    compared_rows,
    diagnose,
    largest_gap,
    load_statistics,
    quantities,
    similarity_gap,
)
from ewens_widgets.analysis.report import report
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.sampling.trace import Trace


def autoregressive(n_draws: int, memory: float, seed: int, apart: float = 0.0) -> NDArray[np.float64]:
    """Autoregressive chains, each with a level of its own."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(4, n_draws))
    values = np.zeros((4, n_draws))
    for place in range(1, n_draws):
        values[:, place] = memory * values[:, place - 1] + steps[:, place]
    return values + apart * np.arange(4)[:, None]


def agreement(values: NDArray[np.float64], gap: float | None = None) -> Diagnostics:
    return compare(dict.fromkeys(("n_clusters", "log_posterior", "theta"), values), similarity_gap=gap)


def rhat(values: NDArray[np.float64]) -> float:
    return agreement(values).rhat["n_clusters"]


def bulk_ess(values: NDArray[np.float64]) -> float:
    return agreement(values).ess_bulk["n_clusters"]


@pytest.mark.parametrize("memory", [-0.4, 0.0, 0.5, 0.95])
@pytest.mark.parametrize("n_draws", [10, 23, 100, 401])
@pytest.mark.parametrize("apart", [0.0, 2.0])
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of ArviZ, when it is loaded
@pytest.mark.slow
def test_both_numbers_are_those_of_arviz(n_draws: int, memory: float, apart: float) -> None:
    import arviz  # It takes two seconds, which only who runs this should wait for.

    for values in (
        autoregressive(n_draws, memory, 3, apart),
        np.round(autoregressive(n_draws, memory, 4, apart)),
    ):
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


def test_the_sentence_says_plainly_what_is_the_case() -> None:
    assert agreement(autoregressive(6, 0.0, 0)).verdict == "unknown"
    assert "Too early" in agreement(autoregressive(6, 0.0, 0)).sentence()
    good = agreement(autoregressive(400, 0.0, 0))
    assert good.verdict == "agree"
    assert good.sentence().startswith("The chains agree: the largest R-hat is 1.0")
    far = agreement(autoregressive(400, 0.0, 0, apart=3.0))
    assert far.verdict == "apart"
    assert far.worst_rhat > 1.2
    assert "do not agree" in far.sentence()
    assert "in chain 1 and" in far.sentence()
    assert far.sentence(["one", "two", "three", "last"]).endswith("in last.")
    few = agreement(autoregressive(12, 0.0, 5))
    assert few.least_ess < 100
    assert few.verdict in {"not yet", "apart"}
    near = agreement(autoregressive(400, 0.0, 0, apart=0.25))
    assert 1.05 < near.worst_rhat < 1.2
    assert near.verdict == "not yet"
    assert "nearly agree" in near.sentence()
    differing = agreement(autoregressive(400, 0.0, 0), gap=0.3)
    assert differing.verdict == "apart"
    assert "differ by 0.30 on average" in differing.sentence()
    alone = compare(
        {"n_clusters": autoregressive(400, 0.0, 0)[:1], "log_posterior": autoregressive(400, 0.0, 1)[:1]}
    )
    assert alone.sentence().startswith("Both halves of the chain agree")


def test_stuck_chains_are_told_apart() -> None:
    stuck = agreement(np.arange(4.0)[:, None] * np.ones((4, 20)))
    assert "is infinite" in stuck.sentence()


def test_the_gap_is_that_of_the_two_chains_farthest_apart() -> None:
    one, two = np.eye(3), np.ones((3, 3))
    assert largest_gap([one, two, two]) == pytest.approx(6 / 9)
    assert largest_gap([one]) == 0.0


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


def test_what_never_changes(posterior: Posterior) -> None:
    rng = np.random.default_rng(2)
    same = np.tile(random_partitions(rng, 1, 20, 4), (50, 1))
    other = np.tile(random_partitions(rng, 1, 20, 9), (50, 1))
    still, elsewhere = (synthetic_trace(labels, posterior, rng) for labels in (same, other))
    found = diagnose([still, still])
    assert np.isnan(found.rhat["n_clusters"])
    assert found.ess_bulk["n_clusters"] == 100
    assert np.isinf(diagnose([still, elsewhere]).rhat["n_clusters"])


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


def test_the_pooling_of_own_shapes_is_followed_and_no_concentration_that_is_not_sampled() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 2))
    prior = ew.priors.FiniteMixture()
    posterior = Posterior.from_data(X, "III", shapes="own", prior=prior)
    own = own_trace(posterior, rng, 60)
    found = diagnose(own)
    assert set(found.rhat) == {"n_clusters", "theta", "log_posterior", "largest_cluster", "nu"}
    np.testing.assert_allclose(found.means["nu"], np.log2(own.nu).mean())
    shifted = altered(own, nu_index=own.nu_index % 4 // 3)
    apart = diagnose([own, shifted])
    assert apart.worst == "nu"
    assert "log₂ ν" in apart.sentence()


def test_longer_chains_are_cut(posterior: Posterior) -> None:
    found = diagnose([chain(posterior, 0, 100), chain(posterior, 1, 60)])
    assert found.n_draws == 60


def test_acceptance_is_pooled(posterior: Posterior) -> None:
    chains = [chain(posterior, seed, 20) for seed in range(2)]
    made = sum(int(np.sum(trace.move_counts["gibbs"][0])) for trace in chains)
    taken = sum(int(np.sum(trace.move_counts["gibbs"][1])) for trace in chains)
    assert diagnose(chains).acceptance["gibbs"] == pytest.approx(taken / made)


def test_refusals(posterior: Posterior) -> None:
    trace = chain(posterior, 0, 20)
    other = Posterior.from_data(blobs(np.random.default_rng(9), 20)[0])
    with pytest.raises(ValueError, match="no traces"):
        diagnose([])
    with pytest.raises(ValueError, match="at least 8 draws"):
        diagnose(trace[:5])
    with pytest.raises(ValueError, match="same data"):
        diagnose([trace, chain(other, 0, 20)])


def test_the_gap_is_left_out_where_it_does_not_fit(
    posterior: Posterior, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = chain(posterior, 0, 20)
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "10")
    assert diagnose(trace).similarity_gap is None
    assert similarity_gap([]) == 0.0


def test_arviz_itself_is_not_needed(posterior: Posterior, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)
    assert diagnose(chain(posterior, 0, 20)).is_known


def test_some_objects_stand_for_many() -> None:
    assert compared_rows(2500) is None
    rows = compared_rows(3000)
    assert rows.size == np.unique(rows).size == 1000
    assert np.array_equal(rows, compared_rows(3000))
    assert rows.max() < 3000
    rng = np.random.default_rng(0)
    large = Posterior.from_data(rng.normal(size=(3000, 2)), model="I")
    halves = np.tile(np.repeat([0, 1], 1500), (8, 1)), np.tile(np.arange(3000) % 2, (8, 1))
    traces = [synthetic_trace(labels, large, rng) for labels in halves]
    # Half of all pairs are together in one of them and apart in the other.
    assert similarity_gap(traces) == pytest.approx(0.5, abs=0.01)
    exact = largest_gap([trace.similarity(dtype=np.float32) for trace in traces])
    assert similarity_gap(traces) == pytest.approx(exact, abs=0.01)


def many_objects(n_objects: int, n_draws: int, n_chains: int) -> list[Trace]:
    rng = np.random.default_rng(0)
    posterior = Posterior.from_data(rng.normal(size=(n_objects, 2)), model="I")
    return [
        synthetic_trace(random_partitions(rng, n_draws, n_objects, 6), posterior, rng)
        for _ in range(n_chains)
    ]


def peak_of(call: Callable[[], object]) -> int:
    """Bytes that Python and NumPy had at most during a call, beyond those at its beginning."""
    load_statistics()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_objects", "n_draws", "n_chains"), [(2400, 10, 12), (1000, 10, 40), (5000, 200, 4)]
)
def test_a_limit_of_memory_is_kept_to(
    n_objects: int, n_draws: int, n_chains: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = many_objects(n_objects, n_draws, n_chains)
    limit = 64_000_000
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", str(limit))
    for call in (lambda: diagnose(traces), lambda: similarity_gap(traces), lambda: report(traces)):
        assert peak_of(call) < 1.25 * limit
    within = diagnose(traces).similarity_gap
    monkeypatch.delenv("EWENS_WIDGETS_MEMORY_LIMIT")
    assert within == pytest.approx(diagnose(traces).similarity_gap, abs=0.02)


@pytest.mark.slow
def test_twenty_thousand_objects_need_little_memory() -> None:
    (trace,) = many_objects(20_000, 60, 1)
    assert peak_of(lambda: report(trace)) < 100_000_000


def test_fewer_draws_say_nothing() -> None:
    assert not agreement(autoregressive(FEWEST_DRAWS - 1, 0.0, 0)).is_known
    assert agreement(autoregressive(FEWEST_DRAWS - 1, 0.0, 0)).findings == ()
    assert agreement(autoregressive(FEWEST_DRAWS, 0.0, 0)).is_known
