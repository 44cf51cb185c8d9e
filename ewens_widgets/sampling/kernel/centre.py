r"""An unknown centre: once an iteration the shift μ of the data is drawn, and the data move by it.

With a known centre the cluster means have mean 0, that of the data. Here they have an unknown mean μ with a
flat prior. Then, with :math:`v = \sum_b s_b / (1 + \theta n_b)` and
:math:`c = \sum_b n_b / (1 + \theta n_b)`, the matrix of the likelihood is

.. math:: M_\mu = S + c \, (\mu - v/c)(\mu - v/c)^T, \qquad S = M - v v^T / c ,

and integrating over μ leaves the likelihood of the orbit (see `model.likelihood`). So common shapes draw θ
from its exact conditional without μ, and then μ given partition and θ: a t variate about v/c, with scale

* III: :math:`S / (c (n - d))` and n − d degrees of freedom;
* II: :math:`S_{rr} / (c (n - 1))` and n − 1, column by column;
* I: :math:`\operatorname{tr} S / (c (n - 1) d) \, I` and (n − 1) d.

Until the next iteration the coordinates are y − μ, and the moves are those for a known centre. A state of the
chain does not need μ, as each iteration draws it without looking at the last one. Data and μ are rounded to a
grid (10⁻¹² standard deviations) on which sums of shifted data are exact, and shifted back are as before.

Own shapes draw m, the mean of the centres of the clusters, given their precisions :math:`\Omega_b`, which are
drawn with Σ: a normal variate with precision :math:`P = \sum_b \tfrac{n_b}{1+\theta n_b} \Omega_b` about
:math:`P^{-1} \sum_b \Omega_b s_b / (1 + \theta n_b)`. Here m is a parameter like Σ, and part of the state.

``problem.origin`` has the data as they were centred; it is empty where the centre is known. Otherwise
``workspace.rows`` is the memory of ``problem.coordinates``, which compiled code takes to be read-only.
"""

import math

import numpy as np

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.compiled import inlined, jit
from ewens_widgets.sampling.kernel import workspace as at
from ewens_widgets.sampling.kernel.scatter import (
    cholesky,
    dot,
    fill_scatter,
    fill_scatter_matrix,
    fill_total,
    log_product,
    multiply,
)
from ewens_widgets.sampling.kernel.workspace import (
    AnyProblem,
    AnyWorkspace,
    OwnProblem,
    OwnWorkspace,
    Problem,
    Workspace,
)

_EXACT = 2.0**52  # So many steps of the grid are a double without rounding, and twice as many.


@jit
def sum_clusters(table: FloatArray, workspace: AnyWorkspace) -> None:
    """Compute the sums of all clusters from a table of the objects, in their order."""
    sums = workspace.sums
    for b in range(workspace.integers[at.CLUSTERS]):
        for r in range(sums.shape[1]):
            sums[b, r] = 0.0
    for i in range(table.shape[0]):
        slot = workspace.labels[i]
        for r in range(sums.shape[1]):
            sums[slot, r] += table[i, r]


@inlined
def sum_table(problem: Problem, workspace: Workspace, table: FloatArray) -> None:
    """Compute the sums of common shapes from a table, and its total where cells are missing."""
    sum_clusters(table, workspace)
    for b in range(workspace.integers[at.CLUSTERS]):
        for r in range(workspace.sums.shape[1]):
            workspace.columns[r, b] = workspace.sums[b, r]
    if problem.gaps.shape[0] > 0:
        fill_total(problem, workspace, table)


@inlined
def _shift(problem: AnyProblem, workspace: AnyWorkspace) -> None:
    """Move the coordinates by the centre."""
    origin, centre = problem.origin, workspace.centre
    for i in range(origin.shape[0]):
        for r in range(origin.shape[1]):
            workspace.rows[i, r] = origin[i, r] - centre[r]


@inlined
def _pull(problem: Problem, workspace: Workspace, theta_index: int) -> float:
    """Write v to `first` and return c."""
    theta, weights, total = problem.theta[theta_index], workspace.slots[0], 0.0
    n_clusters = workspace.integers[at.CLUSTERS]
    for b in range(n_clusters):
        weights[b] = 1.0 / (1.0 + theta * workspace.sizes[b])
        total += weights[b] * workspace.sizes[b]
    multiply(workspace.sums, weights[:n_clusters], workspace.first)
    return total


@inlined
def release(problem: Problem, workspace: Workspace) -> None:
    """Forget μ: the sums become those of the centred data; the coordinates wait for the next μ.

    Data and μ are on a grid on which this is exact, unless μ is far away or cells were imputed.
    """
    centre, largest = workspace.centre, 0.0
    for r in range(centre.shape[0]):
        largest = max(largest, abs(centre[r]))
    if problem.gaps.shape[0] > 0 or largest * problem.origin.shape[0] > _EXACT * problem.step:
        sum_table(problem, workspace, problem.origin)
    else:
        _shift_sums(workspace, 1.0)
    for r in range(centre.shape[0]):
        centre[r] = 0.0


@inlined
def _shift_sums(workspace: Workspace, sign: float) -> None:
    """Add μ to the sums, or take it away, as often as a cluster has objects."""
    for b in range(workspace.integers[at.CLUSTERS]):
        factor = sign * workspace.sizes[b]
        for r in range(workspace.centre.shape[0]):
            workspace.sums[b, r] += factor * workspace.centre[r]
            workspace.columns[r, b] = workspace.sums[b, r]


@inlined
def fill_residual(problem: Problem, workspace: Workspace, theta_index: int) -> float:
    """Write S/n to `scatter`, of model III to `matrix`, and v to `first`; return c.

    The sums must be those of `release`, and of model I their squares known. Compiled into its callers: called
    for every θ, it would take as long for its arguments as for the sums.
    """
    n_objects, n_features = problem.coordinates.shape
    total, pull = _pull(problem, workspace, theta_index), workspace.first
    if problem.model == 3:
        fill_scatter_matrix(problem, workspace, theta_index, workspace.matrix)
        for r in range(n_features):
            for c in range(r + 1):
                workspace.matrix[r, c] -= pull[r] * pull[c] / (total * n_objects)
    else:
        fill_scatter(problem, workspace, theta_index)
        if problem.model == 1:
            workspace.scatter[0] -= dot(pull, pull) / (total * n_objects * n_features)
        else:
            for r in range(n_features):
                workspace.scatter[r] -= pull[r] * pull[r] / (total * n_objects)
    return total


@inlined
def within_scatter(problem: Problem, workspace: Workspace) -> float:
    """Model I: what of S/n no θ changes, the scatter about the means of the clusters; after `release`."""
    left = workspace.vectors[at.TOTAL, 0] if problem.gaps.shape[0] > 0 else 1.0
    for b in range(workspace.integers[at.CLUSTERS]):
        left -= workspace.gram[b] / (workspace.sizes[b] * float(problem.exponent))
    return max(left, 0.0)


@inlined
def least_growth(theta: float, other: float) -> float:
    r"""How many times larger c, and S but for the scatter within clusters, are at least at another θ.

    Both are sums over clusters of terms in proportion to :math:`n_b / (1 + \theta n_b)` (S: the least such
    sum over μ). The ratio of such a term at two values of θ is between its limits for one object and many.
    """
    return (1.0 + theta) / (1.0 + other) if other < theta else theta / other


@inlined
def draw_centre(problem: Problem, workspace: Workspace, rng: np.random.Generator) -> None:
    """Draw μ given partition and θ, and move coordinates and sums by it; begins where `release` ends."""
    n_objects, n_features = problem.coordinates.shape
    total = fill_residual(problem, workspace, workspace.integers[at.THETA])
    centre, pull, normal, scatter = workspace.centre, workspace.first, workspace.second, workspace.scatter
    unit = n_objects / total
    if problem.model == 3:
        cholesky(workspace.matrix)
        for r in range(n_features):
            normal[r] = rng.standard_normal()
        scale = math.sqrt(unit / (2.0 * rng.standard_gamma(0.5 * (n_objects - n_features))))
        for r in range(n_features):
            along = 0.0
            for c in range(r + 1):
                along += workspace.matrix[r, c] * normal[c]
            centre[r] = pull[r] / total + scale * along
    elif problem.model == 2:
        for r in range(n_features):
            chi_square = 2.0 * rng.standard_gamma(0.5 * (n_objects - 1))
            centre[r] = pull[r] / total + math.sqrt(unit * scatter[r] / chi_square) * rng.standard_normal()
    else:
        chi_square = 2.0 * rng.standard_gamma(0.5 * (n_objects - 1) * n_features)
        scale = math.sqrt(unit * n_features * scatter[0] / chi_square)
        for r in range(n_features):
            centre[r] = pull[r] / total + scale * rng.standard_normal()
    grid = 1.5 * _EXACT * problem.step  # Adding this leaves no digits behind those of the grid.
    for r in range(n_features):
        centre[r] = (centre[r] + grid) - grid
    _shift(problem, workspace)
    _shift_sums(workspace, -1.0)


@inlined
def _take_square(problem: Problem, workspace: Workspace, vector: FloatArray, factor: float) -> None:
    """Take factor · x xᵀ from `matrix` (III), or its diagonal from `second` (I and II)."""
    for r in range(vector.shape[0]):
        scaled = factor * vector[r]
        if problem.model == 3:
            for c in range(r + 1):
                workspace.matrix[r, c] -= scaled * vector[c]
        else:
            workspace.second[r] -= scaled * vector[r]


@inlined
def log_orbit_terms(problem: Problem, workspace: Workspace) -> float:
    """What the likelihood of the orbit has besides log det Γ: −(d log c + (n − 1) log |S/n|)/2, by model.

    It comes from the sums of the centred data, as those of the shifted data lose digits where μ is large.
    Only scratch is changed, since moves may follow.
    """
    n_objects, n_features = problem.coordinates.shape
    theta_index = workspace.integers[at.THETA]
    pull, whole, total = workspace.first, workspace.vectors[at.GAP], 0.0
    n_squares = n_objects * (n_features if problem.model == 1 else 1)
    has_gaps = problem.gaps.shape[0] > 0
    squares = 0.0 if has_gaps else n_objects / n_squares
    for r in range(n_features):
        pull[r], workspace.second[r] = 0.0, squares
    for r in range(workspace.matrix.shape[0]):
        for c in range(r + 1):
            workspace.matrix[r, c] = squares if r == c else 0.0
    for i in range(n_objects if has_gaps else 0):
        _take_square(problem, workspace, problem.origin[i], -1.0 / n_squares)
    for b in range(workspace.integers[at.CLUSTERS]):
        size = workspace.sizes[b]
        weight = 1.0 / (1.0 + problem.theta[theta_index] * size)
        total += weight * size
        for r in range(n_features):
            whole[r] = workspace.sums[b, r] + size * workspace.centre[r]
            pull[r] += weight * whole[r]
        _take_square(problem, workspace, whole, problem.shrinkage[theta_index, size])
    _take_square(problem, workspace, pull, 1.0 / (total * n_squares))
    if problem.model == 3:
        scale = cholesky(workspace.matrix)
    elif problem.model == 2:
        scale = log_product(workspace.second)
    else:
        trace = 0.0
        for r in range(n_features):
            trace += workspace.second[r]
        scale = n_features * math.log(trace)
    return -0.5 * n_features * math.log(total) - 0.5 * (n_objects - 1) * scale


@jit
def draw_own_centre(problem: OwnProblem, workspace: OwnWorkspace, rng: np.random.Generator) -> None:
    """Draw m, given P in `pull` and the sum in `first`; move coordinates and sums by the change."""
    change, pull, size = workspace.first, workspace.pull, workspace.first.shape[0]
    if problem.model == 3:
        cholesky(pull)
        for r in range(size):
            for c in range(r):
                change[r] -= pull[r, c] * change[c]
            change[r] /= pull[r, r]
        for r in range(size):
            change[r] += rng.standard_normal()
        for r in range(size - 1, -1, -1):
            for c in range(r + 1, size):
                change[r] -= pull[c, r] * change[c]
            change[r] /= pull[r, r]
    else:
        for r in range(size):
            precision = pull[0, r] if problem.model == 2 else pull[0, 0]
            change[r] = change[r] / precision + rng.standard_normal() / math.sqrt(precision)
    for r in range(size):
        workspace.centre[r] += change[r]
    _shift(problem, workspace)
    sum_clusters(problem.coordinates, workspace)
    workspace.integers[at.CHANGED] = 1
