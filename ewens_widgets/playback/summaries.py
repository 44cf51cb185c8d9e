"""Traces and averages of the draws up to the iteration on display, computed when a view asks for them.

Views ask at most once a frame, so draws are counted in blocks between two frames, and nothing is spent on
what nobody shows. Averages leave out the burn-in. While the chain is still within it they run over all draws
so far; otherwise there would be nothing to see.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.similarity import RunningSimilarity
from ewens_widgets.sampling.draws import Block, Recorded, saved_columns
from ewens_widgets.sampling.trace import Trace

if TYPE_CHECKING:
    from ewens_widgets.playback.player import EventRecorder

__all__ = ["RunningSummaries", "Summary"]

# Draws counted at once: bounds the memory for catching up after a long time without a viewer.
_BLOCK = 1024

_RUN, _LOOKED_BACK = 20, 5000  # draws whose mean is compared, and among how many


class Summary(Recorded):
    """Traces and averages up to one iteration; a view may keep it. All arrays are read-only.

    Attributes
    ----------
    iterations, labels, n_clusters, theta, log_posterior, concentration, …
        Every recorded quantity, from the first recorded iteration to the one on display, burn-in included.
    start
        Place, in these arrays, of the first draw that averages count.
    is_burning_in
        Whether the iteration on display is still part of the burn-in.
    epoch
        Number of the run that the draws are from: a reset starts another one.
    """

    def __init__(self, summaries: "RunningSummaries", block: Block) -> None:
        self._summaries = summaries
        self.epoch = summaries.epoch
        self._block = block
        self.is_burning_in = len(block) <= summaries.burn_in
        self.start = 0 if self.is_burning_in else summaries.burn_in
        self._similarities: dict[bytes, NDArray[np.float32]] = {}

    def column(self, name: str) -> NDArray[Any]:
        """Return a recorded quantity by its name, a row for each iteration up to the one on display."""
        return self._block.column(name)

    def __len__(self) -> int:
        return len(self._block)

    @property
    def n_draws(self) -> int:
        """Number of draws that averages count."""
        return len(self) - self.start

    def similarity(self, rows: NDArray[np.intp] | None = None) -> NDArray[np.float32]:
        """Share of draws in which each pair of objects is in one cluster; the identity before any draw.

        Of many objects, ask for some `rows`, always the same ones: their pairs are counted as the chain runs.
        """
        key = b"" if rows is None else rows.tobytes()
        if key not in self._similarities:
            similarity = self._summaries.similarity(self.labels, self.start, self.epoch, rows)
            similarity.setflags(write=False)
            self._similarities[key] = similarity
        return self._similarities[key]

    def theta_posterior(self) -> NDArray[np.float64]:
        """Average of the exact conditionals of θ; zeros before the first draw."""
        total: NDArray[np.float64] = self.theta_weights[self.start :].sum(axis=0, dtype=np.float64)
        return total / max(1, self.n_draws)

    def nu_posterior(self) -> NDArray[np.float64]:
        """Average of the exact conditionals of the likeness ν of own shapes; zeros before the first draw."""
        total: NDArray[np.float64] = self.nu_weights[self.start :].sum(axis=0, dtype=np.float64)
        return total / max(1, self.n_draws)

    def move_counts(self) -> dict[str, tuple[int, int]]:
        """Proposals and acceptances of each move, by name."""
        counted = self.proposals[self.start :], self.acceptances[self.start :]
        proposals, acceptances = (counts.sum(axis=0) for counts in counted)
        totals: dict[str, tuple[int, int]] = {}
        for name, made, taken in zip(self._block.move_names, proposals, acceptances, strict=True):
            # A schedule may hold a move several times.
            before = totals.get(name, (0, 0))
            totals[name] = before[0] + int(made), before[1] + int(taken)
        return totals

    def acceptance(self) -> dict[str, float]:
        """Share of accepted proposals by move; NaN for a move that proposed nothing."""
        return {
            name: taken / made if made else float("nan") for name, (made, taken) in self.move_counts().items()
        }

    def trace(self) -> Trace:
        """Give the draws that averages count as a trace, without copying them."""
        block = self._block
        places = {
            name: [place for place, other in enumerate(block.move_names) if other == name]
            for name in block.move_names
        }
        everything = Trace.of_columns(
            {entry.name: block.column(entry.name) for entry in saved_columns()},
            move_counts={
                name: (self.proposals[:, own].sum(axis=1), self.acceptances[:, own].sum(axis=1))
                for name, own in places.items()
            },
            posterior=block.posterior,
        )
        return everything[self.start :] if self.start else everything

    def leap(self) -> int | None:
        """Iteration of the last leap of the log posterior; None where there was none lately.

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
        # Of a leap that several runs take part in, the first.
        starts = found[np.diff(found, prepend=-2 * _RUN) > _RUN]
        return int(self.iterations[-values.size :][2 * _RUN + starts[-1]])

    def best(self) -> tuple[int, NDArray[Any]] | None:
        """Iteration and labels of the draw with the highest posterior, burn-in included; None before any."""
        if not len(self):
            return None
        place = int(np.argmax(self.log_posterior))
        return int(self.iterations[place]), self.labels[place]


class RunningSummaries:
    """Makes summaries of a recorder, and keeps the averages that are dear to compute anew.

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
        """Start anew with the draws of a cleared recorder; summaries given out before keep the old ones."""
        self.epoch += 1
        self._live = _Window(None)
        self._past = _Window(None)

    def up_to(self, length: int) -> Summary:
        """Summarise the first `length` draws."""
        return Summary(self, self._recorder.block()[:length])

    def similarity(
        self, labels: NDArray[Any], start: int, epoch: int, rows: NDArray[np.intp] | None = None
    ) -> NDArray[np.float32]:
        """Similarity of the draws from `start` on; `epoch` tells which run of the recorder they are from."""
        if epoch != self.epoch:
            return _Window(rows).similarity(labels, start)
        if not self._live.is_of(rows):
            self._live, self._past = _Window(rows), _Window(rows)
        # Looking back must not undo what has been counted up to the present.
        window = self._live if len(labels) == len(self._recorder) else self._past
        return window.similarity(labels, start)


class _Window:
    """Similarity over a window of draws that usually grows at its end; any other window is counted anew."""

    def __init__(self, rows: NDArray[np.intp] | None) -> None:
        self._rows = rows
        self._running: RunningSimilarity | None = None
        self._start = self._stop = 0

    def is_of(self, rows: NDArray[np.intp] | None) -> bool:
        """Whether it counts the pairs of these objects (None: of all)."""
        if rows is None or self._rows is None:
            return rows is self._rows
        return np.array_equal(rows, self._rows)

    def similarity(self, labels: NDArray[Any], start: int) -> NDArray[np.float32]:
        stop, n_objects = labels.shape
        if self._running is None:
            self._running = RunningSimilarity(n_objects, rows=self._rows)
        if start != self._start or stop < self._stop:
            self._running.clear()
            self._start = self._stop = start
        for row in range(self._stop, stop, _BLOCK):
            self._running.add_block(labels[row : min(row + _BLOCK, stop)])
        self._stop = stop
        similarity: NDArray[np.float32] = self._running.similarity(np.float32)
        return similarity
