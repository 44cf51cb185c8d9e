r"""The variance ratio θ: its grid and its prior.

.. math:: p(\theta) \propto \frac{\theta^{\alpha-1}}{(1+\theta)^{2\alpha}}

on a discrete grid, by default :math:`2^{-3}, 2^{-2}, …, 2^{10}`. Every conditional of θ is then a short exact
sum.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from ewens_widgets.arguments import check_positive
from ewens_widgets.model.checks import FloatArray, check_theta_grid

__all__ = ["default_theta_grid", "log_theta_prior"]


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
