r"""How often each pair of objects shares a cluster.

With :math:`Z_t` the n × K 0/1 matrix of memberships of draw t,

.. math:: S = \frac1T \sum_t Z_t Z_t^T, \qquad D = 1 - S.

The memberships of many draws, side by side, make one matrix Z, so S is a matrix product that BLAS computes.
The columns of small clusters are nearly all zeros; they are multiplied as a sparse matrix. Counts of draws
are whole numbers below 2²⁴, which single precision adds without error: S is exactly symmetric, with ones on
its diagonal.

**While a chain runs** the similarity of the draws so far is kept up to date (`RunningSimilarity`). A pair
that stays together needs no work. Each object i carries the time :math:`a_i` since when it has been in its
present cluster, so two objects that are together now have been so since :math:`\max(a_i, a_j)`. Only when an
object leaves its cluster at time t is time credited to its pairs: for each member j of the cluster it leaves,

.. math:: C_{ij} \mathrel{+}= t - \max(a_i, a_j), \qquad \text{then} \quad a_i = t.

An event therefore costs O(n) to see what changed, and then (objects that moved) × (size of the cluster they
left). Labels are renumbered from draw to draw, so the clusters are first matched by overlap, which keeps the
movers few.

**Of many objects** some stand for all: `representative_rows` chooses them evenly from the clusters of a
partition.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import csr_array

from ewens_widgets.arguments import check_count
from ewens_widgets.memory import check_fits
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling.cold_start import at_once
from ewens_widgets.sampling.compiled import entry, jit

__all__ = [
    "MOST_REPRESENTATIVES",
    "RunningSimilarity",
    "check_pairs_fit",
    "choose_rows",
    "representative_rows",
    "similarity",
]

MOST_REPRESENTATIVES = 400

_FEW_LABELS = 2_000  # Labels that are counted in a moment without a compiler too: a frame of a picture.

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
        """Forget all draws, e.g. at the end of burn-in."""
        self.n_draws = 0
        self._counts = np.zeros((self._n_rows, self._n_rows), dtype=np.int32)
        self._since = np.zeros(self._n_rows, dtype=np.int32)
        self._names = np.zeros(self._n_rows, dtype=np.int64)
        self._labels = np.full(self._n_rows, -1, dtype=np.int64)

    def add(self, labels: ArrayLike) -> None:
        """Count one more draw, given by its labels (canonical, or any integers from 0 to n − 1)."""
        self.add_block(np.asarray(labels)[None, :])

    def add_block(self, labels: ArrayLike) -> None:
        """Count a block of draws, a draw a row."""
        block = np.asarray(labels)
        if block.ndim != 2 or block.shape[1] != self.n_objects:
            raise ValueError(
                f"each draw must have {self.n_objects} labels, one an object; got shape {block.shape}."
            )
        chosen = block if self.rows is None else block[:, self.rows]
        draws = np.array(chosen, dtype=np.int64, order="C")
        # As unsigned numbers, negative labels are large ones: one pass finds both faults.
        if draws.size and draws.view(np.uint64).max() >= self.n_objects:
            raise ValueError(f"labels must lie between 0 and {self.n_objects - 1}; use canonical labels.")
        count, arguments = self.trial(draws)
        if draws.size <= _FEW_LABELS:
            count = at_once(count, arguments)
        count(*arguments)
        self.n_draws += len(draws)
        if len(draws):
            self._labels = draws[-1]

    def trial(self, draws: NDArray[np.int64]) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """The call that would count draws, of which those like the draw before them need no work."""
        before = np.concatenate([self._labels[None], draws])[:-1]
        changed = np.flatnonzero((draws != before).any(axis=1))
        # Always copies: a read-only array would be another type to the compiler, and be compiled for anew.
        times = (self.n_draws + changed).astype(np.int64)
        scratch = _make_scratch(self._n_rows, self.n_objects)
        return _count_draws, (draws[changed], times, scratch, self._names, self._since, self._counts)

    def similarity(self, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Similarity of the draws counted so far; the identity before the first one."""
        if not self.n_draws:
            return np.eye(self._n_rows, dtype=dtype)
        result = np.empty((self._n_rows, self._n_rows), dtype=dtype)
        _shares(self.n_draws, self._names, self._since, self._counts, result)
        return result


def representative_rows(labels: ArrayLike, most: int = MOST_REPRESENTATIVES) -> NDArray[np.intp]:
    """Choose at most so many objects, from each cluster in proportion to its size.

    The same partition always gives the same objects. Every cluster is represented, unless there are more
    clusters than objects to choose: then the largest ones are.

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
    quotas = _quotas(sizes, most)
    members = np.split(np.argsort(canonical, kind="stable"), np.cumsum(sizes)[:-1])
    chosen = [
        own[(np.arange(quota) * own.size + own.size // 2) // quota]  # the middles of equal stretches
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


def _shares(
    n_draws: int,
    names: NDArray[np.intp],
    since: NDArray[np.int32],
    counts: NDArray[np.int32],
    result: NDArray[Any],
) -> None:
    """Write the similarity, with what pairs now together have earned since they met."""
    together = n_draws - np.maximum.outer(since, since)
    together *= names[:, None] == names[None, :]
    together += counts
    together += counts.T
    np.divide(together, n_draws, out=result, casting="unsafe")
    np.fill_diagonal(result, 1)


class _Scratch(NamedTuple):
    """Room for one draw: objects by their old name and by their new label, and what names are given by."""

    old_start: NDArray[np.int64]
    old_members: NDArray[np.int64]
    new_start: NDArray[np.int64]
    new_members: NDArray[np.int64]
    name_of_label: NDArray[np.int64]
    overlap: NDArray[np.int64]
    holder: NDArray[np.int64]
    claim: NDArray[np.int64]


def _make_scratch(n_objects: int, n_labels: int) -> _Scratch:
    lengths = (n_objects + 1, n_objects, n_labels + 1, n_objects, n_labels, n_objects, n_objects, n_objects)
    return _Scratch(*(np.zeros(length, dtype=np.int64) for length in lengths))


@entry
def _count_draws(
    draws: NDArray[np.int64],
    times: NDArray[np.int64],
    scratch: _Scratch,
    names: NDArray[np.int64],
    since: NDArray[np.int32],
    counts: NDArray[np.int32],
) -> None:
    """Count draws one after another, each other than the one before it; the state is changed in place.

    `names` calls the clusters of the last draw by numbers that stay the same from draw to draw.
    """
    old_start, old_members, name_of_label = scratch.old_start, scratch.old_members, scratch.name_of_label
    for row in range(draws.shape[0]):
        labels = draws[row]
        _group(labels, scratch.new_start, scratch.new_members)
        _group(names, old_start, old_members)
        _match(names, scratch)
        _credit_movers(int(times[row]), labels, name_of_label, names, old_start, old_members, since, counts)
        for item in range(names.size):
            names[item] = name_of_label[labels[item]]


@jit
def _group(labels: NDArray[np.int64], start: NDArray[np.int64], members: NDArray[np.int64]) -> None:
    """List the objects by label: those with label k are members[start[k]:start[k + 1]]."""
    start[:] = 0
    for item in range(labels.size):
        start[labels[item] + 1] += 1
    for label in range(start.size - 1):
        start[label + 1] += start[label]
    for item in range(labels.size - 1, -1, -1):
        # Counting down from the end of each group, then shifting back, needs no second array of positions.
        label = labels[item]
        start[label + 1] -= 1
        members[start[label + 1]] = item
    for label in range(start.size - 1):
        start[label] = start[label + 1]
    start[start.size - 1] = labels.size


@jit
def _match(names: NDArray[np.int64], scratch: _Scratch) -> None:
    """Give each new cluster the name of the old one it shares most with, or a free one if it must."""
    new_start, new_members, name_of_label = scratch.new_start, scratch.new_members, scratch.name_of_label
    overlap, holder, claim = scratch.overlap, scratch.holder, scratch.claim
    claim[:] = 0
    holder[:] = -1
    for label in range(name_of_label.size):
        name_of_label[label] = -1
        best, most = -1, 0
        for place in range(new_start[label], new_start[label + 1]):
            name = names[new_members[place]]
            overlap[name] += 1
            if overlap[name] > most:
                best, most = name, overlap[name]
        for place in range(new_start[label], new_start[label + 1]):
            overlap[names[new_members[place]]] = 0
        if best >= 0 and most > claim[best]:
            claim[best] = most
            holder[best] = label
    _hand_out(new_start, holder, name_of_label)


@jit
def _hand_out(
    new_start: NDArray[np.int64], holder: NDArray[np.int64], name_of_label: NDArray[np.int64]
) -> None:
    """Note who holds which name, and give free names to the clusters that have none."""
    for name in range(holder.size):
        if holder[name] >= 0:
            name_of_label[holder[name]] = name
    free = 0
    for label in range(name_of_label.size):
        if name_of_label[label] < 0 and new_start[label + 1] > new_start[label]:
            while holder[free] >= 0:
                free += 1
            holder[free] = label
            name_of_label[label] = free


@jit
def _credit_movers(
    time: int,
    labels: NDArray[np.int64],
    name_of_label: NDArray[np.int64],
    names: NDArray[np.int64],
    old_start: NDArray[np.int64],
    old_members: NDArray[np.int64],
    since: NDArray[np.int32],
    counts: NDArray[np.int32],
) -> None:
    """Credit the pairs of each object that leaves its cluster at `time`."""
    for item in range(labels.size):
        name = names[item]
        if name_of_label[labels[item]] == name:
            continue
        for place in range(old_start[name], old_start[name + 1]):
            other = old_members[place]
            earned = time - max(since[item], since[other])
            if other != item:
                counts[item, other] += earned
        since[item] = time


def _quotas(sizes: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Share `most` places out in proportion to the sizes, one to each of the largest first."""
    by_size = np.argsort(-sizes, kind="stable")
    quotas = np.zeros(sizes.size, dtype=np.intp)
    quotas[by_size[:most]] = 1
    spare = most - int(quotas.sum())
    wanted = np.maximum(spare * (sizes - quotas) / max(int((sizes - quotas).sum()), 1), 0.0)
    quotas += np.floor(wanted).astype(np.intp)
    # What rounding left over goes to those that lost most by it.
    left = most - int(quotas.sum())
    quotas[np.argsort(-(wanted - np.floor(wanted)), kind="stable")[:left]] += 1
    return quotas
