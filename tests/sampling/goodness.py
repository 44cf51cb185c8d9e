"""How well counts and means agree with their exact values, with a readable account where they do not."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.float64]

# Seeds are fixed, so a test passes always or never; of a few hundred tests at this level, taken together, a
# correct sampler fails one with probability below 1e-3.
LEVEL = 2e-6


class Fit(NamedTuple):
    """Outcome of a chi-square test."""

    statistic: float
    freedom: int
    p_value: float


def chi_square(counts: ArrayLike, expected: ArrayLike, least: float = 8.0) -> Fit:
    """Compare counts with expected ones, row by row if there are rows; rare cells of a row are joined."""
    seen, due = np.atleast_2d(np.asarray(counts, dtype=np.float64)), np.atleast_2d(np.asarray(expected))
    statistic, freedom = 0.0, 0
    for seen_row, due_row in zip(seen, due, strict=True):
        if np.any(seen_row[due_row == 0.0] > 0.0):
            return Fit(math.inf, 1, 0.0)  # Something impossible happened.
        common = due_row >= least
        rest_seen, rest_due = seen_row[~common].sum(), due_row[~common].sum()
        cells = [*zip(seen_row[common], due_row[common], strict=True)]
        if rest_due >= least or (rest_due > 0.0 and not cells):
            cells.append((rest_seen, rest_due))
        elif rest_due > 0.0:
            last_seen, last_due = cells.pop()
            cells.append((last_seen + rest_seen, last_due + rest_due))
        statistic += sum((a - b) ** 2 / b for a, b in cells)
        freedom += len(cells) - 1
    return Fit(float(statistic), freedom, float(stats.chi2.sf(statistic, freedom)) if freedom else 1.0)


def explain(names: Sequence[object], counts: ArrayLike, expected: ArrayLike, rows: int = 15) -> str:
    """Table of the cells that fit worst."""
    seen, due = np.asarray(counts, dtype=np.float64).ravel(), np.asarray(expected).ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        misfit = np.nan_to_num((seen - due) / np.sqrt(due), posinf=np.inf)
    order = np.argsort(-np.abs(misfit))[:rows]
    lines = [f"{'':>24} {'expected':>12} {'actual':>10} {'z':>8}"]
    lines += [f"{names[k]!s:>24} {due[k]:12.2f} {seen[k]:10.0f} {misfit[k]:8.2f}" for k in order]
    return "\n".join(["", *lines])


def partition_names(labels: Sequence[Sequence[int]]) -> list[str]:
    """Write partitions like 01|2|34."""
    names = []
    for row in labels:
        clusters = [[str(i) for i, label in enumerate(row) if label == b] for b in range(max(row) + 1)]
        names.append("|".join("".join(members) for members in clusters))
    return names


def batch_error(values: ArrayLike, batches: int = 60) -> float:
    """Standard error of a chain's mean; the means of long batches take its autocorrelation into account."""
    series = np.asarray(values, dtype=np.float64)
    length = len(series) // batches
    means = series[: length * batches].reshape(batches, length).mean(axis=1)
    return float(means.std(ddof=1) / math.sqrt(batches))


def batch_score(values: ArrayLike, truth: float, batches: int = 60) -> float:
    """Difference of a chain's mean from the truth, in standard errors."""
    difference = float(np.mean(np.asarray(values, dtype=np.float64)) - truth)
    error = batch_error(values, batches)
    if error > 0.0:
        return difference / error
    return 0.0 if abs(difference) < 1e-9 else math.inf


def limit(batches: int = 60, level: float = LEVEL) -> float:
    """Largest score that is put down to chance."""
    return float(stats.t.isf(level / 2.0, batches - 1))
