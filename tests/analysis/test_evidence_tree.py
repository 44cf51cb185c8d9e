"""The evidence tree against a naive one, and the consensus of many against its definition."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage
from traces import blob_trace, blobs, own_trace, random_partitions, synthetic_trace

import ewens_widgets as ew
from ewens_widgets.analysis import evidence_tree as module
from ewens_widgets.analysis.evidence_tree import (
    Evidence,
    OwnEvidence,
    consensus_distance,
    consensus_tree,
    evidence_of,
    evidence_tree,
)
from ewens_widgets.arguments import TooLargeError
from ewens_widgets.model.own_shapes import statistics_of
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Concentration, Gamma
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.trace import Trace

MODELS = ["I", "II", "III"]
PRIORS = [
    ew.priors.Ewens(0.7),
    ew.priors.FiniteMixture(1.0, ew.priors.Geometric(0.5)),
    ew.priors.PitmanYor(1.0, 0.3),
    ew.priors.DirichletMultinomial(10, 2.0),
]


def candidates(labels: np.ndarray) -> list[np.ndarray]:
    """The partitions that merging two clusters gives."""
    pairs = combinations(range(int(labels.max()) + 1), 2)
    return [canonical_labels(np.where(labels == b, a, labels)) for a, b in pairs]


def check_against_naive(posterior: Posterior, labels: np.ndarray) -> None:
    """Every candidate is judged by the whole log posterior."""
    tree = evidence_tree(posterior, labels)
    current, heights = canonical_labels(labels), [0.0]
    assert tree.n_start == current.max() + 1
    while current.max() > 0:
        np.testing.assert_array_equal(tree.cut(n_clusters=int(current.max()) + 1), current)
        scores = [posterior.log_marginal(candidate) for candidate in candidates(current)]
        heights.append(heights[-1] + max(posterior.log_marginal(current) - max(scores), 0.0))
        current = candidates(current)[int(np.argmax(scores))]
    assert 0.0 in heights[1:], "the problem should have merges that gain"
    assert heights[-1] > 0.0, "the problem should have merges that lose"
    np.testing.assert_allclose(tree.heights[-len(heights) + 1 :], heights[1:], rtol=1e-9, atol=1e-9)


def problem(seed: int, model: str, concentration: Concentration) -> tuple[Posterior, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, true = blobs(rng, n_objects=60, n_features=3, n_clusters=4, spread=5.0)
    # Each cluster in two halves, and one object astray: merges that gain come first, then ones that lose.
    labels = canonical_labels(true + 4 * rng.integers(0, 2, 60))
    labels[rng.integers(60)] = 0
    return Posterior.from_data(X, model=model, concentration=concentration), canonical_labels(labels)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("seed", "concentration"), [(0, 1.0), (1, 0.3), (2, Gamma(2.0, 1.5))], ids=["one", "small", "Gamma"]
)
def test_equals_the_naive_tree(seed: int, model: str, concentration: Concentration) -> None:
    check_against_naive(*problem(seed, model, concentration))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("prior", PRIORS[1:], ids=lambda prior: type(prior).__name__)
def test_losses_under_every_prior(model: str, prior: ew.priors.PartitionPrior) -> None:
    posterior, labels = problem(1, model, 1.0)
    check_against_naive(dataclasses.replace(posterior, prior=prior), labels)


def own_problem(seed: int, model: str, prior: ew.priors.PartitionPrior) -> tuple[Trace, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, true = blobs(rng, n_objects=60, n_features=3, n_clusters=4, spread=5.0)
    labels = canonical_labels(true + 4 * rng.integers(0, 2, 60))
    posterior = Posterior.from_data(X, model=model, prior=prior, shapes="own")
    return own_trace(posterior, rng, 7), labels


def averaged_log_posterior(trace: Trace, labels: np.ndarray) -> float:
    """Log posterior of a partition with the parameters of each draw, by the posterior itself."""
    nu, sigma = trace.column("nu_index"), trace.column("sigma")
    density = trace.posterior.log_density
    draws = enumerate(trace.theta_index.tolist())
    return float(np.mean([density(labels, theta, None, int(nu[k]), sigma[k]) for k, theta in draws]))


@pytest.mark.parametrize(("model", "prior"), list(zip(["I", "II", "III", "I"], PRIORS, strict=True)))
def test_own_shapes_lose_what_the_posterior_says_on_average(
    model: str, prior: ew.priors.PartitionPrior
) -> None:
    """Every merge on the way up, though only the pairs that a merge touched are computed again."""
    trace, labels = own_problem(3, model, prior)
    tree = evidence_tree(trace.posterior, labels, evidence_of(trace.posterior, trace))
    height, current = 0.0, labels
    for count in range(int(labels.max()), 0, -1):
        scores = [averaged_log_posterior(trace, candidate) for candidate in candidates(current)]
        height += max(averaged_log_posterior(trace, current) - max(scores), 0.0)
        current = candidates(current)[int(np.argmax(scores))]
        np.testing.assert_array_equal(tree.cut(n_clusters=count), current)
        np.testing.assert_allclose(tree.heights[-count], height, rtol=1e-9, atol=1e-9)
    assert height > 1.0


def test_own_shapes_through_the_trace() -> None:
    trace, labels = own_problem(5, "II", ew.priors.FiniteMixture())
    assert trace.evidence_tree().n_start == int(trace.best.max()) + 1
    assert trace.consensus_tree(2).n_leaves == 60
    assert evidence_of(trace.posterior, trace, start=6).theta.tolist() == trace.theta[6:].tolist()
    with pytest.raises(ValueError, match=r"trace\.evidence_tree\(\)"):
        evidence_tree(trace.posterior, labels)
    with pytest.raises(ValueError, match="the trace has none"):
        evidence_of(trace.posterior, trace[:0])
    # The sabotaged twin: losses of a single draw are not the average's.
    averaged, single = (evidence_of(trace.posterior, draws) for draws in (trace, trace[:1]))
    assert isinstance(averaged, OwnEvidence)
    assert len(averaged.theta) == 7
    heights = [evidence_tree(trace.posterior, labels, one).heights[-1] for one in (averaged, single)]
    assert abs(heights[0] - heights[1]) > 1.0


def without_cross_terms(sums: np.ndarray, shrinkage: np.ndarray) -> tuple[np.ndarray, module.Change]:
    """Forget that a merge changes M by a matrix of rank two: cross products are left out."""
    scatter = np.eye(sums.shape[1]) - (sums.T * shrinkage[:, None, :]) @ sums
    squares = np.diagonal(sums @ np.linalg.solve(scatter, sums.T[None]), axis1=1, axis2=2)

    def change(merged: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        added = (shrinkage[:, left] - merged) * squares[:, left]
        return np.log1p(added + (shrinkage[:, right] - merged) * squares[:, right])

    return np.linalg.slogdet(scatter)[1], change


def test_a_wrong_determinant_update_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sabotaged twin of the test above."""
    monkeypatch.setitem(module._FORMS, "III", without_cross_terms)
    with pytest.raises(AssertionError):
        check_against_naive(*problem(0, "III", 1.0))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("block", [3, 100_000])
def test_losses_equal_recomputed_ones(
    rng: np.random.Generator, model: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK_ENTRIES", block)
    X, true = blobs(rng, n_objects=70, n_features=18, n_clusters=7)
    posterior = Posterior.from_data(X, model=model, concentration=Gamma(1.0, 1.0))
    left, right = np.triu_indices(7, k=1)
    clusters = statistics_of(posterior.coordinates, true, posterior.model)
    losses = Evidence(posterior).losses(clusters, left, right)
    now = posterior.log_marginal(true)
    expected = [
        now - posterior.log_marginal(np.where(true == b, a, true)) for a, b in zip(left, right, strict=True)
    ]
    np.testing.assert_allclose(losses, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("model", MODELS)
def test_is_a_full_scipy_linkage_that_is_not_cut_below_its_start(model: str) -> None:
    posterior, labels = problem(5, model, 1.0)
    for start in (labels, np.arange(60), np.zeros(60, dtype=int), np.repeat([2, 0, 1], [1, 58, 1])):
        tree = evidence_tree(posterior, start)
        assert is_valid_linkage(tree.linkage)
        assert is_monotonic(tree.linkage)
        assert tree.linkage.shape == (59, 4)
        assert tree.linkage[-1, 3] == 60
        np.testing.assert_array_equal(tree.heights[: 60 - tree.n_start], 0.0)
        np.testing.assert_array_equal(tree.cut(n_clusters=tree.n_start), canonical_labels(start))
        if tree.n_start < 60:
            with pytest.raises(ValueError, match=f"It starts from {tree.n_start} clusters"):
                tree.cut(n_clusters=tree.n_start + 1)
    trace = blob_trace(n_draws=30, model=model)
    tree = trace.evidence_tree()
    assert tree.kind == "evidence"
    np.testing.assert_array_equal(tree.cut(n_clusters=tree.n_start), trace.best)
    assert tree.plot().get_ylabel() == "log posterior lost (nats)"


def test_merges_that_gain_count_as_no_loss(rng: np.random.Generator) -> None:
    """Two halves of one Gaussian cluster belong together: the first merge gains, and is made at height 0."""
    X, true = blobs(rng, n_objects=40, n_clusters=2, spread=6.0)
    halves = np.where((true == 0) & (np.arange(40) >= 20), 2, true)
    tree = evidence_tree(Posterior.from_data(X, model="I"), halves)
    assert tree.heights[-2] == 0.0
    assert tree.heights[-1] > 10.0
    np.testing.assert_array_equal(tree.cut(height=0.0), true)


@pytest.mark.parametrize(("model", "is_invariant"), [("III", True), ("I", False)])
def test_invariance(rng: np.random.Generator, model: str, is_invariant: bool) -> None:
    X, _ = blobs(rng, n_objects=30, n_clusters=5, spread=2.0)
    labels = random_partitions(rng, 1, 30, 9)[0]
    mixed = X @ np.array([[1.0, 5.0, -2.0], [0.5, 3.0, 1.0], [2.0, 0.0, 9.0]]) + 3.0
    first = evidence_tree(Posterior.from_data(X, model=model), labels)
    second = evidence_tree(Posterior.from_data(mixed, model=model), labels)
    same = np.allclose(first.linkage, second.linkage, atol=1e-6)
    assert same is is_invariant


def naive_distance(trace: Trace, n_clusters: int) -> np.ndarray:
    """The definition, cut by cut."""
    total = np.zeros((trace.n_objects, trace.n_objects))
    for labels in trace.labels:
        tree = evidence_tree(trace.posterior, labels)
        levels = range(min(n_clusters, tree.n_start), tree.n_start + 1)
        cuts = [tree.cut(n_clusters=level) for level in levels]
        total += np.mean([cut[:, None] != cut[None, :] for cut in cuts], axis=0)
    return total / len(trace)


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_the_consensus_equals_its_definition(model: str) -> None:
    trace = blob_trace(seed=3, n_draws=8, model=model)
    for n_clusters in (1, 2, 3, 30):
        found = consensus_distance(trace, n_clusters)
        np.testing.assert_allclose(found, naive_distance(trace, n_clusters), atol=1e-12)
    np.testing.assert_allclose(found, trace.distance(), atol=1e-12)  # With many clusters, of the draws.


def test_uses_at_most_the_draws_it_is_given() -> None:
    trace = blob_trace(seed=2, n_draws=60)
    tree = consensus_tree(trace, 3)
    assert [tree.cut(n_clusters=count).max() + 1 for count in range(1, 31)] == list(range(1, 31))
    assert ew.error_rate(blobs(np.random.default_rng(2))[1], tree.cut(n_clusters=3)) == 0.0
    few = consensus_distance(trace, 3, draws=5)
    chosen = np.linspace(0, 59, 5).astype(int)
    parts = Trace.concatenate([trace[k : k + 1] for k in chosen.tolist()])
    np.testing.assert_allclose(few, consensus_distance(parts, 3), atol=1e-12)


def test_refusals_of_the_consensus(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = blob_trace()
    for arguments in ((0, 10), (2, 0)):
        with pytest.raises(ValueError, match="at least 1"):
            consensus_distance(trace, *arguments)
    with pytest.raises(ValueError, match="no draws"):
        consensus_tree(trace[:0], 2)
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "1000")
    with pytest.raises(TooLargeError, match="fewer rows"):
        consensus_tree(trace, 2)


def test_many_clusters_mean_fewer_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    X, _ = blobs(rng, n_objects=12)
    joined = [np.where(np.arange(12) == item, 0, np.arange(12)) for item in rng.integers(1, 12, 20)]
    labels = np.array([canonical_labels(row) for row in joined])
    trace = synthetic_trace(labels, Posterior.from_data(X, model="I"), rng)
    made = []
    real = module.evidence_merges
    monkeypatch.setattr(module, "_WORK", 1.0)
    monkeypatch.setattr(module, "evidence_merges", lambda *given: made.append(1) or real(*given))
    consensus_distance(trace, 2)
    assert len(made) <= 5
