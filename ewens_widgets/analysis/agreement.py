r"""How well two partitions agree: with known labels, or with each other.

All measures come from the table of counts :math:`n_{kl}`, the number of objects in cluster k of one partition
and l of the other. Labels only name clusters: whole numbers or strings, in any order; both sides may have
different numbers of clusters. The counts are NumPy's: scikit-learn's functions check and convert labels for
0.45 ms, and their import would delay the first frame of an Explorer with known classes by a second.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import xlogy

from ewens_widgets.analysis.findings import html_table
from ewens_widgets.partition import check_labels

IntArray = NDArray[np.intp]


def error_rate(true: ArrayLike, found: ArrayLike) -> float:
    """Share of objects in the wrong cluster under the best one-to-one matching of found to true clusters.

    Objects of a cluster that is left without a partner, since one side has more clusters, are wrong.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> ew.error_rate([0, 0, 1, 1], [5, 5, 5, 3])
    0.25
    """
    counts = _counts(true, found)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    n_objects = int(counts.sum())
    return (n_objects - int(counts[rows, columns].sum())) / n_objects


def adjusted_rand(true: ArrayLike, found: ArrayLike) -> float:
    """Rand index adjusted for chance (Hubert & Arabie 1985): 1 if equal, 0 on average if random."""
    counts = _counts(true, found)
    tables = counts.ravel(), counts.sum(axis=1), counts.sum(axis=0), [counts.sum()]
    together, pairs_true, pairs_found, pairs = (
        sum(int(count) * (int(count) - 1) // 2 for count in table) for table in tables
    )
    # Both partitions all singletons, or both one cluster: they agree, and the ratio would be 0/0.
    if pairs_true == pairs_found == together:
        return 1.0
    expected = pairs_true * pairs_found / pairs
    return (together - expected) / ((pairs_true + pairs_found) / 2 - expected)


def variation_of_information(first: ArrayLike, second: ArrayLike) -> float:
    r"""Variation of information in nats (Meilă 2007), a metric on partitions.

    .. math::

        VI = \frac1n \Big( \sum_k n_k \log n_k + \sum_l n_l \log n_l - 2 \sum_{kl} n_{kl} \log n_{kl} \Big)

    It lies between 0 (equal) and log n (one cluster against all singletons).
    """
    counts = _counts(first, second).astype(np.float64)
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    # As a sum of terms that are each at least 0: equal partitions give exactly 0.
    ratios = counts * counts / (rows[:, None] * columns[None, :])
    return float(-xlogy(counts, np.where(counts > 0, ratios, 1.0)).sum() / counts.sum()) + 0.0


@dataclass(frozen=True, eq=False)
class ConfusionTable:
    """Counts of objects by true and found cluster, matched clusters side by side on the diagonal.

    Attributes
    ----------
    counts
        Numbers of objects: true clusters in rows, found clusters in columns, in matched order.
    true_labels, found_labels
        The labels of the rows and of the columns, as they were given.
    """

    counts: IntArray
    true_labels: NDArray[np.generic]
    found_labels: NDArray[np.generic]

    @property
    def n_wrong(self) -> int:
        """Number of objects off the diagonal."""
        return int(self.counts.sum() - np.trace(self.counts))

    @property
    def error_rate(self) -> float:
        """Share of objects off the diagonal."""
        return self.n_wrong / int(self.counts.sum())

    def _rows(self) -> list[list[str]]:
        rows = [["true \\ found", *map(str, self.found_labels)]]
        lines = zip(self.true_labels, self.counts, strict=True)
        return rows + [[str(name), *map(str, line)] for name, line in lines]

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in rows]
        return "\n".join([*lines, f"{self.n_wrong} of {self.counts.sum()} wrong ({self.error_rate:.3f})"])

    def _repr_html_(self) -> str:
        return html_table(self._rows(), f"{self.n_wrong} of {self.counts.sum()} wrong")


def confusion_table(true: ArrayLike, found: ArrayLike) -> ConfusionTable:
    """Count objects by true and found cluster, the found clusters ordered to match the true ones."""
    counts = _counts(true, found)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    order_true = np.concatenate([rows, np.setdiff1d(np.arange(counts.shape[0]), rows)])
    order_found = np.concatenate([columns, np.setdiff1d(np.arange(counts.shape[1]), columns)])
    return ConfusionTable(
        counts=counts[np.ix_(order_true, order_found)],
        true_labels=_names(true)[order_true],
        found_labels=_names(found)[order_found],
    )


def _counts(first: ArrayLike, second: ArrayLike) -> IntArray:
    """Table of counts n_kl, clusters in order of first appearance."""
    rows, columns = check_labels(first), check_labels(second)
    if rows.size != columns.size:
        raise ValueError(
            f"both partitions must have one label for each object; got {rows.size} and {columns.size} labels."
        )
    height, width = int(rows.max()) + 1, int(columns.max()) + 1
    return np.bincount(rows * width + columns, minlength=height * width).reshape(height, width)


def _names(labels: ArrayLike) -> NDArray[np.generic]:
    """Labels as given, in order of first appearance."""
    given = np.asarray(labels)
    return given[np.sort(np.unique(given, return_index=True)[1])]
