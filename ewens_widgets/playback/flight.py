"""A block of iterations that a helper thread runs while the event loop shows the ones before it.

Compiled code releases the interpreter's lock, so the two really go on at the same time. The block is recorded
aside: nobody sees anything of it before the event loop takes it over.
"""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor

from ewens_widgets.playback.interfaces import EventRecorder, SelfRecording
from ewens_widgets.sampling.compiled import COMPILED

__all__ = ["Flight", "helper_thread"]


def helper_thread() -> Executor | None:
    """Return a thread to run blocks on; it starts when first used, and ends when nobody has it any more.

    None where it would gain nothing: interpreted code holds the lock, and a browser starts no threads.
    """
    if not COMPILED or sys.platform == "emscripten":
        return None
    return ThreadPoolExecutor(1, thread_name_prefix="ewens_widgets playback")


class Flight:
    """A block under way.

    Parameters
    ----------
    source
        What is run.
    aside
        An empty recorder for this block.
    count
        Iterations of the block.
    helper
        The thread that runs it.
    clock
        Seconds from an arbitrary start.

    Attributes
    ----------
    future
        Done when the block is.
    seconds
        How long it took, known by then.
    """

    def __init__(
        self,
        source: SelfRecording,
        aside: EventRecorder,
        count: int,
        helper: Executor,
        clock: Callable[[], float],
    ) -> None:
        self.seconds = 0.0
        self._aside = aside
        self._source = source
        self._count = count
        self._clock = clock
        self._thread: int | None = None
        self.future: Future[None] = helper.submit(self._run)

    def result(self) -> EventRecorder:
        """Wait for the end of the block; return its record, or raise what the source raised."""
        if threading.get_ident() == self._thread and not self.future.done():
            # A player whose loop is gone may be collected as garbage on this very thread.
            raise RuntimeError("a block cannot wait for itself")
        self.future.result()
        return self._aside

    def _run(self) -> None:
        self._thread = threading.get_ident()
        started = self._clock()
        self._source.record(self._count, self._aside)
        self.seconds = self._clock() - started
