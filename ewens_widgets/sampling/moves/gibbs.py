r"""Gibbs sweep: every object in turn is drawn from its exact conditional over all clusters and a new one.

With object i taken out, leaving sizes :math:`m_b` and sums :math:`s_b`, it joins cluster b with probability
proportional to

.. math::

    m_b \left( \frac{1 + \theta (m_b + 1)}{1 + \theta m_b} \right)^{-d/2} \operatorname{scale}(M_b)^{-n/2} ,

and a new cluster with :math:`\lambda` in place of :math:`m_b` and :math:`m_b = 0` elsewhere; :math:`M_b` is
the scatter with the object in b. A candidate costs O(d) operations in every model. For III this is so
because making the object a singleton changes M only in a plane (see `kernel.scatter`), and joining it to b
only in the plane of :math:`s_b` and y: with :math:`A = M^{-1}`, two products with A an object, and
:math:`s_b^T A s_b` kept up to date, the determinants follow from inner products.

The sweep is deterministic in its order, so it leaves the posterior invariant but is not reversible; each
single draw is.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.concentration import Gamma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling.compiled import entry, inlined, jit
from ewens_widgets.sampling.kernel.parameters import choose, from_logs
from ewens_widgets.sampling.kernel.partition_changes import relocate
from ewens_widgets.sampling.kernel.scatter import (
    dot,
    log_scale,
    multiply,
    plane_determinant,
    plane_inverse,
    refresh,
    split_coefficients,
)
from ewens_widgets.sampling.kernel.workspace import (
    CLUSTERS,
    LOG_CONCENTRATION,
    LOG_DETERMINANT,
    THETA,
    Problem,
    Workspace,
    make_problem,
    make_workspace,
)

__all__ = ["Gibbs", "conditional_log_weights", "conditional_probabilities", "gibbs_sweep"]

# A factor of model II's scale is at least 1 / (1 + θn), above 1e-16: the product of so many cannot underflow.
_SAFE_FACTORS = 18


@dataclass(frozen=True)
class Gibbs:
    """A full sweep of exact single-object draws."""

    name: ClassVar[str] = "gibbs"


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
def _scales_one(problem: Problem, workspace: Workspace, item: int) -> None:
    """Model I: write the scale with the object in each slot, and in a new one, to `candidates[0]`."""
    shrinkage = problem.shrinkage[workspace.integers[THETA]]
    vector = problem.coordinates[item]
    own = workspace.labels[item]
    own_size = workspace.sizes[own]
    scales, overlaps = workspace.candidates[0], workspace.candidates[1]
    _overlaps(workspace, vector, overlaps)
    square = dot(vector, vector)
    reduced = workspace.gram[own] - 2.0 * overlaps[own] + square
    base = (
        workspace.scatter[0] + shrinkage[own_size] * workspace.gram[own] - shrinkage[own_size - 1] * reduced
    )
    n_clusters = workspace.integers[CLUSTERS]
    for b in range(n_clusters):
        size = workspace.sizes[b]
        gram = workspace.gram[b]
        grown = gram + 2.0 * overlaps[b] + square
        scales[b] = base + shrinkage[size] * gram - shrinkage[size + 1] * grown
    scales[n_clusters] = base - shrinkage[1] * square


@inlined
def _scales_two(problem: Problem, workspace: Workspace, item: int) -> None:
    """Model II: the same, a product over features; `candidates[1]` takes the logs of what would underflow."""
    shrinkage = problem.shrinkage[workspace.integers[THETA]]
    n_features = problem.coordinates.shape[1]
    vector = problem.coordinates[item]
    own = workspace.labels[item]
    own_shrinkage = shrinkage[workspace.sizes[own]]
    rest_shrinkage = shrinkage[workspace.sizes[own] - 1]
    n_clusters = workspace.integers[CLUSTERS]
    scales, logs = workspace.candidates[0], workspace.candidates[1]
    present, following = workspace.candidates[2], workspace.candidates[3]
    for b in range(n_clusters):
        scales[b] = 1.0
        logs[b] = 0.0
        present[b] = shrinkage[workspace.sizes[b]]
        following[b] = shrinkage[workspace.sizes[b] + 1]
    scales[n_clusters] = 1.0
    logs[n_clusters] = 0.0
    for r in range(n_features):
        value = vector[r]
        own_sum = workspace.sums[own, r]
        rest = own_sum - value
        base = workspace.scatter[r] + own_shrinkage * own_sum * own_sum - rest_shrinkage * rest * rest
        column = workspace.columns[r]
        for b in range(n_clusters):
            grown = column[b] + value
            scales[b] *= base + present[b] * column[b] * column[b] - following[b] * grown * grown
        scales[n_clusters] *= base - shrinkage[1] * value * value
        # Looking for small products takes a third of the time; eight more factors cannot underflow.
        if n_features > _SAFE_FACTORS and r % 8 == 7:
            for b in range(n_clusters + 1):
                if 0.0 < scales[b] < 1e-150:
                    logs[b] += math.log(scales[b])
                    scales[b] = 1.0


@inlined
def _scales_three(problem: Problem, workspace: Workspace, item: int) -> None:
    """Model III: the same, determinants relative to the present one, from products with A p and A q."""
    n_objects = float(problem.coordinates.shape[0])
    theta = problem.theta[workspace.integers[THETA]]
    vector = problem.coordinates[item]
    own = workspace.labels[item]
    n_clusters = workspace.integers[CLUSTERS]
    scales, with_items, scratch = workspace.candidates[0], workspace.candidates[1], workspace.candidates[2]
    grams = workspace.candidates[3]
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
            grams[b] = workspace.gram[b] - (
                plane[0] * along_mean * along_mean
                + 2.0 * plane[1] * along_mean * along_gap
                + plane[2] * along_gap * along_gap
            )
    scales[n_clusters] = determinant
    for b in range(n_clusters):
        scales[b] = determinant * _joined(
            theta, n_objects, float(workspace.sizes[b]), grams[b], with_items[b], square, coefficients
        )


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
def conditional_log_weights(
    problem: Problem, workspace: Workspace, item: int, present_log_scale: float
) -> int:
    """Write the log weights of the object's conditional to `weights`; return how many candidates there are.

    Candidates are the slots, then a new cluster unless the object is alone already: its own slot then stands
    for that. A candidate whose weight is below e⁻⁴⁰ of the present cluster's gets minus infinity at once,
    which saves its logarithm: `from_logs` would drop it anyway.
    """
    log_grown = problem.log_grown[workspace.integers[THETA]]
    n_objects, n_features = problem.coordinates.shape
    half_features = 0.5 * n_features
    # The exponent of the scale: the trace of model I counts once for each feature.
    power = 0.5 * n_objects * n_features if problem.model == 1 else 0.5 * n_objects
    log_concentration = workspace.reals[LOG_CONCENTRATION]
    n_clusters = workspace.integers[CLUSTERS]
    own = workspace.labels[item]
    log_offset = 0.0
    if problem.model == 1:
        _scales_one(problem, workspace, item)
    elif problem.model == 2:
        _scales_two(problem, workspace, item)
    else:
        _scales_three(problem, workspace, item)
        log_offset = workspace.reals[LOG_DETERMINANT]
    scales, logs, weights = workspace.candidates[0], workspace.candidates[1], workspace.weights
    own_size = workspace.sizes[own] - 1
    own_seat = log_concentration if own_size == 0 else problem.log_size[own_size]
    own_terms = own_seat - half_features * (log_grown[own_size + 1] - log_grown[own_size])
    own_weight = own_terms - 0.5 * n_objects * present_log_scale
    most = max(problem.log_size[n_objects], log_concentration)
    limit = math.exp(min((most + 40.0 - own_weight) / power - log_offset, 700.0))
    for b in range(n_clusters + 1):
        shift = logs[b] if problem.model == 2 else log_offset
        if scales[b] > limit and (problem.model != 2 or shift == 0.0):
            weights[b] = -np.inf
        elif b != own:
            size = 0 if b == n_clusters else workspace.sizes[b]
            seat = log_concentration if size == 0 else problem.log_size[size]
            terms = seat - half_features * (log_grown[size + 1] - log_grown[size])
            weights[b] = terms - power * (math.log(scales[b]) + shift)
    weights[own] = own_weight
    return n_clusters if own_size == 0 else n_clusters + 1


@entry
def _conditional(problem: Problem, workspace: Workspace, item: int) -> int:
    refresh(problem, workspace)
    return conditional_log_weights(problem, workspace, item, log_scale(problem, workspace))


def conditional_probabilities(
    posterior: Posterior, labels: ArrayLike, item: int, theta_index: int, concentration: float | None = None
) -> FloatArray:
    """Probabilities that an object joins each cluster (canonical), and a new one unless it is alone."""
    prior = posterior.concentration
    value = concentration if concentration is not None else prior.mean if isinstance(prior, Gamma) else prior
    problem = make_problem(posterior)
    start = check_labels(labels, posterior.n_objects)
    workspace = make_workspace(problem, start, theta_index, math.log(value))
    count = _conditional(problem, workspace, item)
    weights = np.exp(workspace.weights[:count] - workspace.weights[:count].max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


@jit
def gibbs_sweep(problem: Problem, workspace: Workspace, rng: np.random.Generator) -> int:
    """Draw every object once, in order; return how many changed their cluster."""
    changed = 0
    present = log_scale(problem, workspace)
    for item in range(problem.coordinates.shape[0]):
        count = conditional_log_weights(problem, workspace, item, present)
        from_logs(workspace.weights, count)
        target = choose(workspace.weights, count, rng.random())
        if target >= 0 and target != workspace.labels[item]:
            relocate(problem, workspace, item, target)
            present = log_scale(problem, workspace)
            changed += 1
    return changed
