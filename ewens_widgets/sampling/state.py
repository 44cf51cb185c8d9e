"""The state of a chain: what the next iteration needs, and nothing else."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.sampling.archive import ArchiveError

__all__ = ["State", "state_from_parts", "state_parts"]

LAST_ITERATION = 2**62  # Iterations are counted in 64 bits.
LOG_RANGE = (-745.0, 709.7)  # Logarithms of positive numbers.


@dataclass(frozen=True, eq=False)
class State:
    """Where a chain stands between two iterations.

    Everything else that a sampler holds (cluster sums, scatter, cached distances) is a function of this,
    computed without rounding that depends on the past; a chain resumed from a state continues bit for bit.

    Attributes
    ----------
    labels
        Slot of each object's cluster. The numbering of the slots decides the order of summation, so it is
        part of the state.
    theta_index
        Place of θ on the grid.
    log_concentration
        Logarithm of λ.
    iteration
        Number of iterations done.
    generator
        State of the random number generator (PCG64).
    """

    labels: NDArray[np.int64]
    theta_index: int
    log_concentration: float
    iteration: int
    generator: dict[str, Any]

    @property
    def concentration(self) -> float:
        """Concentration λ of the Ewens prior."""
        return float(np.exp(self.log_concentration))


def state_parts(state: State) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Settings and array that a file needs to hold a state."""
    settings = {
        "theta_index": state.theta_index,
        "log_concentration": state.log_concentration.hex(),
        "iteration": state.iteration,
        "generator": state.generator,
    }
    return settings, state.labels


def state_from_parts(settings: dict[str, Any], labels: NDArray[Any], n_objects: int, n_thetas: int) -> State:
    """Make a state from the parts found in a file, or say that they do not fit together."""
    slots = np.asarray(labels)
    packed = (
        slots.shape == (n_objects,)
        and slots.dtype.kind in "iu"
        and 0 <= slots.min() <= slots.max() < n_objects
        and bool(np.all(np.bincount(slots.astype(np.intp)) > 0))
    )
    theta_index, iteration = int(settings["theta_index"]), int(settings["iteration"])
    log_concentration = float.fromhex(settings["log_concentration"])
    sound = 0 <= theta_index < n_thetas and 0 <= iteration < LAST_ITERATION
    sound = sound and LOG_RANGE[0] < log_concentration < LOG_RANGE[1]
    if not packed or not sound:
        raise ArchiveError(
            "the saved state is inconsistent: its labels, θ, λ or iteration do not fit the data."
        )
    return State(
        labels=slots.astype(np.int64),
        theta_index=theta_index,
        log_concentration=log_concentration,
        iteration=iteration,
        generator=dict(settings["generator"]),
    )
