r"""The Ewens prior on partitions, also known as the Chinese restaurant process, and that of Pitman and Yor.

With concentration :math:`\lambda > 0`, n objects and K clusters of sizes :math:`n_b`:

.. math:: p(B \mid \lambda) = \frac{\Gamma(\lambda)}{\Gamma(n+\lambda)} \, \lambda^K \prod_b \Gamma(n_b)

Seated one by one, an object joins a cluster of m members with probability :math:`m/(\lambda+i)` and opens a
new one with probability :math:`\lambda/(\lambda+i)`, i being the number already seated; the order does not
matter. Hence

.. math:: p(K = j) = \frac{\lambda^j}{\lambda (\lambda+1) \cdots (\lambda+n-1)}
        \left[ {n \atop j} \right], \qquad
    E[K] = \sum_{i<n} \frac{\lambda}{\lambda+i} \approx \lambda \log n,

the bracket being an unsigned Stirling number of the first kind. The prior is the limit :math:`k \to \infty`
of the partition induced by k components (see `finite_mixture`).

The concentration is a number, or has a Gamma prior that is averaged over. Either way the prior of a partition
depends on λ through the number of clusters alone:

.. math:: \log p(B) = \log V_n(K) + \sum_b \log \Gamma(n_b), \qquad
    V_n(K) = \int p(\lambda) \, \lambda^K \, \frac{\Gamma(\lambda)}{\Gamma(n+\lambda)} \, d\lambda

**Many small clusters** (`PitmanYor`). With concentration :math:`\lambda > -\sigma` and discount
:math:`0 \le \sigma < 1` (Pitman 1995),

.. math:: p(B) = \frac{\prod_{j=1}^{K-1} (\lambda + j\sigma)}{(\lambda+1) (\lambda+2) \cdots (\lambda+n-1)}
    \prod_b \frac{\Gamma(n_b - \sigma)}{\Gamma(1-\sigma)}.

Seated one by one, with i objects seated in j clusters, the next object joins a cluster of m members with
probability :math:`(m - \sigma)/(\lambda+i)` and opens a new one with probability
:math:`(\lambda + \sigma j)/(\lambda+i)`. The discount σ = 0 is Ewens' prior; with a positive one the number
of clusters grows like :math:`n^\sigma`, and most of them stay small:

.. math:: E[K] = \sum_{i<n} \frac{(\lambda+\sigma) (\lambda+\sigma+1) \cdots (\lambda+\sigma+i-1)}
    {(\lambda+1) (\lambda+2) \cdots (\lambda+i)}.

The functions of this module, public as `ew.ewens`, are the methods of `Ewens` with the concentration as an
argument.
"""

from dataclasses import dataclass
from numbers import Real
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln, logsumexp

from ewens_widgets.arguments import check_positive
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors.partition_prior import (
    Counts,
    PartitionPrior,
    SeatingRule,
    log_rising_factorial,
)

__all__ = [
    "Concentration",
    "Ewens",
    "Gamma",
    "check_concentration",
    "cluster_count_pmf",
    "expected_clusters",
    "log_pmf",
    "sample",
    "seating_probabilities",
]

_LARGEST_PARAMETER = 1e100
_CERTAIN = 1e10  # With a larger shape λ is its mean: integrals over so narrow a peak would lose their digits.
_SMALLEST_CONCENTRATION = 1e-300  # A draw of a Gamma distribution with a tiny shape may be zero.


@dataclass(frozen=True)
class Gamma:
    """Gamma prior of the concentration, with mean ``shape / rate``."""

    shape: float
    rate: float

    def __post_init__(self) -> None:
        """Refuse parameters that are not positive, or so extreme that draws of λ could overflow."""
        for name in ("shape", "rate"):
            value = check_positive(f"the {name} of the Gamma prior", getattr(self, name))
            if not 1.0 / _LARGEST_PARAMETER <= value <= _LARGEST_PARAMETER:
                raise ValueError(
                    f"the {name} of the Gamma prior must lie between {1.0 / _LARGEST_PARAMETER:g} and "
                    f"{_LARGEST_PARAMETER:g}; got {value!r}."
                )
            object.__setattr__(self, name, value)

    @property
    def mean(self) -> float:
        """Prior mean of the concentration."""
        return self.shape / self.rate

    def log_density(self, value: float) -> float:
        """Log density at a positive value."""
        constant = self.shape * np.log(self.rate) - gammaln(self.shape)
        return float(constant + (self.shape - 1.0) * np.log(value) - self.rate * value)


Concentration = float | Gamma


def check_concentration(concentration: Concentration) -> Concentration:
    """Return a positive number or a Gamma prior."""
    if isinstance(concentration, Gamma):
        return concentration
    return check_positive("concentration", concentration)


@dataclass(frozen=True)
class Ewens(PartitionPrior):
    """The Ewens prior: V_n(K) = λ^K Γ(λ)/Γ(n+λ), W(m) = Γ(m).

    Parameters
    ----------
    concentration
        Concentration λ, or its `Gamma` prior. The larger, the more clusters: about λ log n of them.

    Examples
    --------
    >>> Ewens(1.0).seating_probabilities([3, 2, 1]).round(4).tolist()
    [0.4286, 0.2857, 0.1429, 0.1429]
    """

    concentration: Concentration

    def __post_init__(self) -> None:
        """Refuse a concentration that is not positive."""
        object.__setattr__(self, "concentration", check_concentration(self.concentration))

    @property
    def _rule(self) -> SeatingRule | None:
        return None if isinstance(self.concentration, Gamma) else SeatingRule(self.concentration)

    def _draw_rule(self, rng: np.random.Generator, draws: int) -> SeatingRule:
        prior = self.concentration
        if not isinstance(prior, Gamma):
            return super()._draw_rule(rng, draws)
        drawn = np.asarray(rng.gamma(prior.shape, 1.0 / prior.rate, size=draws))
        return SeatingRule(np.maximum(drawn, _SMALLEST_CONCENTRATION))

    def _log_count_weights(self, n: int, counts: Counts) -> FloatArray:
        prior = self.concentration
        if not isinstance(prior, Gamma):
            return super()._log_count_weights(n, counts)
        if prior.shape > _CERTAIN:
            return Ewens(prior.mean)._log_count_weights(n, counts)  # noqa: SLF001 - of its own kind
        return _integrated_weights(n, prior, counts)

    def _averaged_clusters(self, n: int) -> float:
        """Average the mean number for a given λ, which is 1 + λ (ψ(n+λ) − ψ(1+λ))."""
        prior = cast("Gamma", self.concentration)
        if prior.shape > _CERTAIN:
            return Ewens(prior.mean).expected_clusters(n)
        nodes, log_values, step = _nodes(n, prior)
        values = np.exp(log_values)
        log_weights = prior.shape * (np.log(prior.rate) + log_values) - gammaln(prior.shape)
        log_weights += np.log(step) + np.log1p(np.exp(-nodes)) - prior.rate * values
        means = 1.0 + values * _digamma_difference(1.0 + values, n - 1)
        return float(np.exp(log_weights) @ means)


def _nodes(n: int, prior: Gamma) -> tuple[FloatArray, FloatArray, float]:
    r"""Nodes v for integrals over λ by the trapezoidal rule, log λ at each, and their distance.

    The rule converges exponentially for smooth integrands. With
    :math:`\log\lambda = \ell + v + 1 - e^{-v}` the integrand falls doubly exponentially on both sides, also
    for a tiny shape, whose left tail :math:`\lambda^{shape}` is long. Its peaks for K = 1, …, n are where
    :math:`rate \, \lambda + \sum_{i<n} \lambda/(\lambda+i) = shape + K`. They lie right of :math:`\ell` and
    are at least :math:`1/\sqrt{n + shape}` wide in log λ, which gives the step. The ends are where the
    integrand, being log-concave, has fallen by a factor :math:`e^{-45}` for every K.
    """
    size = n + prior.shape
    harmonic = digamma(n) - digamma(1.0)
    # The sum is at most 1 + λ times the harmonic number, and at most n.
    lowest_peak = np.log(max(prior.shape / (prior.rate + harmonic), (prior.shape + 1.0 - n) / prior.rate))
    left = np.log1p(45.0 / prior.shape + 10.0 / np.sqrt(prior.shape))
    right = np.log(size / prior.rate) - lowest_peak + np.log1p(45.0 / size) + 10.0 / np.sqrt(size)
    step = min(0.05, 0.3 / np.sqrt(size))
    nodes = np.arange(-left, right + step, step)
    return nodes, lowest_peak + nodes - np.expm1(-nodes), float(step)


def _integrated_weights(n: int, prior: Gamma, counts: Counts) -> FloatArray:
    """Log V_n(K), averaged over the concentration."""
    nodes, log_values, step = _nodes(n, prior)
    values = np.exp(log_values)
    # Γ(λ) overflows as λ → 0, where Γ(λ)/Γ(n+λ) · λ = Γ(1+λ)/Γ(n+λ) does not.
    log_integrand = -log_rising_factorial(1.0 + values, n - 1) - prior.rate * values
    log_integrand += (prior.shape - 1.0) * log_values + np.log(step) + np.log1p(np.exp(-nodes))
    constant = prior.shape * np.log(prior.rate) - gammaln(prior.shape)
    return np.array([constant + logsumexp(log_integrand + count * log_values) for count in counts])


def _digamma_difference(x: FloatArray, count: int) -> FloatArray:
    """ψ(x + k) − ψ(x), by the first terms of the series where the difference would cancel."""
    end, large = x + count, x > 1e4
    safe = np.where(large, x, 1e4)
    series = np.log1p(count / safe) + 0.5 * (1.0 / safe - 1.0 / (safe + count))
    series += (1.0 / safe**2 - 1.0 / (safe + count) ** 2) / 12.0
    return np.where(large, series, digamma(end) - digamma(x))


@dataclass(frozen=True)
class PitmanYor(PartitionPrior):
    """Many small clusters: V_n(K) = Π_{0<j<K} (λ+jσ) / (λ+1)⋯(λ+n−1), W(m) = Γ(m−σ)/Γ(1−σ).

    Parameters
    ----------
    concentration
        Concentration λ, larger than −σ.
    discount
        Discount σ, from 0 (Ewens' prior) to below 1.

    Examples
    --------
    >>> PitmanYor(1.0, 0.5).seating_probabilities([3, 1]).tolist()
    [0.5, 0.1, 0.4]
    """

    concentration: float
    discount: float

    def __post_init__(self) -> None:
        """Refuse parameters that make no prior."""
        for name in ("concentration", "discount"):
            value = getattr(self, name)  # of any sign
            if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
                raise TypeError(f"{name} must be a number; got {value!r}.")
            object.__setattr__(self, name, float(value))
        if not 0.0 <= self.discount < 1.0:
            raise ValueError(
                f"discount must be at least 0 and less than 1; got {self.discount!r}. "
                "For finitely many components use DirichletMultinomial."
            )
        if not (self.concentration > -self.discount and np.isfinite(self.concentration)):
            raise ValueError(
                f"concentration must be finite and larger than minus the discount, {-self.discount!r}; "
                f"got {self.concentration!r}."
            )

    @property
    def _rule(self) -> SeatingRule:
        return SeatingRule(self.concentration, self.discount)


def log_pmf(labels: ArrayLike, concentration: float) -> float:
    """Log probability of a partition."""
    return Ewens(concentration).log_pmf(labels)


def seating_probabilities(sizes: ArrayLike, concentration: float) -> FloatArray:
    """Probabilities that the next object joins each of the clusters, and (last) that it opens a new one."""
    return Ewens(concentration).seating_probabilities(sizes)


def sample(n: int, concentration: float, rng: np.random.Generator) -> Counts:
    """Draw the canonical labels of a partition of n objects, seating one after the other."""
    return Ewens(concentration).sample(n, rng)


def expected_clusters(n: int, concentration: float) -> float:
    r"""Mean number of clusters, :math:`\sum_{i<n} \lambda/(\lambda+i)`, about :math:`\lambda \log n`."""
    return Ewens(concentration).expected_clusters(n)


def cluster_count_pmf(n: int, concentration: float) -> FloatArray:
    """Probabilities of 0, 1, …, n clusters."""
    return Ewens(concentration).count_pmf(n)
