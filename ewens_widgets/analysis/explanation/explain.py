"""Explain the proposal that a chain makes next."""

import numpy as np

from ewens_widgets.analysis.explanation.context import Context
from ewens_widgets.analysis.explanation.draws import draw_parameters, generator_at
from ewens_widgets.analysis.explanation.gibbs import after_draw, explain_gibbs_draw
from ewens_widgets.analysis.explanation.informed import explain_informed
from ewens_widgets.analysis.explanation.proposal import Proposal
from ewens_widgets.analysis.explanation.reassign import explain_reassign
from ewens_widgets.analysis.explanation.split_merge import explain_split_merge
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.moves.distances import pair_distances
from ewens_widgets.sampling.moves.gibbs import Gibbs
from ewens_widgets.sampling.moves.informed import InformedSplitMerge
from ewens_widgets.sampling.moves.schedule import Move
from ewens_widgets.sampling.moves.split_merge import SplitMerge
from ewens_widgets.sampling.state import State

__all__ = ["explain", "explain_sweep"]


def explain(
    posterior: Posterior,
    state: State,
    move: Move,
    *,
    pairs: FloatArray | None = None,
    as_printed: bool = False,
) -> Proposal:
    """Explain the proposal of an iteration that begins in a state and makes one move.

    The state is not changed; the random numbers are those that a sampler in this state would draw.

    Parameters
    ----------
    posterior
        What is being sampled.
    state
        Where the chain stands before the iteration.
    move
        The move that is made once, after θ (and λ, where it has a prior) have been drawn. Of a Gibbs sweep,
        the first draw is explained; `explain_sweep` has them all.
    pairs
        Distances between objects, for the paper's split-merge; in canonical coordinates by default.
    as_printed
        Decide split-merge moves by the ratio that the paper prints.
    """
    rng = generator_at(state.generator)
    context = Context(posterior, draw_parameters(posterior, state, rng), state.labels)
    if isinstance(move, SplitMerge):
        given = pair_distances(posterior.coordinates) if pairs is None else pairs
        return explain_split_merge(context, move, given, as_printed, rng)
    if isinstance(move, InformedSplitMerge):
        return explain_informed(context, rng)
    if isinstance(move, Gibbs):
        return explain_gibbs_draw(context, 0, rng)[0]
    return explain_reassign(context, rng)


def explain_sweep(posterior: Posterior, state: State) -> list[Proposal]:
    """Explain every draw of the Gibbs sweep of an iteration that begins in a state."""
    rng = generator_at(state.generator)
    parameters = draw_parameters(posterior, state, rng)
    slots = np.array(state.labels)
    proposals = []
    for item in range(posterior.n_objects):
        proposal, target = explain_gibbs_draw(Context(posterior, parameters, slots), item, rng)
        slots = after_draw(slots, item, target)
        proposals.append(proposal)
    return proposals
