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

from ewens_widgets.arguments import check_count, check_positive
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors.partition_prior import log_rising_factorial

__all__ = ["expected_sizes", "finite_count_pmf"]


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
