r"""Operations of the family of own shapes: every cluster has statistics, and a likelihood, of its own.

With :math:`\kappa = 1/\theta + m`, an object y that joins a cluster of m members with centre
:math:`c = s/\kappa` changes its volume A (see `model.own_shapes`) by a matrix of rank one, and so does one
that leaves it (m and c are those before):

.. math::

    \text{joins:} \quad A' = A + \tfrac{\kappa}{\kappa+1} (y-c)(y-c)^T, \qquad
    \text{leaves:} \quad A' = A - \tfrac{\kappa}{\kappa-1} (y-c)(y-c)^T .

So with :math:`q = (y-c)^T A^{-1} (y-c)` the determinant grows by a factor :math:`1 + f q`, and the inverse of
A changes by :math:`- f / (1 + fq) \, A^{-1}(y-c) (y-c)^T A^{-1}`: a candidate costs O(d²) operations in model
III, and O(d) in the others, where A is diagonal or a number. The statistics of a slot are computed afresh
with every draw of Σ; before that, after a change that would lose digits, and after every `_OLD` changes.

The weight of an object in a cluster is W(m+1)/W(m) times its predictive density, and so is that of a member
on a side of a split: the sides of an allocation are slots like any other.
"""

import math

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.compiled import inlined, jit
from ewens_widgets.sampling.kernel import workspace as at
from ewens_widgets.sampling.kernel.partition_changes import from_logs, label_moved, log_opening, rename
from ewens_widgets.sampling.kernel.scatter import cholesky, dot, invert, log_product, multiply
from ewens_widgets.sampling.kernel.workspace import OwnProblem, OwnWorkspace

# A determinant that shrinks by more than this has lost digits: the shape is then computed from the squares.
_ILL_CONDITIONED = 1e-4
_OLD = 200  # Changes after which a shape is computed afresh.
# Rows of `slots`.
_TERM, _POWER, _FACTOR, _GROWTH = 0, 1, 2, 3
_HUGE = 1e150
_UNKNOWN = -1.0  # No growth of A is below zero where an object joins.


@inlined
def _kappa(problem: OwnProblem, workspace: OwnWorkspace, size: int) -> float:
    return 1.0 / problem.theta[workspace.integers[at.THETA]] + size


@jit
def fill_volume(workspace: OwnWorkspace, slot: int, factor: float, kappa: float) -> None:
    """Write the lower triangle of factor · Σ + S − s sᵀ/κ of a slot to `matrix` (model III)."""
    sums, squares = workspace.sums[slot], workspace.squares[slot]
    sigma, matrix = workspace.sigma, workspace.matrix
    for r in range(matrix.shape[0]):
        scaled = sums[r] / kappa
        for c in range(r + 1):
            matrix[r, c] = factor * sigma[r, c] + squares[r, c] - scaled * sums[c]


@jit
def log_volume_at(
    problem: OwnProblem, workspace: OwnWorkspace, slot: int, factor: float, kappa: float, out: FloatArray
) -> float:
    """Log |A| of a slot where νΣ (model I: νdσ²) is this factor times Σ.

    Leaves A in `out` for models I and II, its Cholesky factor in `matrix` for III.
    """
    sums, squares, sigma = workspace.sums[slot], workspace.squares[slot], workspace.sigma
    if problem.model == 3:
        fill_volume(workspace, slot, factor, kappa)
        return cholesky(workspace.matrix)
    if problem.model == 2:
        for r in range(sums.shape[0]):
            base = factor * sigma[0, r]
            out[r] = max(base + squares[0, r] - sums[r] * sums[r] / kappa, base)
        return log_product(out)
    base = factor * sigma[0, 0]
    out[0] = max(base + squares[0, 0] - dot(sums, sums) / kappa, base)
    return math.log(out[0])


@inlined
def base_factor(problem: OwnProblem, nu_index: int) -> float:
    """How many times Σ the base is: ν, of model I νd."""
    return problem.nu[nu_index] * (problem.coordinates.shape[1] if problem.model == 1 else 1.0)


@inlined
def _set_volume(problem: OwnProblem, workspace: OwnWorkspace, slot: int) -> None:
    """Compute the log determinant of A of a slot, A itself (I, II) or its Cholesky factor (III)."""
    kappa, shape = _kappa(problem, workspace, workspace.sizes[slot]), workspace.shape[slot, 0]
    factor = base_factor(problem, workspace.integers[at.NU])
    workspace.log_volume[slot] = log_volume_at(problem, workspace, slot, factor, kappa, shape)


@jit
def set_shape(problem: OwnProblem, workspace: OwnWorkspace, slot: int) -> None:
    """Compute all that depends on the squares and sums of a slot."""
    _set_volume(problem, workspace, slot)
    if problem.model == 3:
        invert(workspace.matrix, workspace.shape[slot])
    workspace.ages[slot] = 0
    _set_centre(problem, workspace, slot)


@inlined
def _set_centre(problem: OwnProblem, workspace: OwnWorkspace, slot: int) -> None:
    kappa = _kappa(problem, workspace, workspace.sizes[slot])
    for r in range(workspace.sums.shape[1]):
        workspace.means[slot, r] = workspace.sums[slot, r] / kappa


@jit
def _set_base(problem: OwnProblem, workspace: OwnWorkspace) -> None:
    """Compute νΣ, its log determinant and, for model III, its inverse; and the cluster without objects."""
    nu, n_features = problem.nu[workspace.integers[at.NU]], problem.coordinates.shape[1]
    sigma, base = workspace.sigma, workspace.base
    factor = nu * n_features if problem.model == 1 else nu
    for r in range(sigma.shape[0]):
        for c in range(sigma.shape[1]):
            base[r, c] = factor * sigma[r, c]
    if problem.model == 3:
        for r in range(n_features):
            for c in range(r + 1):
                workspace.matrix[r, c] = base[r, c]
        workspace.reals[at.LOG_BASE] = cholesky(workspace.matrix)
        invert(workspace.matrix, workspace.base_inverse)
    else:
        workspace.reals[at.LOG_BASE] = log_product(base[0])
    _empty(problem, workspace, at.EMPTY)


@jit
def _rebuild_squares(problem: OwnProblem, workspace: OwnWorkspace) -> None:
    """Compute the squares of all clusters from the objects."""
    squares = workspace.squares
    for b in range(workspace.integers[at.CLUSTERS]):
        for r in range(squares.shape[1]):
            for c in range(squares.shape[2]):
                squares[b, r, c] = 0.0
    for i in range(problem.coordinates.shape[0]):
        _add_squares(problem, workspace, workspace.labels[i], i, 1.0)


@inlined
def renew(problem: OwnProblem, workspace: OwnWorkspace) -> None:
    """Bring the squares up to date, where the partition has changed, and νΣ."""
    if workspace.integers[at.CHANGED] == 1:
        _rebuild_squares(problem, workspace)
        workspace.integers[at.CHANGED] = 0
    _set_base(problem, workspace)


@jit
def refresh(problem: OwnProblem, workspace: OwnWorkspace) -> None:
    """Compute all statistics of the current partition and parameters from the objects."""
    renew(problem, workspace)
    for b in range(workspace.integers[at.CLUSTERS]):
        set_shape(problem, workspace, b)
    for i in range(workspace.alone.shape[0]):
        workspace.alone[i] = _UNKNOWN


@inlined
def _add_squares(problem: OwnProblem, workspace: OwnWorkspace, slot: int, item: int, sign: float) -> None:
    """Add the squares of an object to a slot, or take them away."""
    vector, squares = problem.coordinates[item], workspace.squares[slot]
    if problem.model == 3:
        for r in range(vector.shape[0]):
            scaled = sign * vector[r]
            for c in range(vector.shape[0]):
                squares[r, c] += scaled * vector[c]
    elif problem.model == 2:
        for r in range(vector.shape[0]):
            squares[0, r] += sign * vector[r] * vector[r]
    else:
        squares[0, 0] += sign * dot(vector, vector)


@inlined
def log_cluster(problem: OwnProblem, workspace: OwnWorkspace, slot: int) -> float:
    """All that a slot adds to the log posterior besides the factor V: log W(m) + log m_b."""
    size, nu_index = workspace.sizes[slot], workspace.integers[at.NU]
    half = problem.half_degrees[nu_index]
    return (
        problem.log_prior[at.SIZE_WEIGHT, size]
        + problem.log_constant[nu_index, size]
        + half * workspace.reals[at.LOG_BASE]
        - (half + problem.half_unit * size) * workspace.log_volume[slot]
        - 0.5 * problem.coordinates.shape[1] * problem.log_grown[workspace.integers[at.THETA], size]
    )


@inlined
def _log_size_term(problem: OwnProblem, workspace: OwnWorkspace, size: int) -> float:
    """What of the log weight of joining a cluster depends on its size alone."""
    nu_index, theta_index = workspace.integers[at.NU], workspace.integers[at.THETA]
    grown = problem.log_grown[theta_index, size + 1] - problem.log_grown[theta_index, size]
    step = problem.log_constant[nu_index, size + 1] - problem.log_constant[nu_index, size]
    return problem.log_prior[at.SIZE_STEP, size] + step - 0.5 * problem.coordinates.shape[1] * grown


@jit
def _log_growth_whole(
    vector: FloatArray,
    centre: FloatArray,
    inverse: FloatArray,
    gap: FloatArray,
    image: FloatArray,
    factor: float,
) -> float:
    """Model III: log of |A + f (y−c)(y−c)ᵀ| / |A| from A⁻¹; leaves y − c in `gap`, A⁻¹(y−c) in `image`."""
    for r in range(vector.shape[0]):
        gap[r] = vector[r] - centre[r]
    multiply(inverse, gap, image)
    return math.log(max(1.0 + factor * dot(gap, image), 1e-300))


@jit
def _log_growth_lean(
    vector: FloatArray, centre: FloatArray, inverse: FloatArray, gap: FloatArray, factor: float
) -> float:
    """The same with half of the products, those of the lower triangle, where A⁻¹(y−c) is not needed.

    Four columns at a time, as in `multiply`: their squares, and then the rows below.
    """
    size = vector.shape[0]
    for r in range(size):
        gap[r] = vector[r] - centre[r]
    whole = size - size % 4
    total = 0.0
    for c in range(0, whole, 4):
        first, second, third, fourth = gap[c], gap[c + 1], gap[c + 2], gap[c + 3]
        total += inverse[c, c] * first * first + inverse[c + 1, c + 1] * second * second
        total += inverse[c + 2, c + 2] * third * third + inverse[c + 3, c + 3] * fourth * fourth
        crossed = second * (inverse[c + 1, c] * first)
        crossed += third * (inverse[c + 2, c] * first + inverse[c + 2, c + 1] * second)
        crossed += fourth * (
            inverse[c + 3, c] * first + inverse[c + 3, c + 1] * second + inverse[c + 3, c + 2] * third
        )
        for r in range(c + 4, size):
            entry = inverse[r, c] * first + inverse[r, c + 1] * second
            entry += inverse[r, c + 2] * third
            crossed += gap[r] * (entry + inverse[r, c + 3] * fourth)
        total += 2.0 * crossed
    for r in range(whole, size):
        crossed = 0.0
        for c in range(whole, r):
            crossed += inverse[r, c] * gap[c]
        total += gap[r] * (2.0 * crossed + inverse[r, r] * gap[r])
    return math.log(max(1.0 + factor * total, 1e-300))


@inlined
def _log_growth(problem: OwnProblem, workspace: OwnWorkspace, slot: int, item: int, factor: float) -> float:
    """Log of |A + f (y−c)(y−c)ᵀ| / |A|, column by column for II."""
    vector, centre, shape = problem.coordinates[item], workspace.means[slot], workspace.shape[slot]
    if problem.model == 3:
        # A call hands over every array of its arguments, so it is given no more than it needs.
        return _log_growth_lean(vector, centre, shape, workspace.second, factor)
    return _log_growth_diagonal(problem.model, vector, centre, shape[0], workspace.base[0], factor)


@inlined
def _log_growth_with_image(
    problem: OwnProblem, workspace: OwnWorkspace, slot: int, item: int, factor: float, image: FloatArray
) -> float:
    """The same; leaves A⁻¹(y−c) in `image` for III."""
    vector, centre, shape = problem.coordinates[item], workspace.means[slot], workspace.shape[slot]
    if problem.model == 3:
        return _log_growth_whole(vector, centre, shape, workspace.second, image, factor)
    return _log_growth_diagonal(problem.model, vector, centre, shape[0], workspace.base[0], factor)


@jit
def _log_growth_diagonal(
    model: int, vector: FloatArray, centre: FloatArray, shape: FloatArray, base: FloatArray, factor: float
) -> float:
    """Models I and II: the same from the diagonal of A, or its one number."""
    if model == 2:
        total = 0.0
        product = 1.0
        for r in range(vector.shape[0]):
            difference = vector[r] - centre[r]
            # What is left after an object has left cannot be less than νΣ.
            product *= max(1.0 + factor * difference * difference / shape[r], base[r] / shape[r])
            if product > _HUGE or product < 1.0 / _HUGE:
                total += math.log(product)
                product = 1.0
        return total + math.log(product)
    square = 0.0
    for r in range(vector.shape[0]):
        square += (vector[r] - centre[r]) * (vector[r] - centre[r])
    return math.log(max(1.0 + factor * square / shape[0], base[0] / shape[0]))


@jit
def _log_shrinkage(problem: OwnProblem, workspace: OwnWorkspace, item: int) -> float:
    """Log of |A'| / |A| of an object's own cluster without it, to all digits."""
    slot = workspace.labels[item]
    kappa = _kappa(problem, workspace, workspace.sizes[slot])
    change = _log_growth(problem, workspace, slot, item, -kappa / (kappa - 1.0))
    if problem.model != 3 or change > math.log(_ILL_CONDITIONED):
        return change
    vector, sums, squares = problem.coordinates[item], workspace.sums[slot], workspace.squares[slot]
    for r in range(vector.shape[0]):
        scaled = (sums[r] - vector[r]) / (kappa - 1.0)
        for c in range(r + 1):
            rest = squares[r, c] - vector[r] * vector[c] - scaled * (sums[c] - vector[c])
            workspace.matrix[r, c] = workspace.base[r, c] + rest
    return cholesky(workspace.matrix) - workspace.log_volume[slot]


@jit
def _empty(problem: OwnProblem, workspace: OwnWorkspace, slot: int) -> None:
    """Make a slot a cluster without objects."""
    workspace.sizes[slot] = 0
    workspace.ages[slot] = 0
    workspace.log_volume[slot] = workspace.reals[at.LOG_BASE]
    for r in range(workspace.sums.shape[1]):
        workspace.sums[slot, r] = 0.0
        workspace.means[slot, r] = 0.0
    for r in range(workspace.squares.shape[1]):
        for c in range(workspace.squares.shape[2]):
            workspace.squares[slot, r, c] = 0.0
            workspace.shape[slot, r, c] = (
                workspace.base_inverse[r, c] if problem.model == 3 else workspace.base[r, c]
            )


@jit
def _exchange(problem: OwnProblem, workspace: OwnWorkspace, slot: int, item: int, sign: int) -> None:
    """Have an object join a slot (sign 1) or leave it (−1): size, sums, squares and shape; not its label."""
    kappa = _kappa(problem, workspace, workspace.sizes[slot])
    factor, image = sign * kappa / (kappa + sign), workspace.first
    log_growth = _log_growth_with_image(problem, workspace, slot, item, factor, image)
    _change_shape(problem, workspace, slot, item, sign, log_growth, image)
    _add_squares(problem, workspace, slot, item, float(sign))
    is_lost = problem.model == 3 and log_growth < math.log(_ILL_CONDITIONED)
    if is_lost or workspace.ages[slot] > _OLD:
        set_shape(problem, workspace, slot)


@inlined
def _change_shape(
    problem: OwnProblem,
    workspace: OwnWorkspace,
    slot: int,
    item: int,
    sign: int,
    log_growth: float,
    image: FloatArray,
) -> None:
    """Change all of a slot but its squares as an object joins or leaves, given A⁻¹(y−c) for model III."""
    vector, centre, shape = problem.coordinates[item], workspace.means[slot], workspace.shape[slot]
    kappa = _kappa(problem, workspace, workspace.sizes[slot])
    factor = sign * kappa / (kappa + sign)
    if problem.model == 3:
        share = factor / math.exp(log_growth)
        for r in range(image.shape[0]):
            scaled = share * image[r]
            for c in range(image.shape[0]):
                shape[r, c] -= scaled * image[c]
    elif problem.model == 2:
        for r in range(vector.shape[0]):
            difference = vector[r] - centre[r]
            shape[0, r] = max(shape[0, r] + factor * difference * difference, workspace.base[0, r])
    else:
        square = 0.0
        for r in range(vector.shape[0]):
            square += (vector[r] - centre[r]) * (vector[r] - centre[r])
        shape[0, 0] = max(shape[0, 0] + factor * square, workspace.base[0, 0])
    workspace.log_volume[slot] += log_growth
    workspace.sizes[slot] += sign
    for r in range(vector.shape[0]):
        workspace.sums[slot, r] += sign * vector[r]
    workspace.ages[slot] += 1
    _set_centre(problem, workspace, slot)


@jit
def _copy_slot(workspace: OwnWorkspace, source: int, target: int) -> None:
    """Copy the statistics of a slot to another."""
    workspace.sizes[target] = workspace.sizes[source]
    workspace.ages[target] = workspace.ages[source]
    workspace.log_volume[target] = workspace.log_volume[source]
    for r in range(workspace.sums.shape[1]):
        workspace.sums[target, r] = workspace.sums[source, r]
        workspace.means[target, r] = workspace.means[source, r]
    for r in range(workspace.squares.shape[1]):
        for c in range(workspace.squares.shape[2]):
            workspace.squares[target, r, c] = workspace.squares[source, r, c]
            workspace.shape[target, r, c] = workspace.shape[source, r, c]


@jit
def _drop_slot(workspace: OwnWorkspace, slot: int) -> None:
    """Free an emptied slot by moving the last one into it."""
    last = workspace.integers[at.CLUSTERS] - 1
    if slot != last:
        rename(workspace, last, slot)
        _copy_slot(workspace, last, slot)
    workspace.sizes[last] = 0
    workspace.integers[at.CLUSTERS] = last


@jit
def weigh_sides(problem: OwnProblem, workspace: OwnWorkspace, count: int) -> None:
    """Compute the statistics of the two sides that the gathered members are on."""
    for side in range(2):
        _empty(problem, workspace, at.SIDE + side)
    for k in range(count):
        item, slot = workspace.members[k], at.SIDE + workspace.sides[k]
        workspace.sizes[slot] += 1
        for r in range(workspace.sums.shape[1]):
            workspace.sums[slot, r] += problem.coordinates[item, r]
    _square_sides(problem, workspace)
    for side in range(2):
        set_shape(problem, workspace, at.SIDE + side)


@jit
def _square_sides(problem: OwnProblem, workspace: OwnWorkspace) -> None:
    """Compute the squares of the two sides, whose sizes are known, from their objects."""
    squares = workspace.squares
    for side in range(2):
        for r in range(squares.shape[1]):
            for c in range(squares.shape[2]):
                squares[at.SIDE + side, r, c] = 0.0
    for k in range(workspace.sizes[at.SIDE] + workspace.sizes[at.SIDE + 1]):
        _add_squares(problem, workspace, at.SIDE + workspace.sides[k], workspace.members[k], 1.0)


@jit
def log_change_of_split(
    problem: OwnProblem,
    workspace: OwnWorkspace,
    slot: int,
    moved: int,  # noqa: ARG001 - the sides know their sizes
) -> float:
    """Log π(after) − log π(before) of splitting a slot into the two sides that were weighed."""
    change = log_opening(problem, workspace, workspace.integers[at.CLUSTERS])
    change += log_cluster(problem, workspace, at.SIDE) + log_cluster(problem, workspace, at.SIDE + 1)
    return change - log_cluster(problem, workspace, slot)


@jit
def log_change_of_detaching(problem: OwnProblem, workspace: OwnWorkspace, item: int) -> float:
    """Log π(after) − log π(before) of an object's leaving its company for a cluster of its own."""
    tabulate(problem, workspace)
    return _log_weight_alone(problem, workspace, item, at.FRESH) - _log_weight_at_home(
        problem, workspace, item
    )


@jit
def log_change_of_merge(problem: OwnProblem, workspace: OwnWorkspace, slot: int, other: int) -> float:
    """Set up the merge of two clusters; return log π(after) − log π(before)."""
    workspace.sizes[at.MERGED] = workspace.sizes[slot] + workspace.sizes[other]
    for r in range(workspace.sums.shape[1]):
        workspace.sums[at.MERGED, r] = workspace.sums[slot, r] + workspace.sums[other, r]
    for r in range(workspace.squares.shape[1]):
        for c in range(workspace.squares.shape[2]):
            workspace.squares[at.MERGED, r, c] = (
                workspace.squares[slot, r, c] + workspace.squares[other, r, c]
            )
    _set_volume(problem, workspace, at.MERGED)
    change = log_cluster(problem, workspace, at.MERGED) - log_opening(
        problem, workspace, workspace.integers[at.CLUSTERS] - 1
    )
    return change - log_cluster(problem, workspace, slot) - log_cluster(problem, workspace, other)


@jit
def make_split(problem: OwnProblem, workspace: OwnWorkspace, slot: int) -> int:
    """Carry out the split into the two sides that were weighed; return the number of the new slot.

    Objects with side 1 leave `slot` for the new one. The members of the cluster and their sides stand at the
    beginning of `members` and `sides`.
    """
    fresh = workspace.integers[at.CLUSTERS]
    label_moved(workspace, workspace.sizes[slot])
    _square_sides(problem, workspace)
    _copy_slot(workspace, at.SIDE, slot)
    _copy_slot(workspace, at.SIDE + 1, fresh)
    workspace.integers[at.CLUSTERS] = fresh + 1
    workspace.integers[at.CHANGED] = 1
    return fresh


@jit
def make_merge(problem: OwnProblem, workspace: OwnWorkspace, slot: int, other: int) -> None:
    """Carry out the merge that was set up: `other` joins `slot`, and its own slot is dropped."""
    rename(workspace, other, slot)
    set_shape(problem, workspace, at.MERGED)
    _copy_slot(workspace, at.MERGED, slot)
    _drop_slot(workspace, other)
    workspace.integers[at.CHANGED] = 1


@jit
def detach(problem: OwnProblem, workspace: OwnWorkspace, item: int) -> int:
    """Make an object that has company a cluster of its own; return its new slot."""
    fresh = workspace.integers[at.CLUSTERS]
    _exchange(problem, workspace, workspace.labels[item], item, -1)
    _empty(problem, workspace, fresh)
    _exchange(problem, workspace, fresh, item, 1)
    workspace.labels[item] = fresh
    workspace.integers[at.CLUSTERS] = fresh + 1
    workspace.integers[at.CHANGED] = 1
    return fresh


@jit
def attach(problem: OwnProblem, workspace: OwnWorkspace, item: int, target: int) -> None:
    """Move an object that is alone to another slot; its own is dropped."""
    slot = workspace.labels[item]
    _exchange(problem, workspace, target, item, 1)
    workspace.labels[item] = target
    _drop_slot(workspace, slot)
    workspace.integers[at.CHANGED] = 1


@jit
def relocate(problem: OwnProblem, workspace: OwnWorkspace, item: int, target: int) -> None:
    """Move an object to another slot; the one after the last stands for a new cluster."""
    slot = workspace.labels[item]
    if target == workspace.integers[at.CLUSTERS]:
        detach(problem, workspace, item)
    elif workspace.sizes[slot] == 1:
        attach(problem, workspace, item, target)
    else:
        _exchange(problem, workspace, slot, item, -1)
        _exchange(problem, workspace, target, item, 1)
        workspace.labels[item] = target
        workspace.integers[at.CHANGED] = 1


@jit
def tabulate(problem: OwnProblem, workspace: OwnWorkspace) -> None:
    """Write down what the weights of all objects need of each slot, and of a new cluster.

    ``reals[FRESH]`` is the term of a new cluster of an object in company, ``reals[LONE]`` that of one that is
    alone, beside which there is one cluster less.
    """
    n_clusters, half = workspace.integers[at.CLUSTERS], problem.half_degrees[workspace.integers[at.NU]]
    for b in range(n_clusters):
        _tabulate_slot(problem, workspace, b, half)
    term = _log_size_term(problem, workspace, 0) - problem.half_unit * workspace.reals[at.LOG_BASE]
    workspace.reals[at.FRESH] = term + log_opening(problem, workspace, n_clusters)
    workspace.reals[at.LONE] = term + log_opening(problem, workspace, max(n_clusters - 1, 1))


@inlined
def _tabulate_slot(problem: OwnProblem, workspace: OwnWorkspace, slot: int, half: float) -> None:
    size = workspace.sizes[slot]
    kappa = _kappa(problem, workspace, size)
    term = _log_size_term(problem, workspace, size)
    workspace.slots[_TERM, slot] = term - problem.half_unit * workspace.log_volume[slot]
    workspace.slots[_POWER, slot] = half + problem.half_unit * (size + 1.0)
    workspace.slots[_FACTOR, slot] = kappa / (kappa + 1.0)


@inlined
def _log_weight_joining(problem: OwnProblem, workspace: OwnWorkspace, item: int, slot: int) -> float:
    """Log weight of joining a slot that the object is not in; it must have been tabulated."""
    growth = _log_growth(problem, workspace, slot, item, workspace.slots[_FACTOR, slot])
    return workspace.slots[_TERM, slot] - workspace.slots[_POWER, slot] * growth


@inlined
def _log_weight_at_home(problem: OwnProblem, workspace: OwnWorkspace, item: int) -> float:
    """Log weight of the cluster that an object is in, in company."""
    slot = workspace.labels[item]
    size = workspace.sizes[slot] - 1
    half = problem.half_degrees[workspace.integers[at.NU]] + problem.half_unit * size
    shrinkage = _log_shrinkage(problem, workspace, item)
    term = _log_size_term(problem, workspace, size) - problem.half_unit * workspace.log_volume[slot]
    return term + half * shrinkage


@inlined
def _log_weight_alone(problem: OwnProblem, workspace: OwnWorkspace, item: int, place: int) -> float:
    """Log weight of a new cluster; `place` is that of its term in `reals`.

    The growth that it needs is the same until the parameters are drawn again, so it is written down.
    """
    half, growth = problem.half_degrees[workspace.integers[at.NU]], workspace.alone[item]
    if growth == _UNKNOWN:
        kappa = _kappa(problem, workspace, 0)
        growth = _log_growth(problem, workspace, at.EMPTY, item, kappa / (kappa + 1.0))
        workspace.alone[item] = growth
    return workspace.reals[place] - (half + problem.half_unit) * growth


@inlined
def conditional_weights(problem: OwnProblem, workspace: OwnWorkspace, item: int) -> int:
    """Write the weights of an object's candidates, the largest 1, to `weights`; return their number.

    What `tabulate` writes must be up to date.
    """
    count = write_log_weights(problem, workspace, item)
    from_logs(workspace.weights, count)
    return count


@inlined
def write_log_weights(problem: OwnProblem, workspace: OwnWorkspace, item: int) -> int:
    """Write the log weights of an object's candidates to `weights`; return their number.

    Candidates are the slots, then a new cluster unless the object is alone already: its own slot then stands
    for that. What `tabulate` writes must be up to date.
    """
    own, n_clusters = workspace.labels[item], workspace.integers[at.CLUSTERS]
    weights = workspace.weights
    for b in range(n_clusters):
        if b != own:
            weights[b] = _log_weight_joining(problem, workspace, item, b)
    count = n_clusters
    if workspace.sizes[own] == 1:
        weights[own] = _log_weight_alone(problem, workspace, item, at.LONE)
    else:
        weights[own] = _log_weight_at_home(problem, workspace, item)
        weights[n_clusters] = _log_weight_alone(problem, workspace, item, at.FRESH)
        count = n_clusters + 1
    return count


@jit
def open_sides(
    problem: OwnProblem,
    workspace: OwnWorkspace,
    merging: bool,  # noqa: ARG001 - sides of own shapes do not look at the merged state
) -> None:
    """Begin an allocation: the first two of the gathered members found the sides 0 and 1."""
    half = problem.half_degrees[workspace.integers[at.NU]]
    for side in range(2):
        _empty(problem, workspace, at.SIDE + side)
        _tabulate_slot(problem, workspace, at.SIDE + side, half)
        _log_weight_on_side(problem, workspace, workspace.members[side], side)
        join_side(problem, workspace, workspace.members[side], side)


@jit
def join_side(problem: OwnProblem, workspace: OwnWorkspace, item: int, side: int) -> None:
    """Put an object on a side that it has just been weighed on.

    Squares are left to those who need them, `make_split` above all: most splits are rejected.
    """
    slot = at.SIDE + side
    log_growth = workspace.slots[_GROWTH, slot]
    _change_shape(problem, workspace, slot, item, 1, log_growth, workspace.images[side])
    if workspace.ages[slot] > _OLD:
        _square_sides(problem, workspace)
        set_shape(problem, workspace, slot)
    _tabulate_slot(problem, workspace, slot, problem.half_degrees[workspace.integers[at.NU]])


@inlined
def _log_weight_on_side(problem: OwnProblem, workspace: OwnWorkspace, item: int, side: int) -> float:
    """Log weight of joining a side; what its shape changes by if the object joins it is kept."""
    slot = at.SIDE + side
    factor, image = workspace.slots[_FACTOR, slot], workspace.images[side]
    growth = _log_growth_with_image(problem, workspace, slot, item, factor, image)
    workspace.slots[_GROWTH, slot] = growth
    return workspace.slots[_TERM, slot] - workspace.slots[_POWER, slot] * growth


@jit
def log_odds(problem: OwnProblem, workspace: OwnWorkspace, item: int) -> float:
    """Log odds that an object joins side 1 rather than side 0."""
    one = _log_weight_on_side(problem, workspace, item, 1)
    return one - _log_weight_on_side(problem, workspace, item, 0)
