r"""How many clusters, and of what sizes, the prior expects: infinitely many components, and finitely many.

Seated one by one under k components with symmetric Dirichlet(:math:`\lambda/k`) weights, with i objects
seated in j clusters, the next object

* joins a cluster of m members with probability :math:`(m + \lambda/k) / (\lambda + i)`, and
* opens a new one with probability :math:`\lambda (1 - j/k) / (\lambda + i)`.

The number of clusters K is therefore a Markov chain of its own, whose law is found by a recursion with
positive terms only, so nothing cancels however many objects there are. As k grows the probabilities become
those of the Ewens prior (see `ewens`), for which

.. math:: p(K = j) = \frac{\lambda^j}{\lambda (\lambda+1) \cdots (\lambda+n-1)}
        \left[ {n \atop j} \right], \qquad
    E[K] = \sum_{i<n} \frac{\lambda}{\lambda+i} \approx \lambda \log n,

the bracket being an unsigned Stirling number of the first kind. The expected number of clusters with m
members is, writing :math:`x^{(r)} = x (x+1) \cdots (x+r-1)`, a = λ/k and c = λ − a (a = 0 for Ewens),

.. math:: E[C_m] = \lambda \binom{n}{m} \frac{(a+1)^{(m-1)} \, c^{(n-m)}}{\lambda^{(n)}},

for Ewens' prior close to λ/m while m is much smaller than n.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.arguments import check_count, check_positive
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.concentration import log_rising_factorial

__all__ = [
    "expected_growth",
    "expected_sizes",
    "finite_count_pmf",
    "sample_partitions",
    "total_variation",
]


def finite_count_pmf(n: int, concentration: float, n_components: int) -> FloatArray:
    """Probabilities of 0, 1, …, n clusters under finitely many components with Dirichlet(λ/k) weights.

    Parameters
    ----------
    n
        Number of objects.
    concentration
        Concentration λ, the sum of the k parameters of the Dirichlet distribution.
    n_components
        Number of components k; no more than k clusters are possible.

    Examples
    --------
    >>> finite_count_pmf(3, 1.0, 2).round(4).tolist()
    [0.0, 0.625, 0.375, 0.0]
    """
    n_objects = check_count("the number of objects", n, 1)
    rate = check_positive("concentration", concentration)
    components = check_count("the number of components", n_components, 1)
    most = min(n_objects, components)
    counts = np.arange(most + 1)
    # Weights of joining, beyond the members already there, and of opening one more cluster.
    spread = rate * (counts / components)
    opening = rate * ((components - counts) / components)
    pmf = np.zeros(most + 1)
    pmf[0] = 1.0
    for seated in range(n_objects):
        joined = pmf * (seated + spread)
        joined[1:] += pmf[:-1] * opening[:-1]
        pmf = joined / (rate + seated)
    return np.concatenate([pmf, np.zeros(n_objects - most)])


def expected_sizes(n: int, concentration: float, n_components: int | None = None) -> FloatArray:
    """Expected number of clusters with 0, 1, …, n members; multiplied by these, they sum to n.

    Parameters
    ----------
    n
        Number of objects.
    concentration
        Concentration λ.
    n_components
        Number of components k; None for infinitely many, the Ewens prior.

    Examples
    --------
    >>> expected_sizes(4, 1.0).round(4).tolist()
    [0.0, 1.0, 0.5, 0.3333, 0.25]
    """
    n_objects = check_count("the number of objects", n, 1)
    rate = check_positive("concentration", concentration)
    expected = np.zeros(n_objects + 1)
    if n_components is None:
        share, rest = 0.0, rate
    else:
        components = check_count("the number of components", n_components, 1)
        share, rest = rate / components, rate * ((components - 1) / components)
    if rest == 0.0:
        expected[n_objects] = 1.0
        return expected
    first = (
        np.log(n_objects)
        + np.log(rate)
        + log_rising_factorial(rest, n_objects - 1)
        - log_rising_factorial(rate, n_objects)
    )
    sizes = np.arange(1.0, n_objects)
    # From one size to the next; as logarithms, because the product runs over up to n factors.
    steps = (n_objects - sizes) / (sizes + 1.0) * (sizes + share) / (n_objects - sizes - 1.0 + rest)
    expected[1:] = np.exp(first + np.concatenate([[0.0], np.cumsum(np.log(steps))]))
    return expected


def expected_growth(n: int, concentration: float) -> FloatArray:
    """Expected number of clusters once 1, 2, …, n objects are seated, under the Ewens prior."""
    n_objects = check_count("the number of objects", n, 1)
    rate = check_positive("concentration", concentration)
    return np.asarray(np.cumsum(rate / (rate + np.arange(n_objects))), dtype=np.float64)


def total_variation(one: ArrayLike, other: ArrayLike) -> float:
    """Total variation distance of two laws on the same values: half the sum of absolute differences.

    Examples
    --------
    >>> total_variation([0.5, 0.5], [0.75, 0.25])
    0.25
    """
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(
            f"both laws must list the probabilities of the same values; got shapes {first.shape} and "
            f"{second.shape}."
        )
    return float(0.5 * np.abs(first - second).sum())


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
