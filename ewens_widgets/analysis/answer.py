r"""How many groups, which, and how certain that is: the answer, without being told a number.

`groups` gives every draw a partition into groups. The answer is computed from these:

* the posterior probability of each number of groups, small ones not counted, the threshold being unknown;
* of the draws with the most frequent number, the one whose groups have the least expected variation of
  information over all draws, as reference;
* membership probabilities: the share of draws in which an object is with the *core* of a group, more than
  half of its objects. If an object is with the cores of several groups, because a draw has them as one, the
  draw counts for each of them equally. So the probabilities include the uncertainty about the number.

Each object is assigned to its most probable group. The merge table is that of the reference draw.

**Long tails.** If merges lost log posterior, groups have longer tails than Gaussians, often on one side. The
probabilities are then averaged with the responsibilities of a mixture of skewed Student distributions, one
for each group. It is fitted by a few steps of expectation and maximisation (Peel & McLachlan 2000; Browne &
McNicholas 2015):

.. math:: y = \mu_k + w \gamma_k + \sqrt{w} \, \Sigma_k^{1/2} z, \qquad
          w \sim \operatorname{InvGamma}(\nu / 2, \nu / 2), \quad z \sim N(0, I),

with shapes :math:`\Sigma_k` pooled towards a common one and skewness :math:`\gamma_k` shrunk towards zero.
This step is left out for groups that no ellipse describes (`Answer.bent`).

References: D. Peel & G. J. McLachlan (2000), Robust mixture modelling using the t distribution, Stat.
Comput. 10, 339–348; R. P. Browne & P. D. McNicholas (2015), A mixture of generalized hyperbolic
distributions, Can. J. Stat. 43, 176–198.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, kve, logsumexp

from ewens_widgets.analysis import evidence_tree as by_evidence
from ewens_widgets.analysis.agreement import adjusted_rand
from ewens_widgets.analysis.estimates import CredibleBall, Draws, ExpectedLoss, credible_ball
from ewens_widgets.analysis.export import labels_csv
from ewens_widgets.analysis.findings import html_table, text_table
from ewens_widgets.analysis.groups import (
    FACTOR,
    DrawGroups,
    Level,
    count_large,
    groups_of,
    least_size,
    merge_losses,
)
from ewens_widgets.analysis.trees import METHODS, Tree, tree_fits
from ewens_widgets.arguments import TooLargeError, check_fits
from ewens_widgets.files import write_atomically
from ewens_widgets.model.checks import ModelName
from ewens_widgets.model.mixed_columns import Columns
from ewens_widgets.model.priors.finite_mixture import FiniteMixture, Poisson
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.draws import read_only

if TYPE_CHECKING:
    from ewens_widgets.analysis.report import Report
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

_DRAWS = 300, 2000  # Draws whose companions are counted, fewest and most …
_OBJECTS = 2_000_000  # … times objects.
_MISFIT = 5.0  # Nats lost by all merges, from which on Gaussians do not fit.
_FREEDOM = 5.0  # Degrees of freedom of the skewed Student mixture.
_STEPS = 50  # Of expectation and maximisation, at most.
_ASSIGNED = 0.8  # An object is uncertain if no group has it with this membership probability.
_MOST_NAMED = 12  # Objects that a text names.
_NAMED_NUMBER = 0.05  # Probability from which another number of groups is named.


class MergeStep(NamedTuple):
    """A number of groups, and the merge that leads to the next smaller number.

    `groups` holds for each component the number of its group here, and `sizes` the numbers of objects.
    `pair` are the groups that are merged next (None if there is one group). They overlap by `overlap`, and
    their merge lowers the log posterior by `loss` nats.
    """

    groups: IntArray
    sizes: tuple[int, ...]
    pair: tuple[int, int] | None
    overlap: float
    loss: float


@dataclass(frozen=True, eq=False)
class MergeTable:
    """The merge table: a row for each number of groups, from the components of one draw to one group.

    Attributes
    ----------
    steps
        The rows, each with the merge that leads to the next.
    start
        Labels of the draw, whose clusters are the components.
    chosen
        Which row is the answer.
    second
        Which row has another number of groups that does not depend on the threshold, or None.
    placed
        Sizes of the answer's groups, the largest first. They may differ from the sizes in its row, which
        are sums of components: the answer assigns each object to its most probable group.
    """

    steps: tuple[MergeStep, ...] = field(repr=False)
    start: IntArray = field(repr=False)
    chosen: int = 0
    second: int | None = None
    placed: tuple[int, ...] = ()

    def labels(self, n_clusters: int) -> IntArray:
        """Labels of the row with `n_clusters` groups: the components of the draw, merged."""
        if not 1 <= n_clusters <= len(self.steps):
            raise ValueError(f"the merge table has rows for 1 to {len(self.steps)} groups; got {n_clusters}.")
        return canonical_labels(self.steps[-n_clusters].groups[self.start])

    def rows(self) -> list[dict[str, Any]]:
        """The table as dictionaries: groups, overlap, loss, sizes, note."""
        sizes = self.steps[self.chosen].sizes
        small = len(sizes) - count_large(np.array(sizes))
        note = "the answer" + (f", with {small} small {_plural(small, 'cluster')}" if small else "")
        if self.placed and self.placed != tuple(sorted(sizes, reverse=True)):
            note += f"; sizes by most probable group: {_listed(self.placed)}"
        notes = {self.second: "another good number", self.chosen: note}
        return [
            {
                "groups": len(step.sizes),
                "overlap": step.overlap,
                "loss": step.loss,
                "sizes": sorted(step.sizes, reverse=True),
                "note": notes.get(place, ""),
            }
            for place, step in enumerate(self.steps)
        ]

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
        cells = [["groups", "overlap", "loss (nats)", "sizes", ""]]
        for row in self.rows():
            is_last = row["groups"] == 1
            overlap = "–" if is_last else f"{100 * row['overlap']:.1f} %"
            loss = "–" if is_last else f"{row['loss']:.1f}"
            cells.append([str(row["groups"]), overlap, loss, _listed(row["sizes"]), row["note"]])
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
    probabilities
        Posterior probability of each number of groups, the threshold being unknown; see `analysis.groups`.
    shares
        Share of the draws with each number of groups at the threshold of the answer.
    levels
        The curve of thresholds: the number of groups at each, its share of draws, and whether the groups
        depend on the threshold there.
    level
        The level that the answer uses.
    bent
        Whether groups are long or bent: one Gaussian for the two closest groups would lose less log posterior
        than one Gaussian in the place of two did within a group.
    components
        Range of the number of Gaussian components of the draws, without 5 % of the draws at either end.
    draws
        Groups of the draws, a row each: `ew.summarize` and `Draws` take them.
    reason
        Why this number, in a sentence or two.
    """

    labels: IntArray = field(repr=False)
    memberships: FloatArray = field(repr=False)
    small_clusters: IntArray = field(repr=False)
    table: MergeTable = field(repr=False)
    probabilities: dict[int, float]
    shares: dict[int, float] = field(repr=False)
    levels: tuple[Level, ...] = field(repr=False)
    level: Level
    bent: bool
    components: tuple[int, int]
    draws: NDArray[np.int16] = field(repr=False)
    reason: str
    _trace: "Trace" = field(repr=False)
    _numbers: IntArray = field(repr=False)

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
    def second_level(self) -> int | None:
        """Another good number of groups, or None; its labels are ``groups(number)``."""
        return None if self.table.second is None else len(self.table) - self.table.second

    @property
    def probability(self) -> float:
        """Posterior probability of the number of groups."""
        return self.probabilities.get(self.n_clusters, 0.0)

    def groups(self, number: int) -> IntArray:
        """Labels with another number of groups: a row of the merge table."""
        return self.labels.copy() if number == self.n_clusters else self.table.labels(number)

    @cached_property
    def report(self) -> "Report":
        """The verdict on the run, as ``trace.report()`` gives it."""
        return self._trace.report()

    def chain_agreement(self) -> FloatArray:
        """Adjusted Rand index between the groups of each chain alone and those of all."""
        ends = np.cumsum([len(chain) for chain in self._trace.chains])
        chain_of = np.searchsorted(ends, self._numbers, side="right")
        parts = [self.draws, *(self.draws[chain_of == chain] for chain in np.unique(chain_of))]
        typical = [rows[typical_draw(rows, slice(None))] for rows in parts]
        whole, *each = (
            core_memberships(rows, labels)[0].argmax(axis=1)
            for rows, labels in zip(parts, typical, strict=True)
        )
        return np.array([adjusted_rand(whole, labels) for labels in each])

    def curve(self) -> tuple[Level, ...]:
        """The levels from which another number of groups is found, from the largest threshold down."""
        before = (None, *(level.n_groups for level in self.levels))
        return tuple(
            level for level, number in zip(self.levels, before, strict=False) if level.n_groups != number
        )

    def credible_ball(self, level: float = 0.95) -> CredibleBall:
        """Smallest ball around the answer that holds a share `level` of the groups of the draws."""
        expected = ExpectedLoss(Draws.of(np.array([canonical_labels(row) for row in self.draws])), "vi")
        return credible_ball(expected.draws, expected.distances(self.labels), level)

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
            yield f"Another good number of groups: {number}. Its labels are groups({number})."
        yield self.report.headline

    @property
    def headline(self) -> str:
        """The answer in one line."""
        count, (low, high) = self.n_clusters, self.components
        ranked = sorted(self.probabilities, key=lambda number: -self.probabilities[number])
        others = "".join(
            f"; {number}: {self.probabilities[number]:.2f}"
            for number in ranked[:3]
            if number != count and self.probabilities[number] >= _NAMED_NUMBER
        )
        chance = f"probability {self.probability:.2f}{others}"
        if ranked[0] != count:
            # A small probability alone would contradict the number before it.
            all_numbers = f"{count}: {self.probability:.2f}{others}"
            chance = f"at its threshold of overlap; over all thresholds {all_numbers}"
        span = _plural(high, "Gaussian component")
        made = "" if low == high == count else f", from {low if low == high else f'{low}–{high}'} {span}"
        sizes = f"{_listed(self.sizes)} {_plural(self.labels.size, 'object')}"
        return f"{count} {_plural(count, 'group')} ({chance}) of {sizes}{made}"

    @property
    def _title(self) -> str:
        """The headline, which begins with a warning if the chains disagree."""
        doubt = "This run does not converge: " if self.report.verdict == "do not trust" else ""
        return f"{doubt}{self.headline}."

    def __repr__(self) -> str:
        return f"Answer({self.headline})"

    def __str__(self) -> str:
        return "\n".join([self._title, *self._lines()])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{escape(line)}</p>" for line in self._lines())
        return f"<div><p><strong>{escape(self._title)}</strong></p>{lines}</div>"


def answer(trace: "Trace") -> Answer:
    """Find the groups that the draws keep apart, and their probabilities."""
    if not len(trace):
        raise ValueError("the trace holds no draws; sample some, or drop fewer as burn-in.")
    found = groups_of(trace)
    draws = found.of_level(found.chosen)
    number = found.levels[found.chosen].n_groups
    reference = typical_draw(draws, found.rows)
    memberships, small = core_memberships(draws, draws[reference])
    table = _merge_table(trace, found, reference)
    chosen = len(table) - 1 - int(draws[reference].max())
    within, following = [step.loss for step in table.steps[:chosen]], table.steps[chosen].loss
    bent = bool(within and following < max(within))
    lost = 0.0 if bent else sum(max(loss, 0.0) for loss in within)
    memberships = robust_memberships(
        trace.best_posterior.coordinates, memberships, trace.posterior.model, lost, trace.posterior.columns
    )
    # Groups are numbered in the order in which they first appear, as labels are.
    seen, first = np.unique(memberships.argmax(axis=1), return_index=True)
    memberships = memberships[:, seen[np.argsort(first)]]
    memberships /= memberships.sum(axis=1, keepdims=True)
    labels = memberships.argmax(axis=1)
    second = _second(found, number, chosen, table)
    placed = tuple(np.sort(np.bincount(labels))[::-1].tolist())
    table = replace(table, chosen=chosen, second=second, placed=placed)
    low, high = np.quantile(trace.n_clusters, [0.05, 0.95], method="inverted_cdf")
    return Answer(
        labels=read_only(labels),
        memberships=read_only(memberships),
        small_clusters=read_only(small),
        table=table,
        probabilities=found.probabilities(),
        shares=found.numbers(found.levels[found.chosen].threshold * FACTOR**0.5),
        levels=found.levels,
        level=found.levels[found.chosen],
        bent=bent,
        components=(int(low), int(high)),
        draws=read_only(draws),
        reason=_reason(found, table),
        _trace=trace,
        _numbers=found.draws,
    )


def typical_draw(draws: NDArray[np.int16], rows: IntArray | slice) -> int:
    """Of the draws with the most frequent number, the one with the least expected loss over all draws."""
    distinct = Draws.of(np.array([canonical_labels(labels[rows]) for labels in draws]))
    expected = ExpectedLoss(distinct, "vi")
    losses = np.array([expected.of(labels) for labels in distinct.labels.astype(np.intp)])[distinct.place]
    counts = np.array([count_large(np.bincount(labels)) for labels in draws])
    numbers, times = np.unique(counts, return_counts=True)
    return int(np.argmin(np.where(counts == numbers[times.argmax()], losses, np.inf)))


def core_memberships(draws: NDArray[np.int16], labels: NDArray[np.integer]) -> tuple[FloatArray, IntArray]:
    """Membership probabilities for the large groups of a partition (n × K), and the objects of small ones.

    Parameters
    ----------
    draws
        Groups of the draws, a row each.
    labels
        The partition.
    """
    sizes = np.bincount(labels)
    large = sizes >= least_size(labels.size)
    if not large.any():
        large[:] = True
    total = np.zeros((labels.size, sizes.size))
    for row in draws.astype(np.intp):
        width = int(row.max()) + 1
        counts = np.bincount(row * sizes.size + labels, minlength=width * sizes.size).reshape(width, -1)
        counts = counts * large
        shares = (counts > 0.5 * sizes) & large
        # A group that has no core counts for the group that it shares most objects with.
        lost = np.flatnonzero(~shares.any(axis=1) & (counts.sum(axis=1) > 0))
        shares[lost, counts[lost].argmax(axis=1)] = True
        total += (shares / np.maximum(shares.sum(axis=1, keepdims=True), 1))[row]
    # Objects that are with no large group in any draw could be in any of them.
    total += 1e-9 * large
    total[total[:, large].max(axis=1) < 1e-6] += large * sizes
    found = total[:, large]
    return found / found.sum(axis=1, keepdims=True), np.flatnonzero(~large[labels])


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


def _merge_table(trace: "Trace", found: DrawGroups, place: int) -> MergeTable:
    """The merges of one draw, with what they lose."""
    path, start = found.paths[place], found.labels[place].astype(np.intp)
    overlaps = [*path.overlaps.tolist(), np.nan]
    losses = [*merge_losses(trace, found, place).tolist(), np.nan]
    steps = (
        MergeStep(row, tuple(np.bincount(row[start]).tolist()), pair, overlap, loss)
        for row, pair, overlap, loss in zip(
            path.groups, [*map(tuple, path.pairs.tolist()), None], overlaps, losses, strict=True
        )
    )
    return MergeTable(tuple(steps), read_only(start))


def _second(found: DrawGroups, number: int, chosen: int, table: MergeTable) -> int | None:
    """Find another number of groups that does not depend on the threshold, in a row of the table."""
    others = [level.n_groups for level in found.levels[found.chosen :] if level.is_stable]
    if not found.levels[found.chosen].is_stable or found.chosen:
        others.append(found.levels[0].n_groups)
    for other in others:
        if other not in (1, number) and other <= len(table):
            place = len(table) - other
            return None if place == chosen else place
    return None


def _reason(found: DrawGroups, table: MergeTable) -> str:
    """Why this number of groups."""
    level, step = found.levels[found.chosen], table.steps[table.chosen]
    low, high = level.threshold, FACTOR * level.threshold
    if not level.is_stable:
        text = (
            "How many groups there are depends on how much overlap makes two components one group: at no "
            f"threshold do the groups stay the same within a factor of {FACTOR:.0f}."
        )
    elif found.chosen:
        text = (
            f"The groups are the same whether components count as one from {_percent(low)} or from "
            f"{_percent(high)} overlap. At larger thresholds they change with it."
        )
    else:
        text = (
            f"The groups are the same whether components count as one from {_percent(low)} or from "
            f"{_percent(high)} overlap."
        )
    if step.pair is None:
        return f"{text} The draws keep no two groups apart."
    effect = "raise" if step.loss < 0 else "lower"
    return (
        f"{text} The two closest groups overlap by {_percent(step.overlap)}; as one Gaussian component they "
        f"would {effect} the log posterior by {abs(step.loss):.0f} nats."
    )


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
            kind, min_size = "single", max(min_size, int(np.ceil(least_size(trace.n_objects))))
    if kind == "consensus":
        return trace.consensus_tree(n_clusters), min_size
    if kind == "evidence":
        # The highest posterior among the draws that have enough clusters, or nearly.
        enough = trace.n_clusters >= min(n_clusters, int(trace.n_clusters.max()))
        best = int(np.argmax(np.where(enough, trace.log_posterior, -np.inf)))
        posterior = trace.posterior_at(best)
        evidence = by_evidence.evidence_of(posterior, trace)
        return by_evidence.evidence_tree(posterior, trace.labels[best], evidence), min_size
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
