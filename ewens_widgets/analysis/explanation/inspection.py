"""A chain that is looked at one proposal at a time.

Each proposal is made twice: by the sampler itself, stepped by one iteration, and by `explain`, from the same
state and random numbers. What is shown comes from the second, and `gap` tells that it is what the first did.
"""

import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.explanation.context import Context
from ewens_widgets.analysis.explanation.draws import draw_parameters, generator_at
from ewens_widgets.analysis.explanation.explain import explain
from ewens_widgets.analysis.explanation.gibbs import after_draw, explain_gibbs_draw
from ewens_widgets.analysis.explanation.proposal import Parameters, Proposal
from ewens_widgets.analysis.explanation.telling import Scene, stages_of
from ewens_widgets.arguments import check_count
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.event import Event
from ewens_widgets.sampling.moves.distances import pair_distances
from ewens_widgets.sampling.moves.gibbs import Gibbs
from ewens_widgets.sampling.moves.schedule import Move, Repeated
from ewens_widgets.sampling.moves.split_merge import SplitMerge
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.state import State

__all__ = ["Inspection"]


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
        # Of a Metropolis move: the state after it. Of a sweep: object, slots, and the slot that was drawn.
        self._after: State
        self._item, self._target = 0, 0
        self._slots: NDArray[np.int64]
        self._parameters: Parameters
        self._rng: np.random.Generator
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
        """Whether the proposal is a draw of a Gibbs sweep."""
        return isinstance(self.move, Gibbs)

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
        if isinstance(self.move, SplitMerge):
            return stages_of(self.proposal, self.move.within, self.move.between)
        return stages_of(self.proposal)

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
        self._slots = after_draw(self._slots, self._item, self._target)
        self._item += 1
        if self._item < self._slots.size:
            self._draw()
            return
        self._state = self._in_sweep(self._state.iteration + 1)
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
            self._rng = generator_at(self._state.generator)
            self._parameters = draw_parameters(self._sampler.posterior, self._state, self._rng)
            self._slots = np.array(self._state.labels)
            self._draw()
            return
        sampler = self._sampler_at(self._state, (Repeated(self.move),))
        as_printed = self._sampler.acceptance == "as-printed"
        self.proposal = explain(
            self._sampler.posterior, self._state, self.move, pairs=self._distances(), as_printed=as_printed
        )
        self.event = next(sampler.events(1, block=1))
        self._after = sampler.state

    def _draw(self) -> None:
        context = Context(self._sampler.posterior, self._parameters, self._slots)
        self.proposal, self._target = explain_gibbs_draw(context, self._item, self._rng)
        self.event = None

    def _leave_sweep(self) -> None:
        """Take what a sweep has done so far as the state to go on from."""
        if self.is_sweep and self._item:
            self._state = self._in_sweep(self._state.iteration)
            self._item = 0

    def _in_sweep(self, iteration: int) -> State:
        """State of the chain in the middle or at the end of a sweep."""
        return State(
            labels=self._slots,
            theta_index=self._parameters.theta_index,
            log_concentration=self._parameters.log_concentration,
            iteration=iteration,
            generator=dict(self._rng.bit_generator.state),
        )

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
        if self._pairs is None and isinstance(self.move, SplitMerge):
            raw = self._sampler.raw_data
            self._pairs = pair_distances(self._sampler.posterior.coordinates if raw is None else raw)
        return self._pairs
