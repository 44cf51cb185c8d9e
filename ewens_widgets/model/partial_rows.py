r"""Densities of rows with missing cells: in each cluster of a draw, those of their observed cells.

Given a draw, a new row y is a Student variate in each cluster, of which missing cells leave the margin: with
f degrees of freedom, location m and scale S, the observed cells have the rows and columns of m and S that
belong to them, and the same f. With the symbols of `analysis.predictive`, common shapes have location
:math:`\hat y_b`, scale :math:`w_b A_b / f` and f = c − d (III), c − 1 (II) or (c − 1) d (I); c is n + 1, or n
with an unknown centre. Own shapes have location :math:`s_b/\kappa`, about the centre, scale
:math:`(1 + 1/\kappa) A_b / f` and :math:`f = \nu + 2 + n_b` (I: νd + 2 + n_b d). Of model I the matrices are
their trace, and of model II each column has a Student density of its own.

A row of the data is a linear function of its coordinates, so that it is a Student variate too. Directions of
rounding, which coordinates leave out, have variance 1.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ewens_widgets.model.own_shapes import ClusterStatistics, volumes

if TYPE_CHECKING:
    from ewens_widgets.model.posterior import Posterior

FloatArray = NDArray[np.float64]


class Students(NamedTuple):
    """Student densities of clusters: locations (K × d), scales (K × d × d), degrees of freedom."""

    locations: FloatArray
    scales: FloatArray
    degrees: FloatArray


def own_students(
    posterior: "Posterior",
    clusters: ClusterStatistics,
    theta: float,
    nu: float,
    sigma: FloatArray,
) -> Students:
    """Densities of own shapes, in canonical coordinates; clusters are about the centre."""
    model, d = posterior.model, posterior.n_features
    kappa, volume = 1.0 / theta + clusters.sizes, volumes(clusters, theta, nu, posterior.scale(sigma), model)
    units = d if model == "I" else 1
    degrees = nu * units + 2.0 + units * clusters.sizes
    full = volume if model == "III" else volume.reshape(len(kappa), 1, -1) * np.eye(d)
    scales = full * ((1.0 + 1.0 / kappa) / degrees)[:, None, None]
    return Students(posterior.shift(sigma) + clusters.sums / kappa[:, None], scales, degrees)


def log_densities_of_observed(posterior: "Posterior", found: Students, rows: FloatArray) -> FloatArray:
    """Log densities of the observed cells of rows in each cluster (m × K).

    Parameters
    ----------
    posterior
        The posterior, whose map leads from the data to the coordinates.
    found
        Densities of the clusters.
    rows
        The numbers of the rows in the units of the data, NaN where one is missing. Densities are those of
        canonical coordinates: less the log Jacobian of the map.
    """
    d_all = rows.shape[1]
    back = np.eye(d_all) if posterior.map.matrix is None else np.linalg.inv(posterior.map.matrix)
    scale = np.broadcast_to(posterior.map.scale, d_all)
    n_left = d_all - found.locations.shape[1]
    locations = np.pad(found.locations, ((0, 0), (0, n_left)))
    scales = np.pad(found.scales, ((0, 0), (0, n_left), (0, n_left)))
    scales[:, d_all - n_left :, d_all - n_left :] = np.eye(n_left)
    scaled = (rows - posterior.map.centre) / scale
    total = np.empty((len(rows), len(found.degrees)))
    patterns, which = np.unique(~np.isnan(rows), axis=0, return_inverse=True)
    for number, seen in enumerate(patterns):
        chosen, turn = which.reshape(-1) == number, back[:, seen]
        gaps = scaled[chosen][:, None, seen] - locations @ turn
        inner = turn.T @ scales @ turn
        # A density of data / scale, and by the Jacobian one of coordinates.
        log_jacobian = -np.log(scale[seen]).sum() - posterior.map.log_jacobian
        if posterior.model == "II":
            variances = np.diagonal(inner, axis1=1, axis2=2)
            each = _log_student(gaps**2 / variances, np.log(variances), found.degrees[:, None], 1)
            total[chosen] = log_jacobian + each.sum(axis=2)
        else:
            solved = np.linalg.solve(inner, gaps[..., None])[..., 0]
            log_det = np.linalg.slogdet(inner)[1]
            forms = np.sum(gaps * solved, axis=2)
            total[chosen] = log_jacobian + _log_student(forms, log_det, found.degrees, int(seen.sum()))
    return total


def _log_student(forms: FloatArray, log_det: FloatArray, degrees: FloatArray, size: int) -> FloatArray:
    """Log density of a Student variate, given the quadratic form in the inverse of its scale."""
    power = 0.5 * (degrees + size)
    constant = gammaln(power) - gammaln(0.5 * degrees) - 0.5 * size * np.log(np.pi * degrees)
    return np.asarray(constant - 0.5 * log_det - power * np.log1p(forms / degrees))
