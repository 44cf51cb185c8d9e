"""The pictures of the affine lab: the data before and after, and what each method makes of both.

Left and right of each pair are the same objects, so what looks different *is* different: both scatter plots
have the same colours, and both heatmaps of a model the order of the original. A lecturer points at the pair
whose halves are alike, and at the number below it, which is 0 or is not.
"""

import re
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from ipywidgets import HBox, Image, VBox, Widget
from numpy.typing import NDArray

from ewens_widgets.analysis.invariance import SAME, KMeansPair, ModelPair
from ewens_widgets.analysis.plots.heatmap_plot import (
    LEVELS,
    distance_pixels,
    encode_png,
    picture_palette,
)
from ewens_widgets.analysis.plots.palette import GREY, SELECTED
from ewens_widgets.analysis.trees import average_order
from ewens_widgets.model.checks import FloatArray, ModelName
from ewens_widgets.views.base import Panel, assign, note
from ewens_widgets.views.figures import (
    equal_limits,
    make_axis,
    make_figure,
    make_scale,
    make_scatter,
    set_limits,
)

__all__ = ["InvariancePanel", "KMeansPanel", "ScatterPanel"]

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Least height of a scatter plot and its margins (top, right, bottom, left), in pixels.
_HEIGHT = 230
_MARGIN = (6, 8, 22, 40)

# With more objects, the order of the heatmap is only found once the chains are done.
_MOST_LIVE = 500

_INVARIANCE = {
    "I": "survives shift, rotation, one scale for all",
    "II": "survives shift, a scale for each column",
    "III": "survives shift and every invertible map",
}


class ScatterPanel(Panel):
    """Points in the plane, one unit being as long upwards as sideways.

    Parameters
    ----------
    title
        Heading.
    css_class
        Class of its element.
    """

    def __init__(self, title: str, css_class: str) -> None:
        self.title = title
        self.css_class = css_class
        self.description = f"Scatter plot of the {title.lower()} data, coloured by cluster"
        self.about = (
            "Every dot is an object, at the same place in both versions of the data up to the map. One unit "
            "is as long upwards as sideways, so that shapes are true."
        )
        self._x_scale, self._y_scale = make_scale(), make_scale()
        scales = {"x": self._x_scale, "y": self._y_scale}
        self.points = make_scatter(
            scales, default_size=22, colors=[GREY], stroke="#80808080", stroke_width=0.5
        )
        self.moved = make_scatter(scales, default_size=90, fill=False, colors=[SELECTED], stroke_width=1.6)
        self._x_axis, self._y_axis = make_axis(self._x_scale), make_axis(self._y_scale, vertical=True)
        self.figure = make_figure(
            f"{css_class}-figure",
            _HEIGHT,
            _MARGIN,
            self._resize,
            marks=[self.points, self.moved],
            axes=[self._x_axis, self._y_axis],
        )
        self._places = np.zeros((1, 2))
        self._size = (1.0, 1.0)
        super().__init__((self.figure,))

    def place(self, places: FloatArray) -> None:
        """Move the points."""
        assign(self.points, x=places[:, 0], y=places[:, 1])
        self._places = places
        self._set_limits()

    def _resize(self, width: float, height: float) -> None:
        self._size = (width, height)
        self._set_limits()

    def _set_limits(self) -> None:
        low, high = equal_limits(self._places.min(axis=0), self._places.max(axis=0), self._size, 0.04)
        set_limits(self._x_scale, self._x_axis, float(low[0]), float(high[0]))
        set_limits(self._y_scale, self._y_axis, float(low[1]), float(high[1]))

    def colour(self, colours: list[str], moved: NDArray[np.intp]) -> None:
        """Colour the points, and ring some."""
        assign(self.points, colors=colours)
        assign(self.moved, x=self.points.x[moved], y=self.points.y[moved])

    def paint(self, axes: "Axes") -> None:
        """Draw the points with matplotlib."""
        axes.scatter(
            self.points.x, self.points.y, c=self.points.colors, s=12, edgecolors="0.4", linewidths=0.3
        )
        axes.scatter(self.moved.x, self.moved.y, s=36, facecolors="none", edgecolors=SELECTED)
        axes.set_aspect("equal", adjustable="datalim")


class InvariancePanel(Panel):
    """Similarity under one model: original left, transformed right, both in the order of the original."""

    def __init__(self, model: ModelName) -> None:
        self.title = f"Model {model}"
        self.css_class = f"ew-model-{model}"
        self.description = (
            f"How often two objects share a cluster under model {model}: original left, transformed right"
        )
        self.about = (
            "Left what the model says of the original data, right of the transformed ones, with the same "
            "objects in the same places. Where pictures are alike, the answer does not depend on coordinates."
        )
        self._is_dark = False
        self._pixels = tuple(np.full((1, 1), LEVELS - 1, dtype=np.uint8) for _ in range(2))
        self.images = tuple(
            Image(value=encode_png(pixels, picture_palette()), format="png") for pixels in self._pixels
        )
        captions = ("original", "transformed")
        boxes = []
        for image, caption in zip(self.images, captions, strict=True):
            image.add_class(f"ew-{caption}")
            boxes.append(VBox((image, note("ew-caption", caption))))
        pair = HBox(tuple(boxes))
        pair.add_class("ew-pair")
        self.result = note("ew-result", "")
        super().__init__((pair, self.result), tools=(note("ew-hint", _INVARIANCE[model]),))
        self.add_class("ew-model")

    def show(self, pair: ModelPair) -> None:
        """Show where the chains of a model are."""
        assign(self.result, value=_difference_text(pair))
        if pair.problem or not pair.n_draws:
            return
        similarities = pair.similarity()
        n_objects = len(similarities[0])
        is_cheap = n_objects <= _MOST_LIVE or pair.is_done
        order = average_order(similarities[0]) if is_cheap else np.arange(n_objects)
        self._pixels = tuple(distance_pixels(similarity, order) for similarity in similarities)
        self._show_pixels()

    def _show_pixels(self) -> None:
        palette = picture_palette(dark=self._is_dark)
        for image, pixels in zip(self.images, self._pixels, strict=True):
            assign(image, value=encode_png(pixels, palette))

    def darken(self, is_dark: bool) -> None:
        """Turn black on white into white on black."""
        if is_dark != self._is_dark:
            self._is_dark = is_dark
            self._show_pixels()

    def paint(self, axes: "Axes") -> None:
        """Draw both heatmaps with matplotlib."""
        height = self._pixels[0].shape[0]
        gap = np.full((height, max(1, height // 12)), LEVELS - 1, dtype=np.uint8)
        axes.imshow(
            picture_palette()[np.hstack([self._pixels[0], gap, self._pixels[1]])],
            interpolation="nearest",
        )
        axes.set_xlabel(_plain_text(self.result.value), fontsize=8)
        axes.set_xticks([])
        axes.set_yticks([])


class KMeansPanel(Panel):
    """What k-means makes of both versions."""

    title = "k-means"
    css_class = "ew-k-means"
    description = "Agreement of k-means on the original and on the transformed data"
    about = (
        "k-means measures straight distances, so its answer depends on units and on shear. Ringed dots are "
        "in another cluster after the map than before it."
    )

    def __init__(self, tools: tuple[Widget, ...], below: tuple[Widget, ...]) -> None:
        self.result = note("ew-result")
        super().__init__((self.result, *below), tools)

    def show(self, pair: KMeansPair) -> None:
        """Say how many objects change their cluster."""
        if pair.agreement is None:
            assign(self.result, value="waiting")
            return
        meaning = "✓ the same" if not pair.moved.size else "✗ changed"
        assign(
            self.result,
            value=(
                f'<b class="ew-moved">{pair.moved.size}</b> of {len(pair.labels[0])} objects change their '
                f"cluster<br>adjusted Rand index of the two <b>{pair.agreement:.3f}</b> · {meaning}"
            ),
        )

    def paint(self, axes: "Axes") -> None:
        """Write the result with matplotlib."""
        text = self.result.value.replace("<br>", "\n").replace("</b>", "")
        for mark in ('<b class="ew-moved">', "<b>"):
            text = text.replace(mark, "")
        axes.text(0.0, 0.6, text, fontsize=9)
        axes.set_axis_off()


def _difference_text(pair: ModelPair) -> str:
    """The largest difference and what it means, as HTML."""
    if pair.problem:
        return f'<span class="ew-problem">{escape(pair.problem)}</span>'
    difference = pair.difference()
    if difference is None:
        return "waiting for the first draws"
    meaning = "✓ the same" if difference < SAME else "✗ changed"
    return f'largest difference <b class="ew-difference">{difference:.6f}</b> · {meaning}'


def _plain_text(html: str) -> str:
    """The text of a result, short and without markup."""
    return re.sub(r"<[^>]*>", "", html)[:60]
