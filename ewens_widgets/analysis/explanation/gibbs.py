r"""One draw of a Gibbs sweep: an object leaves its cluster and is drawn from its exact conditional.

Seen as a proposal, :math:`q(B^* \mid B)` is the probability of the cluster drawn, and
:math:`q(B \mid B^*)` that of the cluster it came from: the conditional of the same object does not depend on
where it is. The four terms of the ratio add up to 0, so a draw is always accepted.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.explanation.context import Context, frozen
from ewens_widgets.analysis.explanation.draws import choose
from ewens_widgets.analysis.explanation.proposal import Choice, Factor, Proposal, Way
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.moves.gibbs import Gibbs, conditional_probabilities

__all__ = ["after_draw", "explain_gibbs_draw"]


def explain_gibbs_draw(context: Context, item: int, rng: np.random.Generator) -> tuple[Proposal, int]:
    """Draw the cluster of one object with the next random number of `rng`; return also its slot."""
    start, n_objects = context.labels, context.slots.size
    parameters = context.parameters
    by_label = conditional_probabilities(
        context.posterior, start, item, parameters.theta_index, parameters.concentration
    )
    probabilities = _in_slot_order(by_label, start, context)
    uniform = rng.random()
    own, chosen = int(context.slots[item]), choose(probabilities, uniform)
    slots = context.slots.copy()
    slots[item] = chosen
    end = frozen(canonical_labels(slots))
    changes = context.changes(end)
    log_forward = math.log(probabilities[chosen])
    own_probability = float(probabilities[own])
    # The conditional is in proportion to the posterior: that tells the logarithm of what underflows.
    log_backward = math.log(own_probability) if own_probability > 0.0 else log_forward - sum(changes)
    order = np.full(n_objects, 1.0 / n_objects)
    by_object = np.append(probabilities, 0.0)[context.slots]
    by_object[item] = own_probability
    proposal = Proposal(
        move=Gibbs.name,
        kind="draw",
        parameters=parameters,
        labels=start,
        proposed=end,
        choices=(
            Choice("object whose turn it is", order, item, np.array([item]), order),
            Choice(
                "cluster to join",
                probabilities,
                chosen,
                context.members(chosen),
                by_object,
                _examples(context, item, probabilities.size),
                uniform,
            ),
        ),
        forward=Way(log_forward, (Factor("the cluster drawn", log_forward),)),
        backward=Way(log_backward, (Factor("the cluster it came from", log_backward),)),
        changes=changes,
    )
    return proposal, chosen


def _examples(context: Context, item: int, n_candidates: int) -> tuple[tuple[int, ...], ...]:
    """An object of each candidate other than the one that is drawn; none of a new cluster."""
    others = [context.members(slot) for slot in range(n_candidates)]
    return tuple(tuple(members[members != item][:1].tolist()) for members in others)


def _in_slot_order(
    by_label: NDArray[np.float64], labels: NDArray[np.intp], context: Context
) -> NDArray[np.float64]:
    """Put probabilities of canonical clusters in the order that the chain has for them; a new one stays."""
    probabilities = by_label.copy()
    probabilities[context.slots] = by_label[labels]
    return probabilities


def after_draw(slots: NDArray[np.int64], item: int, target: int) -> NDArray[np.int64]:
    """Slots once an object has moved, numbered as the chain numbers them: a freed slot takes the last."""
    moved = slots.copy()
    own, last = int(slots[item]), int(slots.max())
    if target == own:
        return moved
    # The chain lets an object in company found a slot of its own first, and then drops that one.
    is_alone = int(np.sum(slots == own)) == 1
    moved[item] = target
    if is_alone and own != last:
        moved[moved == last] = own
    return moved
