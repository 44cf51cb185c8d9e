"""A chain that is looked at one proposal at a time.

Each proposal is made twice, from the same state and random numbers: by a sampler, stepped by one iteration,
and by `explain`, whose kernel takes notes. What is shown comes from the second; `gap` tells how far the four
terms of its ratio, added up, are from the ratio that the sampler reports.
"""

import warnings
from dataclasses import replace

import numpy as np

from ewens_widgets.analysis.explanation.proposal import Proposal, Sweep, explain
from ewens_widgets.analysis.explanation.telling import stages_of
from ewens_widgets.arguments import check_count
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.event import Event
from ewens_widgets.sampling.moves.distances import pair_distances
from ewens_widgets.sampling.moves.move import Move, Scene
from ewens_widgets.sampling.moves.schedule import Repeated
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
