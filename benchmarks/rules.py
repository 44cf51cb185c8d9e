"""Which rule makes groups of components best? Draws are sampled once, and then rules are compared.

    python benchmarks/rules.py draw tune FOLDER      # chains for the seeds that rules may be tuned on
    python benchmarks/rules.py draw judge FOLDER     # … for other seeds, to judge them
    python benchmarks/rules.py compare tune FOLDER   # a table of rules, from these draws

The families are those of `simulations.py` and forms that no Gaussian describes, made here.
No real data are used for tuning. Fixed thresholds are compared with the one that `analysis.groups` chooses.
For each rule the table has the adjusted Rand index and the number of groups. The last lines have means, how
often the number is right, and how often a verdict of trust goes with a wrong number.
"""

import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import simulations
from numpy.typing import NDArray

import ewens_widgets as ew
from ewens_widgets.analysis import groups
from ewens_widgets.analysis.answer import typical_draw

Data = tuple[NDArray[np.float64], NDArray[np.intp]]
Rng = np.random.Generator

THRESHOLDS = (0.02, 0.05, 0.1, 0.2)
SEEDS = {"tune": (0, 1), "judge": (1005, 1006, 1007)}


def _clusters(parts: list[NDArray[np.float64]]) -> Data:
    return np.vstack(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def rings(rng: Rng, n: int = 300) -> Data:
    """Return two rings, one within the other."""
    angle = rng.uniform(0, 2 * np.pi, n)
    labels = (np.arange(n) >= n // 3).astype(np.intp)
    radius = np.where(labels, 3.0, 1.0) + 0.15 * rng.standard_normal(n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), labels


def moons(rng: Rng, n: int = 300) -> Data:
    """Return two half-moons that reach into each other."""
    angle, labels = rng.uniform(0, np.pi, n), np.arange(n) % 2
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X[labels == 1] = [1.0, 0.5] - X[labels == 1]
    return X + 0.08 * rng.standard_normal((n, 2)), labels


def spirals(rng: Rng, n: int = 400) -> Data:
    """Return two arms of a spiral."""
    turn, labels = np.sqrt(rng.uniform(0.1, 1.0, n)) * 2.6 * np.pi, np.arange(n) % 2
    angle = turn + np.pi * labels
    X = np.column_stack([turn * np.cos(angle), turn * np.sin(angle)])
    return X + 0.3 * rng.standard_normal((n, 2)), labels


def box(rng: Rng, n: int = 300) -> Data:
    """Return one uniform box."""
    return rng.uniform(size=(n, 2)), np.zeros(n, dtype=np.intp)


def boxes(rng: Rng, n: int = 100) -> Data:
    """Return three uniform boxes with gaps between them."""
    return _clusters([rng.uniform(size=(n, 2)) + shift for shift in ([0, 0], [1.4, 0.2], [0.3, 1.5])])


def diamonds(rng: Rng, n: int = 200) -> Data:
    """Return two diamonds that nearly touch at a corner."""
    turn = np.array([[1.0, 1.0], [-1.0, 1.0]])
    return _clusters([rng.uniform(-1, 1, (n, 2)) @ turn + [shift, 0] for shift in (0.0, 4.2)])


def chains(rng: Rng, n: int = 60) -> Data:
    """Return two bent rows of five ellipses each."""
    rows = []
    for side in (0.0, 1.0):
        at = np.array([[k, 0.25 * (k - 2) ** 2 + 3.0 * side] for k in range(5)], dtype=float)
        rows.append(np.vstack([centre + rng.standard_normal((n // 2, 2)) * [0.4, 0.2] for centre in at]))
    return _clusters(rows)


def plus(rng: Rng, n: int = 150) -> Data:
    """Return a cross of two bars, and a disc beside it."""
    bars = np.vstack([rng.uniform(-1, 1, (n, 2)) * scale for scale in ([2.0, 0.3], [0.3, 2.0])])
    disc = rng.standard_normal((n, 2)) * 0.5 + [4.5, 0.0]
    return _clusters([bars, disc])


def zeros(rng: Rng, n: int = 100) -> Data:
    """Return three Gaussian clusters, and a column of zeros and Gamma numbers without structure."""
    centres = np.array([[0.0, 0.0, 0.0], [5.0, 0.0, 2.0], [0.0, 5.0, -2.0]])
    X, labels = _clusters([rng.standard_normal((n, 3)) + centre for centre in centres])
    column = np.where(rng.random(3 * n) < 0.5, 0.0, rng.gamma(2.0, size=3 * n))
    return np.column_stack([X, column]), labels


def small(rng: Rng, n: int = 300) -> Data:
    """Return two clusters of 3 % beside two large ones."""
    sizes = (int(0.5 * n), int(0.44 * n), int(0.03 * n), int(0.03 * n))
    centres = np.array([[0, 0, 0], [6, 0, 0], [0, 6, 0], [3, 3, 7]], dtype=float)
    return _clusters([rng.standard_normal((size, 3)) + at for size, at in zip(sizes, centres, strict=True)])


def twelve(rng: Rng, n: int = 40) -> Data:
    """Return twelve clusters in four columns."""
    centres = rng.uniform(-10, 10, (200, 4))
    kept = [centres[0]]
    for centre in centres[1:]:
        if len(kept) < 12 and min(np.linalg.norm(centre - other) for other in kept) > 5.0:
            kept.append(centre)
    return _clusters([rng.standard_normal((n, 4)) * np.exp(0.3 * rng.standard_normal(4)) + at for at in kept])


def wide(rng: Rng, n: int = 67) -> Data:
    """Return three clusters in 30 columns, with one common shape."""
    root = rng.standard_normal((30, 30)) / 5.0
    centres = np.zeros((3, 30))
    centres[1, 0] = centres[2, 1] = 6.0
    return _clusters([(rng.standard_normal((n, 30)) + at) @ root for at in centres])


def few(rng: Rng, n: int = 15) -> Data:
    """Return two clusters of 15, five standard deviations apart."""
    return _clusters([rng.standard_normal((n, 2)) + np.array([at, 0.0]) for at in (0.0, 5.0)])


def _simulated(scenario: simulations.Scenario, seed: int) -> Data:
    drawn = scenario.draw(seed)
    return drawn.X, drawn.labels


def _made(make: Callable[[Rng], Data], seed: int) -> Data:
    rng = np.random.default_rng([*make.__name__.encode(), seed])
    X, labels = make(rng)
    order = rng.permutation(len(X))
    return X[order], labels[order]


FORMS = (rings, moons, spirals, box, boxes, diamonds, chains, plus, zeros, small, twelve, wide, few)
FAMILIES: dict[str, Callable[[int], Data]] = {
    **{scenario.key: partial(_simulated, scenario) for scenario in simulations.SCENARIOS},
    **{make.__name__: partial(_made, make) for make in FORMS},
}


def draw(seeds: str, folder: Path) -> None:
    """Sample and save the draws of each data set."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in SEEDS[seeds]:
        for name, make in FAMILIES.items():
            path = folder / f"{name}-{seed}.npz"
            if path.exists():
                continue
            X = make(seed)[0]
            start = perf_counter()
            found = ew.AffineClustering(random_state=seed, draws=300, loss="binder").fit(X)
            seconds = perf_counter() - start
            found.trace_.save(path)
            print(f"{name} {seed}: {X.shape} in {seconds:.0f} s", flush=True)


def compare(seeds: str, folder: Path) -> None:
    """Print what each rule finds in the saved draws."""
    scores: dict[str, list[tuple[float, bool]]] = {}
    trusted = []
    for seed in SEEDS[seeds]:
        for name, make in FAMILIES.items():
            path = folder / f"{name}-{seed}.npz"
            if not path.exists():
                continue
            known = make(seed)[1]
            inside, trace = known >= 0, ew.Trace.load(path)
            number = len(set(known[inside]))
            found = groups.groups_of(trace)
            partitions = {f"{t:.0%}": found.at(t) for t in THRESHOLDS}
            rows = {rule: draws[typical_draw(draws, found.rows)] for rule, draws in partitions.items()}
            answer = trace.answer()
            line = [f"{name} {seed}, {number} clusters:"]
            for rule, labels in {**rows, "chosen": answer.labels}.items():
                index = ew.adjusted_rand(known[inside], labels[inside])
                count = groups.count_large(np.bincount(labels))
                scores.setdefault(rule, []).append((index, count == number))
                line.append(f"{rule} {index:.2f} ({count})")
            verdict = trace.report().verdict
            trusted += [answer.n_clusters == number] if verdict == "trust" else []
            print(*line, verdict, f"probability {answer.probability:.2f}", flush=True)
    for rule, values in scores.items():
        index, right = np.mean(values, axis=0)
        print(f"{rule}: adjusted Rand index {index:.3f}, number right in {right:.0%} of {len(values)}")
    print(f"trusted: {len(trusted)}, of which {trusted.count(False)} have the wrong number")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    command, seeds, folder = sys.argv[1:]
    {"draw": draw, "compare": compare}[command](seeds, Path(folder))
