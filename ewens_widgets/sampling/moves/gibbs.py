r"""Gibbs sweep: every object in turn is drawn from its exact conditional over all clusters and a new one.

With object i taken out, leaving sizes :math:`m_b` and sums :math:`s_b`, it joins cluster b with probability
proportional to

.. math::

    m_b \left( \frac{1 + \theta (m_b + 1)}{1 + \theta m_b} \right)^{-d/2} \operatorname{scale}(M_b)^{-n/2} ,

and a new cluster with :math:`\lambda` in place of :math:`m_b` and :math:`m_b = 0` elsewhere; :math:`M_b` is
the scatter with the object in b. The first two factors depend on the size alone; their power -2/n, the
*handicap*, is tabulated and multiplies the scale. The weight of a candidate is then the power n/2 of the
least such value over its own: whole powers by repeated squaring take less time than a logarithm and an
exponential for each candidate, and the largest weight is exactly 1. (For model I read nd for n, as its trace
stands for every feature; for model II the handicap, but for the share of λ, is spread over the factors of the
scale.)

The sweep is deterministic in its order, so it leaves the posterior invariant but is not reversible; each
single draw is. Seen as a proposal, :math:`q(B^* \mid B)` is the probability of the cluster drawn, and
:math:`q(B \mid B^*)` that of the cluster it came from, as the conditional of an object does not depend on
where it is: the ratio of a draw is 1, and it is always accepted.

A candidate costs O(d) operations in every model. For III this is so because making the object a singleton
changes M only in a plane (see `kernel.scatter`), and joining it to cluster b only in the plane of
:math:`s_b` and y: with :math:`A = M^{-1}`, two products with A an object, and :math:`s_b^T A s_b` kept up to
date, the determinants follow from inner products.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.partition import canonical_labels, check_labels
from ewens_widgets.sampling.compiled import entry, inlined, jit
from ewens_widgets.sampling.kernel.parameters import choose
from ewens_widgets.sampling.kernel.partition_changes import relocate
from ewens_widgets.sampling.kernel.scatter import (
    dot,
    multiply,
    plane_determinant,
    plane_inverse,
    quadratic,
    refresh,
    split_coefficients,
)
from ewens_widgets.sampling.kernel.workspace import (
    ACCOUNT,
    CLUSTERS,
    LOG_CONCENTRATION,
    LONE_FACTOR,
    LONE_LIFTS,
    THETA,
    WANTED,
    Outcome,
    Problem,
    Workspace,
    make_problem,
    make_workspace,
    note,
)
from ewens_widgets.sampling.moves.move import (
    OWN,
    BareProposal,
    Choice,
    Factor,
    Move,
    Notes,
    Scene,
    Way,
    count,
    frozen,
)

__all__ = ["Gibbs", "conditional_probabilities", "gibbs_sweep"]

# Notes: a slot and its weight; the object, the slot that it was drawn to join, and the uniform draw.
_CANDIDATE, _DRAWN = OWN, OWN + 1
# A factor of model II's scale is at least about 1 / (1 + θn), above 1e-16: the product of so many cannot
# underflow, whatever λ is, as its factor is kept near 1 (see `_tabulate`).
_SAFE_FACTORS = 18
# Longer products are brought back by this factor whenever they are below its inverse, or above it. A power of
# two changes no digit.
_LIFT = 2.0**500
_LOG_LIFT = 500.0 * math.log(2.0)
# Models I and III: beyond this a new cluster is certain, or impossible; scales differ by far less.
_CERTAIN = 600.0


@jit
def gibbs_sweep(
    problem: Problem,
    workspace: Workspace,
    outcome: Outcome,
    first: int,
    last: int,
    rng: np.random.Generator,
) -> int:
    """Draw the objects from `first` on, before `last`, in order; return how many changed their cluster."""
    changed = 0
    _tabulate(problem, workspace)
    for item in range(first, last):
        candidates = _conditional_weights(problem, workspace, item)
        uniform = rng.random()
        target = choose(workspace.weights, candidates, uniform)
        if outcome.flags[WANTED] == ACCOUNT:
            _note_draw(outcome, workspace.weights, candidates, item, target, uniform)
        if target >= 0 and target != workspace.labels[item]:
            relocate(problem, workspace, item, target)
            _tabulate(problem, workspace)
            changed += 1
    return changed


@jit
def _note_draw(
    outcome: Outcome, weights: FloatArray, candidates: int, item: int, target: int, uniform: float
) -> None:
    """Note the weights of the candidates, and which of them was drawn."""
    for b in range(candidates):
        note(outcome, _CANDIDATE, b, 0, weights[b])
    note(outcome, _DRAWN, item, target, uniform)


@entry
def _noted_draw(
    problem: Problem, workspace: Workspace, outcome: Outcome, item: int, rng: np.random.Generator
) -> None:
    """Make the draw of one object, for somebody who looks on."""
    refresh(problem, workspace)
    gibbs_sweep(problem, workspace, outcome, item, item + 1, rng)


@dataclass(frozen=True)
class Gibbs(Move):
    """A full sweep of exact single-object draws."""

    name: ClassVar[str] = "gibbs"
    title: ClassVar[str] = "Gibbs draw"
    kernel = staticmethod(gibbs_sweep)
    is_sweep: ClassVar[bool] = True
    draw = staticmethod(_noted_draw)

    def account(self, notes: Notes) -> BareProposal:
        """An object whose turn it is, and the cluster that was drawn."""
        item, drawn, uniform = notes.of(_DRAWN)[0]
        chosen = drawn if drawn >= 0 else int(notes.slots[item])  # Without any weight it stays.
        weights = np.array([weight for *_, weight in notes.of(_CANDIDATE)])
        probabilities = weights / weights.sum()
        slots, n_objects = notes.slots, notes.slots.size
        own_probability = float(probabilities[slots[item]])
        by_object = np.append(probabilities, 0.0)[slots]
        by_object[item] = own_probability
        # An object of each candidate, other than the one that is drawn; none of a new cluster.
        others = [notes.members(slot) for slot in range(probabilities.size)]
        examples = tuple(tuple(members[members != item][:1].tolist()) for members in others)
        order = np.full(n_objects, 1.0 / n_objects)
        joined = notes.members(chosen)
        after = slots.copy()
        after[item] = chosen
        log_forward = math.log(probabilities[chosen])
        log_backward = math.log(own_probability) if own_probability > 0.0 else -math.inf
        return BareProposal(
            labels=notes.labels,
            proposed=frozen(canonical_labels(after)),
            kind="draw",
            choices=(
                Choice("object whose turn it is", order, item, np.array([item]), order),
                Choice("cluster to join", probabilities, chosen, joined, by_object, examples, uniform),
            ),
            forward=Way(log_forward, (Factor("the cluster drawn", log_forward),)),
            backward=Way(log_backward, (Factor("the cluster it came from", log_backward),)),
        )

    def tell(self, account: BareProposal) -> Iterator[Scene]:
        """Tell whose turn it is, the candidates, and the draw."""
        item, target = account.choices
        yield Scene(
            "choice",
            "An object",
            f"It is the turn of object {int(item.objects[0]) + 1} of {account.labels.size}. It leaves its "
            "cluster for a moment.",
            ringed=item.objects,
        )
        sizes = np.bincount(account.labels)
        n_options, best = target.probabilities.size, float(target.probabilities.max())
        yield Scene(
            "target",
            "The candidates",
            f"It may join one of {count(sizes.size, 'cluster')} or found a new one: "
            f"{count(n_options, 'candidate')}, the likeliest with probability {best:.3g}. Each has the exact "
            "conditional probability: prior times likelihood with the object there.",
            ringed=item.objects,
            shares=target.by_object,
        )
        own = int(account.labels[item.objects[0]])
        stays = account.proposed is not None and np.array_equal(account.labels, account.proposed)
        size = int(np.setdiff1d(target.objects, item.objects).size)
        where = "a cluster of its own" if size == 0 else f"a cluster of {count(size, 'other')}"
        origin = "" if stays else f"; it came from one of {count(int(sizes[own]), 'object')}"
        verb = "It stays in" if stays else "It joins" if size else "It founds"
        yield Scene(
            "draw",
            "The draw",
            f"{verb} {where}, drawn with probability {target.probability:.3g}{origin}.",
            colours="after",
            ringed=item.objects,
        )


@entry
def _conditional(problem: Problem, workspace: Workspace, item: int) -> int:
    refresh(problem, workspace)
    _tabulate(problem, workspace)
    return _conditional_weights(problem, workspace, item)


def conditional_probabilities(
    posterior: Posterior, labels: ArrayLike, item: int, theta_index: int, concentration: float | None = None
) -> FloatArray:
    """Probabilities that an object joins each cluster (canonical), and a new one unless it is alone.

    Those below e⁻⁴⁰ times the largest are 0: the sampler does not tell them from nothing either.
    """
    prior = posterior.concentration
    value = concentration if concentration is not None else prior.mean if isinstance(prior, Gamma) else prior
    problem = make_problem(posterior)
    start = check_labels(labels, posterior.n_objects)
    workspace = make_workspace(problem, start, theta_index, math.log(value))
    count = _conditional(problem, workspace, item)
    weights = workspace.weights[:count]
    return np.asarray(weights / weights.sum(), dtype=np.float64)


@inlined
def _powers(values: FloatArray, count: int, exponent: int, weights: FloatArray) -> None:
    """Write (least / value) to the power exponent/2 to `weights`; the values are overwritten.

    Below e⁻⁴⁰ a weight is lost in the rounding of the sum: it is 0 at once, before its powers become
    denormal numbers, which are slow.
    """
    least = np.inf
    for b in range(count):
        # With huge θ and equal rows rounding may leave no scale at all. Whether such a candidate is good
        # cannot be told then; it is never chosen.
        values[b] = values[b] if values[b] > 0.0 else np.inf
        least = min(least, values[b])
    smallest = math.exp(-80.0 / exponent)
    for b in range(count):
        ratio = least / values[b]
        values[b] = ratio if ratio > smallest else 0.0
    odd = exponent % 2 == 1
    for b in range(count):
        weights[b] = math.sqrt(values[b]) if odd else 1.0
    left = exponent // 2
    while left > 0:
        if left % 2 == 1:
            for b in range(count):
                weights[b] *= values[b]
        left //= 2
        if left > 0:
            for b in range(count):
                values[b] *= values[b]


@inlined
def _conditional_weights(problem: Problem, workspace: Workspace, item: int) -> int:
    """Write the weights of an object's candidates, the largest 1, to `weights`; return their number."""
    count = _write_values(problem, workspace, item)
    _powers(workspace.candidates[0], count, problem.exponent, workspace.weights)
    return count


@inlined
def _overlaps(workspace: Workspace, vector: FloatArray, out: FloatArray) -> None:
    """Write the inner products of a vector with all cluster sums to `out`, running along the clusters."""
    n_clusters = workspace.integers[CLUSTERS]
    for b in range(n_clusters):
        out[b] = 0.0
    for r in range(vector.shape[0]):
        factor = vector[r]
        column = workspace.columns[r]
        for b in range(n_clusters):
            out[b] += factor * column[b]


@inlined
def _tabulate(problem: Problem, workspace: Workspace) -> None:
    """Write down what stays the same until the partition changes; to be done after every change.

    For each slot this is the shrinkage now and with one more object, and the handicap (`slots`); for a new
    cluster, which has λ in place of a size, the factor that λ adds to the handicap. For model II that factor
    is `reals[LONE_FACTOR]` times a power of _LIFT, `reals[LONE_LIFTS]`.
    """
    theta_index, n_clusters = workspace.integers[THETA], workspace.integers[CLUSTERS]
    shrinkage, handicap = problem.shrinkage[theta_index], problem.handicap[theta_index]
    present, following, handicaps = workspace.slots[0], workspace.slots[1], workspace.slots[2]
    for b in range(n_clusters):
        size = workspace.sizes[b]
        present[b], following[b], handicaps[b] = shrinkage[size], shrinkage[size + 1], handicap[size]
    log_factor = -2.0 * workspace.reals[LOG_CONCENTRATION] / problem.exponent
    lifts = math.floor(log_factor / _LOG_LIFT + 0.5) if problem.model == 2 else 0.0
    workspace.reals[LONE_LIFTS] = lifts
    workspace.reals[LONE_FACTOR] = math.exp(min(max(log_factor - lifts * _LOG_LIFT, -_CERTAIN), _CERTAIN))


@inlined
def _values_one(problem: Problem, workspace: Workspace, item: int) -> None:
    """Model I: write scale times handicap with the object in each slot, and in a new one (but for λ)."""
    shrinkage = problem.shrinkage[workspace.integers[THETA]]
    vector = problem.coordinates[item]
    own = workspace.labels[item]
    own_size = workspace.sizes[own]
    handicap = problem.handicap[workspace.integers[THETA]]
    values, overlaps = workspace.candidates[0], workspace.candidates[1]
    present, following, handicaps = workspace.slots[0], workspace.slots[1], workspace.slots[2]
    _overlaps(workspace, vector, overlaps)
    square = dot(vector, vector)
    reduced = workspace.gram[own] - 2.0 * overlaps[own] + square
    base = (
        workspace.scatter[0] + shrinkage[own_size] * workspace.gram[own] - shrinkage[own_size - 1] * reduced
    )
    n_clusters = workspace.integers[CLUSTERS]
    for b in range(n_clusters):
        gram = workspace.gram[b]
        grown = gram + 2.0 * overlaps[b] + square
        values[b] = handicaps[b] * (base + present[b] * gram - following[b] * grown)
    values[n_clusters] = handicap[0] * (base - shrinkage[1] * square)
    values[own] = handicap[own_size - 1] * workspace.scatter[0]


@inlined
def _values_two(problem: Problem, workspace: Workspace, item: int) -> None:
    """Model II: the same, products over features; `candidates[1]` counts how often each was lifted."""
    shrinkage = problem.shrinkage[workspace.integers[THETA]]
    handicap = problem.handicap[workspace.integers[THETA]]
    n_features = problem.coordinates.shape[1]
    vector = problem.coordinates[item]
    own = workspace.labels[item]
    own_shrinkage = shrinkage[workspace.sizes[own]]
    rest_shrinkage = shrinkage[workspace.sizes[own] - 1]
    n_clusters = workspace.integers[CLUSTERS]
    own_handicap = handicap[workspace.sizes[own] - 1]
    # The loop over slots counts the object twice in its own; the right product has a place behind the others.
    fresh, stay = n_clusters, n_clusters + 1
    values, lifts = workspace.candidates[0], workspace.candidates[1]
    present, following, handicaps = workspace.slots[0], workspace.slots[1], workspace.slots[2]
    for b in range(n_clusters + 2):
        values[b] = 1.0
        lifts[b] = 0.0
    for r in range(n_features):
        value = vector[r]
        own_sum = workspace.sums[own, r]
        rest = own_sum - value
        base = workspace.scatter[r] + own_shrinkage * own_sum * own_sum - rest_shrinkage * rest * rest
        column = workspace.columns[r]
        for b in range(n_clusters):
            grown = column[b] + value
            scale = base + present[b] * column[b] * column[b] - following[b] * grown * grown
            values[b] *= handicaps[b] * scale
        values[fresh] *= handicap[0] * (base - shrinkage[1] * value * value)
        values[stay] *= own_handicap * workspace.scatter[r]
        # Looking at the products takes a third of the time; with eight more factors they stay in range.
        if n_features > _SAFE_FACTORS and r % 8 == 7:
            _lift(values, lifts, n_clusters + 2)
    values[own], lifts[own] = values[stay], lifts[stay]


@inlined
def _lift(values: FloatArray, lifts: FloatArray, count: int) -> None:
    """Bring products that have become very small or large back into range, and count how often."""
    for b in range(count):
        if 0.0 < values[b] < 1.0 / _LIFT:
            values[b] *= _LIFT
            lifts[b] += 1.0
        elif values[b] > _LIFT:
            values[b] /= _LIFT
            lifts[b] -= 1.0


@inlined
def _level(values: FloatArray, lifts: FloatArray, count: int) -> None:
    """Lift all as often as the one that was lifted most; what is far above it becomes infinite."""
    most = -np.inf
    for b in range(count):
        if values[b] > 0.0:
            most = max(most, lifts[b])
    for b in range(count):
        while lifts[b] < most and values[b] < np.inf:
            values[b] = values[b] * _LIFT if values[b] < _LIFT else np.inf
            lifts[b] += 1.0


@inlined
def _values_three(problem: Problem, workspace: Workspace, item: int) -> None:
    """Model III: the same, with determinants relative to the present one, from products with A p and A q."""
    n_objects = float(problem.coordinates.shape[0])
    theta = problem.theta[workspace.integers[THETA]]
    vector = problem.coordinates[item]
    own = workspace.labels[item]
    n_clusters = workspace.integers[CLUSTERS]
    values, with_items, scratch = workspace.candidates[0], workspace.candidates[1], workspace.candidates[2]
    grams, handicaps = workspace.candidates[3], workspace.slots[2]
    handicap = problem.handicap[workspace.integers[THETA]]
    size = float(workspace.sizes[own])
    coefficients, plane = workspace.coefficients, workspace.plane
    mean, gap = workspace.vectors[0], workspace.vectors[1]
    determinant = 1.0
    if size == 1.0:
        multiply(workspace.inverse, vector, workspace.first)
        square = dot(vector, workspace.first)
        _overlaps(workspace, workspace.first, with_items)
        for b in range(n_clusters):
            grams[b] = workspace.gram[b]
    else:
        # Make it a singleton first, in thought: y = p + (1 - 1/m) q lies in the plane of that exchange.
        split_coefficients(theta, n_objects, size, 1.0, coefficients)
        for r in range(vector.shape[0]):
            mean[r] = workspace.sums[own, r] / size
            gap[r] = vector[r] - (workspace.sums[own, r] - vector[r]) / (size - 1.0)
        share = 1.0 - 1.0 / size
        multiply(workspace.inverse, mean, workspace.first)
        multiply(workspace.inverse, gap, workspace.second)
        _overlaps(workspace, workspace.first, with_items)
        _overlaps(workspace, workspace.second, scratch)
        gram_mean, crossed = dot(mean, workspace.first), dot(mean, workspace.second)
        gram_gap = dot(gap, workspace.second)
        alpha, beta, gamma = coefficients[0], coefficients[1], coefficients[2]
        determinant = plane_determinant(alpha, beta, gamma, gram_mean, crossed, gram_gap)
        plane_inverse(alpha, beta, gamma, gram_mean, crossed, gram_gap, determinant, plane)
        item_mean, item_gap = gram_mean + share * crossed, crossed + share * gram_gap
        out_mean = plane[0] * item_mean + plane[1] * item_gap
        out_gap = plane[1] * item_mean + plane[2] * item_gap
        square = item_mean + share * item_gap - item_mean * out_mean - item_gap * out_gap
        for b in range(n_clusters):
            along_mean, along_gap = with_items[b], scratch[b]
            with_items[b] = along_mean + share * along_gap - along_mean * out_mean - along_gap * out_gap
            grams[b] = workspace.gram[b] - quadratic(plane[0], plane[1], plane[2], along_mean, along_gap)
    values[n_clusters] = handicap[0] * determinant
    for b in range(n_clusters):
        joined = _joined(
            theta, n_objects, float(workspace.sizes[b]), grams[b], with_items[b], square, coefficients
        )
        values[b] = handicaps[b] * determinant * joined
    values[own] = handicap[workspace.sizes[own] - 1]


@inlined
def _joined(
    theta: float,
    n_objects: float,
    size: float,
    gram: float,
    overlap: float,
    square: float,
    scratch: FloatArray,
) -> float:
    """Determinant ratio of merging a singleton y into a cluster of sum s, from sᵀAs, sᵀAy and yᵀAy."""
    split_coefficients(theta, n_objects, size + 1.0, 1.0, scratch)
    mean_square, mean_item = gram / (size * size), overlap / size
    total = size + 1.0
    gram_mean = (gram + 2.0 * overlap + square) / (total * total)
    crossed = (overlap - size * mean_square + square - mean_item) / total
    gram_gap = square - 2.0 * mean_item + mean_square
    return plane_determinant(-scratch[0], -scratch[1], -scratch[2], gram_mean, crossed, gram_gap)


@inlined
def _write_values(problem: Problem, workspace: Workspace, item: int) -> int:
    """Write the values of an object's candidates to `candidates[0]`; return how many there are.

    Candidates are the slots, then a new cluster unless the object is alone already: its own slot then stands
    for that. What `_tabulate` writes must be up to date.
    """
    own, n_clusters = workspace.labels[item], workspace.integers[CLUSTERS]
    alone = workspace.sizes[own] == 1
    if problem.model == 1:
        _values_one(problem, workspace, item)
    elif problem.model == 2:
        _values_two(problem, workspace, item)
    else:
        _values_three(problem, workspace, item)
    values = workspace.candidates[0]
    factor, new_lifts = workspace.reals[LONE_FACTOR], workspace.reals[LONE_LIFTS]
    values[n_clusters] *= factor
    if alone:
        values[own] *= factor
    if problem.model == 2 and (problem.coordinates.shape[1] > _SAFE_FACTORS or new_lifts != 0.0):
        lifts = workspace.candidates[1]
        lifts[n_clusters] -= new_lifts
        if alone:
            lifts[own] -= new_lifts
        _level(values, lifts, n_clusters + 1)
    return n_clusters if alone else n_clusters + 1
