"""Colours of clusters and of heatmaps.

The first eight cluster colours and the grey stay apart for people with any of the common colour deficiencies,
on light and on dark backgrounds: they were searched for that, by differences in CIELAB. From the ninth
cluster on the same hues come back in two other shades; sizes in the legend and selecting objects help to
tell them apart.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["CLUSTER_COLOURS", "COLOUR_MAPS", "GREY", "N_DISTINCT", "SELECTED", "colour_map", "rgb"]

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
