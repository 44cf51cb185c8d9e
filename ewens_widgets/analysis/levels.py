r"""From many small clusters to those that are told apart: which of them the draws exchange objects between.

Real clusters are no Gaussians. A long tail, a bend or a skewed column is described by several of them, so the
draws have more clusters than there are groups, and their number says little. But the parts of one group have
no border: from draw to draw, objects go over from one to the other. That is what the rule looks at.

**Exchange.** Let a and b be clusters of a partition that stands for the draws (the point estimate), and for
an object i let :math:`r_i(k)` be the share of its companions, averaged over draws, that belong to cluster k.
The share that is exchanged between a and b is that of the cluster which loses more,

.. math:: e_{ab} = \max\Big(\frac1{n_a} \sum_{i \in a} \frac{r_i(b)}{r_i(a) + r_i(b)}, \;
          \frac1{n_b} \sum_{i \in b} \frac{r_i(a)}{r_i(a) + r_i(b)}\Big) .

Merged clusters keep their parts: the shares of the parts are added, so a bent group stays bent. This is the
idea of Hennig (2010) to merge components of a mixture that misclassify each other's objects, with the
posterior draws in place of the estimated densities: small components, whose densities fit their own few
objects too well, look separate by their densities, but the draws do not keep them.

**The rule.** Two clusters are merged if they exchange at least `MIXED` (a quarter): nobody could say who
belongs where. If they exchange at least `DOUBTFUL` (0.15), they are merged where that loses little: at most
`PER_PARAMETER` nats for each free parameter of a cluster (d + d(d+1)/2 of them in model III, 2d in II, d + 1
in I), or at most `TIMES` as much as a merge that was already made, for where Gaussians fit badly, a loss of
so many nats has been shown not to mean a group (up to two nats never do). The loss is that of one Gaussian
cluster in place of two, averaged over many draws of the parameters: a dozen leave several nats to chance, and
then the seed decides. Of several such pairs the one that exchanges most is merged first. A pair that is kept
apart, because the merge would lose much, does not keep others from being merged that exchange less.

**Long or bent groups.** Clusters are merged on, down to one, for the table of levels. If a level is reached
by exchanges of at least `SEEN` each, if then no two clusters exchange anything (`GONE`), and if, as
Gaussians, two of them would nearly as well be one (merging them gains, or loses far less than joining their
parts did), then these are groups that no ellipse describes, such as half-moons, and that level is the answer.

**Who belongs where.** Where merges lost something, clusters have longer tails than Gaussians, often on one
side. The shares :math:`r_i` are then averaged with the responsibilities of a mixture of skewed Student
distributions, a cluster for each, that is fitted from them by a few steps of expectation and maximisation
(Peel & McLachlan 2000; Browne & McNicholas 2015):

.. math:: y = \mu_k + w \gamma_k + \sqrt{w} \, \Sigma_k^{1/2} z, \qquad
          w \sim \operatorname{InvGamma}(\nu / 2, \nu / 2), \quad z \sim N(0, I),

with shapes :math:`\Sigma_k` pooled towards a common one and skewness :math:`\gamma_k` towards none.
Everything is deterministic, and invariant like the model.

The numbers were chosen on the simulations of `paper.simulations` (seeds `tune`) and judged on others.

References: C. Hennig (2010), Methods for merging Gaussian mixture components, Adv. Data Anal. Classif. 4,
3–34; D. Peel & G. J. McLachlan (2000), Robust mixture modelling using the t distribution, Stat. Comput. 10,
339–348; R. P. Browne & P. D. McNicholas (2015), A mixture of generalized hyperbolic distributions, Can. J.
Stat. 43, 176–198.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from ewens_widgets.analysis.evidence_tree import Evidence, merged_statistics
from ewens_widgets.memory import check_fits
from ewens_widgets.model.checks import ModelName
from ewens_widgets.model.own_shapes import ClusterStatistics

__all__ = [
    "DOUBTFUL",
    "GONE",
    "MIXED",
    "PER_PARAMETER",
    "SEEN",
    "TIMES",
    "Level",
    "LevelReading",
    "merge_levels_down",
    "parameters_of_cluster",
    "read_levels",
    "robust_memberships",
    "shared_companions",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MIXED = 0.25
DOUBTFUL = 0.15
PER_PARAMETER = 0.75
TIMES = 2.0
SEEN = 0.02
GONE = 0.005

_SMALL = 1.0  # A loss of so few nats never speaks for two groups.
_MISFIT = 5.0  # Nats lost by merges in all, from which on Gaussians do not fit.
_FREEDOM = 5.0  # degrees of freedom of the skewed Student mixture
_STEPS = 50  # of expectation and maximisation, at most
_CHEAP = 0.25  # … of what was lost by joining the parts of bent groups, if these lie side by side
_GROUP = 0.05  # Share of the objects that makes a group.
_CLEARER = 2.0  # A second level's next merge loses so many times what any before it did …
_CLEAR = 0.05  # … and there less than this is exchanged.
_DRAWS = 300, 2000  # Draws whose companions are counted, fewest and most …
_OBJECTS = 2_000_000  # … times objects.


def shared_companions(draws: NDArray[np.integer], labels: IntArray) -> FloatArray:
    """Average share of each object's companions that belong to each cluster of a partition (n × K).

    An object that is alone in a draw counts for its own cluster.
    """
    n_objects, width = labels.size, int(labels.max()) + 1
    check_fits(
        24 * n_objects * width,
        f"the shares of {n_objects} objects in {width} clusters",
        "Run longer: so many clusters are a sign that the chain has not converged.",
    )
    own = np.zeros((n_objects, width))
    own[np.arange(n_objects), labels] = 1.0
    total = np.zeros((n_objects, width))
    most = min(int(np.clip(_OBJECTS / n_objects, *_DRAWS)), len(draws))
    chosen = np.unique(np.linspace(0, len(draws) - 1, most).astype(np.intp))
    for row in draws[chosen].astype(np.intp):
        counts = np.bincount(row * width + labels, minlength=(int(row.max()) + 1) * width).reshape(-1, width)
        companions = counts[row] - own
        number = companions.sum(axis=1, keepdims=True)
        total += np.where(number > 0, companions / np.maximum(number, 1.0), own)
    return total / chosen.size


@dataclass(frozen=True, eq=False)
class Level:
    """A number of clusters, and what stands between it and the next smaller one.

    Attributes
    ----------
    parts
        For each cluster, which clusters of the point estimate it is made of.
    sizes
        Numbers of objects, in the same order.
    pair
        The two clusters that are merged next; None at one cluster.
    exchanged, loss
        Share of objects that the draws exchange between these two, and log posterior that the merge loses.
    """

    parts: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    pair: tuple[int, int] | None
    exchanged: float
    loss: float

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.parts)

    def labels(self, start: IntArray) -> IntArray:
        """Labels at this level, from those of the point estimate."""
        return self.cluster_of_part()[start]

    def cluster_of_part(self) -> IntArray:
        """For each cluster of the point estimate, the cluster that it is part of here."""
        place = np.empty(sum(map(len, self.parts)), dtype=np.intp)
        for number, members in enumerate(self.parts):
            place[list(members)] = number
        return place

    def gather(self, shares: FloatArray) -> FloatArray:
        """Shares of the clusters (n × K) from those of their parts."""
        return np.column_stack([shares[:, list(members)].sum(axis=1) for members in self.parts])


def merge_levels_down(
    shares: FloatArray,
    start: IntArray,
    clusters: ClusterStatistics,
    evidence: Evidence,
    free_parameters: float,
) -> tuple[Level, ...]:
    """Merge clusters down to one: by the rule, then what is exchanged most, then what loses least.

    Parameters
    ----------
    shares
        `shared_companions` of the partition to start from.
    start
        Its canonical labels.
    clusters
        Statistics of its clusters.
    evidence
        What merges lose.
    free_parameters
        Number of free parameters of a cluster (`parameters_of_cluster`).
    """
    parts: list[tuple[int, ...]] = [(cluster,) for cluster in range(shares.shape[1])]
    columns = [shares[:, cluster] for cluster in range(shares.shape[1])]
    members = [np.flatnonzero(start == cluster) for cluster in range(shares.shape[1])]
    exchange = np.zeros((len(parts), len(parts)))
    for second in range(len(parts)):
        exchange[:second, second] = [_exchanged(columns, members, first, second) for first in range(second)]
    levels: list[Level] = []
    largest = 0.0
    while len(parts) > 1:
        left, right = np.triu_indices(len(parts), k=1)
        order = np.argsort(-exchange[left, right], kind="stable")
        left, right = left[order], right[order]
        shown = exchange[left, right]
        # All pairs where nothing is seen to be exchanged; else those that the rule may merge, or the first.
        count = max(int(np.sum(shown >= DOUBTFUL)), 1) if shown[0] >= SEEN else shown.size
        losses = evidence.losses(clusters, left[:count], right[:count])
        if shown[0] >= SEEN:
            one = [_is_one(*pair, largest, free_parameters) for pair in zip(shown, losses, strict=False)]
            best = one.index(True) if any(one) else 0
        else:
            best = int(np.argmin(losses))
        a, b, loss = int(left[best]), int(right[best]), float(losses[best])
        largest = max(largest, loss)
        sizes = tuple(map(len, members))
        levels.append(Level(tuple(parts), sizes, (a, b), float(shown[best]), loss))
        parts[a] += parts.pop(b)
        columns[a] = columns[a] + columns.pop(b)
        members[a] = np.concatenate([members[a], members.pop(b)])
        clusters = merged_statistics(clusters, a, b)
        exchange = np.delete(np.delete(exchange, b, axis=0), b, axis=1)
        for other in range(len(parts)):
            if other != a:
                exchange[min(a, other), max(a, other)] = _exchanged(columns, members, a, other)
    levels.append(Level(tuple(parts), (start.size,), None, float("nan"), float("nan")))
    return tuple(levels)


def _exchanged(columns: Sequence[FloatArray], members: Sequence[IntArray], a: int, b: int) -> float:
    """The share that the cluster which loses more gives away, e_ab."""
    shares = []
    for home, away in ((a, b), (b, a)):
        here, there = columns[home][members[home]], columns[away][members[home]]
        both = here + there
        shares.append(float(np.mean(np.divide(there, both, out=np.zeros_like(both), where=both > 0))))
    return max(shares)


def _is_one(exchanged: float, loss: float, largest: float, free_parameters: float) -> bool:
    """Whether the rule merges a pair, where the costliest merge so far lost `largest`."""
    little = max(TIMES * max(largest, _SMALL), PER_PARAMETER * free_parameters)
    return bool(exchanged >= MIXED or (exchanged >= DOUBTFUL and loss <= little))


def parameters_of_cluster(n_features: int, model: ModelName) -> int:
    """Number of free parameters of a cluster: those of its centre and of its covariance."""
    covariance = {"I": 1, "II": n_features, "III": n_features * (n_features + 1) // 2}[model]
    return n_features + covariance


class LevelReading(NamedTuple):
    """What the levels say.

    Attributes
    ----------
    chosen
        Place of the level that is the answer.
    second
        Place of another good one, or None.
    bent
        Whether the answer was found through what is never exchanged: long or bent groups.
    lost
        Nats that the merges down to the answer lost; none if they were gains.
    """

    chosen: int
    second: int | None
    bent: bool
    lost: float


def read_levels(levels: Sequence[Level], free_parameters: float) -> LevelReading:
    """Choose a level by the rule above, and another one that stands out.

    Parameters
    ----------
    levels
        What `merge_levels_down` found.
    free_parameters
        Number of free parameters of a cluster (`parameters_of_cluster`).
    """
    usual, largest = 0, 0.0
    while levels[usual].pair is not None:
        level = levels[usual]
        if not _is_one(level.exchanged, level.loss, largest, free_parameters):
            break
        largest = max(largest, level.loss)
        usual += 1
    bent = _bent_level(levels, usual)
    chosen = usual if bent is None else bent
    second = _clear_level(levels, usual) if bent is None else usual
    return LevelReading(chosen, second, bent is not None, _lost(levels[:chosen]))


def _lost(levels: Sequence[Level]) -> float:
    return sum(max(level.loss, 0.0) for level in levels)


def _bent_level(levels: Sequence[Level], usual: int) -> int | None:
    """Find a level with clusters that exchange nothing, though as Gaussians some would rather be one."""
    place = usual
    while levels[place].pair is not None and levels[place].exchanged >= SEEN:
        place += 1
    level = levels[place]
    if place < usual + 2 or level.pair is None or level.exchanged > GONE:
        return None
    # A few outliers are cheap to merge too, but they are no group, and not made of several ellipses.
    parts_before = levels[usual].cluster_of_part()
    ellipses = [np.unique(parts_before[list(level.parts[cluster])]).size for cluster in level.pair]
    if max(ellipses) < 2 or min(level.sizes[cluster] for cluster in level.pair) < _GROUP * sum(level.sizes):
        return None
    within = max(earlier.loss for earlier in levels[usual:place])
    return place if level.loss < _CHEAP * max(within, 0.0) else None


def _clear_level(levels: Sequence[Level], chosen: int) -> int | None:
    """Find the coarser level whose next merge loses far more than any since the answer: the widest gap."""
    best, widest = None, 0.0
    for place in range(chosen + 1, len(levels) - 1):
        before = max(level.loss for level in levels[chosen:place])
        gap = levels[place].loss - before
        if gap > max(widest, (_CLEARER - 1.0) * max(before, 1.0)) and levels[place].exchanged < _CLEAR:
            best, widest = place, gap
    return best


def robust_memberships(
    coordinates: FloatArray, shares: FloatArray, model: ModelName, lost: float
) -> FloatArray:
    """Probabilities of the objects for clusters (n × K): their shares, or averaged with a skewed mixture's.

    Parameters
    ----------
    coordinates
        Canonical coordinates.
    shares
        Shares of the clusters in the objects' companions.
    model
        Covariance model.
    lost
        Nats that merges lost; above a few, Gaussians do not fit.
    """
    own = shares / shares.sum(axis=1, keepdims=True)
    if own.shape[1] == 1 or lost <= _MISFIT:
        return np.asarray(own, dtype=np.float64)
    found = own
    scale, inverse = np.ones_like(own), np.ones_like(own)
    for _ in range(_STEPS):
        before = found
        found, scale, inverse = _student_step(coordinates, found, scale, inverse, model)
        if np.abs(found - before).max() < 1e-4:
            break
    return np.asarray(0.5 * (own + found), dtype=np.float64)


def _student_step(
    Y: FloatArray, found: FloatArray, scale: FloatArray, inverse: FloatArray, model: ModelName
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """One step: centres, skewness and shapes from memberships and from means of w and 1/w, and new ones."""
    n_objects, d = Y.shape
    sizes = found.sum(axis=0) + 1e-9
    centres, skewness = np.empty((sizes.size, d)), np.empty((sizes.size, d))
    scatters = np.empty((sizes.size, d, d))
    for cluster, size in enumerate(sizes):
        weights = found[:, cluster] * inverse[:, cluster]
        total, spread = weights.sum() + 1e-12, float(found[:, cluster] @ scale[:, cluster])
        mode, mean = weights @ Y / total, found[:, cluster] @ Y / size
        # d objects more without skewness: it is not read off a few.
        skewness[cluster] = size * (mean - mode) / (max(spread - size**2 / total, 0.0) + d)
        centres[cluster] = mode - skewness[cluster] * size / total
        gaps = Y - centres[cluster]
        drift = np.outer(found[:, cluster] @ gaps, skewness[cluster])
        scatter = (gaps * weights[:, None]).T @ gaps - drift - drift.T
        scatters[cluster] = _in_form(scatter + spread * np.outer(skewness[cluster], skewness[cluster]), model)
    common = scatters.sum(axis=0) / n_objects
    likeness, order = 2.0 * d, 0.5 * (_FREEDOM + d)
    log_weights, scale, inverse = np.empty_like(found), np.empty_like(found), np.empty_like(found)
    for cluster, size in enumerate(sizes):
        shape = (likeness * common + scatters[cluster]) / (likeness + size) + 1e-9 * np.eye(d)
        root = np.linalg.cholesky(shape)
        whitened = np.linalg.solve(root, (Y - centres[cluster]).T)
        skew = np.linalg.solve(root, skewness[cluster])
        # w, given an object, is generalised inverse Gaussian.
        forms, pull = _FREEDOM + np.sum(whitened * whitened, axis=0), max(float(skew @ skew), 1e-12)
        ratio, argument = np.sqrt(forms / pull), np.sqrt(forms * pull)
        log_k = _log_bessel(order, argument)
        inverse[:, cluster] = np.exp(_log_bessel(order + 1.0, argument) - log_k) / ratio
        mean = ratio * np.exp(_log_bessel(order - 1.0, argument) - log_k)
        # Jensen's inequality, against rounding: scatters would else not be positive.
        scale[:, cluster] = np.maximum(mean, 1.0 / inverse[:, cluster])
        log_weights[:, cluster] = np.log(size) - np.log(np.diag(root)).sum()
        log_weights[:, cluster] += skew @ whitened + log_k - order * np.log(ratio)
    log_weights -= logsumexp(log_weights, axis=1, keepdims=True)
    return np.exp(log_weights), scale, inverse


def _log_bessel(order: float, x: FloatArray) -> FloatArray:
    """Log of Bessel's K, orders of 2 and more, by Debye's expansion: to 0.01, also where K overflows."""
    z = x / order
    root = np.sqrt(1.0 + z * z)
    slope = (3.0 / root - 5.0 / root**3) / 24.0
    log_ratio = np.log(z / (1.0 + root))
    return np.asarray(
        0.5 * np.log(np.pi / (2.0 * order))
        - order * (root + log_ratio)
        - 0.5 * np.log(root)
        + np.log1p(-slope / order)
    )


def _in_form(scatter: ArrayLike, model: ModelName) -> FloatArray:
    """A scatter matrix as the model sees it: whole (III), its diagonal (II), or one variance (I)."""
    matrix = np.asarray(scatter, dtype=np.float64)
    if model == "III":
        return matrix
    diagonal = np.diag(matrix)
    return np.diag(diagonal if model == "II" else np.full_like(diagonal, diagonal.mean()))
