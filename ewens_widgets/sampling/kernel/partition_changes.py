"""The changes of a partition that moves make: split a cluster, merge two, relocate an object.

Each has three steps that callers take apart: set the exchange up, look at the change of the log posterior,
carry it out. `single_split` looks the other way: it tells which split or merge leads from one partition to
another, if one does.
"""

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.compiled import inlined, jit
from ewens_widgets.sampling.kernel.scatter import (
    apply_exchange,
    exchange_diagonal,
    log_partition_terms,
    log_scale,
    log_scale_after,
    settle,
    split_coefficients,
)
from ewens_widgets.sampling.kernel.workspace import (
    CHANGED,
    CLUSTERS,
    LOG_CONCENTRATION,
    THETA,
    Problem,
    Workspace,
)

__all__ = [
    "attach",
    "count_moved",
    "detach",
    "gather_members",
    "log_change_of_merge",
    "log_change_of_split",
    "make_merge",
    "make_split",
    "relocate",
    "single_split",
]


@inlined
def _store_entry(workspace: Workspace, slot: int, feature: int, value: float) -> None:
    """Set an entry of a cluster's sum."""
    workspace.sums[slot, feature] = value
    workspace.columns[feature, slot] = value


@inlined
def _log_scale_change(problem: Problem, workspace: Workspace) -> float:
    before = log_scale(problem, workspace)
    after = log_scale_after(problem, workspace)
    return -0.5 * problem.coordinates.shape[0] * (after - before)


@inlined
def _prior_change_of_split(problem: Problem, workspace: Workspace, size: int, moved: int) -> float:
    """Change of all size-dependent terms when `moved` of `size` objects leave to form a cluster."""
    return (
        workspace.reals[LOG_CONCENTRATION]
        + log_partition_terms(problem, workspace, size - moved)
        + log_partition_terms(problem, workspace, moved)
        - log_partition_terms(problem, workspace, size)
    )


@inlined
def _set_exchange(problem: Problem, workspace: Workspace, size: int, moved: int) -> None:
    """Write the coefficients of the split of `moved` from `size` objects."""
    theta = problem.theta[workspace.integers[THETA]]
    split_coefficients(theta, float(problem.exponent), float(size), float(moved), workspace.coefficients)


@inlined
def set_split(problem: Problem, workspace: Workspace, slot: int, moved: int, moved_sum: FloatArray) -> None:
    """Set up the exchange for `moved` objects with the sum `moved_sum` leaving `slot`."""
    size = workspace.sizes[slot]
    _set_exchange(problem, workspace, size, moved)
    for r in range(moved_sum.shape[0]):
        whole = workspace.sums[slot, r]
        workspace.vectors[0, r] = whole / size
        workspace.vectors[1, r] = moved_sum[r] / moved - (whole - moved_sum[r]) / (size - moved)


@inlined
def set_merge(problem: Problem, workspace: Workspace, slot: int, other: int) -> None:
    """Set up the exchange for merging two clusters."""
    size, other_size = workspace.sizes[slot], workspace.sizes[other]
    total = size + other_size
    _set_exchange(problem, workspace, total, other_size)
    for k in range(3):
        workspace.coefficients[k] = -workspace.coefficients[k]
    for r in range(workspace.sums.shape[1]):
        own, joining = workspace.sums[slot, r], workspace.sums[other, r]
        workspace.vectors[0, r] = (own + joining) / total
        workspace.vectors[1, r] = joining / other_size - own / size


@inlined
def log_change_of_split(
    problem: Problem, workspace: Workspace, slot: int, moved: int, moved_sum: FloatArray
) -> float:
    """Set up the exchange for `moved` objects leaving `slot`; return log π(after) − log π(before)."""
    set_split(problem, workspace, slot, moved, moved_sum)
    change = _prior_change_of_split(problem, workspace, workspace.sizes[slot], moved)
    return _log_scale_change(problem, workspace) + change


@inlined
def log_change_of_merge(problem: Problem, workspace: Workspace, slot: int, other: int) -> float:
    """Set up the exchange for merging two clusters; return log π(after) − log π(before)."""
    set_merge(problem, workspace, slot, other)
    total = workspace.sizes[slot] + workspace.sizes[other]
    change = _prior_change_of_split(problem, workspace, total, workspace.sizes[other])
    return _log_scale_change(problem, workspace) - change


@jit
def make_split(problem: Problem, workspace: Workspace, slot: int, moved_sum: FloatArray) -> int:
    """Carry out the split that was set up and return the number of the new slot.

    Objects with side 1 leave `slot` for the new one. The members of the cluster and their sides stand at the
    beginning of `members` and `sides`.
    """
    fresh = workspace.integers[CLUSTERS]
    for k in range(workspace.sizes[slot]):
        if workspace.sides[k] == 1:
            workspace.labels[workspace.members[k]] = fresh
    moved = count_moved(workspace, workspace.sizes[slot])
    _finish_split(problem, workspace, slot, moved, moved_sum)
    return fresh


@inlined
def _exchange_scatter(problem: Problem, workspace: Workspace) -> bool:
    """Change the scatter by the exchange that was set up; return whether it was too ill-conditioned."""
    workspace.integers[CHANGED] = 1
    if problem.model == 2:  # A call costs as much as this exchange.
        exchange_diagonal(workspace)
        return False
    return apply_exchange(problem, workspace)


@inlined
def _finish_split(
    problem: Problem, workspace: Workspace, slot: int, moved: int, moved_sum: FloatArray
) -> None:
    """Change scatter, sizes and sums for the split that was set up, once the labels have been changed."""
    ill_conditioned = _exchange_scatter(problem, workspace)
    fresh = workspace.integers[CLUSTERS]
    workspace.sizes[slot] -= moved
    workspace.sizes[fresh] = moved
    for r in range(moved_sum.shape[0]):
        _store_entry(workspace, fresh, r, moved_sum[r])
        _store_entry(workspace, slot, r, workspace.sums[slot, r] - moved_sum[r])
    workspace.integers[CLUSTERS] = fresh + 1
    if problem.model != 2:
        settle(problem, workspace, slot, fresh, ill_conditioned)


@jit
def make_merge(problem: Problem, workspace: Workspace, slot: int, other: int) -> None:
    """Carry out the merge that was set up: `other` joins `slot`, and its own slot is dropped."""
    for i in range(workspace.labels.shape[0]):
        if workspace.labels[i] == other:
            workspace.labels[i] = slot
    _finish_merge(problem, workspace, slot, other)


@inlined
def _finish_merge(problem: Problem, workspace: Workspace, slot: int, other: int) -> None:
    """Change scatter, sizes and sums for the merge that was set up, once the labels have been changed."""
    ill_conditioned = _exchange_scatter(problem, workspace)
    workspace.sizes[slot] += workspace.sizes[other]
    for r in range(workspace.sums.shape[1]):
        _store_entry(workspace, slot, r, workspace.sums[slot, r] + workspace.sums[other, r])
    last = workspace.integers[CLUSTERS] - 1
    _drop_slot(workspace, other)
    kept = other if slot == last else slot
    if problem.model != 2:
        settle(problem, workspace, kept, kept, ill_conditioned)


@jit
def _drop_slot(workspace: Workspace, slot: int) -> None:
    """Free an emptied slot by moving the last one into it."""
    last = workspace.integers[CLUSTERS] - 1
    if slot != last:
        for i in range(workspace.labels.shape[0]):
            if workspace.labels[i] == last:
                workspace.labels[i] = slot
        workspace.sizes[slot] = workspace.sizes[last]
        workspace.gram[slot] = workspace.gram[last]
        for r in range(workspace.sums.shape[1]):
            _store_entry(workspace, slot, r, workspace.sums[last, r])
    workspace.sizes[last] = 0
    workspace.integers[CLUSTERS] = last


@inlined
def gather_members(workspace: Workspace, slot: int, other: int) -> int:
    """List the members of one or two slots in order, side 1 marking the second; return their number."""
    count = 0
    for i in range(workspace.labels.shape[0]):
        label = workspace.labels[i]
        if label == slot or label == other:
            workspace.members[count] = i
            workspace.sides[count] = 1 if label != slot else 0
            count += 1
    return count


@inlined
def count_moved(workspace: Workspace, count: int) -> int:
    """How many of the members have side 1, not 0."""
    moved = 0
    for k in range(count):
        moved += workspace.sides[k]
    return moved


@jit
def detach(problem: Problem, workspace: Workspace, item: int) -> int:
    """Make an object that has company a cluster of its own; return its new slot."""
    slot = workspace.labels[item]
    fresh = workspace.integers[CLUSTERS]
    set_split(problem, workspace, slot, 1, problem.coordinates[item])
    workspace.labels[item] = fresh
    _finish_split(problem, workspace, slot, 1, problem.coordinates[item])
    return fresh


@jit
def attach(problem: Problem, workspace: Workspace, item: int, target: int) -> None:
    """Move an object that is alone to another slot; its own is dropped."""
    slot = workspace.labels[item]
    set_merge(problem, workspace, target, slot)
    workspace.labels[item] = target
    _finish_merge(problem, workspace, target, slot)


@jit
def relocate(problem: Problem, workspace: Workspace, item: int, target: int) -> None:
    """Move an object to another slot; the one after the last stands for a new cluster."""
    fresh = target == workspace.integers[CLUSTERS]
    if workspace.sizes[workspace.labels[item]] > 1:
        detach(problem, workspace, item)
    if not fresh:
        attach(problem, workspace, item, target)


def single_split(start: NDArray[np.intp], end: NDArray[np.intp]) -> tuple[int, int, NDArray[np.bool_]] | None:
    """Describe the change between two partitions (canonical labels) as a split or a merge.

    Returns
    -------
    slot, other
        Clusters of `start`: the one that is split (twice), or the two that are merged.
    moved
        Objects that leave `slot` (split), or that join it from `other` (merge).

    None is returned where the change is neither.
    """
    n_start, n_end = int(start.max()) + 1, int(end.max()) + 1
    if abs(n_start - n_end) != 1:
        return None
    coarse, fine = (start, end) if n_start < n_end else (end, start)
    # A refinement has one pair of labels for each fine cluster; exactly one coarse cluster then holds two.
    joined = np.unique(np.stack([coarse, fine]), axis=1)
    if joined.shape[1] != max(n_start, n_end):
        return None
    whole = int(np.flatnonzero(np.bincount(joined[0]) == 2)[0])
    first, second = (int(part) for part in joined[1][joined[0] == whole])
    moved = fine == second
    return (whole, whole, moved) if n_start < n_end else (first, second, moved)
