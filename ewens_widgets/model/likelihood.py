r"""The three profile log-likelihoods, from cluster sizes and cluster sums alone.

Given a partition B as a 0/1 matrix, a variance ratio :math:`\theta` and a scale :math:`\Sigma`, the centred
data are :math:`Y \sim N(0, \Gamma \otimes \Sigma)` with :math:`\Gamma = I + \theta B`. With :math:`s_b =
\sum_{i \in b} y_i`,

.. math::

    \log\det \Gamma = \sum_b \log(1 + \theta n_b), \qquad
    M = Y^T \Gamma^{-1} Y = Y^T Y - \sum_b \frac{\theta}{1 + \theta n_b} s_b s_b^T,

and profiling :math:`\Sigma` out leaves, in canonical coordinates and up to a constant,

.. math::

    \text{I:} \quad & -\tfrac d2 \log\det\Gamma - \tfrac{nd}2 \log (\operatorname{tr} M / (nd)) \\
    \text{II:} \quad & -\tfrac d2 \log\det\Gamma - \tfrac n2 \textstyle\sum_r \log (M_{rr} / n) \\
    \text{III:} \quad & -\tfrac d2 \log\det\Gamma - \tfrac n2 \log \det (M / n)

The constant is chosen so that the second term is zero for one cluster. :math:`\Gamma` (n × n) is never
formed. Since :math:`M \succeq Y^T Y / (1 + \theta n)`, the subtraction loses at most a factor :math:`1 +
\theta n` of precision: the price of needing the sums alone. With the data at hand, `log_likelihood` subtracts
nothing: with :math:`b(i)` for the cluster of object i,

.. math::

    M = \sum_i \Bigl(y_i - \frac{s_{b(i)}}{n_{b(i)}}\Bigr) \Bigl(y_i - \frac{s_{b(i)}}{n_{b(i)}}\Bigr)^T
        + \sum_b \frac{s_b s_b^T}{n_b (1 + \theta n_b)}.

**The centre.** All this treats the mean of the data as known, as the paper does. But centred data have
another distribution. With an unknown centre, :math:`v = \sum_b s_b / (1 + \theta n_b)`,
:math:`c = \sum_b n_b / (1 + \theta n_b)` and :math:`S = M - v v^T / c`, the likelihood is

.. math::

    -\tfrac d2 (\log\det\Gamma + \log c) - \tfrac{n-1}2 \, \bigl(d \log \operatorname{tr} S \;|\;
    \textstyle\sum_r \log S_{rr} \;|\; \log\det S\bigr) ,

the density of the data up to the model's transformations, exactly. For one cluster it does not depend on
:math:`\theta`.
"""

from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import (
    FloatArray,
    ModelName,
    check_data,
    check_model,
    check_theta,
    column_names,
)
from ewens_widgets.model.coordinates import canonical_coordinates
from ewens_widgets.partition import check_labels

CentreName = Literal["mean", "unknown"]


def check_centre(centre: str) -> CentreName:
    """Return what is known of the centre of the data; refuse other names."""
    if centre not in get_args(CentreName):
        raise ValueError(f'centre must be "mean" (treated as known) or "unknown"; got {centre!r}.')
    return cast("CentreName", centre)


def cluster_statistics(coordinates: FloatArray, labels: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
    """Sizes (K) and sums (K × d) of the clusters of a partition given by canonical labels."""
    sizes = np.bincount(labels).astype(np.float64)
    return sizes, cluster_sums(coordinates, labels)


def cluster_sums(coordinates: FloatArray, labels: NDArray[np.integer]) -> FloatArray:
    """Sums (K × d) of the rows with each label 0, …, K − 1."""
    return np.column_stack([np.bincount(labels, weights=column) for column in coordinates.T])


def log_likelihoods_from_statistics(
    sizes: FloatArray,
    sums: FloatArray,
    n_objects: int,
    theta_grid: FloatArray,
    model: ModelName,
    centre: CentreName = "mean",
    total: FloatArray | None = None,
) -> FloatArray:
    """Log-likelihoods over a grid of θ, in canonical coordinates: profiled, or with an unknown centre.

    Parameters
    ----------
    sizes, sums
        Sizes (…, K) and sums (…, K, d) of the clusters; leading axes are partitions. Clusters of size 0 do
        not count.
    n_objects
        Number of objects.
    theta_grid
        Variance ratios, G of them.
    model, centre
        Covariance model, and whether the centre is known.
    total
        YᵀY/n, where it is not that of canonical coordinates: of tables with imputed cells.

    Returns
    -------
    array of shape (…, G)
    """
    n_features, n_degrees = sums.shape[-1], n_objects
    whole = np.eye(n_features) if total is None else total
    grown = 1.0 + theta_grid[:, None] * sizes[..., None, :]
    log_det_gamma = np.log(grown).sum(axis=-1)
    shrinkage = theta_grid[:, None] / grown / n_objects
    off = np.zeros((*log_det_gamma.shape, n_features))  # the square root of v vᵀ / (c n)
    if centre == "unknown":
        c, n_degrees = np.sum(sizes[..., None, :] / grown, axis=-1), n_objects - 1
        log_det_gamma = log_det_gamma + np.log(c)
        off = np.matmul(1.0 / grown, sums) / np.sqrt(c * n_objects)[..., None]
    if model == "I":
        squares = np.sum(sums * sums, axis=-1)
        trace = np.sum(shrinkage * squares[..., None, :], axis=-1) + np.sum(off * off, axis=-1)
        log_scale = n_features * np.log((np.trace(whole) - trace) / n_features)
    elif model == "II":
        diagonal = np.diag(whole) - np.matmul(shrinkage, sums * sums) - off * off
        log_scale = np.log(diagonal).sum(axis=-1)
    else:
        weighted = np.swapaxes(shrinkage[..., None] * sums[..., None, :, :], -1, -2)
        scatter = whole - np.matmul(weighted, sums[..., None, :, :])
        log_scale = np.linalg.slogdet(scatter - off[..., :, None] * off[..., None, :])[1]
    return np.asarray(-0.5 * n_features * log_det_gamma - 0.5 * n_degrees * log_scale, dtype=np.float64)


def log_likelihood(
    X: ArrayLike | Dataset, labels: ArrayLike, theta: float, model: str = "III", centre: str = "mean"
) -> float:
    """Log-likelihood of a partition, unchanged by the model's transformations of the data.

    Parameters
    ----------
    X
        Data, n objects by d features.
    labels
        A partition: one label an object.
    theta
        Variance ratio between and within clusters.
    model
        ``"I"``, ``"II"`` or ``"III"``.
    centre
        ``"mean"``: the paper's profile likelihood, which treats the mean of the data as known; or
        ``"unknown"``: the likelihood of the data up to the model's transformations.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> data = ew.datasets.unit_square(seed=0)
    >>> ew.log_likelihood(data.X, data.labels, theta=16.0) > ew.log_likelihood(data.X, [0] * 80, theta=16.0)
    True
    """
    name, is_unknown = check_model(model), check_centre(centre) == "unknown"
    matrix = check_data(X)
    canonical = check_labels(labels, matrix.shape[0])
    ratio = check_theta(theta)
    coordinates = canonical_coordinates(matrix, name, column_names(X))[0]
    n_objects, n_features = coordinates.shape
    sizes, sums = cluster_statistics(coordinates, canonical)
    means, weights = sums / sizes[:, None], sizes / (1.0 + ratio * sizes)
    residuals, log_det = coordinates - means[canonical], np.log1p(ratio * sizes).sum()
    if is_unknown:
        # S from the means about their own centre v/c: nothing is subtracted here either.
        means, log_det = means - weights @ means / weights.sum(), log_det + np.log(weights.sum())
    root = np.vstack([residuals, np.sqrt(weights)[:, None] * means]) / np.sqrt(n_objects)
    n_degrees = n_objects - 1 if is_unknown else n_objects
    return float(-0.5 * n_features * log_det - 0.5 * n_degrees * _log_scale(root, name))


def _log_scale(root: FloatArray, model: ModelName) -> float:
    """Log of the scale that is profiled out, for M/n = AᵀA given by A."""
    if model == "I":
        return float(root.shape[1] * np.log(np.mean(np.sum(root * root, axis=0))))
    if model == "II":
        return float(np.log(np.sum(root * root, axis=0)).sum())
    return float(2.0 * np.log(np.linalg.svd(root, compute_uv=False)).sum())
