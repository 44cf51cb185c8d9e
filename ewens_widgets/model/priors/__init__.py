"""Priors on partitions; all are p(B) = V(K) Π_b W(n_b), and all are used in the same way.

===============================  =====================================================================
`Ewens`                          the paper's: about λ log n clusters, most of them small
`DirichletMultinomial`           a fixed number of components
`FiniteMixture`                  an unknown number of components: their number is the question
`PitmanYor`                      many small clusters, about n^σ of them
===============================  =====================================================================

What they share, and what follows from it, is in `partition_prior`.
"""

from ewens_widgets.model.priors.ewens import Ewens, PitmanYor
from ewens_widgets.model.priors.finite_mixture import (
    CountPrior,
    DirichletMultinomial,
    FiniteMixture,
    Geometric,
    Poisson,
)
from ewens_widgets.model.priors.partition_prior import PartitionPrior

__all__ = [
    "CountPrior",
    "DirichletMultinomial",
    "Ewens",
    "FiniteMixture",
    "Geometric",
    "PartitionPrior",
    "PitmanYor",
    "Poisson",
]
