"""A chain that is looked at one proposal at a time.

Each proposal is made twice, from the same state and random numbers: by a sampler, stepped by one iteration,
and by `explain`, whose kernel takes notes. What is shown comes from the second; `gap` tells how far the four
terms of its ratio, added up, are from the ratio that the sampler reports.

A proposal is told in stages, each with a sentence and with what to look at. The move tells what it chose, in
its own words (`Move.tell`); where the chain stands before, the ratio and the decision are the same for all.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ewens_widgets.analysis.explanation.proposal import Proposal, Sweep, explain
from ewens_widgets.arguments import check_count
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Ewens
from ewens_widgets.sampling.event import Event
from ewens_widgets.sampling.moves.move import Move, Scene, Way, count, from_log, pair_distances, signed
from ewens_widgets.sampling.moves.schedule import Repeated
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.state import State

__all__ = ["Inspection", "stages_of"]


class Inspection:
    """Proposes, and decides as it is told.

    Parameters
    ----------
    sampler
        Where to start, with its data, model and acceptance rule. It is not moved.
    move
        The move to look at; the first of the sampler's schedule by default.

    Attributes
    ----------
    proposal
        The present proposal.
    event
        What the sampler itself reports of it; None within a Gibbs sweep, which has no ratio to report.
    iteration
        Iterations done before this proposal.
    """

    def __init__(self, sampler: Sampler, move: Move | None = None) -> None:
        self._sampler = sampler
        self._first = self._state = sampler.state
        self._schedule = sampler.schedule
        self._pairs: FloatArray | None = None
        self.move: Move = sampler.schedule[0].move if move is None else move
        self.proposal: Proposal
        self.event: Event | None
        # Of a Metropolis move: the state after it. Of a sweep: the sweep, and the object whose turn it is.
        self._after: State
        self._sweep: Sweep
        self._item = 0
        self._propose()

    @property
    def posterior(self) -> Posterior:
        """What is being sampled."""
        return self._sampler.posterior

    @property
    def iteration(self) -> int:
        """Iterations done before this proposal."""
        return self._state.iteration

    @property
    def state(self) -> State:
        """Where the chain stands before this proposal."""
        return self._state

    @property
    def is_sweep(self) -> bool:
        """Whether the proposal is a draw of a sweep."""
        return self.move.is_sweep

    @property
    def can_accept_anyway(self) -> bool:
        """Whether there is a proposal that was rejected."""
        return self.proposal.accepted() is False

    @property
    def gap(self) -> float:
        """Difference of the log ratio from the sampler's own; 0 is that of a Gibbs draw."""
        log_ratio = self.proposal.log_ratio()
        if log_ratio is None:
            return 0.0
        reported = 0.0 if self.event is None or self.event.log_ratio is None else self.event.log_ratio
        # Both are minus infinity where there is no way back.
        return 0.0 if log_ratio == reported else abs(log_ratio - reported)

    @property
    def stages(self) -> tuple[Scene, ...]:
        """The proposal in stages."""
        return stages_of(self.proposal, self.move)

    def use(self, move: Move) -> None:
        """Look at another move, from where the chain stands."""
        self._leave_sweep()
        self.move = move
        self._propose()

    def propose_again(self) -> None:
        """Make another proposal from the same partition, with the next random numbers."""
        if self.is_sweep:
            self._draw()
            return
        self._state = replace(self._state, generator=self._after.generator)
        self._propose()

    def accept_anyway(self) -> None:
        """Go on from the proposed partition, whatever was decided."""
        if not self.can_accept_anyway or self.proposal.proposed is None:
            self.next_iteration()
            return
        self._state = replace(self._after, labels=self.proposal.proposed.astype(np.int64))
        self._propose()

    def next_iteration(self) -> None:
        """Do as was decided, and make the next proposal; in a sweep, that of the next object."""
        if not self.is_sweep:
            self._state = self._after
            self._propose()
            return
        self._sweep.keep()
        self._item += 1
        if self._item < self.posterior.n_objects:
            self._draw()
            return
        self._state = replace(self._sweep.state, iteration=self._state.iteration + 1)
        self._propose()

    def run(self, iterations: int) -> None:
        """Run the sampler's whole schedule on, and make a proposal there."""
        count = check_count("the number of iterations", iterations, 1)
        self._leave_sweep()
        sampler = self._sampler_at(self._state, self._schedule)
        for _ in sampler.events(count):
            pass
        self._state = sampler.state
        self._propose()

    def reset(self) -> None:
        """Go back to where the inspection began."""
        self._state = self._first
        self._propose()

    def _propose(self) -> None:
        self._item = 0
        if self.is_sweep:
            self._sweep = Sweep(self.posterior, self._state, self.move)
            self._draw()
            return
        sampler = self._sampler_at(self._state, (Repeated(self.move),))
        as_printed = self._sampler.acceptance == "as-printed"
        self.proposal = explain(
            self.posterior, self._state, self.move, pairs=self._distances(), as_printed=as_printed
        )
        self.event = next(sampler.events(1, block=1))
        self._after = sampler.state

    def _draw(self) -> None:
        self.proposal = self._sweep.draw(self._item)
        self.event = None

    def _leave_sweep(self) -> None:
        """Take what a sweep has done so far as the state to go on from."""
        if self.is_sweep and self._item:
            self._state = self._sweep.state
            self._item = 0

    def _sampler_at(self, state: State, schedule: tuple[Repeated, ...]) -> Sampler:
        with warnings.catch_warnings():
            # The sampler that was given has warned of its acceptance rule already.
            warnings.filterwarnings("ignore", message="acceptance=")
            return Sampler.from_parts(
                self._sampler.posterior,
                schedule,
                self._sampler.raw_data,
                self._sampler.acceptance,
                first=state,
                current=state,
            )

    def _distances(self) -> FloatArray | None:
        if self._pairs is None and self.move.needs_distances:
            raw = self._sampler.raw_data
            self._pairs = pair_distances(self._sampler.posterior.coordinates if raw is None else raw)
        return self._pairs


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
