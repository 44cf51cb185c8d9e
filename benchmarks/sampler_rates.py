"""How fast the sampler is: rates by move, model and size, cost of events, effective samples, and peers.

Run ``make rates`` on an otherwise idle machine. It prints Markdown. Every rate is also given as it would be
where a compiled loop takes 2.2·10⁸ logarithms a second, the speed of that loop being measured just before
and after each figure; the bars of the project are stated at that speed.
"""

import argparse
import math
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator

import numba
import numpy as np
from numpy.typing import NDArray

import ewens_widgets as ew

YARDSTICK = 2.2e8


@numba.njit
def _logarithms(count: int) -> float:
    total = 0.0
    for k in range(1, count + 1):
        total += math.log(k)
    return total


def logarithms_a_second(count: int = 2_000_000) -> float:
    """Speed of the machine just now."""
    _logarithms(1)
    start = time.perf_counter()
    _logarithms(count)
    return count / (time.perf_counter() - start)


def scaled_rate(run: Callable[[], int], repeats: int = 5) -> tuple[float, float]:
    """Best rate of `run` (which returns how much it did), as measured and as scaled to the yardstick."""
    rates = []
    for _ in range(repeats):
        before = logarithms_a_second()
        start = time.perf_counter()
        count = run()
        rate = count / (time.perf_counter() - start)
        speed = 0.5 * (before + logarithms_a_second())
        rates.append((rate, rate * YARDSTICK / speed))
    return max(rates, key=lambda pair: pair[1])


def row(*cells: object) -> None:
    print(
        "| " + " | ".join(f"{cell:,.0f}" if isinstance(cell, float) else str(cell) for cell in cells) + " |",
        flush=True,
    )


def header(*cells: str) -> None:
    row(*cells)
    row(*["---"] * len(cells))


def blobs(
    n_objects: int, n_features: int = 10, n_clusters: int = 20
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Well separated Gaussian clusters."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_clusters, n_objects)
    return rng.normal(size=(n_clusters, n_features))[labels] * 6.0 + rng.normal(
        size=(n_objects, n_features)
    ), labels


def warmed(iterations: int, data: ew.datasets.Dataset, **settings: object) -> Callable[[], int]:
    """A run of so many iterations of a sampler that has reached its posterior."""
    sampler = ew.Sampler(data, **settings)
    sampler.sample(iterations, progress=False)

    def run() -> int:
        sampler.sample(1, burn_in=iterations - 1, progress=False)
        return iterations

    return run


def moves() -> None:
    """Iterations a second of single moves and schedules."""
    wine, square = ew.datasets.wine(), ew.datasets.unit_square(seed=0)
    figures = [
        ("Gibbs sweeps, wine, I", wine, "I", ["gibbs"], 2_000, None),
        ("Gibbs sweeps, wine, II", wine, "II", ["gibbs"], 2_000, 8_000),
        ("Gibbs sweeps, wine, III", wine, "III", ["gibbs"], 1_000, 2_000),
        ("paper-2, unit square, I", square, "I", "paper-2", 200_000, 250_000),
        ("paper-2, wine, II", wine, "II", "paper-2", 100_000, 80_000),
        ("paper-1, unit square, I", square, "I", "paper-1", 200_000, None),
        ("default schedule, wine, II", wine, "II", "default", 2_000, None),
        ("default schedule, wine, III", wine, "III", "default", 1_000, None),
    ]
    header("iterations a second", "measured", "at 2.2·10⁸ logarithms a second", "bar")
    for name, data, model, schedule, iterations, bar in figures:
        measured, scaled = scaled_rate(warmed(iterations, data, model=model, moves=schedule, seed=0))
        row(name, measured, scaled, "" if bar is None else f"{bar:,} {'met' if scaled >= bar else 'MISSED'}")


def sizes() -> None:
    """Gibbs sweeps over growing data."""
    header(
        "objects (d = 10, 20 clusters, model II)",
        "seconds a Gibbs sweep",
        "ns an object and cluster",
        "MB above the data",
    )
    for n_objects in (100, 1_000, 10_000, 100_000):
        data, labels = blobs(n_objects)
        sampler = ew.Sampler(data, moves=["gibbs"], initial=labels, seed=0)
        sampler.sample(1, progress=False)
        sweeps = max(1, 100_000 // n_objects)
        start = time.perf_counter()
        sampler.sample(1, burn_in=sweeps - 1, progress=False)
        seconds = (time.perf_counter() - start) / sweeps
        tracemalloc.start()
        ew.Sampler(data, moves=["gibbs"], initial=labels, seed=0).sample(1, progress=False)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        row(f"{n_objects:,}", f"{seconds:.2g}", f"{seconds / n_objects / 20 * 1e9:.0f}", peak)


def events() -> None:
    """What an event for each iteration costs."""
    header(
        "wine, model II",
        "`sample`, iterations a second",
        "`events`, iterations a second",
        "ratio of times (at most 1.3)",
    )
    for schedule, iterations in (("default", 3_000), ("paper-2", 100_000)):
        sampler = ew.Sampler(ew.datasets.wine(), moves=schedule, seed=0)
        sampler.sample(iterations, progress=False)
        bare, watched = [], []
        for _ in range(5):
            start = time.perf_counter()
            sampler.sample(iterations, progress=False)
            middle = time.perf_counter()
            for _ in sampler.events(iterations):
                pass
            bare.append(middle - start)
            watched.append(time.perf_counter() - middle)
        row(schedule, iterations / min(bare), iterations / min(watched), f"{min(watched) / min(bare):.2f}")


def _quiet_arviz() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz
    return arviz


def mixing(draws: int = 3_000) -> None:
    """Effective samples of the number of clusters, from chains that must agree."""
    arviz = _quiet_arviz()
    header(
        "wine, four chains from dispersed starts",
        "R-hat of K",
        "R-hat of log posterior",
        "effective samples of K a second",
        "at the yardstick",
    )
    for model in ("II", "III"):
        counts, logs, seconds = [], [], 0.0
        speed = logarithms_a_second()
        for seed, start in enumerate(("singletons", "one-cluster", "k-means", "prior")):
            sampler = ew.Sampler(ew.datasets.wine(), model=model, initial=start, seed=seed)
            began = time.perf_counter()
            trace = sampler.sample(draws - 500, burn_in=500, progress=False)
            seconds += time.perf_counter() - began
            counts.append(trace.n_clusters)
            logs.append(trace.log_posterior)
        rate = float(arviz.ess(np.array(counts, dtype=float))) / seconds
        scaled = rate * YARDSTICK / (0.5 * (speed + logarithms_a_second()))
        rhat = [f"{float(arviz.rhat(np.array(values, dtype=float))):.3f}" for values in (counts, logs)]
        row(f"model {model}, {draws:,} iterations each", *rhat, rate, scaled)


def own() -> None:
    """Clusters with shapes of their own, under the prior of a finite mixture: rate, mixing, a large sweep."""
    wine = ew.datasets.wine()
    settings = {"model": "III", "shapes": "own", "prior": ew.priors.FiniteMixture()}
    header("wine, model III, own shapes", "measured", "at 2.2·10⁸ logarithms a second", "bar")
    measured, scaled = scaled_rate(warmed(1_000, wine, **settings, seed=0))
    row("iterations a second", measured, scaled, f"1,500 {'met' if scaled >= 1_500 else 'MISSED'}")
    print()
    arviz = _quiet_arviz()
    header(
        "four dispersed chains, 1,000 + 2,000 iterations",
        "R-hat of K",
        "of log posterior",
        "ESS of K",
        "a second",
    )
    for first in (0, 10, 20):
        counts, logs, seconds = [], [], 0.0
        for seed, start in enumerate(("singletons", "one-cluster", "k-means", "prior"), start=first):
            sampler = ew.Sampler(wine, **settings, initial=start, seed=seed)
            began = time.process_time()
            trace = sampler.sample(2_000, burn_in=1_000, progress=False)
            seconds += time.process_time() - began
            counts.append(trace.n_clusters)
            logs.append(trace.log_posterior)
        rhat = [f"{float(arviz.rhat(np.array(values, dtype=float))):.3f}" for values in (counts, logs)]
        effective = float(arviz.ess(np.array(counts, dtype=float)))
        row(f"seeds from {first}", *rhat, effective, f"{effective / seconds:.0f}")
    print()
    header("100,000 objects, d = 10, 10 clusters, III own", "seconds a Gibbs sweep", "MB above the data")
    data, labels = blobs(100_000, n_clusters=10)
    tracemalloc.start()
    sampler = ew.Sampler(data, **settings, moves=["gibbs"], initial=labels, seed=0)
    sampler.sample(1, progress=False)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    start = time.perf_counter()
    sampler.sample(1, burn_in=2, progress=False)
    row("", f"{(time.perf_counter() - start) / 3:.2g}", peak)


def in_turn(chains: list[ew.Sampler], iterations: int, bursts: int) -> tuple[float, float, float]:
    """Microseconds of an iteration of two chains, and their ratio, in bursts from the same states.

    Left alone, such chains have different numbers of clusters, on which the time of an iteration depends,
    though not in proportion. So both start each burst from the state of either chain in turn. Medians; time
    of this thread.
    """
    times: tuple[list[float], list[float]] = [], []
    for burst in range(bursts):
        states = [chain.state for chain in chains]
        for k in (0, 1) if burst % 4 < 2 else (1, 0):
            chains[k].restore(states[burst % 2])
            start = time.thread_time()
            chains[k].advance(1, thin=iterations)
            times[k].append(1e6 * (time.thread_time() - start) / iterations)
            chains[k].restore(states[k])
        for chain in chains:
            chain.advance(iterations)
    return np.median(times[0]), np.median(times[1]), np.median(np.divide(times[1], times[0]))


def centre() -> None:
    """What the draw of an unknown centre costs."""
    header("wine", "µs an iteration, known centre", "unknown centre", "ratio from the same states")
    wine = ew.datasets.wine()
    for schedule, iterations in (("default", 50), ("paper-2", 2_000)):
        for model in ("I", "II", "III"):
            settings = {"model": model, "moves": schedule, "seed": 0}
            chains = [ew.Sampler(wine, centre=kind, **settings) for kind in ("mean", "unknown")]
            for chain in chains:
                chain.sample(1, burn_in=40 * iterations, progress=False)
            known, unknown, ratio = in_turn(chains, iterations, 300)
            row(f"{schedule}, model {model}", f"{known:.2f}", f"{unknown:.2f}", f"{ratio:.3f}")


def categories() -> None:
    """What five categorical columns cost besides wine's 13 numbers."""
    header("wine", "µs an iteration, numbers", "and five columns of five categories", "ratio (at most 1.3)")
    wine, rng = ew.datasets.wine(), np.random.default_rng(0)
    shares = rng.dirichlet(np.full(5, 0.7), size=(5, 3))
    drawn = [[rng.choice(5, p=column[group]) for group in wine.labels] for column in shares]
    table = np.column_stack([wine.X, np.transpose(drawn)])
    kinds = {f"x{place + 1}": "number" if place < 13 else "category" for place in range(18)}
    for model in ("I", "II", "III"):
        for shapes in ("common", "own"):
            settings = {"model": model, "shapes": shapes, "seed": 0}
            chains = [
                ew.Sampler(wine.X, kinds="numeric", **settings),
                ew.Sampler(table, kinds=kinds, **settings),
            ]
            for chain in chains:
                chain.sample(1, burn_in=300, progress=False)
            alone, mixed, ratio = in_turn(chains, 4, 200)
            row(f"model {model}, {shapes} shapes", f"{alone:.1f}", f"{mixed:.1f}", f"{ratio:.2f}")


def peers() -> Iterator[tuple[str, Callable[[], int]]]:
    """Sweeps of libraries that can be installed beside this one, on the same data."""
    data = ew.datasets.wine().X
    standard = (data - data.mean(axis=0)) / data.std(axis=0)

    def scikit_learn() -> int:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import BayesianGaussianMixture

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            BayesianGaussianMixture(
                n_components=20, covariance_type="diag", max_iter=100, tol=0.0, random_state=0
            ).fit(standard)
        return 100

    yield "scikit-learn BayesianGaussianMixture (variational), 20 components", scikit_learn

    def pyrichlet() -> int:
        from pyrichlet.mixture_models import DirichletProcessMixture

        model = DirichletProcessMixture(alpha=1, rng=0, total_iter=20, burn_in=0, subsample_steps=1)
        model.fit_gibbs(standard)
        return 20

    yield "pyrichlet DirichletProcessMixture (Gibbs)", pyrichlet


def compare() -> None:
    """Sweeps a second of peers against ours."""
    ours, _ = scaled_rate(warmed(2_000, ew.datasets.wine(), model="II", moves=["gibbs"], seed=0))
    header("sweeps a second on wine", "rate", "ours over theirs")
    row("ewens_widgets, Gibbs, model II", ours, "1")
    for name, run in peers():
        try:
            rate, _ = scaled_rate(run, repeats=1)
        except ImportError as missing:
            row(name, f"not installed ({missing.name})", "")
            continue
        row(name, f"{rate:.3g}", f"{ours / rate:.3g}")


SECTIONS = {
    "moves": moves,
    "sizes": sizes,
    "events": events,
    "mixing": mixing,
    "own": own,
    "centre": centre,
    "categories": categories,
    "peers": compare,
}


def main() -> None:
    """Print the tables asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="which tables (all by default)")
    chosen = parser.parse_args().sections or list(SECTIONS)
    print(f"Logarithms a second of a compiled loop: {logarithms_a_second(20_000_000):.3g}\n")
    for name in chosen:
        SECTIONS[name]()
        print()


if __name__ == "__main__":
    main()
