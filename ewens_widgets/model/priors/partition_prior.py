"""What all priors on partitions share: long products, and the distance of two laws."""

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.model.checks import FloatArray

__all__ = ["log_rising_factorial", "total_variation"]

_LONG_PRODUCT = 1000
_STIRLING_START = 16
# Coefficients of 1/x⁹, …, 1/x in Stirling's series of log Γ(x).
_STIRLING = (1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)


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
