"""How often pairs of objects were together, as a picture in the order of the tree.

The picture has at most 400 pixels a side; for more objects, blocks of the ordered matrix are averaged. Of
very many objects 400 stand for all: evenly spaced ones, in the order of their own tree.
"""

from typing import TYPE_CHECKING, Any

import bqplot
import numpy as np
from ipywidgets import HTML, Dropdown, Widget
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from ewens_widgets.analysis.plots.palette import COLOUR_MAPS
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.views.base import View, assign
from ewens_widgets.views.brushing import Brush, places_between
from ewens_widgets.views.figures import (
    CODE_SELECTED,
    LEVELS,
    PictureBuffers,
    leaf_codes,
    make_figure,
    make_scale,
    picture_palette,
)
from ewens_widgets.views.stage import MOST_OBJECTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["HeatmapView", "band_share", "ordered_means"]

MOST_PIXELS = 400
BAND = 0.05
"""Width of the band of cluster colours beside the heatmap, about, as a share of the heatmap."""


def ordered_means(matrix: NDArray[Any], order: NDArray[np.intp], most: int) -> NDArray[Any]:
    """Put a symmetric matrix in order and average blocks of it, so that at most so many rows are left."""
    n_rows = order.size
    if n_rows <= most:
        return matrix[np.ix_(order, order)]
    size = -(-n_rows // most)
    starts = np.arange(0, n_rows, size)
    counts = np.diff(np.append(starts, n_rows))
    # Rows first, then the rows of what is left, turned: sums along rows are many times quicker than across.
    half = np.ascontiguousarray(np.add.reduceat(matrix[order], starts, axis=0).T)
    return np.add.reduceat(half[order], starts, axis=0) / np.outer(counts, counts)


def spread_rows(n_objects: int, most: int = MOST_PIXELS) -> NDArray[np.intp]:
    """At most so many objects, evenly spaced: the same ones at any time, so that pairs can be counted."""
    return np.unique(np.linspace(0, n_objects - 1, min(most, n_objects)).astype(np.intp))


def _own_order(similarity: NDArray[Any]) -> NDArray[np.intp]:
    """Order of the leaves of the average-linkage tree of a similarity matrix."""
    distance = 1.0 - similarity.astype(np.float64)
    return np.asarray(leaves_list(linkage(squareform(distance, checks=False), "average")), dtype=np.intp)


def _side(n_objects: int) -> int:
    """Pixels a side of the picture of so many objects."""
    return -(-n_objects // -(-n_objects // MOST_PIXELS))


def band_share(n_objects: int) -> float:
    """Width of the band of cluster colours beside the heatmap, as a share of the heatmap: whole pixels."""
    side = _side(n_objects)
    return max(1, round(BAND * side)) / side


class HeatmapView(View):
    """Distance D = 1 − S of all pairs; drag a rectangle to select objects."""

    title = "Distance: share of draws apart"
    css_class = "ew-heatmap"
    description = (
        "Heatmap of the share of draws in which two objects are in different clusters, in tree order"
    )

    def build(self) -> tuple[Widget, ...]:
        """Make the image mark, its two buffers and the brush."""
        self._buffers = PictureBuffers()
        self._order: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._pixels: NDArray[np.uint8] = np.zeros((1, 1), dtype=np.uint8)
        self._x_scale = make_scale()
        self._y_scale = make_scale()
        self.image = bqplot.Image(
            image=self._buffers.visible,
            x=(0.0, 1.0),
            y=(0.0, 1.0),
            scales={"x": self._x_scale, "y": self._y_scale},
        )
        self.brush = Brush.rectangle(self._x_scale, self._y_scale, self.stage, self._objects_in)
        self.figure = make_figure(
            "ew-heatmap-picture",
            300,
            (2, 4, 4, 40),
            marks=[self.image],
            axes=[],
            interaction=self.brush.selector,
        )
        self.colours = Dropdown(
            options=COLOUR_MAPS,
            tooltip="Greys are the paper's: white is always apart, black is always together",
        )
        self.colours.add_class("ew-colour-map")
        self.colours.add_class("ew-chooser")
        self.colours.observe(lambda _: self.stage.post(self.redraw), "value")
        self.note = HTML()
        self.note.add_class("ew-note")
        self.tools = (self.colours,)
        return self.figure, self.note

    def _objects_in(self, area: NDArray[np.float64]) -> NDArray[np.intp]:
        (left, bottom), (right, top) = area
        columns = places_between(left, right, self._order.size)
        rows = places_between(1.0 - top, 1.0 - bottom, self._order.size)
        return self._order[np.union1d(columns, rows)]

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Forget the order of other objects."""
        self._n_objects = posterior.n_objects
        self._rows = spread_rows(self._n_objects) if self._n_objects > MOST_OBJECTS else None
        self._order = np.arange(self._n_objects) if self._rows is None else self._rows
        share = band_share(self._order.size)
        assign(self._x_scale, min=-share)
        assign(self.image, x=(-share, 1.0))
        note = "" if self._rows is None else f"{self._rows.size} of {self._n_objects} objects, evenly spaced."
        assign(self.note, value=note)

    def draw(self, frame: Frame) -> None:
        """Fill the hidden buffer and swap."""
        self.brush.follow()
        whole = frame.summary.similarity(self._rows)
        if self._rows is None:
            tree = self.stage.live_tree.tree(frame)
            order = np.arange(self._n_objects) if tree is None else tree.leaves_order
            self._order = order
        else:
            order = _own_order(whole)
            self._order = self._rows[order]
        similarity = ordered_means(whole, order, MOST_PIXELS)
        levels = np.round((LEVELS - 1) * (1.0 - similarity)).astype(np.uint8)
        self._pixels = self._with_bands(levels, self.stage.slots(frame))
        self._buffers.show(self._pixels, picture_palette(self.colours.value), self.image)

    def _with_bands(self, levels: NDArray[np.uint8], slots: NDArray[np.intp] | None) -> NDArray[np.uint8]:
        """Add a band of cluster colours left of the picture; pink marks selected objects."""
        side = levels.shape[0]
        width = round(band_share(self._order.size) * side)
        codes = leaf_codes(self._order, slots, self._n_objects)
        marked = codes.copy()
        marked[np.isin(self._order, self.stage.selection.objects)] = CODE_SELECTED
        # Where several objects share a pixel, the first one is shown.
        step = -(-self._order.size // side)
        half = -(-width // 2)
        pixels = np.empty((side, side + width), dtype=np.uint8)
        pixels[:, width:] = levels
        pixels[:, :half] = codes[::step, None]
        pixels[:, half:width] = marked[::step, None]
        return pixels

    def paint(self, axes: "Axes") -> None:
        """Draw the picture with matplotlib."""
        palette = picture_palette(self.colours.value)
        axes.imshow(palette[np.minimum(self._pixels, len(palette) - 1)], interpolation="nearest")
        axes.set_axis_off()
