r"""The Pitman–Yor process: clusters of all sizes, and ever more of them.

With concentration :math:`\lambda > -\sigma` and discount :math:`0 \le \sigma < 1` (Pitman 1995),

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

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors.partition_prior import (
    Counts,
    PartitionPrior,
    SeatingRule,
    log_rising_factorial,
    log_rising_products,
)


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
            object.__setattr__(self, name, _check_number(name, getattr(self, name)))
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


def _check_number(name: str, value: object) -> float:
    """Return a number of any sign as a float."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {value!r}.")
    return float(value)
