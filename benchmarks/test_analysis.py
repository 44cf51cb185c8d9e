"""From draws to answers: every figure against the plain way of getting it, timed beside it."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture

from ewens_widgets.analysis.agreement import variation_of_information
from ewens_widgets.analysis.estimates import Draws, ExpectedLoss
from ewens_widgets.analysis.evidence_tree import evidence_tree
from ewens_widgets.analysis.similarity import RunningSimilarity, similarity
from ewens_widgets.datasets import wine
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.sampler import Sampler


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def note(benchmark: BenchmarkFixture, name: str, value: float) -> None:
    benchmark.extra_info[name] = value


def fastest(benchmark: BenchmarkFixture, otherwise: float) -> float:
    return benchmark.stats.stats.min if benchmark.stats is not None else otherwise


def draws(n_draws: int, n_objects: int, n_clusters: int) -> NDArray[np.intp]:
    rng = np.random.default_rng(0)
    return np.array([canonical_labels(rng.integers(0, n_clusters, n_objects)) for _ in range(n_draws)])


@pytest.mark.parametrize("n_clusters", [3, 12, 60])
def test_similarity(benchmark: BenchmarkFixture, n_clusters: int) -> None:
    """Two thousand draws of a thousand objects, against adding up n × n comparisons draw by draw."""
    labels = draws(2000, 1000, n_clusters).astype(np.uint8)

    def plain() -> NDArray[np.float64]:
        total = np.zeros((1000, 1000))
        for row in labels[:50]:
            total += row[:, None] == row[None, :]
        return total

    benchmark.pedantic(similarity, (labels,), rounds=3)
    note(benchmark, "times faster than draw by draw", 40 * seconds(plain) / fastest(benchmark, 1.0))


@pytest.mark.parametrize("model", ["II", "III"])
def test_running_similarity_on_wine(benchmark: BenchmarkFixture, model: str) -> None:
    """Events of the default schedule with the running similarity attached, against events alone."""
    sampler = Sampler(wine(), model=model, seed=0)
    running = RunningSimilarity(sampler.posterior.n_objects)

    def alone() -> None:
        for _ in sampler.events(1000):
            pass

    def watched() -> None:
        for event in sampler.events(1000):
            running.add(event.labels)

    watched()
    bare = min(seconds(alone) for _ in range(5))
    benchmark.pedantic(watched, rounds=5)
    note(benchmark, "time with over without", fastest(benchmark, bare) / bare)


@pytest.mark.parametrize("n_objects", [178, 1000])
def test_snapshot_of_the_running_similarity(benchmark: BenchmarkFixture, n_objects: int) -> None:
    """What a frame of the live heatmap costs, against computing the similarity from scratch."""
    labels = draws(500, n_objects, 10)
    running = RunningSimilarity(n_objects)
    running.add_block(labels)
    benchmark(running.similarity, np.float32)
    whole = min(seconds(lambda: similarity(labels)) for _ in range(3))
    note(benchmark, "times faster than from scratch", whole / fastest(benchmark, whole))


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_evidence_tree(benchmark: BenchmarkFixture, model: str) -> None:
    """Fifty clusters, a thousand objects, ten dimensions, against judging merges by the whole posterior."""
    rng = np.random.default_rng(0)
    labels = np.arange(1000) % 50
    X = rng.normal(size=(1000, 10)) + 4.0 * rng.normal(size=(50, 10))[labels]
    posterior = Posterior.from_data(X, model=model)
    candidate = min(seconds(lambda: posterior.log_marginal(labels)) for _ in range(5))
    candidates = sum(count * (count - 1) // 2 for count in range(2, 51))
    benchmark.pedantic(evidence_tree, (posterior, labels), rounds=3)
    note(benchmark, "times faster than the whole posterior", candidates * candidate / fastest(benchmark, 1.0))


def test_expected_loss(benchmark: BenchmarkFixture) -> None:
    """Expected variation of information over two thousand draws, against comparing with each draw in turn."""
    labels = draws(2000, 178, 10)
    expected = ExpectedLoss(Draws.of(labels), "vi")
    one_by_one = 20 * seconds(lambda: [variation_of_information(labels[0], row) for row in labels[:100]])
    benchmark(expected.of, labels[0])
    note(benchmark, "times faster than one by one", one_by_one / fastest(benchmark, one_by_one))
