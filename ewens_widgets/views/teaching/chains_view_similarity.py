"""The similarity that each chain has found, and all of them together, as pictures side by side."""

import time
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from ipywidgets import HTML, HBox, Image, VBox, Widget
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from ewens_widgets.analysis.convergence import largest_gap
from ewens_widgets.analysis.plots.heatmap_plot import encode_png
from ewens_widgets.analysis.plots.palette import colour_map
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.views.base import assign
from ewens_widgets.views.heatmap_view import ordered_means
from ewens_widgets.views.stage import MOST_OBJECTS
from ewens_widgets.views.teaching.chains_view_stage import ChainsSubview, chain_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ChainSimilarities"]

_LEVELS = 200
_MOST_PIXELS = 200
_TREE_REST = 1.0  # seconds between two orders of the objects while the chains run


class ChainSimilarities(ChainsSubview):
    """Share of draws in which two objects are apart, for every chain and pooled."""

    title = "Distance: share of draws apart, by chain and pooled"
    css_class = "ew-chain-similarities"
    description = (
        "Heatmaps of the share of draws in which two objects are in different clusters, by chain and pooled"
    )
    rest = 0.5

    def build(self) -> tuple[Widget, ...]:
        """Make a picture for each chain and one for all of them."""
        blank = encode_png(np.zeros((1, 1), dtype=np.uint8), np.full((1, 3), 255, dtype=np.uint8))
        names = [*self.record.names, "pooled"]
        self.images = {name: Image(value=blank, format="png") for name in names}
        boxes = [self._box(place, name, len(names)) for place, name in enumerate(names)]
        row = HBox(tuple(boxes[:-1]))
        row.add_class("ew-chain-pictures")
        self.note = HTML()
        self.note.add_class("ew-note")
        self._order: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._order_due = 0.0
        self._pixels: dict[str, NDArray[np.uint8]] = {}
        self.gap: float | None = None
        beside = VBox((boxes[-1],))
        beside.add_class("ew-pooled-picture")
        self._pooled_box = beside
        return row, beside, self.note

    def _box(self, place: int, name: str, count: int) -> VBox:
        is_pooled = place == count - 1
        colour = "currentColor" if is_pooled else chain_colour(place)
        caption = HTML(
            f'<span class="ew-swatch ew-line" style="background:{colour}"></span>{escape(_short(name))}'
        )
        self.images[name].add_class("ew-similarity")
        box = VBox((caption, self.images[name]))
        box.add_class("ew-chain-picture")
        return box

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Forget the order of other objects."""
        self._n_objects = posterior.n_objects
        self._order = np.arange(self._n_objects)
        self._order_due = 0.0
        text = f"More than {MOST_OBJECTS} objects: too many for live heatmaps."
        assign(self.note, value=text if self._n_objects > MOST_OBJECTS else "")

    def draw(self, frame: Frame) -> None:
        """Send the pictures, all in the order of the pooled tree."""
        self.gap = None
        if self._n_objects > MOST_OBJECTS:
            return
        summaries = self.record.summaries(self.length(frame))
        similarities = [summary.similarity() for summary in summaries]
        pooled = np.mean(similarities, axis=0)
        self._put_in_order(pooled, frame)
        if self.length(frame):
            self.gap = largest_gap(similarities)
        for name, similarity in zip(self.images, [*similarities, pooled], strict=True):
            self._show(name, similarity)

    def _put_in_order(self, pooled: NDArray[Any], frame: Frame) -> None:
        now = time.perf_counter()
        if frame.status.is_running and now < self._order_due:
            return
        distance = squareform(1.0 - pooled.astype(np.float64), checks=False)
        self._order = leaves_list(linkage(np.maximum(distance, 0.0), method="average")).astype(np.intp)
        # At most a tenth of the time is spent on trees.
        self._order_due = time.perf_counter() + max(_TREE_REST, 9.0 * (time.perf_counter() - now))

    def _show(self, name: str, similarity: NDArray[Any]) -> None:
        ordered = ordered_means(similarity, self._order, _MOST_PIXELS)
        pixels = np.round((_LEVELS - 1) * (1.0 - ordered)).astype(np.uint8)
        self._pixels[name] = pixels
        assign(self.images[name], value=encode_png(pixels, colour_map("greys", _LEVELS)))

    def paint(self, axes: "Axes") -> None:
        """Draw all pictures with matplotlib, those of the chains first."""
        axes.set_axis_off()
        if not self._pixels:
            return
        columns = -(-len(self._pixels) // 2)
        side = max(pixels.shape[0] for pixels in self._pixels.values())
        step = side + max(2, side // 10)
        for place, (name, pixels) in enumerate(self._pixels.items()):
            left, top = step * (place % columns), step * (place // columns)
            extent = (left, left + side, top + side, top)
            axes.imshow(pixels, cmap="gray", vmin=0, vmax=_LEVELS - 1, interpolation="nearest", extent=extent)
            axes.text(left, top - 1, _short(name).replace("$", r"\$"), fontsize=6, va="bottom")
        axes.set_xlim(0, step * columns)
        axes.set_ylim(2 * step, -step // 10)


def _short(name: str) -> str:
    """What a chain started from, which is enough below a small picture."""
    return name.rpartition(", ")[2]
