r"""The hierarchy that the model itself makes: merge, each time, what costs least log posterior.

Starting from a partition, usually the draw with the highest posterior, the two clusters a, b whose merge
loses least of

.. math:: \log p(B \mid Y) = \log V(K) + \sum_b \log W(n_b) + \log \sum_\theta p(\theta) L(B, \theta)

are merged, down to one cluster; V and W are those of the prior on partitions (`model.priors`). Heights are
the running loss in nats; a merge that gains counts as no loss, so the heights never decrease. The tree is
invariant like the model, and it shows structure above the level at which all draws keep the objects apart.

**Own shapes.** Given θ, ν and Σ the likelihood is a product over clusters, so a merge loses

.. math:: \log\frac{V(K)}{V(K-1)} + \log\frac{W(n_a) \, W(n_b)}{W(n_a + n_b)}
    + \log m_a + \log m_b - \log m_{ab},

averaged over the parameters of draws all along the chain (`OwnEvidence`): with those of one draw, two
clusters that overlap are merged or kept by chance. Other clusters matter through their number alone, so a
merge changes the losses of the pairs that it touches, and the rest by one number.

**One shape.** With shrinkage :math:`q_b = \theta / (1 + \theta n_b)` a merge changes M by a matrix of rank
two,

.. math:: \Delta = q_a s_a s_a^T + q_b s_b s_b^T - q_{ab} (s_a + s_b)(s_a + s_b)^T = W Q W^T, \qquad
    W = [s_a, s_b], \quad Q = \begin{pmatrix} q_a - q_{ab} & -q_{ab} \\ -q_{ab} & q_b - q_{ab} \end{pmatrix}.

Models I and II need its trace or its diagonal. Model III uses :math:`\det(M + \Delta) = \det M \cdot \det(I +
Q H)`, where H holds the entries for a and b of the K × K matrix :math:`S^T M^{-1} S` of all cluster sums,
made once a step for each θ. A candidate thus costs O(G) for models I and III and O(G d) for model II, however
many objects there are.

**Consensus.** Often the draws have more clusters than are wanted: fourteen small Gaussians for three kinds of
wine. The evidence tree of one draw says how to merge them, but draws of nearly the same posterior may be
merged into rather different trees. So the trees of many draws are averaged. For draw t with :math:`K_t`
clusters let :math:`a_{ij}^t(k)` be 1 if its evidence tree, cut into k clusters, keeps the objects i and j
apart. Then

.. math:: D_{ij} = \frac1T \sum_t \frac{1}{K_t - K_* + 1} \sum_{k=K_*}^{K_t} a_{ij}^t(k),
    \qquad K_* = \min(K, K_t),

is the share of levels, from the draws themselves down to the K clusters that are asked for, at which they are
apart, and average linkage of D gives the tree. With :math:`K \ge K_t` for all draws D is the distance of the
draws themselves. Evidence trees are invariant like the model, so the consensus is too.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from ewens_widgets.analysis.expected_loss import Draws
from ewens_widgets.analysis.trees import Tree
from ewens_widgets.memory import check_fits
from ewens_widgets.model.own_shapes import ClusterStatistics, log_marginals, statistics_of, unpack_sigma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import check_labels

if TYPE_CHECKING:
    from ewens_widgets.sampling.draws import Recorded
    from ewens_widgets.sampling.trace import Trace

__all__ = [
    "CommonEvidence",
    "Evidence",
    "OwnEvidence",
    "check_consensus_fits",
    "consensus_distance",
    "consensus_tree",
    "evidence_of",
    "evidence_tree",
    "merge_levels",
    "merge_losses",
    "merged_statistics",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_BLOCK_ENTRIES = 100_000  # Pairs × features at once: a block's arrays stay in the processor's cache.
_FACTORS = 16
_DRAWS = 100
_FEWEST_DRAWS = 5
_PARAMETER_DRAWS = 12  # Draws of (θ, ν, Σ) that a tree's losses are averaged over.
_WORK = 1e8  # Candidate merges × θ × features that all the evidence trees together may cost: a few seconds.


class Evidence(Protocol):
    """What merges of clusters lose."""

    @property
    def is_additive(self) -> bool:
        """Whether other clusters matter for a merge through their number alone."""

    def losses(self, clusters: ClusterStatistics, left: IntArray, right: IntArray) -> FloatArray:
        """Log posterior lost by merging pairs of clusters, negative where a merge gains."""


@dataclass(frozen=True, eq=False)
class CommonEvidence:
    """Losses in the paper's family: θ summed out, one shape for all."""

    posterior: Posterior
    is_additive = False

    def losses(self, clusters: ClusterStatistics, left: IntArray, right: IntArray) -> FloatArray:
        """Log posterior lost by merging pairs of clusters."""
        return merge_losses(self.posterior, clusters.sizes, clusters.sums, left, right)


@dataclass(frozen=True, eq=False)
class OwnEvidence:
    """Losses with own shapes, averaged over draws of the parameters.

    Attributes
    ----------
    posterior
        The posterior that judges the merges.
    theta, nu, sigma
        Parameters of some draws, along the first axis; Σ in the form of the model.
    """

    posterior: Posterior
    theta: FloatArray
    nu: FloatArray
    sigma: FloatArray = field(repr=False)
    is_additive = True

    def losses(self, clusters: ClusterStatistics, left: IntArray, right: IntArray) -> FloatArray:
        """Log posterior lost by merging pairs of clusters, averaged over the draws."""
        sizes = clusters.sizes.astype(np.intp)
        log_counts = self.posterior.count_weights(sizes.size)
        step = log_counts[sizes.size] - log_counts[sizes.size - 1]
        apart = self._log_factors(clusters)
        width = max(1, _BLOCK_ENTRIES // (self.theta.size * self.posterior.n_features**2))
        merged = [
            self._log_factors(
                ClusterStatistics(*(values[left[part]] + values[right[part]] for values in clusters))
            )
            for part in (slice(start, start + width) for start in range(0, left.size, width))
        ]
        together = np.concatenate(merged) if merged else np.empty(0)
        return np.asarray(step + apart[left] + apart[right] - together, dtype=np.float64)

    def _log_factors(self, clusters: ClusterStatistics) -> FloatArray:
        """Log W(n_b) m_b of clusters, averaged over the draws."""
        averages = log_marginals(clusters, self.theta, self.nu, self.sigma, self.posterior.model).mean(axis=0)
        log_sizes = self.posterior.log_size_weights[clusters.sizes.astype(np.intp)]
        return np.asarray(log_sizes + averages, dtype=np.float64)


def evidence_of(
    posterior: Posterior, draws: "Recorded | Trace", start: int = 0, most: int = _PARAMETER_DRAWS
) -> Evidence:
    """What merges lose in the family of a posterior.

    Parameters
    ----------
    posterior
        The posterior that judges the merges.
    draws
        Recorded draws from it. With own shapes, the parameters of some of them are averaged over, evenly
        spaced.
    start
        How many of the first draws to leave out.
    most
        How many draws of the parameters to average over. A dozen give the order of merges; what a merge of
        two that overlap loses is then known to a few nats only.
    """
    if posterior.shapes == "common":
        return CommonEvidence(posterior)
    count = len(draws.theta) - start
    if count < 1:
        raise ValueError("with own shapes, losses are averaged over draws of the parameters; there are none.")
    chosen = start + np.unique(np.linspace(0, count - 1, min(most, count)).astype(np.intp))
    sigma = unpack_sigma(draws.column("sigma")[chosen], posterior.n_features, posterior.model)
    return OwnEvidence(posterior, draws.theta[chosen], draws.column("nu")[chosen], sigma)


def evidence_tree(posterior: Posterior, labels: ArrayLike, evidence: Evidence | None = None) -> Tree:
    """Merge the clusters of a partition one by one, losing as little log posterior as possible.

    Parameters
    ----------
    posterior
        The posterior that judges the merges.
    labels
        The partition to start from. Its clusters are joined at height 0.
    evidence
        What merges lose. Own shapes need it, since there it depends on draws of the parameters:
        ``evidence_of(posterior, trace)``.
    """
    start = check_labels(labels, posterior.n_objects)
    if evidence is None:
        if posterior.shapes == "own":
            raise ValueError(
                "with own shapes, what a merge loses depends on draws of the parameters: use "
                "trace.evidence_tree(), or give evidence=evidence_of(posterior, trace)."
            )
        evidence = CommonEvidence(posterior)
    clusters = statistics_of(posterior.coordinates, start, posterior.model)
    joined, nodes = _start_rows(start)
    rows: list[tuple[float, float, float, float]] = []
    height = 0.0
    losses = _all_losses(evidence, clusters)
    while len(nodes) > 1:
        a, b = (int(place) for place in np.unravel_index(int(np.argmin(losses)), losses.shape))
        height += max(float(losses[a, b]), 0.0)
        clusters = merged_statistics(clusters, a, b)
        first, second = sorted((nodes[a], nodes.pop(b)))
        nodes[a] = start.size + len(joined) + len(rows)
        rows.append((first, second, height, clusters.sizes[a]))
        losses = _losses_after(evidence, posterior, clusters, losses, a, b)
    return Tree(
        linkage=np.vstack([joined, np.array(rows, dtype=np.float64).reshape(-1, 4)]),
        kind="evidence",
        method="evidence",
        n_start=int(start.max()) + 1,
        coordinates=posterior.coordinates,
    )


def _all_losses(evidence: Evidence, clusters: ClusterStatistics) -> FloatArray:
    """Losses of all pairs, above the diagonal; infinite elsewhere."""
    count = clusters.sizes.size
    losses = np.full((count, count), np.inf)
    left, right = np.triu_indices(count, k=1)
    losses[left, right] = evidence.losses(clusters, left, right)
    return losses


def _losses_after(
    evidence: Evidence, posterior: Posterior, clusters: ClusterStatistics, losses: FloatArray, a: int, b: int
) -> FloatArray:
    """Losses of all pairs after b was merged into a."""
    if not evidence.is_additive:
        return _all_losses(evidence, clusters)
    kept = np.delete(np.delete(losses, b, axis=0), b, axis=1)
    count = clusters.sizes.size
    log_counts = posterior.count_weights(count + 1)
    if count > 1:
        kept += 2.0 * log_counts[count] - log_counts[count - 1] - log_counts[count + 1]
    others = np.delete(np.arange(count), a)
    left, right = np.minimum(others, a), np.maximum(others, a)
    kept[left, right] = evidence.losses(clusters, left, right)
    return kept


def merged_statistics(clusters: ClusterStatistics, a: int, b: int) -> ClusterStatistics:
    """Statistics of the clusters after b was merged into a, which comes before it."""
    merged = ClusterStatistics(*(np.delete(values, b, axis=0) for values in clusters))
    for after, before in zip(merged, clusters, strict=True):
        after[a] = before[a] + before[b]
    return merged


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
    check_consensus_fits(n_objects)
    distinct = Draws.of(trace.labels).spread(_affordable(trace, draws))
    evidence = evidence_of(trace.posterior, trace)
    total = np.zeros((n_objects, n_objects))
    for weight, labels in zip(distinct.weights, distinct.labels.astype(np.intp), strict=True):
        levels = merge_levels(trace.posterior, labels, evidence)
        finest = len(levels)
        coarsest = min(n_clusters, finest)
        # Clusters that become one at level k are apart at the levels k + 1, …, finest.
        apart = np.clip(finest - np.maximum(levels, coarsest - 1), 0, None) / (finest - coarsest + 1)
        total += weight * apart[np.ix_(labels, labels)]
    return total


def check_consensus_fits(
    n_objects: int, way_out: str = "Use evidence_tree(), which needs no pairs, or fewer rows."
) -> None:
    """Refuse a consensus of so many objects that its pairs would not fit in memory."""
    check_fits(24 * n_objects**2, f"the distances between {n_objects} objects", way_out)


def merge_losses(
    posterior: Posterior, sizes: FloatArray, sums: FloatArray, left: IntArray, right: IntArray
) -> FloatArray:
    """Log posterior of common shapes lost by merging each pair of clusters, θ summed out; a gain is negative.

    Parameters
    ----------
    posterior
        The posterior.
    sizes, sums
        Sizes (K) and sums (K × d) of the clusters.
    left, right
        The pairs to judge, as numbers of clusters.
    """
    state = _Merger.of(posterior, sizes, sums)
    step = max(1, _BLOCK_ENTRIES // max(posterior.n_features, posterior.theta_grid.size))
    blocks = [
        _block_losses(posterior, state, left[start : start + step], right[start : start + step])
        for start in range(0, left.size, step)
    ]
    return np.concatenate(blocks) if blocks else np.empty(0)


def merge_levels(posterior: "Posterior", labels: IntArray, evidence: Evidence | None = None) -> IntArray:
    """For each two clusters of a partition, into how many the evidence tree is cut when they first are one.

    On the diagonal stands the number of clusters itself.
    """
    tree = evidence_tree(posterior, labels, evidence)
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


class _Merger(NamedTuple):
    """What all candidate merges of one partition share; where arrays depend on θ, it is their first axis."""

    sizes: FloatArray
    sums: FloatArray
    log_grown: FloatArray
    shrinkage: FloatArray
    scale: FloatArray
    gram: FloatArray
    log_weights: FloatArray

    @classmethod
    def of(cls, posterior: Posterior, sizes: FloatArray, sums: FloatArray) -> "_Merger":
        theta, n_objects = posterior.theta_grid[:, None], posterior.n_objects
        grown = 1.0 + theta * sizes
        shrinkage = theta / grown / n_objects
        scale, gram, log_scale = _SCALES[posterior.model](sums, shrinkage)
        log_grown = np.log(grown)
        log_weights = -0.5 * (posterior.n_features * log_grown.sum(axis=1) + n_objects * log_scale)
        log_weights += posterior.log_theta_prior
        return cls(sizes, sums, log_grown, shrinkage, scale, gram, log_weights - _log_sum_exp(log_weights))


def _block_losses(posterior: Posterior, state: _Merger, left: IntArray, right: IntArray) -> FloatArray:
    sizes, log_counts = state.sizes, posterior.count_weights(state.sizes.size)
    both, log_sizes = sizes[left] + sizes[right], posterior.log_size_weights
    log_prior_gain = log_counts[sizes.size - 1] - log_counts[sizes.size]
    whole, one, other = (number.astype(np.intp) for number in (both, sizes[left], sizes[right]))
    log_prior_gain = log_prior_gain + log_sizes[whole] - log_sizes[one] - log_sizes[other]
    theta = posterior.theta_grid[:, None]
    grown = 1.0 + theta * both
    log_det_change = np.log(grown) - state.log_grown[:, left] - state.log_grown[:, right]
    shrinkage = theta / grown / posterior.n_objects
    log_scale_change = _CHANGES[posterior.model](state, shrinkage, left, right)
    log_ratios = -0.5 * (posterior.n_features * log_det_change + posterior.n_objects * log_scale_change)
    # Weighted by the present conditional of θ, a ratio of sums is an average of ratios; nothing cancels.
    losses: FloatArray = -(log_prior_gain + _log_sum_exp(state.log_weights[:, None] + log_ratios))
    return losses


def _log_sum_exp(values: FloatArray) -> FloatArray:
    """Log of the sum of exponentials over the first axis."""
    highest = values.max(axis=0)
    return np.asarray(highest + np.log(np.exp(values - highest).sum(axis=0)), dtype=np.float64)


def _trace_scale(sums: FloatArray, shrinkage: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Model I: tr M (G × 1), the products of the cluster sums, and d log tr M (G)."""
    gram = sums @ sums.T / sums.shape[1]
    trace = 1.0 - shrinkage @ np.diag(gram)
    return trace[:, None], gram, sums.shape[1] * np.log(trace)


def _trace_change(state: _Merger, shrinkage: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    squares = np.diag(state.gram)
    together = squares[left] + squares[right] + 2.0 * state.gram[left, right]
    own = state.shrinkage * squares
    added = own[:, left] + own[:, right] - shrinkage * together
    return np.asarray(state.sums.shape[1] * np.log1p(added / state.scale), dtype=np.float64)


def _diagonal_scale(sums: FloatArray, shrinkage: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Model II: the diagonal of M (G × d), the squares of the cluster sums (d × K), and Σ log M_rr (G)."""
    squares = np.ascontiguousarray((sums * sums).T)
    diagonal = 1.0 - shrinkage @ squares.T
    return diagonal, squares, np.log(diagonal).sum(axis=1)


def _diagonal_change(state: _Merger, shrinkage: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    columns = np.ascontiguousarray(state.sums.T)
    squares_left, squares_right = state.gram[:, left], state.gram[:, right]
    squares_both = (columns[:, left] + columns[:, right]) ** 2
    change = np.zeros(shrinkage.shape)
    for place, diagonal in enumerate(state.scale):
        ratio = state.shrinkage[place, left] * squares_left
        ratio += state.shrinkage[place, right] * squares_right
        ratio -= shrinkage[place] * squares_both
        ratio /= diagonal[:, None]
        ratio += 1.0
        # One logarithm of a product is cheaper than many; so few factors do not overflow.
        for start in range(0, len(ratio), _FACTORS):
            change[place] += np.log(np.prod(ratio[start : start + _FACTORS], axis=0))
    return change


def _determinant_scale(sums: FloatArray, shrinkage: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Model III: M (G × d × d), Gram matrices of the cluster sums in the metric of M⁻¹, log det M (G)."""
    scatter = np.eye(sums.shape[1]) - (sums.T * shrinkage[:, None, :]) @ sums
    return scatter, sums @ np.linalg.solve(scatter, sums.T[None]), np.linalg.slogdet(scatter)[1]


def _determinant_change(state: _Merger, shrinkage: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    squares = np.ascontiguousarray(np.diagonal(state.gram, axis1=1, axis2=2))
    squares_left, squares_right, cross = squares[:, left], squares[:, right], state.gram[:, left, right]
    own_left, own_right = state.shrinkage[:, left] - shrinkage, state.shrinkage[:, right] - shrinkage
    added = own_left * squares_left + own_right * squares_right - 2.0 * shrinkage * cross
    added += (own_left * own_right - shrinkage * shrinkage) * (squares_left * squares_right - cross * cross)
    return np.asarray(np.log1p(added), dtype=np.float64)


_SCALES = {"I": _trace_scale, "II": _diagonal_scale, "III": _determinant_scale}
_CHANGES = {"I": _trace_change, "II": _diagonal_change, "III": _determinant_change}


def _start_rows(labels: IntArray) -> tuple[FloatArray, list[int]]:
    """Merges at height 0 that join the members of each starting cluster, and the nodes they end in."""
    n_objects, sizes = labels.size, np.bincount(labels)
    members = np.argsort(labels, kind="stable")
    ends = np.cumsum(sizes)
    first = np.zeros(n_objects, dtype=bool)
    first[ends - sizes] = True
    later = np.flatnonzero(~first)
    place = later - (ends - sizes)[labels[members[later]]]  # 1 for the second member of a cluster, and so on
    made = n_objects + np.arange(later.size)
    rows = np.zeros((later.size, 4))
    # The second member joins the first one, each further one the node that was made last.
    rows[:, 0] = np.where(place == 1, members[later - 1], members[later])
    rows[:, 1] = np.where(place == 1, members[later], made - 1)
    rows[:, 3] = place + 1
    last = n_objects + ends - np.arange(1, sizes.size + 1) - 1
    return rows, np.where(sizes == 1, members[ends - 1], last).tolist()


def _affordable(trace: "Trace", draws: int) -> int:
    """How many evidence trees can be made in a reasonable time."""
    clusters = float(np.mean(trace.n_clusters))
    posterior = trace.posterior
    if posterior.shapes == "own":
        cost = clusters**2 * _PARAMETER_DRAWS * posterior.n_features**2
    else:
        cost = clusters**3 / 6 * posterior.theta_grid.size * posterior.n_features
    return int(min(max(_WORK / max(cost, 1.0), _FEWEST_DRAWS), draws))
