"""How often pairs of objects were together, as a picture in the order of the tree.

The picture has at most 400 pixels a side; for more objects, blocks of the ordered matrix are averaged. Of
very many objects 400 stand for all: evenly spaced ones, in the order of their own tree.
"""

from typing import TYPE_CHECKING

import bqplot
import numpy as np
from ipywidgets import Dropdown, Widget
from numpy.typing import NDArray

from ewens_widgets.analysis.plots.heatmap_plot import (
    LEVELS,
    MOST_PIXELS,
    distance_pixels,
    leaf_pixels,
    picture_palette,
    spread_rows,
)
from ewens_widgets.analysis.plots.palette import COLOUR_MAPS
from ewens_widgets.analysis.trees import average_order
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.views.base import View, assign, make, note
from ewens_widgets.views.figures import Brush, PictureBuffers, Spot, make_figure, make_scale, places_between
from ewens_widgets.views.shared_state import MOST_OBJECTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAND = 0.05
"""Width of the band of cluster colours beside the heatmap, about, as a share of the heatmap."""


def band_share(n_objects: int) -> float:
    """Width of the band of cluster colours beside the heatmap, as a share of the heatmap: whole pixels."""
    side = -(-n_objects // -(-n_objects // MOST_PIXELS))
    return max(1, round(BAND * side)) / side


class HeatmapView(View):
    """Distance D = 1 − S of all pairs; drag a rectangle to select objects."""

    title = "Share of draws apart"
    css_class = "ew-heatmap"
    description = (
        "Heatmap of the share of draws in which two objects are in different clusters, in tree order"
    )
    about = (
        "Every row and every column is an object; a pixel tells how often two objects were in different "
        "clusters. Blocks on the diagonal are groups that stay together, in the order of the tree."
    )

    def build(self) -> tuple[Widget, ...]:
        """Make the image mark, its two buffers and the brush."""
        self._buffers = PictureBuffers()
        self._order: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._pixels: NDArray[np.uint8] = np.zeros((1, 1), dtype=np.uint8)
        self._x_scale = make_scale()
        self._y_scale = make_scale()
        scales = {"x": self._x_scale, "y": self._y_scale}
        self.image = bqplot.Image(
            image=self._buffers.visible,
            x=(0.0, 1.0),
            y=(0.0, 1.0),
            scales=scales,
        )
        self.brush = Brush.rectangle(scales, self.shared, self._objects_in)
        self.figure = make_figure(
            "ew-heatmap-picture",
            220,
            (2, 4, 4, 44),
            marks=[self.image],
            axes=[],
            interaction=self.brush.selector,
        )
        self.figure.tell = self._tell
        tooltip = "Colours of the picture; greys are the paper's"
        self.colours = make(Dropdown, "ew-colour-map ew-chooser", options=COLOUR_MAPS, tooltip=tooltip)
        self.colours.observe(lambda _: self.shared.post(self._recolour), "value")
        self._is_dark = False
        self.key = note("ew-legend")
        self.note = note()
        self.tools = (self.colours,)
        self._write_key()
        return self.figure, self.key, self.note

    def _write_key(self) -> None:
        """Show which colour means together."""
        table = picture_palette(self.colours.value, dark=self._is_dark)[:LEVELS:25]
        shades = ", ".join(f"rgb({red} {green} {blue})" for red, green, blue in table.tolist())
        bar = f'<span class="ew-key" style="background:linear-gradient(to right, {shades})"></span>'
        assign(self.key, value=f"pairs: always together {bar} never")

    def darken(self, is_dark: bool) -> None:
        """Turn black on white into white on black."""
        if is_dark != self._is_dark:
            self._is_dark = is_dark
            self._write_key()
            self.redraw()

    def _recolour(self) -> None:
        self._write_key()
        self.redraw()

    def _objects_in(self, area: NDArray[np.float64]) -> NDArray[np.intp]:
        (left, bottom), (right, top) = area
        columns = places_between(left, right, self._order.size)
        rows = places_between(1.0 - top, 1.0 - bottom, self._order.size)
        return self._order[np.union1d(columns, rows)]

    def _tell(self, spot: Spot | None) -> str:
        """Say which two objects are under the mouse and how often they are together; ring both."""
        size = self._order.size
        if spot is None or self._frame is None or not size:
            self.shared.pointed.clear()
            return ""
        x, y = spot.value(self._x_scale), spot.value(self._y_scale, vertical=True)
        row, column = (min(size - 1, int(share * size)) for share in (max(0.0, 1.0 - y), max(0.0, x)))
        one, other = int(self._order[row]), int(self._order[column if x >= 0.0 else row])
        self.shared.pointed.set([one, other])
        if one == other:
            return self._data.row_name(one)
        places = (one, other) if self._rows is None else np.searchsorted(self._rows, [one, other])
        share = float(self._frame.summary.similarity(self._rows)[places[0], places[1]])
        names = f"{self._data.row_name(one)} and {self._data.row_name(other)}"
        return f"{names}\ntogether in {100 * share:.0f} % of draws"

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:
        """Forget the order of other objects."""
        self._data = dataset
        self._n_objects = posterior.n_objects
        self._rows = spread_rows(self._n_objects) if self._n_objects > MOST_OBJECTS else None
        self._order = np.arange(self._n_objects) if self._rows is None else self._rows
        share = band_share(self._order.size)
        assign(self._x_scale, min=-share)
        assign(self.image, x=(-share, 1.0))
        shown = (
            ""
            if self._rows is None
            else f"{self._rows.size} of {dataset.counted(self._n_objects)}, evenly spaced."
        )
        assign(self.note, value=shown)

    def draw(self, frame: Frame) -> None:
        """Fill the hidden buffer and swap."""
        self.brush.follow()
        whole = frame.summary.similarity(self._rows)
        if self._rows is None:
            self._order = order = self.shared.order(frame, self._n_objects)
        else:
            # There is no shared tree of so many objects; these few are quickly put in order.
            order = average_order(whole)
            self._order = self._rows[order]
        levels = distance_pixels(whole, order)
        self._pixels = self._with_bands(levels, self.shared.colours(frame))
        self._buffers.show(self._pixels, self.image, self.colours.value, dark=self._is_dark)

    def _with_bands(self, levels: NDArray[np.uint8], colours: NDArray[np.intp] | None) -> NDArray[np.uint8]:
        """Add a band of cluster colours left of the picture; pink marks selected objects."""
        side = levels.shape[0]
        width = round(band_share(self._order.size) * side)
        # Where several objects share a pixel, the first one is shown.
        step = -(-self._order.size // side)
        plain, marked = leaf_pixels(self._order[::step], colours, self.shared.selection.objects)
        half = -(-width // 2)
        pixels = np.empty((side, side + width), dtype=np.uint8)
        pixels[:, width:] = levels
        pixels[:, :half] = plain[:, None]
        pixels[:, half:width] = marked[:, None]
        return pixels

    def paint(self, axes: "Axes") -> None:
        """Draw the picture with matplotlib."""
        axes.imshow(picture_palette(self.colours.value)[self._pixels], interpolation="nearest")
        axes.set_axis_off()
