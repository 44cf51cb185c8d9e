r"""The kernel of split-merge: what it proposes, how probable that is, and the decision.

A split of cluster b has probability :math:`p_s \, \delta(b) / \sum \delta \cdot P(\text{sides})`, and a merge
of a and b :math:`p_m \, \Delta(a,b)^{-1} / \sum \Delta^{-1}`, with distances δ within and Δ between clusters.
P(sides) is :math:`(1-\epsilon) \prod_i P_i` with the cores apart, and the sum over the two ways (either core
jumped) with both on one side; :math:`P_i` favours the nearer core. `split_merge` has the whole move.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.paper.moves import distances as cache
from ewens_widgets.paper.moves.distances import Distances
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling.compiled import entry, inlined, jit
from ewens_widgets.sampling.kernel import family
from ewens_widgets.sampling.kernel import workspace as at
from ewens_widgets.sampling.kernel.partition_changes import choose, gather_members, single_split
from ewens_widgets.sampling.kernel.workspace import AnyProblem, AnyWorkspace, Outcome, note, report
from ewens_widgets.sampling.moves.move import BACKWARD, CORES, FORWARD, MEMBER, OWN, pair_distances

if TYPE_CHECKING:
    from ewens_widgets.paper.moves.split_merge import SplitMerge

# Notes: which of split, merge and nothing was tried; a cluster, or two, with the weight of choosing it; which
# was chosen; the core that jumped, or −1.
ACTION, OPTION, CHOSEN, JUMPED = OWN, OWN + 1, OWN + 2, OWN + 3
KEPT, REJECTED, MADE = -1, 0, 1  # what a move returns
# Factors of the proposal probabilities, by their places in FACTORS.
TRY_SPLIT, THIS_CLUSTER, SIDES, NO_JUMP, EITHER_WAY, JUMP, TRY_MERGE, THESE_CLUSTERS = range(8)
FACTORS = (
    "a split is tried",
    "of this cluster",
    "each member on its side",
    "no core jumps",
    "each member on its side, either way round",
    "the right core jumps",
    "a merge is tried",
    "of these two clusters",
)


class SplitMergeOptions(NamedTuple):
    """Options in the form that the kernel takes; the usual ones by default."""

    within: int = cache.AVERAGE
    between: int = cache.AVERAGE
    split: float = 0.475
    merge: float = 0.475
    core_jump: float = 0.01
    as_printed: bool = False


@inlined
def _to_core(distances: Distances, item: int, core: int) -> float:
    """Distance of an object to a core."""
    return max(distances.pairs[item, core], distances.reals[cache.FLOOR])


@inlined
def _log_assignment(
    distances: Distances, workspace: AnyWorkspace, count: int, cores: tuple[int, int], low_side: int
) -> float:
    """Log probability of the sides of all members but the cores, if `low_side` is the first core's."""
    total, product = 0.0, 1.0
    for k in range(count):
        i = workspace.members[k]
        if i == cores[0] or i == cores[1]:
            continue
        to_low, to_high = _to_core(distances, i, cores[0]), _to_core(distances, i, cores[1])
        product *= (to_high if workspace.sides[k] == low_side else to_low) / (to_low + to_high)
        if product < 1e-150:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@jit
def _log_sides_probability(
    distances: Distances,
    workspace: AnyWorkspace,
    count: int,
    cores: tuple[int, int],
    core_jump: float,
    outcome: Outcome,
    way: int,
) -> float:
    """Log probability that a split of the gathered members gives the sides they are on."""
    low_side = high_side = 0
    for k in range(count):
        if workspace.members[k] == cores[0]:
            low_side = workspace.sides[k]
        elif workspace.members[k] == cores[1]:
            high_side = workspace.sides[k]
    is_noted = outcome.flags[at.WANTED] == at.ACCOUNT
    if low_side != high_side:
        log_stay = math.log(1.0 - core_jump)
        log_sides = _log_assignment(distances, workspace, count, cores, low_side)
        if is_noted:
            note(outcome, way, SIDES, 0, log_sides)
            note(outcome, way, NO_JUMP, 0, log_stay)
        return log_stay + log_sides
    if core_jump == 0.0 and not is_noted:
        return -np.inf
    # Both on one side: either the first core left the other side, or the second did.
    first = _log_assignment(distances, workspace, count, cores, 1 - low_side)
    second = _log_assignment(distances, workspace, count, cores, low_side)
    highest = max(first, second)
    log_ways = math.log(math.exp(first - highest) + math.exp(second - highest))
    log_jump = math.log(0.5 * core_jump) if core_jump > 0.0 else -np.inf
    if is_noted:
        note(outcome, way, EITHER_WAY, 0, highest + log_ways)
        note(outcome, way, JUMP, 0, log_jump)
    return log_jump + highest + log_ways


@inlined
def draw_sides(
    distances: Distances,
    workspace: AnyWorkspace,
    count: int,
    cores: tuple[int, int],
    core_jump: float,
    outcome: Outcome,
    rng: np.random.Generator,
) -> int:
    """Draw the sides of the gathered members and return how many are on side 1."""
    low, high = cores
    moved = 0
    low_place = high_place = 0
    for k in range(count):
        i = workspace.members[k]
        if i == low:
            low_place, side = k, 0
        elif i == high:
            high_place, side = k, 1
        else:
            to_low, to_high = _to_core(distances, i, low), _to_core(distances, i, high)
            side = 0 if rng.random() * (to_low + to_high) < to_high else 1
        workspace.sides[k] = side
        moved += side
    jumped = -1
    if rng.random() < core_jump:
        if rng.random() < 0.5:
            workspace.sides[low_place] = 1
            moved += 1
            jumped = low
        else:
            workspace.sides[high_place] = 0
            moved -= 1
            jumped = high
    if outcome.flags[at.WANTED] == at.ACCOUNT:
        note(outcome, JUMPED, jumped, 0, core_jump)
        note_sides(distances, workspace, count, cores, outcome)
    return moved


@jit
def note_sides(
    distances: Distances, workspace: AnyWorkspace, count: int, cores: tuple[int, int], outcome: Outcome
) -> None:
    """Note the cores, and for each gathered member its side and the probability of the second core's."""
    low, high = cores
    note(outcome, CORES, low, high, 0.0)
    for k in range(count):
        i = workspace.members[k]
        to_low, to_high = _to_core(distances, i, low), _to_core(distances, i, high)
        share = 0.0 if i == low else 1.0 if i == high else to_low / (to_low + to_high)
        note(outcome, MEMBER, i, workspace.sides[k], share)


@inlined
def log_split_proposal(
    workspace: AnyWorkspace,
    distances: Distances,
    options: SplitMergeOptions,
    weight: float,
    slots: tuple[int, int],
    cores: tuple[int, int],
    count: int,
    outcome: Outcome,
    way: int,
) -> float:
    """Log probability of proposing to split a cluster into the sides that its gathered members are on.

    `weight` is the split weight of the cluster; its members are in two slots now, or in one, named twice.
    """
    others = 0.0
    for b in range(workspace.integers[at.CLUSTERS]):
        if b != slots[0] and b != slots[1]:
            others += cache.within_weight(distances, options.within, distances.within[b], workspace.sizes[b])
    log_try, log_share = math.log(options.split), math.log(weight / (weight + others))
    if outcome.flags[at.WANTED] == at.ACCOUNT:
        note(outcome, way, TRY_SPLIT, 0, log_try)
        note(outcome, way, THIS_CLUSTER, 0, log_share)
    # A call of its own: compiled into its callers it would take seconds more.
    log_sides = _log_sides_probability(distances, workspace, count, cores, options.core_jump, outcome, way)
    return log_try + log_share + log_sides


@inlined
def log_merge_proposal(
    options: SplitMergeOptions, weight: float, total: float, outcome: Outcome, way: int
) -> float:
    """Log probability of proposing to merge two clusters, from their merge weight and the sum of all."""
    log_try, log_share = math.log(options.merge), math.log(weight / total)
    if outcome.flags[at.WANTED] == at.ACCOUNT:
        note(outcome, way, TRY_MERGE, 0, log_try)
        note(outcome, way, THESE_CLUSTERS, 0, log_share)
    return log_try + log_share


@jit
def merged_within(
    distances: Distances,
    workspace: AnyWorkspace,
    options: SplitMergeOptions,
    slot: int,
    other: int,
    count: int,
) -> float:
    """Within statistic of the union of two slots, whose members have been gathered."""
    within = options.within
    if within == options.between:
        across = distances.cross[slot, other]
    else:
        across = np.inf if within == cache.MINIMUM else 0.0
        for k in range(count):
            for j in range(k + 1, count):
                if workspace.sides[k] != workspace.sides[j]:
                    across = cache.combine(
                        within, across, distances.pairs[workspace.members[k], workspace.members[j]]
                    )
    return cache.combine(
        within, cache.combine(within, distances.within[slot], distances.within[other]), across
    )


@inlined
def choose_cluster(
    distances: Distances, workspace: AnyWorkspace, within: int, outcome: Outcome, rng: np.random.Generator
) -> int:
    """Choose a slot in proportion to its split weight; the weights are left in `workspace.weights`."""
    n_clusters, weights = workspace.integers[at.CLUSTERS], workspace.weights
    for b in range(n_clusters):
        weights[b] = cache.within_weight(distances, within, distances.within[b], workspace.sizes[b])
    uniform = rng.random()
    slot = choose(weights, n_clusters, uniform)
    if outcome.flags[at.WANTED] == at.ACCOUNT:
        for b in range(n_clusters):
            note(outcome, OPTION, b, b, weights[b])
        note(outcome, CHOSEN, slot, slot, uniform)
    return slot


@inlined
def choose_pair(
    distances: Distances, workspace: AnyWorkspace, between: int, outcome: Outcome, rng: np.random.Generator
) -> tuple[int, int]:
    """Choose two slots in proportion to their merge weight: first the row, then the place in the row."""
    n_clusters = workspace.integers[at.CLUSTERS]
    weights = workspace.weights
    for b in range(n_clusters):
        weights[b] = distances.row_totals[b]
    slot = choose(weights, n_clusters, rng.random())
    for b in range(n_clusters):
        weights[b] = 0.0
        if b > slot:
            size, other_size = workspace.sizes[slot], workspace.sizes[b]
            weights[b] = cache.between_weight(distances, between, distances.cross[slot, b], size, other_size)
    other = choose(weights, n_clusters, rng.random())
    if outcome.flags[at.WANTED] == at.ACCOUNT:
        sizes = workspace.sizes
        for a in range(n_clusters):
            for b in range(a + 1, n_clusters):
                weight = cache.between_weight(distances, between, distances.cross[a, b], sizes[a], sizes[b])
                note(outcome, OPTION, a, b, weight)
        note(outcome, CHOSEN, slot, other, 0.0)
    return slot, other


@inlined
def _relabel_side(workspace: AnyWorkspace, count: int, label: int) -> None:
    """Give the members on side 1 a label."""
    for k in range(count):
        if workspace.sides[k] == 1:
            workspace.labels[workspace.members[k]] = label


@jit
def _log_merge_back(
    distances: Distances,
    workspace: AnyWorkspace,
    options: SplitMergeOptions,
    slot: int,
    count: int,
    moved: int,
    outcome: Outcome,
) -> float:
    """Log probability that, after the split, choosing two clusters to merge gives the two sides.

    Leaves the distances of the sides to all clusters in `scratch[0]` (the side that stays) and `scratch[2]`
    (the side that goes).
    """
    between = options.between
    fresh = workspace.integers[at.CLUSTERS]
    staying, going = distances.scratch[0], distances.scratch[2]
    _relabel_side(workspace, count, fresh)
    cache.row_statistics(distances, between, workspace.labels, fresh + 1, slot, staying)
    cache.row_statistics(distances, between, workspace.labels, fresh + 1, fresh, going)
    _relabel_side(workspace, count, slot)
    stay_size = count - moved
    chosen = cache.between_weight(distances, between, staying[fresh], stay_size, moved)
    total = chosen
    for a in range(fresh):
        if a == slot:
            continue
        size = workspace.sizes[a]
        total += cache.between_weight(distances, between, staying[a], stay_size, size)
        total += cache.between_weight(distances, between, going[a], moved, size)
        for b in range(a + 1, fresh):
            if b != slot:
                total += cache.between_weight(
                    distances, between, distances.cross[a, b], size, workspace.sizes[b]
                )
    return log_merge_proposal(options, chosen, total, outcome, BACKWARD)


@jit
def _decide(
    workspace: AnyWorkspace,
    as_printed: bool,
    log_terms: tuple[float, float, float, float],
    count: int,
    slots: tuple[int, int],
    outcome: Outcome,
) -> bool:
    """Decide by π(B*) q(B | B*) over π(B) q(B* | B), or with the proposals as the paper prints them.

    `log_terms` are the logs of π(B*)/π(B), of the uniform draw, and of q there and back; `slots` are those
    of sides 0 and 1 in the proposed partition.
    """
    log_change, log_uniform, log_forward, log_backward = log_terms
    log_ratio = log_change + log_backward - log_forward
    if as_printed:
        log_ratio = log_change + log_forward - log_backward
    if outcome.flags[at.WANTED] != at.NOTHING:
        report(outcome, workspace.labels, log_ratio, log_uniform, log_forward, log_backward)
        for k in range(count):
            outcome.labels[workspace.members[k]] = slots[workspace.sides[k]]
    return log_uniform < log_ratio  # A ratio that is not a number accepts nothing.


@jit
def _split(
    problem: AnyProblem,
    workspace: AnyWorkspace,
    distances: Distances,
    options: SplitMergeOptions,
    outcome: Outcome,
    rng: np.random.Generator,
) -> int:
    """Propose a split and decide on it."""
    n_clusters = workspace.integers[at.CLUSTERS]
    if n_clusters == problem.coordinates.shape[0]:
        return KEPT
    slot = choose_cluster(distances, workspace, options.within, outcome, rng)
    count = gather_members(workspace, slot, slot)
    cores = (distances.farthest[slot, 0], distances.farthest[slot, 1])
    moved = draw_sides(distances, workspace, count, cores, options.core_jump, outcome, rng)
    if moved == 0 or moved == count:
        return KEPT
    weight = workspace.weights[slot]  # left by the choice
    log_forward = log_split_proposal(
        workspace, distances, options, weight, (slot, slot), cores, count, outcome, FORWARD
    )
    family.weigh_sides(problem, workspace, count)
    log_change = family.log_change_of_split(problem, workspace, slot, moved)
    log_uniform = math.log(1.0 - rng.random())
    # The reverse proposal is at most as probable as a merge, which often decides already.
    hopeless = not options.as_printed and log_change - log_forward + math.log(options.merge) <= log_uniform
    if hopeless and outcome.flags[at.WANTED] == at.NOTHING:
        return REJECTED
    log_backward = _log_merge_back(distances, workspace, options, slot, count, moved, outcome)
    terms = (log_change, log_uniform, log_forward, log_backward)
    if not _decide(workspace, options.as_printed, terms, count, (slot, n_clusters), outcome):
        return REJECTED
    fresh = family.make_split(problem, workspace, slot)
    cache.install_row(distances, fresh + 1, slot, distances.scratch[0])
    cache.install_row(distances, fresh + 1, fresh, distances.scratch[2])
    cache.within_statistic(distances, options.within, workspace.labels, slot)
    cache.within_statistic(distances, options.within, workspace.labels, fresh)
    cache.refresh_totals(distances, workspace, options.between)
    return MADE


@jit
def _merge(
    problem: AnyProblem,
    workspace: AnyWorkspace,
    distances: Distances,
    options: SplitMergeOptions,
    outcome: Outcome,
    rng: np.random.Generator,
) -> int:
    """Propose a merge and decide on it."""
    n_clusters = workspace.integers[at.CLUSTERS]
    if n_clusters == 1:
        return KEPT
    within, between = options.within, options.between
    slot, other = choose_pair(distances, workspace, between, outcome, rng)
    size, other_size = workspace.sizes[slot], workspace.sizes[other]
    nearness = cache.between_weight(distances, between, distances.cross[slot, other], size, other_size)
    log_forward = log_merge_proposal(options, nearness, distances.reals[cache.PAIR_TOTAL], outcome, FORWARD)
    log_change = family.log_change_of_merge(problem, workspace, slot, other)
    log_uniform = math.log(1.0 - rng.random())
    hopeless = not options.as_printed and log_change - log_forward + math.log(options.split) <= log_uniform
    if hopeless and outcome.flags[at.WANTED] == at.NOTHING:
        return REJECTED
    count = gather_members(workspace, slot, other)
    cores = cache.union_farthest(distances, workspace, count, slot, other)
    statistic = merged_within(distances, workspace, options, slot, other, count)
    weight = cache.within_weight(distances, within, statistic, size + other_size)
    log_backward = log_split_proposal(
        workspace, distances, options, weight, (slot, other), cores, count, outcome, BACKWARD
    )
    if outcome.flags[at.WANTED] == at.ACCOUNT:
        note_sides(distances, workspace, count, cores, outcome)
    terms = (log_change, log_uniform, log_forward, log_backward)
    if not _decide(workspace, options.as_printed, terms, count, (slot, slot), outcome):
        return REJECTED
    family.make_merge(problem, workspace, slot, other)
    distances.within[slot] = statistic
    distances.farthest[slot, 0] = cores[0]
    distances.farthest[slot, 1] = cores[1]
    cache.drop_distances(distances, other, n_clusters - 1)
    kept = other if slot == n_clusters - 1 else slot
    cache.row_statistics(distances, between, workspace.labels, n_clusters - 1, kept, distances.scratch[0])
    cache.install_row(distances, n_clusters - 1, kept, distances.scratch[0])
    cache.refresh_totals(distances, workspace, between)
    return MADE


@jit
def split_merge(
    problem: AnyProblem,
    workspace: AnyWorkspace,
    distances: Distances,
    options: SplitMergeOptions,
    outcome: Outcome,
    rng: np.random.Generator,
) -> int:
    """Make one split-merge move; return 1 if accepted, 0 if rejected, −1 if nothing was proposed."""
    if distances.flags[cache.STALE]:
        cache.rebuild(distances, workspace, options.within, options.between)
    uniform = rng.random()
    action = 0 if uniform < options.split else 1 if uniform < options.split + options.merge else 2
    if outcome.flags[at.WANTED] == at.ACCOUNT:
        note(outcome, ACTION, action, 0, uniform)
    if action == 0:
        return _split(problem, workspace, distances, options, outcome, rng)
    if action == 1:
        return _merge(problem, workspace, distances, options, outcome, rng)
    return KEPT


@entry
def _log_proposal(
    workspace: AnyWorkspace,
    distances: Distances,
    options: SplitMergeOptions,
    slot: int,
    other: int,
    moved: NDArray[np.bool_],
    outcome: Outcome,
) -> float:
    """Log probability of splitting `slot` so that the `moved` objects leave it, or of merging it."""
    cache.rebuild(distances, workspace, options.within, options.between)
    size, other_size = workspace.sizes[slot], workspace.sizes[other]
    if slot != other:
        weight = cache.between_weight(
            distances, options.between, distances.cross[slot, other], size, other_size
        )
        return log_merge_proposal(options, weight, distances.reals[cache.PAIR_TOTAL], outcome, FORWARD)
    count = gather_members(workspace, slot, slot)
    for k in range(count):
        workspace.sides[k] = 1 if moved[workspace.members[k]] else 0
    weight = cache.within_weight(distances, options.within, distances.within[slot], size)
    cores = (distances.farthest[slot, 0], distances.farthest[slot, 1])
    return log_split_proposal(
        workspace, distances, options, weight, (slot, slot), cores, count, outcome, FORWARD
    )


def log_proposal(
    posterior: Posterior,
    labels: ArrayLike,
    proposed: ArrayLike,
    move: "SplitMerge | None" = None,
    pairs: FloatArray | None = None,
) -> float:
    """Log probability that a split-merge move at partition `labels` proposes another partition, `proposed`.

    Parameters
    ----------
    posterior
        Gives the coordinates.
    labels, proposed
        Two different partitions; minus infinity is returned unless one is a split of a cluster of the other.
    move
        Options of the move.
    pairs
        Distances between objects; in canonical coordinates by default.
    """
    start, end = check_labels(labels, posterior.n_objects), check_labels(proposed, posterior.n_objects)
    options = SplitMergeOptions() if move is None else move.options()
    change = single_split(start, end)
    if change is None or options.split == 0.0:
        return -math.inf
    given = pair_distances(posterior.coordinates) if pairs is None else pairs
    # Proposals do not depend on the shapes; any will do.
    sigma = np.ones(posterior.sigma_length)
    workspace = at.make_workspace(at.make_problem(posterior), start, 0, 0.0, sigma=sigma)
    outcome = at.make_outcome(posterior.n_objects)
    return float(_log_proposal(workspace, cache.make_distances(given), options, *change, outcome))
