r"""Split-merge, the paper's Algorithm 2, with its acceptance ratio put right.

With probabilities :math:`(p_s, p_m, p_k)` a split, a merge or nothing is proposed.

*Split.* A cluster is chosen in proportion to its within-cluster distance :math:`\delta(b)`. Its farthest
pair u, v are the cores. Every other member i joins u with probability :math:`d(i,v) / (d(i,u) + d(i,v))`:
the *nearer* core is favoured. With probability :math:`\epsilon` (core jump) one of the cores, chosen
evenly, then moves to the other side, so that every split into two has positive probability. If that empties
a side, the partition stays as it is.

*Merge.* Two clusters are chosen in proportion to one over their distance :math:`\Delta(a,b)`.

.. math::

    q(\text{split}) = p_s \frac{\delta(b)}{\sum \delta} \, P(\text{sides}), \qquad
    q(\text{merge}) = p_m \frac{1/\Delta(a,b)}{\sum 1/\Delta}, \qquad
    \log r = \log\frac{\pi(B^*)}{\pi(B)} + \log\frac{q(B \mid B^*)}{q(B^* \mid B)} .

The paper prints the second fraction upside down. `acceptance="as-printed"` of the sampler does so too, to
show what happens. With many exact duplicates the floor under the distances makes some splits possible in
principle only: use another schedule for such data.

What can be chosen about split-merge: its distances, its probabilities, and the core jump.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.compiled import inlined, jit
from ewens_widgets.sampling.kernel.parameters import choose
from ewens_widgets.sampling.kernel.partition_changes import (
    gather_members,
    log_change_of_merge,
    log_change_of_split,
    make_merge,
    make_split,
)
from ewens_widgets.sampling.kernel.workspace import CLUSTERS, WANTED, Outcome, Problem, Workspace, report
from ewens_widgets.sampling.moves.distances import (
    BETWEEN,
    STALE,
    WITHIN,
    Distances,
    between_weight,
    drop_distances,
    install_row,
    rebuild,
    refresh_totals,
    row_statistics,
    union_farthest,
    within_statistic,
    within_weight,
)
from ewens_widgets.sampling.moves.split_merge_proposal import (
    SplitMergeOptions,
    choose_pair,
    draw_sides,
    log_merge_proposal,
    log_sides_probability,
    log_split_proposal,
    merged_within,
    split_total,
)

__all__ = ["SplitMerge", "split_merge"]

KEPT, REJECTED, MADE = -1, 0, 1


@inlined
def _relabel_side(workspace: Workspace, count: int, label: int) -> None:
    """Give the members on side 1 a label."""
    for k in range(count):
        if workspace.sides[k] == 1:
            workspace.labels[workspace.members[k]] = label


@jit
def _log_merge_back(
    distances: Distances, workspace: Workspace, options: SplitMergeOptions, slot: int, count: int, moved: int
) -> float:
    """Log probability that, after the split, choosing two clusters to merge gives the two sides.

    Leaves the distances of the sides to all clusters in `scratch[0]` (the side that stays) and `scratch[2]`
    (the side that goes).
    """
    between = options.between
    fresh = workspace.integers[CLUSTERS]
    staying, going = distances.scratch[0], distances.scratch[2]
    _relabel_side(workspace, count, fresh)
    row_statistics(distances, between, workspace.labels, fresh + 1, slot, staying)
    row_statistics(distances, between, workspace.labels, fresh + 1, fresh, going)
    _relabel_side(workspace, count, slot)
    stay_size = count - moved
    chosen = between_weight(distances, between, staying[fresh], stay_size, moved)
    total = chosen
    for a in range(fresh):
        if a == slot:
            continue
        size = workspace.sizes[a]
        total += between_weight(distances, between, staying[a], stay_size, size)
        total += between_weight(distances, between, going[a], moved, size)
        for b in range(a + 1, fresh):
            if b != slot:
                total += between_weight(distances, between, distances.cross[a, b], size, workspace.sizes[b])
    return math.log(options.merge) + math.log(chosen / total)


@inlined
def _log_ratio(log_change: float, log_forward: float, log_backward: float, as_printed: bool) -> float:
    """Log of π(B*) q(B | B*) over π(B) q(B* | B), or with the proposals as the paper prints them."""
    if as_printed:
        return log_change + log_forward - log_backward
    return log_change + log_backward - log_forward


@jit
def _report(
    workspace: Workspace,
    outcome: Outcome,
    count: int,
    slot: int,
    target: int,
    log_ratio: float,
    accepted: bool,
) -> None:
    """Tell a watcher what was proposed: the members on side 1 get the label `target`, the others `slot`."""
    report(outcome, workspace.labels, log_ratio, accepted)
    for k in range(count):
        outcome.labels[workspace.members[k]] = target if workspace.sides[k] == 1 else slot


@jit
def _split(
    problem: Problem,
    workspace: Workspace,
    distances: Distances,
    options: SplitMergeOptions,
    outcome: Outcome,
    sums: FloatArray,
    rng: np.random.Generator,
) -> int:
    """Propose a split and decide on it."""
    n_clusters = workspace.integers[CLUSTERS]
    if n_clusters == problem.coordinates.shape[0]:
        return KEPT
    weights = workspace.weights
    for b in range(n_clusters):
        weights[b] = within_weight(distances, options.within, distances.within[b], workspace.sizes[b])
    slot = choose(weights, n_clusters, rng.random())
    count = gather_members(workspace, slot, slot)
    cores = (distances.farthest[slot, 0], distances.farthest[slot, 1])
    moved = draw_sides(distances, workspace, count, cores, options.core_jump, rng)
    if moved == 0 or moved == count:
        return KEPT
    log_forward = log_split_proposal(distances, workspace, options, slot, count)
    moved_sum = sums[1]
    moved_sum[:] = 0.0
    for k in range(count):
        if workspace.sides[k] == 1:
            for r in range(moved_sum.shape[0]):
                moved_sum[r] += problem.coordinates[workspace.members[k], r]
    log_change = log_change_of_split(problem, workspace, slot, moved, moved_sum)
    log_uniform = math.log(1.0 - rng.random())
    wanted = outcome.flags[WANTED] != 0
    # The way back is at most as probable as merging at all, which often settles the matter.
    hopeless = not options.as_printed and log_change - log_forward + math.log(options.merge) <= log_uniform
    if hopeless and not wanted:
        return REJECTED
    log_backward = _log_merge_back(distances, workspace, options, slot, count, moved)
    log_ratio = _log_ratio(log_change, log_forward, log_backward, options.as_printed)
    accepted = log_uniform < log_ratio
    if wanted:
        _report(workspace, outcome, count, slot, n_clusters, log_ratio, accepted)
    if not accepted:
        return REJECTED
    fresh = make_split(problem, workspace, slot, moved_sum)
    install_row(distances, fresh + 1, slot, distances.scratch[0])
    install_row(distances, fresh + 1, fresh, distances.scratch[2])
    within_statistic(distances, options.within, workspace.labels, slot)
    within_statistic(distances, options.within, workspace.labels, fresh)
    refresh_totals(distances, workspace, options.between)
    return MADE


@jit
def _merge(
    problem: Problem,
    workspace: Workspace,
    distances: Distances,
    options: SplitMergeOptions,
    outcome: Outcome,
    rng: np.random.Generator,
) -> int:
    """Propose a merge and decide on it."""
    n_clusters = workspace.integers[CLUSTERS]
    if n_clusters == 1:
        return KEPT
    within, between = options.within, options.between
    slot, other = choose_pair(distances, workspace, between, rng)
    size, other_size = workspace.sizes[slot], workspace.sizes[other]
    log_forward = log_merge_proposal(distances, workspace, options, slot, other)
    log_change = log_change_of_merge(problem, workspace, slot, other)
    log_uniform = math.log(1.0 - rng.random())
    wanted = outcome.flags[WANTED] != 0
    hopeless = not options.as_printed and log_change - log_forward + math.log(options.split) <= log_uniform
    if hopeless and not wanted:
        return REJECTED
    count = gather_members(workspace, slot, other)
    cores = union_farthest(distances, workspace, count, slot, other)
    statistic = merged_within(distances, workspace, options, slot, other, count)
    weight = within_weight(distances, within, statistic, size + other_size)
    log_backward = (
        math.log(options.split)
        + math.log(weight / (weight + split_total(distances, workspace, within, slot, other)))
        + log_sides_probability(distances, workspace, count, cores, options.core_jump)
    )
    log_ratio = _log_ratio(log_change, log_forward, log_backward, options.as_printed)
    accepted = log_uniform < log_ratio
    if wanted:
        _report(workspace, outcome, count, slot, slot, log_ratio, accepted)
    if not accepted:
        return REJECTED
    make_merge(problem, workspace, slot, other)
    distances.within[slot] = statistic
    distances.farthest[slot, 0] = cores[0]
    distances.farthest[slot, 1] = cores[1]
    drop_distances(distances, other, n_clusters - 1)
    kept = other if slot == n_clusters - 1 else slot
    row_statistics(distances, between, workspace.labels, n_clusters - 1, kept, distances.scratch[0])
    install_row(distances, n_clusters - 1, kept, distances.scratch[0])
    refresh_totals(distances, workspace, between)
    return MADE


@jit
def split_merge(
    problem: Problem,
    workspace: Workspace,
    distances: Distances,
    options: SplitMergeOptions,
    outcome: Outcome,
    sums: FloatArray,
    rng: np.random.Generator,
) -> int:
    """Make one split-merge move; return 1 if accepted, 0 if rejected, −1 if nothing was proposed."""
    if distances.flags[STALE]:
        rebuild(distances, workspace, options.within, options.between)
    action = rng.random()
    if action < options.split:
        return _split(problem, workspace, distances, options, outcome, sums, rng)
    if action < options.split + options.merge:
        return _merge(problem, workspace, distances, options, outcome, rng)
    return KEPT


@dataclass(frozen=True)
class SplitMerge:
    """Split by distance to the farthest pair, merge near clusters.

    Parameters
    ----------
    within
        Distance within a cluster: ``"average"``, ``"maximum"`` or ``"minimum"``.
    between
        Distance between clusters: ``"average"``, ``"maximum"``, ``"minimum"`` or ``"hausdorff"``.
    probabilities
        Probabilities of proposing a split, a merge, and nothing.
    core_jump
        Probability that one of the two cores changes sides.
    """

    within: str = "average"
    between: str = "average"
    probabilities: tuple[float, float, float] = (0.475, 0.475, 0.05)
    core_jump: float = 0.01

    name: ClassVar[str] = "split-merge"

    def __post_init__(self) -> None:
        """Refuse unknown distances and probabilities that are none."""
        for option, known in (("within", WITHIN), ("between", BETWEEN)):
            given = getattr(self, option)
            if not isinstance(given, str) or given not in known:
                raise ValueError(f"{option} must be one of {', '.join(known)}; got {given!r}.")
        probabilities = _as_floats(self.probabilities)
        if len(probabilities) != 3 or min(probabilities) < 0.0 or abs(sum(probabilities) - 1.0) > 1e-9:
            raise ValueError(
                "the probabilities of split, merge and keep must be three numbers, none negative, that sum "
                f"to 1; got {self.probabilities!r}."
            )
        if (probabilities[0] == 0.0) != (probabilities[1] == 0.0):
            raise ValueError(
                "split and merge undo each other: give both a positive probability, or neither; "
                f"got {self.probabilities!r}."
            )
        object.__setattr__(self, "probabilities", probabilities)
        jump = _as_floats((self.core_jump,))
        if len(jump) != 1 or not 0.0 <= jump[0] < 1.0:
            raise ValueError(
                f"the probability of a core jump must be at least 0 and below 1; got {self.core_jump!r}."
            )
        object.__setattr__(self, "core_jump", jump[0])

    def options(self, as_printed: bool = False) -> SplitMergeOptions:
        """Options for the kernel."""
        split, merge, _ = self.probabilities
        return SplitMergeOptions(
            WITHIN[self.within], BETWEEN[self.between], split, merge, self.core_jump, as_printed
        )


def _as_floats(values: object) -> tuple[float, ...]:
    """Finite floats, or nothing where `values` are none."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return ()
    return tuple(numbers.tolist()) if numbers.ndim == 1 and np.all(np.isfinite(numbers)) else ()
