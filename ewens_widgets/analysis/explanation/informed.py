"""One proposal of the informed split-merge move."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ewens_widgets.analysis.explanation.context import Context, frozen
from ewens_widgets.analysis.explanation.proposal import Allocation, Choice, Factor, Proposal, Way
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.likelihood import cluster_statistics
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.moves.informed import InformedSplitMerge, log_proposal

__all__ = ["explain_informed"]

IntArray = NDArray[np.intp]

_MODULUS, _MULTIPLIER = 2147483647, 48271  # The generator that orders the members.


def explain_informed(context: Context, rng: np.random.Generator) -> Proposal:
    """Make one informed split-merge move with the next random numbers of `rng`, and say what it did."""
    n_objects = context.slots.size
    item = int(rng.random() * n_objects)
    partner = int(rng.random() * (n_objects - 1))
    partner += partner >= item
    order = rng.random()
    log_uniform = math.log(1.0 - rng.random())
    slot, other = int(context.slots[item]), int(context.slots[partner])
    is_merge = slot != other
    members = _in_order(np.flatnonzero(np.isin(context.slots, (slot, other))), item, partner, order)
    sides = (context.slots[members] == other).astype(np.int64) if is_merge else None
    allocation = _allocate(context, members, sides, rng)
    slots = context.slots.copy()
    if is_merge:
        slots[slots == other] = slot
    else:
        slots[members[allocation.sides == 1]] = context.n_clusters
    start, end = context.labels, frozen(canonical_labels(slots))
    merged, split = (end, start) if is_merge else (start, end)
    log_sides = log_proposal(
        context.posterior,
        merged,
        split,
        context.parameters.theta_index,
        (item, partner),
        members[2:].tolist(),
    )
    with np.errstate(divide="ignore"):
        log_parts = float(np.log(allocation.probability_of_sides[2:]).sum())
    certain = Way(0.0, (Factor("certain, given the pair", 0.0),))
    drawn = Way(log_sides, (Factor("each member on its side", log_parts),))
    return Proposal(
        move=InformedSplitMerge.name,
        kind="merge" if is_merge else "split",
        parameters=context.parameters,
        labels=start,
        proposed=end,
        choices=(_pair_choice(n_objects, item, partner),),
        allocation=allocation,
        forward=certain if is_merge else drawn,
        backward=drawn if is_merge else certain,
        log_uniform=log_uniform,
        changes=context.changes(end),
    )


def _pair_choice(n_objects: int, item: int, partner: int) -> Choice:
    """Describe the even choice of two objects."""
    n_pairs = n_objects * (n_objects - 1) // 2
    low, high = min(item, partner), max(item, partner)
    place = low * n_objects - low * (low + 1) // 2 + high - low - 1
    return Choice(
        "two objects",
        np.full(n_pairs, 1.0 / n_pairs),
        place,
        np.array([item, partner]),
        np.full(n_objects, 2.0 / n_objects),
    )


def _in_order(members: IntArray, item: int, partner: int, uniform: float) -> IntArray:
    """The pair first, then the others in the order that one number sets (as `sampling.moves.informed`)."""
    ordered: list[int] = members.tolist()
    seed = 1 + int(uniform * (_MODULUS - 2))
    for front, wanted in enumerate((item, partner)):
        place = ordered.index(wanted)
        ordered[front], ordered[place] = ordered[place], ordered[front]
    for place in range(len(ordered) - 1, 2, -1):
        seed = seed * _MULTIPLIER % _MODULUS
        other = 2 + seed * (place - 1) // _MODULUS
        ordered[place], ordered[other] = ordered[other], ordered[place]
    return np.array(ordered, dtype=np.intp)


def _allocate(
    context: Context, members: IntArray, given: NDArray[np.int64] | None, rng: np.random.Generator
) -> Allocation:
    """Put the members on the sides of the first two, one by one; where sides are given, only weigh them."""
    Y = context.posterior.coordinates
    precision = _merged_precision(context, members)
    sides = np.zeros(members.size, dtype=np.int64) if given is None else given.copy()
    sides[1] = 1 if given is None else sides[1]
    to_second = np.zeros(members.size)
    to_second[1] = 1.0
    sums, sizes = Y[members[:2]].copy(), np.ones(2)
    for place in range(2, members.size):
        vector = Y[members[place]]
        odds = _log_odds(vector, sums, sizes, context.parameters.theta, precision)
        to_second[place] = expit(odds)
        if given is None:
            sides[place] = 1 if rng.random() < to_second[place] else 0
        side = sides[place]
        sizes[side] += 1.0
        sums[side] += vector
    cores = int(members[0]), int(members[1])
    return Allocation(cores, members, to_second, frozen(sides), is_replay=given is not None)


def _merged_precision(context: Context, members: IntArray) -> FloatArray:
    """Inverse of Σ, plugged in as M/n of the state in which all members are one cluster (d × d)."""
    slots = context.slots.copy()
    slots[members] = slots[members[0]]
    Y, theta = context.posterior.coordinates, context.parameters.theta
    sizes, sums = cluster_statistics(Y, canonical_labels(slots))
    n_objects, n_features = Y.shape
    shrinkage = theta / (1.0 + theta * sizes) / n_objects
    scatter = np.eye(n_features) - (shrinkage[:, None] * sums).T @ sums
    model = context.posterior.model
    if model == "I":
        return np.asarray(np.eye(n_features) / (np.trace(scatter) / n_features), dtype=np.float64)
    if model == "II":
        return np.diag(1.0 / np.diag(scatter))
    return np.asarray(np.linalg.inv(scatter), dtype=np.float64)


def _log_odds(
    vector: FloatArray, sums: FloatArray, sizes: FloatArray, theta: float, precision: FloatArray
) -> float:
    """Log odds of the second side: size so far × Gaussian predictive, against the same of the first."""
    pulls = theta / (1.0 + theta * sizes)
    gaps = vector - pulls[:, None] * sums
    forms = np.einsum("sr,rq,sq->s", gaps, precision, gaps)
    log_weights = np.log(sizes) - 0.5 * vector.size * np.log1p(pulls) - 0.5 * forms / (1.0 + pulls)
    return float(log_weights[1] - log_weights[0])
