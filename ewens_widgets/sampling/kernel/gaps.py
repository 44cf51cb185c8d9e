r"""Missing cells: once an iteration all of them are drawn again, given the rest of the table.

With :math:`\mu_b` the mean of cluster b and :math:`\Omega_b` the inverse of its covariance, a row of the
cluster is normal. Given its observed cells o, its missing cells m are

.. math::

    y_m \mid y_o \sim N\bigl(\mu_m - \Omega_{mm}^{-1} \Omega_{mo} (y_o - \mu_o), \; \Omega_{mm}^{-1}\bigr) .

The chain does not keep covariances and means, which the likelihood has integrated out. So each iteration
draws them from their conditionals, given a complete table, the partition and θ: first

* common shapes: :math:`\Omega \sim \text{Wishart}(n, M^{-1})`, the same for all clusters; of model II
  :math:`\omega_r \sim \chi^2_n / M_{rr}`, of model I :math:`\omega \sim \chi^2_{nd} / \operatorname{tr} M`;
* own shapes: the :math:`\Omega_b` that are drawn with Σ anyway (`own_draws`);

then :math:`\mu_b \sim N(s_b / \kappa_b, (\kappa_b \Omega_b)^{-1})` with :math:`\kappa_b = 1/\theta + n_b`,
and then the missing cells. The statistics of the new table follow, and Ω and μ are forgotten. This is data
augmentation (Tanner and Wong 1987), and it leaves the joint posterior of partition, parameters and missing
cells invariant. The moves then work on a complete table. A Wishart matrix with scale
:math:`C^{-T} C^{-1}` is :math:`X X^T` with :math:`C^T X = T`; the triangle T has roots of chi-square numbers
on its diagonal and normal ones below (Bartlett 1933).

Where the centre is unknown, it is drawn before (common shapes) or after (own shapes), and both the table and
the coordinates, which are the table less the centre, have the new cells. ``problem.gaps`` has row and column
of each missing cell, row by row.
"""

import math

import numpy as np

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.compiled import inlined, jit
from ewens_widgets.sampling.kernel import workspace as at
from ewens_widgets.sampling.kernel.centre import sum_table
from ewens_widgets.sampling.kernel.scatter import (
    cholesky,
    dot,
    fill_scatter,
    fill_scatter_matrix,
    leading_cholesky,
    square_sums,
)
from ewens_widgets.sampling.kernel.workspace import AnyProblem, AnyWorkspace, Problem, Workspace


@jit
def draw_root(factor: FloatArray, degrees: float, rng: np.random.Generator, out: FloatArray) -> None:
    """Write X of a Wishart matrix X Xᵀ with these degrees of freedom and scale C⁻ᵀ C⁻¹, C the factor."""
    size = factor.shape[0]
    for r in range(size):
        for c in range(r):
            out[r, c] = rng.standard_normal()
        out[r, r] = math.sqrt(2.0 * rng.standard_gamma(0.5 * (degrees - r)))
        for c in range(r + 1, size):
            out[r, c] = 0.0
    for r in range(size - 1, -1, -1):
        for c in range(size):
            entry = out[r, c]
            for k in range(r + 1, size):
                entry -= factor[k, r] * out[k, c]
            out[r, c] = entry / factor[r, r]


@jit
def write_gram(root: FloatArray, factor: float, out: FloatArray) -> None:
    """Write factor · X Xᵀ."""
    for r in range(root.shape[0]):
        for c in range(r + 1):
            out[r, c] = factor * dot(root[r], root[c])
            out[c, r] = out[r, c]


@inlined
def _solve_upper(factor: FloatArray, vector: FloatArray, size: int) -> None:
    """Solve Lᵀ x = v for the first rows and columns of a lower triangle, in place."""
    for r in range(size - 1, -1, -1):
        for c in range(r + 1, size):
            vector[r] -= factor[c, r] * vector[c]
        vector[r] /= factor[r, r]


@jit
def _draw_mean(
    problem: AnyProblem,
    workspace: AnyWorkspace,
    slot: int,
    precision: FloatArray,
    row: int,
    mean: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Draw the mean of a cluster, given the inverse of its covariance."""
    factor, n_features = workspace.matrix, mean.shape[0]
    kappa = 1.0 / problem.theta[workspace.integers[at.THETA]] + workspace.sizes[slot]
    for r in range(n_features):
        mean[r] = rng.standard_normal()
    if problem.model == 3:
        for r in range(n_features):
            for c in range(r + 1):
                factor[r, c] = precision[r, c]
        cholesky(factor)
        _solve_upper(factor, mean, n_features)
    else:
        for r in range(n_features):
            mean[r] /= math.sqrt(precision[row, r if problem.model == 2 else 0])
    for r in range(n_features):
        mean[r] = workspace.sums[slot, r] / kappa + mean[r] / math.sqrt(kappa)


@inlined
def _set_cell(problem: AnyProblem, workspace: AnyWorkspace, slot: int, cell: int, value: float) -> None:
    """Write an imputed cell to the coordinates, to the table behind them, and to its cluster's sum."""
    item, column, n_objects = problem.gaps[cell, 0], problem.gaps[cell, 1], problem.coordinates.shape[0]
    workspace.sums[slot, column] += value - workspace.rows[item, column]
    workspace.rows[item, column] = value
    if problem.origin.shape[0] > 0:
        workspace.rows[n_objects + item, column] = value + workspace.centre[column]


@jit
def _draw_row(
    problem: AnyProblem,
    workspace: AnyWorkspace,
    slot: int,
    first: int,
    count: int,
    precision: FloatArray,
    mean: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Model III: draw the missing cells of a row, `count` of them from the `first` on.

    Relative to the present values y of all cells the mean of the missing ones is −Ω_mm⁻¹ (Ω (y − μ))_m, so
    that which of the others are observed need not be looked up.
    """
    gaps, vector = problem.gaps, workspace.rows[problem.gaps[first, 0]]
    factor, change = workspace.matrix, workspace.second
    for a in range(count):
        column = gaps[first + a, 1]
        change[a] = 0.0
        for c in range(vector.shape[0]):
            change[a] -= precision[column, c] * (vector[c] - mean[c])
        for b in range(a + 1):
            factor[a, b] = precision[column, gaps[first + b, 1]]
    leading_cholesky(factor, count)
    for a in range(count):
        for b in range(a):
            change[a] -= factor[a, b] * change[b]
        change[a] /= factor[a, a]
    for a in range(count):
        change[a] += rng.standard_normal()
    _solve_upper(factor, change, count)
    for a in range(count):
        _set_cell(problem, workspace, slot, first + a, vector[gaps[first + a, 1]] + change[a])


@jit
def impute_cluster(
    problem: AnyProblem,
    workspace: AnyWorkspace,
    slot: int,
    precision: FloatArray,
    row: int,
    mean: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Draw the mean of a cluster and then its missing cells, which change its sum.

    Models I and II have their precisions in a row of `precision`. `mean` is scratch, as are `matrix` and
    `second` of the workspace.
    """
    gaps = problem.gaps
    first, has_mean = 0, False
    while first < gaps.shape[0]:
        item, after = gaps[first, 0], first + 1
        while after < gaps.shape[0] and gaps[after, 0] == item:
            after += 1
        if workspace.labels[item] == slot:
            if not has_mean:
                _draw_mean(problem, workspace, slot, precision, row, mean, rng)
                has_mean = True
            if problem.model == 3:
                _draw_row(problem, workspace, slot, first, after - first, precision, mean, rng)
            else:
                for cell in range(first, after):
                    r = gaps[cell, 1]
                    deviation = math.sqrt(precision[row, r if problem.model == 2 else 0])
                    value = mean[r] + rng.standard_normal() / deviation
                    _set_cell(problem, workspace, slot, cell, value)
        first = after


@jit
def impute(problem: Problem, workspace: Workspace, rng: np.random.Generator) -> None:
    """Common shapes: draw the covariance, the means and the missing cells, given θ; compute the sums."""
    sum_table(problem, workspace, problem.coordinates)
    n_objects, n_features = problem.coordinates.shape
    theta_index, precision, row = workspace.integers[at.THETA], workspace.vectors, at.PRECISION
    if problem.model == 3:
        precision = workspace.inverse
        fill_scatter_matrix(problem, workspace, theta_index, precision)
        cholesky(precision)
        draw_root(precision, float(n_objects), rng, workspace.matrix)
        write_gram(workspace.matrix, 1.0 / n_objects, precision)
    else:
        if problem.model == 1:
            square_sums(workspace)
        fill_scatter(problem, workspace, theta_index)
        for r in range(1 if problem.model == 1 else n_features):
            mean_square = 2.0 * rng.standard_gamma(0.5 * problem.exponent) / problem.exponent
            precision[row, r] = mean_square / workspace.scatter[r]
    for b in range(workspace.integers[at.CLUSTERS]):
        impute_cluster(problem, workspace, b, precision, row, workspace.first, rng)
    sum_table(problem, workspace, problem.coordinates)
    workspace.integers[at.CHANGED] = 1
