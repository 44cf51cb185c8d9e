"""What a watcher is told about one iteration of the chain."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Event", "MoveCount"]


_NOTHING = np.empty(0)
_NOTHING.setflags(write=False)


class MoveCount(NamedTuple):
    """How often a move of the schedule was proposed and accepted in one iteration."""

    name: str
    proposals: int
    acceptances: int


class Event(NamedTuple):
    """One iteration, as a frozen value; its arrays are read-only, so that a watcher cannot disturb the chain.

    Attributes
    ----------
    iteration
        Number of the iteration just done; the first is 1.
    theta, theta_index
        Variance ratio of the state, and its place on the grid.
    theta_weights
        Exact conditional probabilities of the grid's values that θ was drawn from.
    labels
        Canonical labels of the partition.
    n_clusters
        Number of clusters.
    log_posterior
        Unnormalised log posterior of the state.
    concentration
        Concentration λ of the state.
    moves
        Proposals and acceptances of each move of the schedule.
    proposed_labels, accepted, log_ratio
        The proposal, the decision and the log Metropolis–Hastings ratio, π(B*) q(B|B*) / (π(B) q(B*|B)); only
        when a schedule of one Metropolis move is stepped.
    nu, nu_index, nu_weights
        Likeness ν of own shapes, its place on the grid, and the exact conditional probabilities that it was
        drawn from; infinite, 0 and nothing where shapes are common.
    sigma
        Common scale Σ of own shapes in canonical coordinates, packed (see `model.own_shapes`).
    more
        Pairs of name and value of whatever else is recorded; each is an attribute too.
    """

    iteration: int
    theta: float
    theta_index: int
    theta_weights: NDArray[np.float64]
    labels: NDArray[np.integer[Any]]
    n_clusters: int
    log_posterior: float
    concentration: float
    moves: tuple[MoveCount, ...]
    proposed_labels: NDArray[np.integer[Any]] | None = None
    accepted: bool | None = None
    log_ratio: float | None = None
    nu: float = np.inf
    nu_index: int = 0
    nu_weights: NDArray[np.float64] = _NOTHING
    sigma: NDArray[np.float64] = _NOTHING
    more: tuple[tuple[str, Any], ...] = ()


def _recorded(event: Event, name: str) -> Any:  # noqa: ANN401 - a number or an array
    for recorded, value in event.more:
        if recorded == name:
            return value
    raise AttributeError(f"an event has no attribute {name!r}")


# Not in the class, so that type checkers still find a misspelt attribute of an event.
setattr(Event, "__getattr__", _recorded)  # noqa: B010 - and an assignment they would refuse
