r"""How many groups, which, and how certain that is: the answer, without being told a number.

Real groups are not Gaussian. A long tail, a bend or a skewed column is described by several Gaussian
components, so the draws have more components than there are groups. But the components of one group have no
gap between them: from draw to draw, objects switch from one to the other. The rule below merges components
by how often they do.

**Switching rate.** Let a and b be components: clusters of the point estimate. For an object i let
:math:`r_i(k)` be the share of its companions, averaged over draws, that belong to component k. The switching
rate of a and b is that of the component which loses more,

.. math:: e_{ab} = \max\Big(\frac1{n_a} \sum_{i \in a} \frac{r_i(b)}{r_i(a) + r_i(b)}, \;
          \frac1{n_b} \sum_{i \in b} \frac{r_i(a)}{r_i(a) + r_i(b)}\Big) .

The shares of merged components are added, so a bent group stays bent. Hennig (2010) merges components of a
mixture that misclassify each other's objects. Here the posterior draws replace the estimated densities.
The densities of small components fit their own few objects too well and look separate, but the draws do not
keep these components.

**The rule.** Two components are merged if their switching rate is at least `HIGH_RATE` (a quarter). If it is
at least `MODERATE_RATE` (0.15), they are merged if that loses little log posterior. Little means at most
`LOSS_PER_PARAMETER` nats for each free parameter of a component (d + d(d+1)/2 of them in model III, 2d in II,
d + 1 in I). It also means at most `LOSS_FACTOR` times the loss of an earlier merge: where Gaussians fit
badly, a loss of that size is no evidence for a group. A loss of up to two nats is always little. The loss is
that of one Gaussian cluster in place of two, averaged over many draws of the parameters. With a dozen draws
it would be uncertain by several nats, and the result would depend on the seed. Of several such pairs, the
pair with the highest rate is merged first. A pair that is kept apart because of its loss does not prevent
other merges.

**Long or bent groups.** For the merge table, merging goes on down to one group. A row of the table is the
answer if three things hold. Each merge down to it had a rate of at least `LOW_RATE`. No two of its groups
have a rate above `NO_RATE`. And as Gaussians, two of its groups would nearly as well be one: merging them
gains, or loses far less than joining their components did. Then they are groups that no ellipse describes,
such as half-moons.

**Memberships.** If merges lost log posterior, groups have longer tails than Gaussians, often on one side. The
shares :math:`r_i` are then averaged with the responsibilities of a mixture of skewed Student distributions,
one for each group. It is fitted from the shares by a few steps of expectation and maximisation (Peel &
McLachlan 2000; Browne & McNicholas 2015):

.. math:: y = \mu_k + w \gamma_k + \sqrt{w} \, \Sigma_k^{1/2} z, \qquad
          w \sim \operatorname{InvGamma}(\nu / 2, \nu / 2), \quad z \sim N(0, I),

with shapes :math:`\Sigma_k` pooled towards a common one and skewness :math:`\gamma_k` shrunk towards zero.
Everything is deterministic, and has the invariance of the model.

The constants were chosen on the simulations of `paper.simulations` (seeds `tune`) and judged on others.

References: C. Hennig (2010), Methods for merging Gaussian mixture components, Adv. Data Anal. Classif. 4,
3–34; D. Peel & G. J. McLachlan (2000), Robust mixture modelling using the t distribution, Stat. Comput. 10,
339–348; R. P. Browne & P. D. McNicholas (2015), A mixture of generalized hyperbolic distributions, Can. J.
Stat. 43, 176–198.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, kve, logsumexp

from ewens_widgets.analysis import evidence_tree as by_evidence
from ewens_widgets.analysis.export import labels_csv
from ewens_widgets.analysis.findings import html_table, text_table
from ewens_widgets.analysis.trees import METHODS, Tree, tree_fits
from ewens_widgets.files import write_atomically
from ewens_widgets.memory import TooLargeError, check_fits
from ewens_widgets.model.checks import ModelName
from ewens_widgets.model.mixed_columns import Columns
from ewens_widgets.model.priors.finite_mixture import FiniteMixture, Poisson
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.draws import read_only

if TYPE_CHECKING:
    from ewens_widgets.sampling.trace import Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

ANSWER_PRIOR = FiniteMixture(1.0, Poisson(3.0))
"""Default prior of `AffineClustering`: four components on average.

A geometric prior of the number has its mode at one component and a penalty for each further one, so it
describes small clusters that touch by fewer components. Components already merged in the draws cannot be
separated afterwards, but the answer merges components of one group.
"""

TREES = ("auto", "consensus", "evidence", *METHODS)

HIGH_RATE = 0.25
MODERATE_RATE = 0.15
LOSS_PER_PARAMETER = 0.75
LOSS_FACTOR = 2.0
LOW_RATE = 0.02
NO_RATE = 0.005

_SMALL = 1.0  # A loss in nats that never separates two groups.
_CHEAP = 0.25  # A merge of bent groups loses at most this share of what joining their components lost.
_GROUP = 0.05  # A bent group holds at least this share of the objects.
_CLEARER = (
    2.0  # Another number of groups needs a next merge that loses so many times more than those before …
)
_CLEAR = 0.05  # … and a switching rate there below this.
_MISFIT = 5.0  # Nats lost by all merges, from which on Gaussians do not fit.
_FREEDOM = 5.0  # Degrees of freedom of the skewed Student mixture.
_STEPS = 50  # Of expectation and maximisation, at most.
_DRAWS = 300, 2000  # Draws whose companions are counted, fewest and most …
_OBJECTS = 2_000_000  # … times objects.
_LOSS_DRAWS = 12, 100  # Draws of the parameters that losses are averaged over, fewest and most …
_LOSS_WORK = 2e4  # … times pairs of components: a second or two in 13 columns.
_ASSIGNED = 0.8  # An object is uncertain if no group has it with this membership probability.
_MOST_NAMED = 12  # Objects that a text names.


class MergeStep(NamedTuple):
    """A number of groups, and the merge that leads to the next smaller number.

    `groups` holds for each component the number of its group here, and `sizes` the numbers of objects.
    `pair` are the groups that are merged next (None if there is one group). `switching_rate` is theirs, and
    their merge lowers the log posterior by `loss` nats.
    """

    groups: IntArray
    sizes: tuple[int, ...]
    pair: tuple[int, int] | None
    switching_rate: float
    loss: float


class StepChoice(NamedTuple):
    """Which steps of a merge table the rule chooses.

    `chosen` is the place of the answer and `second` that of another good number of groups. `bent` is True if
    the groups are long or bent. The merges down to the answer lost `lost` nats; merges that gained count 0.
    """

    chosen: int
    second: int | None
    bent: bool
    lost: float


@dataclass(frozen=True, eq=False)
class MergeTable:
    """The merge table: a row for each number of groups, from the components of the point estimate to one.

    Attributes
    ----------
    steps
        The rows, each with the merge that leads to the next.
    choice
        Which row is the answer.
    start
        Labels of the point estimate, whose clusters are the components.
    placed
        Sizes of the answer's groups, the largest first. They may differ from the sizes in its row, which
        are sums of components: the answer assigns each object to its most probable group.
    """

    steps: tuple[MergeStep, ...] = field(repr=False)
    choice: StepChoice
    start: IntArray = field(repr=False)
    placed: tuple[int, ...] = ()

    def labels(self, n_clusters: int) -> IntArray:
        """Labels of the row with `n_clusters` groups: the components of the point estimate, merged."""
        if not 1 <= n_clusters <= len(self.steps):
            raise ValueError(f"the merge table has rows for 1 to {len(self.steps)} groups; got {n_clusters}.")
        return canonical_labels(self.steps[-n_clusters].groups[self.start])

    def rows(self) -> list[dict[str, Any]]:
        """The table as dictionaries: groups, switching_rate, loss, sizes, note."""
        notes = {self.choice.chosen: self._answer_note()}
        if self.choice.second is not None:
            notes[self.choice.second] = "another good number"
        return [
            {
                "groups": len(step.sizes),
                "switching_rate": step.switching_rate,
                "loss": step.loss,
                "sizes": sorted(step.sizes, reverse=True),
                "note": notes.get(place, ""),
            }
            for place, step in enumerate(self.steps)
        ]

    def _answer_note(self) -> str:
        sizes = self.steps[self.choice.chosen].sizes
        small = len(sizes) - count_large(sizes)
        note = "the answer" + (f", with {small} small {_plural(small, 'cluster')}" if small else "")
        if self.placed and self.placed != tuple(sorted(sizes, reverse=True)):
            note += f"; sizes by most probable group: {_listed(self.placed)}"
        return note

    def to_frame(self) -> Any:  # noqa: ANN401 - a DataFrame
        """The table as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.rows()).set_index("groups")

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        return "\n".join(text_table(self._cells(), "ljust"))

    def _repr_html_(self) -> str:
        return html_table(self._cells(), "Merge table")

    def _cells(self) -> list[list[str]]:
        cells = [["groups", "switching rate", "loss (nats)", "sizes", ""]]
        for row in self.rows():
            is_last = row["groups"] == 1
            rate = "–" if is_last else f"{100 * row['switching_rate']:.1f} %"
            loss = "–" if is_last else f"{row['loss']:.1f}"
            cells.append([str(row["groups"]), rate, loss, _listed(row["sizes"]), row["note"]])
        return cells


@dataclass(frozen=True, eq=False)
class Answer:
    """Groups of objects that the draws keep apart, with membership probabilities.

    Attributes
    ----------
    labels
        Canonical labels, 0 to `n_clusters` − 1. An object of a small cluster has the label of its most
        probable group.
    memberships
        Membership probability of each object for each group (n × K); rows sum to 1.
    small_clusters
        Numbers of the objects in clusters that are too small to count as groups.
    table
        The merge table.
    reason
        Why this number, in a sentence or two.
    """

    labels: IntArray = field(repr=False)
    memberships: FloatArray = field(repr=False)
    small_clusters: IntArray = field(repr=False)
    table: MergeTable = field(repr=False)
    reason: str

    @property
    def n_clusters(self) -> int:
        """Number of groups; small clusters are not counted."""
        return int(self.memberships.shape[1])

    @property
    def sizes(self) -> IntArray:
        """Number of objects in each group."""
        return np.bincount(self.labels, minlength=self.n_clusters)

    @property
    def certainty(self) -> FloatArray:
        """Membership probability of each object for its own group."""
        return np.asarray(self.memberships[np.arange(self.labels.size), self.labels])

    @property
    def second_choice(self) -> IntArray:
        """The second most probable group of each object; −1 if there is only one."""
        if self.n_clusters == 1:
            return np.full(self.labels.size, -1, dtype=np.intp)
        others = np.where(np.arange(self.n_clusters) == self.labels[:, None], -1.0, self.memberships)
        return np.asarray(others.argmax(axis=1), dtype=np.intp)

    @property
    def uncertain(self) -> IntArray:
        """Objects that no group has with probability 0.8 or more; the least certain first."""
        certainty = self.certainty
        order = np.argsort(certainty, kind="stable")
        return np.asarray(order[certainty[order] < _ASSIGNED], dtype=np.intp)

    @property
    def bent(self) -> bool:
        """Whether groups are long or bent, so that no ellipse describes them."""
        return self.table.choice.bent

    @property
    def second_level(self) -> int | None:
        """Another good number of groups, or None; its labels are ``table.labels(number)``."""
        place = self.table.choice.second
        return None if place is None else len(self.table) - place

    def to_csv(self, path: str | os.PathLike[str], names: Sequence[str] | None = None) -> None:
        """Write a table: object, cluster, probability, second choice, whether it is in a small cluster."""
        text = labels_csv(self.labels, names=names, columns=self._columns())
        write_atomically(path, text.encode())

    def to_frame(self, names: Sequence[str] | None = None) -> Any:  # noqa: ANN401 - a DataFrame
        """Give the same table as a pandas DataFrame, with all membership probabilities."""
        import pandas as pd

        columns = {"cluster": self.labels, **self._columns()}
        columns |= {f"cluster {k}": self.memberships[:, k] for k in range(self.n_clusters)}
        index = range(self.labels.size) if names is None else list(names)
        return pd.DataFrame(columns, index=pd.Index(index, name="object"))

    def _columns(self) -> dict[str, NDArray[Any]]:
        small = np.isin(np.arange(self.labels.size), self.small_clusters)
        return {"probability": self.certainty, "second_choice": self.second_choice, "small_cluster": small}

    def _lines(self) -> Iterator[str]:
        uncertain, n_objects = self.uncertain, self.labels.size
        assigned = "All" if not uncertain.size else f"{n_objects - uncertain.size} of"
        yield f"{assigned} {n_objects} objects are assigned with probability ≥ {_ASSIGNED}."
        yield self.reason
        if uncertain.size:
            yield f"Uncertain {_plural(uncertain.size, 'object')}: {_listed(uncertain)}."
        if self.small_clusters.size:
            objects = _plural(self.small_clusters.size, "object")
            yield f"In clusters too small to count as groups: {objects} {_listed(self.small_clusters)}."
        if self.second_level is not None:
            number = self.second_level
            yield f"Another good number of groups: {number}. Its labels are table.labels({number})."

    @property
    def headline(self) -> str:
        """The answer in one line."""
        count, components = self.n_clusters, len(self.table)
        made = f" (from {components} Gaussian components)" if components > count else ""
        return f"{count} {_plural(count, 'group')} of {_listed(self.sizes)} objects{made}"

    def __repr__(self) -> str:
        return f"Answer({self.headline})"

    def __str__(self) -> str:
        return "\n".join([f"{self.headline}.", *self._lines()])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{escape(line)}</p>" for line in self._lines())
        return f"<div><p><strong>{escape(self.headline)}</strong></p>{lines}</div>"


def answer(trace: "Trace", evidence: by_evidence.Evidence | None = None) -> Answer:
    """Find the groups that the draws keep apart; `evidence` is by default that of the trace's family."""
    if not len(trace):
        raise ValueError("the trace holds no draws; sample some, or drop fewer as burn-in.")
    posterior = trace.posterior
    start = trace.point_estimate().labels
    shares = shared_companions(trace.labels, start)
    components = posterior.mixed_statistics(start)
    if evidence is None:
        most = int(np.clip(_LOSS_WORK / components.sizes.size**2, *_LOSS_DRAWS))
        evidence = by_evidence.evidence_of(posterior, trace, most=most)
    free = parameters_of_cluster(posterior.n_features, posterior.model)
    free += int(np.sum(posterior.columns.levels - 1))
    steps = merge_by_switching(shares, start, components, evidence, free)
    table = MergeTable(steps, choose_step(steps, free), read_only(start))
    shares, small = _shares_of_groups(shares, table)
    lost = 0.0 if table.choice.bent else table.choice.lost
    memberships = robust_memberships(posterior.coordinates, shares, posterior.model, lost, posterior.columns)
    memberships = memberships[:, np.bincount(memberships.argmax(axis=1), minlength=memberships.shape[1]) > 0]
    memberships /= memberships.sum(axis=1, keepdims=True)
    # Groups are numbered in the order in which they first appear, as labels are.
    memberships = memberships[:, np.argsort(np.unique(memberships.argmax(axis=1), return_index=True)[1])]
    labels = memberships.argmax(axis=1)
    table = replace(table, placed=tuple(np.sort(np.bincount(labels))[::-1].tolist()))
    reason = _reason(table, memberships.shape[1])
    return Answer(read_only(labels), read_only(memberships), read_only(small), table, reason)


def tree_to_cut(trace: "Trace", n_clusters: int, kind: str, min_size: int = 1) -> tuple[Tree, int]:
    """Return the tree to cut into `n_clusters` clusters, and the size from which its clusters count.

    Parameters
    ----------
    trace
        Draws of a chain, or pooled draws of several chains.
    n_clusters
        Number of clusters.
    kind
        One of `TREES`. ``"auto"``: single linkage if the answer finds long or bent groups, the consensus
        otherwise, and the evidence tree if there is no memory for pairs of objects.
    min_size
        Least size of a cluster. Single linkage chosen by ``"auto"`` uses at least the size from which the
        answer counts groups, since it would otherwise separate single objects first.
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


def merge_by_switching(
    shares: FloatArray,
    start: IntArray,
    components: by_evidence.AnyStatistics,
    evidence: by_evidence.Evidence,
    free_parameters: float,
) -> tuple[MergeStep, ...]:
    """Merge components down to one: by the rule, then by the highest rate, then by the smallest loss.

    `shares` are the `shared_companions` of the partition `start`, and `components` the statistics of its
    clusters.
    """
    columns = list(shares.T)
    members = [np.flatnonzero(start == component) for component in range(len(columns))]
    rates = np.full((len(columns), len(columns)), -1.0)
    for a, b in combinations(range(len(columns)), 2):
        rates[a, b] = _switching_rate(columns, members, a, b)
    merged_rates: list[float] = []
    largest = 0.0

    def choose(losses: FloatArray) -> tuple[int, int]:
        nonlocal rates, largest
        place = int(np.argmax(rates))
        if rates.flat[place] < LOW_RATE:
            place = int(np.argmin(losses))
        else:
            for found in np.argsort(-rates, axis=None, kind="stable")[: np.sum(rates >= MODERATE_RATE)]:
                if _is_one(rates.flat[found], losses.flat[found], largest, free_parameters):
                    place = int(found)
                    break
        a, b = (int(group) for group in np.unravel_index(place, losses.shape))
        largest = max(largest, float(losses[a, b]))
        merged_rates.append(float(rates[a, b]))
        columns[a] = columns[a] + columns.pop(b)
        members[a] = np.concatenate([members[a], members.pop(b)])
        rates = np.delete(np.delete(rates, b, axis=0), b, axis=1)
        for other in range(len(columns)):
            if other != a:
                rates[min(a, other), max(a, other)] = _switching_rate(columns, members, a, other)
        return a, b

    merges = by_evidence.merge_down(evidence, components, choose)
    pairs = [*map(tuple, merges.pairs.tolist()), None]
    numbers = zip([*merged_rates, float("nan")], [*merges.losses.tolist(), float("nan")], strict=True)
    return tuple(
        MergeStep(groups, tuple(np.bincount(groups[start]).tolist()), pair, *row)
        for groups, pair, row in zip(merges.partitions(), pairs, numbers, strict=True)
    )


def _switching_rate(columns: Sequence[FloatArray], members: Sequence[IntArray], a: int, b: int) -> float:
    """The switching rate e_ab: that of the group which loses more."""
    rates = []
    for own, other in ((a, b), (b, a)):
        here, there = columns[own][members[own]], columns[other][members[own]]
        both = here + there
        rates.append(float(np.mean(np.divide(there, both, out=np.zeros_like(both), where=both > 0))))
    return max(rates)


def _is_one(rate: float, loss: float, largest: float, free_parameters: float) -> bool:
    """Whether the rule merges a pair; `largest` is the largest loss of the merges so far."""
    little = max(LOSS_FACTOR * max(largest, _SMALL), LOSS_PER_PARAMETER * free_parameters)
    return bool(rate >= HIGH_RATE or (rate >= MODERATE_RATE and loss <= little))


def parameters_of_cluster(n_features: int, model: ModelName) -> int:
    """Number of free parameters of a cluster: those of its centre and of its covariance."""
    return n_features + {"I": 1, "II": n_features, "III": n_features * (n_features + 1) // 2}[model]


def choose_step(steps: Sequence[MergeStep], free_parameters: float) -> StepChoice:
    """Choose the answer by the rule above, and another number of groups that stands out."""
    by_rule, largest = 0, 0.0
    while steps[by_rule].pair is not None:
        step = steps[by_rule]
        if not _is_one(step.switching_rate, step.loss, largest, free_parameters):
            break
        largest = max(largest, step.loss)
        by_rule += 1
    bent = _bent_step(steps, by_rule)
    chosen = by_rule if bent is None else bent
    second = _clear_step(steps, by_rule) if bent is None else by_rule
    lost = sum(max(step.loss, 0.0) for step in steps[:chosen])
    return StepChoice(chosen, second, bent is not None, lost)


def _bent_step(steps: Sequence[MergeStep], by_rule: int) -> int | None:
    """Find long or bent groups: no object switches between them, though their merge would lose little."""
    place = by_rule
    while steps[place].pair is not None and steps[place].switching_rate >= LOW_RATE:
        place += 1
    step = steps[place]
    if place < by_rule + 2 or step.pair is None or step.switching_rate > NO_RATE:
        return None
    # Merging a few outliers loses little too, but they are no group, and not made of several components.
    components = [np.unique(steps[by_rule].groups[step.groups == group]).size for group in step.pair]
    if max(components) < 2 or min(step.sizes[group] for group in step.pair) < _GROUP * sum(step.sizes):
        return None
    within = max(earlier.loss for earlier in steps[by_rule:place])
    return place if step.loss < _CHEAP * max(within, 0.0) else None


def _clear_step(steps: Sequence[MergeStep], chosen: int) -> int | None:
    """Find the smaller number whose next merge loses far more than any since the answer: the widest gap."""
    best, widest = None, 0.0
    for place in range(chosen + 1, len(steps) - 1):
        before = max(step.loss for step in steps[chosen:place])
        gap = steps[place].loss - before
        if gap > max(widest, (_CLEARER - 1.0) * max(before, 1.0)) and steps[place].switching_rate < _CLEAR:
            best, widest = place, gap
    return best


def robust_memberships(
    coordinates: FloatArray,
    shares: FloatArray,
    model: ModelName,
    lost: float,
    columns: Columns | None = None,
) -> FloatArray:
    """Membership probabilities (n × K): the shares, or their average with those of a skewed mixture.

    `lost` is the log posterior lost by merges, in nats; above a few, Gaussians do not fit. Categorical
    `columns` add the probabilities of the categories.
    """
    own = shares / shares.sum(axis=1, keepdims=True)
    if own.shape[1] == 1 or lost <= _MISFIT:
        return np.asarray(own, dtype=np.float64)
    found = own
    scale, inverse = np.ones_like(own), np.ones_like(own)
    for _ in range(_STEPS):
        before = found
        found, scale, inverse = _student_mixture_step(
            coordinates, found, scale, inverse, model, columns or Columns()
        )
        if np.abs(found - before).max() < 1e-4:
            break
    return np.asarray(0.5 * (own + found), dtype=np.float64)


def _student_mixture_step(
    Y: FloatArray,
    found: FloatArray,
    scale: FloatArray,
    inverse: FloatArray,
    model: ModelName,
    columns: Columns,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """One step of expectation and maximisation: new memberships, and means of w and of 1/w.

    Centres, skewness and shapes follow from the memberships `found` and from the means `scale` and `inverse`
    of w and 1/w before.
    """
    n_objects, d = Y.shape
    sizes = found.sum(axis=0) + 1e-9
    centres, skewness = np.empty((sizes.size, d)), np.empty((sizes.size, d))
    scatters = np.empty((sizes.size, d, d))
    for cluster, size in enumerate(sizes):
        weights = found[:, cluster] * inverse[:, cluster]
        total, spread = weights.sum() + 1e-12, float(found[:, cluster] @ scale[:, cluster])
        mode, mean = weights @ Y / total, found[:, cluster] @ Y / size
        # Shrunk towards zero, as by d more objects without skewness.
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
        # By the recurrence of Bessel functions, K of the next order needs no evaluation.
        inverse[:, cluster] = (below + 2.0 * order / argument) / ratio
        # Jensen's inequality, enforced against rounding, keeps scatters positive.
        scale[:, cluster] = np.maximum(mean, 1.0 / inverse[:, cluster])
        log_weights[:, cluster] = np.log(size) - np.log(np.diag(root)).sum()
        log_weights[:, cluster] += skew @ whitened + log_k - order * np.log(ratio)
    if columns.has_categories:
        log_weights += columns.log_weights(columns.expected_counts(found), columns.places)
    log_weights -= logsumexp(log_weights, axis=1, keepdims=True)
    return np.exp(log_weights), scale, inverse


def _log_bessel(order: float, x: FloatArray) -> FloatArray:
    """Log of Bessel's K; where K overflows, by the first two terms of its series at 0."""
    with np.errstate(over="ignore", divide="ignore"):
        value = np.log(kve(order, x)) - x
    series = gammaln(order) - np.log(2.0) + order * np.log(2.0 / x) - x * x / (4.0 * (order - 1.0))
    return np.asarray(np.where(np.isfinite(value), value, series), dtype=np.float64)


def _in_form(scatter: FloatArray, model: ModelName) -> FloatArray:
    """A scatter matrix in the model's form: whole (III), its diagonal (II), or one variance (I)."""
    if model == "III":
        return scatter
    diagonal = np.diag(scatter)
    return np.diag(diagonal if model == "II" else np.full_like(diagonal, diagonal.mean()))


def count_large(sizes: Sequence[int]) -> int:
    """Number of clusters large enough to count as groups; all of them if none is."""
    return int(np.sum(np.asarray(sizes) >= _least_size(sum(sizes)))) or len(sizes)


def _least_size(n_objects: int) -> float:
    """Size from which a cluster counts as a group: 3, or a third of the root of the number of objects."""
    return max(3.0, float(np.sqrt(n_objects)) / 3.0)


def _shares_of_groups(shares: FloatArray, table: MergeTable) -> tuple[FloatArray, IntArray]:
    """Shares of the answer's groups; also the numbers of the objects in clusters too small to count."""
    step, later = table.steps[table.choice.chosen], table.steps[table.choice.chosen + 1 :]
    summed, labels = shares @ np.eye(len(step.sizes))[step.groups], step.groups[table.start]
    small = np.asarray(step.sizes) < _least_size(labels.size)
    if small.all() or not small.any():
        return summed, np.empty(0, dtype=np.intp)
    # Objects that hardly ever switch belong to the group that their cluster is merged with first.
    first = np.unique(step.groups, return_index=True)[1]
    joined = np.zeros((small.size, small.size))
    for cluster in np.flatnonzero(small):
        together = (coarser.groups[first] == coarser.groups[first[cluster]] for coarser in later)
        joined[cluster] = next(row for row in together if np.any(row & ~small))
    found = np.flatnonzero(small[labels])
    summed[found] += LOW_RATE * joined[labels[found]]
    return summed[:, ~small] + 1e-9, found


def _reason(table: MergeTable, n_clusters: int) -> str:
    """Why this number of groups."""
    steps, choice = table.steps, table.choice
    chosen = steps[choice.chosen]
    if choice.bent:
        between = "the two groups" if n_clusters == 2 else f"the {n_clusters} groups"
        return (
            f"The groups are long or bent: the draws describe them by {len(steps)} Gaussian components. "
            f"Neighbouring components switch members, but no object switches between {between}."
        )
    parts = []
    if choice.chosen:
        least = min(step.switching_rate for step in steps[: choice.chosen])
        parts.append(
            f"Components were merged into groups where at least {_percent(least)} of their members switch "
            "between draws."
        )
    if chosen.pair is None:
        parts.append("The draws keep no two groups apart.")
    else:
        gains = chosen.loss < 0
        parts.append(
            f"The two closest groups exchange {_percent(chosen.switching_rate)} of their members between "
            f"draws; merging them would {'raise' if gains else 'lower'} the log posterior by "
            f"{abs(chosen.loss):.0f} nats."
        )
    return " ".join(parts)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.005 else "less than 1 %"


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


def _listed(words: Iterable[object]) -> str:
    """Join words, the first few of many."""
    names = [str(word) for word in words]
    if len(names) > _MOST_NAMED:
        return ", ".join(names[:_MOST_NAMED]) + f", … ({len(names) - _MOST_NAMED} more)"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
