r"""The joint posterior of partition and variance ratio: p(θ, B | Y) ∝ p(θ) p(B | λ) L(B, θ).

The prior of the partition B is in `model.priors`, its likelihood L in `model.likelihood`. The prior of the
variance ratio θ is

.. math:: p(\theta) \propto \frac{\theta^{\alpha-1}}{(1+\theta)^{2\alpha}}

on a discrete grid, by default :math:`2^{-3}, 2^{-2}, …, 2^{10}`. Every conditional of θ is then a short exact
sum.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from ewens_widgets.arguments import check_positive
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import (
    FloatArray,
    ModelName,
    check_data,
    check_model,
    check_theta_grid,
    column_names,
)
from ewens_widgets.model.coordinates import canonical_coordinates, on_exact_grid
from ewens_widgets.model.likelihood import cluster_statistics, log_likelihoods_from_statistics
from ewens_widgets.model.priors import ewens
from ewens_widgets.model.priors.ewens import Concentration, Ewens, Gamma, check_concentration
from ewens_widgets.partition import check_labels

__all__ = ["Posterior", "default_theta_grid", "log_theta_prior"]


_FEW_OBJECTS = 1000  # Up to here all weights of the number of clusters are computed at once.


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior of one data set under one model; build it with `from_data`.

    Attributes
    ----------
    coordinates
        Canonical coordinates of the data (n × d), rounded so that cluster sums are exact; read-only.
    model
        Covariance model.
    concentration
        Concentration λ of the Ewens prior, or its Gamma prior.
    alpha
        Shape of the prior of θ.
    theta_grid
        Values that θ can take (G).
    """

    coordinates: FloatArray = field(repr=False)
    model: ModelName
    concentration: Concentration
    alpha: float
    theta_grid: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        """Make the arrays read-only: a posterior is shared by samplers, traces and views."""
        self.coordinates.setflags(write=False)
        self.theta_grid.setflags(write=False)
        _ = self.log_theta_prior  # refuses a grid and an alpha that do not go together

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @classmethod
    def from_data(
        cls,
        X: ArrayLike | Dataset,
        model: str = "II",
        concentration: Concentration = 1.0,
        alpha: float = 1.0,
        theta_grid: ArrayLike | None = None,
    ) -> "Posterior":
        """Check everything and bring the data to canonical coordinates."""
        name = check_model(model)
        grid = default_theta_grid() if theta_grid is None else check_theta_grid(theta_grid)
        return cls(
            coordinates=on_exact_grid(canonical_coordinates(check_data(X), name, column_names(X))),
            model=name,
            concentration=check_concentration(concentration),
            alpha=check_positive("alpha", alpha),
            theta_grid=grid,
        )

    @property
    def n_objects(self) -> int:
        """Number of objects."""
        return int(self.coordinates.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.coordinates.shape[1])

    @cached_property
    def log_theta_prior(self) -> FloatArray:
        """Log prior probabilities of the grid's values."""
        values = log_theta_prior(self.theta_grid, self.alpha)
        values.setflags(write=False)
        return values

    @cached_property
    def log_count_weights(self) -> FloatArray:
        """Weights c_K with log p(B) = c_K + Σ_b log Γ(n_b); a Gamma prior of λ is integrated out."""
        weights = Ewens(self.concentration).log_count_weights(self.n_objects)
        weights.setflags(write=False)
        return weights

    def count_weights(self, most: int) -> FloatArray:
        """Weights c_0, …, c_most: of many objects with a Gamma prior, all of them would take very long."""
        if self.n_objects <= _FEW_OBJECTS or not isinstance(self.concentration, Gamma):
            return self.log_count_weights[: most + 1]
        known: FloatArray = self.__dict__.get("_first_count_weights", np.empty(0))
        if known.size <= most:
            known = Ewens(self.concentration).log_count_weights(self.n_objects, min(2 * most, self.n_objects))
            known.setflags(write=False)
            self.__dict__["_first_count_weights"] = known
        return known[: most + 1]

    def log_prior(self, labels: ArrayLike) -> float:
        """Log prior probability of a partition."""
        sizes = np.bincount(self._checked(labels))
        return float(self.count_weights(sizes.size)[-1] + gammaln(sizes).sum())

    def log_likelihoods(self, labels: ArrayLike) -> FloatArray:
        """Profile log-likelihoods of a partition over the grid of θ."""
        sizes, sums = cluster_statistics(self.coordinates, self._checked(labels))
        return log_likelihoods_from_statistics(sizes, sums, self.n_objects, self.theta_grid, self.model)

    def log_density(self, labels: ArrayLike, theta_index: int, concentration: float | None = None) -> float:
        """Unnormalised log posterior of (B, θ), or of (B, θ, λ) where λ has a prior and a value is given."""
        log_joint = float(self.log_likelihoods(labels)[theta_index] + self.log_theta_prior[theta_index])
        if concentration is None or not isinstance(self.concentration, Gamma):
            return log_joint + self.log_prior(labels)
        return (
            log_joint + ewens.log_pmf(labels, concentration) + self.concentration.log_density(concentration)
        )

    def log_marginal(self, labels: ArrayLike) -> float:
        """Unnormalised log posterior of a partition, θ summed out."""
        return float(self.log_prior(labels) + logsumexp(self.log_theta_prior + self.log_likelihoods(labels)))

    def theta_conditional(self, labels: ArrayLike) -> FloatArray:
        """Exact conditional probabilities of θ given a partition."""
        log_weights = self.log_theta_prior + self.log_likelihoods(labels)
        return np.asarray(np.exp(log_weights - logsumexp(log_weights)), dtype=np.float64)

    def _checked(self, labels: ArrayLike) -> NDArray[np.intp]:
        return check_labels(labels, self.n_objects)


def default_theta_grid() -> FloatArray:
    """Powers of two from 1/8 to 1024."""
    return np.asarray(np.exp2(np.arange(-3.0, 11.0)), dtype=np.float64)


def log_theta_prior(theta_grid: ArrayLike, alpha: float = 1.0) -> FloatArray:
    """Log probabilities of the grid's values, normalised over the grid."""
    grid = check_theta_grid(theta_grid)
    shape = check_positive("alpha", alpha)
    with np.errstate(over="ignore", invalid="ignore"):
        log_density = (shape - 1.0) * np.log(grid) - 2.0 * shape * np.log1p(grid)
    if not np.all(np.isfinite(log_density)):
        raise ValueError(f"alpha is too large for this grid of theta; got {alpha!r}.")
    return np.asarray(log_density - logsumexp(log_density), dtype=np.float64)
