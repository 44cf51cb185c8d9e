"""What a Metropolis move reports besides its decision, for watchers who step through the chain."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.compiled import inlined

__all__ = ["ACCEPTED", "PROPOSED", "WANTED", "Outcome", "make_outcome", "report"]

# Places in Outcome.flags: whether a report is wanted, a partition was proposed, and it was accepted.
WANTED, PROPOSED, ACCEPTED = 0, 1, 2


class Outcome(NamedTuple):
    """The proposal of the latest Metropolis move: slot labels and log acceptance ratio.

    Where no report is wanted, a move may reject as soon as it knows that it will, without working out the
    whole ratio; the decisions and the random numbers used are the same.
    """

    flags: NDArray[np.int64]
    labels: NDArray[np.int64]
    log_ratio: FloatArray


def make_outcome(n_objects: int, wanted: bool) -> Outcome:
    """Make room for a report."""
    return Outcome(np.array([int(wanted), 0, 0]), np.zeros(n_objects, dtype=np.int64), np.zeros(1))


@inlined
def report(outcome: Outcome, labels: NDArray[np.int64], log_ratio: float, accepted: bool) -> None:
    """Tell a watcher the decision and where it was made; the caller changes the labels to the proposal."""
    for i in range(labels.shape[0]):
        outcome.labels[i] = labels[i]
    outcome.log_ratio[0] = log_ratio
    outcome.flags[PROPOSED] = 1
    outcome.flags[ACCEPTED] = 1 if accepted else 0
