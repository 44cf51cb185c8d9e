import numpy as np
import pytest
from traces import blob_trace, blobs, synthetic_trace

import ewens_widgets as ew
from ewens_widgets.analysis.evidence_tree import (
    consensus_distance,
    consensus_tree,
    evidence_tree,
    merge_levels,
)
from ewens_widgets.memory import TooLargeError
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.trace import Trace


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
@pytest.mark.parametrize("n_clusters", [1, 2, 3, 30])
def test_equals_the_definition(model: str, n_clusters: int) -> None:
    trace = blob_trace(seed=3, n_draws=8, model=model)
    np.testing.assert_allclose(
        consensus_distance(trace, n_clusters), naive_distance(trace, n_clusters), atol=1e-12
    )


def test_many_clusters_give_the_distance_of_the_draws() -> None:
    trace = blob_trace(seed=1)
    np.testing.assert_allclose(consensus_distance(trace, trace.n_objects), trace.distance(), atol=1e-12)


def test_levels_of_one_partition() -> None:
    rng = np.random.default_rng(0)
    X, true = blobs(rng, n_objects=24, n_clusters=4)
    posterior = Posterior.from_data(X, model="II")
    levels, tree = merge_levels(posterior, true), evidence_tree(posterior, true)
    assert np.all(np.diag(levels) == 4)
    for count in (1, 2, 3):
        cut = tree.cut(n_clusters=count)[:4]
        np.testing.assert_array_equal(levels >= count, cut[:, None] == cut[None, :])


def test_uses_at_most_the_draws_it_is_given() -> None:
    trace = blob_trace(seed=2, n_draws=60)
    few = consensus_distance(trace, 3, draws=5)
    chosen = np.linspace(0, 59, 5).astype(int)
    parts = Trace.concatenate([trace[k : k + 1] for k in chosen.tolist()])
    np.testing.assert_allclose(few, consensus_distance(parts, 3), atol=1e-12)


def test_the_tree_is_cut_at_any_number() -> None:
    trace = blob_trace(seed=4)
    tree = consensus_tree(trace, 3)
    assert [len(set(tree.cut(n_clusters=count).tolist())) for count in range(1, 31)] == list(range(1, 31))
    _, true = blobs(np.random.default_rng(4))
    assert ew.error_rate(true, tree.cut(n_clusters=3)) == 0.0


@pytest.mark.parametrize("arguments", [(0, 10), (2, 0)])
def test_refuses_numbers_below_one(arguments: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        consensus_distance(blob_trace(), *arguments)


def test_refuses_an_empty_trace_and_one_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = blob_trace()
    with pytest.raises(ValueError, match="no draws"):
        consensus_tree(trace[:0], 2)
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "1000")
    with pytest.raises(TooLargeError, match="fewer rows"):
        consensus_tree(trace, 2)


def test_many_clusters_mean_fewer_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    X, _ = blobs(rng, n_objects=12)
    labels = np.array([np.arange(12)] * 20)
    labels[np.arange(20), rng.integers(1, 12, 20)] = 0
    labels = np.array([np.unique(row, return_inverse=True)[1] for row in labels])
    trace = synthetic_trace(labels, Posterior.from_data(X, model="I"), rng)
    made = []
    monkeypatch.setattr("ewens_widgets.analysis.evidence_tree._WORK", 1.0)
    real = merge_levels
    monkeypatch.setattr(
        "ewens_widgets.analysis.evidence_tree.merge_levels",
        lambda posterior, row: made.append(1) or real(posterior, row),
    )
    consensus_distance(trace, 2)
    assert len(made) <= 5
