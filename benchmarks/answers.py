"""How good the answers are, and what they cost beside the chain itself.

    .venv/bin/python benchmarks/answers.py

Agreement with known labels is printed beside scikit-learn's methods, told the true number of clusters; times
are processor times, as ratios to sampling the draws that the answer is made of. `answers.py fits` prints what
a whole fit takes that is told nothing: seconds (by the clock, so on an otherwise idle machine), those of the
processor where one process does it all, and the largest memory that a process had.
"""

import multiprocessing
import resource
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from numpy.typing import NDArray
from other_methods import gaussian_mixture, k_means, our_answer
from sklearn.preprocessing import StandardScaler

import ewens_widgets as ew
from ewens_widgets.analysis.predictive import predict_clusters

SEEDS = 3
DATA = {
    "wine": (ew.datasets.wine, "III"),
    "wine ": (ew.datasets.wine, "II"),
    "leukemia": (ew.datasets.leukemia, "I"),
    "unit square, sheared": (lambda: ew.datasets.unit_square("III", seed=0), "III"),
    "roads (stand-in)": (ew.datasets.denmark_roads_standin, "III"),
}


def seconds(call: Callable[[], object]) -> float:
    """Processor time: other programs on the machine do not count."""
    start = time.process_time()
    call()
    return time.process_time() - start


def whitened(X: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[0] * np.sqrt(len(X))


def agreement() -> None:
    print("Adjusted Rand index, means over seeds")
    print(f"{'data':24}{'model':>6}{'ours':>8}{'k-means':>9}{'scaled':>8}{'mixture':>9}{'whitened':>10}")
    for name, (load, model) in DATA.items():
        data = load()
        count = len(np.unique(data.labels))
        found: dict[str, list[float]] = {}
        for seed in range(SEEDS):
            scaled = StandardScaler().fit_transform(data.X)
            labels = {
                "ours": our_answer(data.X, count, seed, model, n_clusters=count),
                "k-means": k_means(data.X, count, seed),
                "scaled": k_means(scaled, count, seed),
                "mixture": gaussian_mixture(data.X, count, seed),
                "whitened": gaussian_mixture(whitened(data.X), count, seed),
            }
            for method, given in labels.items():
                found.setdefault(method, []).append(ew.adjusted_rand(data.labels, given))
        ours, plain, scaled_mean, mixture, white = (np.mean(scores) for scores in found.values())
        row = f"{ours:8.2f}{plain:9.2f}{scaled_mean:8.2f}{mixture:9.2f}{white:10.2f}"
        print(f"{name.strip():24}{model:>6}{row}")


def costs() -> None:
    print("\nWine, 1000 draws after 500: time of each answer over the time of the chain")
    names = ("estimate", "consensus", "evidence", "predict 178", "running similarity")
    print(f"{'model':6}{'chain':>8}" + "".join(f"{name:>{len(name) + 2}}" for name in names))
    for model in ("I", "II", "III"):
        sampler = ew.Sampler(ew.datasets.wine(), model=model, seed=0)
        sampler.sample(10, progress=False)
        chain = seconds(lambda sampler=sampler: sampler.sample(1000, 500, progress=False))
        trace = sampler.sample(1000, progress=False)
        trace.similarity()
        running = ew.RunningSimilarity(trace.n_objects)
        running.add(trace.labels[0])
        answers = [
            seconds(lambda trace=trace: trace.point_estimate()),
            seconds(lambda trace=trace: trace.consensus_tree(3)),
            seconds(lambda trace=trace: trace.evidence_tree()),
            seconds(lambda t=trace: predict_clusters(t, t.best, t.posterior.coordinates)),
            # Over the part of the chain that gave these draws.
            1.5 * seconds(lambda trace=trace, running=running: [running.add(row) for row in trace.labels]),
        ]
        shares = zip(names, answers, strict=True)
        row = "".join(f"{answer / chain:{len(name) + 2}.2f}" for name, answer in shares)
        print(f"{model:6}{chain:7.2f}s{row}")


SIZES = {"wine, 178 × 13": None, "2 000 × 10": 2_000, "20 000 × 10": 20_000}
CLUSTERS = 5


def large(n_rows: int, n_columns: int = 10) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Clusters with shapes of their own that hardly overlap."""
    rng = np.random.default_rng(0)
    labels = rng.integers(CLUSTERS, size=n_rows)
    centres = 2.5 * rng.normal(size=(CLUSTERS, n_columns))
    roots = np.eye(n_columns) + 0.3 * rng.normal(size=(CLUSTERS, n_columns, n_columns))
    return centres[labels] + np.einsum(
        "nij,nj->ni", roots[labels], rng.normal(size=(n_rows, n_columns))
    ), labels


def one_fit(n_rows: int | None, n_jobs: int) -> tuple[float, float, float, int, float]:
    """Seconds, those of this processor, megabytes, clusters found, and agreement; compiled before."""
    wine = ew.datasets.wine()
    X, labels = (wine.X, wine.labels) if n_rows is None else large(n_rows)
    warnings.simplefilter("ignore")
    ew.AffineClustering(draws=10, burn_in=10, n_jobs=n_jobs).fit(X[:: max(1, len(X) // 100)])
    start, busy = time.perf_counter(), time.process_time()
    found = ew.AffineClustering(random_state=0, n_jobs=n_jobs).fit(X)
    passed, busy = time.perf_counter() - start, time.process_time() - busy
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return passed, busy, peak / 1024, found.n_clusters_, ew.adjusted_rand(labels, found.labels_)


def fits() -> None:
    titles = f"{'processes':>10}{'seconds':>9}{'processor':>11}{'MB':>7}{'clusters':>10}{'ARI':>6}"
    print(f"{'a fit, told nothing':22}{titles}")
    context = multiprocessing.get_context("spawn")
    for name, n_rows in SIZES.items():
        for n_jobs in (1, 2):
            # A process of its own, so that the memory is its own.
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                passed, busy, peak, count, score = pool.submit(one_fit, n_rows, n_jobs).result()
            alone = f"{busy:11.1f}" if n_jobs == 1 else f"{'–':>11}"
            print(f"{name:22}{n_jobs:10}{passed:9.1f}{alone}{peak:7.0f}{count:10}{score:6.2f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["fits"]:
        fits()
    else:
        agreement()
        costs()
