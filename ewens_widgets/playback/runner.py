"""Runs a chain in blocks that fit the time they are given."""

from collections.abc import Callable
from concurrent.futures import Executor

from ewens_widgets.playback.blocks import BlockSizer
from ewens_widgets.playback.chain import RecordedChain
from ewens_widgets.playback.rates import RateMeter

__all__ = ["Runner"]


class Runner:
    """A chain, how long its iterations take, and how many it makes a second.

    Parameters
    ----------
    chain
        The source with its recorder.
    clock
        Seconds from an arbitrary start.
    helper
        A thread for blocks, or None.
    """

    def __init__(
        self, chain: RecordedChain, clock: Callable[[], float], helper: Executor | None = None
    ) -> None:
        self.chain = chain
        self.is_prepared = False
        self._clock = clock
        self._helper = helper
        self._sizer = BlockSizer()
        self._meter = RateMeter()

    @property
    def iterations_per_second(self) -> float:
        """Iterations a second, lately."""
        return self._meter.rate(self._clock())

    def start_counting(self) -> None:
        """Count the iterations a second from now on."""
        self._meter.restart(self._clock())

    @property
    def can_launch(self) -> bool:
        """Whether blocks can run on the helper thread; the first one, which compiles the source, does not."""
        return self._helper is not None and self.is_prepared and self.chain.can_launch

    def launch(self, limit: int, seconds: float) -> None:
        """Have a block of at most `limit` iterations, or so many seconds, run on the helper thread."""
        if self._helper is not None:
            self.chain.launch(min(limit, self._sizer.size(seconds)), self._helper, self._clock)

    def land(self) -> int:
        """Record the block that was launched; return its iterations, 0 if there is none."""
        flight, done = self.chain.flight, self.chain.land()
        if flight is not None and done:
            self._meter.add(done, self._clock())
            self._sizer.measured(done, flight.seconds)
        return done

    def run_block(self, limit: int, seconds: float) -> int:
        """Run and record a block of at most `limit` iterations that should take at most so many seconds.

        Returns
        -------
        number of iterations run; 0 if the source has no more
        """
        started = self._clock()
        done = self.chain.advance(min(limit, self._sizer.size(seconds)))
        if not self.is_prepared:
            # The first block may have been compiled: its time says nothing about the next one's.
            self.is_prepared = True
            self.start_counting()
        elif done:
            self._meter.add(done, self._clock())
            self._sizer.measured(done, self._clock() - started)
        return done
