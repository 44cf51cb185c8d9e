"""A proposal told in stages, each with a sentence and with what to look at.

The move tells what it chose, in its own words (`Move.tell`); where the chain stands before, the ratio and the
decision are the same for all.
"""

import math
from collections.abc import Iterator

from ewens_widgets.analysis.explanation.proposal import Proposal
from ewens_widgets.model.priors.ewens import Ewens
from ewens_widgets.sampling.moves.move import Move, Scene, Way, count, from_log, signed

__all__ = ["stages_of"]


def stages_of(proposal: Proposal, move: Move) -> tuple[Scene, ...]:
    """Tell a proposal of a move in stages."""
    return _start(proposal), *move.tell(proposal), *_end(proposal)


def _start(proposal: Proposal) -> Scene:
    parameters = proposal.parameters
    weight = parameters.theta_weights[parameters.theta_index]
    text = (
        f"{count(proposal.labels.size, 'object')} in "
        f"{count(int(proposal.labels.max()) + 1, 'cluster')}. "
        f"θ = {parameters.theta:g} was drawn from its conditional, where it has probability {weight:.3g}; "
        f"{_prior(proposal)}.{_shapes(proposal)}"
    )
    return Scene("start", "Where the chain stands", text)


def _prior(proposal: Proposal) -> str:
    """The concentration of Ewens' prior, or the name of another."""
    if isinstance(proposal.prior, Ewens):
        return f"λ = {proposal.parameters.concentration:.3g}"
    return f"the prior on partitions is {proposal.prior}"


def _shapes(proposal: Proposal) -> str:
    """What was drawn for own shapes."""
    parameters = proposal.parameters
    if parameters.sigma is None:
        return ""
    weight = parameters.nu_weights[parameters.nu_index]
    return (
        f" Every cluster has a shape of its own: their likeness ν = {parameters.nu:g} was drawn from its "
        f"conditional, where it has probability {weight:.3g}, and then the common scale Σ."
    )


def _end(proposal: Proposal) -> Iterator[Scene]:
    log_ratio = proposal.log_ratio()
    if log_ratio is None or proposal.proposed is None or not proposal.forward or not proposal.backward:
        yield Scene("decision", "Nothing to decide", proposal.reason)
        return
    if proposal.kind != "draw":
        n_before, n_after = (int(labels.max()) + 1 for labels in (proposal.labels, proposal.proposed))
        yield Scene(
            "proposal",
            "The proposal",
            f"From {n_before} to {count(n_after, 'cluster')}. The way there has probability "
            f"{_product(proposal.forward)}. The way back has probability {_product(proposal.backward)}.",
            colours="after",
            ringed=proposal.moved,
        )
    yield Scene(
        "ratio",
        "The ratio",
        " ".join(f"{term.name} {signed(term.value)}" for term in proposal.terms())
        + f": the log ratio is {signed(log_ratio)}, the ratio {from_log(log_ratio)}.",
        colours="after",
        ringed=proposal.moved,
    )
    yield Scene(
        "decision",
        "The decision",
        _decision(proposal, log_ratio),
        colours="after" if proposal.accepted() else "before",
        ringed=proposal.moved,
    )


def _decision(proposal: Proposal, log_ratio: float) -> str:
    if proposal.log_uniform is None:
        return "The ratio of a draw from the exact conditional is 1: it is always accepted."
    uniform = math.exp(proposal.log_uniform)
    verdict = "below" if proposal.accepted() else "not below"
    outcome = "accepted" if proposal.accepted() else "rejected; the chain stays where it is"
    return (
        f"A uniform draw gave u = {uniform:.4f}, log u = {signed(proposal.log_uniform)}, {verdict} the log "
        f"ratio {signed(log_ratio)}: the proposal is {outcome}."
    )


def _product(way: Way) -> str:
    parts = " × ".join(f"{from_log(factor.log_probability)} ({factor.name})" for factor in way.factors)
    total = f"{from_log(way.log_probability)}, log {signed(way.log_probability)}"
    return f"{parts} = {total}" if len(way.factors) > 1 else f"{parts}, log {signed(way.log_probability)}"
