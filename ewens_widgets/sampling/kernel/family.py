r"""What every family of shapes offers to moves and to the driver, on numbers and on categories.

==========================  =============================================================================
`refresh`                   all statistics of the current partition and parameters, from the objects
`draw_parameters`           θ (own shapes: and ν and Σ) from its exact conditional
`log_joint`                 log posterior of the state, but for the factor V of the prior
`log_change_of_split`,      change of the log posterior by a change of the partition, which is set up:
`log_change_of_merge`,      a cluster falls into its sides, two become one, an object leaves its company
`log_change_of_detaching`
`weigh_sides`               statistics of the sides that the gathered members of a cluster are on
`make_split`, `make_merge`  carry out what was set up
`detach`, `attach`,         an object leaves its company, joins a cluster from alone, goes from one cluster
`relocate`                  to another
`tabulate`,                 weights of an object in all clusters and in a new one; what is tabulated holds
`conditional_weights`       until the partition changes
`open_sides`, `log_odds`,   a split by sequential allocation: two objects found the sides, the others have
`join_side`                 odds of joining the second
==========================  =============================================================================

The kind of the workspace, the second argument, decides whose version is called (`compiled.by_family`): for
numbers the function of that name in the modules of a family. Where there are categorical columns, the version
here does the same with them besides (`compiled.with_categories`).

The likelihood of categorical columns (`model.mixed_columns`) is a product over clusters, each a function of
its counts :math:`n_{bjc}`. An object in categories :math:`c_j` that joins cluster b multiplies it by

.. math:: \prod_j \frac{a + n_{bjc_j}}{L_j a + n_{bj}} ,

the product over the columns in which it is not missing. These factors are tabulated for every category and
slot (`terms`) and written again where a cluster changes, so that a candidate costs one number for each
column. They do not depend on the parameters. Counts are whole numbers, so nothing drifts.

Slots move as they do in the families: a freed slot is filled with the last one.
"""

from collections.abc import Callable
from typing import Any

from ewens_widgets.sampling.compiled import by_family, inlined, jit, with_categories
from ewens_widgets.sampling.kernel import common_family, common_weights, own_draws, own_family, scatter
from ewens_widgets.sampling.kernel.common_weights import powers, write_values
from ewens_widgets.sampling.kernel.own_family import write_log_weights
from ewens_widgets.sampling.kernel.partition_changes import from_logs
from ewens_widgets.sampling.kernel.workspace import (
    CLUSTERS,
    AnyProblem,
    AnyWorkspace,
    CategoryCounts,
    CategoryTables,
    OwnProblem,
    OwnWorkspace,
    Problem,
    Workspace,
)

_NO_SLOT = -1  # In place of a slot: a cluster without objects.


def _on_numbers(name: str, common: Any = common_family, own: Any = own_family) -> Callable[..., Any]:  # noqa: ANN401 - modules
    return by_family({Workspace: getattr(common, name), OwnWorkspace: getattr(own, name)})


refresh: Callable[..., None] = _on_numbers("refresh", scatter)
draw_parameters: Callable[..., None] = _on_numbers("draw_parameters", own=own_draws)
tabulate: Callable[..., None] = _on_numbers("tabulate", common_weights)


@inlined
def _count(tables: CategoryTables, found: CategoryCounts, slot: int, item: int, sign: int) -> None:
    """Count an object in a slot (sign 1), or no more (−1)."""
    places, counts, n_places = tables.places, found.counts, found.terms.shape[0]
    for j in range(places.shape[1]):
        if places[item, j] >= 0:
            counts[slot, places[item, j]] += sign
            counts[slot, n_places + j] += sign


@jit
def _set_terms(tables: CategoryTables, found: CategoryCounts, slot: int) -> None:
    """Write the factors for joining a slot, and its log marginal likelihood."""
    counts, terms, factors = found.counts, found.terms, tables.factors
    for j in range(tables.rows.shape[0]):
        whole = factors[tables.rows[j], counts[slot, terms.shape[0] + j]]
        for place in range(tables.starts[j], tables.starts[j + 1]):
            factor = factors[0, counts[slot, place]]
            terms[place, slot] = factor * whole if tables.multiplies else factor + whole
    found.marginals[slot] = _log_marginal(tables, found, slot)


@inlined
def _log_marginal(tables: CategoryTables, found: CategoryCounts, slot: int) -> float:
    """Log marginal likelihood of the categories of a slot, or of a side."""
    counts, n_places = found.counts, found.terms.shape[0]
    total = 0.0
    for place in range(n_places):
        total += tables.rises[0, counts[slot, place]]
    for j in range(tables.rows.shape[0]):
        total -= tables.rises[tables.rows[j], counts[slot, n_places + j]]
    return total


@jit
def _clear(found: CategoryCounts, slot: int) -> None:
    counts = found.counts
    for place in range(counts.shape[1]):
        counts[slot, place] = 0


@jit
def _add(found: CategoryCounts, source: int, target: int) -> None:
    """Add the counts of a slot to another."""
    counts = found.counts
    for place in range(counts.shape[1]):
        counts[target, place] += counts[source, place]


@jit
def _drop(tables: CategoryTables, found: CategoryCounts, slot: int, last: int) -> None:
    """Fill a freed slot with the last one."""
    if slot != last:
        _clear(found, slot)
        _add(found, last, slot)
        _set_terms(tables, found, slot)
    _clear(found, last)


@jit
def _log_merged(tables: CategoryTables, found: CategoryCounts, slot: int, other: int) -> float:
    """Log marginal likelihood of two slots together, less those of each."""
    counts, n_places = found.counts, found.terms.shape[0]
    total = 0.0
    for place in range(n_places):
        first, second = counts[slot, place], counts[other, place]
        if first > 0 and second > 0:
            rises = tables.rises[0]
            total += rises[first + second] - rises[first] - rises[second]
    for j in range(tables.rows.shape[0]):
        first, second = counts[slot, n_places + j], counts[other, n_places + j]
        rises = tables.rises[tables.rows[j]]
        total -= rises[first + second] - rises[first] - rises[second]
    return total


@inlined
def _log_gain(tables: CategoryTables, found: CategoryCounts, item: int, slot: int, taken: int) -> float:
    """Log factor by which an object that joins a slot multiplies the likelihood.

    `taken` is 1 for its own slot, without the object, and 0 for others; `_NO_SLOT` is a slot without objects.
    """
    counts, n_places = found.counts, found.terms.shape[0]
    total = 0.0
    for j in range(tables.rows.shape[0]):
        place = tables.places[item, j]
        if place >= 0:
            count = counts[slot, place] - taken if slot != _NO_SLOT else 0
            whole = counts[slot, n_places + j] - taken if slot != _NO_SLOT else 0
            total += tables.logs[0, count] - tables.logs[tables.rows[j], whole]
    return total


@inlined
def _side(workspace: AnyWorkspace, side: int) -> int:
    return workspace.categories.counts.shape[0] - 2 + side


@jit
def _write_gains(
    tables: CategoryTables, found: CategoryCounts, item: int, own: int, n_clusters: int, count: int
) -> None:
    """Write what the categories of an object in slot `own` are to the weight of each candidate."""
    counts, terms, gains = found.counts, found.terms, found.gains
    n_places, multiplies = terms.shape[0], tables.multiplies
    for b in range(count):
        gains[b] = 1.0 if multiplies else 0.0
    home = gains[0]
    fresh = home
    for j in range(tables.rows.shape[0]):
        place = tables.places[item, j]
        if place < 0:
            continue
        row, factors = terms[place], tables.factors
        # The object itself does not count where it is.
        own_term = factors[0, counts[own, place] - 1]
        own_whole = factors[tables.rows[j], counts[own, n_places + j] - 1]
        new_term, new_whole = factors[0, 0], factors[tables.rows[j], 0]
        if multiplies:
            for b in range(n_clusters):
                gains[b] *= row[b]
            home *= own_term * own_whole
            fresh *= new_term * new_whole
        else:
            for b in range(n_clusters):
                gains[b] += row[b]
            home += own_term + own_whole
            fresh += new_term + new_whole
    gains[own] = home
    if count > n_clusters:
        gains[n_clusters] = fresh


@inlined
def _common_weights(problem: Problem, workspace: Workspace, item: int) -> int:
    """Weights of an object's candidates under common shapes: the factors multiply the scale."""
    count = write_values(problem, workspace, item)
    own, n_clusters = workspace.labels[item], workspace.integers[CLUSTERS]
    _write_gains(problem.categories, workspace.categories, item, own, n_clusters, count)
    values, gains = workspace.candidates[0], workspace.categories.gains
    for b in range(count):
        values[b] *= gains[b]
    powers(values, count, problem.exponent, workspace.weights)
    return count


@inlined
def _own_weights(problem: OwnProblem, workspace: OwnWorkspace, item: int) -> int:
    """Weights of an object's candidates under own shapes."""
    count = write_log_weights(problem, workspace, item)
    own, n_clusters = workspace.labels[item], workspace.integers[CLUSTERS]
    _write_gains(problem.categories, workspace.categories, item, own, n_clusters, count)
    for b in range(count):
        workspace.weights[b] += workspace.categories.gains[b]
    from_logs(workspace.weights, count)
    return count


_conditional_weights = _on_numbers("conditional_weights", common_weights)
_weights_with_gains: Callable[..., int] = by_family({Workspace: _common_weights, OwnWorkspace: _own_weights})


@with_categories(_conditional_weights)
@inlined
def conditional_weights(problem: AnyProblem, workspace: AnyWorkspace, item: int) -> int:
    """Write the weights of an object's candidates, the largest 1, to `weights`; return their number."""
    return _weights_with_gains(problem, workspace, item)


_log_joint = _on_numbers("log_joint", own=own_draws)


@with_categories(_log_joint)
@inlined
def log_joint(problem: AnyProblem, workspace: AnyWorkspace) -> float:
    """Log posterior of the state, but for the factor V of the prior."""
    total = _log_joint(problem, workspace)
    for b in range(workspace.integers[CLUSTERS]):
        total += workspace.categories.marginals[b]
    return total


_log_change_of_split = _on_numbers("log_change_of_split")


@with_categories(_log_change_of_split)
@inlined
def log_change_of_split(problem: AnyProblem, workspace: AnyWorkspace, slot: int, moved: int) -> float:
    """Log π(after) − log π(before) of splitting a slot into the two sides that were weighed."""
    change = _log_change_of_split(problem, workspace, slot, moved)
    for side in range(2):
        change += workspace.categories.marginals[_side(workspace, side)]
    return change - workspace.categories.marginals[slot]


_log_change_of_merge = _on_numbers("log_change_of_merge")


@with_categories(_log_change_of_merge)
@inlined
def log_change_of_merge(problem: AnyProblem, workspace: AnyWorkspace, slot: int, other: int) -> float:
    """Log π(after) − log π(before) of merging two clusters."""
    change = _log_change_of_merge(problem, workspace, slot, other)
    return change + _log_merged(problem.categories, workspace.categories, slot, other)


_log_change_of_detaching = _on_numbers("log_change_of_detaching")


@with_categories(_log_change_of_detaching)
@inlined
def log_change_of_detaching(problem: AnyProblem, workspace: AnyWorkspace, item: int) -> float:
    """Log π(after) − log π(before) of an object's leaving its company."""
    change = _log_change_of_detaching(problem, workspace, item)
    change += _log_gain(problem.categories, workspace.categories, item, _NO_SLOT, 0)
    return change - _log_gain(problem.categories, workspace.categories, item, workspace.labels[item], 1)


_weigh_sides = _on_numbers("weigh_sides")


@with_categories(_weigh_sides)
@inlined
def weigh_sides(problem: AnyProblem, workspace: AnyWorkspace, count: int) -> None:
    """Compute the statistics of the sides that the gathered members are on."""
    _weigh_sides(problem, workspace, count)
    tables, found = problem.categories, workspace.categories
    for side in range(2):
        _clear(found, _side(workspace, side))
    for k in range(count):
        _count(tables, found, _side(workspace, workspace.sides[k]), workspace.members[k], 1)
    for side in range(2):
        found.marginals[_side(workspace, side)] = _log_marginal(tables, found, _side(workspace, side))


_make_split = _on_numbers("make_split")


@with_categories(_make_split)
@inlined
def make_split(problem: AnyProblem, workspace: AnyWorkspace, slot: int) -> int:
    """Carry out the split into the two sides that were weighed; return the number of the new slot."""
    fresh = _make_split(problem, workspace, slot)
    for side in range(2):
        target = fresh if side == 1 else slot
        _clear(workspace.categories, target)
        _add(workspace.categories, _side(workspace, side), target)
        _set_terms(problem.categories, workspace.categories, target)
    return fresh


_make_merge = _on_numbers("make_merge")


@with_categories(_make_merge)
@inlined
def make_merge(problem: AnyProblem, workspace: AnyWorkspace, slot: int, other: int) -> None:
    """Carry out the merge that was set up: `other` joins `slot`, and its own slot is dropped."""
    last = workspace.integers[CLUSTERS] - 1
    _make_merge(problem, workspace, slot, other)
    _add(workspace.categories, other, slot)
    _set_terms(problem.categories, workspace.categories, slot)
    _drop(problem.categories, workspace.categories, other, last)


_detach = _on_numbers("detach")


@with_categories(_detach)
@inlined
def detach(problem: AnyProblem, workspace: AnyWorkspace, item: int) -> int:
    """Make an object that has company a cluster of its own; return its new slot."""
    slot = workspace.labels[item]
    fresh = _detach(problem, workspace, item)
    _clear(workspace.categories, fresh)
    _move(problem.categories, workspace.categories, item, slot, fresh)
    return fresh


@jit
def _move(tables: CategoryTables, found: CategoryCounts, item: int, slot: int, target: int) -> None:
    """Have an object leave a slot for another."""
    _count(tables, found, slot, item, -1)
    _count(tables, found, target, item, 1)
    _set_terms(tables, found, slot)
    _set_terms(tables, found, target)


_attach = _on_numbers("attach")


@with_categories(_attach)
@inlined
def attach(problem: AnyProblem, workspace: AnyWorkspace, item: int, target: int) -> None:
    """Move an object that is alone to another slot; its own is dropped."""
    slot, last = workspace.labels[item], workspace.integers[CLUSTERS] - 1
    _attach(problem, workspace, item, target)
    _move(problem.categories, workspace.categories, item, slot, target)
    _drop(problem.categories, workspace.categories, slot, last)


_relocate = _on_numbers("relocate")


@with_categories(_relocate)
@inlined
def relocate(problem: AnyProblem, workspace: AnyWorkspace, item: int, target: int) -> None:
    """Move an object to another slot; the one after the last stands for a new cluster."""
    slot, n_clusters = workspace.labels[item], workspace.integers[CLUSTERS]
    is_alone = workspace.sizes[slot] == 1
    _relocate(problem, workspace, item, target)
    if target == n_clusters:
        _clear(workspace.categories, target)
    _move(problem.categories, workspace.categories, item, slot, target)
    if is_alone:
        _drop(problem.categories, workspace.categories, slot, n_clusters - 1)


_open_sides = _on_numbers("open_sides")


@with_categories(_open_sides)
@inlined
def open_sides(problem: AnyProblem, workspace: AnyWorkspace, merging: bool) -> None:
    """Begin an allocation: the first two of the gathered members found the sides 0 and 1."""
    _open_sides(problem, workspace, merging)
    tables, found = problem.categories, workspace.categories
    for side in range(2):
        slot = _side(workspace, side)
        _clear(found, slot)
        found.marginals[slot] = _log_gain(tables, found, workspace.members[side], slot, 0)
        _count(tables, found, slot, workspace.members[side], 1)


_join_side = _on_numbers("join_side")


@with_categories(_join_side)
@inlined
def join_side(problem: AnyProblem, workspace: AnyWorkspace, item: int, side: int) -> None:
    """Put an object on a side that it has just been weighed on."""
    _join_side(problem, workspace, item, side)
    tables, found, slot = problem.categories, workspace.categories, _side(workspace, side)
    # By the chain rule; the gain is that of the weighing.
    found.marginals[slot] += found.gains[found.gains.shape[0] - 2 + side]
    _count(tables, found, slot, item, 1)


_log_odds = _on_numbers("log_odds")


@with_categories(_log_odds)
@inlined
def log_odds(problem: AnyProblem, workspace: AnyWorkspace, item: int) -> float:
    """Log odds that an object joins side 1 rather than side 0."""
    tables, found = problem.categories, workspace.categories
    last = found.gains.shape[0] - 1
    found.gains[last - 1] = _log_gain(tables, found, item, _side(workspace, 0), 0)
    found.gains[last] = _log_gain(tables, found, item, _side(workspace, 1), 0)
    return _log_odds(problem, workspace, item) + found.gains[last] - found.gains[last - 1]
