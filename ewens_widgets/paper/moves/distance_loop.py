"""The compiled loop of the paper's moves, with the cache of distances that they share.

The driver finds it by `Move.loop`, and uses `KERNELS`, `call`, `make_memory` and `forget`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ewens_widgets.paper.moves.distances import STALE, Distances
from ewens_widgets.paper.moves.distances import make_distances as make_memory  # noqa: F401 - for the driver
from ewens_widgets.paper.moves.reassign import reassign
from ewens_widgets.paper.moves.split_merge_proposal import SplitMergeOptions, split_merge
from ewens_widgets.sampling.compiled import entry
from ewens_widgets.sampling.draws import Records
from ewens_widgets.sampling.driver import Schedule, begin, record
from ewens_widgets.sampling.kernel.workspace import AnyProblem, AnyWorkspace, Outcome

REASSIGN = 0
KERNELS: dict[Callable[..., int], int] = {reassign: REASSIGN, split_merge: 1}


@entry
def advance_by_distance(
    problem: AnyProblem,
    workspace: AnyWorkspace,
    distances: Distances,
    options: SplitMergeOptions,
    schedule: Schedule,
    records: Records,
    outcome: Outcome,
    rows: int,
    thin: int,
    rng: np.random.Generator,
) -> None:
    """Run the paper's moves, reassign and split-merge, and record every `thin`-th iteration."""
    for row in range(rows):
        for _ in range(thin):
            if schedule.begins:
                begin(problem, workspace, schedule, records.theta_weights[row], rng)
            for move in range(schedule.kinds.shape[0]):
                place = schedule.places[move]
                for _ in range(schedule.repeats[move]):
                    if schedule.kinds[move] == REASSIGN:
                        accepted = reassign(problem, workspace, outcome, rng)
                        distances.flags[STALE] |= accepted
                    else:
                        accepted = split_merge(problem, workspace, distances, options, outcome, rng)
                    if accepted >= 0:
                        records.proposals[row, place] += 1
                        records.acceptances[row, place] += accepted
        record(problem, workspace, schedule, records, row)


def call(
    problem: AnyProblem,
    workspace: AnyWorkspace,
    memory: Distances,
    options: SplitMergeOptions | None,
    rest: tuple[Any, ...],
) -> tuple[Callable[..., None], tuple[Any, ...]]:
    """The compiled loop, and its arguments."""
    return advance_by_distance, (problem, workspace, memory, options or SplitMergeOptions(), *rest)


def forget(memory: Distances) -> None:
    """Another move has changed the partition: the cache has to be filled again."""
    memory.flags[STALE] = 1
