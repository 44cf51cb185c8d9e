r"""The Ewens prior on partitions, also known as the Chinese restaurant process (Ewens 1972).

With concentration :math:`\lambda > 0`, n objects and K clusters of sizes :math:`n_b`:

.. math:: p(B \mid \lambda) = \frac{\Gamma(\lambda)}{\Gamma(n+\lambda)} \, \lambda^K \prod_b \Gamma(n_b)

Seated one by one, an object joins a cluster of m members with probability :math:`m/(\lambda+i)` and opens a
new one with probability :math:`\lambda/(\lambda+i)`, i being the number already seated; the order does not
matter. The prior is the limit :math:`k \to \infty` of the partition induced by k components with symmetric
Dirichlet(:math:`\lambda/k`) weights.

The concentration λ of the Ewens prior: a number, or a Gamma prior that is averaged over.

Either way the prior of a partition depends on λ through the number of clusters alone:

.. math:: \log p(B) = c_K + \sum_b \log \Gamma(n_b), \qquad
    c_K = \log \int p(\lambda) \, \lambda^K \, \frac{\Gamma(\lambda)}{\Gamma(n+\lambda)} \, d\lambda

"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln, logsumexp

from ewens_widgets.arguments import check_count, check_positive
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors.partition_prior import log_rising_factorial
from ewens_widgets.partition import check_labels, cluster_sizes

__all__ = [
    "Concentration",
    "Gamma",
    "check_concentration",
    "cluster_count_pmf",
    "dirichlet_multinomial_log_pmf",
    "expected_clusters",
    "expected_growth",
    "log_count_weights",
    "log_pmf",
    "sample",
    "sample_partitions",
    "seating_probabilities",
]


def log_pmf(labels: ArrayLike, concentration: float) -> float:
    """Log probability of a partition."""
    rate = check_positive("concentration", concentration)
    sizes = cluster_sizes(check_labels(labels))
    constant = -log_rising_factorial(rate, int(sizes.sum()))
    return float(constant + sizes.size * np.log(rate) + gammaln(sizes).sum())


def seating_probabilities(sizes: ArrayLike, concentration: float) -> FloatArray:
    """Probabilities that the next object joins each of the clusters, and (last) that it opens a new one."""
    rate = check_positive("concentration", concentration)
    weights = np.append(np.asarray(sizes, dtype=np.float64), rate)
    if np.any(weights <= 0.0):
        raise ValueError("cluster sizes must be positive.")
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def sample(n: int, concentration: float, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw the canonical labels of a partition of n objects, seating one after the other."""
    rate = check_positive("concentration", concentration)
    labels = np.zeros(_check_count(n), dtype=np.intp)
    n_clusters = 1
    for seated, uniform in enumerate(rng.random(labels.size - 1), start=1):
        place = uniform * (seated + rate)
        if place < seated:
            # The cluster of an evenly chosen earlier object is a cluster chosen in proportion to its size.
            labels[seated] = labels[int(place)]
        else:
            labels[seated] = n_clusters
            n_clusters += 1
    return labels


def expected_clusters(n: int, concentration: float) -> float:
    r"""Mean number of clusters, :math:`\sum_{i<n} \lambda/(\lambda+i)`, about :math:`\lambda \log n`."""
    rate = check_positive("concentration", concentration)
    return float(np.sum(rate / (rate + np.arange(_check_count(n)))))


def cluster_count_pmf(n: int, concentration: float) -> FloatArray:
    """Probabilities of 0, 1, …, n clusters: a sum of independent coin tosses, one for each object seated."""
    rate = check_positive("concentration", concentration)
    n_objects = _check_count(n)
    pmf = np.zeros(n_objects + 1)
    pmf[0] = 1.0
    for seated in range(n_objects):
        # Not 1 − λ/(λ+i), which cancels for a large λ.
        joins, opens = seated / (rate + seated), rate / (rate + seated)
        pmf[1 : seated + 2] = pmf[1 : seated + 2] * joins + pmf[: seated + 1] * opens
        pmf[0] *= joins
    return pmf


def dirichlet_multinomial_log_pmf(labels: ArrayLike, concentration: float, n_components: int) -> float:
    r"""Log probability of a partition under k components with Dirichlet(:math:`\lambda/k`) weights.

    .. math:: p_k(B) = \frac{k!}{(k-K)!} \frac{\Gamma(\lambda)}{\Gamma(n+\lambda)}
        \prod_b \frac{\Gamma(n_b + \lambda/k)}{\Gamma(\lambda/k)}

    It is minus infinity where the partition has more than k clusters, and tends to Ewens' as k grows.
    """
    rate = check_positive("concentration", concentration)
    if int(n_components) != n_components or n_components < 1:
        raise ValueError(
            f"the number of components must be a whole number of at least 1; got {n_components!r}."
        )
    sizes = cluster_sizes(check_labels(labels))
    if sizes.size > n_components:
        return float("-inf")
    share = rate / n_components
    # k!/(k-K)! Γ(λ/k)^-K as a product of K ratios: for large k one factor overflows and the other vanishes.
    log_ways = np.sum(np.log(n_components - np.arange(sizes.size)) - gammaln(share))
    constant = -log_rising_factorial(rate, int(sizes.sum()))
    return float(constant + log_ways + gammaln(sizes + share).sum())


def _check_count(n: int) -> int:
    if int(n) != n or n < 1:
        raise ValueError(f"the number of objects must be a whole number of at least 1; got {n!r}.")
    return int(n)


_LARGEST_PARAMETER = 1e100


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


def log_count_weights(n_objects: int, concentration: Concentration, most: int | None = None) -> FloatArray:
    """Weights c_0, …, c_n of the number of clusters, or those up to `most` (c_0 is minus infinity)."""
    counts = np.arange((n_objects if most is None else most) + 1)
    if isinstance(concentration, Gamma):
        weights = _integrated_weights(n_objects, concentration, counts)
    else:
        weights = counts * np.log(concentration) - log_rising_factorial(concentration, n_objects)
    weights[0] = -np.inf
    return weights


def _integrated_weights(n_objects: int, prior: Gamma, counts: NDArray[np.intp]) -> FloatArray:
    r"""Integrate over log λ by the trapezoidal rule, which converges exponentially for smooth integrands.

    With :math:`\log\lambda = \ell + v + 1 - e^{-v}` the integrand falls doubly exponentially on both sides,
    also for a tiny shape, whose left tail :math:`\lambda^{shape}` is long. Its peaks for K = 1, …, n lie
    right of :math:`\ell` and are at least :math:`1/\sqrt{n + shape}` wide in log λ, which gives the step. The
    ends are where the integrand, being log-concave, has fallen by a factor :math:`e^{-45}` for every K.
    """
    size = n_objects + prior.shape
    harmonic = digamma(n_objects) - digamma(1.0)
    lowest_peak = np.log(prior.shape) - np.log(prior.rate + harmonic)
    left = np.log1p(45.0 / prior.shape + 10.0 / np.sqrt(prior.shape))
    right = np.log(size / prior.rate) - lowest_peak + np.log1p(45.0 / size) + 10.0 / np.sqrt(size)
    step = min(0.05, 0.3 / np.sqrt(size))
    nodes = np.arange(-left, right + step, step)
    log_values = lowest_peak + nodes - np.expm1(-nodes)
    values = np.exp(log_values)
    # Γ(λ) overflows as λ → 0, where Γ(λ)/Γ(n+λ) · λ = Γ(1+λ)/Γ(n+λ) does not.
    log_integrand = -log_rising_factorial(1.0 + values, n_objects - 1) - prior.rate * values
    log_integrand += (prior.shape - 1.0) * log_values + np.log(step) + np.log1p(np.exp(-nodes))
    constant = prior.shape * np.log(prior.rate) - gammaln(prior.shape)
    return np.array(
        [-np.inf, *(constant + logsumexp(log_integrand + count * log_values) for count in counts[1:])]
    )


def expected_growth(n: int, concentration: float) -> FloatArray:
    """Expected number of clusters once 1, 2, …, n objects are seated, under the Ewens prior."""
    n_objects = check_count("the number of objects", n, 1)
    rate = check_positive("concentration", concentration)
    return np.asarray(np.cumsum(rate / (rate + np.arange(n_objects))), dtype=np.float64)


def sample_partitions(n: int, concentration: float, draws: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw the canonical labels of many partitions from the Ewens prior at once, a partition a row.

    All are seated side by side, object by object, by the rule of `ewens.sample`.
    """
    n_objects = check_count("the number of objects", n, 1)
    rate = check_positive("concentration", concentration)
    rows = np.arange(check_count("the number of draws", draws, 1))
    labels = np.zeros((rows.size, n_objects), dtype=np.intp)
    n_clusters = np.ones(rows.size, dtype=np.intp)
    for seated in range(1, n_objects):
        place = rng.random(rows.size) * (seated + rate)
        opens = place >= seated
        # The cluster of an evenly chosen earlier object is a cluster chosen in proportion to its size.
        earlier = labels[rows, np.where(opens, 0, place).astype(np.intp)]
        labels[:, seated] = np.where(opens, n_clusters, earlier)
        n_clusters += opens
    return labels
