"""Several chains that are played as one, recorded draws that are played like a chain, and how chains agree.

A player runs one source and keeps its record. An `Ensemble` is such a source: its first chain is the one that
the player records, and it runs the others before, each with a recorder of its own. So no chain is behind the
first; after an interrupt, chains that are ahead wait. `ChainsRecord` summarises all records up to the
iteration on display.
"""

from collections.abc import Sequence

import numpy as np

from ewens_widgets.analysis.convergence import (
    Diagnostics,
    compare,
    followed,
    load_statistics,
    pooled_acceptance,
)
from ewens_widgets.playback.frame import RunningSummaries, Summary
from ewens_widgets.playback.loop import can_work
from ewens_widgets.playback.player import Source, compilation
from ewens_widgets.sampling.draws import DrawTable
from ewens_widgets.sampling.trace import Trace


class TraceReplay:
    """Returns the draws of a trace in blocks, like a chain.

    Parameters
    ----------
    trace
        The draws; their iterations are numbered from 1.
    """

    def __init__(self, trace: Trace) -> None:
        self.move_names = trace.move_names
        self.iteration = 0
        columns = {**trace.columns(), "iterations": np.arange(1, len(trace) + 1)}
        self._draws = DrawTable(trace.posterior, self.move_names, columns)

    def advance(self, n: int) -> DrawTable:
        """Return the next `n` draws, or as many as are left."""
        block = self._draws[self.iteration : self.iteration + n]
        self.iteration += len(block)
        return block

    def snapshot(self) -> None:
        """The initial state is not recorded."""

    def reset(self) -> None:
        """Begin with the first draw again."""
        self.iteration = 0


class Ensemble:
    """Several chains as one source.

    Parameters
    ----------
    chains
        At least two chains, all at the same iteration.
    recorders
        One for each chain; the first belongs to the player too.

    Attributes
    ----------
    runs
        How many times the chains have begun at their start.
    """

    def __init__(self, chains: Sequence[Source], recorders: Sequence[DrawTable]) -> None:
        self.chains = tuple(chains)
        self.recorders = tuple(recorders)
        self.runs = 1

    @property
    def compilation(self) -> str:
        """Progress of the compilation, which is the same for all chains."""
        return compilation(self.chains[0])

    def prepare(self) -> bool:
        """Have all chains get ready; return whether they can be run now."""
        ready = [can_work(chain) for chain in self.chains]  # a list, so that each of them begins
        return all(ready)

    @property
    def iteration(self) -> int:
        """Last iteration that all chains have done."""
        return self.chains[0].iteration

    def advance(self, n: int) -> DrawTable:
        """Run `n` iterations of every chain, record those of the others, and return those of the first."""
        goal = self.iteration + n
        for chain, recorder in zip(self.chains[1:], self.recorders[1:], strict=True):
            if chain.iteration < goal:
                # As for a single chain: a block that has been run must not fail to be recorded.
                recorder.reserve(goal - chain.iteration)
                recorder.extend(chain.advance(goal - chain.iteration))
        return self.chains[0].advance(n)

    def snapshot(self) -> None:
        """Not known: the chains start from different states."""

    def reset(self) -> None:
        """Take every chain back to its start and clear the records."""
        for chain, recorder in zip(self.chains, self.recorders, strict=True):
            chain.reset()
            recorder.clear()
        self.runs += 1


CHECKPOINTS = 25
"""Approximate number of iterations at which R-hat and effective sample size are computed for their curves."""


class ChainsRecord:
    """Summaries of several chains.

    Parameters
    ----------
    ensemble
        The chains with their recorders.
    names
        Names of the chains.
    target
        Iterations of the whole run.
    burn_in
        First iterations that are left out. A run shorter than twice the burn-in leaves out its first half.
    """

    def __init__(self, ensemble: Ensemble, names: Sequence[str], target: int, burn_in: int) -> None:
        self._ensemble = ensemble
        self.recorders = ensemble.recorders
        self.names = tuple(names)
        self.target = target
        self.burn_in = burn_in
        self._run = 0
        load_statistics()  # now, because it would stop a running view for a moment

    def _follow_resets(self) -> None:
        """Drop all results if the chains have begun again."""
        if self._run != self._ensemble.runs:
            self._run = self._ensemble.runs
            self._summaries = tuple(RunningSummaries(recorder, self.burn_in) for recorder in self.recorders)
            self._agreements: dict[int, Diagnostics] = {}
            self._columns = [followed(recorder, slice(0)) for recorder in self.recorders]

    def start(self, length: int) -> int:
        """Number of draws that are left out of the first `length` draws."""
        return self.burn_in if length >= 2 * self.burn_in else length // 2

    def summaries(self, length: int) -> tuple[Summary, ...]:
        """Summaries of the first `length` draws, one per chain."""
        self._follow_resets()
        start = self.start(length)
        for summaries in self._summaries:
            summaries.burn_in = min(start, max(length - 1, 0))
        return tuple(summaries.up_to(length) for summaries in self._summaries)

    def agreement(self, length: int) -> Diagnostics:
        """Diagnostics of the first `length` draws of the chains, without similarities; computed once."""
        self._follow_resets()
        if length in self._agreements:
            return self._agreements[length]
        shortest = min(map(len, self.recorders))
        if shortest < length:
            raise ValueError(f"length {length} is more than the draws of the shortest chain, {shortest}")
        start = self.start(length)
        for chain, (known, recorder) in enumerate(zip(self._columns, self.recorders, strict=True)):
            if len(known["n_clusters"]) < length:  # only new draws are computed
                new = followed(recorder, slice(len(known["n_clusters"]), length))
                self._columns[chain] = {name: np.append(known[name], new[name]) for name in new}
        moves = [summary.trace().move_counts for summary in self.summaries(length)]
        found = self._agreements[length] = compare(
            {
                name: np.stack([each[name][start:length] for each in self._columns])
                for name in self._columns[0]
            },
            theta_grid=self.recorders[0].posterior.theta_grid,
            acceptance=pooled_acceptance(moves),
        )
        return found

    def course(self, length: int, span: int | None = None) -> list[tuple[int, Diagnostics]]:
        """Diagnostics at some iterations up to `length` draws, the last one included.

        Parameters
        ----------
        length
            Draws of each chain.
        span
            Length over which the iterations are spread; the whole run by default.
        """
        step = max(1, (self.target if span is None else span) // CHECKPOINTS)
        places = [*range(step, length, step), length] if length else []
        evolved = [(place, self.agreement(place)) for place in places]
        return [(place, found) for place, found in evolved if found.is_known]
