"""How long chunks are: long enough to be worth sending, short enough to lose little and to see progress."""

from typing import NamedTuple

import numpy as np

from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.columns import label_type
from ewens_widgets.sampling.state import State

__all__ = ["Pace", "Share", "draws_kept", "next_share"]

_FIRST = 64
_SECONDS = 1.0
_GROWTH = 4  # The first chunk of a worker includes loading compiled code: its time says little.
_DRAWS_BYTES = 64 * 2**20


class Share(NamedTuple):
    """The part of a chain that a chunk covers: iterations of burn-in, then draws."""

    burn_in: int
    draws: int


class Pace:
    """Iterations for the next chunk of a chain: a fixed number, or about a second's worth.

    Parameters
    ----------
    posterior
        What is sampled; the draws of a chunk are kept below 64 MB.
    fixed
        Iterations of a chunk, or None.
    """

    def __init__(self, posterior: Posterior, fixed: int | None) -> None:
        self._fixed = fixed
        self._size = _FIRST
        n_objects, n_values = posterior.n_objects, posterior.theta_grid.size
        draw_bytes = n_objects * np.dtype(label_type(n_objects)).itemsize + 4 * n_values + 64
        self._most_draws = max(1, _DRAWS_BYTES // draw_bytes)

    def iterations(self) -> int:
        """Iterations that the next chunk should have."""
        return self._fixed or self._size

    def most_draws(self, thin: int) -> int:
        """Draws that the next chunk may have at most; at least one, as a draw is never cut in two."""
        if self._fixed:
            return max(1, self._fixed // thin)
        return min(max(1, self._size // thin), self._most_draws)

    def learn(self, iterations: int, seconds: float) -> None:
        """Take the measured time of a chunk into account."""
        wanted = int(_SECONDS * iterations / max(seconds, 1e-6))
        self._size = max(1, min(wanted, _GROWTH * max(iterations, 1)))


def draws_kept(state: State, burn_in: int, thin: int) -> int:
    """Draws of a chain up to a state."""
    return max(0, state.iteration - burn_in) // thin


def next_share(state: State, burn_in: int, thin: int, goal: int, pace: Pace) -> Share:
    """Part of the chain to run next, towards `goal` draws."""
    size, left = pace.iterations(), max(0, burn_in - state.iteration)
    if left >= size:
        return Share(size, 0)
    room = max((size - left) // thin, 0 if left else 1)
    return Share(left, min(goal - draws_kept(state, burn_in, thin), room, pace.most_draws(thin)))
