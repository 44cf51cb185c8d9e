"""How good the answers are, and what they cost beside the chain itself.

    .venv/bin/python benchmarks/answers.py

Agreement with known labels is printed beside scikit-learn's methods, told the true number of clusters; times
are processor times, as ratios to sampling the draws that the answer is made of.
"""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

import ewens_widgets as ew
from ewens_widgets.analysis.predictive import predict_clusters
from ewens_widgets.paper.rivals import gaussian_mixture, k_means, our_answer

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


if __name__ == "__main__":
    agreement()
    costs()
