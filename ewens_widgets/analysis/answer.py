"""How many clusters, which, and how sure: the answer in plain words, without being told a number.

`trace.answer()` reads the levels of `analysis.levels`: from the clusters of the point estimate, those that
the draws do not keep apart are merged, and what remains is the answer. Small leftovers are named, not
counted.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.evidence_tree import (
    Evidence,
    check_consensus_fits,
    evidence_of,
    evidence_tree,
)
from ewens_widgets.analysis.export import labels_csv
from ewens_widgets.analysis.levels import (
    SEEN,
    Level,
    LevelReading,
    merge_levels_down,
    parameters_of_cluster,
    read_levels,
    robust_memberships,
    shared_companions,
)
from ewens_widgets.analysis.trees import METHODS, Tree, tree_fits
from ewens_widgets.files import write_atomically
from ewens_widgets.memory import TooLargeError
from ewens_widgets.model.own_shapes import statistics_of
from ewens_widgets.model.priors.finite_mixture import FiniteMixture, Poisson
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.draws import read_only

if TYPE_CHECKING:
    from ewens_widgets.model.posterior import Posterior
    from ewens_widgets.sampling.trace import Trace

__all__ = ["ANSWER_PRIOR", "TREES", "Answer", "Levels", "answer", "tree_to_cut"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

ANSWER_PRIOR = FiniteMixture(1.0, Poisson(3.0))
"""Prior of `AffineClustering` where none is chosen: four components on average.

A geometric number is most probably one, and counts against every component more. Small clusters that touch
are then taken for fewer, and nothing in the answer can part them again, while parts of one cluster are
merged by it.
"""

TREES = ("auto", "consensus", "evidence", *METHODS)
_DOUBT = 0.8  # An object is in doubt if no cluster has it with so much probability.
_MOST_NAMED = 12  # objects that a text names
_LOSS_DRAWS = 12, 100  # Draws of the parameters that losses are averaged over, fewest and most …
_LOSS_WORK = 2e4  # … times pairs of clusters: a second or two in 13 columns.


@dataclass(frozen=True, eq=False)
class Levels:
    """The table behind the answer: a row for each number of clusters, from the point estimate's down to one.

    Attributes
    ----------
    levels
        The rows; each says what stands between it and the next.
    reading
        Which of them is the answer, and why.
    start
        Labels of the point estimate, which the levels are made of.
    placed
        Sizes of the answer's clusters, the largest first. They may differ from those of its level, which are
        sums of its parts: the answer puts each object where it most probably belongs, leftovers too.
    """

    levels: tuple[Level, ...] = field(repr=False)
    reading: LevelReading
    start: IntArray = field(repr=False)
    placed: tuple[int, ...] = ()

    def labels(self, n_clusters: int) -> IntArray:
        """Labels at the level with so many clusters: its parts put together, none of their objects moved."""
        for level in self.levels:
            if level.n_clusters == n_clusters:
                return canonical_labels(level.labels(self.start))
        raise ValueError(f"there are levels of 1 to {len(self.levels)} clusters; got {n_clusters}.")

    def rows(self) -> list[dict[str, Any]]:
        """The table as dictionaries: clusters, exchanged, loss, sizes, note."""
        notes = {self.reading.chosen: self._answer_note()}
        if self.reading.second is not None:
            notes[self.reading.second] = "another good level"
        return [
            {
                "clusters": level.n_clusters,
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
        note = f"the answer: {counted} of a size that counts" if counted < level.n_clusters else "the answer"
        if self.placed and self.placed != tuple(sorted(level.sizes, reverse=True)):
            sizes = _listed([str(size) for size in self.placed])
            note += f"; {sizes} with each object where it most probably belongs"
        return note

    def to_frame(self) -> Any:  # noqa: ANN401 - pandas is optional
        """The table as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.rows()).set_index("clusters")

    def __len__(self) -> int:
        return len(self.levels)

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join(
            "  ".join(
                [*(cell.rjust(width) for cell, width in zip(row[:3], widths, strict=False)), *row[3:]]
            ).rstrip()
            for row in cells
        )

    def _repr_html_(self) -> str:
        head, *body = self._cells()
        top = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in head)
        rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
        return f"<table><caption>Levels</caption><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table>"

    def _cells(self) -> list[list[str]]:
        rows = [["clusters", "exchanged", "loss (nats)", "sizes", ""]]
        for row in self.rows():
            last = np.isnan(row["exchanged"])
            rows.append(
                [
                    str(row["clusters"]),
                    "–" if last else f"{100 * row['exchanged']:.1f} %",
                    "–" if last else f"{row['loss']:.1f}",
                    _listed([str(size) for size in row["sizes"]]),
                    row["note"],
                ]
            )
        return rows


@dataclass(frozen=True, eq=False)
class Answer:
    """Clusters that the draws tell apart, and how sure that is.

    Attributes
    ----------
    labels
        Canonical labels, 0 to `n_clusters` − 1. Leftovers are put into the cluster that they are nearest to.
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
        """The cluster that each object would be in otherwise; −1 where there is only one."""
        if self.n_clusters == 1:
            return np.full(self.labels.size, -1, dtype=np.intp)
        others = self.memberships.copy()
        others[np.arange(self.labels.size), self.labels] = -1.0
        return np.asarray(np.argmax(others, axis=1), dtype=np.intp)

    @property
    def doubtful(self) -> IntArray:
        """Numbers of the objects that no cluster has with probability 0.8 or more, the least sure first."""
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
        return None if place is None else self.table.levels[place].n_clusters

    def to_csv(self, path: str | os.PathLike[str], names: Sequence[str] | None = None) -> None:
        """Write a table: object, cluster, its probability, second choice, and whether it is a leftover."""
        text = labels_csv(self.labels, names=names, columns=self._columns())
        write_atomically(path, text.encode())

    def to_frame(self, names: Sequence[str] | None = None) -> Any:  # noqa: ANN401 - pandas is optional
        """Give the same table as a pandas DataFrame, with the probabilities for all clusters."""
        import pandas as pd

        columns = {"cluster": self.labels, **self._columns()}
        columns |= {f"cluster {k}": self.memberships[:, k] for k in range(self.n_clusters)}
        index = range(self.labels.size) if names is None else list(names)
        return pd.DataFrame(columns, index=pd.Index(index, name="object"))

    def _columns(self) -> dict[str, NDArray[Any]]:
        left = np.zeros(self.labels.size, dtype=bool)
        left[self.leftovers] = True
        return {"probability": self.certainty, "second_choice": self.second_choice, "leftover": left}

    def _lines(self) -> list[str]:
        lines = [self.reason]
        doubtful = self.doubtful
        if doubtful.size:
            some = _listed([str(item) for item in doubtful])
            verb = "object is" if doubtful.size == 1 else "objects are"
            lines.append(f"{doubtful.size} {verb} in doubt: {some}.")
        else:
            lines.append("No object is in doubt.")
        if self.leftovers.size:
            some = _listed([str(item) for item in self.leftovers])
            lines.append(f"Left over, in clusters too small to count: {some}.")
        if self.second_level is not None:
            lines.append(
                f"Another good level: {self.second_level} clusters, levels().labels({self.second_level})."
            )
        return lines

    @property
    def headline(self) -> str:
        """The answer in one line."""
        if self.n_clusters == 1:
            return f"1 cluster of {self.labels.size} objects"
        sizes = _listed([str(size) for size in self.sizes])
        return f"{self.n_clusters} clusters of {sizes} objects"

    def __repr__(self) -> str:
        return f"Answer({self.headline})"

    def __str__(self) -> str:
        return "\n".join([self.headline, *self._lines()])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{escape(line)}</p>" for line in self._lines())
        return f"<div><p><strong>{escape(self.headline)}</strong></p>{lines}</div>"


def answer(trace: "Trace", evidence: Evidence | None = None) -> Answer:
    """Say how many clusters the draws of a trace tell apart, which they are, and how sure that is.

    Parameters
    ----------
    trace
        Draws of a chain, or of several that were pooled.
    evidence
        What merges lose; that of the trace's own family by default.
    """
    if not len(trace):
        raise ValueError("the trace holds no draws; sample some, or drop fewer as burn-in.")
    posterior = trace.posterior
    start = trace.point_estimate().labels
    shares = shared_companions(trace.labels, start)
    clusters = statistics_of(posterior.coordinates, start, posterior.model)
    if evidence is None:
        most = int(np.clip(_LOSS_WORK / clusters.sizes.size**2, *_LOSS_DRAWS))
        evidence = evidence_of(posterior, trace, most=most)
    free = parameters_of_cluster(posterior.n_features, posterior.model)
    levels = merge_levels_down(shares, start, clusters, evidence, free)
    table = Levels(levels, read_levels(levels, free), read_only(start))
    return answer_of_levels(table, shares, posterior)


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
        if not _consensus_fits(trace.n_objects):
            kind = "evidence"
        elif tree_fits(trace.n_objects) and n_clusters > 1 and trace.answer().bent:
            kind, min_size = "single", max(min_size, int(np.ceil(_least_size(trace.n_objects))))
        else:
            kind = "consensus"
    if kind == "consensus":
        return trace.consensus_tree(n_clusters), min_size
    if kind == "evidence":
        # The highest posterior among the draws that have enough clusters, or nearly.
        enough = trace.n_clusters >= min(n_clusters, int(trace.n_clusters.max()))
        best = int(np.argmax(np.where(enough, trace.log_posterior, -np.inf)))
        evidence = evidence_of(trace.posterior, trace)
        return evidence_tree(trace.posterior, trace.labels[best], evidence), min_size
    return trace.similarity_tree(kind), min_size


def _consensus_fits(n_objects: int) -> bool:
    try:
        check_consensus_fits(n_objects)
    except TooLargeError:
        return False
    return True


def answer_of_levels(table: Levels, shares: FloatArray, posterior: "Posterior") -> Answer:
    """Make the answer of levels: memberships, leftovers and words."""
    gathered, found = _without_leftovers(shares, table)
    lost = 0.0 if table.reading.bent else table.reading.lost
    memberships = robust_memberships(posterior.coordinates, gathered, posterior.model, lost)
    memberships = memberships[:, np.bincount(memberships.argmax(axis=1), minlength=memberships.shape[1]) > 0]
    memberships /= memberships.sum(axis=1, keepdims=True)
    # Clusters are numbered in the order in which they first appear, as labels are.
    first = memberships.argmax(axis=1)
    order = np.argsort([int(np.argmax(first == cluster)) for cluster in range(memberships.shape[1])])
    memberships = memberships[:, order]
    labels = memberships.argmax(axis=1)
    table = replace(table, placed=tuple(np.sort(np.bincount(labels))[::-1].tolist()))
    return Answer(
        labels=read_only(labels),
        memberships=read_only(memberships),
        leftovers=read_only(found),
        table=table,
        reason=_reason(table, memberships.shape[1]),
    )


def count_large(sizes: Sequence[int]) -> int:
    """How many clusters are not too small to count; all, if none is large."""
    large = int(np.sum(_is_large(np.asarray(sizes))))
    return large or len(sizes)


def _is_large(sizes: IntArray) -> NDArray[np.bool_]:
    return np.asarray(sizes >= _least_size(int(sizes.sum())))


def _least_size(n_objects: int) -> float:
    """Three objects at least, and more among many: their number's root over three."""
    return max(3.0, float(np.sqrt(n_objects)) / 3.0)


def _without_leftovers(shares: FloatArray, table: Levels) -> tuple[FloatArray, IntArray]:
    """Shares of the clusters that are not too small to count; also the numbers of the other objects."""
    level, coarser = table.levels[table.reading.chosen], table.levels[table.reading.chosen + 1 :]
    gathered, labels = level.gather(shares), level.labels(table.start)
    small = ~_is_large(np.asarray(level.sizes))
    if small.all() or not small.any():
        return gathered, np.empty(0, dtype=np.intp)
    # What is left over, and is hardly exchanged with anything, belongs to what it is merged with first.
    first = np.array([members[0] for members in level.parts])
    joined = np.zeros((small.size, small.size))
    for cluster in np.flatnonzero(small):
        together = (place[first] == place[first[cluster]] for place in map(Level.cluster_of_part, coarser))
        joined[cluster] = next(row for row in together if np.any(row & ~small))
    found = np.flatnonzero(small[labels])
    gathered[found] += SEEN * joined[labels[found]]
    return gathered[:, ~small] + 1e-9, found


def _reason(table: Levels, n_clusters: int) -> str:
    """Why this number of clusters."""
    levels, reading = table.levels, table.reading
    begin, chosen = levels[0].n_clusters, levels[reading.chosen]
    if reading.bent:
        return (
            f"Long or bent clusters: the draws describe them by {begin} ellipses, which pass objects on to "
            f"their neighbours, but between these {n_clusters} clusters nothing is ever exchanged."
        )
    parts = []
    if begin > chosen.n_clusters:
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


def _listed(names: Sequence[str]) -> str:
    """Join words, the first few of many."""
    if len(names) > _MOST_NAMED:
        return ", ".join(names[:_MOST_NAMED]) + f", … ({len(names) - _MOST_NAMED} more)"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
