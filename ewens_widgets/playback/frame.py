"""What views are given to show: frozen values that any thread may read, and that cannot disturb the chain.

A `Frame` is one picture of a chain. It holds the event on display, the status of the player, a `Summary` of
the draws so far, and the latest answer. A `Tick` asks for a picture of work that is not a chain.

A `Summary` computes traces and averages when a view asks for them. Views ask at most once a frame, so the
draws between two frames are counted together, and a quantity that no view shows costs nothing. Averages leave
out the burn-in. During the burn-in they cover all draws so far, so that there is something to see.

`LiveAnswer` computes the answer (`trace.answer()`, and the verdict on the chain). That takes up to some
seconds, so it has a thread of its own where the platform allows one. The answer uses all draws when the run
has ended or the colours show it; while the chain runs, it uses few draws and comes from time to time.
"""

import logging
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.convergence import FEWEST_DRAWS, diagnose
from ewens_widgets.analysis.similarity import RunningSimilarity
from ewens_widgets.arguments import TooLargeError
from ewens_widgets.sampling.compiled import COMPILED
from ewens_widgets.sampling.draws import DrawTable, Event, read_only
from ewens_widgets.sampling.trace import Trace

if TYPE_CHECKING:
    from ewens_widgets.analysis.answer import Answer
    from ewens_widgets.playback.loop import Mailbox

_logger = logging.getLogger(__name__)

_MOST_LABELS = 1_000_000  # objects times draws that an answer is made of; of more, every k-th draw
_MOST_LABELS_IN_BRIEF = 20_000  # the same while the chain runs, or where the page waits for the answer
_FEWEST_IN_BRIEF = 50  # draws before there is an answer while the chain runs
_GROWTH = 1.5  # the next such answer uses at least this many times the draws of the last one
_REST = 3.0  # least time between two answers while the chain runs, in seconds

# Draws counted at once: bounds the memory for catching up after a long time without a viewer.
_BLOCK = 1024

_RUN, _LOOKED_BACK = 20, 5000  # draws whose mean is compared, and among how many


class PlayerState(StrEnum):
    """What the player is doing."""

    PREPARING = "preparing"
    """The first block is about to run; compilation may take some seconds."""

    PLAYING = "playing"
    """The chain runs until it is paused or reaches the target."""

    STEPPING = "stepping"
    """The chain runs the requested steps, then pauses."""

    PAUSED = "paused"
    """The chain stands still, before its target."""

    FINISHED = "finished"
    """The target is reached; a later target or a reset allows more."""

    FAILED = "failed"
    """The source, the recorder or (in strict mode) a view raised; a reset starts again."""

    @property
    def is_running(self) -> bool:
        """Whether iterations are being run."""
        return self in (PlayerState.PREPARING, PlayerState.PLAYING, PlayerState.STEPPING)


@dataclass(frozen=True, slots=True)
class Status:
    """What a worker is doing.

    Attributes
    ----------
    state
        Whether it runs, and how.
    message
        A sentence for the user on an interrupt, a failure, or the compilation under way; otherwise empty.
    """

    state: PlayerState
    message: str = field(default="", kw_only=True)

    @property
    def is_running(self) -> bool:
        """Whether steps are being done."""
        return self.state.is_running

    @property
    def headline(self) -> object:
        """The part of which listeners are informed at once; the rest comes with the frames."""
        return self


@dataclass(frozen=True, slots=True)
class PlayerStatus(Status):
    """The progress of a player.

    Attributes
    ----------
    iteration
        Last iteration of the chain; all up to this one have been recorded.
    target
        The iteration at which playing stops.
    shown_iteration
        The iteration on display; less than `iteration` only while looking at the past.
    first_iteration
        The earliest iteration that can be shown, usually 0.
    speed
        Iterations per frame, or None for as fast as possible.
    iterations_per_second
        Measured over about the last second; 0 while nothing runs.
    """

    iteration: int
    target: int
    shown_iteration: int
    first_iteration: int = 0
    speed: float | None = None
    iterations_per_second: float = 0.0

    @property
    def is_following(self) -> bool:
        """Whether the present is on display, and not the past."""
        return self.shown_iteration == self.iteration

    @property
    def is_end(self) -> bool:
        """Whether the end of a run is on display."""
        # The state does not tell: a loaded run is paused at its end.
        return not self.is_running and self.is_following and 0 < self.target <= self.iteration

    @property
    def headline(self) -> object:
        """The part of which listeners are informed at once; the other numbers come with the frames."""
        return self.state, self.target, self.speed, self.message, self.is_following


class Summary(DrawTable):
    """All draws up to one iteration, and averages of those after the burn-in; a view may keep it.

    Attributes
    ----------
    start
        Index of the first draw in averages.
    is_burning_in
        Whether the iteration on display is still part of the burn-in.
    epoch
        Number of the run; a reset starts another one.
    """

    def __init__(self, summaries: "RunningSummaries", draws: DrawTable) -> None:
        super().__init__(draws.posterior, draws.move_names, draws.held())
        self._summaries = summaries
        self.epoch = summaries.epoch
        self.is_burning_in = len(draws) <= summaries.burn_in
        self.start = 0 if self.is_burning_in else summaries.burn_in

    @property
    def n_draws(self) -> int:
        """Number of draws in averages."""
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
        """Return the draws in averages as a trace, without copying them."""
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

    def __init__(self, recorder: DrawTable, burn_in: int = 0) -> None:
        self._recorder = recorder
        self.burn_in = burn_in
        self.epoch = 0
        self.clear()

    def clear(self) -> None:
        """Start again with the draws of a cleared recorder; earlier summaries keep the old draws."""
        self.epoch += 1
        self._windows: dict[tuple[bool, bytes | None], _Window] = {}

    def up_to(self, length: int) -> Summary:
        """Summarise the first `length` draws."""
        return Summary(self, self._recorder[:length])

    def similarity(
        self, labels: NDArray[Any], start: int, epoch: int, rows: NDArray[np.intp] | None = None
    ) -> NDArray[np.float32]:
        """Similarity of the draws from `start` on; `epoch` is the number of their run."""
        if epoch != self.epoch:
            return _Window(labels.shape[1], rows).of(labels, start)
        # Looking back must not discard the counts up to the present.
        key = len(labels) == len(self._recorder), None if rows is None else rows.tobytes()
        if key not in self._windows:
            self._windows[key] = _Window(labels.shape[1], rows)
        return self._windows[key].of(labels, start)


class _Window(RunningSimilarity):
    """Similarity over a window of draws that usually grows at its end; otherwise it is counted again."""

    _start = 0

    def of(self, labels: NDArray[Any], start: int) -> NDArray[np.float32]:
        """Similarity of the draws from `start` on."""
        if start != self._start or len(labels) < start + self.n_draws:
            self.clear()
            self._start = start
        for row in range(start + self.n_draws, len(labels), _BLOCK):
            self.add_block(labels[row : row + _BLOCK])
        return cast("NDArray[np.float32]", read_only(self.similarity(np.float32)))


@dataclass(frozen=True)
class ChainAnswer:
    """An answer, and the draws that it uses.

    Attributes
    ----------
    answer
        The answer.
    verdict, sentence
        `Diagnostics.verdict` of the chain, and the same in words, with advice where it is not "agree".
    iteration
        Last iteration that it uses.
    components
        Smallest and largest number of clusters of the draws, without 5 % of the draws at either end. Each
        cluster of a draw is a Gaussian component.
    """

    answer: "Answer"
    verdict: str
    sentence: str
    iteration: int
    components: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture: the state on display and the draws up to it.

    Attributes
    ----------
    number
        The number to acknowledge once the frame is painted; later frames have larger numbers.
    event
        The iteration on display. Before the first iteration it describes the initial state, with no moves, if
        the source can describe it; otherwise it is None.
    status
        Progress of the player; ``status.shown_iteration`` is the iteration on display.
    summary
        Traces and averages up to the iteration on display.
    answer
        The last answer of the run on display, if there is one.
    answer_is_complete
        Whether the answer uses exactly the draws on display.
    answer_is_coming
        Whether an answer is being computed.
    answer_problem
        Why there is no answer.
    """

    number: int
    event: Event | None
    status: PlayerStatus
    summary: Summary
    answer: ChainAnswer | None = None
    answer_is_complete: bool = False
    answer_is_coming: bool = False
    answer_problem: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    """Asks the views to show the work as it is now; the number is acknowledged once it is painted."""

    number: int
    status: Status


def number_text(number: int) -> str:
    """Format a whole number with spaces between thousands."""
    return f"{number:,}".replace(",", " ")


# A thread with interpreted code would hold up the event loop, and a browser starts no threads.
_HAS_THREADS = COMPILED and sys.platform != "emscripten"


class LiveAnswer:
    """Computes the answer, one at a time, and keeps the last one.

    Parameters
    ----------
    mailbox
        Brings an answer from the thread to the event loop. Without a loop everything is done at once.
    on_answer
        Called on the loop when the thread has finished an answer.
    is_wanted
        Whether the answer is to be shown now, wherever the chain is.
    clock
        Seconds from an arbitrary start.
    has_thread
        Whether to use a thread. Without one, `ask` computes the answer itself, of few draws.
    """

    def __init__(
        self,
        mailbox: "Mailbox",
        on_answer: Callable[[], None],
        is_wanted: Callable[[], bool],
        clock: Callable[[], float] = time.perf_counter,
        *,
        has_thread: bool = _HAS_THREADS,
    ) -> None:
        self._mailbox = mailbox
        self._on_answer = on_answer
        self._is_wanted = is_wanted
        self._clock = clock
        self._thread = (
            ThreadPoolExecutor(1, thread_name_prefix="ewens_widgets answer") if has_thread else None
        )
        self.clear()

    def clear(self) -> None:
        """Turn to another chain; an answer of the old one is dropped when it is finished."""
        self._answer: ChainAnswer | None = None
        self._problem = ""
        self._key: tuple[int, ...] = ()  # of the draws that the answer is of
        self._is_brief = False
        self._asked: tuple[tuple[int, ...], bool] = (), False  # draws that an answer is computed of
        self._future: Future[ChainAnswer | str] | None = None
        self._started = self._clock()
        self._due = 0.0

    def add_to(self, frame: Frame) -> Frame:
        """Return the frame with the last answer of its run."""
        key = _key_of(frame)
        return replace(
            frame,
            answer=self._answer if self._key[:1] == key[:1] else None,
            answer_is_complete=self._answer is not None and self._key == key and not self._is_brief,
            answer_is_coming=self._future is not None,
            answer_problem=self._problem,
        )

    def ask(self, frame: Frame) -> None:
        """Begin with the answer of the draws on display, if it is due."""
        if self._future is not None and self._future.done():
            self._take(self._future)
        status, summary, key, now = frame.status, frame.summary, _key_of(frame), self._clock()
        is_brief = not (status.is_end or self._is_wanted())
        is_known = key == self._key and is_brief >= self._is_brief
        if self._future is not None or is_known or (is_brief and not status.is_running):
            return
        if summary.n_draws < (_FEWEST_IN_BRIEF if is_brief else FEWEST_DRAWS):
            self._problem = "An answer needs some more draws."
            return
        if status.is_running and now < self._due:
            return
        # A few more draws hardly change the answer, and the first seconds of a chain are its burn-in.
        has_grown = self._key[:1] != key[:1] or key[1] >= _GROWTH * self._key[1]
        if is_brief and not (has_grown and now >= self._started + _REST):
            return
        thread = self._thread if self._mailbox.capture_loop() else None
        most = _MOST_LABELS_IN_BRIEF if is_brief or thread is None else _MOST_LABELS
        trace, last = _thinned(summary.trace(), most), int(summary.iterations[-1])
        self._started, self._asked = now, (key, is_brief)
        if thread is None:
            self._keep(_answer_of(trace, last))
            return
        self._future = thread.submit(_answer_of, trace, last)
        self._future.add_done_callback(self._deliver)

    def _deliver(self, future: "Future[ChainAnswer | str]") -> None:
        # On the thread. Where the loop has ended, `wait` or the next `ask` picks up the answer.
        if self._mailbox.is_elsewhere:
            self._mailbox.post(partial(self._take, future))

    def _take(self, future: "Future[ChainAnswer | str]") -> None:
        if future is self._future:
            self._future = None
            self._keep(future.result())
            self._on_answer()

    def wait(self) -> bool:
        """Wait for an answer under way, for a still picture; return whether there was one."""
        if self._future is None:
            return False
        wait((self._future,))
        self._take(self._future)
        return True

    def _keep(self, found: "ChainAnswer | str") -> None:
        self._key, self._is_brief = self._asked
        self._answer, self._problem = (None, found) if isinstance(found, str) else (found, "")
        # Answers take at most a tenth of the time.
        now = self._clock()
        self._due = now + max(_REST, 9.0 * (now - self._started))


def _key_of(frame: Frame) -> tuple[int, ...]:
    """Identify the draws on display: the run, their number, and the first one in averages."""
    return frame.summary.epoch, len(frame.summary), frame.summary.start


def _thinned(trace: Trace, most: int) -> Trace:
    """Return every k-th draw: at most `most` labels, but enough draws for a verdict."""
    wanted = max(10 * FEWEST_DRAWS, most // max(1, trace.n_objects))
    step = -(-len(trace) // wanted)
    return trace if step <= 1 else trace.thin(step)


def _answer_of(trace: Trace, iteration: int) -> ChainAnswer | str:
    """Return the answer of some draws, or the reason why there is none."""
    try:
        numbers = diagnose(trace)
        # The last of every k-th draw may be an earlier one, so the iteration is given.
        low, high = np.quantile(trace.n_clusters, [0.05, 0.95], method="inverted_cdf").tolist()
        components = int(low), int(high)
        advice = [finding.control for finding in numbers.findings[:1]]
        sentence = " ".join([numbers.sentence(), *advice])
        return ChainAnswer(trace.answer(), numbers.verdict, sentence, iteration, components)
    except (TooLargeError, ValueError) as error:
        return str(error)
    except Exception as error:
        # An error here must not stop the chain or a view.
        _logger.warning("the answer could not be computed", exc_info=error)
        return f"The answer could not be computed ({type(error).__name__}: {error})."
