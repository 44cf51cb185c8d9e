r"""Restaurants as a lecturer plays them: guest by guest, under one prior or two, with a tally of each.

`Seating` is one restaurant after the other under one prior, `Evenings` the seatings under all priors that are
compared, as work for the background, a step a guest. An evening is drawn when its first guest comes, by the
exact sampler of the prior, and its guests are then let in one by one: so nothing is drawn here in another way
than everywhere else. `Tally` counts the tables of the evenings that were finished.

The probability of a seating is the product over its guests of the weight of the table that each of them
takes, divided by the sum of the weights of all tables and of a new one, whatever the order of the guests.
`seats_table` shows the weights of the next guest, `product_text` writes the product out.

No widget is needed for any of this. It is here nevertheless because only this lab plays the prior: the laws
themselves are in `model.priors`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors import PartitionPrior
from ewens_widgets.partition import cluster_sizes

__all__ = [
    "Arrival",
    "Evenings",
    "Seating",
    "Tally",
    "number_of",
    "probability_text",
    "product_text",
    "seats_table",
]

_MOST_FACTORS = 8
_MOST_COLUMNS = 8


@dataclass(frozen=True)
class Arrival:
    """Where the last guest sat down: guest and table count from 1."""

    guest: int
    table: int
    opened: bool
    chance: float

    def text(self, chance: str = "") -> str:
        """What the guest did, in words."""
        return f"{'opens' if self.opened else 'joins'} table {self.table} ({chance}{self.chance:.2f})"


class Tally:
    """How many clusters, and of which sizes, the finished seatings have."""

    def __init__(self, n: int) -> None:
        self.n_draws = 0
        self.counts: NDArray[np.intp] = np.zeros(n + 1, dtype=np.intp)
        self._sizes: NDArray[np.intp] = np.zeros(n + 1, dtype=np.intp)

    def add(self, labels: NDArray[np.intp]) -> None:
        """Count finished seatings, a row each."""
        rows, n = labels.shape
        np.add.at(self.counts, labels.max(axis=1) + 1, 1)
        offsets = n * np.arange(rows)[:, None]
        members = np.bincount((labels + offsets).ravel(), minlength=rows * n)
        self._sizes += np.bincount(members[members > 0], minlength=n + 1)
        self.n_draws += rows

    def frequencies(self) -> FloatArray:
        """Share of the seatings with 0, 1, …, n clusters."""
        return np.asarray(self.counts / max(1, self.n_draws), dtype=np.float64)

    def mean_clusters(self) -> float:
        """Mean number of clusters; NaN before the first seating."""
        return float(self.counts @ np.arange(self.counts.size) / self.n_draws) if self.n_draws else np.nan

    def mean_sizes(self) -> FloatArray:
        """Mean number of clusters with 0, 1, …, n members."""
        return np.asarray(self._sizes / max(1, self.n_draws), dtype=np.float64)


class Seating:
    """One restaurant after the other, under one prior.

    Parameters
    ----------
    n
        Guests of a restaurant.
    prior
        By which they sit down.
    seed
        Seed; with the same one the same guests sit down at the same tables.
    """

    def __init__(self, n: int, prior: PartitionPrior, seed: int) -> None:
        self.n = n
        self.prior = prior
        self.seed = seed
        self.reset()

    def reset(self) -> None:
        """Begin again, with the same guests."""
        self._rng = np.random.default_rng(self.seed)
        self.tally = Tally(self.n)
        self._evening: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._seated = 0
        self._came_last = False

    @property
    def labels(self) -> NDArray[np.intp]:
        """Table of each guest so far, in the order in which tables were opened."""
        return self._evening[: self._seated]

    @property
    def is_full(self) -> bool:
        """Whether all guests of this restaurant are seated."""
        return self._seated == self.n

    @property
    def arrival(self) -> Arrival | None:
        """Where the last guest sat down, if one came by himself."""
        if not self._came_last:
            return None
        *before, table = self.labels.tolist()
        sizes = cluster_sizes(before) if before else np.zeros(0, dtype=np.intp)
        chance = self.prior.seating_probabilities(sizes)[table]
        return Arrival(self._seated, table + 1, table == sizes.size, float(chance))

    @property
    def path(self) -> NDArray[np.intp]:
        """Tables once the first, second, … guest is seated."""
        labels = self.labels
        return np.maximum.accumulate(labels) + 1 if labels.size else labels

    def seat(self, guests: int) -> None:
        """Seat so many guests; in a full restaurant the first of them finds an empty one."""
        while guests > 0:
            if self._seated == self._evening.size:
                self._evening, self._seated = self.prior.sample(self.n, self._rng), 0
            came = min(guests, self.n - self._seated)
            self._seated += came
            guests -= came
            if self.is_full:
                self.tally.add(self._evening[None])
        self._came_last = True

    def draw(self, count: int) -> None:
        """Fill so many restaurants at once, and show the last one; one that is half full is left behind."""
        labels = self.prior.sample_partitions(self.n, count, self._rng)
        self.tally.add(labels)
        self._evening, self._seated, self._came_last = labels[-1], self.n, False


class Evenings:
    """The same guests under each of the priors that are compared: work for the background, a step a guest.

    Parameters
    ----------
    n
        Guests of a restaurant.
    priors
        By which they sit down: one restaurant each.
    seed
        Seed of all of them: where two priors agree, the same guests do the same.
    """

    def __init__(self, n: int, priors: Sequence[PartitionPrior], seed: int) -> None:
        self.n = n
        self.seed = seed
        self.seatings = tuple(Seating(n, prior, seed) for prior in priors)

    @property
    def is_done(self) -> bool:
        """Never: after the last guest comes another restaurant."""
        return False

    def advance(self, steps: int) -> int:
        """Seat so many guests in each of the restaurants."""
        for seating in self.seatings:
            seating.seat(steps)
        return steps

    def draw(self, count: int) -> None:
        """Fill so many restaurants under each prior."""
        for seating in self.seatings:
            seating.draw(count)

    def reset(self) -> None:
        """Begin again, with the same guests."""
        for seating in self.seatings:
            seating.reset()


def seats_table(sizes: NDArray[np.intp], prior: PartitionPrior) -> str:
    """Weights and chances of the next guest, as an HTML table: a column for each size of table."""
    weights = prior.seating_weights(sizes)
    total = weights.sum()
    members, places, tables = np.unique(sizes, return_index=True, return_counts=True)
    columns = []
    for size, place, count in zip(members[::-1], places[::-1], tables[::-1], strict=True):
        name = f"{size}" if count == 1 else f"{count} of {size}"
        # Several tables of one size share a column, which tells what each of them weighs.
        columns.append((name, weights[place], weights[place] / total))
    hidden = len(columns) - _MOST_COLUMNS
    if hidden > 0:
        kept = _MOST_COLUMNS // 2
        columns = [*columns[:kept], ("…", np.nan, np.nan), *columns[-kept:]]
    columns.append(("new", weights[-1], weights[-1] / total))
    rows = (
        ("table of", [name for name, _, _ in columns]),
        ("weight", ["…" if np.isnan(weight) else _short(weight) for _, weight, _ in columns]),
        ("chance", ["…" if np.isnan(chance) else f"{chance:.1%}" for _, _, chance in columns]),
    )
    cells = "".join(
        f'<tr><th scope="row">{head}</th>{"".join(f"<td>{text}</td>" for text in texts)}</tr>'
        for head, texts in rows
    )
    return f'<table class="ew-seats">{cells}</table>'


def _short(weight: float) -> str:
    """Three digits of a small weight, and all whole ones of a large weight."""
    return f"{weight:.3g}" if weight < 100.0 else f"{weight:.0f}"


def product_text(labels: NDArray[np.intp], prior: PartitionPrior) -> str:
    """The probability as a product over the guests, such as 1/1 · 1/2 · 1/3; empty if it would be long."""
    if labels.size > _MOST_FACTORS or prior.log_pmf(labels) == -np.inf:
        return ""
    factors = []
    sizes: list[int] = []
    for label in labels.tolist():
        weights = prior.seating_weights(sizes)
        factors.append(f"{weights[label]:.4g}/{weights.sum():.4g}")
        if label == len(sizes):
            sizes.append(0)
        sizes[label] += 1
    return " · ".join(factors)


def probability_text(labels: NDArray[np.intp], prior: PartitionPrior) -> str:
    """Probability of a partition as HTML, with its product over the guests if that is short."""
    log_value = prior.log_pmf(labels)
    text = f'<b class="ew-probability">{number_of(log_value)}</b>'
    if log_value > -np.inf:
        text += f" (log {log_value:.4f})"
    product = product_text(labels, prior)
    return f"{text} = {product}" if product else text


def number_of(log_value: float) -> str:
    """Number with a given logarithm, also where it is too small for a float."""
    if log_value == -np.inf:
        return "0"
    if log_value < -300.0:
        return f"10^{log_value / np.log(10.0):.1f}"
    return f"{np.exp(min(log_value, 0.0)):.6g}"
