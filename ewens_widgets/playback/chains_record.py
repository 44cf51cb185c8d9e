"""The records of several chains up to the iteration on display, and how well they agree there."""

from collections.abc import Sequence

import numpy as np

from ewens_widgets.analysis.convergence import ChainAgreement, agreement_of
from ewens_widgets.playback.ensemble import Ensemble
from ewens_widgets.playback.summaries import RunningSummaries, Summary
from ewens_widgets.sampling.recorder import Recorder

__all__ = ["ChainsRecord"]

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
        self._clear()

    def _clear(self) -> None:
        """Forget what was computed: the chains begin anew."""
        self._run = self._ensemble.runs
        self._summaries = tuple(RunningSummaries(recorder, self.burn_in) for recorder in self.recorders)
        self._agreements: dict[int, ChainAgreement] = {}

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

    def agreement(self, length: int) -> ChainAgreement:
        """How well the first so many draws of the chains agree; computed once."""
        self._follow_resets()
        if length not in self._agreements:
            if any(len(recorder) < length for recorder in self.recorders):
                raise ValueError(f"not all chains have {length} draws.")
            rows = slice(self.start(length), length)
            self._agreements[length] = agreement_of(
                {
                    "n_clusters": [recorder.n_clusters[rows] for recorder in self.recorders],
                    "log_posterior": [recorder.log_posterior[rows] for recorder in self.recorders],
                    # Steps of the grid are ratios.
                    "theta": [np.log2(recorder.theta[rows]) for recorder in self.recorders],
                }
            )
        return self._agreements[length]

    def course(self, length: int, span: int | None = None) -> list[tuple[int, ChainAgreement]]:
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
