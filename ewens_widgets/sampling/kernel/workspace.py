r"""The arrays of a running chain.

A problem holds what never changes; a workspace what the moves change, and their scratch space. Both are
named tuples of arrays, which numba passes on without copying. There is one pair for each family of shapes,
`Problem` and `Workspace` for common ones, `OwnProblem` and `OwnWorkspace` for clusters with shapes of their
own; what moves use of them has the same names in both. Clusters live in slots 0, …, K−1, always packed: a
freed slot is filled with the last one. The labels of the workspace are slot numbers.

*Common shapes.* The scatter :math:`M/n` belongs to the current θ. Model I keeps its trace over d, model II
its diagonal, model III its inverse A and log determinant. The cluster sums are exact (see
`model.coordinates.on_exact_grid`), and the scatter is computed again with every draw of θ, so nothing drifts
and the state of a chain is its slot labels, θ, λ and generator.

*Own shapes.* Every slot has its squares S and the volume A of `model.own_shapes`: model I and II keep A
itself, model III its inverse; all are computed again with every draw of Σ, which is part of the state like ν.
Four slots behind those of clusters are for statistics of clusters that do not exist: the two sides of a
split, a merged cluster, and one without objects.

*Categories.* `categories` is an empty tuple in both where no column is a category, so that compiled code has
nothing of them then; otherwise it has tables (`CategoryTables`) and counts (`CategoryCounts`).

*Memory that moves.* Where the centre is unknown or cells are missing, a chain has coordinates of its own, and
`rows` is their memory; where both is so, the table about the known centre of its observed cells, `origin`,
stands behind them.

*Packed parameters* are one vector: Σ (own shapes), an unknown centre (own shapes), then imputed cells in the
order of `gaps`. `driver` and `state.first_state` write it; `make_workspace`, `draws` and `Posterior` read it
(`scale`, `shift`, `table`). Its length is `Posterior.sigma_length`.

*Places.* `make_workspace` makes `integers`, `reals` and `vectors` with exactly the places that are numbered
below, and writes the first values of `integers` in their order. A new place needs a longer array there.
`_vectors` and `scatter.fill_total` have the same layout of the total.

`Outcome` is what a move says besides its decision, where somebody wants to know: first a *report*, the
proposed partition with its ratio; then also an *account*, notes of everything that was chosen on the way and
how probable it was. What the notes mean is the business of the move that takes them.
"""

from typing import Any, NamedTuple, TypeAlias, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ewens_widgets.model.checks import FloatArray, ModelName
from ewens_widgets.model.coordinates import exact_step, on_exact_grid
from ewens_widgets.model.likelihood import cluster_sums
from ewens_widgets.model.mixed_columns import PSEUDO_COUNT
from ewens_widgets.model.own_shapes import log_size_constants, prior_degrees, unit_degrees, unpack_sigma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.compiled import jit

IntArray = NDArray[np.int64]

# Places in `integers` and `reals`, which hold the scalars that the moves change.
CLUSTERS, THETA, CHANGED, NU = 0, 1, 2, 3
LOG_DETERMINANT, LOG_CONCENTRATION, FRESH, FRESH_LIFTS, LONE, LONE_LIFTS, LOG_BASE = range(7)
SIDE_SIZES = 7  # of the two sides of a split
# Rows of `vectors`: an exchange, sums of the two sides of a split, a diagonal precision; where cells are
# missing also the total cross product of the table over n (II: its diagonal; I: its trace over d).
MEAN, GAP, SIDE_SUMS, PRECISION, TOTAL = 0, 1, 2, 4, 5
# Rows of `log_prior`.
SIZE_WEIGHT, SIZE_STEP, COUNT_STEP = 0, 1, 2
# Slots of own shapes behind the n + 1 of clusters, counted from the end: sides 0 and 1, a merged cluster, and
# one without objects.
SIDE, MERGED, EMPTY = -4, -2, -1
_LARGEST_GAIN = 200.0  # Logarithm of the largest factor of a weight that categories may make.
_MOST_DEAR_COUNTS = 20_000  # Numbers of clusters that a weight is computed for where each takes a sum.


class CategoryTables(NamedTuple):
    r"""What never changes of categorical columns, and tables over counts m = 0, …, n + 1.

    The categories of all columns have places side by side: those of column j begin at ``starts[j]``;
    `places` has the place of each object (n × J), −1 where it is missing. Tables have a row for a category,
    then one for each number of categories: row ``rows[j]`` is that of column j. With α = a for a category and
    La for a column, `rises` is :math:`\log\Gamma(\alpha+m)/\Gamma(\alpha)`, `logs` is :math:`\log(\alpha+m)`,
    and `factors` is what weights of candidates are made of: of common shapes the power −2/`exponent` of α + m
    (of a column its inverse), which multiplies the scale; of own shapes its logarithm, `logs` with this sign.
    """

    places: IntArray
    starts: IntArray
    rows: IntArray
    rises: FloatArray
    logs: FloatArray
    factors: FloatArray
    multiplies: bool


class CategoryCounts(NamedTuple):
    """What moves change of categorical columns.

    A row of `counts` is a slot: how many of its objects are in each category, and behind these how many are
    not missing in each column. The last two rows are the sides of a split. `marginals` has the log marginal
    likelihood of each slot and side. `terms` has the factors of each category for joining each slot; `gains`
    are those of the candidates of an object, over all columns, and at the end of the two sides.
    """

    counts: IntArray
    marginals: FloatArray
    terms: FloatArray
    gains: FloatArray


class Problem(NamedTuple):
    r"""What never changes: data, model and tables over cluster sizes m = 0, …, n + 1.

    `log_grown[g, m]` is :math:`\log(1+\theta_g m)`; `shrinkage[g, m]` is
    :math:`\theta_g/(1+\theta_g m)`, divided by n (and by d for model I), so that scatters come out as means.
    The posterior falls with the power `exponent` / 2 of the scale; `handicap[g, m]` is what the scale (for
    model II, each of its factors) is multiplied by for an object to join a cluster of m (see
    `kernel.common_weights`); for m = 0, a new cluster, the share of V is missing. (No object joins a cluster
    of n + 1.) `log_prior` has three rows of the prior V(K) Π W(m), a table each: `SIZE_WEIGHT` is log W(m),
    `SIZE_STEP` log W(m+1)/W(m), and `COUNT_STEP` log V(K+1)/V(K), but for λ, which is in the workspace.
    `origin` has the centred data where the centre is unknown (see `kernel.centre`), and else no rows; its
    entries are then multiples of `step`. `gaps` has row and column of each missing cell (see `kernel.gaps`).

    Arrays are few: a call hands each of them over in some seven numbers, which small moves feel.
    """

    coordinates: FloatArray
    model: int
    theta: FloatArray
    log_theta_prior: FloatArray
    log_grown: FloatArray
    log_prior: FloatArray
    shrinkage: FloatArray
    exponent: int
    handicap: FloatArray
    step: float
    origin: FloatArray
    gaps: IntArray
    categories: Any = ()


class OwnProblem(NamedTuple):
    r"""The same for own shapes, with tables over the values of ν as well.

    A cluster of m objects contributes :math:`c_v(m) + h_v \log|\nu\Sigma| - (h_v + u m) \log|A| -
    \tfrac d2 \log(1 + \theta m)`: `log_constant`, `half_degrees` and `half_unit` are c, h and u.
    """

    coordinates: FloatArray
    model: int
    theta: FloatArray
    log_theta_prior: FloatArray
    log_grown: FloatArray
    log_prior: FloatArray
    nu: FloatArray
    log_constant: FloatArray
    half_degrees: FloatArray
    half_unit: float
    origin: FloatArray
    gaps: IntArray
    categories: Any = ()


class Workspace(NamedTuple):
    """What moves change: the partition with its statistics, and scratch space.

    `columns` is `sums` transposed: loops over all clusters run along it, loops over features along `sums`.
    `gram` holds :math:`s_b^T s_b` for model I and :math:`s_b^T A s_b` for model III. `coefficients` and the
    first `vectors` hold an exchange: a change of the scatter in a plane (see `scatter`); `plane` is scratch
    for that and for other small things. `theta_weights` are those of the conditional of θ for the partition
    of the last iteration; where that has changed since, ``integers[CHANGED]`` is 1. `slots` is what a Gibbs
    sweep looks up for each slot.
    """

    labels: IntArray
    sizes: IntArray
    sums: FloatArray
    columns: FloatArray
    scatter: FloatArray
    inverse: FloatArray
    gram: FloatArray
    integers: IntArray
    reals: FloatArray
    coefficients: FloatArray
    vectors: FloatArray
    plane: FloatArray
    weights: FloatArray
    members: IntArray
    sides: IntArray
    matrix: FloatArray
    first: FloatArray
    second: FloatArray
    candidates: FloatArray
    slots: FloatArray
    theta_weights: FloatArray
    centre: FloatArray
    rows: FloatArray
    categories: Any = ()


class OwnWorkspace(NamedTuple):
    """The same for own shapes.

    `squares` and `shape` of a slot, and `sigma` and `base` (νΣ), have the form of the model: d × d for III,
    one row for II, one number for I, always with two axes. The `shape` of model III is the inverse of A,
    otherwise A itself; `base_inverse` is that of νΣ, in model III only. `ages` counts how often a shape was
    changed since it was computed from squares. `slots` is what a Gibbs sweep looks up: a term of the log
    weight, the power of the growth of A, and the factor of the quadratic form; of the two sides of a split
    also that growth for the object at hand, for which `images` holds A⁻¹(y−c). `alone` has the growth of a
    cluster without objects for each object, as far as somebody asked since the last draw of Σ.
    """

    labels: IntArray
    sizes: IntArray
    sums: FloatArray
    means: FloatArray
    squares: FloatArray
    shape: FloatArray
    log_volume: FloatArray
    ages: IntArray
    sigma: FloatArray
    base: FloatArray
    base_inverse: FloatArray
    integers: IntArray
    reals: FloatArray
    weights: FloatArray
    members: IntArray
    sides: IntArray
    matrix: FloatArray
    triangle: FloatArray
    first: FloatArray
    second: FloatArray
    images: FloatArray
    alone: FloatArray
    slots: FloatArray
    theta_weights: FloatArray
    nu_weights: FloatArray
    centre: FloatArray
    rows: FloatArray
    pull: FloatArray
    categories: Any = ()


AnyProblem: TypeAlias = Problem | OwnProblem
AnyWorkspace: TypeAlias = Workspace | OwnWorkspace


_problems: WeakKeyDictionary[Posterior, AnyProblem] = WeakKeyDictionary()


def make_problem(posterior: Posterior) -> AnyProblem:
    """Tabulate a posterior for the kernels, once: some priors' tables take longer than a proposal.

    Where the centre is unknown or cells are missing, every caller has coordinates of its own, since the chain
    changes them.
    """
    found = _problems.get(posterior)
    if found is None:
        found = _problems[posterior] = _tabulated(posterior)
    n_objects, has_gaps, is_unknown = (
        posterior.n_objects,
        len(posterior.gaps) > 0,
        posterior.centre == "unknown",
    )
    if has_gaps or is_unknown:
        memory = np.concatenate([found.coordinates] * (1 + (has_gaps and is_unknown)))
        coordinates, origin = memory[:n_objects], memory[n_objects:]
        for view in (coordinates, origin):
            view.setflags(write=False)
        found = found._replace(coordinates=coordinates)
        if len(origin):
            found = found._replace(origin=origin)
    return found


def _tabulated(posterior: Posterior) -> AnyProblem:
    n_objects, n_features = posterior.n_objects, posterior.n_features
    coordinates, step = posterior.coordinates, 0.0
    if posterior.centre == "unknown" and posterior.shapes == "common":
        step = exact_step(coordinates, is_shifted=True)
        coordinates = on_exact_grid(coordinates, is_shifted=True)
        coordinates.setflags(write=False)  # Otherwise it is another type, and compiled again.
    sizes = np.arange(n_objects + 2, dtype=np.float64)
    grown = 1.0 + posterior.theta_grid[:, None] * sizes
    log_grown = np.log(grown)
    shared: dict[str, Any] = {
        "coordinates": coordinates,
        "model": {"I": 1, "II": 2, "III": 3}[posterior.model],
        "theta": posterior.theta_grid,
        "log_theta_prior": posterior.log_theta_prior,
        "log_grown": log_grown,
        "origin": coordinates[: n_objects * (posterior.centre == "unknown")],
        "gaps": np.array(posterior.gaps, order="C"),  # Another layout is another type, and compiled again.
        "log_prior": np.stack(
            [
                posterior.prior.log_size_weights(n_objects + 1),
                posterior.prior.log_size_steps(n_objects + 2),
                _log_count_steps(posterior),
            ]
        ),
    }
    if posterior.shapes == "own":
        return OwnProblem(
            **shared,
            nu=posterior.nu_grid,
            log_constant=log_size_constants(sizes, posterior.nu_grid, n_features, posterior.model),
            half_degrees=0.5 * prior_degrees(posterior.nu_grid, n_features, posterior.model),
            half_unit=0.5 * unit_degrees(n_features, posterior.model),
            categories=_category_tables(posterior, 0),
        )
    # Model I: d equal factors, of which the scatter keeps one, the mean over the features too.
    exponent = n_objects * n_features if posterior.model == "I" else n_objects
    factors = n_features if posterior.model == "II" else 1
    handicap = np.ones_like(log_grown)
    log_steps = shared["log_prior"][SIZE_STEP, :-1]
    for row, logs in zip(handicap, log_grown, strict=True):  # In rows, to need no second table on the way.
        np.exp((n_features * np.diff(logs) - 2.0 * log_steps) / (exponent * factors), out=row[:-1])
    return Problem(
        **shared,
        shrinkage=posterior.theta_grid[:, None] / grown / exponent,
        exponent=exponent,
        handicap=handicap,
        step=step,
        categories=_category_tables(posterior, exponent),
    )


def _category_tables(posterior: Posterior, exponent: int) -> CategoryTables | tuple[()]:
    """Tables of categorical columns; without an exponent weights are logarithms."""
    columns, levels = posterior.columns, posterior.columns.levels
    if not columns.has_categories:
        return ()
    different, rows = np.unique(levels, return_inverse=True)
    least = PSEUDO_COUNT * np.concatenate([[1], different])[:, None]
    m = np.arange(posterior.n_objects + 2, dtype=np.float64)
    logs = np.log(least + m)
    factors = logs * np.concatenate([[1.0], -np.ones(different.size)])[:, None]
    if exponent:
        largest = 2.0 / exponent * np.sum(logs[1 + rows, -1] - logs[0, 0])
        if largest > _LARGEST_GAIN:
            raise ValueError(
                f"{levels.size} categorical columns are too many for {posterior.n_objects} rows under common "
                'shapes; leave some out, or use shapes="own".'
            )
        factors = np.exp(-2.0 / exponent * factors)
    return CategoryTables(
        places=np.array(columns.places, order="C"),
        starts=np.concatenate([[0], np.cumsum(levels)]).astype(np.int64),
        rows=(1 + rows).astype(np.int64),
        rises=gammaln(least + m) - gammaln(least),
        logs=logs,
        factors=factors,
        multiplies=exponent > 0,
    )


def _category_counts(problem: AnyProblem, labels: IntArray, n_slots: int) -> CategoryCounts | tuple[()]:
    """Count the categories of each cluster."""
    tables = problem.categories
    if not isinstance(tables, CategoryTables):
        return ()
    n_places, n_clusters = int(tables.starts[-1]), int(labels.max()) + 1
    counts = np.zeros((n_slots + 2, n_places + tables.rows.size), dtype=np.int64)
    for column, places in enumerate(tables.places.T):
        there = places >= 0
        np.add.at(counts, (labels[there], places[there]), 1)
        np.add.at(counts, (labels[there], n_places + column), 1)
    terms = np.zeros((n_places, n_slots))
    for column, row in enumerate(tables.rows):
        own = slice(tables.starts[column], tables.starts[column + 1])
        parts = (
            tables.factors[0][counts[:n_clusters, own].T],
            tables.factors[row][counts[:n_clusters, n_places + column]],
        )
        terms[own, :n_clusters] = parts[0] * parts[1] if tables.multiplies else parts[0] + parts[1]
    marginals = np.zeros(n_slots + 2)
    marginals[:n_clusters] = tables.rises[0][counts[:n_clusters, :n_places]].sum(axis=1)
    for column, row in enumerate(tables.rows):
        marginals[:n_clusters] -= tables.rises[row][counts[:n_clusters, n_places + column]]
    return CategoryCounts(counts, marginals, terms, np.zeros(n_slots + 3))


def _log_count_steps(posterior: Posterior) -> FloatArray:
    """Log V(K+1)/V(K) for K = 0, …, n + 1, but for λ of Ewens' prior, which the workspace has."""
    n_objects, prior = posterior.n_objects, posterior.prior
    steps = np.zeros(n_objects + 2)
    if posterior.concentration is None:
        # So many clusters of so many objects have a probability that is zero to all digits; their
        # weights are not computed, and they are never proposed.
        most = min(n_objects, _MOST_DEAR_COUNTS) if prior.has_slow_count_weights else n_objects
        steps[:] = -np.inf
        steps[:most] = prior.log_count_steps(n_objects, most)
    return steps


def make_workspace(
    problem: AnyProblem,
    slot_labels: IntArray,
    theta_index: int,
    log_concentration: float,
    nu_index: int = 0,
    sigma: FloatArray | None = None,
) -> AnyWorkspace:
    """Workspace of a chain whose clusters already have packed slot numbers; own shapes need ν and Σ too."""
    n_objects, n_features = problem.coordinates.shape
    is_centred, n_gaps, centre = problem.origin.shape[0] == 0, len(problem.gaps), np.zeros(n_features)
    is_fixed = is_centred and not n_gaps
    rows = np.empty((0, n_features)) if is_fixed else cast("FloatArray", problem.coordinates.base)
    if n_gaps and sigma is not None:
        rows[problem.gaps[:, 0] - n_objects, problem.gaps[:, 1]] = sigma[-n_gaps:]  # of the last table
        sigma = sigma[:-n_gaps]
    if isinstance(problem, OwnProblem) and sigma is not None and not is_centred:
        sigma, centre = sigma[:-n_features], sigma[-n_features:].copy()
    if not is_centred:
        rows[:n_objects] = problem.origin - centre
    labels = np.array(slot_labels, dtype=np.int64)
    n_clusters = int(labels.max()) + 1
    n_slots = n_objects + (5 if isinstance(problem, OwnProblem) else 1)
    sizes, sums = np.zeros(n_slots, dtype=np.int64), np.zeros((n_slots, n_features))
    sizes[:n_clusters] = np.bincount(labels)
    sums[:n_clusters] = cluster_sums(problem.coordinates, labels)
    full = n_features if problem.model == 3 else 0
    reals = np.zeros(9)
    reals[LOG_CONCENTRATION] = log_concentration
    shared: dict[str, Any] = {
        "labels": labels,
        "sizes": sizes,
        "sums": sums,
        "integers": np.array([n_clusters, theta_index, 1, nu_index], dtype=np.int64),
        "reals": reals,
        "weights": np.zeros(max(n_objects + 2, 16)),
        "members": np.zeros(n_objects, dtype=np.int64),
        "sides": np.zeros(n_objects, dtype=np.int64),
        "matrix": np.zeros((full, full)),
        "first": np.zeros(n_features),
        "second": np.zeros(n_features),
        "theta_weights": np.zeros(problem.theta.size),
        "centre": centre,
        "rows": rows,
        "categories": _category_counts(problem, labels, n_slots),
    }
    if isinstance(problem, OwnProblem):
        return _own_workspace(problem, shared, sigma)
    columns = np.zeros((n_features, n_objects + 1))
    columns[:, :n_clusters] = sums[:n_clusters].T
    return Workspace(
        **shared,
        columns=columns,
        scatter=np.ones(n_features),
        inverse=np.zeros((full, full)),
        gram=np.zeros(n_objects + 1),
        coefficients=np.zeros(3),
        vectors=_vectors(problem),
        plane=np.zeros(3),
        candidates=np.zeros((4, n_objects + 2)),
        slots=np.zeros((3, n_objects + 1)),
    )


def _vectors(problem: AnyProblem) -> FloatArray:
    """Scratch, and behind it the total of a table with gaps."""
    n_objects, n_features = problem.coordinates.shape
    scratch = np.zeros((TOTAL, n_features))
    if not len(problem.gaps):
        return scratch
    whole = problem.coordinates.T @ problem.coordinates / n_objects
    if problem.model == 1:
        whole = np.full((1, n_features), np.trace(whole) / n_features)
    elif problem.model == 2:
        whole = np.diag(whole)[None]
    return np.vstack([scratch, whole])


def _own_workspace(problem: OwnProblem, shared: dict[str, Any], sigma: FloatArray | None) -> OwnWorkspace:
    """Add what own shapes need; memory of slots that are never used is never touched."""
    n_features, n_slots = problem.coordinates.shape[1], shared["sizes"].size
    model: ModelName = ("I", "II", "III")[problem.model - 1]
    form = {"I": (1, 1), "II": (1, n_features), "III": (n_features, n_features)}[model]
    if sigma is None:
        raise ValueError("a chain of own shapes needs the scale Σ to start from")
    full = shared["matrix"].shape
    return OwnWorkspace(
        **shared,
        means=np.zeros((n_slots, n_features)),
        squares=np.zeros((n_slots, *form)),
        shape=np.zeros((n_slots, *form)),
        log_volume=np.zeros(n_slots),
        ages=np.zeros(n_slots, dtype=np.int64),
        sigma=unpack_sigma(sigma, n_features, model).reshape(form).copy(),
        base=np.zeros(form),
        base_inverse=np.zeros(full),
        triangle=np.zeros(full),
        images=np.zeros((2, n_features)),
        alone=np.full(problem.coordinates.shape[0], -1.0),
        slots=np.zeros((4, n_slots)),
        nu_weights=np.zeros(problem.nu.size),
        pull=np.zeros(form if problem.origin.shape[0] else (0, 0)),
    )


# What may be wanted of a move.
NOTHING, REPORT, ACCOUNT = 0, 1, 2
# Places in Outcome.flags: what is wanted, whether a partition was proposed and accepted, how many notes.
WANTED, PROPOSED, ACCEPTED, NOTED = 0, 1, 2, 3
# Places in Outcome.reals.
LOG_RATIO, LOG_UNIFORM, LOG_FORWARD, LOG_BACKWARD = 0, 1, 2, 3


class Outcome(NamedTuple):
    """The proposal of the latest Metropolis move: slot labels, ratio and decision, and notes.

    A note is a row of four numbers: topic, two subjects, value. Where nothing is wanted, a move may reject as
    soon as it knows that it will, without working out the whole ratio; the decisions and the random numbers
    used are the same.
    """

    flags: IntArray
    labels: IntArray
    reals: FloatArray
    notes: FloatArray


def make_outcome(n_objects: int, wanted: int = NOTHING, room: int = 0) -> Outcome:
    """Make room for a report, and for so many notes."""
    flags = np.array([wanted, 0, 0, 0], dtype=np.int64)
    return Outcome(flags, np.zeros(n_objects, dtype=np.int64), np.zeros(4), np.zeros((room, 4)))


@jit
def report(
    outcome: Outcome,
    labels: IntArray,
    log_ratio: float,
    log_uniform: float,
    log_forward: float,
    log_backward: float,
) -> None:
    """Tell a watcher what was proposed where; the caller changes the labels to the proposal.

    The proposal is accepted if `log_uniform` is below `log_ratio`. `log_forward` is log q(B* | B), the
    forward proposal, and `log_backward` log q(B | B*), the reverse one.
    """
    for i in range(labels.shape[0]):
        outcome.labels[i] = labels[i]
    outcome.reals[LOG_RATIO], outcome.reals[LOG_UNIFORM] = log_ratio, log_uniform
    outcome.reals[LOG_FORWARD], outcome.reals[LOG_BACKWARD] = log_forward, log_backward
    outcome.flags[PROPOSED] = 1
    outcome.flags[ACCEPTED] = 1 if log_uniform < log_ratio else 0


@jit
def note(outcome: Outcome, topic: int, first: int, second: int, value: float) -> None:
    """Take a note; those beyond the room are only counted, so that one knows how much is needed."""
    row = outcome.flags[NOTED]
    if row < outcome.notes.shape[0]:
        outcome.notes[row, 0], outcome.notes[row, 1] = topic, first
        outcome.notes[row, 2], outcome.notes[row, 3] = second, value
    outcome.flags[NOTED] = row + 1
