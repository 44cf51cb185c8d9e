r"""Weights of an object in all clusters of common shapes, without a logarithm for each.

With object i taken out, leaving sizes :math:`m_b` and sums :math:`s_b`, it joins cluster b with probability
proportional to

.. math::

    \frac{W(m_b+1)}{W(m_b)} \left( \frac{1 + \theta (m_b + 1)}{1 + \theta m_b} \right)^{-d/2}
    \operatorname{scale}(M_b)^{-n/2} ,

and a new cluster with W(1) V(K+1)/V(K) in place of the first factor and :math:`m_b = 0` elsewhere;
:math:`M_b` is the scatter with the object in b. The first two factors depend on the size alone; their power
-2/n, the *handicap*, is tabulated and multiplies the scale. The weight of a candidate is then the power n/2
of the least such value over its own: whole powers by repeated squaring take less time than a logarithm and an
exponential for each candidate, and the largest weight is exactly 1. (For model I read nd for n, as its trace
stands for every feature; for model II the handicap, but for the share of V, is spread over the factors of the
scale.)

A candidate costs O(d) operations in every model. For III this is so because making the object a singleton
changes M only in a plane (see `scatter`), and joining it to cluster b only in the plane of :math:`s_b` and y:
with :math:`A = M^{-1}`, two products with A an object, and :math:`s_b^T A s_b` kept up to date, the
determinants follow from inner products.
"""

import math

import numpy as np

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.compiled import inlined, jit
from ewens_widgets.sampling.kernel import workspace as at
from ewens_widgets.sampling.kernel.partition_changes import log_opening
from ewens_widgets.sampling.kernel.scatter import (
    ILL_CONDITIONED,
    cholesky,
    dot,
    multiply,
    plane_determinant,
    plane_inverse,
    quadratic,
    split_coefficients,
)
from ewens_widgets.sampling.kernel.workspace import Problem, Workspace

# A factor of model II's scale is at least about 1 / (1 + θn), above 1e-16: the product of so many cannot
# underflow, whatever λ is, as its factor is kept near 1 (see `tabulate`).
_SAFE_FACTORS = 18
# Longer products are brought back by this factor whenever they are below its inverse, or above it. A power of
# two changes no digit.
_LIFT = 2.0**500
_LOG_LIFT = 500.0 * math.log(2.0)
# Models I and III: beyond this a new cluster is certain, or impossible; scales differ by far less.
_CERTAIN = 600.0


# Beyond so large a step of V a new cluster is certain, or impossible, under any model.
_LARGEST_STEP = 1e5


@inlined
def conditional_weights(problem: Problem, workspace: Workspace, item: int) -> int:
    """Write the weights of an object's candidates, the largest 1, to `weights`; return their number.

    What `tabulate` writes must be up to date.
    """
    count = write_values(problem, workspace, item)
    powers(workspace.candidates[0], count, problem.exponent, workspace.weights)
    return count


@inlined
def powers(values: FloatArray, count: int, exponent: int, weights: FloatArray) -> None:
    """Write (least / value) to the power exponent/2 to `weights`; the values are overwritten.

    Below e⁻⁴⁰ a weight is lost in the rounding of the sum: it is 0 at once, before its powers become
    denormal numbers, which are slow.
    """
    least = np.inf
    for b in range(count):
        # The scale is at least 1 / (1 + θn): only with the largest θ and a million equal rows can rounding
        # leave nothing of it in models I and II. Whether such a candidate is good cannot be told then; it is
        # never chosen. (III computes small ones afresh.)
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
def _overlaps(workspace: Workspace, vector: FloatArray, out: FloatArray) -> None:
    """Write the inner products of a vector with all cluster sums to `out`, running along the clusters."""
    n_clusters = workspace.integers[at.CLUSTERS]
    for b in range(n_clusters):
        out[b] = 0.0
    for r in range(vector.shape[0]):
        factor = vector[r]
        column = workspace.columns[r]
        for b in range(n_clusters):
            out[b] += factor * column[b]


@inlined
def tabulate(problem: Problem, workspace: Workspace) -> None:
    """Write down what stays the same until the partition changes; to be done after every change.

    For each slot this is the shrinkage now and with one more object, and the handicap (`slots`); for a new
    cluster, the factor that V adds to the handicap: ``reals[FRESH]`` of an object in company, ``reals[LONE]``
    of one that is alone, beside which there is one cluster less. For model II the factor is that times a
    power of _LIFT, ``reals[FRESH_LIFTS]`` or ``reals[LONE_LIFTS]``.
    """
    theta_index, n_clusters = workspace.integers[at.THETA], workspace.integers[at.CLUSTERS]
    shrinkage, handicap = problem.shrinkage[theta_index], problem.handicap[theta_index]
    present, following, handicaps = workspace.slots[0], workspace.slots[1], workspace.slots[2]
    for b in range(n_clusters):
        size = workspace.sizes[b]
        present[b], following[b], handicaps[b] = shrinkage[size], shrinkage[size + 1], handicap[size]
    fresh, lone = (
        log_opening(problem, workspace, n_clusters),
        log_opening(problem, workspace, max(n_clusters - 1, 1)),
    )
    _tabulate_opening(problem, workspace, fresh, at.FRESH)
    if lone == fresh:  # as it is under Ewens' prior
        workspace.reals[at.LONE], workspace.reals[at.LONE_LIFTS] = (
            workspace.reals[at.FRESH],
            workspace.reals[at.FRESH_LIFTS],
        )
    else:
        _tabulate_opening(problem, workspace, lone, at.LONE)


@inlined
def _tabulate_opening(problem: Problem, workspace: Workspace, log_step: float, place: int) -> None:
    """Write the factor of a step of V, and behind it its lifts."""
    log_factor = -2.0 * min(max(log_step, -_LARGEST_STEP), _LARGEST_STEP) / problem.exponent
    lifts = math.floor(log_factor / _LOG_LIFT + 0.5) if problem.model == 2 else 0.0
    workspace.reals[place + 1] = lifts
    workspace.reals[place] = math.exp(min(max(log_factor - lifts * _LOG_LIFT, -_CERTAIN), _CERTAIN))


@inlined
def _values_one(problem: Problem, workspace: Workspace, item: int) -> None:
    """Model I: write scale times handicap with the object in each slot, and in a new one (but for λ)."""
    shrinkage = problem.shrinkage[workspace.integers[at.THETA]]
    vector = problem.coordinates[item]
    own = workspace.labels[item]
    own_size = workspace.sizes[own]
    handicap = problem.handicap[workspace.integers[at.THETA]]
    values, overlaps = workspace.candidates[0], workspace.candidates[1]
    present, following, handicaps = workspace.slots[0], workspace.slots[1], workspace.slots[2]
    _overlaps(workspace, vector, overlaps)
    square = dot(vector, vector)
    reduced = workspace.gram[own] - 2.0 * overlaps[own] + square
    base = (
        workspace.scatter[0] + shrinkage[own_size] * workspace.gram[own] - shrinkage[own_size - 1] * reduced
    )
    n_clusters = workspace.integers[at.CLUSTERS]
    for b in range(n_clusters):
        gram = workspace.gram[b]
        grown = gram + 2.0 * overlaps[b] + square
        values[b] = handicaps[b] * (base + present[b] * gram - following[b] * grown)
    values[n_clusters] = handicap[0] * (base - shrinkage[1] * square)
    values[own] = handicap[own_size - 1] * workspace.scatter[0]


@inlined
def _values_two(problem: Problem, workspace: Workspace, item: int) -> None:
    """Model II: the same, products over features; `candidates[1]` counts how often each was lifted."""
    shrinkage = problem.shrinkage[workspace.integers[at.THETA]]
    handicap = problem.handicap[workspace.integers[at.THETA]]
    n_features = problem.coordinates.shape[1]
    vector = problem.coordinates[item]
    own = workspace.labels[item]
    own_shrinkage = shrinkage[workspace.sizes[own]]
    rest_shrinkage = shrinkage[workspace.sizes[own] - 1]
    n_clusters = workspace.integers[at.CLUSTERS]
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
    theta = problem.theta[workspace.integers[at.THETA]]
    vector = problem.coordinates[item]
    own = workspace.labels[item]
    n_clusters = workspace.integers[at.CLUSTERS]
    values, with_items, scratch = workspace.candidates[0], workspace.candidates[1], workspace.candidates[2]
    grams, handicaps = workspace.candidates[3], workspace.slots[2]
    handicap = problem.handicap[workspace.integers[at.THETA]]
    size = float(workspace.sizes[own])
    coefficients, plane = workspace.coefficients, workspace.plane
    mean, gap = workspace.vectors[at.MEAN], workspace.vectors[at.GAP]
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
    least = determinant
    for b in range(n_clusters):
        joined = _joined(
            theta, n_objects, float(workspace.sizes[b]), grams[b], with_items[b], square, coefficients
        )
        values[b] = handicaps[b] * determinant * joined
        # The object's own slot counts it twice, and means nothing. A minimum would not notice a NaN.
        if b != own and not joined >= least:
            least = joined
    values[own] = handicap[workspace.sizes[own] - 1]
    if not least > ILL_CONDITIONED:
        _values_afresh(problem, workspace, item)


@jit
def _values_afresh(problem: Problem, workspace: Workspace, item: int) -> None:
    """Model III: the values where rounding has eaten up the products, as with huge θ and equal rows.

    The scatter of every candidate is summed over the objects as in `model.likelihood`, without subtracting.
    """
    own, n_clusters = workspace.labels[item], workspace.integers[at.CLUSTERS]
    handicap = problem.handicap[workspace.integers[at.THETA]]
    for target in range(n_clusters + (workspace.sizes[own] > 1)):
        others = workspace.sizes[target] - (target == own) if target < n_clusters else 0
        log_ratio = (
            _log_determinant_with(problem, workspace, item, target) - workspace.reals[at.LOG_DETERMINANT]
        )
        workspace.candidates[0, target] = handicap[others] * math.exp(log_ratio)


@jit
def _log_determinant_with(problem: Problem, workspace: Workspace, item: int, target: int) -> float:
    """Log determinant of M/n with the object in another slot; O(nd²) operations."""
    n_objects, n_features = problem.coordinates.shape
    theta = problem.theta[workspace.integers[at.THETA]]
    own, n_clusters = workspace.labels[item], workspace.integers[at.CLUSTERS]
    matrix, mean = workspace.matrix, workspace.vectors[at.MEAN]
    matrix[:] = 0.0
    for i in range(n_objects):
        slot = target if i == item else workspace.labels[i]
        joined = int(slot == target) - int(slot == own)
        size = joined + (workspace.sizes[slot] if slot < n_clusters else 0)
        for r in range(n_features):
            total = joined * problem.coordinates[item, r]
            if slot < n_clusters:
                total += workspace.sums[slot, r]
            mean[r] = total / size
        # Each member stands for its share of what the mean adds.
        for r in range(n_features):
            for c in range(r + 1):
                residuals = (problem.coordinates[i, r] - mean[r]) * (problem.coordinates[i, c] - mean[c])
                matrix[r, c] += (residuals + mean[r] * mean[c] / (1.0 + theta * size)) / n_objects
    return cholesky(matrix)


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
def write_values(problem: Problem, workspace: Workspace, item: int) -> int:
    """Write the values of an object's candidates to `candidates[0]`; return how many there are.

    Candidates are the slots, then a new cluster unless the object is alone already: its own slot then stands
    for that. What `tabulate` writes must be up to date.
    """
    own, n_clusters = workspace.labels[item], workspace.integers[at.CLUSTERS]
    alone = workspace.sizes[own] == 1
    if problem.model == 1:
        _values_one(problem, workspace, item)
    elif problem.model == 2:
        _values_two(problem, workspace, item)
    else:
        _values_three(problem, workspace, item)
    values = workspace.candidates[0]
    # An object that is alone has its own slot in place of a new one.
    opening = at.LONE if alone else at.FRESH
    fresh = own if alone else n_clusters
    values[fresh] *= workspace.reals[opening]
    new_lifts = workspace.reals[opening + 1]
    if problem.model == 2 and (problem.coordinates.shape[1] > _SAFE_FACTORS or new_lifts != 0.0):
        lifts = workspace.candidates[1]
        lifts[fresh] -= new_lifts
        _level(values, lifts, n_clusters if alone else n_clusters + 1)
    return n_clusters if alone else n_clusters + 1
