"""Guests who sit down one by one by the Chinese restaurant process, and a tally of the finished seatings."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.cluster_counts import sample_partitions

__all__ = ["Arrival", "Seating", "Tally"]


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
