r"""Coarse partitions that many draws agree on: a consensus of their evidence trees.

Often the draws have more clusters than are wanted: fourteen small Gaussians for three kinds of wine. The
evidence tree of one draw says how to merge them, but draws of nearly the same posterior may be merged into
rather different trees. So the trees of many draws are averaged. For draw t with :math:`K_t` clusters let
:math:`a_{ij}^t(k)` be 1 if its evidence tree, cut into k clusters, keeps the objects i and j apart. Then

.. math:: D_{ij} = \frac1T \sum_t \frac{1}{K_t - K_* + 1} \sum_{k=K_*}^{K_t} a_{ij}^t(k),
    \qquad K_* = \min(K, K_t),

is the share of levels, from the draws themselves down to the K clusters that are asked for, at which they are
apart, and average linkage of D gives the tree. With :math:`K \ge K_t` for all draws D is the distance of the
draws themselves. Evidence trees are invariant like the model, so the consensus is too.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from ewens_widgets.analysis.draws import Draws
from ewens_widgets.analysis.evidence_tree import evidence_tree
from ewens_widgets.analysis.tree import Tree
from ewens_widgets.memory import check_fits

if TYPE_CHECKING:
    from ewens_widgets.model.posterior import Posterior
    from ewens_widgets.sampling.trace import Trace

__all__ = ["consensus_distance", "consensus_tree", "merge_levels"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_DRAWS = 100
_FEWEST_DRAWS = 5
_WORK = 1e8  # Candidate merges × θ × features that all the evidence trees together may cost: a few seconds.


def consensus_tree(trace: "Trace", n_clusters: int, draws: int = _DRAWS) -> Tree:
    """Average the evidence trees of draws from their own clusters down to `n_clusters`.

    Parameters
    ----------
    trace
        Draws of a chain.
    n_clusters
        The coarsest level that counts, usually the number of clusters that the tree will be cut into.
    draws
        How many draws, evenly spaced along the chain, to use at most; fewer where they have so many clusters
        that their trees would take long.
    """
    distance = consensus_distance(trace, n_clusters, draws)
    merges = linkage(squareform(distance, checks=False), method="average")
    # Averages are rounded: equal heights may come out a bit apart, and then in the wrong order.
    merges[:, 2] = np.maximum.accumulate(merges[:, 2])
    return Tree(
        linkage=merges,
        kind="similarity",
        method=f"consensus of evidence trees down to {n_clusters}",
        n_start=trace.n_objects,
        coordinates=trace.posterior.coordinates,
        distance=distance,
    )


def consensus_distance(trace: "Trace", n_clusters: int, draws: int = _DRAWS) -> FloatArray:
    """Share of levels, from the draws down to `n_clusters`, at which each pair of objects is apart."""
    if n_clusters < 1 or draws < 1:
        raise ValueError(
            f"n_clusters and the number of draws must be at least 1; got {n_clusters} and {draws}."
        )
    if not len(trace):
        raise ValueError("the trace holds no draws; sample some, or drop fewer as burn-in.")
    n_objects = trace.n_objects
    check_fits(24 * n_objects**2, f"the distances between {n_objects} objects", "Use fewer rows.")
    distinct = Draws.of(trace.labels).spread(_affordable(trace, draws))
    total = np.zeros((n_objects, n_objects))
    for weight, labels in zip(distinct.weights, distinct.labels.astype(np.intp), strict=True):
        levels = merge_levels(trace.posterior, labels)
        finest = len(levels)
        coarsest = min(n_clusters, finest)
        # Clusters that become one at level k are apart at the levels k + 1, …, finest.
        apart = np.clip(finest - np.maximum(levels, coarsest - 1), 0, None) / (finest - coarsest + 1)
        total += weight * apart[np.ix_(labels, labels)]
    return total


def merge_levels(posterior: "Posterior", labels: IntArray) -> IntArray:
    """For each two clusters of a partition, into how many the evidence tree is cut when they first are one.

    On the diagonal stands the number of clusters itself.
    """
    tree = evidence_tree(posterior, labels)
    n_objects, n_clusters = tree.n_leaves, tree.n_start
    levels = np.full((n_clusters, n_clusters), n_clusters, dtype=np.intp)
    members = {item: [int(label)] for item, label in enumerate(labels)}
    for row, (left, right) in enumerate(tree.linkage[:, :2].astype(int).tolist()):
        ours, theirs = members.pop(left), members.pop(right)
        # The first merges only join the objects of the starting clusters.
        if row >= n_objects - n_clusters:
            levels[np.ix_(ours, theirs)] = levels[np.ix_(theirs, ours)] = n_objects - 1 - row
            ours = ours + theirs
        members[n_objects + row] = ours
    return levels


def _affordable(trace: "Trace", draws: int) -> int:
    """How many evidence trees can be made in a reasonable time."""
    clusters = float(np.mean(trace.n_clusters))
    posterior = trace.posterior
    cost = clusters**3 / 6 * posterior.theta_grid.size * posterior.n_features
    return int(min(max(_WORK / max(cost, 1.0), _FEWEST_DRAWS), draws))
