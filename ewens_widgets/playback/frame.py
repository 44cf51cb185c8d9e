"""What views are given to show: frozen values that any thread may read, and that cannot disturb the chain.

A `Frame` is one picture of a chain, with the status of its player and the answer so far; a `Tick` asks for a
picture of work that is no chain. `status_text` describes a frame in words.

`LiveAnswer` works the answer out (`trace.answer()`, and the verdict on the chain). That takes up to some
seconds, so it is done on a thread of its own where there can be one. It is worked out of all draws when the
run has come to its end, and where the colours show it; while the chain runs, of few draws from time to time.
"""

import logging
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ewens_widgets.analysis.convergence import FEWEST_DRAWS, diagnose
from ewens_widgets.memory import TooLargeError
from ewens_widgets.playback.summaries import Summary
from ewens_widgets.sampling.compiled import COMPILED
from ewens_widgets.sampling.draws import Event
from ewens_widgets.sampling.moves.move import MOVES

if TYPE_CHECKING:
    from ewens_widgets.analysis.answer import Answer
    from ewens_widgets.playback.loop import Mailbox
    from ewens_widgets.sampling.trace import Trace

_logger = logging.getLogger(__name__)

_MOST_LABELS = 1_000_000  # objects times draws that an answer is made of; of more, every k-th draw
_MOST_LABELS_IN_BRIEF = 20_000  # the same while the chain runs, or where the page waits for the answer
_FEWEST_IN_BRIEF = 50  # draws before there is an answer while the chain runs
_GROWTH = 1.5  # how many times the draws of the last one, before there is another such answer


class PlayerState(StrEnum):
    """What the player is doing."""

    IDLE = "idle"
    """Nothing has been run since the start or the last reset."""

    PREPARING = "preparing"
    """The first block is about to run; compiling may take some seconds."""

    PLAYING = "playing"
    """The chain runs until it is paused or reaches the target."""

    STEPPING = "stepping"
    """The chain runs the steps that were asked for, then pauses."""

    PAUSED = "paused"
    """The chain stands still."""

    FINISHED = "finished"
    """The target is reached; extending it or resetting allows more."""

    FAILED = "failed"
    """The source, the recorder or (in strict mode) a view raised; only a reset helps."""

    @property
    def is_running(self) -> bool:
        """Whether iterations are being run."""
        return self in (PlayerState.PREPARING, PlayerState.PLAYING, PlayerState.STEPPING)


@dataclass(frozen=True, slots=True)
class PlayerStatus:
    """What a status line needs to know.

    Attributes
    ----------
    state
        What the player is doing.
    iteration
        Where the chain is: every iteration up to this one has been recorded.
    target
        The iteration at which playing stops.
    shown_iteration
        The iteration on display; less than `iteration` only while looking at the past.
    first_iteration
        The earliest iteration that can be shown, usually 0.
    speed
        Iterations a frame, or None for as fast as it goes.
    iterations_per_second, frames_per_second
        Measured over the last second or so; 0 when standing still.
    message
        A sentence for the user where there is something to say (an interrupt, a failure, what is being waited
        for).
    """

    state: PlayerState
    iteration: int
    target: int
    shown_iteration: int
    first_iteration: int = 0
    speed: float | None = None
    iterations_per_second: float = 0.0
    frames_per_second: float = 0.0
    message: str = ""

    @property
    def is_running(self) -> bool:
        """Whether iterations are being run."""
        return self.state.is_running

    @property
    def is_following(self) -> bool:
        """Whether the present is on display, and not the past."""
        return self.shown_iteration == self.iteration

    @property
    def is_end(self) -> bool:
        """Whether the end of a run is on display."""
        # Not by the state: a loaded run that had come to its end has not been finished here.
        return not self.is_running and self.is_following and 0 < self.target <= self.iteration

    @property
    def headline(self) -> object:
        """What listeners get at once when it changes; the other numbers come with the frames."""
        return self.state, self.target, self.speed, self.message, self.is_following

    @property
    def progress(self) -> float:
        """Share of the target that is done, between 0 and 1."""
        return min(1.0, self.iteration / self.target) if self.target > 0 else 1.0


@dataclass(frozen=True)
class ChainAnswer:
    """An answer, and what it was made of.

    Attributes
    ----------
    answer
        The answer.
    verdict, sentence
        `Diagnostics.verdict` of the chain, and the same in words.
    iteration
        Last iteration that it counts.
    """

    answer: "Answer"
    verdict: str
    sentence: str
    iteration: int


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture: the state on display and what led to it. Nothing in it can disturb the chain.

    Attributes
    ----------
    number
        The number to acknowledge once the frame is painted; it only ever grows.
    event
        The iteration on display. Before the first iteration it describes the initial state, with no moves, if
        the source can tell it; otherwise it is None.
    status
        Where the player is; ``status.shown_iteration`` is the iteration on display.
    summary
        Traces and averages up to the iteration on display, not beyond it.
    answer
        The last answer of the run on display, if there is one.
    answer_is_complete
        Whether that is the answer of all draws on display, and of no others.
    answer_is_coming
        Whether an answer is being worked out.
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
class WorkerStatus:
    """Whether steps are being done; and a sentence where there is something to say."""

    is_running: bool
    message: str = ""

    @property
    def headline(self) -> object:
        """What listeners get at once when it changes: everything."""
        return self


@dataclass(frozen=True, slots=True)
class Tick:
    """Asks the views to show the work as it is now; the number is acknowledged once that is painted."""

    number: int
    status: WorkerStatus


def number_text(number: int) -> str:
    """A whole number with its thousands apart."""
    return f"{number:,}".replace(",", " ")


def status_text(frame: Frame, status: PlayerStatus | None = None) -> str:
    """One line: iteration, what happened, how fast it goes.

    Parameters
    ----------
    frame
        What is on display.
    status
        A newer status than that of the frame.
    """
    now = frame.status if status is None else status
    if now.state is PlayerState.PREPARING or now.state is PlayerState.FAILED:
        return now.message
    event = frame.event
    parts = [f"iteration {number_text(now.shown_iteration)} of {number_text(now.target)}"]
    if event is not None and event.iteration == now.shown_iteration:
        move = move_text(frame)
        if move:
            parts.append(move)
    if not now.is_following:
        parts.append(f"looking back; the chain is at {number_text(now.iteration)}")
        return " · ".join(parts)
    if now.iterations_per_second >= 1.0:
        parts.append(f"{number_text(round(now.iterations_per_second))} iterations/s")
    if now.message:
        parts.append(now.message.rstrip("."))
    return " · ".join(parts)


def move_text(frame: Frame) -> str:
    """What the iteration on display did."""
    event = frame.event
    if event is None or not event.moves:
        return ""
    if event.proposed_labels is not None and event.accepted is not None:
        decision = "accepted" if event.accepted else "rejected"
        return f"{_kind(frame)} {decision}"
    made = sum(move.proposals for move in event.moves)
    taken = sum(move.acceptances for move in event.moves)
    if made == 0:
        return "nothing proposed"
    if len(event.moves) == 1 and made == 1:
        return "proposal accepted" if taken else "proposal rejected"
    return f"{taken} of {made} moves accepted"


def _kind(frame: Frame) -> str:
    """Whether the proposal splits, merges, or moves an object."""
    event = frame.event
    if event is None or event.proposed_labels is None:
        return "proposal"
    previous = frame.summary.n_clusters[-2:-1]
    before = event.n_clusters if not event.accepted else int(previous[0]) if len(previous) else None
    after = int(np.max(event.proposed_labels)) + 1
    made = MOVES.get(event.moves[0].name)
    if made is None:  # Of a record whose move is not registered here.
        return "proposal"
    if before is None or made.moves_one:
        return "move"
    return "split" if after > before else "merge" if after < before else "move"


class LiveAnswer:
    """Works the answer out, one at a time, and keeps the last one.

    Parameters
    ----------
    mailbox
        Brings an answer to the event loop. Without a loop everything is done at once.
    on_answer
        Called there when an answer has come.
    is_wanted
        Whether the answer is to be shown now, wherever the chain is.
    rest
        Least time between two answers while the chain runs, in seconds.
    clock
        Seconds from an arbitrary start.
    """

    def __init__(
        self,
        mailbox: "Mailbox",
        on_answer: Callable[[], None],
        is_wanted: Callable[[], bool],
        rest: float = 3.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._mailbox = mailbox
        self._on_answer = on_answer
        self._is_wanted = is_wanted
        self._rest = rest
        self._clock = clock
        # Interpreted code would hold up the loop from a thread too, and a browser starts no threads.
        can_help = COMPILED and sys.platform != "emscripten"
        self._helper = ThreadPoolExecutor(1, thread_name_prefix="ewens_widgets answer") if can_help else None
        self.clear()

    def clear(self) -> None:
        """Turn to another chain; what is under way is dropped when it comes."""
        self._answer: ChainAnswer | None = None
        self._problem = ""
        self._key: tuple[int, ...] = ()  # of the draws that the answer is of
        self._is_brief = False
        self._future: Future[ChainAnswer | str] | None = None
        self._arrive: Callable[[Future[ChainAnswer | str]], None] = lambda _: None
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
            self._arrive(self._future)
        status, summary, key, now = frame.status, frame.summary, _key_of(frame), self._clock()
        is_brief = not (status.is_end or self._is_wanted())
        is_known = key == self._key and is_brief >= self._is_brief
        if self._future is not None or is_known or (is_brief and not status.is_running):
            return
        if summary.n_draws < (_FEWEST_IN_BRIEF if is_brief else FEWEST_DRAWS):
            self._problem = "An answer needs some more draws."
            return
        if status.is_running and (self._helper is None or now < self._due):
            return
        is_aside = self._helper is not None and self._mailbox.capture_loop()
        # Few more draws say hardly anything new, and the first seconds of a chain say nothing yet.
        has_grown = self._key[:1] != key[:1] or key[1] >= _GROWTH * self._key[1]
        if is_brief and not (is_aside and has_grown and now >= self._started + self._rest):
            return
        most = _MOST_LABELS if is_aside and not is_brief else _MOST_LABELS_IN_BRIEF
        trace, last = _thinned(summary.trace(), most), int(summary.iterations[-1])
        self._started = now
        if self._helper is None or not is_aside:
            self._keep(_read(trace, last), key, is_brief)
            return

        def arrive(future: "Future[ChainAnswer | str]") -> None:
            if future is self._future:
                self._future = None
                self._keep(future.result(), key, is_brief)
                self._on_answer()

        self._arrive = arrive
        self._future = self._helper.submit(_read, trace, last)
        self._future.add_done_callback(self._tell)

    def _tell(self, future: "Future[ChainAnswer | str]") -> None:
        # On the helper's thread. Where the loop has gone, `wait` or the next `ask` takes the answer over.
        if self._mailbox.is_elsewhere:
            self._mailbox.post(partial(self._arrive, future))

    def wait(self) -> bool:
        """Wait for the answer that is being worked out, for a still picture; return whether there was one."""
        if self._future is None:
            return False
        wait((self._future,))
        self._arrive(self._future)
        return True

    def _keep(self, found: "ChainAnswer | str", key: tuple[int, ...], is_brief: bool) -> None:
        self._key, self._is_brief = key, is_brief
        self._answer, self._problem = (None, found) if isinstance(found, str) else (found, "")
        # One that takes long is worked out rarely.
        now = self._clock()
        self._due = now + max(self._rest, 9.0 * (now - self._started))


def _key_of(frame: Frame) -> tuple[int, ...]:
    """What identifies the draws on display: the run, how many, and from which on they count."""
    return frame.summary.epoch, len(frame.summary), frame.summary.start


def _thinned(trace: "Trace", most: int) -> "Trace":
    """Every k-th draw, so that there are at most so many labels, but draws enough to judge by."""
    wanted = max(10 * FEWEST_DRAWS, most // max(1, trace.n_objects))
    step = -(-len(trace) // wanted)
    return trace if step <= 1 else trace.thin(step)


def _read(trace: "Trace", iteration: int) -> ChainAnswer | str:
    """Return the answer of some draws, or why there is none."""
    try:
        numbers = diagnose(trace)
        # The last of every k-th draw may be an earlier one, so the iteration is given.
        return ChainAnswer(trace.answer(), numbers.verdict, numbers.sentence(), iteration)
    except (TooLargeError, ValueError) as error:
        return str(error)
    except Exception as error:
        # A fault of the answer must not stop the chain, nor a view.
        _logger.warning("there is no answer", exc_info=error)
        return f"There is no answer ({type(error).__name__}: {error})."
