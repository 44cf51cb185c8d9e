r"""Priors with two numbers beside Ewens': finitely many components, or many small clusters.

**Finitely many components** (`DirichletMultinomial`). The weights of the k components are symmetric
Dirichlet(:math:`\lambda/k`), each object belongs to a component drawn by them, and objects of the same
component form a cluster. With n objects in :math:`K \le k` clusters,

.. math:: p(B) = \frac{k!}{(k-K)!} \, \frac{\Gamma(\lambda)}{\Gamma(n+\lambda)}
    \prod_b \frac{\Gamma(n_b + \lambda/k)}{\Gamma(\lambda/k)},

and more than k clusters are impossible. Seated one by one, with i objects seated in j clusters, the next
object

* joins a cluster of m members with probability :math:`(m + \lambda/k) / (\lambda + i)`, and
* opens a new one with probability :math:`\lambda (1 - j/k) / (\lambda + i)`.

As k grows the probabilities become those of the Ewens prior (see `ewens`). The expected number of clusters
with m members is, writing :math:`x^{(r)} = x (x+1) \cdots (x+r-1)`, a = λ/k and c = λ − a (a = 0 for Ewens),

.. math:: E[C_m] = \lambda \binom{n}{m} \frac{(a+1)^{(m-1)} \, c^{(n-m)}}{\lambda^{(n)}},

for Ewens' prior close to λ/m while m is much smaller than n.

**Clusters of all sizes** (`PitmanYor`). With concentration :math:`\lambda > -\sigma` and discount
:math:`0 \le \sigma < 1` (Pitman 1995),

.. math:: p(B) = \frac{\prod_{j=1}^{K-1} (\lambda + j\sigma)}{(\lambda+1) (\lambda+2) \cdots (\lambda+n-1)}
    \prod_b \frac{\Gamma(n_b - \sigma)}{\Gamma(1-\sigma)}.

Seated one by one, with i objects seated in j clusters, the next object joins a cluster of m members with
probability :math:`(m - \sigma)/(\lambda+i)` and opens a new one with probability
:math:`(\lambda + \sigma j)/(\lambda+i)`. The discount σ = 0 is Ewens' prior; with a positive one the number
of clusters grows like :math:`n^\sigma`, and most of them stay small:

.. math:: E[K] = \sum_{i<n} \frac{(\lambda+\sigma) (\lambda+\sigma+1) \cdots (\lambda+\sigma+i-1)}
    {(\lambda+1) (\lambda+2) \cdots (\lambda+i)}.
"""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from ewens_widgets.arguments import check_count, check_positive
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors.partition_prior import (
    Counts,
    PartitionPrior,
    SeatingRule,
    log_rising_factorial,
    log_rising_products,
)

_MOST_COMPONENTS = 2**53  # Floats tell whole numbers apart up to here.


@dataclass(frozen=True)
class DirichletMultinomial(PartitionPrior):
    """A fixed number k of components: V_n(K) = k!/(k−K)! Γ(λ)/Γ(n+λ), W(m) = Γ(m+λ/k)/Γ(λ/k).

    Parameters
    ----------
    k
        Number of components; no more than k clusters are possible.
    concentration
        Concentration λ, the sum of the k parameters of the Dirichlet distribution.

    Examples
    --------
    >>> DirichletMultinomial(2, 1.0).count_pmf(3).round(4).tolist()
    [0.0, 0.625, 0.375, 0.0]
    """

    k: int
    concentration: float

    def __post_init__(self) -> None:
        """Refuse parameters that make no prior."""
        components = check_count("the number of components", self.k, 1)
        if components > _MOST_COMPONENTS:
            raise ValueError(
                f"the number of components must not exceed 2**53; got {components}. "
                "With so many it is the Ewens prior: use Ewens(concentration)."
            )
        object.__setattr__(self, "k", components)
        object.__setattr__(self, "concentration", check_positive("concentration", self.concentration))

    @property
    def share(self) -> float:
        """Parameter λ/k of each component."""
        return self.concentration / self.k

    @property
    def _discount(self) -> float:
        return -self.share

    @property
    def most_clusters(self) -> float:
        """As many as there are components."""
        return self.k

    @property
    def _rule(self) -> SeatingRule:
        return SeatingRule(self.concentration, self._discount, self.k)

    def _log_count_weights(self, n: int, counts: Counts) -> FloatArray:
        steps = self._log_count_steps(n, np.arange(counts.max(initial=0)))
        log_ways = np.concatenate([[0.0], np.cumsum(steps)])
        return np.asarray(log_ways[counts] - log_rising_factorial(self.concentration, n), dtype=np.float64)

    def _log_count_steps(self, n: int, counts: Counts) -> FloatArray:
        del n  # it does not matter here
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(self.k - counts, 0)), dtype=np.float64)

    def _log_size_weights(self, sizes: Counts) -> FloatArray:
        return log_rising_products(self.share, sizes)


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
    def _discount(self) -> float:
        return self.discount

    @property
    def _rule(self) -> SeatingRule:
        return SeatingRule(self.concentration, self.discount)

    def _log_count_weights(self, n: int, counts: Counts) -> FloatArray:
        steps = self._log_count_steps(n, np.arange(1, counts.max(initial=1)))
        log_products = np.concatenate([[0.0], np.cumsum(steps)])
        constant = log_rising_factorial(self.concentration + 1.0, n - 1)
        return np.asarray(log_products[counts - 1] - constant, dtype=np.float64)

    def _log_count_steps(self, n: int, counts: Counts) -> FloatArray:
        del n  # it does not matter here
        return np.asarray(np.log(self.concentration + self.discount * counts), dtype=np.float64)

    def _log_size_weights(self, sizes: Counts) -> FloatArray:
        return log_rising_products(1.0 - self.discount, sizes - 1)
