r"""Ellipses of the clusters in the coordinates that a picture shows.

A cluster has a centre c and a covariance C in canonical coordinates y (`Posterior.cluster_shapes`). What a
picture shows, two features or two principal components in the user's units, is an affine function of them,
:math:`x = a + y P`, so there the cluster has the centre :math:`a + c P` and the covariance :math:`P^T C P`.
Its ellipse with *content* p holds the share p of a Gaussian: in two dimensions, the points up to a distance
of :math:`\sqrt{-2 \log(1 - p)}` standard deviations from the centre.

Pure geometry, no drawing: the static scatter and the live view share it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.model.own_shapes import Shapes
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import check_labels

if TYPE_CHECKING:
    from ewens_widgets.sampling.trace import Trace

__all__ = [
    "CONTENTS",
    "Ellipses",
    "Projection",
    "averaged_ellipses",
    "cluster_ellipses",
    "outlines",
    "projection_onto",
]

FloatArray = NDArray[np.float64]

CONTENTS = (0.5, 0.9)
"""Shares of a cluster that its ellipses hold."""

_SAME = 1e-9  # Of the spread of what is shown: it is a canonical column but for rounding.
_LINEAR = 1e-4  # Of the spread of what is shown: what is left over by a linear function but for rounding.


class Projection(NamedTuple):
    """The affine map from canonical coordinates to shown ones, x = offset + y @ matrix."""

    offset: FloatArray
    matrix: FloatArray


class Ellipses(NamedTuple):
    """Ellipses of the clusters that are large enough to have one.

    Attributes
    ----------
    clusters
        Canonical labels of these clusters (E).
    centres
        Their centres in shown coordinates (E × 2).
    outlines
        Points on the ellipses, the first one repeated at the end (E × contents × points × 2).
    """

    clusters: NDArray[np.intp]
    centres: FloatArray
    outlines: FloatArray


def projection_onto(posterior: Posterior, shown: ArrayLike) -> Projection | None:
    """Find the map from canonical coordinates to what a picture shows of the same objects.

    Parameters
    ----------
    posterior
        Holds the canonical coordinates (n × d).
    shown
        Shown coordinates of the objects (n × 2), e.g. two features or principal components.

    Returns
    -------
    The map, or None where there is none: the number of a row is no function of its features.
    """
    coordinates = posterior.coordinates
    values = np.asarray(shown, dtype=np.float64)
    offset = values.mean(axis=0)
    centred = values - offset
    spread = np.sqrt(np.sum(centred * centred, axis=0))
    matrix = np.empty((coordinates.shape[1], values.shape[1]))
    squares = np.maximum(np.sum(coordinates * coordinates, axis=0), np.finfo(np.float64).tiny)
    for axis in range(values.shape[1]):
        matrix[:, axis] = _coefficients(coordinates, squares, centred[:, axis], float(spread[axis]))
    left_over = centred - coordinates @ matrix
    if np.any(np.sqrt(np.sum(left_over * left_over, axis=0)) > _LINEAR * spread):
        return None
    return Projection(offset, matrix)


def _coefficients(
    coordinates: FloatArray, squares: FloatArray, target: FloatArray, spread: float
) -> FloatArray:
    """Coefficients of a linear function of the canonical coordinates; of one column where one is enough.

    Where the columns are dependent (models I and II), a feature is still its own column and no mixture.
    """
    alone = coordinates.T @ target / squares
    column = int(np.argmax(np.abs(alone) * np.sqrt(squares)))
    if np.linalg.norm(target - alone[column] * coordinates[:, column]) <= _SAME * spread:
        single = np.zeros(squares.size)
        single[column] = alone[column]
        return single
    return np.asarray(np.linalg.lstsq(coordinates, target, rcond=None)[0], dtype=np.float64)


def cluster_ellipses(
    posterior: Posterior,
    labels: ArrayLike,
    theta: float,
    nu: float = np.inf,
    sigma: ArrayLike | None = None,
    projection: Projection | None = None,
    *,
    contents: Sequence[float] = CONTENTS,
    n_points: int = 48,
    smallest: int = 2,
) -> Ellipses:
    """Ellipses of the clusters of a partition, given the parameters of both families of shapes.

    Parameters
    ----------
    posterior
        What was sampled: data in canonical coordinates, model, family of shapes.
    labels
        A partition.
    theta, nu, sigma
        The variance ratio; of own shapes also the likeness and the packed scale, as events and traces hold
        them.
    projection
        The map to shown coordinates; without one, the first two canonical coordinates are shown.
    contents
        Shares of a cluster that its ellipses hold.
    n_points
        Steps of each outline.
    smallest
        Clusters with fewer members get no ellipse: alone, an object says nothing of a shape.
    """
    checked = check_labels(labels, posterior.n_objects)
    shapes = posterior.cluster_shapes(checked, theta, nu, sigma)
    chosen = np.flatnonzero(np.bincount(checked) >= smallest)
    if projection is None:
        projection = Projection(np.zeros(2), np.eye(posterior.n_features, 2))
    return outlines(shapes, chosen, projection, contents=contents, n_points=n_points)


def averaged_ellipses(trace: "Trace", labels: ArrayLike, projection: Projection, draws: int = 50) -> Ellipses:
    """Ellipses of a partition that is no draw, such as a point estimate: averages over the draws' parameters.

    Parameters
    ----------
    trace
        Draws; centres and covariances, given the partition and their parameters, are averaged.
    labels
        The partition.
    projection
        The map to shown coordinates.
    draws
        How many draws, evenly spaced along the chain, to average over at most.
    """
    if not len(trace):
        raise ValueError("the trace holds no draws; sample some, or drop fewer as burn-in.")
    posterior = trace.posterior
    checked = check_labels(labels, posterior.n_objects)
    chosen = np.unique(np.linspace(0, len(trace) - 1, min(draws, len(trace))).astype(np.intp))
    nu, sigma = trace.column("nu"), trace.column("sigma")
    made = [posterior.cluster_shapes(checked, float(trace.theta[k]), float(nu[k]), sigma[k]) for k in chosen]
    centres, covariances = (np.mean(values, axis=0) for values in zip(*made, strict=True))
    members = np.flatnonzero(np.bincount(checked) >= 2)
    return outlines(Shapes(centres, covariances), members, projection)


def outlines(
    shapes: Shapes,
    clusters: NDArray[np.intp],
    projection: Projection,
    *,
    contents: Sequence[float] = CONTENTS,
    n_points: int = 48,
) -> Ellipses:
    """Ellipses of chosen clusters with known centres and covariances in canonical coordinates."""
    levels = np.asarray(contents, dtype=np.float64)
    if levels.size == 0 or np.any((levels <= 0.0) | (levels >= 1.0)):
        raise ValueError(f"the contents of ellipses must lie between 0 and 1; got {list(contents)}.")
    offset, matrix = projection
    centres = offset + shapes.centres[clusters] @ matrix
    covariances = matrix.T @ shapes.covariances[clusters] @ matrix
    # A root by hand: flat ellipses, of the same feature on both axes, have no Cholesky decomposition.
    width = np.sqrt(np.maximum(covariances[:, 0, 0], np.finfo(np.float64).tiny))
    slope = covariances[:, 0, 1] / width
    height = np.sqrt(np.maximum(covariances[:, 1, 1] - slope * slope, 0.0))
    angles = np.linspace(0.0, 2.0 * np.pi, n_points + 1)
    circle = np.sqrt(-2.0 * np.log1p(-levels))[:, None, None] * np.column_stack(
        [np.cos(angles), np.sin(angles)]
    )
    across = width[:, None, None] * circle[..., 0]
    upwards = slope[:, None, None] * circle[..., 0] + height[:, None, None] * circle[..., 1]
    points = centres[:, None, None, :] + np.stack([across, upwards], axis=-1)
    return Ellipses(clusters, np.asarray(centres), np.asarray(points, dtype=np.float64))
