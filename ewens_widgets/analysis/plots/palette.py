"""Colours that colour-blind people can tell apart, one for each cluster; singletons are grey.

The first seven are those of Okabe & Ito (2008), without black and without their yellow, which is too pale for
points on white. Further clusters repeat them, darkened and then lightened; pictures of so many clusters also
change the marker.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from ewens_widgets.partition import check_labels

__all__ = [
    "MARKERS",
    "OKABE_ITO",
    "SINGLETON",
    "class_colours",
    "cluster_colours",
    "cluster_markers",
    "matching_colours",
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
