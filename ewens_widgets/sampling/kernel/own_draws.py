r"""Draws of the parameters of own shapes: θ and ν from discrete conditionals, Σ by two conjugate draws.

With :math:`B = \nu\Sigma + S` a cluster has :math:`|A| = |B| \, (1 - s^T B^{-1} s / \kappa)`, so that one
decomposition serves all values of θ. Those of ν need one each. Given Σ, the next value of ν is far away: with
ν, the common scale that fits the same clusters changes too, nearly so that :math:`a \, (\nu\Sigma)^{-1}`, the
mean of the clusters' precisions, stays. So ν is drawn twice: first given Σ times a power of
:math:`\nu / a`, which is drawn from ½ to 1 (a factor does not change the invariant prior of Σ, so that the
conditional is as simple), then given Σ itself.

Given θ and ν, the covariances of the clusters are drawn, as precisions, and then Σ given them:

.. math::

    \text{III:} \quad & \Omega_b \sim \text{Wishart}(a + n_b, A_b^{-1}), &
        \Sigma &\sim \text{Wishart}\bigl(K a, \; (\nu \textstyle\sum_b \Omega_b)^{-1}\bigr) \\
    \text{II:} \quad & \omega_{br} \sim \text{Gamma}\bigl(\tfrac{a + n_b}{2}, \tfrac{A_{br}}{2}\bigr), &
        \sigma_r^2 &\sim
        \text{Gamma}\bigl(\tfrac{K a}{2}, \tfrac{\nu}{2} \textstyle\sum_b \omega_{br}\bigr) \\
    \text{I:} \quad & \omega_b \sim \text{Gamma}\bigl(\tfrac{a + n_b d}{2}, \tfrac{A_b}{2}\bigr), &
        \sigma^2 &\sim \text{Gamma}\bigl(\tfrac{K a}{2}, \tfrac{\nu d}{2} \textstyle\sum_b \omega_b\bigr)

`gaps.draw_root` draws Wishart matrices. A Σ below the smallest pivot that the prior allows is not taken, and
the last one stays (with ν, where they are drawn together): a Metropolis step for the restricted prior.
"""

import math

import numpy as np

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.own_shapes import SMALLEST_PIVOT
from ewens_widgets.sampling.compiled import inlined, jit
from ewens_widgets.sampling.kernel import workspace as at
from ewens_widgets.sampling.kernel.centre import draw_own_centre, sum_clusters
from ewens_widgets.sampling.kernel.gaps import (
    draw_root,
    draw_unseen_precision,
    find_unseen,
    impute_cluster,
    write_gram,
)
from ewens_widgets.sampling.kernel.own_family import (
    base_factor,
    fill_volume,
    log_cluster,
    log_volume_at,
    refresh,
    renew,
)
from ewens_widgets.sampling.kernel.partition_changes import choose, from_logs, normalise
from ewens_widgets.sampling.kernel.scatter import cholesky, dot, log_product
from ewens_widgets.sampling.kernel.workspace import OwnProblem, OwnWorkspace

_LEAST_ALONG = 0.5
# Where κ is infinite, s sᵀ/κ is nothing.
_NOTHING_OFF = np.inf


@jit
def _solve_lower(factor: FloatArray, vector: FloatArray, out: FloatArray) -> None:
    """Solve L x = v for a lower triangle."""
    for r in range(vector.shape[0]):
        entry = vector[r]
        for c in range(r):
            entry -= factor[r, c] * out[c]
        out[r] = entry / factor[r, r]


@jit
def _add_theta_weights(problem: OwnProblem, workspace: OwnWorkspace, slot: int, out: FloatArray) -> None:
    """Add the log marginal likelihoods of a cluster for every θ, but for what does not depend on it."""
    size, nu_index = workspace.sizes[slot], workspace.integers[at.NU]
    n_features = problem.coordinates.shape[1]
    power = problem.half_degrees[nu_index] + problem.half_unit * size
    sums, squares, base = workspace.sums[slot], workspace.squares[slot], workspace.base
    log_whole = 0.0
    pull = 0.0
    if problem.model == 3:
        fill_volume(workspace, slot, problem.nu[nu_index], _NOTHING_OFF)
        log_whole = cholesky(workspace.matrix)
        _solve_lower(workspace.matrix, sums, workspace.first)
        pull = dot(workspace.first, workspace.first)
    elif problem.model == 1:
        pull = dot(sums, sums)
    for g in range(problem.theta.shape[0]):
        kappa = 1.0 / problem.theta[g] + size
        if problem.model == 3:
            # It is more than this, as S exceeds s sᵀ/n; rounding may leave less where θ is large.
            least = 1.0 / (problem.theta[g] * kappa)
            log_volume = log_whole + math.log(max(1.0 - pull / kappa, least))
        elif problem.model == 2:
            volume = workspace.first
            for r in range(n_features):
                volume[r] = max(base[0, r] + squares[0, r] - sums[r] * sums[r] / kappa, base[0, r])
            log_volume = log_product(volume)
        else:
            log_volume = math.log(max(base[0, 0] + squares[0, 0] - pull / kappa, base[0, 0]))
        out[g] -= power * log_volume + 0.5 * n_features * problem.log_grown[g, size]


@jit
def _draw_theta(problem: OwnProblem, workspace: OwnWorkspace, rng: np.random.Generator) -> None:
    """Draw θ given ν and Σ; `base` must be up to date."""
    weights = workspace.theta_weights
    for g in range(weights.shape[0]):
        weights[g] = problem.log_theta_prior[g]
    for b in range(workspace.integers[at.CLUSTERS]):
        _add_theta_weights(problem, workspace, b, weights)
    from_logs(weights, weights.shape[0])
    chosen = choose(weights, weights.shape[0], rng.random())
    if chosen >= 0:
        workspace.integers[at.THETA] = chosen


@jit
def _log_sigma_volume(problem: OwnProblem, workspace: OwnWorkspace) -> float:
    """Log |Σ|; of models I and II the sum of logarithms."""
    sigma = workspace.sigma
    if problem.model != 3:
        return log_product(sigma[0])
    for r in range(sigma.shape[0]):
        for c in range(r + 1):
            workspace.matrix[r, c] = sigma[r, c]
    return cholesky(workspace.matrix)


@inlined
def _sigma_ratio(problem: OwnProblem, present: int, nu_index: int, along: float) -> float:
    """How Σ changes with ν: not at all (0), so that a (νΣ)⁻¹ stays (1), or between these."""
    if along == 0.0:
        return 1.0
    before = base_factor(problem, present) / problem.half_degrees[present]
    after = base_factor(problem, nu_index) / problem.half_degrees[nu_index]
    return math.exp(along * math.log(before / after))


@jit
def _is_above_floor(problem: OwnProblem, workspace: OwnWorkspace, ratio: float) -> bool:
    """Whether Σ times this ratio is one that the prior allows."""
    smallest = np.inf
    if problem.model == 3:
        _log_sigma_volume(problem, workspace)  # leaves the Cholesky factor of Σ
        for r in range(workspace.matrix.shape[0]):
            smallest = min(smallest, workspace.matrix[r, r] * workspace.matrix[r, r])
    else:
        for r in range(workspace.sigma.shape[1]):
            smallest = min(smallest, workspace.sigma[0, r])
    return ratio * smallest > SMALLEST_PIVOT


@jit
def _draw_nu(problem: OwnProblem, workspace: OwnWorkspace, along: float, rng: np.random.Generator) -> None:
    """Draw ν given θ and Σ (`along` is 0), given θ and the mean of the precisions (1), or between these."""
    weights, present = workspace.nu_weights, workspace.integers[at.NU]
    log_sigma = _log_sigma_volume(problem, workspace)
    columns = 1 if problem.model == 1 else problem.coordinates.shape[1]
    for v in range(weights.shape[0]):
        half = problem.half_degrees[v]
        factor = base_factor(problem, v) * _sigma_ratio(problem, present, v, along)
        weights[v] = workspace.integers[at.CLUSTERS] * half * (log_sigma + columns * math.log(factor))
        for b in range(workspace.integers[at.CLUSTERS]):
            size = workspace.sizes[b]
            kappa = 1.0 / problem.theta[workspace.integers[at.THETA]] + size
            volume = log_volume_at(problem, workspace, b, factor, kappa, workspace.first)
            weights[v] += problem.log_constant[v, size] - (half + problem.half_unit * size) * volume
    from_logs(weights, weights.shape[0])
    chosen = choose(weights, weights.shape[0], rng.random())
    normalise(weights, weights)
    if chosen < 0 or chosen == present:
        return
    ratio = _sigma_ratio(problem, present, chosen, along)
    if along > 0.0 and not _is_above_floor(problem, workspace, ratio):
        return
    workspace.integers[at.NU] = chosen
    for r in range(workspace.sigma.shape[0]):
        for c in range(workspace.sigma.shape[1]):
            workspace.sigma[r, c] *= ratio


@jit
def _add_gram(root: FloatArray, factor: float, out: FloatArray) -> None:
    """Add factor · X Xᵀ, its lower triangle."""
    for r in range(root.shape[0]):
        for c in range(r + 1):
            out[r, c] += factor * dot(root[r], root[c])


@jit
def _take_gram(root: FloatArray, sigma: FloatArray, drawn: FloatArray, factor: FloatArray) -> None:
    """Make X Xᵀ the scale, unless a pivot is too small; `drawn` and `factor` are scratch."""
    size = root.shape[0]
    for r in range(size):
        for c in range(r + 1):
            drawn[r, c] = dot(root[r], root[c])
            factor[r, c] = drawn[r, c]
    cholesky(factor)
    for r in range(size):
        if not factor[r, r] * factor[r, r] > SMALLEST_PIVOT:
            return
    for r in range(size):
        for c in range(r + 1):
            sigma[r, c] = drawn[r, c]
            sigma[c, r] = drawn[r, c]


@jit
def _draw_matrix(problem: OwnProblem, workspace: OwnWorkspace, rng: np.random.Generator) -> None:
    """Model III: draw the precisions of the clusters, and then Σ."""
    nu_index, n_clusters = workspace.integers[at.NU], workspace.integers[at.CLUSTERS]
    nu, degrees = problem.nu[nu_index], 2.0 * problem.half_degrees[nu_index]
    total, root, matrix = workspace.base, workspace.triangle, workspace.matrix
    for r in range(total.shape[0]):
        for c in range(total.shape[0]):
            total[r, c] = 0.0
    theta = problem.theta[workspace.integers[at.THETA]]
    for b in range(n_clusters):
        kappa = 1.0 / theta + workspace.sizes[b]
        fill_volume(workspace, b, nu, kappa)
        cholesky(matrix)
        draw_root(matrix, degrees + workspace.sizes[b], rng, root)
        if problem.gaps.shape[0] > 0:
            precision = workspace.shape[b]  # `refresh` computes it again.
            write_gram(root, 1.0, precision)
            unseen = find_unseen(problem, workspace, b)
            if unseen > 0:
                draw_unseen_precision(workspace, unseen, nu, degrees, precision, root, rng)
            impute_cluster(problem, workspace, b, precision, 0, workspace.means[b], rng)
        _add_gram(root, nu, total)
        if problem.origin.shape[0] > 0:
            weight, image = 1.0 / (1.0 + theta * workspace.sizes[b]), workspace.second
            _add_gram(root, weight * workspace.sizes[b], workspace.pull)
            for c in range(image.shape[0]):
                image[c] = 0.0
                for r in range(image.shape[0]):
                    image[c] += root[r, c] * workspace.sums[b, r]
            for r in range(image.shape[0]):
                workspace.first[r] += weight * dot(root[r], image)
    cholesky(total)
    draw_root(total, n_clusters * degrees, rng, root)
    _take_gram(root, workspace.sigma, total, matrix)


@jit
def _draw_variances(problem: OwnProblem, workspace: OwnWorkspace, rng: np.random.Generator) -> None:
    """Models I and II: the same for each variance."""
    nu_index, n_clusters = workspace.integers[at.NU], workspace.integers[at.CLUSTERS]
    half, theta = problem.half_degrees[nu_index], problem.theta[workspace.integers[at.THETA]]
    sigma = workspace.sigma[0]
    factor = base_factor(problem, nu_index)
    for r in range(sigma.shape[0]):
        total = 0.0
        for b in range(n_clusters):
            size = workspace.sizes[b]
            kappa = 1.0 / theta + size
            sums = workspace.sums[b]
            off = dot(sums, sums) if problem.model == 1 else sums[r] * sums[r]
            base = factor * sigma[r]
            volume = max(base + workspace.squares[b, 0, r] - off / kappa, base)
            precision = 2.0 * rng.standard_gamma(half + problem.half_unit * size) / volume
            total += precision
            workspace.shape[b, 0, r] = precision  # `refresh` computes the shape again.
        drawn = 2.0 * rng.standard_gamma(n_clusters * half) / (factor * total)
        if drawn > SMALLEST_PIVOT:
            sigma[r] = drawn
    if problem.gaps.shape[0] > 0:
        for b in range(n_clusters):
            impute_cluster(problem, workspace, b, workspace.shape[b], 0, workspace.means[b], rng)
    if problem.origin.shape[0] > 0:
        _pull_variances(problem, workspace, theta)


@jit
def _pull_variances(problem: OwnProblem, workspace: OwnWorkspace, theta: float) -> None:
    """Models I and II: write what the draw of an unknown centre needs to `pull` and `first`."""
    for r in range(workspace.sigma.shape[1]):
        for b in range(workspace.integers[at.CLUSTERS]):
            size, sums = workspace.sizes[b], workspace.sums[b]
            weight = workspace.shape[b, 0, r] / (1.0 + theta * size)
            workspace.pull[0, r] += weight * size
            if problem.model == 2:
                workspace.first[r] += weight * sums[r]
            else:
                for c in range(sums.shape[0]):
                    workspace.first[c] += weight * sums[c]


@jit
def draw_parameters(
    problem: OwnProblem, workspace: OwnWorkspace, weights: FloatArray, rng: np.random.Generator
) -> None:
    """Draw θ, ν and Σ, write the conditional probabilities of θ to `weights`, and refresh all statistics."""
    has_gaps = problem.gaps.shape[0] > 0
    if has_gaps or problem.origin.shape[0] > 0:
        sum_clusters(problem.coordinates, workspace)
    renew(problem, workspace)
    _draw_theta(problem, workspace, rng)
    normalise(workspace.theta_weights, weights)
    _draw_nu(problem, workspace, _LEAST_ALONG + (1.0 - _LEAST_ALONG) * rng.random(), rng)
    _draw_nu(problem, workspace, 0.0, rng)
    for r in range(workspace.first.shape[0]):
        workspace.first[r] = 0.0
    for r in range(workspace.pull.shape[0]):
        for c in range(workspace.pull.shape[1]):
            workspace.pull[r, c] = 0.0
    if problem.model == 3:
        _draw_matrix(problem, workspace, rng)
    else:
        _draw_variances(problem, workspace, rng)
    if has_gaps:
        sum_clusters(problem.coordinates, workspace)
        workspace.integers[at.CHANGED] = 1
    if problem.origin.shape[0] > 0:
        draw_own_centre(problem, workspace, rng)
    refresh(problem, workspace)


@inlined
def log_joint(problem: OwnProblem, workspace: OwnWorkspace) -> float:
    """Log of the priors of θ, ν and Σ, likelihood, and the factors W of the prior of the partition."""
    n_features, nu = problem.coordinates.shape[1], problem.nu[workspace.integers[at.NU]]
    total = problem.log_theta_prior[workspace.integers[at.THETA]] - math.log(problem.nu.shape[0])
    # The prior of Σ from log |νΣ|, which is at hand; model I has dσ² there.
    if problem.model == 1:
        total -= workspace.reals[at.LOG_BASE] - math.log(nu * n_features)
    else:
        power = 0.5 * (n_features + 1.0) if problem.model == 3 else 1.0
        total -= power * (workspace.reals[at.LOG_BASE] - n_features * math.log(nu))
    for b in range(workspace.integers[at.CLUSTERS]):
        total += log_cluster(problem, workspace, b)
    return total
