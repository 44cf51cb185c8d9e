r"""The concentration λ of the Ewens prior: a number, or a Gamma prior that is averaged over.

Either way the prior of a partition depends on λ through the number of clusters alone:

.. math:: \log p(B) = c_K + \sum_b \log \Gamma(n_b), \qquad
    c_K = \log \int p(\lambda) \, \lambda^K \, \frac{\Gamma(\lambda)}{\Gamma(n+\lambda)} \, d\lambda
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, logsumexp

from ewens_widgets.arguments import check_positive
from ewens_widgets.model.checks import FloatArray

__all__ = ["Concentration", "Gamma", "check_concentration", "log_count_weights", "log_rising_factorial"]

_LARGEST_PARAMETER = 1e100
_LONG_PRODUCT = 1000
_STIRLING_START = 16
# Coefficients of 1/x⁹, …, 1/x in Stirling's series of log Γ(x).
_STIRLING = (1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)


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


def log_rising_factorial(start: FloatArray | float, count: int) -> FloatArray:
    r"""Log of :math:`x (x+1) \cdots (x+k-1) = \Gamma(x+k)/\Gamma(x)` for positive x.

    A difference of two log Gamma functions would cancel for large x: at 10¹² nothing but two digits would be
    left. Long products are found by Stirling's series, with its large terms subtracted on paper.
    """
    if np.ndim(start) == 0:
        return np.asarray(np.log(start + np.arange(count)).sum(), dtype=np.float64)
    total = np.zeros_like(start)
    one_by_one = count if count <= _LONG_PRODUCT else _STIRLING_START
    for step in range(one_by_one):
        total += np.log(start + step)
    return total if one_by_one == count else total + _stirling(start + one_by_one, count - one_by_one)


def _stirling(start: FloatArray | float, count: int) -> FloatArray:
    """Log of Γ(x + k)/Γ(x) for x of at least 16, where the series is good to the last digit."""
    end = start + count
    series = [np.polyval(_STIRLING, (1.0 / x) ** 2) / x for x in (start, end)]
    smooth = (start - 0.5) * np.log1p(count / start) + count * np.log(end) - count
    return np.asarray(smooth + (series[1] - series[0]), dtype=np.float64)


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
