r"""The Chinese restaurant as a lecturer plays it: guest by guest, with the chance of each, and a tally.

`Seating` is work for the background, a step a guest; after the last guest comes another restaurant. `Tally`
counts the tables of those that were filled. The probability of a seating is the product over its guests,

.. math:: \prod_{i<n} \frac{w_i}{\lambda + i}, \qquad
    w_i = \text{guests at the table that guest } i \text{ joins, or } \lambda \text{ for a new table,}

whatever the order in which they come; `product_text` writes it out, and `probability_text` says how small it
is.

No widget is needed for any of this. It is here nevertheless because only this lab plays the prior: the law
itself, and the draws that the sampler and the tests use, are in `model.priors`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors import ewens
from ewens_widgets.model.priors.ewens import sample_partitions

__all__ = [
    "Arrival",
    "Seating",
    "Tally",
    "probability_text",
    "product_text",
]

_MOST_FACTORS = 8


@dataclass(frozen=True)
class Arrival:
    """Where the last guest sat down: guest and table count from 1."""

    guest: int
    table: int
    opened: bool
    chance: float


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
    """One restaurant after the other: work for the background, a step a guest.

    Parameters
    ----------
    n
        Guests of a restaurant.
    concentration
        Concentration λ.
    seed
        Seed; with the same one the same guests sit down at the same tables.
    """

    def __init__(self, n: int, concentration: float, seed: int) -> None:
        self.n = n
        self.concentration = concentration
        self.seed = seed
        self.reset()

    def reset(self) -> None:
        """Begin again, with the same guests."""
        self._rng = np.random.default_rng(self.seed)
        self.tally = Tally(self.n)
        self._clear()

    def _clear(self) -> None:
        self.labels: list[int] = []
        self.sizes: list[int] = []
        self.path: list[int] = []
        self.arrival: Arrival | None = None

    @property
    def is_done(self) -> bool:
        """Never: after the last guest comes another restaurant."""
        return False

    @property
    def is_full(self) -> bool:
        """Whether all guests of this restaurant are seated."""
        return len(self.labels) == self.n

    def advance(self, steps: int) -> int:
        """Seat so many guests; in a full restaurant the first of them finds an empty one."""
        for _ in range(steps):
            self._seat()
        return steps

    def _seat(self) -> None:
        if self.is_full:
            self._clear()
        seated = len(self.labels)
        total = seated + self.concentration
        place = self._rng.random() * total
        opens = place >= seated
        # The table of an evenly chosen earlier guest is a table chosen in proportion to its guests.
        table = len(self.sizes) if opens else self.labels[int(place)]
        if opens:
            self.sizes.append(0)
        weight = self.concentration if opens else self.sizes[table]
        self.arrival = Arrival(seated + 1, table + 1, opens, weight / total)
        self.sizes[table] += 1
        self.labels.append(table)
        self.path.append(len(self.sizes))
        if self.is_full:
            self.tally.add(np.array([self.labels], dtype=np.intp))

    def draw(self, count: int) -> None:
        """Fill so many restaurants at once, and show the last one; one that is half full is left behind."""
        labels = sample_partitions(self.n, self.concentration, count, self._rng)
        self.tally.add(labels)
        last = labels[-1]
        self.labels = last.tolist()
        self.sizes = np.bincount(last).tolist()
        self.path = (np.maximum.accumulate(last) + 1).tolist()
        self.arrival = None


def product_text(labels: NDArray[np.intp], concentration: float) -> str:
    """The probability as a product over the guests, such as λ/λ · 1/(λ+1); empty if it would be long."""
    if labels.size > _MOST_FACTORS:
        return ""
    factors = []
    sizes: dict[int, int] = {}
    for seated, label in enumerate(labels.tolist()):
        weight = str(sizes[label]) if label in sizes else "λ"
        factors.append(f"{weight}/(λ+{seated})" if seated else "λ/λ")
        sizes[label] = sizes.get(label, 0) + 1
    return f"{' · '.join(factors)} with λ = {concentration:.4g}"


def probability_text(labels: NDArray[np.intp], concentration: float, n_components: int) -> str:
    """Probability of a partition under Ewens' prior and under finitely many components, as HTML."""
    infinite = ewens.log_pmf(labels, concentration)
    finite = ewens.dirichlet_multinomial_log_pmf(labels, concentration, n_components)
    return (
        f'probability <b class="ew-probability">{_number(infinite)}</b> (log {infinite:.4f}), '
        f'with k = {n_components} components <b class="ew-finite-probability">{_number(finite)}</b>'
    )


def _number(log_value: float) -> str:
    if log_value == -np.inf:
        return "0"
    if log_value < -300.0:
        return f"10^{log_value / np.log(10.0):.1f}"
    return f"{np.exp(log_value):.6g}"
