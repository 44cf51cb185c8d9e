r"""Informed split-merge: sequential allocation (Dahl 2005) fitted to this likelihood. Beyond the paper.

Two objects i ≠ j are drawn evenly. If they share a cluster, a *split* is proposed: i and j found two sides,
and the other members are allocated one by one in a random order; a member y joins a side with m members and
sum s with probability proportional to

.. math::

    m \; N\!\left(y \;\middle|\; \tfrac{\theta}{1+\theta m} s, \;
    \left(1 + \tfrac{\theta}{1+\theta m}\right) \hat\Sigma\right),

where :math:`\hat\Sigma = M/n` of the *merged* state (its trace over d for model I, its diagonal for II). If
they are in different clusters, the *merge* of these is proposed, and the probability of the way back is
found by replaying the allocation in the same kind of order.

The order does not depend on which of the two states one is in, so the log acceptance ratio, given i, j and
the order, is

.. math::

    \text{split:} \quad & \log\pi(B^*) - \log\pi(B) - \log q(\text{sides}) \\
    \text{merge:} \quad & \log\pi(B^*) - \log\pi(B) + \log q(\text{sides}) .
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling.compiled import entry, jit
from ewens_widgets.sampling.kernel.partition_changes import (
    count_moved,
    gather_members,
    log_change_of_merge,
    log_change_of_split,
    make_merge,
    make_split,
    single_split,
)
from ewens_widgets.sampling.kernel.scatter import dot, multiply, quadratic, refresh, update_inverse
from ewens_widgets.sampling.kernel.workspace import (
    ACCOUNT,
    THETA,
    WANTED,
    Outcome,
    Problem,
    Workspace,
    make_outcome,
    make_problem,
    make_workspace,
    note,
    report,
)
from ewens_widgets.sampling.moves.move import (
    BACKWARD,
    CORES,
    FORWARD,
    MEMBER,
    BareProposal,
    Choice,
    Move,
    Notes,
    Scene,
)

__all__ = ["InformedSplitMerge", "informed_split_merge", "log_proposal", "shuffle"]

_MODULUS = 2147483647  # Of the "minimal standard" generator that orders the members.


@jit
def shuffle(workspace: Workspace, count: int, item: int, partner: int, uniform: float) -> None:
    """Bring the pair to the front of the members, and the others into an order set by one number.

    One number, drawn whether or not the order is needed, keeps the stream of random numbers independent of
    how early a proposal can be seen to fail.
    """
    members, sides = workspace.members, workspace.sides
    seed = 1 + int(uniform * (_MODULUS - 2))
    for k in range(count):
        if members[k] == item:
            members[0], members[k] = members[k], members[0]
            sides[0], sides[k] = sides[k], sides[0]
    for k in range(1, count):
        if members[k] == partner:
            members[1], members[k] = members[k], members[1]
            sides[1], sides[k] = sides[k], sides[1]
    for k in range(count - 1, 2, -1):
        seed = seed * 48271 % _MODULUS
        other = 2 + seed * (k - 1) // _MODULUS
        members[k], members[other] = members[other], members[k]
        sides[k], sides[other] = sides[other], sides[k]


@jit
def _merged_precision(problem: Problem, workspace: Workspace, merging: bool) -> None:
    """Write the inverse covariance of the merged state: `precision` for I and II, `matrix` for III.

    The merged state is the current one, or (`merging`) what it becomes by the exchange that has been set up.
    """
    precision = workspace.precision
    if problem.model == 3:
        for r in range(workspace.inverse.shape[0]):
            for c in range(workspace.inverse.shape[0]):
                workspace.matrix[r, c] = workspace.inverse[r, c]
        if merging:
            update_inverse(workspace, workspace.matrix)
        return
    factor = 1.0 if merging else 0.0
    alpha, beta, gamma = workspace.coefficients[0], workspace.coefficients[1], workspace.coefficients[2]
    mean, gap = workspace.vectors[0], workspace.vectors[1]
    if problem.model == 1:
        change = alpha * dot(mean, mean) + 2.0 * beta * dot(mean, gap) + gamma * dot(gap, gap)
        precision[:] = 1.0 / (workspace.scatter[0] + factor * change)
    else:
        for r in range(mean.shape[0]):
            change = quadratic(alpha, beta, gamma, mean[r], gap[r])
            precision[r] = 1.0 / (workspace.scatter[r] + factor * change)


@jit
def _log_odds(
    problem: Problem, workspace: Workspace, item: int, near: FloatArray, far: FloatArray, sizes: FloatArray
) -> float:
    """Log odds that an object joins side 1 rather than side 0, whose sums are `far` and `near`."""
    theta_index = workspace.integers[THETA]
    log_grown = problem.log_grown[theta_index]
    theta = problem.theta[theta_index]
    vector = problem.coordinates[item]
    near_pull = theta / (1.0 + theta * sizes[0])
    far_pull = theta / (1.0 + theta * sizes[1])
    near_form = 0.0
    far_form = 0.0
    if problem.model == 3:
        # Both forms from one product A y would need sᵀAs of the growing sides; two differences are as cheap.
        difference, image = workspace.second, workspace.first
        for r in range(vector.shape[0]):
            difference[r] = vector[r] - near_pull * near[r]
        multiply(workspace.matrix, difference, image)
        near_form = dot(difference, image)
        for r in range(vector.shape[0]):
            difference[r] = vector[r] - far_pull * far[r]
        multiply(workspace.matrix, difference, image)
        far_form = dot(difference, image)
    else:
        precision = workspace.precision
        for r in range(vector.shape[0]):
            near_gap = vector[r] - near_pull * near[r]
            far_gap = vector[r] - far_pull * far[r]
            near_form += near_gap * near_gap * precision[r]
            far_form += far_gap * far_gap * precision[r]
    near_size, far_size = int(sizes[0]), int(sizes[1])
    near_log_variance = log_grown[near_size + 1] - log_grown[near_size]
    far_log_variance = log_grown[far_size + 1] - log_grown[far_size]
    return (
        problem.log_size[far_size]
        - problem.log_size[near_size]
        - 0.5 * vector.shape[0] * (far_log_variance - near_log_variance)
        - 0.5 * (far_form / (1.0 + far_pull) - near_form / (1.0 + near_pull))
    )


@jit
def _allocate(
    problem: Problem,
    workspace: Workspace,
    count: int,
    replay: bool,
    sums: FloatArray,
    outcome: Outcome,
    rng: np.random.Generator,
) -> float:
    """Allocate the members in their order to the sides of the first two; return the log probability.

    With `replay` the sides are given and only their probability is found; otherwise they are drawn. `sums`
    (2 × d) receives the sums of the sides. The precision of the merged state must have been written before.
    """
    members, sides = workspace.members, workspace.sides
    is_noted = outcome.flags[WANTED] == ACCOUNT
    sizes = workspace.plane  # Scratch: an exchange needs it only later.
    for side in range(2):
        sizes[side] = 1.0
        if not replay:
            sides[side] = side
        for r in range(sums.shape[1]):
            sums[sides[side], r] = problem.coordinates[members[side], r]
        if is_noted:
            note(outcome, MEMBER, members[side], sides[side], float(side))
    log_probability = 0.0
    for k in range(2, count):
        odds = _log_odds(problem, workspace, members[k], sums[0], sums[1], sizes)
        # log of 1 / (1 + e^-odds), arranged so that the exponential cannot overflow.
        tail = math.log1p(math.exp(-abs(odds)))
        log_one = min(odds, 0.0) - tail
        log_zero = min(-odds, 0.0) - tail
        if not replay:
            sides[k] = 1 if rng.random() < math.exp(log_one) else 0
        log_probability += log_one if sides[k] == 1 else log_zero
        if is_noted:
            note(outcome, MEMBER, members[k], sides[k], math.exp(log_one))
        sizes[sides[k]] += 1.0
        for r in range(sums.shape[1]):
            sums[sides[k], r] += problem.coordinates[members[k], r]
    return log_probability


@jit
def _tell(
    labels: NDArray[np.int64],
    members: NDArray[np.int64],
    sides: NDArray[np.int64],
    outcome: Outcome,
    merging: bool,
    count: int,
    log_ratio: float,
    log_uniform: float,
    log_sides: float,
) -> None:
    """Report the proposal; given the pair, only a split has a choice."""
    log_forward, log_backward = (0.0, log_sides) if merging else (log_sides, 0.0)
    report(outcome, labels, log_ratio, log_uniform, log_forward, log_backward)
    if outcome.flags[WANTED] == ACCOUNT:
        note(outcome, FORWARD, 0 if merging else 1, 0, log_forward)
        note(outcome, BACKWARD, 1 if merging else 0, 0, log_backward)
    slot, fresh = labels[members[0]], labels.shape[0]
    for k in range(count):
        apart = sides[k] == 1 and not merging
        outcome.labels[members[k]] = fresh if apart else slot


@jit
def informed_split_merge(
    problem: Problem, workspace: Workspace, outcome: Outcome, sums: FloatArray, rng: np.random.Generator
) -> int:
    """Make one informed split-merge move; return 1 if the proposal was accepted."""
    n_objects = problem.coordinates.shape[0]
    item = int(rng.random() * n_objects)
    partner = int(rng.random() * (n_objects - 1))
    if partner >= item:
        partner += 1
    order = rng.random()
    log_uniform = math.log(1.0 - rng.random())
    slot, other = workspace.labels[item], workspace.labels[partner]
    wanted = outcome.flags[WANTED]
    merging = slot != other
    log_ratio = 0.0
    if merging:
        log_ratio = log_change_of_merge(problem, workspace, slot, other)
        # The probability of the way back is at most one, so often the merge is lost already.
        if log_ratio <= log_uniform and not wanted:
            return 0
    if wanted == ACCOUNT:
        note(outcome, CORES, item, partner, 0.0)
    count = gather_members(workspace, slot, other)
    shuffle(workspace, count, item, partner, order)
    _merged_precision(problem, workspace, merging)
    log_probability = _allocate(problem, workspace, count, merging, sums, outcome, rng)
    if merging:
        log_ratio += log_probability
    else:
        moved = count_moved(workspace, count)
        log_ratio = log_change_of_split(problem, workspace, slot, moved, sums[1]) - log_probability
    accepted = log_uniform < log_ratio
    if wanted:
        labels, members, sides = workspace.labels, workspace.members, workspace.sides
        _tell(labels, members, sides, outcome, merging, count, log_ratio, log_uniform, log_probability)
    if not accepted:
        return 0
    if merging:
        make_merge(problem, workspace, slot, other)
    else:
        make_split(problem, workspace, slot, sums[1])
    return 1


@dataclass(frozen=True)
class InformedSplitMerge(Move):
    """Split or merge by sequential allocation, informed by the likelihood."""

    name: ClassVar[str] = "informed-split-merge"
    title: ClassVar[str] = "informed split-merge"
    kernel = staticmethod(informed_split_merge)
    factors: ClassVar[tuple[str, ...]] = ("certain, given the pair", "each member on its side")

    def account(self, notes: Notes) -> BareProposal:
        """A pair of objects, and the sides of those who are with them."""
        item, partner, _ = notes.of(CORES)[0]
        n_objects = notes.slots.size
        n_pairs = n_objects * (n_objects - 1) // 2
        low, high = min(item, partner), max(item, partner)
        pair = Choice(
            "two objects",
            np.full(n_pairs, 1.0 / n_pairs),
            low * n_objects - low * (low + 1) // 2 + high - low - 1,
            np.array([item, partner]),
            np.full(n_objects, 2.0 / n_objects),
        )
        is_merge = bool(notes.slots[item] != notes.slots[partner])
        allocation = notes.allocation(is_replay=is_merge)
        return notes.account("merge" if is_merge else "split", choices=(pair,), allocation=allocation)

    def tell(self, account: BareProposal) -> Iterator[Scene]:
        """Tell the pair, and how the others fall onto its sides."""
        (pair,), allocation = account.choices, account.allocation
        if allocation is None or account.backward is None:
            return
        first, second = (core + 1 for core in allocation.cores)
        together = (
            "are in different clusters: their merge" if allocation.is_replay else "share a cluster: its split"
        )
        yield Scene(
            "choice",
            "Two objects",
            f"Objects {first} and {second} were drawn evenly, with probability {pair.probability:.3g}. They "
            f"{together} is proposed.",
            ringed=pair.objects,
            shares=pair.by_object,
        )
        rule = (
            f"The other members join one by one, in random order, the side of {first} or of {second}: with "
            "probability in proportion to its size so far times the density of the member given those on it. "
        )
        yield Scene.of_sides(account, allocation, rule, account.backward.log_probability)


@entry
def _replay(
    problem: Problem,
    workspace: Workspace,
    count: int,
    sums: FloatArray,
    outcome: Outcome,
    rng: np.random.Generator,
) -> float:
    """Log probability of the sides of the members, the current state being the merged one."""
    refresh(problem, workspace)
    given = count > 0  # Not a constant, for which numba would compile the functions anew.
    _merged_precision(problem, workspace, not given)
    return _allocate(problem, workspace, count, given, sums, outcome, rng)


def log_proposal(
    posterior: Posterior,
    labels: ArrayLike,
    proposed: ArrayLike,
    theta_index: int,
    pair: tuple[int, int],
    order: Sequence[int] | None = None,
) -> float:
    """Log probability that the move proposes a partition, given its pair of objects and its order.

    Parameters
    ----------
    posterior
        What is being sampled.
    labels, proposed
        Two different partitions.
    theta_index
        Place of the current θ on the grid.
    pair
        The two objects drawn.
    order
        Order of the other members of the cluster that is split; ascending by default. (A merge is certain,
        given the pair.)
    """
    start, end = check_labels(labels, posterior.n_objects), check_labels(proposed, posterior.n_objects)
    change = single_split(start, end)
    if change is None:
        return -math.inf
    slot, other, moved = change
    item, partner = pair
    if slot != other:
        return 0.0 if {int(start[item]), int(start[partner])} == {slot, other} else -math.inf
    if start[item] != slot or start[partner] != slot or moved[item] == moved[partner]:
        return -math.inf
    rest = [member for member in np.flatnonzero(start == slot).tolist() if member not in pair]
    members = [item, partner, *(rest if order is None else order)]
    if sorted(members[2:]) != rest:
        raise ValueError(f"order must list the other members of the cluster, {rest}; got {order}.")
    problem = make_problem(posterior)
    workspace = make_workspace(problem, start, theta_index, 0.0)
    workspace.members[: len(members)] = members
    # Side 0 is the one of the first object of the pair.
    workspace.sides[: len(members)] = moved[members] != moved[item]
    sums = np.zeros((2, posterior.n_features))
    outcome = make_outcome(posterior.n_objects)
    return float(_replay(problem, workspace, len(members), sums, outcome, np.random.default_rng(0)))
