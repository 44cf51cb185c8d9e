r"""Groups of every draw: components that overlap are merged, draw by draw.

Real groups are not Gaussian, so a draw has more Gaussian components than there are groups. This module merges
the components of each draw that overlap. Every draw then has a partition into groups beside its components,
and whatever holds for partitions holds for groups: the posterior probability of their number, membership
probabilities, a point estimate. The probabilities include the uncertainty about the number.

**Overlap.** Let :math:`r_i(k)` be the probability that object i belongs to component k of a draw, given all
other objects and the parameters of that draw (the weights of a Gibbs step), and

.. math:: e_{ab} = \max\Big(\frac1{n_a} \sum_{i \in a} \frac{r_i(b)}{r_i(a) + r_i(b)}, \;
          \frac1{n_b} \sum_{i \in b} \frac{r_i(a)}{r_i(a) + r_i(b)}\Big),

the share of its objects that the component which loses more may lose to the other one (Hennig 2010). A small
component fits its own few objects too well and looks separate, but other draws do not have it. So a second
overlap has the draws as its evidence: :math:`r_i(k)` is then the share of the companions of i, averaged over
all draws, that belong to k. An object that is in b with probability e is in different components in two draws
with probability about 2e. So the overlap of two components is the larger of :math:`e_{ab}` from the
parameters and half of :math:`e_{ab}` from the companions. The pair with the largest overlap is merged, its
columns of r are added, and so on: a bent group is a chain of components.

**How much overlap?** The groups of a draw at a threshold τ are those left when no overlap reaches τ. For two
that would lose less than `EVIDENCE` nats of log posterior as one Gaussian, a third of τ is enough. Where
components are groups, or overlap much within groups and little between them, the groups are the same over a
range of τ. Where one group is a continuum of components, a bent one or a box, they change with τ as long as
it is cut somewhere. So the answer uses the largest τ, from `LARGEST` downwards, at which the groups do not
depend on it: those at τ and at `FACTOR` τ have an adjusted Rand index of at least `SAME`, averaged over
draws. The curve of τ is part of the answer.

At a small τ everything is one group in any data. So one group is the answer at a τ below `LARGEST` only if
the index at `LARGEST` is below `UNSTABLE`. If no τ qualifies, `LARGEST` is used, and the verdict says that
the number depends on it. A smaller τ with several stable groups is preferred if these are long or bent: one
Gaussian for the two closest would lose less log posterior than one Gaussian in the place of two components
did within a group.

**How probable is the number?** At one threshold nearly all draws may have the same number of groups, and
still the number be wrong. So the stated probabilities take τ as unknown, with the prior

.. math:: \Pr(\tau < e) = \frac{e}{e + 0.05},

the probability that two components with overlap e are one group: even at `EVEN`, 5 %. A number that is real
stays the same over a long range of τ, and counts in proportion to it. With :math:`s_t(g)` the prior
probability of the thresholds at which draw t has g groups, and :math:`S(g)` its average over draws,

.. math:: P(g) = \frac1T \sum_t \frac{s_t(g) \, S(g)}{\sum_h s_t(h) \, S(h)} .

The constants were chosen on simulated data (`benchmarks/rules.py`) and judged on others. The result is
deterministic given the draws and has the invariance of the model.

Reference: C. Hennig (2010), Methods for merging Gaussian mixture components, Adv. Data Anal. Classif. 4,
3–34.
"""

from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from ewens_widgets.analysis.agreement import adjusted_rand
from ewens_widgets.analysis.evidence_tree import evidence_of, merge_down, merged
from ewens_widgets.analysis.predictive import member_log_weights
from ewens_widgets.analysis.similarity import representative_rows

if TYPE_CHECKING:
    from ewens_widgets.sampling.trace import Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

LARGEST = 0.1
FACTOR = 3.0
EVIDENCE = 3.0  # Nats: odds of 20.
SAME, UNSTABLE = 0.9, 0.65
EVEN = 0.05  # Overlap at which two components are one group as probably as not, before the draws are seen.

_SMALLEST = 0.002  # Thresholds go down to this in steps of a factor √2.
_DRAWS = 20, 100  # Draws that are merged, fewest and most …
_LABELS = 20_000_000  # … times objects.
_COMPANION_DRAWS = 300  # Draws whose companions are counted.
_OBJECTS = 600  # With more objects, overlaps are those of so many representatives.


class MergePath(NamedTuple):
    """Merges of the components of a draw, down to one group.

    `overlaps` has the overlap at each merge, `pairs` the two groups merged (numbered as in the row before),
    and row k of `groups` gives the group of each component after k merges. `as_good` says whether one
    Gaussian describes the two as well; then a third of the threshold is enough.
    """

    overlaps: FloatArray
    pairs: IntArray
    groups: IntArray
    as_good: NDArray[np.bool_]

    def at(self, threshold: float) -> IntArray:
        """Group of each component when no overlap reaches the threshold."""
        below = np.flatnonzero(self.overlaps < np.where(self.as_good, threshold / FACTOR, threshold))
        return np.asarray(self.groups[below[0] if below.size else -1])

    def shares(self) -> FloatArray:
        """Prior probability of the thresholds at which each row has the groups."""
        above = np.minimum.accumulate(np.append(np.inf, self.overlaps))
        below = np.minimum(np.append(self.overlaps, 0.0), above)
        return np.asarray(EVEN / (below + EVEN) - EVEN / (above + EVEN))


class Level(NamedTuple):
    """A threshold: the number of groups there, its share of draws, and how little the groups depend on it.

    `stability` is the adjusted Rand index between the groups at `threshold` and at `FACTOR` times as much,
    averaged over draws.
    """

    threshold: float
    n_groups: int
    probability: float
    stability: float

    @property
    def is_stable(self) -> bool:
        """Whether the groups do not depend on the threshold here."""
        return self.stability >= SAME


@dataclass(frozen=True, eq=False)
class DrawGroups:
    """Components of some draws, evenly spaced along the chains, with their merges.

    Attributes
    ----------
    draws
        Numbers of the draws.
    labels
        Their components (T × n).
    paths
        The merges of each.
    rows
        Objects that the overlaps and stabilities are computed from.
    levels
        All thresholds, the largest first.
    chosen
        Which level the answer uses.
    """

    draws: IntArray
    labels: NDArray[np.integer] = field(repr=False)
    paths: tuple[MergePath, ...] = field(repr=False)
    rows: IntArray = field(repr=False)
    levels: tuple[Level, ...] = ()
    chosen: int = 0

    def at(self, threshold: float, rows: IntArray | slice = slice(None)) -> NDArray[np.int16]:
        """Groups of the draws at a threshold (T × n)."""
        pairs = zip(self.paths, self.labels[:, rows], strict=True)
        return np.array([path.at(threshold).astype(np.int16)[labels] for path, labels in pairs])

    def of_level(self, place: int) -> NDArray[np.int16]:
        """Groups of the draws at a level: at the middle of its range of thresholds (T × n)."""
        return self.at(self.levels[place].threshold * FACTOR**0.5)

    def numbers(self, threshold: float) -> dict[int, float]:
        """Share of the draws with each number of groups at a threshold; small groups are not counted."""
        counts = [
            count_large(np.bincount(path.at(threshold), weights=np.bincount(labels)))
            for path, labels in zip(self.paths, self.labels, strict=True)
        ]
        numbers, times = np.unique(counts, return_counts=True)
        return dict(zip(numbers.tolist(), (times / len(counts)).tolist(), strict=True))

    def probabilities(self) -> dict[int, float]:
        """Posterior probability of each number of groups, the threshold being unknown."""
        ranges = []
        for path, labels in zip(self.paths, self.labels, strict=True):
            sizes = np.bincount(labels)
            counts = [count_large(np.bincount(row, weights=sizes)) for row in path.groups]
            ranges.append(np.bincount(counts, path.shares(), minlength=self.labels.shape[1] + 1))
        products = np.array(ranges) * np.mean(ranges, axis=0)
        found = (products / products.sum(axis=1, keepdims=True)).mean(axis=0)
        return {number: float(found[number]) for number in np.flatnonzero(found).tolist()}


def groups_of(trace: "Trace") -> DrawGroups:
    """Merge the components of draws, and choose the threshold."""
    count = len(trace)
    most = int(np.clip(_LABELS / trace.n_objects, *_DRAWS))
    draws = np.unique(np.linspace(0, count - 1, min(most, count)).astype(np.intp))
    rows = representative_rows(trace.best, _OBJECTS)
    companions = companion_shares(trace.labels[:, rows])
    paths = []
    for draw in draws.tolist():
        labels = trace.labels[draw].astype(np.intp)
        width = int(labels.max()) + 1
        given = softmax(member_log_weights(trace, draw, rows), axis=1)
        shared = _summed(companions, labels[rows], width)
        path = merge_path(given, shared, labels[rows])
        paths.append(path._replace(as_good=_as_good(trace, draw, labels, path)))
    found = DrawGroups(draws, trace.labels[draws], tuple(paths), rows)
    steps = int(2 * np.log2(LARGEST / _SMALLEST)) + 1
    levels = tuple(_level(found, LARGEST * 2.0 ** (-step / 2)) for step in range(steps))
    found = replace(found, levels=levels, chosen=_choice(levels))
    for place in range(found.chosen + 1, steps):
        if levels[place].is_stable and levels[place].n_groups > 1 and _is_bent(trace, found, place):
            return replace(found, chosen=place)
    return found


def _choice(levels: tuple[Level, ...]) -> int:
    """Choose the level of the answer: the rule above."""
    for place, level in enumerate(levels):
        several = level.n_groups > 1 or place == 0 or levels[0].stability < UNSTABLE
        if level.is_stable and several:
            return place
    return 0


def _is_bent(trace: "Trace", found: DrawGroups, place: int) -> bool:
    """Whether one Gaussian for the two closest groups would lose less than merges within groups did."""
    threshold = found.levels[place].threshold * FACTOR**0.5
    counts = [int(path.at(threshold).max()) + 1 for path in found.paths]
    typical = counts.index(max(set(counts), key=counts.count))
    losses, path = merge_losses(trace, found, typical), found.paths[typical]
    made, components = losses.size + 1 - counts[typical], np.bincount(found.labels[typical])
    for step in range(made, losses.size):
        sizes = np.bincount(path.groups[step], weights=components)[path.pairs[step]]
        if sizes.min() >= least_size(trace.n_objects):  # Merging a few outliers loses little too.
            return bool(made and losses[step] < losses[:made].max())
    return False


def merge_losses(trace: "Trace", found: DrawGroups, place: int) -> FloatArray:
    """Log posterior lost by each merge of a draw, with one Gaussian component in the place of two."""
    posterior, labels = trace.posterior_at(int(found.draws[place])), found.labels[place].astype(np.intp)
    pairs = iter(found.paths[place].pairs.tolist())
    clusters = posterior.mixed_statistics(labels)
    return merge_down(evidence_of(posterior, trace), clusters, lambda _losses: next(pairs))[:, 2]


def _as_good(trace: "Trace", draw: int, labels: IntArray, path: MergePath) -> NDArray[np.bool_]:
    """Which merges of a draw lose little, given its parameters; looked at where a threshold depends on it."""
    posterior = trace.posterior_at(draw)
    found = np.zeros(path.overlaps.size, dtype=np.bool_)
    matters = (path.overlaps >= _SMALLEST / FACTOR) & (path.overlaps < LARGEST * FACTOR)
    if not matters.any():
        return found
    evidence, clusters = evidence_of(posterior, trace[draw : draw + 1]), posterior.mixed_statistics(labels)
    for step, (a, b) in enumerate(path.pairs.tolist()):
        if matters[step]:
            found[step] = evidence.losses(clusters, np.array([a]), np.array([b]))[0] < EVIDENCE
        clusters = merged(clusters, a, b)
    return found


def companion_shares(draws: NDArray[np.integer]) -> FloatArray:
    """Average over draws of the share that each object has among another's companions (n × n).

    An object that is alone in a draw is its own companion there.
    """
    chosen = np.unique(np.linspace(0, len(draws) - 1, min(_COMPANION_DRAWS, len(draws))).astype(np.intp))
    total = np.zeros((draws.shape[1], draws.shape[1]), dtype=np.float32)
    alone = np.zeros(draws.shape[1])
    # By comparison, not by a product of matrices: with busy cores the threads of BLAS wait for each other.
    for labels in draws[chosen].astype(np.intp):
        sizes = np.bincount(labels)[labels]
        weights = (1.0 / np.maximum(sizes - 1.0, 1.0)).astype(np.float32)
        total += (labels[:, None] == labels) * weights[:, None]
        alone += sizes == 1
    np.fill_diagonal(total, alone)
    return np.asarray(total / chosen.size, dtype=np.float64)


def _summed(shares: FloatArray, labels: IntArray, width: int) -> FloatArray:
    """Sum the columns of shares by cluster (n × width)."""
    present, order = np.unique(labels), np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], present)
    found = np.zeros((len(shares), width))
    found[:, present] = np.add.reduceat(shares[:, order], starts, axis=1)
    return found


def merge_path(given: FloatArray, shared: FloatArray, labels: IntArray) -> MergePath:
    """Merge the components of a draw, each time the pair that overlaps most.

    Parameters
    ----------
    given
        Probability of each object for each component, given the others and the draw's parameters (n × K).
    shared
        Share of the companions of each object, over all draws, in each component (n × K).
    labels
        Component of each object; components without an object here overlap with none of their own.
    """
    count = given.shape[1]
    sources, weights = [given.copy(), shared.copy()], (1.0, 0.5)
    own = labels.copy()

    def overlaps_with(group: int) -> FloatArray:
        width = sources[0].shape[1]
        largest = np.zeros(width)
        members = own == group
        sizes = np.maximum(np.bincount(own, minlength=width), 1)
        for shares, weight in zip(sources, weights, strict=True):
            leaving = _ratio(shares[members], shares[members, group][:, None]).sum(axis=0) / sizes[group]
            staying = shares[np.arange(own.size), own]
            arriving = np.bincount(own, _ratio(shares[:, group], staying), minlength=width) / sizes
            largest = np.maximum(largest, weight * np.maximum(leaving, arriving))
        largest[group] = -1.0
        return largest

    overlap = np.array([overlaps_with(group) for group in range(count)])
    overlaps, pairs, groups = [], [], [np.arange(count)]
    while len(overlap) > 1:
        a, b = sorted(int(place) for place in np.unravel_index(int(overlap.argmax()), overlap.shape))
        overlaps.append(float(overlap[a, b]))
        pairs.append((a, b))
        groups.append(_joined(groups[-1], a, b))
        own = _joined(own, a, b)
        for place, shares in enumerate(sources):
            shares[:, a] += shares[:, b]
            sources[place] = np.delete(shares, b, axis=1)
        overlap = np.delete(np.delete(overlap, b, axis=0), b, axis=1)
        overlap[a, :] = overlap[:, a] = overlaps_with(a)
    none = np.zeros(len(pairs), dtype=np.bool_)
    return MergePath(
        np.array(overlaps), np.array(pairs, dtype=np.intp).reshape(-1, 2), np.array(groups), none
    )


def _ratio(there: FloatArray, here: FloatArray) -> FloatArray:
    """Share of `there` in both; 0 where both are."""
    both = there + here
    return np.divide(there, both, out=np.zeros(both.shape), where=both > 0.0)


def _joined(groups: IntArray, a: int, b: int) -> IntArray:
    """Give the members of b the number a < b; the groups after b move up by one."""
    joined = np.where(groups == b, a, groups)
    return np.asarray(joined - (joined > b))


def _level(found: DrawGroups, threshold: float) -> Level:
    stability = []
    for path, labels in zip(found.paths, found.labels[:, found.rows], strict=True):
        low, high = path.at(threshold), path.at(FACTOR * threshold)
        stability.append(1.0 if np.array_equal(low, high) else adjusted_rand(low[labels], high[labels]))
    number, probability = most_probable(found.numbers(FACTOR**0.5 * threshold))
    return Level(threshold, number, probability, float(np.mean(stability)))


def most_probable(probabilities: dict[int, float]) -> tuple[int, float]:
    """The number with the largest probability, the smallest of several, and that probability."""
    number = max(probabilities, key=lambda count: (round(probabilities[count], 9), -count))
    return number, probabilities[number]


@cache
def least_size(n_objects: int) -> float:
    """Size from which a cluster counts as a group: 3, or a third of the root of the number of objects."""
    return max(3.0, float(np.sqrt(n_objects)) / 3.0)


def count_large(sizes: NDArray[Any]) -> int:
    """Number of clusters large enough to count as groups; all of them if none is."""
    return int(np.sum(sizes >= least_size(int(sizes.sum())))) or sizes.size
