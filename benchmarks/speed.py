"""Time of a warm `AffineClustering().fit` beside R's mclust, on clusters with shapes of their own.

    python benchmarks/speed.py            # 200 × 3 to 20 000 × 13
    python benchmarks/speed.py large      # 10⁵ × 10, without mclust

Both are run in turn on the same machine. Two figures are printed for each: seconds by the clock, and seconds
of the processor (all threads), which other programs on the machine disturb less. mclust is left out where R
or its package is missing. The index is the adjusted Rand index with the known clusters.
"""

import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ewens_widgets as ew

SIZES = ((200, 3), (200, 13), (1_000, 13), (5_000, 3), (5_000, 13), (20_000, 3), (20_000, 13))
LARGE = ((100_000, 10),)
CLUSTERS = 5
SCRIPT = """
suppressPackageStartupMessages(library(mclust)); X <- as.matrix(read.csv("data.csv", header=FALSE))
took <- system.time(fit <- Mclust(X, verbose=FALSE))
write(c(took[["elapsed"]], took[["user.self"]] + took[["sys.self"]], fit$classification), "found.csv", 1)
"""


def made(n_rows: int, n_columns: int) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Draw clusters with shapes of their own; their centres are at least five standard deviations apart."""
    rng = np.random.default_rng([n_rows, n_columns])
    labels = rng.integers(CLUSTERS, size=n_rows)
    centres = np.vstack([np.zeros(n_columns), 6.0 * rng.standard_normal((CLUSTERS - 1, n_columns))])
    gaps = np.linalg.norm(centres[:, None] - centres, axis=2) + np.diag(np.full(CLUSTERS, np.inf))
    centres *= max(1.0, 5.0 / gaps.min())
    roots = np.eye(n_columns) + 0.3 * rng.standard_normal((CLUSTERS, n_columns, n_columns)) / np.sqrt(
        n_columns
    )
    return centres[labels] + np.einsum(
        "nij,nj->ni", roots[labels], rng.standard_normal((n_rows, n_columns))
    ), labels


def ours(X: NDArray[np.float64]) -> tuple[float, float, NDArray[np.intp], str]:
    """Seconds by the clock and of the processor, the labels, and how it went."""
    start, busy = time.perf_counter(), time.process_time()
    found = ew.AffineClustering(random_state=0).fit(X)
    passed = time.perf_counter() - start, time.process_time() - busy
    check = found.chains_.checks[-1]
    return (
        *passed,
        np.asarray(found.labels_),
        f"{check.draws} draws, R-hat {check.rhat:.2f}, ESS {check.ess:.0f}",
    )


def has_mclust() -> bool:
    """Whether R is here, with its package mclust."""
    program = shutil.which("Rscript")
    if program is None:
        return False
    command = [program, "--vanilla", "-e", "library(mclust)"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - R's own program


def theirs(X: NDArray[np.float64]) -> tuple[float, float, NDArray[np.intp]]:
    """The same for mclust with its default settings; reading the data is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        np.savetxt(Path(folder) / "data.csv", X, delimiter=",", fmt="%.12g")
        command = [str(shutil.which("Rscript")), "--vanilla", "-e", SCRIPT]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603 - R's own program
        passed, busy, *labels = np.loadtxt(Path(folder) / "found.csv")
    return passed, busy, np.asarray(labels, dtype=np.intp)


def main() -> None:
    """Print a line for each size."""
    warnings.simplefilter("ignore")
    is_large = sys.argv[1:] == ["large"]
    beside = not is_large and has_mclust()
    ew.AffineClustering(random_state=0, draws=20, burn_in=20).fit(made(200, 3)[0])
    for n_rows, n_columns in LARGE if is_large else SIZES:
        X, labels = made(n_rows, n_columns)
        passed, busy, found, how = ours(X)
        line = f"{n_rows} × {n_columns}: ours {passed:.1f} s, processor {busy:.1f} s, "
        line += f"index {ew.adjusted_rand(labels, found):.2f} ({how})"
        if beside:
            passed, busy, found = theirs(X)
            index = ew.adjusted_rand(labels, found)
            line += f"; mclust {passed:.1f} s, processor {busy:.1f} s, index {index:.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
