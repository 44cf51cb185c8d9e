"""The drivers: advance a chain by a block of iterations and write their records to arrays.

There is one for the moves that need distances and one for those that need the likelihood only, so that
nobody waits for the compilation of moves that are not used. A schedule that mixes both is run in turns.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.compiled import entry, inlined, jit
from ewens_widgets.sampling.kernel.parameters import draw_concentration, draw_theta
from ewens_widgets.sampling.kernel.scatter import log_partition_terms, log_scale
from ewens_widgets.sampling.kernel.workspace import CLUSTERS, LOG_CONCENTRATION, THETA, Problem, Workspace
from ewens_widgets.sampling.moves.distances import STALE, Distances
from ewens_widgets.sampling.moves.gibbs import gibbs_sweep
from ewens_widgets.sampling.moves.informed import informed_split_merge
from ewens_widgets.sampling.moves.outcome import Outcome
from ewens_widgets.sampling.moves.reassign import reassign
from ewens_widgets.sampling.moves.split_merge import split_merge
from ewens_widgets.sampling.moves.split_merge_options import SplitMergeOptions

__all__ = [
    "GIBBS",
    "INFORMED",
    "REASSIGN",
    "SPLIT_MERGE",
    "Records",
    "Schedule",
    "advance_by_distance",
    "advance_by_likelihood",
    "make_records",
]

REASSIGN, SPLIT_MERGE, GIBBS, INFORMED = 0, 1, 2, 3


class Schedule(NamedTuple):
    """Consecutive moves of an iteration: kinds and repeats, and their places in the records.

    `begins` says whether they begin the iteration, with the draws of θ and λ; a shape of 0 that λ is fixed,
    and `log_rising` is then log Γ(n + λ) − log Γ(λ).
    """

    kinds: NDArray[np.int64]
    repeats: NDArray[np.int64]
    places: NDArray[np.int64]
    begins: bool
    options: SplitMergeOptions
    shape: float
    rate: float
    log_rising: float


class Records(NamedTuple):
    """One row for each recorded iteration; the labels are canonical."""

    labels: NDArray[np.int32]
    theta_index: NDArray[np.int64]
    theta_weights: FloatArray
    n_clusters: NDArray[np.int64]
    log_posterior: FloatArray
    concentration: FloatArray
    proposals: NDArray[np.int64]
    acceptances: NDArray[np.int64]


def make_records(rows: int, n_objects: int, n_thetas: int, n_moves: int) -> Records:
    """Make room for the records of a block."""
    return Records(
        labels=np.zeros((rows, n_objects), dtype=np.int32),
        theta_index=np.zeros(rows, dtype=np.int64),
        theta_weights=np.zeros((rows, n_thetas)),
        n_clusters=np.zeros(rows, dtype=np.int64),
        log_posterior=np.zeros(rows),
        concentration=np.zeros(rows),
        proposals=np.zeros((rows, n_moves), dtype=np.int64),
        acceptances=np.zeros((rows, n_moves), dtype=np.int64),
    )


@inlined
def _log_posterior(problem: Problem, workspace: Workspace, schedule: Schedule) -> float:
    """Unnormalised log posterior of partition and θ (and of λ where it has a prior)."""
    n_objects = problem.coordinates.shape[0]
    n_clusters = workspace.integers[CLUSTERS]
    log_concentration = workspace.reals[LOG_CONCENTRATION]
    concentration = math.exp(log_concentration)
    total = problem.log_theta_prior[workspace.integers[THETA]] - 0.5 * n_objects * log_scale(
        problem, workspace
    )
    for b in range(n_clusters):
        total += log_partition_terms(problem, workspace, workspace.sizes[b])
    total += n_clusters * log_concentration
    if schedule.shape == 0.0:
        total -= schedule.log_rising
    else:
        # Γ(n + λ) / Γ(λ) as a product: the difference of two log Gamma functions would cancel.
        for seated in range(n_objects):
            total -= math.log(concentration + seated)
        total += schedule.shape * math.log(schedule.rate) - math.lgamma(schedule.shape)
        total += (schedule.shape - 1.0) * log_concentration - schedule.rate * concentration
    return total


@inlined
def _write_canonical(workspace: Workspace, out: NDArray[np.int32]) -> None:
    """Write the labels in order of first appearance."""
    names = workspace.members  # Scratch between moves.
    n_clusters = workspace.integers[CLUSTERS]
    for b in range(n_clusters):
        names[b] = -1
    following = 0
    for i in range(out.shape[0]):
        slot = workspace.labels[i]
        if names[slot] < 0:
            names[slot] = following
            following += 1
        out[i] = names[slot]


@jit
def _begin(
    problem: Problem, workspace: Workspace, schedule: Schedule, weights: FloatArray, rng: np.random.Generator
) -> None:
    """Begin an iteration with the draws of θ and λ."""
    draw_theta(problem, workspace, weights, rng)
    if schedule.shape > 0.0:
        draw_concentration(workspace, schedule.shape, schedule.rate, rng)


@jit
def _record(problem: Problem, workspace: Workspace, schedule: Schedule, records: Records, row: int) -> None:
    """Write down the state at the end of an iteration."""
    records.theta_index[row] = workspace.integers[THETA]
    records.n_clusters[row] = workspace.integers[CLUSTERS]
    records.concentration[row] = math.exp(workspace.reals[LOG_CONCENTRATION])
    records.log_posterior[row] = _log_posterior(problem, workspace, schedule)
    _write_canonical(workspace, records.labels[row])


@entry
def advance_by_likelihood(
    problem: Problem,
    workspace: Workspace,
    schedule: Schedule,
    records: Records,
    outcome: Outcome,
    rows: int,
    thin: int,
    rng: np.random.Generator,
) -> None:
    """Run Gibbs sweeps and informed split-merge moves, and record every `thin`-th iteration."""
    sums = np.zeros((2, problem.coordinates.shape[1]))
    for row in range(rows):
        for _ in range(thin):
            if schedule.begins:
                _begin(problem, workspace, schedule, records.theta_weights[row], rng)
            for move in range(schedule.kinds.shape[0]):
                place = schedule.places[move]
                for _ in range(schedule.repeats[move]):
                    if schedule.kinds[move] == GIBBS:
                        records.proposals[row, place] += problem.coordinates.shape[0]
                        records.acceptances[row, place] += gibbs_sweep(problem, workspace, rng)
                    else:
                        accepted = informed_split_merge(problem, workspace, outcome, sums, rng)
                        records.proposals[row, place] += 1
                        records.acceptances[row, place] += accepted
        _record(problem, workspace, schedule, records, row)


@entry
def advance_by_distance(
    problem: Problem,
    workspace: Workspace,
    distances: Distances,
    schedule: Schedule,
    records: Records,
    outcome: Outcome,
    rows: int,
    thin: int,
    rng: np.random.Generator,
) -> None:
    """Run the paper's moves, reassign and split-merge, and record every `thin`-th iteration."""
    sums = np.zeros((2, problem.coordinates.shape[1]))
    for row in range(rows):
        for _ in range(thin):
            if schedule.begins:
                _begin(problem, workspace, schedule, records.theta_weights[row], rng)
            for move in range(schedule.kinds.shape[0]):
                place = schedule.places[move]
                for _ in range(schedule.repeats[move]):
                    if schedule.kinds[move] == REASSIGN:
                        accepted = reassign(problem, workspace, outcome, rng)
                        distances.flags[STALE] |= accepted
                    else:
                        accepted = split_merge(
                            problem, workspace, distances, schedule.options, outcome, sums, rng
                        )
                    if accepted >= 0:
                        records.proposals[row, place] += 1
                        records.acceptances[row, place] += accepted
        _record(problem, workspace, schedule, records, row)
