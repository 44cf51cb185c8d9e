"""Time and memory of large data sets, and how long each start takes to burn in.

Run all of it, or for some sizes only:

    python benchmarks/large_data.py
    python benchmarks/large_data.py --rows 100000 --no-burn-in

Every size is measured in a process of its own, so that its peak of memory is its own. Times are processor
times, so that other programs on the machine do not count. The data are a mixture of eight Gaussian clusters
in ten dimensions, single precision, mapped from a file.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ewens_widgets as ew

N_FEATURES = 10
N_CLUSTERS = 8
ITERATIONS = 10
STARTS = ("k-means", "one-cluster", "singletons")


def mixture(n_objects: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Eight clusters of unequal sizes, which overlap a little in every single column."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(N_CLUSTERS, 5.0))
    true = rng.choice(N_CLUSTERS, n_objects, p=shares)
    centres = 1.5 * rng.normal(size=(N_CLUSTERS, N_FEATURES)).astype(np.float32)
    noise = rng.normal(size=(n_objects, N_FEATURES)).astype(np.float32)
    return centres[true] + noise, true


def peak_memory() -> float:
    """Largest resident memory of this process so far, in GB."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


class Stages:
    """Collects time and memory, stage by stage."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float, float]] = [
            ("imports, compiled code and the mapped file", 0.0, peak_memory())
        ]

    def run(self, name: str, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the work gives
        started = time.process_time()
        result = work()
        self.rows.append((name, time.process_time() - started, peak_memory()))
        return result


def measure(path: Path, truth: Path) -> dict[str, Any]:
    """Run everything that a user of many rows would, once the code is compiled."""
    small = np.random.default_rng(0).normal(size=(50, N_FEATURES))
    warm = ew.Sampler(small, initial="k-means").sample(2, progress=False)
    warm.similarity()
    warm.evidence_tree()
    data, true = np.load(path, mmap_mode="r"), np.load(truth)
    stages = Stages()
    sampler = stages.run(
        "sampler with its k-means start", lambda: ew.Sampler(data, model="II", initial="k-means")
    )
    trace = stages.run(f"{ITERATIONS} iterations", lambda: sampler.sample(ITERATIONS, progress=False))
    rows = stages.run("400 representatives", trace.representatives)
    stages.run("their similarity", lambda: trace.similarity(rows=rows))
    tree = stages.run("evidence tree", trace.evidence_tree)
    labels = stages.run("its cut", lambda: tree.cut(n_clusters=min(N_CLUSTERS, tree.n_start)))
    figure = stages.run("heatmap", lambda: ew.plots.plot_heatmap(trace, tree="evidence", true=true))
    assert figure is not None
    with tempfile.TemporaryDirectory() as folder:
        stages.run("saving the draws", lambda: trace.save(Path(folder) / "trace.npz"))
        stages.run("loading them", lambda: ew.Trace.load(Path(folder) / "trace.npz"))
    return {
        "stages": stages.rows,
        "clusters": int(trace.n_clusters[-1]),
        "error": ew.error_rate(true, labels),
        "log_posterior": trace.log_posterior.tolist(),
    }


def print_sizes(sizes: list[int]) -> None:
    for n_objects in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path, truth = Path(folder) / "X.npy", Path(folder) / "true.npy"
            X, true = mixture(n_objects)
            np.save(path, X)
            np.save(truth, true)
            del X
            command = [sys.executable, __file__, "--measure", str(path), str(truth)]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
        found = json.loads(output)
        print(f"\n{n_objects} rows × {N_FEATURES} columns, model II\n")
        print("| stage | processor seconds | peak memory, GB |\n|---|---|---|")
        for name, seconds, memory in found["stages"]:
            print(f"| {name} | {seconds:.2f} | {memory:.2f} |")
        print(
            f"\n{found['clusters']} clusters after {ITERATIONS} iterations; "
            f"error of the cut into {N_CLUSTERS}: {found['error']:.4f}"
        )


def burn_in(n_objects: int, iterations: int = 300) -> None:
    """How long each start takes to the typical level: the lowest log posterior of 95 % of the later draws."""
    X, _ = mixture(n_objects, seed=1)
    ew.Sampler(X[:50]).compile(progress=False)
    ew.Sampler(X[:50]).sample(2, progress=False)  # loads compiled code
    runs = {}
    for start in STARTS:
        sampler = ew.Sampler(X, model="II", initial=start, seed=1)
        started, values, times, counts = time.process_time(), [], [], []
        for event in sampler.events(iterations, block=1):
            values.append(event.log_posterior)
            times.append(time.process_time() - started)
            counts.append(event.n_clusters)
        runs[start] = np.array(values), np.array(times), np.array(counts)
    best = max(runs.values(), key=lambda run: float(np.median(run[0][iterations // 2 :])))
    level = float(np.quantile(best[0][iterations // 2 :], 0.05))
    print(
        f"\n{n_objects} rows × {N_FEATURES} columns, model II: "
        f"iterations until the log posterior reaches {level:.0f}\n"
    )
    print("| start | iterations | processor seconds | clusters after 1 and after all iterations |")
    print("|---|---|---|---|")
    for start, (values, times, counts) in runs.items():
        reached = np.flatnonzero(values >= level)
        shown = (
            f"{reached[0] + 1} | {times[reached[0]]:.1f}" if reached.size else f"more than {iterations} | –"
        )
        print(f"| {start} | {shown} | {counts[0]}, {counts[-1]} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--burn-in-rows", type=int, default=10_000)
    parser.add_argument("--no-burn-in", action="store_true")
    parser.add_argument("--measure", nargs=2, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(*given.measure)))
        return
    print_sizes(given.rows)
    if not given.no_burn_in:
        burn_in(given.burn_in_rows)


if __name__ == "__main__":
    main()
