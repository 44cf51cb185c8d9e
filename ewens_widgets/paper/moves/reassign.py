r"""Reassign, the paper's Algorithm 1: an evenly chosen object is proposed to another cluster or to a new one.

An object in company has K options, evenly likely: the K − 1 other clusters and a new one. An object that is
alone has the K − 1 others. The reverse proposal has the same number of options, so the proposal is
symmetric,

.. math:: q(B^* \mid B) = q(B \mid B^*), \qquad \log r = \log \pi(B^*) - \log \pi(B) .
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ewens_widgets.sampling.compiled import jit
from ewens_widgets.sampling.kernel import family
from ewens_widgets.sampling.kernel import workspace as at
from ewens_widgets.sampling.kernel.partition_changes import log_opening
from ewens_widgets.sampling.kernel.workspace import AnyProblem, AnyWorkspace, Outcome, note, report
from ewens_widgets.sampling.moves.move import (
    BACKWARD,
    FORWARD,
    OWN,
    BareProposal,
    Choice,
    Move,
    Notes,
    Scene,
    count,
)

__all__ = ["Reassign", "reassign"]

# A note: the object and the slot that it is to join, and how many options there were.
_TARGET = OWN


@jit
def _note_choice(outcome: Outcome, item: int, target: int, options: int, movers: int) -> float:
    """Note what was chosen; return log q, which is the same both ways."""
    n_objects = outcome.labels.shape[0]
    factors = (-math.log(n_objects), -math.log(options), math.log(movers))
    if outcome.flags[at.WANTED] == at.ACCOUNT:
        note(outcome, _TARGET, item, target, float(options))
        for way in (FORWARD, BACKWARD):
            for place in range(1 + movers):
                note(outcome, way, place, 0, factors[place])
    return factors[0] + factors[1] + factors[2]


@jit
def reassign(problem: AnyProblem, workspace: AnyWorkspace, outcome: Outcome, rng: np.random.Generator) -> int:
    """Make one reassign move; return 1 if the proposal was accepted."""
    n_objects = problem.coordinates.shape[0]
    n_clusters = workspace.integers[at.CLUSTERS]
    item = int(rng.random() * n_objects)
    own = workspace.labels[item]
    own_size = workspace.sizes[own]
    alone = own_size == 1
    options = n_clusters - 1 if alone else n_clusters
    target = int(rng.random() * options)
    if target >= own:
        target += 1
    joins = target < n_clusters
    # A relocation is a split followed by a merge; the split is made, and undone by merging back if need be.
    log_ratio = 0.0
    slot = own
    # A prior may allow no cluster more, not even in between: its steps there and back are infinite.
    is_closed = not alone and joins and log_opening(problem, workspace, n_clusters) == -math.inf
    if is_closed:  # The weights of the object in both clusters.
        family.tabulate(problem, workspace)
        family.conditional_weights(problem, workspace, item)
        here, there = workspace.weights[own], workspace.weights[target]
        log_ratio = -math.inf if there <= 0.0 else math.inf
        if there > 0.0 and here > 0.0:
            log_ratio = math.log(there) - math.log(here)
    if not alone:
        if not is_closed:
            log_ratio += family.log_change_of_detaching(problem, workspace, item)
        slot = family.detach(problem, workspace, item)
    if joins and not is_closed:
        log_ratio += family.log_change_of_merge(problem, workspace, target, slot)
    log_uniform = math.log(1.0 - rng.random())
    accepted = log_uniform < log_ratio
    if outcome.flags[at.WANTED]:
        # Of two objects that are together on one side and alone on the other, either could be the mover.
        size_there = workspace.sizes[target] if joins else 0
        either = (alone and size_there == 1) or (own_size == 2 and size_there == 0)
        log_proposed = _note_choice(outcome, item, target, options, 2 if either else 1)
        report(outcome, workspace.labels, log_ratio, log_uniform, log_proposed, log_proposed)
        outcome.labels[item] = target
    if accepted and joins:
        family.attach(problem, workspace, item, target)
    elif not accepted and not alone:
        family.attach(problem, workspace, item, own)
    return 1 if accepted else 0


@dataclass(frozen=True)
class Reassign(Move):
    """One object, proposed to another (or a new) cluster evenly."""

    name: ClassVar[str] = "reassign"
    title: ClassVar[str] = "reassign (paper 1)"
    kernel = staticmethod(reassign)
    loop: ClassVar[str] = "ewens_widgets.paper.moves.distance_loop"
    from_paper: ClassVar[bool] = True
    moves_one: ClassVar[bool] = True
    factors: ClassVar[tuple[str, ...]] = (
        "this object",
        "to this cluster",
        "either of the two objects may move",
    )

    def account(self, notes: Notes) -> BareProposal:
        """An object, and where it is to go; both are chosen evenly."""
        item, target, options = notes.of(_TARGET)[0]
        n_objects, n_options = notes.slots.size, int(options)
        own = int(notes.slots[item])
        even = np.full(n_objects, 1.0 / n_objects)
        chances = np.full(n_options, 1.0 / n_options)
        shares = np.where(notes.slots == own, 0.0, 1.0 / n_options)
        place = target - (target > own)
        chosen = (
            Choice("object to move", even, item, np.array([item]), even),
            Choice("cluster to move it to", chances, place, notes.members(target), shares),
        )
        return notes.account("reassign", choices=chosen)

    def tell(self, account: BareProposal) -> Iterator[Scene]:
        """Tell who was chosen, and where it is to go."""
        item, target = account.choices
        yield Scene(
            "choice",
            "An object",
            f"Object {int(item.objects[0]) + 1} was drawn evenly, with probability {item.probability:.3g}.",
            ringed=item.objects,
            shares=item.by_object,
        )
        size, n_options = target.objects.size, target.probabilities.size
        where = f"a cluster of {size}" if size else "a cluster of its own"
        yield Scene(
            "target",
            "Where to",
            f"It is to join {where}, one of {count(n_options, 'possibility', 'possibilities')}, all as "
            f"probable: {target.probability:.3g}.",
            ringed=np.append(item.objects, target.objects),
            shares=target.by_object,
        )
