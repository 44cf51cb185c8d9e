"""Several chains that are played as one, and recorded draws that are played like a chain.

A player runs one source and keeps its record. Here that source is the first chain; it takes the others along,
each with a recorder of its own. They go first, so that none is ever behind: where a block is interrupted,
the next one lets those that are ahead wait.

The records of several chains up to the iteration on display, and how well they agree there.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.convergence import (
    Diagnostics,
    compare,
    followed,
    load_statistics,
    pooled_acceptance,
)
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.playback.summaries import RunningSummaries, Summary
from ewens_widgets.playback.work import EventRecorder
from ewens_widgets.sampling.event import Event
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.trace import Trace

__all__ = ["Chain", "ChainsRecord", "Ensemble", "TraceReplay"]


class Chain(Protocol):
    """One of several chains: a `Sampler`, or draws that were recorded."""

    @property
    def iteration(self) -> int:
        """Number of the last iteration done."""

    def record(self, n: int, recorder: Recorder) -> None:
        """Run `n` iterations and record them: all or none."""

    def reset(self) -> None:
        """Go back to the start."""


class TraceReplay:
    """Gives the draws of a trace out again, as a chain that makes them would.

    Parameters
    ----------
    trace
        The draws; they are counted from 1, whatever iterations they are from.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.iteration = 0

    @property
    def move_names(self) -> tuple[str, ...]:
        """Names of the moves whose counts come with the draws."""
        return tuple(self._trace.move_counts)

    def record(self, n: int, recorder: Recorder) -> None:
        """Record the next `n` draws."""
        rows = slice(self.iteration, self.iteration + n)
        trace, count = self._trace, len(range(len(self._trace))[rows])
        proposals, acceptances = (self._counts(recorder.move_names, side) for side in (0, 1))
        recorder.append_block(
            iterations=np.arange(rows.start + 1, rows.start + count + 1),
            labels=np.asarray(trace.labels[rows]),
            theta_index=trace.theta_index[rows],
            theta_weights=trace.theta_weights[rows],
            log_posterior=trace.log_posterior[rows],
            concentration=trace.concentration[rows],
            proposals=proposals[rows],
            acceptances=acceptances[rows],
        )
        self.iteration += count

    def reset(self) -> None:
        """Begin with the first draw again."""
        self.iteration = 0

    def _counts(self, names: Sequence[str], side: int) -> NDArray[np.int64]:
        """Counts of moves, a column each; of one that is known in total only, all are with the first draw."""
        counts = np.zeros((len(self._trace), len(names)), dtype=np.int64)
        for move, name in enumerate(names):
            given = np.asarray(self._trace.move_counts[name][side])
            counts[slice(None) if given.ndim else slice(1), move] = given
        return counts


class Ensemble:
    """Several chains as one source.

    Parameters
    ----------
    chains
        The chains, all at the same iteration.
    recorders
        One for each chain; the first belongs to the player too.

    Attributes
    ----------
    runs
        How often the chains have begun at their start.
    """

    def __init__(self, chains: Sequence[Chain], recorders: Sequence[Recorder]) -> None:
        if len(chains) < 2 or len(chains) != len(recorders):
            raise ValueError(
                f"an ensemble has two chains at least, each with a recorder; got {len(chains)} and "
                f"{len(recorders)}."
            )
        self.chains = tuple(chains)
        self.recorders = tuple(recorders)
        self.runs = 1

    @property
    def iteration(self) -> int:
        """Number of the last iteration that all chains have done."""
        return self.chains[0].iteration

    def record(self, n: int, recorder: EventRecorder) -> None:  # noqa: ARG002 - it is the first of its own
        """Run `n` iterations of every chain and record them."""
        goal = self.iteration + n
        for chain, kept in zip(self.chains[1:], self.recorders[1:], strict=True):
            if chain.iteration < goal:
                chain.record(goal - chain.iteration, kept)
        self.chains[0].record(n, self.recorders[0])

    def events(self, n: int, block: int | None = None) -> Iterator[Event]:  # noqa: ARG002 - one at a time
        """Run `n` iterations one by one and yield those of the first chain; the player records them."""
        first = self.recorders[0]
        for _ in range(n):
            aside = Recorder(first.posterior, first.move_names)
            goal = self.iteration + 1
            for chain, kept in zip(self.chains[1:], self.recorders[1:], strict=True):
                if chain.iteration < goal:
                    chain.record(goal - chain.iteration, kept)
            self.chains[0].record(1, aside)
            if not len(aside):
                return
            yield aside.event(0)

    def reset(self) -> None:
        """Take every chain back to its start and forget the records."""
        for chain, recorder in zip(self.chains, self.recorders, strict=True):
            chain.reset()
            recorder.clear()
        self.runs += 1


CHECKPOINTS = 25
"""At how many iterations R-hat and effective sample size are computed for their curves, about."""


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
        First iterations that do not count. Where the run is not twice as long yet, the later half counts.
    """

    def __init__(self, ensemble: Ensemble, names: Sequence[str], target: int, burn_in: int) -> None:
        self._ensemble = ensemble
        self.names = tuple(names)
        self.target = target
        self.burn_in = burn_in
        load_statistics()  # now, as a running view would stand still for it
        self._clear()

    def _clear(self) -> None:
        """Forget what was computed: the chains begin anew."""
        self._run = self._ensemble.runs
        self._summaries = tuple(RunningSummaries(recorder, self.burn_in) for recorder in self.recorders)
        self._agreements: dict[int, Diagnostics] = {}
        self._columns = [followed(recorder, slice(0)) for recorder in self.recorders]

    def _follow_resets(self) -> None:
        if self._run != self._ensemble.runs:
            self._clear()

    @property
    def recorders(self) -> tuple[Recorder, ...]:
        """Records of the chains."""
        return self._ensemble.recorders

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.recorders)

    def start(self, length: int) -> int:
        """First of so many draws that counts."""
        return self.burn_in if length >= 2 * self.burn_in else length // 2

    def summaries(self, length: int) -> tuple[Summary, ...]:
        """Summaries of the first so many draws, one a chain."""
        self._follow_resets()
        start = self.start(length)
        for summaries in self._summaries:
            summaries.burn_in = min(start, max(length - 1, 0))
        return tuple(summaries.up_to(length) for summaries in self._summaries)

    def agreement(self, length: int) -> Diagnostics:
        """How well the first so many draws of the chains agree, similarities aside; computed once."""
        self._follow_resets()
        if length not in self._agreements:
            if any(len(recorder) < length for recorder in self.recorders):
                raise ValueError(f"not all chains have {length} draws.")
            start = self.start(length)
            columns = [self._followed(chain, length) for chain in range(self.n_chains)]
            self._agreements[length] = compare(
                {name: np.stack([each[name][start:] for each in columns]) for name in columns[0]},
                theta_grid=self.recorders[0].posterior.theta_grid,
                acceptance=pooled_acceptance([summary.move_counts() for summary in self.summaries(length)]),
            )
        return self._agreements[length]

    def _followed(self, chain: int, length: int) -> dict[str, FloatArray]:
        """What is followed of a chain up to so many draws; of those already seen it is kept."""
        known = self._columns[chain]
        seen = len(known["n_clusters"])
        if seen < length:
            new = followed(self.recorders[chain], slice(seen, length))
            known = self._columns[chain] = {name: np.append(known[name], new[name]) for name in new}
        return {name: values[:length] for name, values in known.items()}

    def course(self, length: int, span: int | None = None) -> list[tuple[int, Diagnostics]]:
        """How the agreement evolved, at some iterations up to so many draws; the last one is among them.

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
