r"""The Ewens prior on partitions, also known as the Chinese restaurant process (Ewens 1972).

With concentration :math:`\lambda > 0`, n objects and K clusters of sizes :math:`n_b`:

.. math:: p(B \mid \lambda) = \frac{\Gamma(\lambda)}{\Gamma(n+\lambda)} \, \lambda^K \prod_b \Gamma(n_b)

Seated one by one, an object joins a cluster of m members with probability :math:`m/(\lambda+i)` and opens a
new one with probability :math:`\lambda/(\lambda+i)`, i being the number already seated; the order does not
matter. The prior is the limit :math:`k \to \infty` of the partition induced by k components with symmetric
Dirichlet(:math:`\lambda/k`) weights.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from ewens_widgets.arguments import check_positive
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.concentration import log_rising_factorial
from ewens_widgets.partition import check_labels, cluster_sizes

__all__ = [
    "cluster_count_pmf",
    "dirichlet_multinomial_log_pmf",
    "expected_clusters",
    "log_pmf",
    "sample",
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
