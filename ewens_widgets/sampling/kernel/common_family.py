r"""Operations of the family of common shapes: what moves and draws do to the one scatter of all clusters.

A change of the partition has three steps that callers take apart: set the exchange up (see `scatter`), look
at the change of the log posterior, carry it out. The weights of an object in all clusters are a chapter of
their own, `common_weights`.

*Allocation.* A member y joins a side with m members and sum s with probability proportional to

.. math::

    \frac{W(m+1)}{W(m)} \; N\!\left(y \;\middle|\; \tfrac{\theta}{1+\theta m} s, \;
    \left(1 + \tfrac{\theta}{1+\theta m}\right) \hat\Sigma\right),

where :math:`\hat\Sigma = M/n` of the *merged* state (its trace over d for model I, its diagonal for II).

*θ* has the exact discrete conditional :math:`p(\theta_g \mid B, Y) \propto p(\theta_g) \, L(B, \theta_g)`.
"""

import math

import numpy as np

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.compiled import inlined, jit
from ewens_widgets.sampling.kernel import workspace as at
from ewens_widgets.sampling.kernel.centre import (
    draw_centre,
    fill_residual,
    least_growth,
    log_orbit_terms,
    release,
    sum_table,
    within_scatter,
)
from ewens_widgets.sampling.kernel.gaps import impute
from ewens_widgets.sampling.kernel.partition_changes import (
    choose,
    from_logs,
    label_moved,
    log_opening,
    normalise,
    rename,
)
from ewens_widgets.sampling.kernel.scatter import (
    apply_exchange,
    cholesky,
    dot,
    exchange_diagonal,
    fill_scatter,
    fill_scatter_matrix,
    log_partition_terms,
    log_scale,
    log_scale_after,
    multiply,
    quadratic,
    refresh,
    settle,
    split_coefficients,
    square_sums,
    update_inverse,
)
from ewens_widgets.sampling.kernel.workspace import Problem, Workspace

# Log weights of θ so far below the highest become 0 in `from_logs`, whatever rounding does.
_NEGLIGIBLE = 41.0


@inlined
def _store_entry(workspace: Workspace, slot: int, feature: int, value: float) -> None:
    """Set an entry of a cluster's sum."""
    workspace.sums[slot, feature] = value
    workspace.columns[feature, slot] = value


@inlined
def _log_scale_change(problem: Problem, workspace: Workspace) -> float:
    change = log_scale_after(problem, workspace) - log_scale(problem, workspace)
    return -0.5 * problem.coordinates.shape[0] * change


@inlined
def _prior_change_of_split(
    problem: Problem, workspace: Workspace, size: int, moved: int, n_clusters: int
) -> float:
    """Change of all size-dependent terms when `moved` of `size` objects leave to form one more than K."""
    return (
        log_opening(problem, workspace, n_clusters)
        + log_partition_terms(problem, workspace, size - moved)
        + log_partition_terms(problem, workspace, moved)
        - log_partition_terms(problem, workspace, size)
    )


@inlined
def _set_exchange(problem: Problem, workspace: Workspace, size: int, moved: int) -> None:
    """Write the coefficients of the split of `moved` from `size` objects."""
    theta = problem.theta[workspace.integers[at.THETA]]
    split_coefficients(theta, float(problem.exponent), float(size), float(moved), workspace.coefficients)


@inlined
def _set_split(problem: Problem, workspace: Workspace, slot: int, moved: int, moved_sum: FloatArray) -> None:
    """Set up the exchange for `moved` objects with the sum `moved_sum` leaving `slot`."""
    size = workspace.sizes[slot]
    _set_exchange(problem, workspace, size, moved)
    for r in range(moved_sum.shape[0]):
        whole = workspace.sums[slot, r]
        workspace.vectors[at.MEAN, r] = whole / size
        workspace.vectors[at.GAP, r] = moved_sum[r] / moved - (whole - moved_sum[r]) / (size - moved)


@inlined
def _set_merge(problem: Problem, workspace: Workspace, slot: int, other: int) -> None:
    """Set up the exchange for merging two clusters."""
    size, other_size = workspace.sizes[slot], workspace.sizes[other]
    total = size + other_size
    _set_exchange(problem, workspace, total, other_size)
    for k in range(3):
        workspace.coefficients[k] = -workspace.coefficients[k]
    for r in range(workspace.sums.shape[1]):
        own, joining = workspace.sums[slot, r], workspace.sums[other, r]
        workspace.vectors[at.MEAN, r] = (own + joining) / total
        workspace.vectors[at.GAP, r] = joining / other_size - own / size


@inlined
def _log_change_of_leaving(
    problem: Problem, workspace: Workspace, slot: int, moved: int, moved_sum: FloatArray
) -> float:
    """Set up the exchange for `moved` objects leaving `slot`; return log π(after) − log π(before)."""
    _set_split(problem, workspace, slot, moved, moved_sum)
    n_clusters = workspace.integers[at.CLUSTERS]
    change = _prior_change_of_split(problem, workspace, workspace.sizes[slot], moved, n_clusters)
    return _log_scale_change(problem, workspace) + change


@inlined
def log_change_of_split(problem: Problem, workspace: Workspace, slot: int, moved: int) -> float:
    """Set up the split of `slot` into its sides, which were weighed; return log π(after) − log π(before)."""
    return _log_change_of_leaving(problem, workspace, slot, moved, workspace.vectors[at.SIDE_SUMS + 1])


@inlined
def log_change_of_detaching(problem: Problem, workspace: Workspace, item: int) -> float:
    """The same for an object that leaves its company."""
    slot = workspace.labels[item]
    return _log_change_of_leaving(problem, workspace, slot, 1, problem.coordinates[item])


@inlined
def log_change_of_merge(problem: Problem, workspace: Workspace, slot: int, other: int) -> float:
    """Set up the exchange for merging two clusters; return log π(after) − log π(before)."""
    _set_merge(problem, workspace, slot, other)
    total, fewer = workspace.sizes[slot] + workspace.sizes[other], workspace.integers[at.CLUSTERS] - 1
    change = _prior_change_of_split(problem, workspace, total, workspace.sizes[other], fewer)
    return _log_scale_change(problem, workspace) - change


@jit
def weigh_sides(problem: Problem, workspace: Workspace, count: int) -> None:
    """Sum the gathered members on side 1; the sums of the other side follow."""
    moved_sum = workspace.vectors[at.SIDE_SUMS + 1]
    for r in range(moved_sum.shape[0]):
        moved_sum[r] = 0.0
    for k in range(count):
        if workspace.sides[k] == 1:
            for r in range(moved_sum.shape[0]):
                moved_sum[r] += problem.coordinates[workspace.members[k], r]


@jit
def make_split(problem: Problem, workspace: Workspace, slot: int) -> int:
    """Carry out the split that was set up and return the number of the new slot.

    Objects with side 1 leave `slot` for the new one. The members of the cluster and their sides stand at the
    beginning of `members` and `sides`.
    """
    fresh = workspace.integers[at.CLUSTERS]
    moved = label_moved(workspace, workspace.sizes[slot])
    _finish_split(problem, workspace, slot, moved, workspace.vectors[at.SIDE_SUMS + 1])
    return fresh


@inlined
def _exchange_scatter(problem: Problem, workspace: Workspace) -> bool:
    """Change the scatter by the exchange that was set up; return whether it was too ill-conditioned."""
    workspace.integers[at.CHANGED] = 1
    if problem.model == 2:  # A call costs as much as this exchange.
        exchange_diagonal(workspace)
        return False
    return apply_exchange(problem, workspace)


@inlined
def _finish_split(
    problem: Problem, workspace: Workspace, slot: int, moved: int, moved_sum: FloatArray
) -> None:
    """Change scatter, sizes and sums for the split that was set up, once the labels have been changed."""
    ill_conditioned = _exchange_scatter(problem, workspace)
    fresh = workspace.integers[at.CLUSTERS]
    workspace.sizes[slot] -= moved
    workspace.sizes[fresh] = moved
    for r in range(moved_sum.shape[0]):
        _store_entry(workspace, fresh, r, moved_sum[r])
        _store_entry(workspace, slot, r, workspace.sums[slot, r] - moved_sum[r])
    workspace.integers[at.CLUSTERS] = fresh + 1
    if problem.model != 2:
        settle(problem, workspace, slot, fresh, ill_conditioned)


@jit
def make_merge(problem: Problem, workspace: Workspace, slot: int, other: int) -> None:
    """Carry out the merge that was set up: `other` joins `slot`, and its own slot is dropped."""
    rename(workspace, other, slot)
    _finish_merge(problem, workspace, slot, other)


@inlined
def _finish_merge(problem: Problem, workspace: Workspace, slot: int, other: int) -> None:
    """Change scatter, sizes and sums for the merge that was set up, once the labels have been changed."""
    ill_conditioned = _exchange_scatter(problem, workspace)
    workspace.sizes[slot] += workspace.sizes[other]
    for r in range(workspace.sums.shape[1]):
        _store_entry(workspace, slot, r, workspace.sums[slot, r] + workspace.sums[other, r])
    last = workspace.integers[at.CLUSTERS] - 1
    _drop_slot(workspace, other)
    kept = other if slot == last else slot
    if problem.model != 2:
        settle(problem, workspace, kept, kept, ill_conditioned)


@jit
def _drop_slot(workspace: Workspace, slot: int) -> None:
    """Free an emptied slot by moving the last one into it."""
    last = workspace.integers[at.CLUSTERS] - 1
    if slot != last:
        rename(workspace, last, slot)
        workspace.sizes[slot] = workspace.sizes[last]
        workspace.gram[slot] = workspace.gram[last]
        for r in range(workspace.sums.shape[1]):
            _store_entry(workspace, slot, r, workspace.sums[last, r])
    workspace.sizes[last] = 0
    workspace.integers[at.CLUSTERS] = last


@jit
def detach(problem: Problem, workspace: Workspace, item: int) -> int:
    """Make an object that has company a cluster of its own; return its new slot."""
    slot = workspace.labels[item]
    fresh = workspace.integers[at.CLUSTERS]
    _set_split(problem, workspace, slot, 1, problem.coordinates[item])
    workspace.labels[item] = fresh
    _finish_split(problem, workspace, slot, 1, problem.coordinates[item])
    return fresh


@jit
def attach(problem: Problem, workspace: Workspace, item: int, target: int) -> None:
    """Move an object that is alone to another slot; its own is dropped."""
    slot = workspace.labels[item]
    _set_merge(problem, workspace, target, slot)
    workspace.labels[item] = target
    _finish_merge(problem, workspace, target, slot)


@jit
def relocate(problem: Problem, workspace: Workspace, item: int, target: int) -> None:
    """Move an object to another slot; the one after the last stands for a new cluster."""
    fresh = target == workspace.integers[at.CLUSTERS]
    if workspace.sizes[workspace.labels[item]] > 1:
        detach(problem, workspace, item)
    if not fresh:
        attach(problem, workspace, item, target)


@jit
def open_sides(problem: Problem, workspace: Workspace, merging: bool) -> None:
    """Begin an allocation: the first two of the gathered members found the sides 0 and 1.

    The merged state is the current one, or (`merging`) what it becomes by the exchange that has been set up.
    """
    _merged_precision(problem, workspace, merging)
    for side in range(2):
        workspace.reals[at.SIDE_SIZES + side] = 1.0
        for r in range(workspace.vectors.shape[1]):
            workspace.vectors[at.SIDE_SUMS + side, r] = problem.coordinates[workspace.members[side], r]


@inlined
def join_side(problem: Problem, workspace: Workspace, item: int, side: int) -> None:
    """Put an object on a side."""
    workspace.reals[at.SIDE_SIZES + side] += 1.0
    for r in range(workspace.vectors.shape[1]):
        workspace.vectors[at.SIDE_SUMS + side, r] += problem.coordinates[item, r]


@jit
def _merged_precision(problem: Problem, workspace: Workspace, merging: bool) -> None:
    """Write the inverse covariance of the merged state: `precision` for I and II, `matrix` for III.

    The merged state is the current one, or (`merging`) what it becomes by the exchange that has been set up.
    """
    precision = workspace.vectors[at.PRECISION]
    if problem.model == 3:
        for r in range(workspace.inverse.shape[0]):
            for c in range(workspace.inverse.shape[0]):
                workspace.matrix[r, c] = workspace.inverse[r, c]
        if merging:
            update_inverse(workspace, workspace.matrix)
        return
    factor = 1.0 if merging else 0.0
    alpha, beta, gamma = workspace.coefficients[0], workspace.coefficients[1], workspace.coefficients[2]
    mean, gap = workspace.vectors[at.MEAN], workspace.vectors[at.GAP]
    if problem.model == 1:
        change = alpha * dot(mean, mean) + 2.0 * beta * dot(mean, gap) + gamma * dot(gap, gap)
        precision[:] = 1.0 / (workspace.scatter[0] + factor * change)
    else:
        for r in range(mean.shape[0]):
            change = quadratic(alpha, beta, gamma, mean[r], gap[r])
            precision[r] = 1.0 / (workspace.scatter[r] + factor * change)


@jit
def log_odds(problem: Problem, workspace: Workspace, item: int) -> float:
    """Log odds that an object joins side 1 rather than side 0."""
    near, far = workspace.vectors[at.SIDE_SUMS], workspace.vectors[at.SIDE_SUMS + 1]
    near_members, far_members = workspace.reals[at.SIDE_SIZES], workspace.reals[at.SIDE_SIZES + 1]
    theta_index = workspace.integers[at.THETA]
    log_grown = problem.log_grown[theta_index]
    theta = problem.theta[theta_index]
    vector = problem.coordinates[item]
    near_pull = theta / (1.0 + theta * near_members)
    far_pull = theta / (1.0 + theta * far_members)
    near_form = 0.0
    far_form = 0.0
    if problem.model == 3:
        # Both forms from one product A y would need sᵀAs of the growing sides; two differences are as cheap.
        difference, image = workspace.second, workspace.first
        for r in range(vector.shape[0]):
            difference[r] = vector[r] - near_pull * near[r]
        multiply(workspace.matrix, difference, image)
        near_form = dot(difference, image)
        for r in range(vector.shape[0]):
            difference[r] = vector[r] - far_pull * far[r]
        multiply(workspace.matrix, difference, image)
        far_form = dot(difference, image)
    else:
        precision = workspace.vectors[at.PRECISION]
        for r in range(vector.shape[0]):
            near_gap = vector[r] - near_pull * near[r]
            far_gap = vector[r] - far_pull * far[r]
            near_form += near_gap * near_gap * precision[r]
            far_form += far_gap * far_gap * precision[r]
    near_size, far_size = int(near_members), int(far_members)
    near_log_variance = log_grown[near_size + 1] - log_grown[near_size]
    far_log_variance = log_grown[far_size + 1] - log_grown[far_size]
    return (
        problem.log_prior[at.SIZE_STEP, far_size]
        - problem.log_prior[at.SIZE_STEP, near_size]
        - 0.5 * vector.shape[0] * (far_log_variance - near_log_variance)
        - 0.5 * (far_form / (1.0 + far_pull) - near_form / (1.0 + near_pull))
    )


@jit
def _theta_log_weights(problem: Problem, workspace: Workspace, out: FloatArray) -> None:
    """Write log p(θ) + log L(B, θ) for every θ of the grid to `out`; changes the scatter.

    Model I needs the squares of the sums. The present θ comes first: with an unknown centre it shows which
    others have weights that `from_logs` makes 0, so that model I need not compute them.
    """
    n_features, is_centred = problem.coordinates.shape[1], problem.origin.shape[0] == 0
    n_objects = problem.coordinates.shape[0] - (0 if is_centred else 1)
    n_values, present = problem.theta.shape[0], workspace.integers[at.THETA]
    is_bounded = problem.model == 1 and not is_centred
    total, within, between, highest = 1.0, 0.0, 0.0, -np.inf
    for step in range(n_values):
        g = present + step if present + step < n_values else present + step - n_values
        log_det_gamma = 0.0
        for b in range(workspace.integers[at.CLUSTERS]):
            log_det_gamma += problem.log_grown[g, workspace.sizes[b]]
        if is_bounded and step > 0:
            growth = least_growth(problem.theta[present], problem.theta[g])
            least = math.log(total * growth) + n_objects * math.log(within + growth * between)
            bound = problem.log_theta_prior[g] - 0.5 * n_features * (log_det_gamma + least)
            if bound < highest - _NEGLIGIBLE:
                out[g] = -np.inf
                continue
        if not is_centred:
            pull = fill_residual(problem, workspace, g)
            log_det_gamma += math.log(pull)
            if is_bounded and step == 0:
                total, within = pull, within_scatter(problem, workspace)
                between = workspace.scatter[0] - within
        elif problem.model == 3:
            fill_scatter_matrix(problem, workspace, g, workspace.matrix)
        else:
            fill_scatter(problem, workspace, g)
        scale = cholesky(workspace.matrix) if problem.model == 3 else log_scale(problem, workspace)
        out[g] = problem.log_theta_prior[g] - 0.5 * n_features * log_det_gamma - 0.5 * n_objects * scale
        highest = max(highest, out[g])


@inlined
def draw_parameters(
    problem: Problem, workspace: Workspace, weights: FloatArray, rng: np.random.Generator
) -> None:
    """Draw θ, write its conditional probabilities to `weights`, and compute the scatter for the new value.

    Most moves of the paper are rejected: the weights are kept for as long as the partition stays the same.
    """
    kept, is_centred = workspace.theta_weights, problem.origin.shape[0] == 0
    has_gaps = problem.gaps.shape[0] > 0
    if not is_centred:
        release(problem, workspace)
    elif has_gaps:
        sum_table(problem, workspace, problem.coordinates)
    is_changed = workspace.integers[at.CHANGED] == 1
    if problem.model == 1 and (is_changed or not is_centred):
        square_sums(workspace)
    if is_changed:
        _theta_log_weights(problem, workspace, kept)
        from_logs(kept, kept.shape[0])
        workspace.integers[at.CHANGED] = 0
    chosen = choose(kept, kept.shape[0], rng.random())
    if chosen >= 0:
        workspace.integers[at.THETA] = chosen
    normalise(kept, weights)
    if not is_centred:
        draw_centre(problem, workspace, rng)
    if has_gaps:
        impute(problem, workspace, rng)
    refresh(problem, workspace)


@inlined
def log_joint(problem: Problem, workspace: Workspace) -> float:
    """Log of prior of θ, likelihood, and the factors W of the prior of the partition."""
    total = problem.log_theta_prior[workspace.integers[at.THETA]]
    if problem.origin.shape[0] == 0:
        total -= 0.5 * problem.coordinates.shape[0] * log_scale(problem, workspace)
    else:
        total += log_orbit_terms(problem, workspace)
    for b in range(workspace.integers[at.CLUSTERS]):
        total += log_partition_terms(problem, workspace, workspace.sizes[b])
    return total
