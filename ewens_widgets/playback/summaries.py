"""Traces and averages of the draws up to the iteration on display, computed when a view asks for them.

Views ask at most once a frame, so the draws between two frames are counted together, and a quantity that no
view shows costs nothing. Averages leave out the burn-in. While the chain is still within the burn-in, they
run over all draws so far, so that there is something to see.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.similarity import RunningSimilarity
from ewens_widgets.sampling.draws import DrawTable
from ewens_widgets.sampling.trace import Trace

if TYPE_CHECKING:
    from ewens_widgets.playback.player import EventRecorder

__all__ = ["RunningSummaries", "Summary"]

# Draws counted at once: bounds the memory for catching up after a long time without a viewer.
_BLOCK = 1024

_RUN, _LOOKED_BACK = 20, 5000  # draws whose mean is compared, and among how many


class Summary(DrawTable):
    """Draws up to one iteration, burn-in included, and averages of those that count; a view may keep it.

    Attributes
    ----------
    start
        Index of the first draw that averages count.
    is_burning_in
        Whether the iteration on display is still part of the burn-in.
    epoch
        Number of the run that the draws are from: a reset starts another one.
    """

    def __init__(self, summaries: "RunningSummaries", draws: DrawTable) -> None:
        super().__init__(draws.posterior, draws.move_names, draws.held())
        self._summaries = summaries
        self.epoch = summaries.epoch
        self.is_burning_in = len(draws) <= summaries.burn_in
        self.start = 0 if self.is_burning_in else summaries.burn_in

    @property
    def n_draws(self) -> int:
        """Number of draws that averages count."""
        return len(self) - self.start

    def similarity(self, rows: NDArray[np.intp] | None = None) -> NDArray[np.float32]:
        """Share of draws in which each pair of objects is in one cluster; the identity before any draw.

        For many objects, ask for some `rows`, always the same: their pairs are counted as the chain runs.
        """
        key = "similarity", None if rows is None else rows.tobytes()
        return self._once(key, lambda: self._summaries.similarity(self.labels, self.start, self.epoch, rows))

    def theta_posterior(self) -> NDArray[np.float64]:
        """Average of the exact conditionals of θ; zeros before the first draw."""
        return self.trace().theta_posterior() if self.n_draws else np.zeros(self.theta_weights.shape[1])

    def nu_posterior(self) -> NDArray[np.float64]:
        """Average of the exact conditionals of the pooling ν of own shapes; zeros before the first draw."""
        return self.trace().nu_posterior() if self.n_draws else np.zeros(self.nu_weights.shape[1])

    def acceptance(self) -> dict[str, float]:
        """Share of accepted proposals by move; NaN for a move that proposed nothing."""
        return self.trace().acceptance

    def trace(self, burn_in: int | None = None, thin: int = 1) -> Trace:
        """Give the draws that averages count as a trace, without copying them."""
        return super().trace(self.start if burn_in is None else burn_in, thin)

    def leap(self) -> int | None:
        """Iteration of the last leap of the log posterior; None if there was none lately.

        A leap is a run of `_RUN` draws whose mean is higher than that of any run before, by more than the
        standard deviation of either. The climb from the start is not counted.
        """
        values = self.log_posterior[-_LOOKED_BACK:]
        if len(values) < 3 * _RUN:
            return None
        runs = np.lib.stride_tricks.sliding_window_view(values, _RUN)
        means, spreads = runs.mean(axis=1), runs.std(axis=1)
        # The best run that had ended when each run begins.
        best = np.maximum.accumulate(
            np.where(np.diff(np.maximum.accumulate(means), prepend=-np.inf) > 0, np.arange(means.size), 0)
        )[_RUN:-_RUN]
        now = slice(2 * _RUN, None)
        margin = np.maximum(spreads[now], spreads[best])
        found = np.flatnonzero(means[now] > means[best] + margin)
        if not found.size:
            return None
        # The first of several runs that take part in one leap.
        starts = found[np.diff(found, prepend=-2 * _RUN) > _RUN]
        return int(self.iterations[-values.size :][2 * _RUN + starts[-1]])

    def best(self) -> tuple[int, NDArray[Any]] | None:
        """Iteration and labels of the draw with the highest posterior, burn-in included; None before any."""
        if not len(self):
            return None
        row = int(np.argmax(self.log_posterior))
        return int(self.iterations[row]), self.labels[row]


class RunningSummaries:
    """Makes summaries of a recorder, and keeps the similarity, which is expensive to compute from scratch.

    Parameters
    ----------
    recorder
        Holds the draws.
    burn_in
        Number of first draws that averages leave out.
    """

    def __init__(self, recorder: "EventRecorder", burn_in: int = 0) -> None:
        self._recorder = recorder
        self.burn_in = burn_in
        self.epoch = 0
        self.clear()

    def clear(self) -> None:
        """Start again with the draws of a cleared recorder; summaries given out before keep the old ones."""
        self.epoch += 1
        self._live, self._past = _Window(None), _Window(None)

    def up_to(self, length: int) -> Summary:
        """Summarise the first `length` draws."""
        return Summary(self, self._recorder[:length])

    def similarity(
        self, labels: NDArray[Any], start: int, epoch: int, rows: NDArray[np.intp] | None = None
    ) -> NDArray[np.float32]:
        """Similarity of the draws from `start` on; `epoch` is the run of the recorder that they are from."""
        if epoch != self.epoch:
            return _Window(rows).similarity(labels, start)
        known = self._live.rows
        if rows is not known and (rows is None or known is None or not np.array_equal(rows, known)):
            self._live, self._past = _Window(rows), _Window(rows)
        # Looking back must not undo what has been counted up to the present.
        window = self._live if len(labels) == len(self._recorder) else self._past
        return window.similarity(labels, start)


class _Window:
    """Similarity over a window of draws that usually grows at its end; other windows are counted again."""

    def __init__(self, rows: NDArray[np.intp] | None) -> None:
        self.rows = rows
        self._running: RunningSimilarity | None = None
        self._start = self._stop = 0

    def similarity(self, labels: NDArray[Any], start: int) -> NDArray[np.float32]:
        stop, n_objects = labels.shape
        if self._running is None:
            self._running = RunningSimilarity(n_objects, rows=self.rows)
        if start != self._start or stop < self._stop:
            self._running.clear()
            self._start = self._stop = start
        for row in range(self._stop, stop, _BLOCK):
            self._running.add_block(labels[row : min(row + _BLOCK, stop)])
        self._stop = stop
        similarity: NDArray[np.float32] = self._running.similarity(np.float32)
        similarity.setflags(write=False)
        return similarity
