r"""Clusters with shapes of their own: a covariance for each, pooled towards a common one. Beyond the paper.

With canonical coordinates y, variance ratio θ, *pooling* ν and common scale Σ,

.. math::

    y_i \mid b \sim N(\mu_b, \Sigma_b), \qquad \mu_b \mid \Sigma_b \sim N(0, \theta \Sigma_b), \qquad
    \Sigma_b \sim \text{inverse Wishart}(\nu + d + 1, \; \nu \Sigma), \qquad E \, \Sigma_b = \Sigma .

The larger ν, the more alike the shapes; ν → ∞ is the paper's family with Σ integrated out. The means and
covariances of the clusters are integrated out. With a cluster's size n, sum s and squares
:math:`S = \sum y y^T`, :math:`\kappa = 1/\theta + n`, :math:`A = \nu\Sigma + S - s s^T/\kappa` and
:math:`a = \nu + d + 1`, a cluster of model III contributes

.. math::

    \log m_b = -\tfrac{nd}{2} \log\pi + \log\frac{\Gamma_d((a+n)/2)}{\Gamma_d(a/2)}
        + \tfrac a2 \log|\nu\Sigma| - \tfrac{a+n}{2} \log|A| - \tfrac d2 \log(1 + \theta n) .

Model II is the product over columns of this with d = 1. Model I has one variance for each cluster: with
:math:`a = \nu d + 2`, the number :math:`A = \nu d \sigma^2 + \operatorname{tr} S - |s|^2/\kappa` and nd in
place of n, the Gamma functions are ordinary ones and the determinants numbers.

A row joins a cluster with a predictive Student density: since

.. math:: A' = A + \tfrac{\kappa}{\kappa+1} (y - s/\kappa)(y - s/\kappa)^T,

it needs only the quadratic form of :math:`y - s/\kappa` in the inverse of A.

The scale has the invariant prior :math:`p(\Sigma) \propto |\Sigma|^{-(d+1)/2}` (II: :math:`\prod_r
\sigma_r^{-2}`, I: :math:`\sigma^{-2}`), so the family has the invariances of the model. The posterior of Σ is
proper unless some direction is constant in most of the rows, as it may be in coarsely rounded data: to be
safe, Σ is kept above `SMALLEST_PIVOT` of the total variance (the pivots of its Cholesky decomposition are).

The scale has the *form* of its model: a d × d matrix (III), d variances (II) or one (I), and so have the
squares; *packed*, it is a vector, for III the lower triangle row by row.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from ewens_widgets.model.checks import FloatArray, ModelName
from ewens_widgets.model.likelihood import cluster_statistics, cluster_sums

# Of the total variance, which is 1 in canonical coordinates: below it nothing but rounding is left.
SMALLEST_PIVOT = 1e-9


class ClusterStatistics(NamedTuple):
    """Sizes (…, K), sums (…, K, d) and squares (…, K and the form of the model) of clusters."""

    sizes: FloatArray
    sums: FloatArray
    squares: FloatArray


class MixedStatistics(NamedTuple):
    """The same with the counts of categories (…, K × ΣL) besides."""

    sizes: FloatArray
    sums: FloatArray
    squares: FloatArray
    counts: FloatArray


class Shapes(NamedTuple):
    """Posterior means of the clusters' centres (…, K, d) and covariances (…, K, d, d)."""

    centres: FloatArray
    covariances: FloatArray


def packed_length(n_features: int, model: ModelName) -> int:
    """How many numbers the scale Σ of a model has."""
    return {"I": 1, "II": n_features, "III": n_features * (n_features + 1) // 2}[model]


def pack_sigma(sigma: ArrayLike, model: ModelName) -> FloatArray:
    """Write a scale, or several along leading axes, as a vector."""
    values = np.asarray(sigma, dtype=np.float64)
    if model == "I":
        return np.asarray(values[..., None], dtype=np.float64)
    if model == "II":
        return values
    rows, columns = np.tril_indices(values.shape[-1])
    return np.asarray(values[..., rows, columns], dtype=np.float64)


def unpack_sigma(packed: ArrayLike, n_features: int, model: ModelName) -> FloatArray:
    """Give a packed scale the form of its model."""
    values = np.asarray(packed, dtype=np.float64)
    if values.shape[-1] != packed_length(n_features, model):
        raise ValueError(
            f"the scale of model {model} with {n_features} features has {packed_length(n_features, model)} "
            f"numbers; got {values.shape[-1]}."
        )
    if model == "I":
        return np.asarray(values[..., 0], dtype=np.float64)
    if model == "II":
        return values
    rows, columns = np.tril_indices(n_features)
    full = np.zeros((*values.shape[:-1], n_features, n_features))
    full[..., rows, columns] = values
    full[..., columns, rows] = values
    return full


def statistics_of(coordinates: FloatArray, labels: NDArray[np.intp], model: ModelName) -> ClusterStatistics:
    """Statistics of the clusters of a partition given by canonical labels."""
    sizes, sums = cluster_statistics(coordinates, labels)
    if model == "III":
        by_cluster = [coordinates[labels == cluster] for cluster in range(sizes.size)]
        return ClusterStatistics(sizes, sums, np.array([rows.T @ rows for rows in by_cluster]))
    squares = cluster_sums(coordinates * coordinates, labels)
    return ClusterStatistics(sizes, sums, squares if model == "II" else squares.sum(axis=1))


def about(clusters: ClusterStatistics, centre: FloatArray, model: ModelName) -> ClusterStatistics:
    """Statistics of the same clusters about another centre (d), or about several along leading axes."""
    off, sizes, sums = centre[..., None, :], clusters.sizes[..., None], clusters.sums
    if model == "III":
        crossed = sums[..., :, None] * off[..., None, :]
        total = sizes[..., None] * off[..., :, None] * off[..., None, :]
        squares = clusters.squares - crossed - np.swapaxes(crossed, -1, -2) + total
    else:
        lost = (2.0 * sums - sizes * off) * off
        squares = clusters.squares - (lost if model == "II" else lost.sum(axis=-1))
    moved = sums - sizes * off
    return ClusterStatistics(np.broadcast_to(clusters.sizes, moved.shape[:-1]), moved, np.asarray(squares))


def log_marginals(
    clusters: ClusterStatistics, theta: ArrayLike, nu: ArrayLike, sigma: ArrayLike, model: ModelName
) -> FloatArray:
    """Log marginal likelihoods log m_b of clusters (…, K), 0 for empty ones.

    Σ has the form of the model. Leading axes of the parameters go with those of the statistics before the
    clusters', by the rules of broadcasting.
    """
    n_features = clusters.sums.shape[-1]
    ratio, likeness = np.asarray(theta)[..., None], np.asarray(nu)[..., None]
    sizes = clusters.sizes
    base, volume = _volumes(clusters, ratio, likeness, sigma, model)
    if model == "III":
        log_base, log_volume = np.linalg.slogdet(base)[1], np.linalg.slogdet(volume)[1]
    else:
        log_base, log_volume = np.log(base), np.log(volume)
        if model == "II":
            log_base, log_volume = log_base.sum(axis=-1), log_volume.sum(axis=-1)
    before = prior_degrees(likeness, n_features, model)
    after = before + unit_degrees(n_features, model) * sizes
    log_constant = log_size_constants(sizes, np.asarray(nu), n_features, model)
    log_growth = 0.5 * n_features * np.log1p(ratio * sizes)
    powers = 0.5 * before * log_base - 0.5 * after * log_volume
    return np.asarray(log_constant + powers - log_growth, dtype=np.float64)


def prior_degrees(nu: FloatArray, n_features: int, model: ModelName) -> FloatArray:
    """Degrees of freedom a of the prior of a cluster's shape."""
    added = {"I": nu * n_features + 2.0, "II": nu + 2.0, "III": nu + n_features + 1.0}
    return np.asarray(added[model], dtype=np.float64)


def unit_degrees(n_features: int, model: ModelName) -> int:
    """Degrees of freedom that a row adds."""
    return n_features if model == "I" else 1


def log_size_constants(sizes: FloatArray, nu: FloatArray, n_features: int, model: ModelName) -> FloatArray:
    """What of log m_b depends on the size and ν alone: Gamma functions and powers of π (ν × sizes)."""
    degrees = prior_degrees(nu, n_features, model)[..., None]
    dimension, n_columns = n_features if model == "III" else 1, n_features if model == "II" else 1
    after = _log_gamma((degrees + unit_degrees(n_features, model) * sizes) / 2.0, dimension)
    before = _log_gamma(degrees / 2.0, dimension)
    return np.asarray(n_columns * (after - before) - 0.5 * sizes * n_features * np.log(np.pi))


def _log_gamma(x: FloatArray, dimension: int) -> FloatArray:
    """Log of the multivariate Gamma function without its power of π, which cancels in all ratios."""
    return np.asarray(sum(gammaln(x - 0.5 * column) for column in range(dimension)), dtype=np.float64)


def _volumes(
    clusters: ClusterStatistics, ratio: FloatArray, likeness: FloatArray, sigma: ArrayLike, model: ModelName
) -> tuple[FloatArray, FloatArray]:
    """νΣ and A of clusters, in the form of the model."""
    sums, squares = clusters.sums, clusters.squares
    scale = np.asarray(sigma, dtype=np.float64)
    kappa = 1.0 / ratio + clusters.sizes
    if model == "III":
        base = likeness[..., None, None] * scale[..., None, :, :]
        outer = sums[..., :, None] * sums[..., None, :]
        return base, np.asarray(base + squares - outer / kappa[..., None, None])
    if model == "II":
        base = likeness[..., None] * scale[..., None, :]
        return base, np.asarray(base + squares - sums * sums / kappa[..., None])
    base = likeness * sums.shape[-1] * scale[..., None]
    return base, np.asarray(base + squares - np.sum(sums * sums, axis=-1) / kappa)


def volumes(
    clusters: ClusterStatistics, theta: float, nu: float, sigma: ArrayLike, model: ModelName
) -> FloatArray:
    """A of clusters at one value of each parameter, in the form of the model."""
    return _volumes(clusters, np.array([theta]), np.array([nu]), sigma, model)[1]


def log_sigma_prior(sigma: ArrayLike, model: ModelName) -> FloatArray:
    """Log of the invariant prior density of the scale, which has no constant."""
    values = np.asarray(sigma, dtype=np.float64)
    if model == "I":
        return np.asarray(-np.log(values))
    if model == "II":
        return np.asarray(-np.log(values).sum(axis=-1))
    return np.asarray(-0.5 * (values.shape[-1] + 1.0) * np.linalg.slogdet(values)[1])


def cluster_shapes(
    clusters: ClusterStatistics, theta: ArrayLike, nu: ArrayLike, sigma: ArrayLike, model: ModelName
) -> Shapes:
    """Posterior means of centres, s/κ, and of covariances, A/(ν + n), as matrices under every model."""
    ratio, likeness = np.asarray(theta)[..., None], np.asarray(nu)[..., None]
    n_features = clusters.sums.shape[-1]
    volume = _volumes(clusters, ratio, likeness, sigma, model)[1]
    kappa = 1.0 / ratio + clusters.sizes
    centres = clusters.sums / kappa[..., None]
    share = likeness + clusters.sizes
    if model == "III":
        return Shapes(centres, volume / share[..., None, None])
    variances = volume / share[..., None] if model == "II" else (volume / (n_features * share))[..., None]
    return Shapes(centres, np.asarray(variances[..., None] * np.eye(n_features)))


def log_predictive(
    rows: FloatArray,
    clusters: ClusterStatistics,
    theta: float,
    nu: float,
    sigma: ArrayLike,
    model: ModelName,
    members: NDArray[np.intp] | None = None,
) -> FloatArray:
    """Log densities of rows in canonical coordinates (m × d) in each of K clusters (m × K).

    A cluster of size 0 is a new one. Rows are new objects, unless `members` gives the cluster that each is a
    member of; its density there is then the one given the other members.
    """
    n_features = rows.shape[1]
    likeness = np.array([nu])
    volume = volumes(clusters, theta, nu, sigma, model)
    kappa = 1.0 / theta + clusters.sizes
    gaps = rows[:, None, :] - clusters.sums / kappa[:, None]
    sizes = clusters.sizes
    units = unit_degrees(n_features, model)
    before = prior_degrees(likeness, n_features, model) + units * sizes

    def steps(first: FloatArray) -> FloatArray:
        constants = [log_size_constants(first + k, np.asarray(nu), n_features, model) for k in (0.0, 1.0)]
        return np.asarray(constants[1] - constants[0])

    # A row that joins makes A larger, and one that leaves makes it smaller by κ/(κ − 1) times the square.
    joined = steps(sizes) + 0.5 * n_features * np.log(kappa / (kappa + 1.0))
    grown, power = kappa / (kappa + 1.0), -0.5 * (before + units)
    if members is not None:
        inside = members[:, None] == np.arange(sizes.size)
        smaller = np.maximum(kappa - 1.0, 1.0 / theta)
        left = steps(np.maximum(sizes - 1.0, 0.0)) + 0.5 * n_features * np.log(smaller / kappa)
        joined = np.where(inside, left, joined)
        grown = np.where(inside, -kappa / smaller, grown)
        power = np.where(inside, 0.5 * (before - units), power)
    if model == "III":
        roots = np.linalg.cholesky(volume)
        whitened = np.linalg.solve(roots, np.moveaxis(gaps, 0, -1))
        forms = np.sum(whitened * whitened, axis=1).T
        log_volume = 2.0 * np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        log_grown = _log_one_plus(grown * forms)
    elif model == "II":
        log_volume = np.log(volume).sum(axis=1)
        log_grown = _log_one_plus(grown[..., None] * gaps * gaps / volume).sum(axis=2)
    else:
        log_volume = n_features * np.log(volume)
        log_grown = _log_one_plus(grown * np.sum(gaps * gaps, axis=2) / volume)
    return np.asarray(joined + power * log_grown - 0.5 * log_volume, dtype=np.float64)


def _log_one_plus(change: FloatArray) -> FloatArray:
    """Log of 1 + x, which rounding could make negative for a row that determines its cluster."""
    return np.asarray(np.log1p(np.maximum(change, 1e-12 - 1.0)), dtype=np.float64)
