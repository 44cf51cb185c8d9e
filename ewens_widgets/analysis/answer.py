r"""How many clusters, which, and how certain that is: the answer in plain words, without being told a number.

Real clusters are not Gaussian. A long tail, a bend or a skewed column is described by several Gaussian
components, so the draws have more components than there are groups. But the components of one group have no
border: from draw to draw, objects switch from one to the other. The rule below merges by how often they do.

**Exchange.** Let a and b be clusters of a partition that stands for the draws (the point estimate). For an
object i let :math:`r_i(k)` be the share of its companions, averaged over draws, that belong to cluster k. The
share that is exchanged between a and b is that of the cluster which loses more,

.. math:: e_{ab} = \max\Big(\frac1{n_a} \sum_{i \in a} \frac{r_i(b)}{r_i(a) + r_i(b)}, \;
          \frac1{n_b} \sum_{i \in b} \frac{r_i(a)}{r_i(a) + r_i(b)}\Big) .

The shares of merged clusters are added, so a bent group stays bent. This is the idea of Hennig (2010) to
merge components of a mixture that misclassify each other's objects, with the posterior draws in place of the
estimated densities: small components, whose densities fit their own few objects too well, look separate by
their densities, but the draws do not keep them.

**The rule.** Two clusters are merged if they exchange at least `MIXED` (a quarter). If they exchange at least
`DOUBTFUL` (0.15), they are merged where that loses little: at most `PER_PARAMETER` nats for each free
parameter of a cluster (d + d(d+1)/2 of them in model III, 2d in II, d + 1 in I), or at most `TIMES` as much
as a merge that was already made: where Gaussians fit badly, a loss of that size does not mean a group (and up
to two nats never do). The loss is that of one Gaussian cluster in place of two, averaged over many
draws of the parameters: with a dozen draws it is uncertain by several nats, and the result depends on the
seed. Of several such pairs the one that exchanges most is merged first. A pair that is kept apart, because
its merge would lose much, does not keep pairs from being merged that exchange less.

**Long or bent groups.** For the table, merging goes on down to one cluster. A level of the table is the
answer if three things hold: each merge down to it exchanged at least `SEEN`; no two of its clusters exchange
anything (at most `GONE`); and as Gaussians, two of its clusters would nearly as well be one (merging them
gains, or loses far less than joining their components did). Then they are groups that no ellipse describes,
such as half-moons.

**Who belongs where.** Where merges lost something, clusters have longer tails than Gaussians, often on one
side. The shares :math:`r_i` are then averaged with the responsibilities of a mixture of skewed Student
distributions, one for each cluster. It is fitted from them by a few steps of expectation and maximisation
(Peel & McLachlan 2000; Browne & McNicholas 2015):

.. math:: y = \mu_k + w \gamma_k + \sqrt{w} \, \Sigma_k^{1/2} z, \qquad
          w \sim \operatorname{InvGamma}(\nu / 2, \nu / 2), \quad z \sim N(0, I),

with shapes :math:`\Sigma_k` pooled towards a common one and skewness :math:`\gamma_k` towards none.
Everything is deterministic, and invariant like the model.

The constants were chosen on the simulations of `paper.simulations` (seeds `tune`) and judged on others.

References: C. Hennig (2010), Methods for merging Gaussian mixture components, Adv. Data Anal. Classif. 4,
3–34; D. Peel & G. J. McLachlan (2000), Robust mixture modelling using the t distribution, Stat. Comput. 10,
339–348; R. P. Browne & P. D. McNicholas (2015), A mixture of generalized hyperbolic distributions, Can. J.
Stat. 43, 176–198.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, kve, logsumexp

from ewens_widgets.analysis import evidence_tree as by_evidence
from ewens_widgets.analysis.export import labels_csv
from ewens_widgets.analysis.trees import METHODS, Tree, tree_fits
from ewens_widgets.files import write_atomically
from ewens_widgets.memory import TooLargeError, check_fits
from ewens_widgets.model.checks import ModelName
from ewens_widgets.model.own_shapes import ClusterStatistics, statistics_of
from ewens_widgets.model.priors.finite_mixture import FiniteMixture, Poisson
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.draws import read_only

if TYPE_CHECKING:
    from ewens_widgets.sampling.trace import Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

ANSWER_PRIOR = FiniteMixture(1.0, Poisson(3.0))
"""Prior of `AffineClustering` where none is chosen: four components on average.

A geometric number has its mode at one component and a penalty for each further one. Small clusters that touch
are then described by fewer components. The answer cannot separate components that the draws have merged, but
it merges components of one group.
"""

TREES = ("auto", "consensus", "evidence", *METHODS)

MIXED = 0.25
DOUBTFUL = 0.15
PER_PARAMETER = 0.75
TIMES = 2.0
SEEN = 0.02
GONE = 0.005

_SMALL = 1.0  # a loss in nats that never separates two groups
_CHEAP = 0.25  # … of what joining the components of bent groups lost, if these lie side by side
_GROUP = 0.05  # share of the objects that makes a group
_CLEARER = 2.0  # A second level's next merge loses so many times what any before it did …
_CLEAR = 0.05  # … and there less than this is exchanged.
_MISFIT = 5.0  # nats lost by merges in all, from which on Gaussians do not fit
_FREEDOM = 5.0  # degrees of freedom of the skewed Student mixture
_STEPS = 50  # of expectation and maximisation, at most
_DRAWS = 300, 2000  # draws whose companions are counted, fewest and most …
_OBJECTS = 2_000_000  # … times objects
_LOSS_DRAWS = 12, 100  # draws of the parameters that losses are averaged over, fewest and most …
_LOSS_WORK = 2e4  # … times pairs of clusters: a second or two in 13 columns
_DOUBT = 0.8  # An object is in doubt if no cluster has it with this probability.
_MOST_NAMED = 12  # objects that a text names


class Level(NamedTuple):
    """A number of clusters, and what separates it from the next smaller one.

    `parts` holds for each cluster of the point estimate the number of the cluster that it is part of here,
    and `sizes` the numbers of objects. `pair` are the clusters that are merged next (None at one cluster);
    the draws exchange the share `exchanged` of their objects, and their merge loses `loss` nats.
    """

    parts: IntArray
    sizes: tuple[int, ...]
    pair: tuple[int, int] | None
    exchanged: float
    loss: float


class LevelReading(NamedTuple):
    """What the rule says of the levels.

    `chosen` is the place of the answer's level and `second` that of another good one. `bent` says whether the
    clusters are long or bent. The merges down to the answer lost `lost` nats; those that gained count 0.
    """

    chosen: int
    second: int | None
    bent: bool
    lost: float


@dataclass(frozen=True, eq=False)
class Levels:
    """The table behind the answer: a row for each number of clusters, from the point estimate's down to one.

    Attributes
    ----------
    levels
        The rows; each says what separates it from the next.
    reading
        Which of them is the answer, and why.
    start
        Labels of the point estimate, whose clusters are merged.
    placed
        Sizes of the answer's clusters, the largest first. They may differ from those of its level, where no
        object is moved: the answer puts each object where it most probably belongs, leftovers too.
    """

    levels: tuple[Level, ...] = field(repr=False)
    reading: LevelReading
    start: IntArray = field(repr=False)
    placed: tuple[int, ...] = ()

    def labels(self, n_clusters: int) -> IntArray:
        """Labels at the level with `n_clusters` clusters: those of the point estimate, merged."""
        if not 1 <= n_clusters <= len(self.levels):
            raise ValueError(f"there are levels of 1 to {len(self.levels)} clusters; got {n_clusters}.")
        return canonical_labels(self.levels[-n_clusters].parts[self.start])

    def rows(self) -> list[dict[str, Any]]:
        """The table as dictionaries: clusters, exchanged, loss, sizes, note."""
        notes = {self.reading.chosen: self._answer_note()}
        if self.reading.second is not None:
            notes[self.reading.second] = "another good level"
        return [
            {
                "clusters": len(level.sizes),
                "exchanged": level.exchanged,
                "loss": level.loss,
                "sizes": sorted(level.sizes, reverse=True),
                "note": notes.get(place, ""),
            }
            for place, level in enumerate(self.levels)
        ]

    def _answer_note(self) -> str:
        level = self.levels[self.reading.chosen]
        counted = count_large(level.sizes)
        note = f"the answer: {counted} of a size that counts" if counted < len(level.sizes) else "the answer"
        if self.placed and self.placed != tuple(sorted(level.sizes, reverse=True)):
            note += f"; {_listed(self.placed)} with each object where it most probably belongs"
        return note

    def to_frame(self) -> Any:  # noqa: ANN401 - a DataFrame
        """The table as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.rows()).set_index("clusters")

    def __len__(self) -> int:
        return len(self.levels)

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        # Numbers are aligned at the right, texts at the left.
        aligned = ["".join([*(f"{{:>{width}}}  " for width in widths[:3]), "{}  {}"])] * len(cells)
        return "\n".join(line.format(*row).rstrip() for line, row in zip(aligned, cells, strict=True))

    def _repr_html_(self) -> str:
        head, *body = self._cells()
        top = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in head)
        rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
        return f"<table><caption>Levels</caption><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table>"

    def _cells(self) -> list[list[str]]:
        cells = [["clusters", "exchanged", "loss (nats)", "sizes", ""]]
        for row in self.rows():
            is_last = row["clusters"] == 1
            exchanged = "–" if is_last else f"{100 * row['exchanged']:.1f} %"
            loss = "–" if is_last else f"{row['loss']:.1f}"
            cells.append([str(row["clusters"]), exchanged, loss, _listed(row["sizes"]), row["note"]])
        return cells


@dataclass(frozen=True, eq=False)
class Answer:
    """Clusters that the draws keep apart, with the probabilities of the objects.

    Attributes
    ----------
    labels
        Canonical labels, 0 to `n_clusters` − 1. Each leftover is put into the cluster that it is nearest to.
    memberships
        Probability of each object for each cluster (n × K); rows sum to 1.
    leftovers
        Numbers of the objects that belong to no cluster of a size that counts.
    table
        All levels.
    reason
        Why this number, in a sentence or two.
    """

    labels: IntArray = field(repr=False)
    memberships: FloatArray = field(repr=False)
    leftovers: IntArray = field(repr=False)
    table: Levels = field(repr=False)
    reason: str

    @property
    def n_clusters(self) -> int:
        """Number of clusters; leftovers are not counted."""
        return int(self.memberships.shape[1])

    @property
    def sizes(self) -> IntArray:
        """Number of objects in each cluster."""
        return np.bincount(self.labels, minlength=self.n_clusters)

    @property
    def certainty(self) -> FloatArray:
        """Probability of each object for its cluster."""
        return np.asarray(self.memberships[np.arange(self.labels.size), self.labels])

    @property
    def second_choice(self) -> IntArray:
        """The second most probable cluster of each object; −1 where there is only one."""
        if self.n_clusters == 1:
            return np.full(self.labels.size, -1, dtype=np.intp)
        others = np.where(np.arange(self.n_clusters) == self.labels[:, None], -1.0, self.memberships)
        return np.asarray(others.argmax(axis=1), dtype=np.intp)

    @property
    def doubtful(self) -> IntArray:
        """Objects that no cluster has with probability 0.8 or more; the least certain first."""
        certainty = self.certainty
        order = np.argsort(certainty, kind="stable")
        return np.asarray(order[certainty[order] < _DOUBT], dtype=np.intp)

    @property
    def bent(self) -> bool:
        """Whether clusters are long or bent, so that no ellipse describes them."""
        return self.table.reading.bent

    @property
    def second_level(self) -> int | None:
        """Another number of clusters that stands out, or None; its labels are `table.labels(number)`."""
        place = self.table.reading.second
        return None if place is None else len(self.table) - place

    def to_csv(self, path: str | os.PathLike[str], names: Sequence[str] | None = None) -> None:
        """Write a table: object, cluster, its probability, second choice, and whether it is a leftover."""
        text = labels_csv(self.labels, names=names, columns=self._columns())
        write_atomically(path, text.encode())

    def to_frame(self, names: Sequence[str] | None = None) -> Any:  # noqa: ANN401 - a DataFrame
        """Give the same table as a pandas DataFrame, with the probabilities for all clusters."""
        import pandas as pd

        columns = {"cluster": self.labels, **self._columns()}
        columns |= {f"cluster {k}": self.memberships[:, k] for k in range(self.n_clusters)}
        index = range(self.labels.size) if names is None else list(names)
        return pd.DataFrame(columns, index=pd.Index(index, name="object"))

    def _columns(self) -> dict[str, NDArray[Any]]:
        left = np.isin(np.arange(self.labels.size), self.leftovers)
        return {"probability": self.certainty, "second_choice": self.second_choice, "leftover": left}

    def _lines(self) -> list[str]:
        doubtful, second = self.doubtful, self.second_level
        verb = "object is" if doubtful.size == 1 else "objects are"
        in_doubt = f"{doubtful.size} {verb} in doubt: {_listed(doubtful)}." if doubtful.size else ""
        lines = [self.reason, in_doubt or "No object is in doubt."]
        if self.leftovers.size:
            lines.append(f"Left over, in clusters too small to count: {_listed(self.leftovers)}.")
        if second is not None:
            lines.append(f"Another good level: {second} clusters, levels().labels({second}).")
        return lines

    @property
    def headline(self) -> str:
        """The answer in one line."""
        if self.n_clusters == 1:
            return f"1 cluster of {self.labels.size} objects"
        return f"{self.n_clusters} clusters of {_listed(self.sizes)} objects"

    def __repr__(self) -> str:
        return f"Answer({self.headline})"

    def __str__(self) -> str:
        return "\n".join([self.headline, *self._lines()])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{escape(line)}</p>" for line in self._lines())
        return f"<div><p><strong>{escape(self.headline)}</strong></p>{lines}</div>"


def answer(trace: "Trace", evidence: by_evidence.Evidence | None = None) -> Answer:
    """Find the clusters that the draws keep apart; `evidence` is by default that of the trace's family."""
    if not len(trace):
        raise ValueError("the trace holds no draws; sample some, or drop fewer as burn-in.")
    posterior = trace.posterior
    start = trace.point_estimate().labels
    shares = shared_companions(trace.labels, start)
    clusters = statistics_of(posterior.coordinates, start, posterior.model)
    if evidence is None:
        most = int(np.clip(_LOSS_WORK / clusters.sizes.size**2, *_LOSS_DRAWS))
        evidence = by_evidence.evidence_of(posterior, trace, most=most)
    free = parameters_of_cluster(posterior.n_features, posterior.model)
    levels = merge_by_exchange(shares, start, clusters, evidence, free)
    table = Levels(levels, read_levels(levels, free), read_only(start))
    gathered, leftovers = _without_leftovers(shares, table)
    lost = 0.0 if table.reading.bent else table.reading.lost
    memberships = robust_memberships(posterior.coordinates, gathered, posterior.model, lost)
    memberships = memberships[:, np.bincount(memberships.argmax(axis=1), minlength=memberships.shape[1]) > 0]
    memberships /= memberships.sum(axis=1, keepdims=True)
    # Clusters are numbered in the order in which they first appear, as labels are.
    memberships = memberships[:, np.argsort(np.unique(memberships.argmax(axis=1), return_index=True)[1])]
    labels = memberships.argmax(axis=1)
    table = replace(table, placed=tuple(np.sort(np.bincount(labels))[::-1].tolist()))
    return Answer(
        labels=read_only(labels),
        memberships=read_only(memberships),
        leftovers=read_only(leftovers),
        table=table,
        reason=_reason(table, memberships.shape[1]),
    )


def tree_to_cut(trace: "Trace", n_clusters: int, kind: str, min_size: int = 1) -> tuple[Tree, int]:
    """Give the tree to cut into so many clusters, and the size from which its clusters count.

    Parameters
    ----------
    trace
        Draws of a chain, or of several that were pooled.
    n_clusters
        Number of clusters that are wanted.
    kind
        One of `TREES`. ``"auto"``: single linkage where the answer finds long or bent clusters, the consensus
        otherwise, and the evidence tree where there is no memory for pairs of objects.
    min_size
        What is asked for; single linkage chosen by ``"auto"`` counts no clusters that the answer would not,
        as it would otherwise cut off single objects first.
    """
    if kind not in TREES:
        raise ValueError(f"the tree must be one of {', '.join(map(repr, TREES))}; got {kind!r}.")
    if kind == "auto":
        try:
            by_evidence.check_consensus_fits(trace.n_objects)
            kind = "consensus"
        except TooLargeError:
            kind = "evidence"
        if kind == "consensus" and tree_fits(trace.n_objects) and n_clusters > 1 and trace.answer().bent:
            kind, min_size = "single", max(min_size, int(np.ceil(_least_size(trace.n_objects))))
    if kind == "consensus":
        return trace.consensus_tree(n_clusters), min_size
    if kind == "evidence":
        # The highest posterior among the draws that have enough clusters, or nearly.
        enough = trace.n_clusters >= min(n_clusters, int(trace.n_clusters.max()))
        best = int(np.argmax(np.where(enough, trace.log_posterior, -np.inf)))
        evidence = by_evidence.evidence_of(trace.posterior, trace)
        return by_evidence.evidence_tree(trace.posterior, trace.labels[best], evidence), min_size
    return trace.similarity_tree(kind), min_size


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


def merge_by_exchange(
    shares: FloatArray,
    start: IntArray,
    clusters: ClusterStatistics,
    evidence: by_evidence.Evidence,
    free_parameters: float,
) -> tuple[Level, ...]:
    """Merge clusters down to one: by the rule, then what is exchanged most, then what loses least.

    `shares` are the `shared_companions` of the partition `start`, and `clusters` the statistics of its
    clusters.
    """
    columns = list(shares.T)
    members = [np.flatnonzero(start == cluster) for cluster in range(len(columns))]
    exchange = np.full((len(columns), len(columns)), -1.0)
    for a, b in combinations(range(len(columns)), 2):
        exchange[a, b] = _exchanged(columns, members, a, b)
    exchanged: list[float] = []
    largest = 0.0

    def choose(losses: FloatArray) -> tuple[int, int]:
        nonlocal exchange, largest
        place = int(np.argmax(exchange))
        if exchange.flat[place] < SEEN:
            place = int(np.argmin(losses))
        else:
            for found in np.argsort(-exchange, axis=None, kind="stable")[: np.sum(exchange >= DOUBTFUL)]:
                if _is_one(exchange.flat[found], losses.flat[found], largest, free_parameters):
                    place = int(found)
                    break
        a, b = (int(cluster) for cluster in np.unravel_index(place, losses.shape))
        largest = max(largest, float(losses[a, b]))
        exchanged.append(float(exchange[a, b]))
        columns[a] = columns[a] + columns.pop(b)
        members[a] = np.concatenate([members[a], members.pop(b)])
        exchange = np.delete(np.delete(exchange, b, axis=0), b, axis=1)
        for other in range(len(columns)):
            if other != a:
                exchange[min(a, other), max(a, other)] = _exchanged(columns, members, a, other)
        return a, b

    merges = by_evidence.merge_down(evidence, clusters, choose)
    pairs = [*map(tuple, merges.pairs.tolist()), None]
    numbers = zip([*exchanged, float("nan")], [*merges.losses.tolist(), float("nan")], strict=True)
    return tuple(
        Level(parts, tuple(np.bincount(parts[start]).tolist()), pair, *row)
        for parts, pair, row in zip(merges.partitions(), pairs, numbers, strict=True)
    )


def _exchanged(columns: Sequence[FloatArray], members: Sequence[IntArray], a: int, b: int) -> float:
    """The share of objects that the cluster which loses more gives away, e_ab."""
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
    return n_features + {"I": 1, "II": n_features, "III": n_features * (n_features + 1) // 2}[model]


def read_levels(levels: Sequence[Level], free_parameters: float) -> LevelReading:
    """Choose a level by the rule above, and another one that stands out."""
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
    lost = sum(max(level.loss, 0.0) for level in levels[:chosen])
    return LevelReading(chosen, second, bent is not None, lost)


def _bent_level(levels: Sequence[Level], usual: int) -> int | None:
    """Find a level with clusters that exchange nothing, though as Gaussians some would rather be one."""
    place = usual
    while levels[place].pair is not None and levels[place].exchanged >= SEEN:
        place += 1
    level = levels[place]
    if place < usual + 2 or level.pair is None or level.exchanged > GONE:
        return None
    # A few outliers are cheap to merge too, but they are no group, and not made of several ellipses.
    ellipses = [np.unique(levels[usual].parts[level.parts == cluster]).size for cluster in level.pair]
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

    `lost` is the log posterior that merges lost, in nats; above a few, Gaussians do not fit.
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
    pooling, order = 2.0 * d, 0.5 * (_FREEDOM + d)
    log_weights, scale, inverse = np.empty_like(found), np.empty_like(found), np.empty_like(found)
    for cluster, size in enumerate(sizes):
        shape = (pooling * common + scatters[cluster]) / (pooling + size) + 1e-9 * np.eye(d)
        root = np.linalg.cholesky(shape)
        whitened = np.linalg.solve(root, (Y - centres[cluster]).T)
        skew = np.linalg.solve(root, skewness[cluster])
        # w, given an object, is generalised inverse Gaussian.
        forms, pull = _FREEDOM + np.sum(whitened * whitened, axis=0), max(float(skew @ skew), 1e-12)
        ratio, argument = np.sqrt(forms / pull), np.sqrt(forms * pull)
        log_k = _log_bessel(order, argument)
        below = np.exp(_log_bessel(order - 1.0, argument) - log_k)
        mean = ratio * below
        # By the recurrence of Bessel functions, K of the order above it costs no evaluation.
        inverse[:, cluster] = (below + 2.0 * order / argument) / ratio
        # Jensen's inequality, against rounding: scatters would else not be positive.
        scale[:, cluster] = np.maximum(mean, 1.0 / inverse[:, cluster])
        log_weights[:, cluster] = np.log(size) - np.log(np.diag(root)).sum()
        log_weights[:, cluster] += skew @ whitened + log_k - order * np.log(ratio)
    log_weights -= logsumexp(log_weights, axis=1, keepdims=True)
    return np.exp(log_weights), scale, inverse


def _log_bessel(order: float, x: FloatArray) -> FloatArray:
    """Log of Bessel's K; where K overflows, by the first two terms of its series at 0."""
    with np.errstate(over="ignore", divide="ignore"):
        value = np.log(kve(order, x)) - x
    series = gammaln(order) - np.log(2.0) + order * np.log(2.0 / x) - x * x / (4.0 * (order - 1.0))
    return np.asarray(np.where(np.isfinite(value), value, series), dtype=np.float64)


def _in_form(scatter: FloatArray, model: ModelName) -> FloatArray:
    """A scatter matrix as the model sees it: whole (III), its diagonal (II), or one variance (I)."""
    if model == "III":
        return scatter
    diagonal = np.diag(scatter)
    return np.diag(diagonal if model == "II" else np.full_like(diagonal, diagonal.mean()))


def count_large(sizes: Sequence[int]) -> int:
    """How many clusters are not too small to count; all, if none is large."""
    return int(np.sum(np.asarray(sizes) >= _least_size(sum(sizes)))) or len(sizes)


def _least_size(n_objects: int) -> float:
    """Size from which a cluster counts: 3 objects, and among many the root of their number over three."""
    return max(3.0, float(np.sqrt(n_objects)) / 3.0)


def _without_leftovers(shares: FloatArray, table: Levels) -> tuple[FloatArray, IntArray]:
    """Shares of the clusters that are not too small to count; also the numbers of the other objects."""
    level, coarser = table.levels[table.reading.chosen], table.levels[table.reading.chosen + 1 :]
    gathered, labels = shares @ np.eye(len(level.sizes))[level.parts], level.parts[table.start]
    small = np.asarray(level.sizes) < _least_size(labels.size)
    if small.all() or not small.any():
        return gathered, np.empty(0, dtype=np.intp)
    # Leftovers that are hardly exchanged with anything belong to the cluster that they are merged with first.
    first = np.unique(level.parts, return_index=True)[1]
    joined = np.zeros((small.size, small.size))
    for cluster in np.flatnonzero(small):
        together = (later.parts[first] == later.parts[first[cluster]] for later in coarser)
        joined[cluster] = next(row for row in together if np.any(row & ~small))
    found = np.flatnonzero(small[labels])
    gathered[found] += SEEN * joined[labels[found]]
    return gathered[:, ~small] + 1e-9, found


def _reason(table: Levels, n_clusters: int) -> str:
    """Why this number of clusters."""
    levels, reading = table.levels, table.reading
    begin, chosen = len(levels), levels[reading.chosen]
    if reading.bent:
        return (
            f"Long or bent clusters: the draws describe them by {begin} ellipses, which pass objects on to "
            f"their neighbours, but between these {n_clusters} clusters nothing is ever exchanged."
        )
    parts = []
    if reading.chosen:
        least = min(level.exchanged for level in levels[: reading.chosen])
        parts.append(
            f"The draws describe the data by {begin} Gaussian clusters, but some of these are parts of one: "
            f"{_percent(least)} of their objects and more change places."
        )
    if chosen.pair is None:
        parts.append("Nothing that is split off stays apart, so this is one cluster.")
    else:
        parts.append(
            f"Of the two clusters that are nearest to each other, {_percent(chosen.exchanged)} of the "
            f"objects change places, and to merge them would lose {chosen.loss:.0f} nats of log posterior."
        )
    return " ".join(parts)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.005 else "less than 1 %"


def _listed(words: Iterable[object]) -> str:
    """Join words, the first few of many."""
    names = [str(word) for word in words]
    if len(names) > _MOST_NAMED:
        return ", ".join(names[:_MOST_NAMED]) + f", … ({len(names) - _MOST_NAMED} more)"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
