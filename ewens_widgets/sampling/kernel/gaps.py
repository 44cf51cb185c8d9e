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
cells invariant.

*Columns that a cluster has no observed cell of.* Cells drawn given a mean and a covariance that were drawn
given the same cells move in small steps only. A cluster of the rows that are zero in a two-part column is
such a case. So under model III the mean of these columns R, and of own shapes their part of :math:`\Omega_b`,
are drawn from their prior given the part P of the others, as if their cells were not there:
:math:`\mu_R \mid \mu_P \sim N(-\Omega_{RR}^{-1} \Omega_{RP} \mu_P, \theta \Omega_{RR}^{-1})`, and with a
draw :math:`\Omega^0` from the prior

.. math::

    \Omega_{RR} = \Omega^0_{RR}, \qquad \Omega_{RP} = \Omega^0_{RP}, \qquad
    \Omega_{PP} = \Omega^0_{PR} (\Omega^0_{RR})^{-1} \Omega^0_{RP} + \Sigma_{PP}^{-1} ,

because under an inverse Wishart distribution the regression of R on P is independent of
:math:`\Sigma_{PP}`, whose draw depends on the cells of P only.

The moves then work on a complete table. A Wishart matrix with scale :math:`C^{-T} C^{-1}` is :math:`X X^T`
with :math:`C^T X = T`; the triangle T has roots of chi-square numbers on its diagonal and normal ones below
(Bartlett 1933).

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
from ewens_widgets.sampling.kernel.workspace import (
    AnyProblem,
    AnyWorkspace,
    IntArray,
    OwnWorkspace,
    Problem,
    Workspace,
)


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


@inlined
def _set_cell(problem: AnyProblem, workspace: AnyWorkspace, slot: int, cell: int, value: float) -> None:
    """Write an imputed cell to the coordinates, to the table behind them, and to its cluster's sum."""
    item, column, n_objects = problem.gaps[cell, 0], problem.gaps[cell, 1], problem.coordinates.shape[0]
    workspace.sums[slot, column] += value - workspace.rows[item, column]
    workspace.rows[item, column] = value
    if problem.origin.shape[0] > 0:
        workspace.rows[n_objects + item, column] = value + workspace.centre[column]


@jit
def find_unseen(problem: AnyProblem, workspace: AnyWorkspace, slot: int) -> int:
    """Write the columns of which a cluster has no observed cell to `members`; return their number."""
    gaps, counts, unseen = problem.gaps, workspace.second, 0
    for r in range(counts.shape[0]):
        counts[r] = 0.0
    for cell in range(gaps.shape[0]):
        if workspace.labels[gaps[cell, 0]] == slot:
            counts[gaps[cell, 1]] += 1.0
    for r in range(counts.shape[0]):
        if counts[r] == workspace.sizes[slot]:
            workspace.members[unseen] = r
            unseen += 1
    return unseen


@jit
def _eliminate(matrix: FloatArray, columns: IntArray, count: int) -> None:
    """Turn a precision into that of the margin of the other columns; the entries of these become zero."""
    size = matrix.shape[0]
    for a in range(count):
        k = columns[a]
        pivot = matrix[k, k]
        for r in range(size):
            factor = matrix[r, k] / pivot
            if r != k:
                for c in range(size):
                    matrix[r, c] -= factor * matrix[k, c]
                matrix[r, k] = 0.0
        for c in range(size):
            matrix[k, c] = 0.0


@jit
def draw_unseen_precision(
    workspace: OwnWorkspace,
    count: int,
    nu: float,
    degrees: float,
    precision: FloatArray,
    root: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Draw the part of a cluster's precision that belongs to the first `count` columns of `members`.

    On return `root` is that of the new precision; `matrix` is scratch.
    """
    prior, size = workspace.matrix, precision.shape[0]
    for r in range(size):
        for c in range(r + 1):
            prior[r, c] = nu * workspace.sigma[r, c]
    cholesky(prior)
    draw_root(prior, degrees, rng, root)
    write_gram(root, 1.0, prior)
    for r in range(size):
        for c in range(size):
            root[r, c] = prior[r, c]
    _eliminate(root, workspace.members, count)
    _eliminate(precision, workspace.members, count)
    for r in range(size):
        for c in range(size):
            precision[r, c] += prior[r, c] - root[r, c]
            root[r, c] = precision[r, c] if c <= r else 0.0
    cholesky(root)


@jit
def _draw_change(
    workspace: AnyWorkspace,
    count: int,
    precision: FloatArray,
    vector: FloatArray,
    mean: FloatArray,
    weight: float,
    spread: float,
    rng: np.random.Generator,
) -> None:
    """Model III: draw some entries of a normal vector given the others, and write their change to `second`.

    They are the first `count` columns of `members`; all have the mean μ = weight · `mean`, and the covariance
    spread² Ω⁻¹. Relative to the present values y of all entries the mean of these is −Ω_mm⁻¹ (Ω (y − μ))_m,
    so that which of the others are observed need not be looked up.
    """
    factor, change, columns = workspace.matrix, workspace.second, workspace.members
    for a in range(count):
        change[a] = 0.0
        for c in range(vector.shape[0]):
            change[a] -= precision[columns[a], c] * (vector[c] - weight * mean[c])
        for b in range(a + 1):
            factor[a, b] = precision[columns[a], columns[b]]
    leading_cholesky(factor, count)
    for a in range(count):
        for b in range(a):
            change[a] -= factor[a, b] * change[b]
        change[a] /= factor[a, a]
    for a in range(count):
        change[a] += spread * rng.standard_normal()
    _solve_upper(factor, change, count)


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
    unseen = find_unseen(problem, workspace, slot) if problem.model == 3 else 0
    if unseen > 0:
        spread = math.sqrt(problem.theta[workspace.integers[at.THETA]])
        _draw_change(workspace, unseen, precision, mean, mean, 0.0, spread, rng)
        for a in range(unseen):
            mean[workspace.members[a]] += workspace.second[a]


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

    Models I and II have their precisions in a row of `precision`. `mean` is scratch, as are `matrix`,
    `second` and `members` of the workspace.
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
                vector = workspace.rows[item]
                for a in range(after - first):
                    workspace.members[a] = gaps[first + a, 1]
                _draw_change(workspace, after - first, precision, vector, mean, 1.0, 1.0, rng)
                for a in range(after - first):
                    value = vector[workspace.members[a]] + workspace.second[a]
                    _set_cell(problem, workspace, slot, first + a, value)
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
