r"""Distances within and between clusters, for the paper's split-merge move.

They are cached, and updated only where a move changed something.

Within a cluster: the average, maximum or minimum over its pairs of objects. Between two: the average,
maximum or minimum over the pairs across, or the Hausdorff distance, the largest distance of an object of
either to the nearest of the other. Every value is floored at 10⁻¹² of the largest distance in the data, so
that duplicates keep positive proposal probabilities.

Averages are kept as sums. The distances between objects are rounded to a grid on which such sums are exact
(as the coordinates are), so the cache is a function of the labels alone, however it was arrived at; a
resumed chain rebuilds it bit for bit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.compiled import inlined, jit
from ewens_widgets.sampling.kernel.workspace import CLUSTERS, AnyWorkspace

AVERAGE, MAXIMUM, MINIMUM, HAUSDORFF = 0, 1, 2, 3
WITHIN = {"average": AVERAGE, "maximum": MAXIMUM, "minimum": MINIMUM}
BETWEEN = {"average": AVERAGE, "maximum": MAXIMUM, "minimum": MINIMUM, "hausdorff": HAUSDORFF}

RELATIVE_FLOOR = 1e-12
# Places in Distances.reals and Distances.flags.
FLOOR, PAIR_TOTAL = 0, 1
STALE = 0


class Distances(NamedTuple):
    """Distances between objects, and by slot: within statistic, farthest pair, statistics across slots.

    `row_totals[a]` is the sum of merge weights of slot a with the slots after it.
    """

    pairs: FloatArray
    within: FloatArray
    cross: FloatArray
    farthest: NDArray[np.int64]
    row_totals: FloatArray
    scratch: FloatArray
    reals: FloatArray
    flags: NDArray[np.int64]


def make_distances(given: FloatArray | None) -> Distances:
    """Cache for a chain with these distances between objects, if any; it is filled by the first move."""
    pairs = np.zeros((0, 0)) if given is None else given
    slots = pairs.shape[0] + 1
    floor = RELATIVE_FLOOR * float(pairs.max()) if pairs.size else 1.0
    return Distances(
        pairs=pairs,
        within=np.zeros(slots),
        cross=np.zeros((slots, slots)),
        farthest=np.zeros((slots, 2), dtype=np.int64),
        row_totals=np.zeros(slots),
        scratch=np.zeros((3, slots)),
        # Where all objects coincide any positive floor will do: every proposal is then even.
        reals=np.array([floor if floor > 0.0 else 1.0, 0.0]),
        flags=np.ones(1, dtype=np.int64),
    )


@inlined
def within_weight(distances: Distances, option: int, statistic: float, size: int) -> float:
    """Split weight of a cluster: its within-cluster distance, 0 for a singleton."""
    if size < 2:
        return 0.0
    value = statistic / (0.5 * size * (size - 1)) if option == AVERAGE else statistic
    return max(value, distances.reals[FLOOR])


@inlined
def between_weight(distances: Distances, option: int, statistic: float, size: int, other_size: int) -> float:
    """Merge weight of two clusters: one over their distance."""
    value = statistic / (size * other_size) if option == AVERAGE else statistic
    return 1.0 / max(value, distances.reals[FLOOR])


@inlined
def combine(option: int, first: float, second: float) -> float:
    """Statistic over the union of two sets of pairs."""
    if option == AVERAGE:
        return first + second
    if option == MAXIMUM:
        return max(first, second)
    return min(first, second)


@jit
def within_statistic(distances: Distances, option: int, labels: NDArray[np.int64], slot: int) -> None:
    """Find the within statistic and the farthest pair (ties: lowest indices) of a slot."""
    pairs = distances.pairs
    # Over no pairs at all, each statistic is the neutral element of `combine`.
    statistic = np.inf if option == MINIMUM else 0.0
    longest = -1.0
    for i in range(labels.shape[0]):
        if labels[i] != slot:
            continue
        for j in range(i + 1, labels.shape[0]):
            if labels[j] == slot:
                value = pairs[i, j]
                statistic = combine(option, statistic, value)
                if value > longest:
                    longest = value
                    distances.farthest[slot, 0] = i
                    distances.farthest[slot, 1] = j
    distances.within[slot] = statistic


@jit
def row_statistics(
    distances: Distances, option: int, labels: NDArray[np.int64], n_clusters: int, slot: int, out: FloatArray
) -> None:
    """Write the statistics of one slot against all others to `out`."""
    pairs = distances.pairs
    n_objects = labels.shape[0]
    for b in range(n_clusters):
        out[b] = np.inf if option == MINIMUM else 0.0
    if option == HAUSDORFF:
        _row_hausdorff(distances, labels, n_clusters, slot, out)
        return
    for i in range(n_objects):
        if labels[i] == slot:
            for j in range(n_objects):
                b = labels[j]
                if b != slot:
                    out[b] = combine(option, out[b], pairs[i, j])


@jit
def _row_hausdorff(
    distances: Distances, labels: NDArray[np.int64], n_clusters: int, slot: int, out: FloatArray
) -> None:
    """Hausdorff distances of one slot to all others: the larger of the two directed ones."""
    pairs = distances.pairs
    n_objects = labels.shape[0]
    nearest = distances.scratch[1]
    for i in range(n_objects):
        if labels[i] == slot:
            nearest[:n_clusters] = np.inf
            for j in range(n_objects):
                nearest[labels[j]] = min(nearest[labels[j]], pairs[i, j])
            for b in range(n_clusters):
                out[b] = max(out[b], nearest[b])
    for j in range(n_objects):
        if labels[j] != slot:
            closest = np.inf
            for i in range(n_objects):
                if labels[i] == slot:
                    closest = min(closest, pairs[i, j])
            out[labels[j]] = max(out[labels[j]], closest)


@inlined
def install_row(distances: Distances, n_clusters: int, slot: int, row: FloatArray) -> None:
    """Make `row` the statistics of one slot against all others."""
    for b in range(n_clusters):
        distances.cross[slot, b] = row[b]
        distances.cross[b, slot] = row[b]


@jit
def union_farthest(
    distances: Distances, workspace: AnyWorkspace, count: int, slot: int, other: int
) -> tuple[int, int]:
    """Farthest pair of the union of two slots, whose members have been gathered; ties: lowest indices."""
    pairs = distances.pairs
    members, sides = workspace.members, workspace.sides
    longest = -1.0
    low, high = 0, 0
    for source in (slot, other):
        if workspace.sizes[source] > 1:
            first, second = distances.farthest[source, 0], distances.farthest[source, 1]
            value = pairs[first, second]
            if value > longest or (value == longest and (first < low or (first == low and second < high))):
                longest, low, high = value, first, second
    for k in range(count):
        for j in range(k + 1, count):
            if sides[k] != sides[j]:
                first, second = members[k], members[j]
                value = pairs[first, second]
                if value > longest or (
                    value == longest and (first < low or (first == low and second < high))
                ):
                    longest, low, high = value, first, second
    return low, high


@jit
def rebuild(distances: Distances, workspace: AnyWorkspace, within: int, between: int) -> None:
    """Fill the cache for the current partition."""
    n_clusters = workspace.integers[CLUSTERS]
    for a in range(n_clusters):
        within_statistic(distances, within, workspace.labels, a)
        row_statistics(distances, between, workspace.labels, n_clusters, a, distances.scratch[0])
        install_row(distances, n_clusters, a, distances.scratch[0])
    refresh_totals(distances, workspace, between)
    distances.flags[STALE] = 0


@jit
def refresh_totals(distances: Distances, workspace: AnyWorkspace, between: int) -> None:
    """Sum the merge weights, row by row."""
    n_clusters = workspace.integers[CLUSTERS]
    total = 0.0
    for a in range(n_clusters):
        row = 0.0
        for b in range(a + 1, n_clusters):
            row += between_weight(
                distances, between, distances.cross[a, b], workspace.sizes[a], workspace.sizes[b]
            )
        distances.row_totals[a] = row
        total += row
    distances.reals[PAIR_TOTAL] = total


@jit
def drop_distances(distances: Distances, slot: int, last: int) -> None:
    """Follow the packing of slots: the last one moves into the freed one."""
    if slot == last:
        return
    distances.within[slot] = distances.within[last]
    distances.farthest[slot, 0] = distances.farthest[last, 0]
    distances.farthest[slot, 1] = distances.farthest[last, 1]
    for b in range(last):
        distances.cross[slot, b] = distances.cross[last, b]
        distances.cross[b, slot] = distances.cross[b, last]
