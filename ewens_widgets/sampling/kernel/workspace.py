r"""The arrays of a running chain.

`Problem` holds what never changes; `Workspace` what the moves change, and their scratch space. Both are
named tuples of arrays, which numba passes on without copying. Clusters live in slots 0, …, K−1, always
packed: a freed slot is filled with the last one. The labels of the workspace are slot numbers.

The scatter :math:`M/n` belongs to the current θ. Model I keeps its trace over d, model II its diagonal,
model III its inverse A and log determinant. The cluster sums are exact (see
`model.coordinates.on_exact_grid`), and the scatter is computed anew with every draw of θ, so nothing drifts
and the state of a chain is its slot labels, θ, λ and generator.

`Outcome` is what a move says besides its decision, where somebody wants to know: first a *report*, the
proposed partition with its ratio; then also an *account*, notes of everything that was chosen on the way and
how probable it was. What the notes mean is the business of the move that takes them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.likelihood import cluster_sums
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.compiled import jit

__all__ = [
    "ACCEPTED",
    "ACCOUNT",
    "CHANGED",
    "CLUSTERS",
    "LOG_BACKWARD",
    "LOG_CONCENTRATION",
    "LOG_DETERMINANT",
    "LOG_FORWARD",
    "LOG_RATIO",
    "LOG_UNIFORM",
    "LONE_FACTOR",
    "LONE_LIFTS",
    "NOTED",
    "NOTHING",
    "PROPOSED",
    "REPORT",
    "THETA",
    "WANTED",
    "Outcome",
    "Problem",
    "Workspace",
    "make_outcome",
    "make_problem",
    "make_workspace",
    "note",
    "report",
]

IntArray = NDArray[np.int64]

# Places in Workspace.integers and Workspace.reals, which hold the scalars that the moves change.
CLUSTERS, THETA, CHANGED = 0, 1, 2
LOG_DETERMINANT, LOG_CONCENTRATION, LONE_FACTOR, LONE_LIFTS = 0, 1, 2, 3


class Problem(NamedTuple):
    r"""What never changes: data, model and tables over cluster sizes m = 0, …, n + 1.

    `log_grown[g, m]` is :math:`\log(1+\theta_g m)`; `shrinkage[g, m]` is
    :math:`\theta_g/(1+\theta_g m)`, divided by n (and by d for model I), so that scatters come out as means.
    The posterior falls with the power `exponent` / 2 of the scale; `handicap[g, m]` is what the scale (for
    model II, each of its factors) is multiplied by for an object to join a cluster of m (see `moves.gibbs`);
    for m = 0, a new cluster, the share of λ is missing. (No object joins a cluster of n + 1.)
    """

    coordinates: FloatArray
    model: int
    theta: FloatArray
    log_theta_prior: FloatArray
    log_grown: FloatArray
    shrinkage: FloatArray
    log_gamma: FloatArray
    log_size: FloatArray
    exponent: int
    handicap: FloatArray


class Workspace(NamedTuple):
    """What moves change: the partition with its statistics, and scratch space.

    `columns` is `sums` transposed: loops over all clusters run along it, loops over features along `sums`.
    `gram` holds :math:`s_b^T s_b` for model I and :math:`s_b^T A s_b` for model III. `coefficients` and
    `vectors` hold an exchange: a change of the scatter in a plane (see `scatter`); `plane` is scratch for
    that and for other small things. `theta_weights` are those of the conditional of θ for the partition of
    the last iteration; where that has changed since, ``integers[CHANGED]`` is 1. `slots` is what a Gibbs
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
    precision: FloatArray
    candidates: FloatArray
    slots: FloatArray
    theta_weights: FloatArray


def make_problem(posterior: Posterior) -> Problem:
    """Tabulate a posterior for the kernels."""
    n_objects, n_features = posterior.n_objects, posterior.n_features
    sizes = np.arange(n_objects + 2, dtype=np.float64)
    grown = 1.0 + posterior.theta_grid[:, None] * sizes
    # Model I: d equal factors, of which the scatter keeps one, the mean over the features too.
    exponent = n_objects * n_features if posterior.model == "I" else n_objects
    log_grown, log_size = np.log(grown), np.log(np.maximum(sizes, 1.0))
    factors = n_features if posterior.model == "II" else 1
    handicap = np.ones_like(log_grown)
    for row, logs in zip(handicap, log_grown, strict=True):  # In rows, to need no second table on the way.
        np.exp((n_features * np.diff(logs) - 2.0 * log_size[:-1]) / (exponent * factors), out=row[:-1])
    return Problem(
        coordinates=posterior.coordinates,
        model={"I": 1, "II": 2, "III": 3}[posterior.model],
        theta=posterior.theta_grid,
        log_theta_prior=posterior.log_theta_prior,
        log_grown=log_grown,
        shrinkage=posterior.theta_grid[:, None] / grown / exponent,
        log_gamma=gammaln(np.maximum(sizes, 1.0)),
        log_size=log_size,
        exponent=exponent,
        handicap=handicap,
    )


def make_workspace(
    problem: Problem, slot_labels: IntArray, theta_index: int, log_concentration: float
) -> Workspace:
    """Workspace of a chain whose clusters already have packed slot numbers."""
    n_objects, n_features = problem.coordinates.shape
    labels = np.array(slot_labels, dtype=np.int64)
    n_clusters = int(labels.max()) + 1
    sizes = np.zeros(n_objects + 1, dtype=np.int64)
    sizes[:n_clusters] = np.bincount(labels)
    sums, columns = np.zeros((n_objects + 1, n_features)), np.zeros((n_features, n_objects + 1))
    sums[:n_clusters] = cluster_sums(problem.coordinates, labels)
    columns[:, :n_clusters] = sums[:n_clusters].T
    full = n_features if problem.model == 3 else 0
    return Workspace(
        labels=labels,
        sizes=sizes,
        sums=sums,
        columns=columns,
        scatter=np.ones(n_features),
        inverse=np.zeros((full, full)),
        gram=np.zeros(n_objects + 1),
        integers=np.array([n_clusters, theta_index, 1], dtype=np.int64),
        reals=np.array([0.0, log_concentration, 1.0, 0.0]),
        coefficients=np.zeros(3),
        vectors=np.zeros((2, n_features)),
        plane=np.zeros(3),
        weights=np.zeros(max(n_objects + 2, 16)),
        members=np.zeros(n_objects, dtype=np.int64),
        sides=np.zeros(n_objects, dtype=np.int64),
        matrix=np.zeros((full, full)),
        first=np.zeros(n_features),
        second=np.zeros(n_features),
        precision=np.zeros(n_features),
        candidates=np.zeros((4, n_objects + 2)),
        slots=np.zeros((3, n_objects + 1)),
        theta_weights=np.zeros(problem.theta.size),
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

    The proposal is accepted if `log_uniform` is below `log_ratio`. `log_forward` is log q(B* | B), the way
    there, and `log_backward` log q(B | B*), the way back.
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
