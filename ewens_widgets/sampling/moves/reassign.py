r"""Reassign, the paper's Algorithm 1: an evenly chosen object is proposed to another cluster or to a new one.

An object in company has K options, evenly likely: the K − 1 other clusters and a new one. An object that is
alone has the K − 1 others. Either way the number of options is the same on the way back, so the proposal is
symmetric,

.. math:: q(B^* \mid B) = q(B \mid B^*), \qquad \log r = \log \pi(B^*) - \log \pi(B) .
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.partition import check_labels
from ewens_widgets.sampling.compiled import jit
from ewens_widgets.sampling.kernel.partition_changes import (
    attach,
    detach,
    log_change_of_merge,
    log_change_of_split,
)
from ewens_widgets.sampling.kernel.workspace import CLUSTERS, WANTED, Outcome, Problem, Workspace, report

__all__ = ["Reassign", "log_proposal", "reassign"]


@dataclass(frozen=True)
class Reassign:
    """One object, proposed to another (or a new) cluster evenly."""

    name: ClassVar[str] = "reassign"


def log_proposal(labels: ArrayLike, proposed: ArrayLike) -> float:
    """Log probability that a reassign move at partition `labels` proposes the partition `proposed`."""
    start, end = check_labels(labels), check_labels(proposed)
    n_objects, n_clusters = start.size, int(start.max()) + 1
    paths = 0.0
    for item in range(n_objects):
        alone = int(np.sum(start == start[item])) == 1
        options = n_clusters - 1 if alone else n_clusters
        rest = np.arange(n_objects) != item
        # The object is the one that moved if the others are grouped alike, but the whole is not.
        alike = np.array_equal(check_labels(start[rest]), check_labels(end[rest]))
        if alike and not np.array_equal(start, end):
            paths += 1.0 / (n_objects * options)
    return math.log(paths) if paths > 0.0 else -math.inf


@jit
def reassign(problem: Problem, workspace: Workspace, outcome: Outcome, rng: np.random.Generator) -> int:
    """Make one reassign move; return 1 if the proposal was accepted."""
    n_objects = problem.coordinates.shape[0]
    n_clusters = workspace.integers[CLUSTERS]
    item = int(rng.random() * n_objects)
    own = workspace.labels[item]
    options = n_clusters - 1 if workspace.sizes[own] == 1 else n_clusters
    target = int(rng.random() * options)
    if target >= own:
        target += 1
    alone = workspace.sizes[own] == 1
    joins = target < n_clusters
    # A relocation is a split followed by a merge; the split is made, and undone by merging back if need be.
    log_ratio = 0.0
    slot = own
    if not alone:
        log_ratio += log_change_of_split(problem, workspace, own, 1, problem.coordinates[item])
        slot = detach(problem, workspace, item)
    if joins:
        log_ratio += log_change_of_merge(problem, workspace, target, slot)
    accepted = math.log(1.0 - rng.random()) < log_ratio
    if outcome.flags[WANTED]:
        report(outcome, workspace.labels, log_ratio, accepted)
        outcome.labels[item] = target
    if accepted and joins:
        attach(problem, workspace, item, target)
    elif not accepted and not alone:
        attach(problem, workspace, item, own)
    return 1 if accepted else 0
