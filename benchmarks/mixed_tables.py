"""Tables whose columns are not all continuous: the default answer with the columns examined, and without.

    .venv/bin/python benchmarks/mixed_tables.py

Every table has known classes, which no method sees: adjusted Rand index of the answer, its number of groups,
and the largest R-hat of the chains. Real tables are those of scikit-learn. The others are made from them by
what tables suffer: coarse digits, a sum that is rounded by itself, nearly constant codes, a counter.
"""

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
    main()
