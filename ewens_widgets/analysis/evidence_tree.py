r"""Merging clusters by evidence: losses of merges, the evidence tree, and the consensus of such trees.

Starting from a partition, usually the draw with the highest posterior, the evidence tree merges the two
clusters a, b whose merge loses least of

.. math:: \log p(B \mid Y) = \log V(K) + \sum_b \log W(n_b) + \log \sum_\theta p(\theta) L(B, \theta),

down to one cluster; V and W are those of the prior on partitions (`model.priors`). Heights are the running
loss in nats. A merge that gains counts as no loss, so the heights never decrease. The tree has the
invariance of the model, and shows structure above the clusters that all draws separate.

`merge_down` is the loop that merges clusters, with a criterion that chooses the next pair: here the smallest
loss, in `groups` the overlap. It returns a SciPy linkage matrix of the clusters.

**Own shapes.** Given θ, ν and Σ the likelihood is a product over clusters, so a merge loses

.. math:: \log\frac{V(K)}{V(K-1)} + \log\frac{W(n_a) \, W(n_b)}{W(n_a + n_b)}
    + \log m_a + \log m_b - \log m_{ab},

averaged over the parameters of draws along the chain (`OwnEvidence`), since for overlapping clusters the loss
varies between draws. Other clusters matter through their number alone, so a merge changes the losses of its
own pairs, and all others by one number.

**Common shape.** With shrinkage :math:`q_b = \theta / (1 + \theta n_b)` a merge changes the scatter matrix M
by a matrix of rank two,

.. math:: \Delta = q_a s_a s_a^T + q_b s_b s_b^T - q_{ab} (s_a + s_b)(s_a + s_b)^T = W Q W^T, \qquad
    W = [s_a, s_b], \quad Q = \begin{pmatrix} q_a - q_{ab} & -q_{ab} \\ -q_{ab} & q_b - q_{ab} \end{pmatrix}.

Models I and II need its trace or its diagonal. Model III uses :math:`\det(M + \Delta) = \det M \cdot \det(I +
Q H)`, where H holds the entries for a and b of the K × K matrix :math:`S^T M^{-1} S` of all cluster sums,
computed once a step for each θ. A candidate thus costs O(G) for models I and III and O(G d) for model II,
however many objects there are.

**Consensus.** Often the draws have more clusters than requested: fourteen small Gaussians for three kinds of
wine. The evidence tree of one draw merges them, but draws of similar posterior density can have quite
different trees. So the trees of many draws are averaged. For draw t with :math:`K_t` clusters let
:math:`a_{ij}^t(k)` be 1 if its evidence tree, cut into k clusters, keeps the objects i and j apart. Then

.. math:: D_{ij} = \frac1T \sum_t \frac{1}{K_t - K_* + 1} \sum_{k=K_*}^{K_t} a_{ij}^t(k),
    \qquad K_* = \min(K, K_t),

is the share of numbers of clusters, from that of the draw down to the K requested, at which i and j are
separate, and average linkage of D gives the tree. With :math:`K \ge K_t` for all draws D is the distance of
the draws themselves. The consensus has the invariance of the model too.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from ewens_widgets.analysis.estimates import Draws
from ewens_widgets.analysis.trees import Tree, labels_after, tree_of_distance
from ewens_widgets.arguments import check_fits
from ewens_widgets.model.likelihood import log_likelihoods_from_statistics
from ewens_widgets.model.own_shapes import ClusterStatistics, MixedStatistics, about, log_marginals
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import check_labels

if TYPE_CHECKING:
    from ewens_widgets.sampling.draws import DrawTable
    from ewens_widgets.sampling.trace import Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
AnyStatistics = ClusterStatistics | MixedStatistics
Change = Callable[[FloatArray, IntArray, IntArray], FloatArray]

_BLOCK_ENTRIES = 500_000  # pairs × θ × features at once, which bounds the memory
_CONSENSUS_DRAWS = 100
_FEWEST_DRAWS = 5
_PARAMETER_DRAWS = 12  # draws of (θ, ν, Σ) that the losses of a tree are averaged over
_WORK = 1e8  # candidate merges × θ × features that all trees of a consensus may cost: a few seconds


@dataclass(frozen=True, eq=False)
class Evidence:
    """Losses of log posterior by merging clusters: here with a common shape, θ summed out."""

    posterior: Posterior

    def losses(self, clusters: AnyStatistics, left: IntArray, right: IntArray) -> FloatArray:
        """Log posterior lost by merging pairs of clusters, negative where a merge gains."""
        posterior, sizes = self.posterior, clusters.sizes
        n_objects, n_features = posterior.n_objects, posterior.n_features
        if posterior.centre == "unknown" or posterior.total is not None:
            return self._losses_of_orbit(clusters, left, right) + self._other_losses(clusters, left, right)
        theta = posterior.theta_grid[:, None]
        log_grown, shrinkage = np.log1p(theta * sizes), theta / (1.0 + theta * sizes) / n_objects
        log_scale, change = _FORMS[posterior.model](clusters.sums, shrinkage)
        log_weights = -0.5 * (n_features * log_grown.sum(axis=1) + n_objects * log_scale)
        log_weights += posterior.log_theta_prior
        log_weights -= logsumexp(log_weights)

        def lost(a: IntArray, b: IntArray) -> FloatArray:
            both = theta * (sizes[a] + sizes[b])
            log_det = np.log1p(both) - log_grown[:, a] - log_grown[:, b]
            merged = theta / (1.0 + both) / n_objects
            log_ratios = -0.5 * (n_features * log_det + n_objects * change(merged, a, b))
            # Weighted by the conditional of θ, a ratio of sums is an average of ratios; nothing cancels.
            return np.asarray(-logsumexp(log_weights[:, None] + log_ratios, axis=0))

        numbers = _in_blocks(lost, left, right, theta.size * n_features)
        return numbers + self._other_losses(clusters, left, right)

    def _losses_of_orbit(self, clusters: AnyStatistics, left: IntArray, right: IntArray) -> FloatArray:
        """The same without the prior where the centre is unknown or cells are missing.

        Each merged partition is evaluated.
        """
        posterior, (sizes, sums), total = self.posterior, clusters[:2], self.posterior.total

        def log_total(sizes: FloatArray, sums: FloatArray) -> FloatArray:
            known = posterior.n_objects, posterior.theta_grid, posterior.model, posterior.centre, total
            values = log_likelihoods_from_statistics(sizes, sums, *known)
            return np.asarray(logsumexp(values + posterior.log_theta_prior, axis=-1))

        def lost(a: IntArray, b: IntArray) -> FloatArray:
            rows, merged = np.arange(a.size), []
            for values in (sizes, sums):
                all_values = np.repeat(values[None], a.size, axis=0)
                all_values[rows, a] += values[b]
                all_values[rows, b] = 0.0
                merged.append(all_values)
            return log_total(sizes, sums) - log_total(merged[0], merged[1])

        return _in_blocks(lost, left, right, posterior.theta_grid.size * sums.size)

    def all_losses(self, clusters: AnyStatistics) -> FloatArray:
        """Losses of all pairs, above the diagonal; infinite elsewhere."""
        losses = np.full((clusters.sizes.size, clusters.sizes.size), np.inf)
        left, right = np.triu_indices(clusters.sizes.size, k=1)
        losses[left, right] = self.losses(clusters, left, right)
        return losses

    def losses_after(self, clusters: AnyStatistics, losses: FloatArray, a: int, b: int) -> FloatArray:
        """Losses of all pairs of the new `clusters`, after b was merged into a; `losses` are those before."""
        del losses, a, b  # With θ summed out, a merge changes the losses of all pairs.
        return self.all_losses(clusters)

    def _other_losses(self, clusters: AnyStatistics, left: IntArray, right: IntArray) -> FloatArray:
        """Log prior, and likelihood of the categorical columns, that merges lose."""
        posterior, sizes = self.posterior, clusters.sizes
        whole = sizes.astype(np.intp)
        log_counts, log_sizes = posterior.count_weights(sizes.size), posterior.log_size_weights
        lost = log_sizes[whole[left]] + log_sizes[whole[right]] - log_sizes[whole[left] + whole[right]]
        if isinstance(clusters, MixedStatistics):
            counts, log_marginals = clusters.counts, posterior.columns.log_marginals
            apart = log_marginals(counts)
            lost = lost + apart[left] + apart[right] - log_marginals(counts[left] + counts[right])
        return np.asarray(log_counts[sizes.size] - log_counts[sizes.size - 1] + lost, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class OwnEvidence(Evidence):
    """Losses with own shapes, averaged over draws of the parameters, along the first axis of each array."""

    theta: FloatArray
    nu: FloatArray
    sigma: FloatArray = field(repr=False)
    centres: FloatArray | None = field(default=None, repr=False)

    def losses(self, clusters: AnyStatistics, left: IntArray, right: IntArray) -> FloatArray:
        """Log posterior lost by merging pairs of clusters, averaged over the draws."""
        apart = self._log_marginals(clusters)

        def together(a: IntArray, b: IntArray) -> FloatArray:
            return self._log_marginals(type(clusters)(*(values[a] + values[b] for values in clusters)))

        lost = _in_blocks(together, left, right, self.theta.size * self.posterior.n_features**2)
        return apart[left] + apart[right] - lost + self._other_losses(clusters, left, right)

    def losses_after(self, clusters: AnyStatistics, losses: FloatArray, a: int, b: int) -> FloatArray:
        """As for common shapes; only the pairs of the merged cluster are judged again."""
        losses = np.delete(np.delete(losses, b, axis=0), b, axis=1)
        count = clusters.sizes.size
        log_counts = self.posterior.count_weights(count + 1)
        if count > 1:
            losses += 2.0 * log_counts[count] - log_counts[count - 1] - log_counts[count + 1]
        others = np.delete(np.arange(count), a)
        left, right = np.minimum(others, a), np.maximum(others, a)
        losses[left, right] = self.losses(clusters, left, right)
        return losses

    def _log_marginals(self, clusters: AnyStatistics) -> FloatArray:
        model, numbers = self.posterior.model, ClusterStatistics(*clusters[:3])
        if self.centres is not None:
            numbers = about(numbers, self.centres, model)
        values = log_marginals(numbers, self.theta, self.nu, self.sigma, model)
        return np.asarray(values.mean(axis=0), dtype=np.float64)


def evidence_of(
    posterior: Posterior, draws: "DrawTable", start: int = 0, most: int = _PARAMETER_DRAWS
) -> Evidence:
    """Losses of merges for a posterior's family of shapes.

    With own shapes, losses are averaged over the parameters of `most` draws at most, evenly spaced from
    `start` on. A dozen suffice for the order of merges; the loss of merging two overlapping clusters then has
    an error of a few nats.
    """
    if posterior.shapes == "common":
        return Evidence(posterior)
    count = len(draws.theta) - start
    if count < 1:
        raise ValueError(
            "with own shapes, losses are averaged over draws of the parameters; the trace has none."
        )
    chosen = start + np.unique(np.linspace(0, count - 1, min(most, count)).astype(np.intp))
    packed = draws.column("sigma")[chosen]
    centres = posterior.shift(packed) if posterior.centre == "unknown" else None
    nu = draws.column("nu")[chosen]
    return OwnEvidence(posterior, draws.theta[chosen], nu, posterior.scale(packed), centres)


def merge_down(
    evidence: Evidence, clusters: AnyStatistics, choose: Callable[[FloatArray], tuple[int, int]]
) -> FloatArray:
    """Merge clusters two by two down to one; the SciPy linkage of the clusters, with losses as its heights.

    The criterion `choose` gets the losses of all pairs (above the diagonal) and returns the next pair a < b.
    The merged cluster keeps the number a; the clusters after b move up by one.
    """
    count, rows = clusters.sizes.size, []
    nodes = list(range(count))
    losses = evidence.all_losses(clusters)
    while len(losses) > 1:
        a, b = choose(losses)
        clusters = merged(clusters, a, b)
        rows.append((*sorted((nodes[a], nodes.pop(b))), losses[a, b], clusters.sizes[a]))
        nodes[a] = count + len(rows) - 1
        losses = evidence.losses_after(clusters, losses, a, b)
    return np.array(rows, dtype=np.float64).reshape(-1, 4)


def merged(clusters: AnyStatistics, a: int, b: int) -> AnyStatistics:
    """Statistics of the clusters after b was merged into a < b."""
    together = type(clusters)(*(np.delete(values, b, axis=0) for values in clusters))
    for after, before in zip(together, clusters, strict=True):
        after[a] = before[a] + before[b]
    return together


def evidence_merges(posterior: Posterior, labels: IntArray, evidence: Evidence | None = None) -> FloatArray:
    """Merge the clusters of a partition, each time the pair that loses least log posterior."""
    if evidence is None:
        if posterior.shapes == "own":
            raise ValueError(
                "with own shapes, the loss of a merge depends on draws of the parameters: use "
                "trace.evidence_tree(), or give evidence=evidence_of(posterior, trace)."
            )
        evidence = Evidence(posterior)

    def cheapest(losses: FloatArray) -> tuple[int, int]:
        a, b = np.unravel_index(int(np.argmin(losses)), losses.shape)
        return int(a), int(b)

    return merge_down(evidence, posterior.mixed_statistics(labels), cheapest)


def evidence_tree(posterior: Posterior, labels: ArrayLike, evidence: Evidence | None = None) -> Tree:
    """Merge the clusters of a partition one by one, losing as little log posterior as possible.

    Parameters
    ----------
    posterior
        The posterior that gives the losses.
    labels
        The partition to start from. Its clusters are joined at height 0.
    evidence
        Losses of merges. Required for own shapes, where they depend on draws of the parameters:
        ``evidence_of(posterior, trace)``.
    """
    start = check_labels(labels, posterior.n_objects)
    joined, nodes = _join_members(start)
    merges = evidence_merges(posterior, start, evidence)
    nodes = np.concatenate([nodes, start.size + len(joined) + np.arange(len(merges))])
    merges[:, :2] = np.sort(nodes[merges[:, :2].astype(np.intp)], axis=1)
    merges[:, 2] = np.cumsum(np.maximum(merges[:, 2], 0.0))
    linkage = np.vstack([joined, merges])
    return Tree(linkage, "evidence", "evidence", int(start.max()) + 1, posterior.coordinates)


def consensus_tree(trace: "Trace", n_clusters: int, draws: int = _CONSENSUS_DRAWS) -> Tree:
    """Average the evidence trees of draws from their own clusters down to `n_clusters`.

    At most `draws` draws are used, evenly spaced along the chain; fewer if they have many clusters, whose
    trees take long.
    """
    distance = consensus_distance(trace, n_clusters, draws)
    method = f"consensus of evidence trees down to {n_clusters}"
    return tree_of_distance(distance, "average", trace.best_posterior.coordinates, method)


def consensus_distance(trace: "Trace", n_clusters: int, draws: int = _CONSENSUS_DRAWS) -> FloatArray:
    """Share of numbers of clusters, from the draws' down to `n_clusters`, at which each pair is separate."""
    if n_clusters < 1 or draws < 1:
        raise ValueError(
            f"n_clusters and the number of draws must be at least 1; got {n_clusters} and {draws}."
        )
    if not len(trace):
        raise ValueError("the trace holds no draws; sample some, or drop fewer as burn-in.")
    n_objects, posterior = trace.n_objects, trace.best_posterior
    check_consensus_fits(n_objects)
    mean = float(np.mean(trace.n_clusters))
    if posterior.shapes == "own":
        cost = mean**2 * _PARAMETER_DRAWS * posterior.n_features**2
    else:
        cost = mean**3 / 6 * posterior.theta_grid.size * posterior.n_features
    distinct = Draws.of(trace.labels).spread(int(min(max(_WORK / max(cost, 1.0), _FEWEST_DRAWS), draws)))
    evidence = evidence_of(posterior, trace)
    total = np.zeros((n_objects, n_objects))
    for weight, labels in zip(distinct.weights, distinct.labels.astype(np.intp), strict=True):
        merges = evidence_merges(posterior, labels, evidence)
        finest = len(merges) + 1
        cuts = [labels_after(merges, step) for step in range(finest - min(n_clusters, finest) + 1)]
        apart = np.mean([cut[:, None] != cut for cut in cuts], axis=0)
        total += weight * apart[np.ix_(labels, labels)]
    return total


def check_consensus_fits(
    n_objects: int, way_out: str = "Use evidence_tree(), which needs no pairs, or fewer rows."
) -> None:
    """Refuse a consensus whose pairs of objects would not fit in memory."""
    check_fits(24 * n_objects**2, f"the distances between {n_objects} objects", way_out)


def _trace_form(sums: FloatArray, shrinkage: FloatArray) -> tuple[FloatArray, Change]:
    """Model I: d log tr M for each θ, and its change by merges."""
    gram = sums @ sums.T / sums.shape[1]
    squares = np.diag(gram)
    trace = 1.0 - shrinkage @ squares

    def change(merged: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
        added = (shrinkage * squares)[:, left] + (shrinkage * squares)[:, right]
        added -= merged * (squares[left] + squares[right] + 2.0 * gram[left, right])
        return np.asarray(sums.shape[1] * np.log1p(added / trace[:, None]), dtype=np.float64)

    return sums.shape[1] * np.log(trace), change


def _diagonal_form(sums: FloatArray, shrinkage: FloatArray) -> tuple[FloatArray, Change]:
    """Model II: the sum of the logs of the diagonal of M for each θ, and its change by merges."""
    squares = sums * sums
    diagonal = 1.0 - shrinkage @ squares

    def change(merged: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
        added = shrinkage[:, left, None] * squares[left] + shrinkage[:, right, None] * squares[right]
        added -= merged[:, :, None] * (sums[left] + sums[right]) ** 2
        return np.asarray(np.log1p(added / diagonal[:, None, :]).sum(axis=2), dtype=np.float64)

    return np.log(diagonal).sum(axis=1), change


def _determinant_form(sums: FloatArray, shrinkage: FloatArray) -> tuple[FloatArray, Change]:
    """Model III: log det M for each θ, and its change by merges, det(I + Q H) above."""
    scatter = np.eye(sums.shape[1]) - (sums.T * shrinkage[:, None, :]) @ sums
    gram = sums @ np.linalg.solve(scatter, sums.T[None])
    squares = np.ascontiguousarray(np.diagonal(gram, axis1=1, axis2=2))

    def change(merged: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
        squares_left, squares_right, cross = squares[:, left], squares[:, right], gram[:, left, right]
        own_left, own_right = shrinkage[:, left] - merged, shrinkage[:, right] - merged
        added = own_left * squares_left + own_right * squares_right - 2.0 * merged * cross
        added += (own_left * own_right - merged * merged) * (squares_left * squares_right - cross * cross)
        return np.asarray(np.log1p(added), dtype=np.float64)

    return np.asarray(np.linalg.slogdet(scatter)[1]), change


_FORMS = {"I": _trace_form, "II": _diagonal_form, "III": _determinant_form}


def _join_members(labels: IntArray) -> tuple[FloatArray, IntArray]:
    """Merges at height 0 that join the members of each cluster, and the nodes they end in; without loops."""
    members = np.argsort(labels, kind="stable")
    own = labels[members]
    later = np.flatnonzero(own[1:] == own[:-1]) + 1
    # The second member joins the first one, each further one the node that was made last.
    nodes = members.copy()
    nodes[later] = labels.size + np.arange(later.size)
    pairs = np.sort(np.column_stack([members[later], nodes[later - 1]]), axis=1)
    sizes = later - np.searchsorted(own, own[later]) + 1
    rows = np.column_stack([pairs, np.zeros(later.size), sizes]).astype(np.float64)
    return rows, nodes[np.append(np.flatnonzero(np.diff(own)), labels.size - 1)]


def _in_blocks(
    loss: Callable[[IntArray, IntArray], FloatArray], left: IntArray, right: IntArray, entries: int
) -> FloatArray:
    """Losses of pairs, computed for some of them at a time; each takes this number of entries."""
    step = max(1, _BLOCK_ENTRIES // entries)
    parts = (loss(left[k : k + step], right[k : k + step]) for k in range(0, left.size, step))
    return np.concatenate([np.empty(0), *parts])
