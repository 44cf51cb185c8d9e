"""One chain of a run: where it stands, what it has given so far, and how often it was unlucky."""

from dataclasses import dataclass

from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.chains.pace import Pace
from ewens_widgets.sampling.chains.task import Piece
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.state import State
from ewens_widgets.sampling.trace import Trace

__all__ = ["Chunk", "Course"]


@dataclass(frozen=True, eq=False)
class Chunk:
    """What a run yields whenever a chunk is done.

    Attributes
    ----------
    chain
        Number of the chain, counted from 0.
    trace
        The draws of this chunk; none during burn-in.
    iteration
        Iterations that the chain has done.
    kept
        Draws of the chain so far.
    wanted
        Draws of each chain to be made before the run ends or, with a stopping rule, is checked next.
    start
        What the chain started from.
    """

    chain: int
    trace: Trace
    iteration: int
    kept: int
    wanted: int
    start: str


class Course:
    """The course of one chain.

    Parameters
    ----------
    number
        Number of the chain.
    posterior
        What it samples.
    state
        Where it stands.
    pace
        How long its chunks are.
    """

    def __init__(self, number: int, posterior: Posterior, state: State, pace: Pace) -> None:
        self.number = number
        self.state = state
        self.pace = pace
        self.ticket: str | None = None  # Of the task that is out, if one is.
        self.send_data = True
        self.faults = 0
        self.failure: str | None = None
        self.details = ""  # Where an error of the chain itself came from.
        self._posterior = posterior
        self._traces: list[Trace] = []

    def take(self, piece: Piece) -> Trace:
        """Go on to the state that a task brought back, and keep its draws."""
        done = piece.state.iteration - self.state.iteration
        trace = piece.trace(self._posterior)
        self.keep(trace, piece.state)
        self.pace.learn(done, piece.seconds)
        self.ticket, self.faults, self.send_data = None, 0, False
        return trace

    def keep(self, trace: Trace, state: State) -> None:
        """Add draws that lead up to a state."""
        self._traces.append(trace)
        self.state = state

    def trace(self) -> Trace:
        """All draws so far."""
        if not self._traces:
            return Recorder(self._posterior).trace()
        if len(self._traces) > 1:
            self._traces = [Trace.concatenate(self._traces)]
        return self._traces[0]
