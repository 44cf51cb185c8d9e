"""Do several chains agree so far? R-hat, effective sample sizes, similarity, and a sentence about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.convergence import FEWEST_DRAWS, bulk_ess, rhat
from ewens_widgets.model.checks import FloatArray

__all__ = ["QUANTITIES", "ChainAgreement", "agreement_of", "largest_gap"]

QUANTITIES = {"n_clusters": "number of clusters", "log_posterior": "log posterior", "theta": "log₂ θ"}
"""What is followed: the same whatever the clusters are called."""

# As in `analysis.report`.
GOOD_RHAT, BAD_RHAT = 1.05, 1.2
WANTED_ESS = 100.0
BAD_GAP = 0.1


@dataclass(frozen=True, eq=False)
class ChainAgreement:
    """What several chains say together.

    Attributes
    ----------
    n_draws
        Draws of each chain that count.
    rhat, ess
        By quantity; R-hat is NaN for one that never changes.
    means
        Mean of each quantity by chain.
    gap
        Largest average difference between the similarity matrices of two chains; None if it is not known.
    """

    n_draws: int
    rhat: Mapping[str, float] = field(default_factory=dict)
    ess: Mapping[str, float] = field(default_factory=dict)
    means: Mapping[str, FloatArray] = field(default_factory=dict)
    gap: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether there are draws enough to say anything."""
        return bool(self.rhat)

    @property
    def worst(self) -> str:
        """The quantity with the largest R-hat."""
        return max(self.rhat, key=lambda name: -1.0 if np.isnan(self.rhat[name]) else self.rhat[name])

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat; 1 if nothing ever changed."""
        return max([1.0, *(value for value in self.rhat.values() if not np.isnan(value))])

    @property
    def least_ess(self) -> float:
        """The smallest effective sample size."""
        return min(self.ess.values(), default=0.0)

    @property
    def verdict(self) -> str:
        """``"unknown"``, ``"apart"``, ``"not yet"`` or ``"agree"``."""
        if not self.is_known:
            return "unknown"
        gap = self.gap or 0.0
        if self.worst_rhat > BAD_RHAT or gap > BAD_GAP:
            return "apart"
        if self.worst_rhat > GOOD_RHAT or self.least_ess < WANTED_ESS:
            return "not yet"
        return "agree"

    def sentence(self, names: Sequence[str]) -> str:
        """Say plainly whether the chains agree; `names` are those of the chains."""
        verdict = self.verdict
        if verdict == "unknown":
            return (
                f"Too early to say whether the chains agree: they have {self.n_draws} draws each that count."
            )
        if verdict == "agree":
            return (
                f"The chains agree: no R-hat is above {self.worst_rhat:.2f}, and together they are worth at "
                f"least {self.least_ess:.0f} independent draws."
            )
        if verdict == "apart":
            return f"The chains do not agree: {self._difference(names)}."
        if self.worst_rhat > GOOD_RHAT:
            return (
                f"The chains nearly agree, but not yet: the {QUANTITIES[self.worst]} has R-hat "
                f"{self.worst_rhat:.2f}, and should have {GOOD_RHAT} at most. Run longer."
            )
        return (
            f"The chains agree as far as can be seen, but together they are worth only {self.least_ess:.0f} "
            f"independent draws; {WANTED_ESS:.0f} would be better. Run longer."
        )

    def _difference(self, names: Sequence[str]) -> str:
        if self.worst_rhat <= BAD_RHAT:
            return (
                f"two of them put objects together differently, by {self.gap:.2f} on average over all pairs"
            )
        means = self.means[self.worst]
        low, high = int(means.argmin()), int(means.argmax())
        value = f"{self.worst_rhat:.2f}" if np.isfinite(self.worst_rhat) else "∞"
        return (
            f"the {QUANTITIES[self.worst]} has R-hat {value}; its mean is {means[low]:.4g} in {names[low]} "
            f"and {means[high]:.4g} in {names[high]}"
        )


def agreement_of(chains: Mapping[str, Sequence[NDArray[Any]]], gap: float | None = None) -> ChainAgreement:
    """Compare chains.

    Parameters
    ----------
    chains
        Draws of each quantity, one array a chain, all of one length.
    gap
        Largest average difference between similarity matrices, if it is known.
    """
    rows = {
        name: np.stack([np.asarray(values, dtype=np.float64) for values in chains[name]]) for name in chains
    }
    n_draws = min(values.shape[1] for values in rows.values())
    if n_draws < FEWEST_DRAWS:
        return ChainAgreement(n_draws)
    return ChainAgreement(
        n_draws=n_draws,
        rhat={name: rhat(values) for name, values in rows.items()},
        ess={name: bulk_ess(values) for name, values in rows.items()},
        means={name: values.mean(axis=1) for name, values in rows.items()},
        gap=gap,
    )


def largest_gap(similarities: Sequence[NDArray[Any]]) -> float:
    """Largest average absolute difference between two similarity matrices."""
    return max((float(np.abs(one - two).mean()) for one, two in combinations(similarities, 2)), default=0.0)
