r"""How often each pair of objects shares a cluster.

With :math:`Z_t` the n × K 0/1 matrix of memberships of draw t,

.. math:: S = \frac1T \sum_t Z_t Z_t^T, \qquad D = 1 - S.

The memberships of many draws, side by side, make one matrix Z, so S is a matrix product that BLAS computes.
The columns of small clusters are nearly all zeros; they are multiplied as a sparse matrix. Counts of draws
are whole numbers below 2²⁴, which single precision adds without error: S is exactly symmetric, with ones on
its diagonal.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import csr_array

from ewens_widgets.memory import check_fits

__all__ = ["check_pairs_fit", "choose_rows", "similarity"]

_BLOCK_ENTRIES = 4_000_000  # Entries of Z at once: 16 MB, so that a block stays near the processor.
_SMALL_CLUSTER = (
    1 / 15
)  # Measured: a sparse product is faster for clusters with less than this share of the objects.
_EXACT_DRAWS = 2**24
_SUBSET = "Ask for a subset of the objects, e.g. similarity(rows=range(2000)), or for dtype=np.float32."


def similarity(
    labels: ArrayLike, rows: ArrayLike | None = None, dtype: DTypeLike = np.float64
) -> NDArray[Any]:
    """Share of draws in which each pair of objects is in one cluster.

    Parameters
    ----------
    labels
        Canonical labels, a draw a row (T × n).
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
    counts = np.zeros((n_objects, n_objects), dtype=np.float32 if len(draws) < _EXACT_DRAWS else np.float64)
    step = max(1, _BLOCK_ENTRIES // max(1, 8 * n_objects))
    for start in range(0, len(draws), step):
        block = draws[start : start + step]
        _add_block(counts, block if chosen is None else block[:, chosen])
    np.fill_diagonal(counts, len(draws))
    return (
        np.divide(counts, len(draws), dtype=kind)
        if counts.dtype == kind
        else counts.astype(kind) / len(draws)
    )


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


def _add_block(counts: NDArray[Any], block: NDArray[Any]) -> None:
    """Add, for each pair, the number of the block's draws in which it shares a cluster."""
    n_draws, n_objects = block.shape
    width = int(block.max()) + 1
    cells = block.astype(np.int64) + (width * np.arange(n_draws))[:, None]
    sizes = np.bincount(cells.ravel(), minlength=width * n_draws)
    # Singletons are with nobody; the diagonal is filled in at the end.
    large = sizes > max(1.0, _SMALL_CLUSTER * n_objects)
    small = (sizes > 1) & ~large
    if small.any():
        counts += _sparse_product(cells, small)
    step = max(1, _BLOCK_ENTRIES // n_objects)
    places = np.cumsum(large) - 1
    for start in range(0, int(large.sum()), step):
        within = large & (places >= start) & (places < start + step)
        columns = np.zeros((int(within.sum()), n_objects), dtype=np.float32)
        draw, member = np.nonzero(within[cells])
        columns[places[cells[draw, member]] - start, member] = 1.0
        counts += columns.T @ columns


def _sparse_product(cells: NDArray[np.int64], chosen: NDArray[np.bool_]) -> NDArray[np.float32]:
    draw, member = np.nonzero(chosen[cells])
    columns = (np.cumsum(chosen) - 1)[cells[draw, member]]
    shape = (cells.shape[1], int(chosen.sum()))
    memberships = csr_array((np.ones(member.size, dtype=np.float32), (member, columns)), shape=shape)
    product: NDArray[np.float32] = (memberships @ memberships.T).toarray()
    return product
