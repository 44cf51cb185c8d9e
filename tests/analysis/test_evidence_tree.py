import numpy as np
import pytest
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage
from traces import blob_trace, blobs, random_partitions

from ewens_widgets.analysis import evidence_tree as module
from ewens_widgets.analysis.agreement import error_rate
from ewens_widgets.analysis.evidence_tree import evidence_tree, merge_losses
from ewens_widgets.model.likelihood import cluster_statistics
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Concentration, Gamma
from ewens_widgets.partition import canonical_labels

MODELS = ["I", "II", "III"]
CONCENTRATIONS = [1.0, 0.3, Gamma(2.0, 1.5)]


def naive_merges(posterior: Posterior, labels: np.ndarray) -> tuple[list[np.ndarray], list[float]]:
    """Partitions and heights on the way up, every candidate judged by the whole log posterior."""
    current, height, partitions, heights = canonical_labels(labels), 0.0, [canonical_labels(labels)], [0.0]
    while current.max() > 0:
        count = int(current.max()) + 1
        candidates = [
            canonical_labels(np.where(current == b, a, current))
            for a in range(count)
            for b in range(a + 1, count)
        ]
        scores = [posterior.log_marginal(candidate) for candidate in candidates]
        best = int(np.argmax(scores))
        height += max(posterior.log_marginal(current) - scores[best], 0.0)
        current = candidates[best]
        partitions.append(current)
        heights.append(height)
    return partitions, heights


def check_against_naive(posterior: Posterior, labels: np.ndarray) -> None:
    tree = evidence_tree(posterior, labels)
    partitions, heights = naive_merges(posterior, labels)
    assert tree.n_start == len(partitions)
    assert 0.0 in heights[1:], "the problem should have merges that gain"
    assert heights[-1] > 0.0, "the problem should have merges that lose"
    for partition in partitions:
        np.testing.assert_array_equal(tree.cut(n_clusters=int(partition.max()) + 1), partition)
    np.testing.assert_allclose(tree.heights[-len(heights) + 1 :], heights[1:], rtol=1e-9, atol=1e-9)


def problem(seed: int, model: str, concentration: Concentration) -> tuple[Posterior, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, true = blobs(rng, n_objects=60, n_features=3, n_clusters=4, spread=5.0)
    # Each cluster in two halves, and one object astray: merges that gain come first, then ones that lose.
    labels = canonical_labels(true + 4 * rng.integers(0, 2, 60))
    labels[rng.integers(60)] = 0
    return Posterior.from_data(X, model=model, concentration=concentration), canonical_labels(labels)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equals_the_naive_tree(seed: int, model: str, concentration: Concentration) -> None:
    check_against_naive(*problem(seed, model, concentration))


def _without_cross_terms(
    state: object, shrinkage: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Forget that a merge changes M by a matrix of rank two: cross products are left out."""
    squares = np.diagonal(state.gram, axis1=1, axis2=2)  # type: ignore[attr-defined]
    own = state.shrinkage  # type: ignore[attr-defined]
    added = (own[:, left] - shrinkage) * squares[:, left] + (own[:, right] - shrinkage) * squares[:, right]
    return np.log1p(added)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_wrong_determinant_update_would_be_noticed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sabotaged twin of the test above."""
    monkeypatch.setitem(module._CHANGES, "III", _without_cross_terms)
    with pytest.raises(AssertionError):
        check_against_naive(*problem(seed, "III", 1.0))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("block", [3, 100_000])
def test_losses_equal_recomputed_ones(
    rng: np.random.Generator, model: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK_ENTRIES", block)
    X, true = blobs(rng, n_objects=70, n_features=18, n_clusters=7)
    posterior = Posterior.from_data(X, model=model, concentration=Gamma(1.0, 1.0))
    left, right = np.triu_indices(7, k=1)
    losses = merge_losses(posterior, *cluster_statistics(posterior.coordinates, true), left, right)
    now = posterior.log_marginal(true)
    expected = [
        now - posterior.log_marginal(np.where(true == b, a, true)) for a, b in zip(left, right, strict=True)
    ]
    np.testing.assert_allclose(losses, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("model", MODELS)
def test_from_singletons_and_from_one_cluster(rng: np.random.Generator, model: str) -> None:
    X, true = blobs(rng, n_objects=30, n_clusters=3, spread=8.0)
    posterior = Posterior.from_data(X, model=model)
    tree = evidence_tree(posterior, np.arange(30))
    assert tree.linkage.shape == (29, 4)
    assert error_rate(true, tree.cut(n_clusters=3)) == 0.0
    flat = evidence_tree(posterior, np.zeros(30, dtype=int))
    np.testing.assert_array_equal(flat.heights, 0.0)
    assert flat.n_start == 1


@pytest.mark.parametrize("model", MODELS)
def test_is_a_full_scipy_linkage(model: str) -> None:
    posterior, labels = problem(5, model, 1.0)
    tree = evidence_tree(posterior, labels)
    assert is_valid_linkage(tree.linkage)
    assert is_monotonic(tree.linkage)
    assert tree.linkage.shape == (59, 4)
    assert tree.linkage[-1, 3] == 60
    np.testing.assert_array_equal(tree.heights[: 60 - tree.n_start], 0.0)


def test_below_its_start_it_is_not_cut() -> None:
    posterior, labels = problem(5, "II", 1.0)
    tree = evidence_tree(posterior, labels)
    np.testing.assert_array_equal(tree.cut(n_clusters=tree.n_start), canonical_labels(labels))
    with pytest.raises(ValueError, match=f"It starts from {tree.n_start} clusters"):
        tree.cut(n_clusters=tree.n_start + 1)


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


def test_through_the_trace() -> None:
    trace = blob_trace(n_draws=30)
    tree = trace.evidence_tree()
    assert tree.kind == "evidence"
    np.testing.assert_array_equal(tree.cut(n_clusters=tree.n_start), trace.best)
    assert tree.plot().get_ylabel() == "log posterior lost (nats)"
    import matplotlib.pyplot as plt

    plt.close("all")
