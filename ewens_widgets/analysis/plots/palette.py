"""Colours that colour-blind people can tell apart, one for each cluster; singletons are grey.

The first seven are those of Okabe & Ito (2008), without black and without their yellow, which is too pale for
points on white. Further clusters repeat them, darkened and then lightened; pictures of so many clusters also
change the marker.

Colours of clusters and of heatmaps.

The first eight cluster colours and the grey stay apart for people with any of the common colour deficiencies,
on light and on dark backgrounds: they were searched for that, by differences in CIELAB. From the ninth
cluster on the same hues come back in two other shades; sizes in the legend and selecting objects help to
tell them apart.

Colours that follow clusters through relabelling.

Labels are numbered anew at each iteration. Here each cluster takes over the colour of the cluster before it
that it shares most objects with, all clusters together being matched so that as many objects as possible keep
their colour. A cluster without a predecessor gets the first free colour, larger clusters first. Objects that
are alone, or left over by a cut (label −1), are grey.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from ewens_widgets.partition import check_labels

__all__ = [
    "ALONE",
    "CLUSTER_COLOURS",
    "COLOUR_MAPS",
    "GREY",
    "MARKERS",
    "N_DISTINCT",
    "OKABE_ITO",
    "SELECTED",
    "SINGLETON",
    "ClusterColours",
    "best_match",
    "changed_objects",
    "class_colours",
    "cluster_colours",
    "cluster_markers",
    "colour_map",
    "colour_of",
    "matching_colours",
    "rgb",
]

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C6D1F")
SINGLETON = "#999999"
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

_SHADES = (1.0, 0.6, 1.35, 0.4)


def class_colours(n_classes: int) -> list[str]:
    """As many colours as there are classes."""
    return [
        _shaded(OKABE_ITO[number % len(OKABE_ITO)], _SHADES[number // len(OKABE_ITO) % len(_SHADES)])
        for number in range(n_classes)
    ]


def cluster_colours(labels: ArrayLike) -> list[str]:
    """Colour of each cluster of a partition, by label: the larger, the earlier in the palette.

    Singletons are grey and take no colour from the others.
    """
    sizes = np.bincount(check_labels(labels))
    colours = [SINGLETON] * sizes.size
    for colour, label in zip(class_colours(sizes.size), _by_size(sizes), strict=False):
        colours[label] = colour
    return colours


def matching_colours(classes: ArrayLike, labels: ArrayLike) -> list[str]:
    """Colour of each class: that of the cluster it shares most objects with, each cluster's once.

    Classes without a cluster of their own have colours that no cluster has.
    """
    true, found = check_labels(classes), check_labels(labels)
    shared = np.zeros((true.max() + 1, found.max() + 1), dtype=np.intp)
    np.add.at(shared, (true, found), 1)
    colours = cluster_colours(found)
    matched = {int(row): colours[column] for row, column in zip(*linear_sum_assignment(-shared), strict=True)}
    free = iter([colour for colour in class_colours(sum(shared.shape)) if colour not in colours])
    chosen = (matched.get(number, SINGLETON) for number in range(len(shared)))
    return [next(free, colour) if colour == SINGLETON else colour for colour in chosen]


def cluster_markers(labels: ArrayLike) -> list[str]:
    """Marker of each cluster: circles, and other shapes where colours have to be repeated."""
    sizes = np.bincount(check_labels(labels))
    markers = [MARKERS[0]] * sizes.size
    for place, label in enumerate(_by_size(sizes)):
        markers[label] = MARKERS[place // len(OKABE_ITO) % len(MARKERS)]
    return markers


def _by_size(sizes: NDArray[np.intp]) -> list[int]:
    """Clusters of more than one object, the largest first."""
    order = np.argsort(-sizes, kind="stable")
    return [int(label) for label in order if sizes[label] > 1]


def _shaded(colour: str, factor: float) -> str:
    channels = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    if factor <= 1.0:
        shaded = [round(channel * factor) for channel in channels]
    else:
        shaded = [round(255 - (255 - channel) / factor**2) for channel in channels]
    return "#" + "".join(f"{channel:02X}" for channel in shaded)


GREY = "#a0a0a0"
"""Objects that are alone, or left over by a cut."""

SELECTED = "#ff4fb0"
"""Objects that the user has selected."""

_HUES = ("#2467cb", "#fba884", "#115533", "#e8180a", "#12caec", "#a80876", "#6504da", "#bbca00")

COLOUR_MAPS = ("greys", "viridis", "cividis", "magma")
"""Names of colour maps for distances; the first is the paper's: white is far, black is near."""


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of a colour like ``"#0072b2"``."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _varied(colour: str, share: float) -> str:
    """A colour moved away from its own lightness: a dark one becomes lighter, a light one darker."""
    is_dark = sum(weight * part for weight, part in zip((0.3, 0.59, 0.11), rgb(colour), strict=True)) < 128
    return _mixed(colour, "#ffffff" if is_dark else "#000000", share)


def _mixed(colour: str, other: str, share: float) -> str:
    parts = zip(rgb(colour), rgb(other), strict=True)
    return "#" + "".join(f"{round((1 - share) * one + share * two):02x}" for one, two in parts)


N_DISTINCT = len(_HUES)
"""Number of colours that nobody confuses; they come first."""

CLUSTER_COLOURS: tuple[str, ...] = (
    _HUES + tuple(_varied(hue, 0.4) for hue in _HUES) + tuple(_varied(hue, 0.65) for hue in _HUES)
)


@cache
def colour_map(name: str, levels: int) -> NDArray[np.uint8]:
    """Colours from distance 0 to distance 1, one a row."""
    if name not in COLOUR_MAPS:
        raise ValueError(f"there is no colour map {name!r}; use one of {', '.join(COLOUR_MAPS)}")
    places = np.linspace(0.0, 1.0, levels)
    if name == "greys":
        table = np.repeat(np.round(255 * places).astype(np.uint8)[:, None], 3, axis=1)
    else:
        from matplotlib import colormaps

        table = np.round(255 * colormaps[name](places)[:, :3]).astype(np.uint8)
    table.setflags(write=False)
    return table


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
