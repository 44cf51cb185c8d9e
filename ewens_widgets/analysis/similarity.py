r"""Similarity: the share of draws in which each pair of objects is in one cluster.

With :math:`Z_t` the n × K 0/1 matrix of memberships of draw t,

.. math:: S = \frac1T \sum_t Z_t Z_t^T, \qquad D = 1 - S.

The pairs of a block of draws are counted by comparing their labels, as bytes. Up to 400 objects this is as
fast as the matrix product :math:`Z Z^T`, and half as fast for thousands. It uses no threads: with busy cores
those of BLAS take 10 to 50 ms for a product of 0.3 ms.

`RunningSimilarity` counts a stream of draws. `representative_rows` chooses a subset of many objects evenly
from the clusters of a partition.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ewens_widgets.arguments import check_count, check_fits
from ewens_widgets.partition import check_labels

MOST_REPRESENTATIVES = 400

_BLOCK_BYTES = 30_000_000  # comparisons of labels that are held at once
_SUBSET = "Ask for a subset of the objects, e.g. similarity(rows=range(2000)), or for dtype=np.float32."


def similarity(
    labels: ArrayLike, rows: ArrayLike | None = None, dtype: DTypeLike = np.float64
) -> NDArray[Any]:
    """Share of draws in which each pair of objects is in one cluster.

    Parameters
    ----------
    labels
        Canonical labels, a row per draw (T × n).
    rows
        The objects to compare, as indices or as a mask; all of them by default.
    dtype
        ``float64`` or ``float32``.

    Returns
    -------
    symmetric matrix with ones on its diagonal
    """
    draws = np.asarray(labels)
    if draws.ndim != 2 or not draws.size:
        raise ValueError(
            f"similarity needs at least one draw, as an array of draws × objects; got shape {draws.shape}."
        )
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ValueError(f"dtype must be float64 or float32; got {kind}.")
    chosen = choose_rows(rows, draws.shape[1])
    n_objects = draws.shape[1] if chosen is None else chosen.size
    check_pairs_fit(n_objects, kind.itemsize)
    counts = np.zeros((n_objects, n_objects), dtype=np.int32)
    _add_draws(counts, draws, chosen)
    return (counts / len(draws)).astype(kind, copy=False)


class RunningSimilarity:
    """Pairwise similarity of a stream of partitions.

    Parameters
    ----------
    n_objects
        Number of objects.
    rows
        The objects to compare, as indices or as a mask; all of them by default.
    """

    def __init__(self, n_objects: int, rows: ArrayLike | None = None) -> None:
        self.n_objects = n_objects
        self.rows = choose_rows(rows, n_objects)
        self._n_rows = n_objects if self.rows is None else self.rows.size
        check_pairs_fit(self._n_rows, np.dtype(np.float64).itemsize)
        self.clear()

    def clear(self) -> None:
        """Remove all draws, e.g. at the end of burn-in."""
        self.n_draws = 0
        self._counts = np.zeros((self._n_rows, self._n_rows), dtype=np.int32)

    def add(self, labels: ArrayLike) -> None:
        """Count one more draw, given by its labels (canonical, or any integers from 0 to n − 1)."""
        self.add_block(np.asarray(labels)[None, :])

    def add_block(self, labels: ArrayLike) -> None:
        """Count a block of draws, a row each."""
        block = np.asarray(labels)
        if block.ndim != 2 or block.shape[1] != self.n_objects:
            raise ValueError(
                f"each draw must have {self.n_objects} labels, one per object; got shape {block.shape}."
            )
        if block.size and (block.min() < 0 or block.max() >= self.n_objects):
            raise ValueError(f"labels must lie between 0 and {self.n_objects - 1}; use canonical labels.")
        _add_draws(self._counts, block, self.rows)
        self.n_draws += len(block)

    def similarity(self, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Similarity of the draws counted so far; the identity before the first one."""
        if not self.n_draws:
            return np.eye(self._n_rows, dtype=dtype)
        return (self._counts / self.n_draws).astype(dtype, copy=False)


def representative_rows(labels: ArrayLike, most: int = MOST_REPRESENTATIVES) -> NDArray[np.intp]:
    """Choose at most `most` objects, from each cluster in proportion to its size.

    The same partition always gives the same objects. Every cluster is represented, or the largest
    clusters if there are more clusters than objects to choose.

    Parameters
    ----------
    labels
        A partition.
    most
        How many objects to choose.

    Returns
    -------
    numbers of the objects, in increasing order
    """
    canonical = check_labels(labels)
    if canonical.size <= check_count("the number of representatives", most, 1):
        return np.arange(canonical.size)
    sizes = np.bincount(canonical)
    # One object of each of the largest clusters; the rest in proportion to the remaining sizes.
    quotas = np.zeros(sizes.size, dtype=np.intp)
    quotas[np.argsort(-sizes, kind="stable")[:most]] = 1
    wanted = np.maximum((most - quotas.sum()) * (sizes - quotas) / max((sizes - quotas).sum(), 1), 0.0)
    quotas += np.floor(wanted).astype(np.intp)
    # Remaining objects go to the clusters with the largest rounding loss.
    lost = np.argsort(np.floor(wanted) - wanted, kind="stable")
    quotas[lost[: most - int(quotas.sum())]] += 1
    members = np.split(np.argsort(canonical, kind="stable"), np.cumsum(sizes)[:-1])
    chosen = [
        own[(np.arange(quota) * own.size + own.size // 2) // quota]  # the middles of equal intervals
        for own, quota in zip(members, quotas.tolist(), strict=True)
        if quota
    ]
    return np.sort(np.concatenate(chosen))


def choose_rows(rows: ArrayLike | None, n_objects: int) -> NDArray[np.intp] | None:
    """Indices of the chosen objects; None means all."""
    if rows is None:
        return None
    given = np.asarray(rows)
    if given.dtype == np.bool_:
        if given.shape != (n_objects,):
            raise ValueError(
                f"a mask of rows must have one entry for each of the {n_objects} objects; got {given.shape}."
            )
        given = np.flatnonzero(given)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise ValueError("rows must be a non-empty list of object numbers, or a mask.")
    if given.min() < -n_objects or given.max() >= n_objects:
        raise ValueError(f"rows must lie between 0 and {n_objects - 1}; got {given.min()} to {given.max()}.")
    return given.astype(np.intp)


def check_pairs_fit(n_objects: int, itemsize: int, way_out: str = _SUBSET) -> None:
    """Refuse a matrix of pairs, with the counts and the product of a block, that does not fit in memory."""
    check_fits(
        n_objects * n_objects * (itemsize + 8),
        f"the similarity of all pairs of {n_objects} objects",
        way_out,
    )


def _add_draws(counts: NDArray[np.int32], draws: NDArray[Any], rows: NDArray[np.intp] | None) -> None:
    """Add to each pair the number of draws in which it shares a cluster."""
    if not draws.size:
        return
    labels = draws if rows is None else draws[:, rows]
    labels = labels.astype(np.min_scalar_type(int(labels.max())))
    # A byte counts up to 255 draws.
    step = min(255, max(1, _BLOCK_BYTES // counts.size))
    for start in range(0, len(labels), step):
        block = labels[start : start + step]
        together = block[:, :, None] == block[:, None, :]
        counts += together.view(np.uint8).sum(axis=0, dtype=np.uint8)
