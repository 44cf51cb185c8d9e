"""How sure the draws are of a partition: object by object, and as a whole."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.draws import Draws

__all__ = ["CredibleBall", "credible_ball", "membership", "object_uncertainty"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_SAME_DISTANCE = 1e-9  # Distances that differ by rounding alone are ties.


@dataclass(frozen=True, eq=False)
class CredibleBall:
    """Smallest ball around an estimate that holds a given share of the posterior (Wade & Ghahramani 2018).

    Its bounds say how other partitions in the ball look; each is an array with a partition a row, since
    several may be equally extreme.

    Attributes
    ----------
    level
        The share that was asked for.
    radius
        Distance from the estimate, in the loss of the estimate.
    share
        Share of the draws in the ball; at least `level`.
    upper_vertical
        The partitions with the fewest clusters, of these the most distant ones.
    lower_vertical
        The partitions with the most clusters, of these the most distant ones.
    horizontal
        The most distant partitions.
    """

    level: float
    radius: float
    share: float
    upper_vertical: IntArray = field(repr=False)
    lower_vertical: IntArray = field(repr=False)
    horizontal: IntArray = field(repr=False)


def credible_ball(draws: Draws, distances: FloatArray, level: float = 0.95) -> CredibleBall:
    """Find the ball that holds a share `level` of the draws.

    Parameters
    ----------
    draws
        The draws.
    distances
        Distance of each distinct draw from the estimate.
    level
        Share of the draws that the ball must hold.
    """
    if not 0.0 < level <= 1.0:
        raise ValueError(f"level must be above 0 and at most 1, e.g. 0.95; got {level!r}.")
    order = np.argsort(distances, kind="stable")
    shares = np.cumsum(draws.weights[order])
    radius = float(distances[order[min(int(np.searchsorted(shares, level - 1e-12)), order.size - 1)]])
    inside = np.flatnonzero(distances <= radius + _SAME_DISTANCE)
    counts = draws.labels[inside].max(axis=1).astype(np.intp) + 1
    return CredibleBall(
        level=level,
        radius=radius,
        share=float(draws.weights[inside].sum()),
        upper_vertical=_farthest(draws, distances, inside[counts == counts.min()]),
        lower_vertical=_farthest(draws, distances, inside[counts == counts.max()]),
        horizontal=_farthest(draws, distances, inside),
    )


def object_uncertainty(draws: Draws, labels: IntArray) -> FloatArray:
    """Share of draws that disagree with where each object is.

    For an object with companions: the average share of draws that keep it apart from them. For an object
    alone in its cluster: the share of draws that give it companions.
    """
    own = draws.overlaps(labels)[draws.cells, labels[None, :]] - 1
    companions = np.bincount(labels)[labels] - 1
    together = draws.weights @ own / np.maximum(companions, 1)
    alone = draws.weights @ (draws.cell_sizes[draws.cells] == 1)
    return np.clip(1.0 - np.where(companions > 0, together, alone), 0.0, 1.0)


def membership(draws: Draws, labels: IntArray) -> FloatArray:
    """Probability of each object for each cluster of an estimate (n × K); rows sum to 1.

    In each draw, a cluster stands for that cluster of the estimate which it shares most objects with; the
    probability is the share of draws in which the object's cluster stands for cluster k.
    """
    overlaps = draws.overlaps(labels)
    stands_for = np.argmax(overlaps, axis=1)
    n_objects, n_clusters = labels.size, overlaps.shape[1]
    entries = np.arange(n_objects) * n_clusters + stands_for[draws.cells]
    weights = np.repeat(draws.weights, n_objects)
    totals = np.bincount(entries.ravel(), weights=weights, minlength=n_objects * n_clusters)
    return totals.reshape(n_objects, n_clusters).astype(np.float64)


def _farthest(draws: Draws, distances: FloatArray, among: IntArray) -> IntArray:
    chosen = among[distances[among] >= distances[among].max() - _SAME_DISTANCE]
    return np.asarray(draws.labels[chosen], dtype=np.intp)
