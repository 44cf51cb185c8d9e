"""One proposal of the paper's reassign move."""

import math

import numpy as np

from ewens_widgets.analysis.explanation.context import Context, frozen
from ewens_widgets.analysis.explanation.proposal import Choice, Factor, Proposal, Way
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.moves.reassign import Reassign, log_proposal

__all__ = ["explain_reassign"]


def explain_reassign(context: Context, rng: np.random.Generator) -> Proposal:
    """Make one reassign move with the next random numbers of `rng`, and say what it did."""
    n_objects, n_clusters = context.slots.size, context.n_clusters
    item = int(rng.random() * n_objects)
    own = int(context.slots[item])
    is_alone = context.members(own).size == 1
    n_options = n_clusters - 1 if is_alone else n_clusters
    place = int(rng.random() * n_options)
    target = place + 1 if place >= own else place
    log_uniform = math.log(1.0 - rng.random())
    even = np.full(n_objects, 1.0 / n_objects)
    chosen_object = Choice("object to move", even, item, np.array([item]), even)
    shares = np.where(context.slots == own, 0.0, 1.0 / n_options)
    chosen_cluster = Choice(
        "cluster to move it to", np.full(n_options, 1.0 / n_options), place, context.members(target), shares
    )
    slots = context.slots.copy()
    slots[item] = target
    start, end = context.labels, frozen(canonical_labels(slots))
    size_there = context.members(target).size
    forward, backward = log_proposal(start, end), log_proposal(end, start)
    # Of two objects that are together on one side and alone on the other, either could have been the mover.
    pair_of_movers = (is_alone and size_there == 1) or (context.members(own).size == 2 and size_there == 0)
    ways = (Factor("either of the two objects may move", math.log(2.0)),) if pair_of_movers else ()
    factors = (
        Factor("this object", -math.log(n_objects)),
        Factor("to this cluster", -math.log(n_options)),
        *ways,
    )
    return Proposal(
        move=Reassign.name,
        kind="reassign",
        parameters=context.parameters,
        labels=start,
        proposed=end,
        choices=(chosen_object, chosen_cluster),
        forward=Way(forward, factors),
        backward=Way(backward, factors),
        log_uniform=log_uniform,
        changes=context.changes(end),
    )
