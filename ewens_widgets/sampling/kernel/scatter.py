r"""Scatter of the current partition, and how it changes when a cluster is split or two are merged.

Splitting a cluster c of mean :math:`\mu_c` into a and b changes the scatter only in the plane of
:math:`p = \mu_c` and :math:`q = \mu_b - \mu_a`:

.. math::

    M' = M + \alpha \, p p^T + \beta \, (p q^T + q p^T) + \gamma \, q q^T,
    \qquad h(m) = \frac{m}{1 + \theta m},

    \alpha = h(m_a) + h(m_b) - h(m_c), \quad
    \beta = \frac{m_b \, h(m_a) \, \theta m_a - m_a \, h(m_b) \, \theta m_b}{m_c}, \quad
    \gamma = - \frac{m_b^2 \, \theta m_a h(m_a) + m_a^2 \, \theta m_b h(m_b)}{m_c^2} .

A merge has the opposite signs. Written in this way nothing large cancels: with cluster sums in place of
means, the terms would be :math:`\theta m` times as large as their sum. Such a change is called an
*exchange* here. For model III with :math:`A = M^{-1}`, :math:`U = (p, q)`, C the matrix of the coefficients
and :math:`G = U^T A U`,

.. math:: \det M' = \det M \, \det(I + C G), \qquad A' = A - A U H U^T A, \qquad H = (I + C G)^{-1} C .
"""

import math

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.compiled import inlined, jit
from ewens_widgets.sampling.kernel import workspace as at
from ewens_widgets.sampling.kernel.workspace import Problem, Workspace

# A determinant ratio below this has lost digits: the inverse is then computed afresh.
ILL_CONDITIONED = 1e-6


@inlined
def dot(left: FloatArray, right: FloatArray) -> float:
    """Inner product, summed in order (so that compiled and interpreted runs agree)."""
    total = 0.0
    for r in range(left.shape[0]):
        total += left[r] * right[r]
    return total


@inlined
def quadratic(first: float, crossed: float, last: float, x: float, y: float) -> float:
    """Value of a quadratic form in two variables: first x² + 2 crossed x y + last y²."""
    return first * x * x + 2.0 * crossed * x * y + last * y * y


@inlined
def multiply(matrix: FloatArray, vector: FloatArray, out: FloatArray) -> None:
    """Write the sum of rows of a matrix with these weights to `out`: its product if it is symmetric.

    Four rows at a time, so that a sum is fetched and stored a quarter as often; the order of each sum is that
    of the rows all the same.
    """
    size, count = out.shape[0], vector.shape[0]
    for r in range(size):
        out[r] = 0.0
    whole = count - count % 4
    for c in range(0, whole, 4):
        first, second, third, fourth = vector[c], vector[c + 1], vector[c + 2], vector[c + 3]
        for r in range(size):
            entry = out[r] + matrix[c, r] * first
            entry += matrix[c + 1, r] * second
            entry += matrix[c + 2, r] * third
            out[r] = entry + matrix[c + 3, r] * fourth
    for c in range(whole, count):
        factor = vector[c]
        for r in range(size):
            out[r] += matrix[c, r] * factor


@inlined
def log_product(values: FloatArray) -> float:
    """Sum of logarithms with one logarithm for many factors."""
    total = 0.0
    product = 1.0
    for r in range(values.shape[0]):
        product *= values[r]
        if product < 1e-150 or product > 1e150:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@inlined
def log_scale(problem: Problem, workspace: Workspace) -> float:
    """The term that multiplies −n/2: d log trace (I), log of the diagonal's product (II), log det (III)."""
    if problem.model == 1:
        return problem.coordinates.shape[1] * math.log(workspace.scatter[0])
    if problem.model == 2:
        return log_product(workspace.scatter)
    return workspace.reals[at.LOG_DETERMINANT]


@inlined
def log_partition_terms(problem: Problem, workspace: Workspace, size: int) -> float:
    """All that a cluster of this size adds to the log posterior, besides the scatter and the factor V."""
    log_grown = problem.log_grown[workspace.integers[at.THETA], size]
    return problem.log_prior[at.SIZE_WEIGHT, size] - 0.5 * problem.coordinates.shape[1] * log_grown


@inlined
def cholesky(matrix: FloatArray) -> float:
    """Replace the lower triangle by its Cholesky factor and return the log determinant."""
    return leading_cholesky(matrix, matrix.shape[0])


@jit
def leading_cholesky(matrix: FloatArray, size: int) -> float:
    """The same for the first rows and columns."""
    product = 1.0
    total = 0.0
    for c in range(size):
        pivot = matrix[c, c]
        for k in range(c):
            pivot -= matrix[c, k] * matrix[c, k]
        product *= pivot
        if product < 1e-150 or product > 1e150:
            total += math.log(product)
            product = 1.0
        root = math.sqrt(pivot)
        matrix[c, c] = root
        for r in range(c + 1, size):
            entry = matrix[r, c]
            for k in range(c):
                entry -= matrix[r, k] * matrix[c, k]
            matrix[r, c] = entry / root
    return total + math.log(product)


@jit
def fill_scatter_matrix(problem: Problem, workspace: Workspace, theta_index: int, matrix: FloatArray) -> None:
    """Write the lower triangle of M/n for one value of θ."""
    size, centre, vectors = matrix.shape[0], workspace.centre, workspace.vectors
    for r in range(size):
        for c in range(r + 1):
            if vectors.shape[0] > at.TOTAL:
                matrix[r, c] = vectors[at.TOTAL + r, c]
            else:
                matrix[r, c] = (1.0 if r == c else 0.0) + centre[r] * centre[c]
    for b in range(workspace.integers[at.CLUSTERS]):
        factor = problem.shrinkage[theta_index, workspace.sizes[b]]
        for r in range(size):
            scaled = factor * workspace.sums[b, r]
            for c in range(r + 1):
                matrix[r, c] -= scaled * workspace.sums[b, c]


@jit
def fill_total(problem: Problem, workspace: Workspace, table: FloatArray) -> None:
    """Write YᵀY/n of a table with imputed cells to `vectors` (II: its diagonal; I: its trace over d)."""
    total, n_objects = workspace.vectors, float(table.shape[0])
    for row in range(at.TOTAL, total.shape[0]):
        for r in range(total.shape[1]):
            total[row, r] = 0.0
    for i in range(table.shape[0]):
        for r in range(table.shape[1]):
            value = table[i, r] / n_objects
            if problem.model == 3:
                for c in range(r + 1):
                    total[at.TOTAL + r, c] += value * table[i, c]
            elif problem.model == 2:
                total[at.TOTAL, r] += value * table[i, r]
            else:
                total[at.TOTAL, 0] += value * table[i, r] / table.shape[1]


@jit
def invert(factor: FloatArray, inverse: FloatArray) -> None:
    """Write the inverse L⁻ᵀ L⁻¹ of a matrix, given its Cholesky factor L, which becomes its own inverse."""
    size = factor.shape[0]
    for c in range(size):
        factor[c, c] = 1.0 / factor[c, c]
        for r in range(c + 1, size):
            entry = 0.0
            for k in range(c, r):
                entry -= factor[r, k] * factor[k, c]
            factor[r, c] = entry / factor[r, r]
    for r in range(size):
        for c in range(r + 1):
            entry = 0.0
            for k in range(r, size):
                entry += factor[k, r] * factor[k, c]
            inverse[r, c] = entry
            inverse[c, r] = entry


@inlined
def fill_scatter(problem: Problem, workspace: Workspace, theta_index: int) -> None:
    """Models I and II: write the scatter for one value of θ; model I needs the squares of the sums."""
    scatter, centre = workspace.scatter, workspace.centre  # The total is that of data with this centre.
    has_total = workspace.vectors.shape[0] > at.TOTAL
    if problem.model == 1:
        left = workspace.vectors[at.TOTAL, 0] if has_total else 1.0 + dot(centre, centre) / centre.shape[0]
        for b in range(workspace.integers[at.CLUSTERS]):
            left -= problem.shrinkage[theta_index, workspace.sizes[b]] * workspace.gram[b]
        scatter[0] = left
        return
    for r in range(scatter.shape[0]):
        scatter[r] = workspace.vectors[at.TOTAL, r] if has_total else 1.0 + centre[r] * centre[r]
    for b in range(workspace.integers[at.CLUSTERS]):
        factor = problem.shrinkage[theta_index, workspace.sizes[b]]
        for r in range(scatter.shape[0]):
            scatter[r] -= factor * workspace.sums[b, r] * workspace.sums[b, r]


@inlined
def square_sums(workspace: Workspace) -> None:
    """Model I: compute the squares of all cluster sums, running along the clusters."""
    gram, n_clusters = workspace.gram, workspace.integers[at.CLUSTERS]
    for b in range(n_clusters):
        gram[b] = 0.0
    for r in range(workspace.columns.shape[0]):
        column = workspace.columns[r]
        for b in range(n_clusters):
            gram[b] += column[b] * column[b]


@jit
def refresh(problem: Problem, workspace: Workspace) -> None:
    """Compute the scatter of the current partition and θ from the cluster sums."""
    theta_index = workspace.integers[at.THETA]
    if problem.model == 3:
        fill_scatter_matrix(problem, workspace, theta_index, workspace.matrix)
        workspace.reals[at.LOG_DETERMINANT] = cholesky(workspace.matrix)
        invert(workspace.matrix, workspace.inverse)
        for b in range(workspace.integers[at.CLUSTERS]):
            _refresh_gram(problem, workspace, b)
    else:
        if problem.model == 1:
            square_sums(workspace)
        fill_scatter(problem, workspace, theta_index)


@jit
def _refresh_gram(problem: Problem, workspace: Workspace, slot: int) -> None:
    """Compute the quadratic form of one cluster sum."""
    if problem.model == 1:
        workspace.gram[slot] = dot(workspace.sums[slot], workspace.sums[slot])
    elif problem.model == 3:
        multiply(workspace.inverse, workspace.sums[slot], workspace.first)
        workspace.gram[slot] = dot(workspace.sums[slot], workspace.first)


@inlined
def split_coefficients(theta: float, divisor: float, size: float, moved: float, out: FloatArray) -> None:
    """Write α, β, γ for `moved` of `size` objects leaving a cluster; the moved ones are b of the formula."""
    stayed = size - moved
    stay = stayed / (1.0 + theta * stayed)
    move = moved / (1.0 + theta * moved)
    whole = size / (1.0 + theta * size)
    stay_weight = theta * stayed * stay
    move_weight = theta * moved * move
    out[0] = (stay + move - whole) / divisor
    # f(a)/m_a - f(b)/m_b = 1/(1 + θ m_b) - 1/(1 + θ m_a), which does not cancel.
    out[1] = stayed * moved / size * (1.0 / (1.0 + theta * moved) - 1.0 / (1.0 + theta * stayed)) / divisor
    out[2] = -(stay_weight * moved * moved + move_weight * stayed * stayed) / (size * size) / divisor


@jit
def log_scale_after(problem: Problem, workspace: Workspace) -> float:
    """`log_scale` as it would be after the exchange in the workspace; nothing is changed."""
    n_features = problem.coordinates.shape[1]
    alpha, beta, gamma = workspace.coefficients[0], workspace.coefficients[1], workspace.coefficients[2]
    mean, gap = workspace.vectors[at.MEAN], workspace.vectors[at.GAP]
    if problem.model == 1:
        return n_features * math.log(
            workspace.scatter[0]
            + alpha * dot(mean, mean)
            + 2.0 * beta * dot(mean, gap)
            + gamma * dot(gap, gap)
        )
    if problem.model == 2:
        total = 0.0
        product = 1.0
        for r in range(n_features):
            product *= workspace.scatter[r] + quadratic(alpha, beta, gamma, mean[r], gap[r])
            if product < 1e-150:
                total += math.log(product)
                product = 1.0
        return total + math.log(product)
    multiply(workspace.inverse, mean, workspace.first)
    multiply(workspace.inverse, gap, workspace.second)
    gram_mean, crossed, gram_gap = (
        dot(mean, workspace.first),
        dot(mean, workspace.second),
        dot(gap, workspace.second),
    )
    determinant = plane_determinant(alpha, beta, gamma, gram_mean, crossed, gram_gap)
    if not determinant > ILL_CONDITIONED:
        return _log_determinant_after(problem, workspace)
    return workspace.reals[at.LOG_DETERMINANT] + math.log(determinant)


@jit
def _log_determinant_after(problem: Problem, workspace: Workspace) -> float:
    """Model III: the same from the cluster sums, where products with the inverse have lost their digits."""
    matrix, mean, gap = workspace.matrix, workspace.vectors[at.MEAN], workspace.vectors[at.GAP]
    alpha, beta, gamma = workspace.coefficients[0], workspace.coefficients[1], workspace.coefficients[2]
    fill_scatter_matrix(problem, workspace, workspace.integers[at.THETA], matrix)
    for r in range(matrix.shape[0]):
        for c in range(r + 1):
            crossed = mean[r] * gap[c] + gap[r] * mean[c]
            matrix[r, c] += alpha * mean[r] * mean[c] + beta * crossed + gamma * gap[r] * gap[c]
    return cholesky(matrix)


@inlined
def plane_determinant(
    alpha: float, beta: float, gamma: float, gram_mean: float, crossed: float, gram_gap: float
) -> float:
    """Determinant of I + C G for an exchange with these coefficients and these products in the metric A."""
    return (1.0 + alpha * gram_mean + beta * crossed) * (1.0 + beta * crossed + gamma * gram_gap) - (
        alpha * crossed + beta * gram_gap
    ) * (beta * gram_mean + gamma * crossed)


@inlined
def exchange_diagonal(workspace: Workspace) -> None:
    """Model II: change the scatter by the exchange in the workspace. Nothing has to be settled afterwards."""
    alpha, beta, gamma = workspace.coefficients[0], workspace.coefficients[1], workspace.coefficients[2]
    mean, gap = workspace.vectors[at.MEAN], workspace.vectors[at.GAP]
    for r in range(mean.shape[0]):
        workspace.scatter[r] += quadratic(alpha, beta, gamma, mean[r], gap[r])


@jit
def apply_exchange(problem: Problem, workspace: Workspace) -> bool:
    """Models I and III: the same; return whether it was too ill-conditioned.

    To be followed by the change of sizes and sums, and then by `settle`.
    """
    alpha, beta, gamma = workspace.coefficients[0], workspace.coefficients[1], workspace.coefficients[2]
    mean, gap = workspace.vectors[at.MEAN], workspace.vectors[at.GAP]
    if problem.model == 1:
        change = alpha * dot(mean, mean) + 2.0 * beta * dot(mean, gap) + gamma * dot(gap, gap)
        workspace.scatter[0] += change
        return False
    determinant = update_inverse(workspace, workspace.inverse)
    if not determinant > ILL_CONDITIONED:
        return True
    h_mean, h_crossed, h_gap = workspace.plane[0], workspace.plane[1], workspace.plane[2]
    for b in range(workspace.integers[at.CLUSTERS]):
        along_mean, along_gap = (
            dot(workspace.sums[b], workspace.first),
            dot(workspace.sums[b], workspace.second),
        )
        workspace.gram[b] -= quadratic(h_mean, h_crossed, h_gap, along_mean, along_gap)
    workspace.reals[at.LOG_DETERMINANT] += math.log(determinant)
    return False


@jit
def update_inverse(workspace: Workspace, inverse: FloatArray) -> float:
    """Change an inverse by the exchange in the workspace; return det(I + C G).

    Leaves A p in `first`, A q in `second` and H in `plane`. An ill-conditioned change is not made.
    """
    alpha, beta, gamma = workspace.coefficients[0], workspace.coefficients[1], workspace.coefficients[2]
    mean, gap = workspace.vectors[at.MEAN], workspace.vectors[at.GAP]
    image_mean, image_gap = workspace.first, workspace.second
    multiply(inverse, mean, image_mean)
    multiply(inverse, gap, image_gap)
    gram_mean, crossed, gram_gap = dot(mean, image_mean), dot(mean, image_gap), dot(gap, image_gap)
    determinant = plane_determinant(alpha, beta, gamma, gram_mean, crossed, gram_gap)
    if not determinant > ILL_CONDITIONED:
        return determinant
    plane_inverse(alpha, beta, gamma, gram_mean, crossed, gram_gap, determinant, workspace.plane)
    h_mean, h_crossed, h_gap = workspace.plane[0], workspace.plane[1], workspace.plane[2]
    for r in range(image_mean.shape[0]):
        with_mean = h_mean * image_mean[r] + h_crossed * image_gap[r]
        with_gap = h_crossed * image_mean[r] + h_gap * image_gap[r]
        for c in range(image_mean.shape[0]):
            inverse[r, c] -= with_mean * image_mean[c] + with_gap * image_gap[c]
    return determinant


@inlined
def plane_inverse(
    alpha: float,
    beta: float,
    gamma: float,
    gram_mean: float,
    crossed: float,
    gram_gap: float,
    determinant: float,
    out: FloatArray,
) -> None:
    """Write the three entries of H = (I + C G)⁻¹ C, which is symmetric."""
    volume = alpha * gamma - beta * beta
    out[0] = (alpha + volume * gram_gap) / determinant
    out[1] = (beta - volume * crossed) / determinant
    out[2] = (gamma + volume * gram_mean) / determinant


@jit
def settle(problem: Problem, workspace: Workspace, slot: int, other: int, ill_conditioned: bool) -> None:
    """Bring the clusters that changed (one or two) up to date after an exchange."""
    if ill_conditioned:
        refresh(problem, workspace)
        return
    _refresh_gram(problem, workspace, slot)
    if other != slot:
        _refresh_gram(problem, workspace, other)
