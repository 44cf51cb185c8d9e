r"""Restaurants of the prior lab: guest by guest, under one prior or two, with a tally of each.

`Seating` is one restaurant after the other under one prior; `Seatings` those under all priors that are
compared, as work for the background, one guest per step. A partition is drawn by the exact sampler of the
prior when its first guest is seated, and its other guests follow one by one. `Tally` counts the clusters of
the finished partitions.

The probability of a partition is a product over its guests: the weight of the table that the guest takes,
divided by the sum of the weights of all tables and of a new one. The order of the guests does not matter.
`seats_table` shows the weights for the next guest, `probability_text` writes the product out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors import PartitionPrior

_MOST_FACTORS = 8
_MOST_COLUMNS = 8
_MOST_REPEATED = 50_000  # guests that are drawn again while a slider is moved


@dataclass(frozen=True)
class Arrival:
    """The table of the last guest; guests and tables are counted from 1."""

    guest: int
    table: int
    opened: bool
    chance: float

    def text(self, chance: str = "") -> str:
        """Say it in words."""
        return f"{'opens' if self.opened else 'joins'} table {self.table} ({chance}{self.chance:.2f})"


class Tally:
    """Numbers and sizes of the clusters of finished partitions."""

    def __init__(self, n: int) -> None:
        self.n_draws = 0
        self.counts: NDArray[np.intp] = np.zeros(n + 1, dtype=np.intp)
        self._sizes: NDArray[np.intp] = np.zeros(n + 1, dtype=np.intp)

    def add(self, labels: NDArray[np.intp]) -> None:
        """Count finished partitions, a row each."""
        rows, n = labels.shape
        np.add.at(self.counts, labels.max(axis=1) + 1, 1)
        offsets = n * np.arange(rows)[:, None]
        members = np.bincount((labels + offsets).ravel(), minlength=rows * n)
        self._sizes += np.bincount(members[members > 0], minlength=n + 1)
        self.n_draws += rows

    def frequencies(self) -> FloatArray:
        """Share of the partitions with 0, 1, …, n clusters."""
        return np.asarray(self.counts / max(1, self.n_draws), dtype=np.float64)

    def mean_clusters(self) -> float:
        """Mean number of clusters; NaN before the first partition."""
        return float(self.counts @ np.arange(self.counts.size) / self.n_draws) if self.n_draws else np.nan

    def mean_sizes(self) -> FloatArray:
        """Mean number of clusters with 0, 1, …, n members."""
        return np.asarray(self._sizes / max(1, self.n_draws), dtype=np.float64)


class Seating:
    """One restaurant of n guests after the other, under one prior; the seed determines all of them.

    Attributes
    ----------
    tally
        The finished partitions.
    labels
        Table of each guest so far, in the order in which tables were opened.
    """

    def __init__(self, n: int, prior: PartitionPrior, seed: int) -> None:
        self.n = n
        self.prior = prior
        self.seed = seed
        self.reset()

    def reset(self) -> None:
        """Start again with the same random numbers."""
        self._rng = np.random.default_rng(self.seed)
        self.tally = Tally(self.n)
        self.labels = self._drawn = np.zeros(0, dtype=np.intp)
        self._has_arrival = False

    @property
    def arrival(self) -> Arrival | None:
        """The last guest, if guests were seated one by one."""
        if not self._has_arrival:
            return None
        *before, table = self.labels.tolist()
        chance = self.prior.seating_probabilities(np.bincount(before))[table]
        return Arrival(self.labels.size, table + 1, table not in before, float(chance))

    @property
    def path(self) -> NDArray[np.intp]:
        """Tables once the first, second, … guest is seated."""
        return np.maximum.accumulate(self.labels) + 1

    def seat(self, guests: int) -> None:
        """Seat guests; after a full restaurant comes an empty one."""
        while guests > 0:
            if self.labels.size == self._drawn.size:
                self._drawn = self.prior.sample(self.n, self._rng)
                self.labels = self._drawn[:0]
            count = min(guests, self.n - self.labels.size)
            self.labels = self._drawn[: self.labels.size + count]
            guests -= count
            if self.labels.size == self.n:
                self.tally.add(self._drawn[None])
        self._has_arrival = True

    def draw(self, count: int) -> None:
        """Draw partitions at once, and show the last one; an unfinished one is dropped."""
        partitions = self.prior.sample_partitions(self.n, count, self._rng)
        self.tally.add(partitions)
        self.labels = self._drawn = partitions[-1]
        self._has_arrival = False


class Seatings:
    """A restaurant of n guests under each of the priors: work for the background, one guest per step.

    All of them have the same seed: where two priors agree, their guests take the same tables.
    """

    def __init__(self, n: int, priors: Sequence[PartitionPrior], seed: int) -> None:
        self.n = n
        self.seed = seed
        self.each = tuple(Seating(n, prior, seed) for prior in priors)

    @property
    def is_done(self) -> bool:
        """Never: after the last guest comes another restaurant."""
        return False

    def advance(self, steps: int) -> int:
        """Seat guests in each of the restaurants."""
        for seating in self.each:
            seating.seat(steps)
        return steps

    def draw(self, count: int) -> None:
        """Draw partitions under each prior."""
        for seating in self.each:
            seating.draw(count)

    def reset(self) -> None:
        """Start again with the same random numbers."""
        for seating in self.each:
            seating.reset()

    def repeat(self, before: "Seatings") -> None:
        """Draw as many partitions and seat as many guests as other restaurants have, from the same seed."""
        draws, seated = before.each[0].tally.n_draws, before.each[0].labels.size
        if draws:
            self.draw(min(draws, max(1, _MOST_REPEATED // self.n)))
        if 0 < seated < self.n or (seated and not draws):
            self.advance(seated)


def seats_table(sizes: NDArray[np.intp], prior: PartitionPrior) -> str:
    """Weights and chances of the next guest, as an HTML table: a column for each size of table."""
    weights = prior.seating_weights(sizes)
    total = weights.sum()
    members, places, tables = np.unique(sizes, return_index=True, return_counts=True)
    columns = []
    for size, place, count in zip(members[::-1], places[::-1], tables[::-1], strict=True):
        name = f"{size}" if count == 1 else f"{count} of {size}"
        # Several tables of one size share a column, with the weight of each of them.
        columns.append((name, _weight_text(weights[place]), f"{weights[place] / total:.1%}"))
    if len(columns) > _MOST_COLUMNS:
        kept = _MOST_COLUMNS // 2
        columns = [*columns[:kept], ("…", "…", "…"), *columns[-kept:]]
    columns.append(("new", _weight_text(weights[-1]), f"{weights[-1] / total:.1%}"))
    rows = zip(("table of", "weight", "chance"), *columns, strict=True)
    cells = "".join(
        f'<tr><th scope="row">{head}</th>{"".join(f"<td>{text}</td>" for text in texts)}</tr>'
        for head, *texts in rows
    )
    return f'<table class="ew-seats">{cells}</table>'


def _weight_text(weight: float) -> str:
    return f"{weight:.3g}" if weight < 100 else f"{weight:.0f}"


def product_text(labels: NDArray[np.intp], prior: PartitionPrior) -> str:
    """The probability as a product over the guests, such as 1/1 · 1/2 · 1/3; empty if it would be long."""
    if labels.size > _MOST_FACTORS or prior.log_pmf(labels) == -np.inf:
        return ""
    factors = []
    for guest, label in enumerate(labels.tolist()):
        weights = prior.seating_weights(np.bincount(labels[:guest]))
        factors.append(f"{weights[label]:.4g}/{weights.sum():.4g}")
    return " · ".join(factors)


def probability_text(labels: NDArray[np.intp], prior: PartitionPrior) -> str:
    """Probability of a partition as HTML, with its product over the guests if that is short."""
    log_value = prior.log_pmf(labels)
    if log_value == -np.inf:
        return '<b class="ew-probability">0</b>'
    power = f"10^{log_value / np.log(10.0):.1f}"
    number = power if log_value < -300.0 else f"{np.exp(min(log_value, 0.0)):.6g}"
    text = f'<b class="ew-probability">{number}</b> (log {log_value:.4f})'
    product = product_text(labels, prior)
    return f"{text} = {product}" if product else text
