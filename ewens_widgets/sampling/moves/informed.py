r"""Informed split-merge: sequential allocation (Dahl 2005) fitted to this likelihood. Beyond the paper.

Two objects i ≠ j are drawn evenly. If they share a cluster, a *split* is proposed: i and j found two sides,
and the other members are allocated one by one in a random order; a member y joins a side with m members with
probability proportional to

.. math:: \frac{W(m+1)}{W(m)} \; p(y \mid \text{those on the side}),

with the predictive density of own shapes, or, for common ones, a Gaussian with the covariance of the merged
state (`kernel.common_family`). If they are in different clusters, the *merge* of these is proposed, and the
probability of the reverse proposal is found by replaying the allocation in the same kind of order.

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
from ewens_widgets.sampling.kernel import workspace as at
from ewens_widgets.sampling.kernel.family import (
    join_side,
    log_change_of_merge,
    log_change_of_split,
    log_odds,
    make_merge,
    make_split,
    open_sides,
    refresh,
)
from ewens_widgets.sampling.kernel.partition_changes import count_moved, gather_members, single_split
from ewens_widgets.sampling.kernel.workspace import (
    AnyProblem,
    AnyWorkspace,
    Outcome,
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

_MODULUS = 2147483647  # Of the "minimal standard" generator that orders the members.


@jit
def shuffle(workspace: AnyWorkspace, count: int, item: int, partner: int, uniform: float) -> None:
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
def _allocate(
    problem: AnyProblem,
    workspace: AnyWorkspace,
    count: int,
    merging: bool,
    replay: bool,
    outcome: Outcome,
    rng: np.random.Generator,
) -> float:
    """Allocate the members in their order to the sides of the first two; return the log probability.

    With `replay` the sides are given and only their probability is found; otherwise they are drawn. A merge
    (`merging`) must have been set up before. The sides are weighed afterwards.
    """
    members, sides = workspace.members, workspace.sides
    is_noted = outcome.flags[at.WANTED] == at.ACCOUNT
    open_sides(problem, workspace, merging)
    for side in range(2):
        sides[side] = side
        if is_noted:
            note(outcome, MEMBER, members[side], side, float(side))
    log_probability = 0.0
    for k in range(2, count):
        odds = log_odds(problem, workspace, members[k])
        # log of 1 / (1 + e^-odds), arranged so that the exponential cannot overflow.
        tail = math.log1p(math.exp(-abs(odds)))
        log_one = min(odds, 0.0) - tail
        log_zero = min(-odds, 0.0) - tail
        if not replay:
            sides[k] = 1 if rng.random() < math.exp(log_one) else 0
        log_probability += log_one if sides[k] == 1 else log_zero
        if is_noted:
            note(outcome, MEMBER, members[k], sides[k], math.exp(log_one))
        join_side(problem, workspace, members[k], sides[k])
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
    if outcome.flags[at.WANTED] == at.ACCOUNT:
        note(outcome, FORWARD, 0 if merging else 1, 0, log_forward)
        note(outcome, BACKWARD, 1 if merging else 0, 0, log_backward)
    slot, fresh = labels[members[0]], labels.shape[0]
    for k in range(count):
        apart = sides[k] == 1 and not merging
        outcome.labels[members[k]] = fresh if apart else slot


@jit
def informed_split_merge(
    problem: AnyProblem, workspace: AnyWorkspace, outcome: Outcome, rng: np.random.Generator
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
    wanted = outcome.flags[at.WANTED]
    merging = slot != other
    log_ratio = 0.0
    if merging:
        log_ratio = log_change_of_merge(problem, workspace, slot, other)
        # The probability of the reverse proposal is at most one, so often the merge is lost already.
        if log_ratio <= log_uniform and not wanted:
            return 0
    if wanted == at.ACCOUNT:
        note(outcome, CORES, item, partner, 0.0)
    count = gather_members(workspace, slot, other)
    shuffle(workspace, count, item, partner, order)
    log_probability = _allocate(problem, workspace, count, merging, merging, outcome, rng)
    if merging:
        log_ratio += log_probability
    else:
        moved = count_moved(workspace, count)
        log_ratio = log_change_of_split(problem, workspace, slot, moved) - log_probability
    accepted = log_uniform < log_ratio
    if wanted:
        labels, members, sides = workspace.labels, workspace.members, workspace.sides
        _tell(labels, members, sides, outcome, merging, count, log_ratio, log_uniform, log_probability)
    if not accepted:
        return 0
    if merging:
        make_merge(problem, workspace, slot, other)
    else:
        make_split(problem, workspace, slot)
    return 1


@dataclass(frozen=True)
class InformedSplitMerge(Move):
    """Split or merge by sequential allocation, informed by the likelihood."""

    name: ClassVar[str] = "informed-split-merge"
    title: ClassVar[str] = "informed split-merge"
    kernel = staticmethod(informed_split_merge)
    loop: ClassVar[str] = "ewens_widgets.sampling.driver"
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
    problem: AnyProblem, workspace: AnyWorkspace, count: int, outcome: Outcome, rng: np.random.Generator
) -> float:
    """Log probability of the sides of the members, the current state being the merged one."""
    refresh(problem, workspace)
    given = count > 0  # Not a constant, for which numba would compile the functions again.
    return _allocate(problem, workspace, count, not given, given, outcome, rng)


def log_proposal(
    posterior: Posterior,
    labels: ArrayLike,
    proposed: ArrayLike,
    theta_index: int,
    pair: tuple[int, int],
    order: Sequence[int] | None = None,
    nu_index: int = 0,
    sigma: FloatArray | None = None,
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
    nu_index, sigma
        Of own shapes: place of ν on its grid, and the packed scale Σ.
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
    workspace = make_workspace(problem, start, theta_index, 0.0, nu_index, sigma)
    workspace.members[: len(members)] = members
    # Side 0 is the one of the first object of the pair.
    workspace.sides[: len(members)] = moved[members] != moved[item]
    outcome = make_outcome(posterior.n_objects)
    return float(_replay(problem, workspace, len(members), outcome, np.random.default_rng(0)))
