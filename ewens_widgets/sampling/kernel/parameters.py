r"""Draws of the two parameters given the partition: θ on its grid, and λ where it has a prior.

θ has the exact discrete conditional

.. math:: p(\theta_g \mid B, Y) \propto p(\theta_g) \, L(B, \theta_g) .

λ with a Gamma(a, b) prior is drawn by the auxiliary variable of Escobar & West (1995): with K clusters
among n objects,

.. math::

    \eta \mid \lambda \sim \text{Beta}(\lambda + 1, n), \qquad
    \lambda \mid \eta \sim \pi \, \text{Gamma}(a + K, \, b - \log\eta) + (1 - \pi) \, \text{Gamma}(a + K -
    1, \, b - \log\eta),

where :math:`\pi / (1 - \pi) = (a + K - 1) / (n (b - \log\eta))`.
"""

import math

import numpy as np

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.compiled import inlined, jit
from ewens_widgets.sampling.kernel.scatter import cholesky, dot, fill_scatter_matrix, log_product, refresh
from ewens_widgets.sampling.kernel.workspace import (
    CHANGED,
    CLUSTERS,
    LOG_CONCENTRATION,
    THETA,
    Problem,
    Workspace,
)

__all__ = ["choose", "draw_concentration", "draw_theta", "from_logs", "theta_log_weights"]


@inlined
def from_logs(weights: FloatArray, count: int) -> None:
    """Replace log weights by weights, the largest of them 1."""
    highest = weights[0]
    for k in range(1, count):
        highest = max(highest, weights[k])
    for k in range(count):
        # Below exp(-40) a weight is lost in the rounding of the sum, so its exponential need not be taken.
        gap = weights[k] - highest
        weights[k] = math.exp(gap) if gap > -40.0 else 0.0


@inlined
def choose(weights: FloatArray, count: int, uniform: float) -> int:
    """Pick one of `count` indices in proportion to their weights; −1 where none is positive."""
    total = 0.0
    for k in range(count):
        total += weights[k]
    target = uniform * total
    chosen = -1
    for k in range(count):
        if weights[k] > 0.0:
            chosen = k
            target -= weights[k]
            if target < 0.0:
                break
    return chosen


@jit
def theta_log_weights(problem: Problem, workspace: Workspace, out: FloatArray) -> None:
    """Write log p(θ) + log L(B, θ) for every θ of the grid to `out`."""
    n_objects, n_features = problem.coordinates.shape
    n_clusters = workspace.integers[CLUSTERS]
    if problem.model == 1:
        for b in range(n_clusters):
            workspace.gram[b] = dot(workspace.sums[b], workspace.sums[b])
    for g in range(problem.theta.shape[0]):
        log_det_gamma = 0.0
        for b in range(n_clusters):
            log_det_gamma += problem.log_grown[g, workspace.sizes[b]]
        if problem.model == 1:
            trace = 1.0
            for b in range(n_clusters):
                trace -= problem.shrinkage[g, workspace.sizes[b]] * workspace.gram[b]
            scale = n_features * math.log(trace)
        elif problem.model == 2:
            diagonal = workspace.scatter
            diagonal[:] = 1.0
            for b in range(n_clusters):
                factor = problem.shrinkage[g, workspace.sizes[b]]
                for r in range(n_features):
                    diagonal[r] -= factor * workspace.sums[b, r] * workspace.sums[b, r]
            scale = log_product(diagonal)
        else:
            fill_scatter_matrix(problem, workspace, g, workspace.matrix)
            scale = cholesky(workspace.matrix)
        out[g] = problem.log_theta_prior[g] - 0.5 * n_features * log_det_gamma - 0.5 * n_objects * scale


@inlined
def draw_theta(problem: Problem, workspace: Workspace, weights: FloatArray, rng: np.random.Generator) -> None:
    """Draw θ, write its conditional probabilities to `weights`, and compute the scatter for the new value.

    Most moves of the paper are rejected: the weights are kept for as long as the partition stays the same.
    """
    kept = workspace.theta_weights
    if workspace.integers[CHANGED] == 1:
        theta_log_weights(problem, workspace, kept)
        from_logs(kept, kept.shape[0])
        workspace.integers[CHANGED] = 0
    chosen = choose(kept, kept.shape[0], rng.random())
    if chosen >= 0:
        workspace.integers[THETA] = chosen
    total = 0.0
    for g in range(kept.shape[0]):
        total += kept[g]
    for g in range(kept.shape[0]):
        weights[g] = kept[g] / total
    refresh(problem, workspace)


@jit
def draw_concentration(workspace: Workspace, shape: float, rate: float, rng: np.random.Generator) -> None:
    """Draw λ given the number of clusters."""
    n_objects = workspace.labels.shape[0]
    n_clusters = workspace.integers[CLUSTERS]
    concentration = math.exp(workspace.reals[LOG_CONCENTRATION])
    auxiliary = rng.beta(concentration + 1.0, float(n_objects))
    inverse_scale = rate - math.log(auxiliary)
    odds = (shape + n_clusters - 1.0) / (n_objects * inverse_scale)
    extra = 1.0 if rng.random() * (1.0 + odds) < odds else 0.0
    drawn = rng.standard_gamma(shape + n_clusters - 1.0 + extra) / inverse_scale
    # The logarithm is what the moves use; a draw that underflows to zero would poison it.
    workspace.reals[LOG_CONCENTRATION] = math.log(max(drawn, 1e-300))
