"""Tables as they are: the default answer with the columns examined and without, beside R's mclust.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/mixed_tables.py           the table of docs/tables.md
    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/mixed_tables.py fgl scat  of some of them
    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/mixed_tables.py gaps      missing cells of simulated tables

The public tables are those of scikit-learn and of R packages in Debian (r-cran-mclust, -rrcov, -sn,
-palmerpenguins, -caret and r-recommended). Each has known classes, which no method sees. For each: adjusted
Rand index, number of groups, and the largest R-hat of the chains. "As numbers" and mclust get all columns of
numbers, each gap filled with the mean of its column, and no text; "examined" gets the table as `read_table`
reads it, with gaps, and with columns of text as categories.

With `gaps` the tables are simulated: 300 rows of four Gaussian clusters in six columns, each with a
covariance of its own, of which 10, 20 and 30 % of the cells are missing at random. Beside the adjusted Rand
index of the answer are that of the same model after mean imputation, and the share of the missing cells that
lie in the central 95 % of their draws.
"""

import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets

import ewens_widgets as ew

# Package (sklearn: its loader) and columns of each; the first has the classes.
TABLES = {
    "iris": ("datasets", "d[c(5, 1:4)]"),
    "wine": ("sklearn", ""),
    "penguins": ("palmerpenguins", "d[c(1, 3:7)]"),
    "banknote": ("mclust", "d"),
    "thyroid": ("mclust", "d"),
    "diabetes": ("mclust", "d"),
    "crabs": ("MASS", "data.frame(paste(d$sp, d$sex), d[4:8])"),
    "fgl": ("MASS", "d[c(10, 1:9)]"),
    "Pima.tr2": ("MASS", "d[c(8, 1:7)]"),
    "biopsy": ("MASS", "d[c(11, 2:10)]"),
    "fish": ("rrcov", "d[c(7, 1:6)]"),
    "hemophilia": ("rrcov", "d[c(3, 1:2)]"),
    "salmon": ("rrcov", "d[c(4, 2:3)]"),
    "ais": ("sn", "d[c(1, 3:13)]"),
    "scat": ("caret", "d[-3]"),
    "stagec": ("rpart", "d[c(2, 1, 3:8)]"),
}
MCLUST = """
suppressPackageStartupMessages(library(mclust))
X <- as.matrix(read.csv("numbers.csv")); fit <- Mclust(X, verbose=FALSE)
write(if (is.null(fit)) rep(0, nrow(X)) else fit$classification, "found.csv", 1)
"""


def in_r(script: str, folder: str) -> None:
    command = ["Rscript", "--vanilla", "-e", script]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603 - R's own program


def table(name: str, folder: str) -> pd.DataFrame:
    """A table with its classes in the first column."""
    package, columns = TABLES[name]
    if package == "sklearn":
        frame = getattr(datasets, f"load_{name}")(as_frame=True).frame
        return frame[["target", *frame.columns.drop("target")]]
    loaded = f"data({name}, package='{package}'); d <- as.data.frame({name})"
    in_r(f"{loaded}; write.csv({columns}, 'table.csv', row.names=FALSE)", folder)
    return pd.read_csv(Path(folder) / "table.csv")


def fitted(data: ew.datasets.Dataset, kinds: str | None) -> str:
    """Adjusted Rand index, groups and R-hat of the default answer."""
    found = ew.AffineClustering(kinds=kinds, random_state=0, n_jobs=1).fit(data)
    rhat = found.chains_.diagnostics(similarity=False).worst_rhat
    score = ew.adjusted_rand(data.labels, found.labels_)
    return f"{score:8.2f}{found.n_clusters_:7d}{rhat:9.3f}"


def compare(name: str) -> None:
    """Print the line of a table."""
    with tempfile.TemporaryDirectory() as folder:
        frame = table(name, folder)
        classes, features = frame.columns[0], frame.iloc[:, 1:]
        labels = np.unique(frame[classes], return_inverse=True)[1]
        numbers = features.select_dtypes("number")
        numbers = numbers.fillna(numbers.mean())
        numbers.to_csv(Path(folder) / "numbers.csv", index=False)
        in_r(MCLUST, folder)
        theirs = np.loadtxt(Path(folder) / "found.csv", dtype=np.intp)
    started = time.perf_counter()
    before = fitted(ew.datasets.Dataset(numbers.to_numpy(dtype=float), labels=labels, name=name), None)
    texts = dict.fromkeys(features.columns.difference(numbers.columns), "category")
    after = fitted(ew.read_table(frame, classes=classes, kinds=texts), "auto")
    line = f"{name:14}{f'{len(frame)} × {features.shape[1]}':>10}{labels.max() + 1:5d}{before}{after}"
    line += f"{ew.adjusted_rand(labels, theirs):8.2f}{len(np.unique(theirs)):7d}"
    print(f"{line}   {time.perf_counter() - started:.0f} s", flush=True)


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
    if sys.argv[1:] == ["gaps"]:
        gaps()
        return
    print(f"{'table':14}{'n × d':>10}{'K':>5}{'as numbers':>24}{'examined':>24}{'mclust':>15}")
    print(" " * 29 + 2 * f"{'ARI':>8}{'groups':>7}{'R-hat':>9}" + f"{'ARI':>8}{'groups':>7}")
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or TABLES:
        compare(name)


if __name__ == "__main__":
    main()
