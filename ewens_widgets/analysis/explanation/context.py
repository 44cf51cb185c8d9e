"""What a proposal is made from, and the terms that all moves have in common."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.explanation.proposal import Changes, Parameters
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors import ewens
from ewens_widgets.partition import canonical_labels

__all__ = ["Context", "frozen"]

IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Context:
    """The chain between the draw of its parameters and its move.

    Attributes
    ----------
    posterior
        What is being sampled.
    parameters
        θ and λ.
    slots
        Number of each object's cluster in the chain: the kernels choose among clusters in this order.
    """

    posterior: Posterior
    parameters: Parameters
    slots: NDArray[Any]

    @property
    def labels(self) -> IntArray:
        """Canonical labels."""
        return frozen(canonical_labels(self.slots))

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.slots.max()) + 1

    def members(self, slot: int) -> IntArray:
        """Objects of a cluster, in order."""
        return np.flatnonzero(self.slots == slot)

    def examples(self) -> list[int]:
        """One object of each cluster."""
        first: list[int] = np.unique(self.slots, return_index=True)[1].tolist()
        return first

    def changes(self, proposed: IntArray) -> Changes:
        """Changes of log prior and log likelihood if a partition were accepted."""
        parameters = self.parameters
        prior = [ewens.log_pmf(labels, parameters.concentration) for labels in (proposed, self.slots)]
        likelihood = [
            float(self.posterior.log_likelihoods(labels)[parameters.theta_index])
            for labels in (proposed, self.slots)
        ]
        return Changes(prior[0] - prior[1], likelihood[0] - likelihood[1])


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Forbid writing to an array."""
    array.setflags(write=False)
    return array
