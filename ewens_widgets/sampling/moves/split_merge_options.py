"""What can be chosen about split-merge: its distances, its probabilities, and the core jump."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ewens_widgets.sampling.moves.distances import BETWEEN, WITHIN

__all__ = ["SplitMerge", "SplitMergeOptions"]


class SplitMergeOptions(NamedTuple):
    """Options in the form that the kernel takes."""

    within: int
    between: int
    split: float
    merge: float
    core_jump: float
    as_printed: bool


@dataclass(frozen=True)
class SplitMerge:
    """Split by distance to the farthest pair, merge near clusters.

    Parameters
    ----------
    within
        Distance within a cluster: ``"average"``, ``"maximum"`` or ``"minimum"``.
    between
        Distance between clusters: ``"average"``, ``"maximum"``, ``"minimum"`` or ``"hausdorff"``.
    probabilities
        Probabilities of proposing a split, a merge, and nothing.
    core_jump
        Probability that one of the two cores changes sides.
    """

    within: str = "average"
    between: str = "average"
    probabilities: tuple[float, float, float] = (0.475, 0.475, 0.05)
    core_jump: float = 0.01

    name: ClassVar[str] = "split-merge"

    def __post_init__(self) -> None:
        """Refuse unknown distances and probabilities that are none."""
        for option, known in (("within", WITHIN), ("between", BETWEEN)):
            given = getattr(self, option)
            if not isinstance(given, str) or given not in known:
                raise ValueError(f"{option} must be one of {', '.join(known)}; got {given!r}.")
        probabilities = _as_floats(self.probabilities)
        if len(probabilities) != 3 or min(probabilities) < 0.0 or abs(sum(probabilities) - 1.0) > 1e-9:
            raise ValueError(
                "the probabilities of split, merge and keep must be three numbers, none negative, that sum "
                f"to 1; got {self.probabilities!r}."
            )
        if (probabilities[0] == 0.0) != (probabilities[1] == 0.0):
            raise ValueError(
                "split and merge undo each other: give both a positive probability, or neither; "
                f"got {self.probabilities!r}."
            )
        object.__setattr__(self, "probabilities", probabilities)
        jump = _as_floats((self.core_jump,))
        if len(jump) != 1 or not 0.0 <= jump[0] < 1.0:
            raise ValueError(
                f"the probability of a core jump must be at least 0 and below 1; got {self.core_jump!r}."
            )
        object.__setattr__(self, "core_jump", jump[0])

    def options(self, as_printed: bool = False) -> SplitMergeOptions:
        """Options for the kernel."""
        split, merge, _ = self.probabilities
        return SplitMergeOptions(
            WITHIN[self.within], BETWEEN[self.between], split, merge, self.core_jump, as_printed
        )


def _as_floats(values: object) -> tuple[float, ...]:
    """Finite floats, or nothing where `values` are none."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return ()
    return tuple(numbers.tolist()) if numbers.ndim == 1 and np.all(np.isfinite(numbers)) else ()
