"""Pictures of many objects in a bqplot figure.

A picture is a PNG shown by a bqplot `Image` mark. The mark listens to which image widget it shows, not to its
bytes; so there are two image widgets, and each new picture fills the hidden one and swaps them.
"""

from functools import cache

import bqplot
import numpy as np
from ipywidgets import Image
from numpy.typing import NDArray

from ewens_widgets.views.base import assign
from ewens_widgets.views.colours import ALONE
from ewens_widgets.views.palette import CLUSTER_COLOURS, GREY, SELECTED, colour_map, rgb
from ewens_widgets.views.png import encode_png

__all__ = ["CODE_SELECTED", "LEVELS", "PictureBuffers", "leaf_codes", "picture_palette"]

LEVELS = 200
"""Pixels below this are distances; from here on they are colours of clusters."""

CODE_SELECTED = LEVELS
_CODE_GREY = LEVELS + 1
_FIRST_CLUSTER = LEVELS + 2


@cache
def picture_palette(colours: str) -> NDArray[np.uint8]:
    """Colours of all pixel values, one a row."""
    others = np.array([rgb(colour) for colour in (SELECTED, GREY, *CLUSTER_COLOURS)], dtype=np.uint8)
    return np.concatenate([colour_map(colours, LEVELS), others])


def leaf_codes(order: NDArray[np.intp], slots: NDArray[np.intp] | None, n_objects: int) -> NDArray[np.uint8]:
    """Pixel values of the objects' cluster colours, in the given order."""
    codes = np.full(n_objects, _CODE_GREY, dtype=np.uint8)
    if slots is not None:
        coloured = slots != ALONE
        codes[coloured] = _FIRST_CLUSTER + slots[coloured] % len(CLUSTER_COLOURS)
    return codes[order]


class PictureBuffers:
    """Two image widgets, one of them visible."""

    def __init__(self) -> None:
        self._content = encode_png(np.zeros((1, 1), dtype=np.uint8), np.full((1, 3), 255, dtype=np.uint8))
        self.visible = Image(value=self._content, format="png")
        self._hidden = Image(value=self._content, format="png")

    def show(self, pixels: NDArray[np.uint8], palette: NDArray[np.uint8], mark: bqplot.Image) -> None:
        """Show a picture in a mark, if it is another one than before."""
        content = encode_png(pixels, palette)
        if content == self._content:
            return
        self._content = content
        self.visible, self._hidden = self._hidden, self.visible
        assign(self.visible, value=content)
        assign(mark, image=self.visible)
