r"""Split-merge, the paper's Algorithm 2, with its acceptance ratio corrected.

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

The paper inverts the second fraction. `acceptance="as-printed"` of the sampler does so too, to
show what happens. With many exact duplicates the floor under the distances makes some splits possible in
principle only: use another schedule for such data.

Here are the move's options, its kernel and its words; what it proposes, and how probable that is, has a
chapter of its own, `split_merge_proposal`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ewens_widgets.paper.moves.distances import (
    BETWEEN,
    PAIR_TOTAL,
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
from ewens_widgets.paper.moves.split_merge_proposal import (
    ACTION,
    CHOSEN,
    FACTORS,
    JUMPED,
    OPTION,
    SplitMergeOptions,
    choose_cluster,
    choose_pair,
    draw_sides,
    log_merge_proposal,
    log_split_proposal,
    merged_within,
    note_sides,
)
from ewens_widgets.sampling.compiled import inlined, jit
from ewens_widgets.sampling.kernel.family import (
    log_change_of_merge,
    log_change_of_split,
    make_merge,
    make_split,
    weigh_sides,
)
from ewens_widgets.sampling.kernel.partition_changes import gather_members
from ewens_widgets.sampling.kernel.workspace import (
    ACCOUNT,
    CLUSTERS,
    NOTHING,
    WANTED,
    AnyProblem,
    AnyWorkspace,
    Outcome,
    note,
    report,
)
from ewens_widgets.sampling.moves.move import (
    BACKWARD,
    FORWARD,
    Allocation,
    BareProposal,
    Choice,
    Move,
    Notes,
    Option,
    Scene,
    count,
    frozen,
)

KEPT, REJECTED, MADE = -1, 0, 1
_ACTIONS = ("split", "merge", "nothing")
_DISTANCES = {
    "average": "average distance",
    "maximum": "largest distance",
    "minimum": "smallest distance",
    "hausdorff": "Hausdorff distance",
}


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
    if outcome.flags[WANTED] != NOTHING:
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
    n_clusters = workspace.integers[CLUSTERS]
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
    weigh_sides(problem, workspace, count)
    log_change = log_change_of_split(problem, workspace, slot, moved)
    log_uniform = math.log(1.0 - rng.random())
    # The reverse proposal is at most as probable as a merge, which often decides already.
    hopeless = not options.as_printed and log_change - log_forward + math.log(options.merge) <= log_uniform
    if hopeless and outcome.flags[WANTED] == NOTHING:
        return REJECTED
    log_backward = _log_merge_back(distances, workspace, options, slot, count, moved, outcome)
    terms = (log_change, log_uniform, log_forward, log_backward)
    if not _decide(workspace, options.as_printed, terms, count, (slot, n_clusters), outcome):
        return REJECTED
    fresh = make_split(problem, workspace, slot)
    install_row(distances, fresh + 1, slot, distances.scratch[0])
    install_row(distances, fresh + 1, fresh, distances.scratch[2])
    within_statistic(distances, options.within, workspace.labels, slot)
    within_statistic(distances, options.within, workspace.labels, fresh)
    refresh_totals(distances, workspace, options.between)
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
    n_clusters = workspace.integers[CLUSTERS]
    if n_clusters == 1:
        return KEPT
    within, between = options.within, options.between
    slot, other = choose_pair(distances, workspace, between, outcome, rng)
    size, other_size = workspace.sizes[slot], workspace.sizes[other]
    nearness = between_weight(distances, between, distances.cross[slot, other], size, other_size)
    log_forward = log_merge_proposal(options, nearness, distances.reals[PAIR_TOTAL], outcome, FORWARD)
    log_change = log_change_of_merge(problem, workspace, slot, other)
    log_uniform = math.log(1.0 - rng.random())
    hopeless = not options.as_printed and log_change - log_forward + math.log(options.split) <= log_uniform
    if hopeless and outcome.flags[WANTED] == NOTHING:
        return REJECTED
    count = gather_members(workspace, slot, other)
    cores = union_farthest(distances, workspace, count, slot, other)
    statistic = merged_within(distances, workspace, options, slot, other, count)
    weight = within_weight(distances, within, statistic, size + other_size)
    log_backward = log_split_proposal(
        workspace, distances, options, weight, (slot, other), cores, count, outcome, BACKWARD
    )
    if outcome.flags[WANTED] == ACCOUNT:
        note_sides(distances, workspace, count, cores, outcome)
    terms = (log_change, log_uniform, log_forward, log_backward)
    if not _decide(workspace, options.as_printed, terms, count, (slot, slot), outcome):
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
    problem: AnyProblem,
    workspace: AnyWorkspace,
    distances: Distances,
    options: SplitMergeOptions,
    outcome: Outcome,
    rng: np.random.Generator,
) -> int:
    """Make one split-merge move; return 1 if accepted, 0 if rejected, −1 if nothing was proposed."""
    if distances.flags[STALE]:
        rebuild(distances, workspace, options.within, options.between)
    uniform = rng.random()
    action = 0 if uniform < options.split else 1 if uniform < options.split + options.merge else 2
    if outcome.flags[WANTED] == ACCOUNT:
        note(outcome, ACTION, action, 0, uniform)
    if action == 0:
        return _split(problem, workspace, distances, options, outcome, rng)
    if action == 1:
        return _merge(problem, workspace, distances, options, outcome, rng)
    return KEPT


@dataclass(frozen=True)
class SplitMerge(Move):
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
    title: ClassVar[str] = "split-merge (paper 2)"
    kernel = staticmethod(split_merge)
    loop: ClassVar[str] = "ewens_widgets.paper.moves.distance_loop"
    needs_distances: ClassVar[bool] = True
    from_paper: ClassVar[bool] = True
    has_printed_ratio: ClassVar[bool] = True
    factors: ClassVar[tuple[str, ...]] = FACTORS
    choosable: ClassVar[tuple[Option, ...]] = (
        Option("within", "within", "within", "Distance within clusters: wide ones are split", tuple(WITHIN)),
        Option("between", "between", "between", "Distance between clusters: near ones merge", tuple(BETWEEN)),
        Option("core_jump", "jump", "core jump", "Probability that a core of a split changes sides"),
    )

    def __post_init__(self) -> None:
        """Refuse unknown distances and probabilities that are none."""
        for option, known in (("within", WITHIN), ("between", BETWEEN)):
            given = getattr(self, option)
            if not isinstance(given, str) or given not in known:
                raise ValueError(f"{option} must be one of {', '.join(known)}; got {given!r}.")
        chances, jump = _as_floats(self.probabilities), _as_floats((self.core_jump,))
        if len(chances) != 3 or min(chances) < 0.0 or abs(sum(chances) - 1.0) > 1e-9:
            raise ValueError(
                "the probabilities of split, merge and keep must be three numbers, none negative, that sum "
                f"to 1; got {self.probabilities!r}."
            )
        if (chances[0] == 0.0) != (chances[1] == 0.0):
            raise ValueError(
                "split and merge undo each other: give both a positive probability, or neither; "
                f"got {self.probabilities!r}."
            )
        if len(jump) != 1 or not 0.0 <= jump[0] < 1.0:
            raise ValueError(
                f"the probability of a core jump must be at least 0 and below 1; got {self.core_jump!r}."
            )
        object.__setattr__(self, "probabilities", chances)
        object.__setattr__(self, "core_jump", jump[0])

    def options(self, as_printed: bool = False) -> SplitMergeOptions:
        """Options for the kernel."""
        split, merge, _ = self.probabilities
        return SplitMergeOptions(
            WITHIN[self.within], BETWEEN[self.between], split, merge, self.core_jump, as_printed
        )

    def account(self, notes: Notes) -> BareProposal:
        """What was tried, which cluster or pair was chosen, and how its members fall onto two sides."""
        action, _, _ = notes.of(ACTION)[0]
        n_objects = notes.slots.size
        chances = np.array(self.probabilities, dtype=np.float64)
        choices = [Choice("what to propose", chances, action, np.arange(n_objects), np.ones(n_objects))]
        chosen = notes.of(CHOSEN)
        if chosen:
            choices.append(_choice_of_clusters(notes, *chosen[0]))
        allocation = notes.allocation(jump_probability=self.core_jump, is_replay=_ACTIONS[action] == "merge")
        if allocation is not None and allocation.is_replay:
            allocation = _first_core_first(allocation)
        for jumped, _, _ in notes.of(JUMPED):
            if allocation is not None and jumped >= 0:
                allocation = replace(allocation, jumped=jumped)
        # What keeps a move from proposing: its choice, too few or too many clusters, or at last a core jump.
        reason = {
            "nothing": "This time the move keeps the partition as it is.",
            "merge": "A merge was to be proposed, but there is only one cluster.",
        }.get(_ACTIONS[action], "The core jump has emptied one side, so the partition stays as it is.")
        if _ACTIONS[action] == "split" and notes.n_clusters == n_objects:
            reason = "A split was to be proposed, but every object is alone already."
        return notes.account(_ACTIONS[action], choices=tuple(choices), allocation=allocation, reason=reason)

    def tell(self, account: BareProposal) -> Iterator[Scene]:
        """Tell what is tried with whom, the cores, the sides, and the core jump."""
        action, *chosen = account.choices
        split, merge, keep = action.probabilities
        what = ("A split is tried", "A merge is tried", "Nothing is tried")[action.chosen]
        yield Scene(
            "action",
            "Split, merge or keep",
            f"{what}. A split has probability {split:.3g}, a merge {merge:.3g}, keeping all as it is "
            f"{keep:.3g}.",
        )
        if not chosen or account.allocation is None:
            return
        if _ACTIONS[action.chosen] == "split":
            title, subject = "The cluster", f"The cluster of {count(chosen[0].objects.size, 'object')} was"
            reason = f"in proportion to the {_DISTANCES[self.within]} within a cluster"
        else:
            title, subject = "The two clusters", "Two clusters were"
            reason = f"in proportion to one over the {_DISTANCES[self.between]} between two clusters"
        yield Scene(
            "choice",
            title,
            f"{subject} chosen with probability {chosen[0].probability:.3g}, {reason}.",
            ringed=chosen[0].objects,
            shares=chosen[0].by_object,
        )
        yield from _tell_sides(account, account.allocation)


def _as_floats(values: object) -> tuple[float, ...]:
    """Finite floats, or nothing where `values` are none."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return ()
    return tuple(numbers.tolist()) if numbers.ndim == 1 and np.all(np.isfinite(numbers)) else ()


def _choice_of_clusters(notes: Notes, slot: int, other: int, uniform: float) -> Choice:
    """The cluster to split, or (two different slots) the pair to merge."""
    options = notes.of(OPTION)
    weights = np.array([weight for *_, weight in options])
    shares = weights / weights.sum()
    pairs = [(first, second) for first, second, _ in options]
    example = notes.examples()
    if slot == other:
        one = tuple((example[first],) for first, _ in pairs)
        return Choice(
            "cluster to split", shares, slot, notes.members(slot), shares[notes.slots], one, uniform
        )
    by_slot = np.zeros(notes.n_clusters)
    for side in np.array(pairs).T:
        by_slot += np.bincount(side, shares, notes.n_clusters)
    members = np.flatnonzero(np.isin(notes.slots, (slot, other)))
    examples = tuple((example[first], example[second]) for first, second in pairs)
    place = pairs.index((slot, other))
    return Choice("two clusters to merge", shares, place, members, by_slot[notes.slots], examples)


def _first_core_first(allocation: Allocation) -> Allocation:
    """The same with the first core's side as side 0, where the cores are apart."""
    first, second = (int(allocation.sides[allocation.members == core][0]) for core in allocation.cores)
    return replace(allocation, sides=frozen(1 - allocation.sides)) if first > second else allocation


def _tell_sides(account: BareProposal, allocation: Allocation) -> Iterator[Scene]:
    first, second = (core + 1 for core in allocation.cores)
    back = allocation.is_replay
    whose = "Of both together, the" if back else "Its"
    yield Scene(
        "cores",
        "The cores" if not back else "The reverse proposal: the cores",
        f"{whose} two objects farthest apart, {first} and {second}, are the cores of two sides"
        f"{': from these a split would have to start' if back else ''}.",
        focus=allocation.members,
        cores=allocation.cores,
    )
    rule = (
        f"A member i joins core {second} with probability d(i, {first}) / (d(i, {first}) + d(i, {second})): "
        "the nearer core is favoured. "
    )
    log_sides = account.backward.factors[2].log_probability if back and account.backward else 0.0
    yield Scene.of_sides(account, allocation, rule, log_sides)
    probability = f"{allocation.jump_probability:.3g}"
    jumped = [] if allocation.jumped is None else [allocation.jumped]
    if back:
        apart = len({int(allocation.sides[allocation.members == core][0]) for core in allocation.cores}) == 2
        text = (
            f"The cores are apart, so none may jump: probability {1 - allocation.jump_probability:.3g}."
            if apart
            else f"Both cores are in one cluster: only a core jump (probability {probability}) leads there, "
            "in two ways."
        )
    else:
        who = f"sides: object {jumped[0] + 1} did." if jumped else "sides. This time none did."
        text = f"With probability {probability} one of the cores changes {who}"
    title = "The reverse proposal: core jump" if back else "Core jump"
    ringed = np.array(jumped, dtype=np.intp)
    yield Scene("jump", title, text, focus=allocation.members, cores=allocation.cores, ringed=ringed)
