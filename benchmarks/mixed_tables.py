"""Tables whose columns are not all continuous: the default answer with the columns examined, and without.

    .venv/bin/python benchmarks/mixed_tables.py
    .venv/bin/python benchmarks/mixed_tables.py gaps

Every table has known classes, which no method sees: adjusted Rand index of the answer, its number of groups,
and the largest R-hat of the chains. Real tables are those of scikit-learn. The others are made from them by
what tables suffer: coarse digits, a sum that is rounded by itself, nearly constant codes, a counter.

With `gaps` the tables are simulated: 300 rows of four Gaussian clusters in six columns, each with a
covariance of its own, of which 10, 20 and 30 % of the cells are missing at random. Beside the adjusted Rand
index of the answer are that of the same model after mean imputation, and the share of the missing cells that
lie in the central 95 % of their draws.
"""

import sys
import time
import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

import ewens_widgets as ew

Table = tuple[str, NDArray[np.float64], NDArray[np.intp]]


def tables() -> Iterator[Table]:
    rng = np.random.default_rng(0)
    for name, load in (("iris", datasets.load_iris), ("wine", datasets.load_wine)):
        bunch = load()
        X, labels = np.asarray(bunch.data), np.asarray(bunch.target)
        yield name, X, labels
        unrounded = X[:, :2] + rng.uniform(-0.05, 0.05, (len(X), 2))
        yield f"{name}, with a rounded sum", np.column_stack([X, unrounded.sum(axis=1).round(1)]), labels
        codes = (rng.random((len(X), 2)) < 0.06).astype(float)
        yield f"{name}, with two rare codes", np.column_stack([X, codes]), labels
        grades = np.clip(labels + rng.integers(0, 2, len(X)), 0, 3)
        yield f"{name}, with a grade", np.column_stack([X, grades]), labels
        shuffled = rng.permutation(len(X))
        counted = np.column_stack([X[shuffled], np.arange(1, len(X) + 1)])
        yield f"{name}, with a counter", counted, labels[shuffled]


def simulated(rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    labels = np.repeat(np.arange(4), 75)
    centres = 2.2 * rng.normal(size=(4, 6))
    roots = np.eye(6) + 0.35 * rng.normal(size=(4, 6, 6))
    return centres[labels] + np.einsum("ijk,ik->ij", roots[labels], rng.normal(size=(300, 6))), labels


def gaps(tables: int = 3) -> None:
    print(f"{'missing':>8}{'complete':>10}{'gaps':>9}{'mean':>9}{'covered':>9}{'R-hat':>8}", flush=True)
    settings = {"kinds": None, "n_chains": 2, "draws": 400, "burn_in": 300, "random_state": 0}
    warnings.simplefilter("ignore")
    for share in (0.1, 0.2, 0.3):
        rows = []
        for seed in range(tables):
            rng = np.random.default_rng(seed)
            X, labels = simulated(rng)
            missing = rng.random(X.shape) < share
            missing[missing.all(axis=1), 0] = False
            Y = np.where(missing, np.nan, X)
            filled = np.where(missing, np.nanmean(Y, axis=0), X)
            found = [ew.AffineClustering(**settings).fit(table) for table in (X, Y, filled)]
            scores = [ew.adjusted_rand(labels, each.labels_) for each in found]
            cells = found[1].trace_.imputed()
            low, high = np.quantile(np.stack(cells["draws"]), [0.025, 0.975], axis=1)
            true = X[cells["row"], [int(name[1:]) - 1 for name in cells["column"]]]
            covered = np.mean((low <= true) & (true <= high))
            rhat = found[1].chains_.diagnostics(similarity=False).worst_rhat
            rows.append([*scores, covered, rhat])
        *means, _ = np.mean(rows, axis=0)
        numbers = "".join(f"{mean:9.3f}" for mean in means)
        print(f"{share:8.0%} {numbers}{max(row[4] for row in rows):8.2f}", flush=True)


def main() -> None:
    print(f"{'table':28}{'':>4}{'as numbers':>24}{'examined':>24}")
    print(f"{'':28}{'K':>4}" + 2 * f"{'ARI':>8}{'groups':>7}{'R-hat':>9}")
    for name, X, labels in tables():
        line = f"{name:28}{len(np.unique(labels)):4d}"
        for kinds in (None, "auto"):
            started = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = ew.AffineClustering(kinds=kinds, random_state=0).fit(X)
            rhat = found.chains_.diagnostics(similarity=False).worst_rhat
            score = ew.adjusted_rand(labels, found.labels_)
            line += f"{score:8.2f}{found.n_clusters_:7d}{rhat:9.3f}"
            seconds = time.perf_counter() - started
        print(f"{line}   {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    gaps() if sys.argv[1:] == ["gaps"] else main()
