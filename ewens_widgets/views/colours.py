"""Colours that follow clusters through relabelling.

Labels are numbered anew at each iteration. Here each cluster takes over the colour of the cluster before it
that it shares most objects with, all clusters together being matched so that as many objects as possible keep
their colour. A cluster without a predecessor gets the first free colour, larger clusters first. Objects that
are alone, or left over by a cut (label −1), are grey.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ewens_widgets.views.palette import CLUSTER_COLOURS, GREY, N_DISTINCT

__all__ = ["ALONE", "ClusterColours", "best_match", "changed_objects", "colour_of"]

Labels = NDArray[np.integer[Any]]
IntArray = NDArray[np.intp]

ALONE = -1
"""Slot of objects that are alone or left over."""


def colour_of(slot: int) -> str:
    """Colour of a slot; colours come back when they are used up."""
    return GREY if slot == ALONE else CLUSTER_COLOURS[slot % len(CLUSTER_COLOURS)]


def best_match(before: Labels, after: Labels) -> dict[int, int]:
    """Which label before each label after it continues, by total overlap; entries below 0 do not count."""
    both = (before >= 0) & (after >= 0)
    if not both.any():
        return {}
    old, old_place = np.unique(before[both], return_inverse=True)
    new, new_place = np.unique(after[both], return_inverse=True)
    overlap = np.zeros((new.size, old.size), dtype=np.intp)
    np.add.at(overlap, (new_place, old_place), 1)
    rows, columns = linear_sum_assignment(overlap, maximize=True)
    return {
        int(new[row]): int(old[column])
        for row, column in zip(rows, columns, strict=True)
        if overlap[row, column] > 0
    }


def changed_objects(before: Labels, after: Labels) -> IntArray:
    """Objects whose cluster changes, once clusters are matched: of a split or a merge, the smaller part."""
    match = best_match(before, after)
    continued = np.array([match.get(int(label), ALONE) for label in after], dtype=np.intp)
    return np.flatnonzero(continued != before)


class ClusterColours:
    """Remembers the colours of the partition shown last."""

    def __init__(self) -> None:
        self._slots: IntArray | None = None

    def clear(self) -> None:
        """Forget: the objects are others now."""
        self._slots = None

    def assign(self, labels: Labels) -> IntArray:
        """Colour slot of each object."""
        clean = _without_singletons(labels)
        if self._slots is None or self._slots.size != clean.size:
            self._slots = np.full(clean.size, ALONE, dtype=np.intp)
        slot_of = best_match(self._slots, clean)
        taken = set(slot_of.values())
        values, counts = np.unique(clean[clean >= 0], return_counts=True)
        for label in values[np.argsort(-counts, kind="stable")]:
            if int(label) not in slot_of:
                free = next(slot for slot in range(clean.size) if slot not in taken)
                slot_of[int(label)] = free
                taken.add(free)
        if len(slot_of) <= N_DISTINCT:
            _make_distinct(slot_of)
        slots = np.full(clean.size, ALONE, dtype=np.intp)
        for label, slot in slot_of.items():
            slots[clean == label] = slot
        slots.setflags(write=False)
        self._slots = slots
        return slots


def _make_distinct(slot_of: dict[int, int]) -> None:
    """Give the most distinct colours to few clusters: better than old ones that look alike."""
    free = iter(sorted(set(range(N_DISTINCT)) - set(slot_of.values())))
    for label, slot in slot_of.items():
        if slot >= N_DISTINCT:
            slot_of[label] = next(free)


def _without_singletons(labels: Labels) -> IntArray:
    clean = np.asarray(labels, dtype=np.intp).copy()
    sizes = np.bincount(clean[clean >= 0], minlength=1)
    clean[(clean >= 0) & (sizes[np.maximum(clean, 0)] == 1)] = ALONE
    return clean
