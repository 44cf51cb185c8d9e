"""Sliders, matrix and buttons that say how two columns are mapped.

The matrix is what counts. A slider that is moved changes it; a matrix that is typed or chosen moves the
sliders to the steps that it does.

The pictures of the affine lab: the data before and after, and what each model makes of both.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import bqplot
import numpy as np
from ipywidgets import Button, Checkbox, FloatLogSlider, FloatSlider, HBox, Image, VBox
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from ewens_widgets.analysis.plots.heatmap_plot import (
    LEVELS,
    MOST_PIXELS,
    encode_png,
    ordered_means,
    picture_palette,
)
from ewens_widgets.analysis.plots.palette import GREY, SELECTED
from ewens_widgets.model.checks import FloatArray, ModelName
from ewens_widgets.views.affine_lab.affine_comparison import ModelPair, difference_text
from ewens_widgets.views.affine_lab.linear_map import PAPER_MATRICES, Steps, format_matrix, parse_matrix
from ewens_widgets.views.base import Panel, assign, note
from ewens_widgets.views.fields import entry
from ewens_widgets.views.figures import (
    make_axis,
    make_figure,
    make_scale,
    set_limits,
)

__all__ = ["InvariancePanel", "MapControls", "ScatterPanel"]

_RANGES = {"rotation": (-180.0, 180.0), "scale_x": (-1.0, 1.0), "scale_y": (-1.0, 1.0), "shear": (-5.0, 5.0)}
_SHIFT = (-10.0, 10.0)
_PRESETS = {
    "I": "No change: the data as they were drawn",
    "II": "The first column times 10: other units",
    "III": "The paper's matrix [[4.1, 1.1], [2.1, 1.1]]: stretched and sheared",
}


class MapControls(VBox):
    """Says what is done to the plane.

    Parameters
    ----------
    post
        Brings a command to the event loop.
    on_change
        Called there after each change.
    """

    def __init__(self, post: Callable[[Callable[[], None]], None], on_change: Callable[[], None]) -> None:
        self.matrix: FloatArray = np.eye(2)
        self._on_change = on_change
        self._post = post
        self._is_silent = False
        self.presets = {name: self._preset(name, hint) for name, hint in _PRESETS.items()}
        self.sliders = {
            "shift_x": _slider("shift x", _SHIFT, 0.1, "Adds to the first column"),
            "shift_y": _slider("shift y", _SHIFT, 0.1, "Adds to the second column"),
            "rotation": _slider("rotate °", _RANGES["rotation"], 1.0, "Turns the plane, anticlockwise"),
            "scale_x": _log_slider("scale x", "Multiplies the first column"),
            "scale_y": _log_slider("scale y", "Multiplies the second column"),
            "shear": _slider(
                "shear", _RANGES["shear"], 0.05, "Adds a multiple of the second column to the first"
            ),
        }
        # What the sliders were put to, exactly.
        self._placed = {name: float(slider.value) for name, slider in self.sliders.items()}
        self._is_mirrored = False
        self.mirror = Checkbox(
            description="mirror", indent=False, tooltip="Changes the sign of the second column"
        )
        self.field = entry(
            "matrix",
            format_matrix(self.matrix),
            parse_matrix,
            "ew-matrix",
            "Two rows of two numbers; points are multiplied by it from the right",
        )
        for name, slider in self.sliders.items():
            slider.add_class(f"ew-{name.replace('_', '-')}")
            slider.add_class("ew-slider")
            slider.observe(self._on_slider, "value")
        self.mirror.add_class("ew-mirror")
        self.mirror.observe(self._on_slider, "value")
        self.field.control.observe(self._on_typed, "value")
        buttons = HBox((note("ew-presets-label", "the paper's"), *self.presets.values()))
        buttons.add_class("ew-presets")
        super().__init__((buttons, *self.sliders.values(), self.mirror, self.field))
        self.add_class("ew-map")

    def _preset(self, name: str, hint: str) -> Button:
        button = Button(description=name, tooltip=hint)
        button.add_class(f"ew-paper-{name}")
        button.on_click(lambda _: self._post(lambda: self.choose(name)))
        return button

    @property
    def shift(self) -> tuple[float, float]:
        """What is added in the end."""
        return self._value("shift_x"), self._value("shift_y")

    def choose(self, name: str) -> None:
        """Take one of the paper's matrices, without a shift."""
        self._show(PAPER_MATRICES[name], (0.0, 0.0))
        self._on_change()

    def set(self, matrix: FloatArray, shift: tuple[float, float] = (0.0, 0.0)) -> None:
        """Take a matrix and a shift."""
        self._show(parse_matrix(" ".join(map(repr, np.asarray(matrix, dtype=float).ravel().tolist()))), shift)
        self._on_change()

    def _on_slider(self, _: dict[str, Any]) -> None:
        if not self._is_silent:
            self._post(self._take_sliders)

    def _on_typed(self, _: dict[str, Any]) -> None:
        if not self._is_silent:
            self._post(self._take_matrix)

    def _take_sliders(self) -> None:
        values = {name: self._value(name) for name in self.sliders}
        if values == self._placed and self.mirror.value == self._is_mirrored:
            return
        self._placed, self._is_mirrored = values, self.mirror.value
        steps = {name: values[name] for name in _RANGES}
        self.matrix = Steps(**steps, mirrored=self._is_mirrored).matrix()
        self._quietly(self.field.control, value=format_matrix(self.matrix))
        self.field.problem = ""
        self._on_change()

    def _value(self, name: str) -> float:
        """What a slider says; where the page has only rounded it to whole steps, what it was put to."""
        slider, placed = self.sliders[name], self._placed[name]
        value = float(slider.value)
        moved = np.log10(value / placed) if isinstance(slider, FloatLogSlider) else value - placed
        return placed if abs(moved) <= 0.5 * slider.step + 1e-9 else value

    def _take_matrix(self) -> None:
        if self.field.control.value == format_matrix(self.matrix):
            # The text is rounded: it must not take the place of the numbers that it stands for.
            self.field.problem = ""
            return
        try:
            matrix = self.field.read()
        except ValueError:
            return
        self._show(matrix, self.shift)
        self._on_change()

    def _show(self, matrix: FloatArray, shift: tuple[float, float]) -> None:
        self.matrix = matrix
        steps = Steps.of(matrix)
        for name, (low, high) in _RANGES.items():
            value = getattr(steps, name)
            place = np.log10(value) if name.startswith("scale") else value
            limits = {"min": min(low, np.floor(place)), "max": max(high, np.ceil(place))}
            self._quietly(self.sliders[name], **limits, value=value)
        self._quietly(self.mirror, value=steps.mirrored)
        for name, value in zip(("shift_x", "shift_y"), shift, strict=True):
            limits = {"min": min(_SHIFT[0], value), "max": max(_SHIFT[1], value)}
            self._quietly(self.sliders[name], **limits, value=value)
        self._placed = {name: float(slider.value) for name, slider in self.sliders.items()}
        self._is_mirrored = steps.mirrored
        self._quietly(self.field.control, value=format_matrix(matrix))
        self.field.problem = ""

    def _quietly(self, widget: Any, **traits: Any) -> None:  # noqa: ANN401 - traits are of any type
        self._is_silent = True
        try:
            assign(widget, **traits)
        finally:
            self._is_silent = False


def _slider(name: str, limits: tuple[float, float], step: float, hint: str) -> FloatSlider:
    return FloatSlider(
        value=0.0,
        min=limits[0],
        max=limits[1],
        step=step,
        description=name,
        tooltip=hint,
        readout_format=".2f",
    )


def _log_slider(name: str, hint: str) -> FloatLogSlider:
    return FloatLogSlider(
        value=1.0,
        base=10.0,
        min=-1.0,
        max=1.0,
        step=0.01,
        description=name,
        tooltip=hint,
        readout_format=".3g",
    )


if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Width and height of a scatter plot and its margins (top, right, bottom, left), in pixels.
_SIZE = (292, 258)
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
        self._x_scale, self._y_scale = make_scale(), make_scale()
        scales = {"x": self._x_scale, "y": self._y_scale}
        self.points = bqplot.Scatter(
            x=np.zeros(1),
            y=np.zeros(1),
            colors=[GREY],
            scales=scales,
            default_size=22,
            stroke="#80808080",
            stroke_width=0.5,
        )
        self.moved = bqplot.Scatter(
            x=np.zeros(0),
            y=np.zeros(0),
            scales=scales,
            default_size=90,
            fill=False,
            colors=[SELECTED],
            stroke_width=1.6,
        )
        self._x_axis, self._y_axis = make_axis(self._x_scale), make_axis(self._y_scale, vertical=True)
        self.figure = make_figure(
            f"{css_class}-figure",
            _SIZE[1],
            _MARGIN,
            marks=[self.points, self.moved],
            axes=[self._x_axis, self._y_axis],
        )
        # One unit can only be as long in both directions if the size is known.
        self.figure.layout.width = f"{_SIZE[0]}px"
        super().__init__((self.figure,))

    def place(self, places: FloatArray) -> None:
        """Move the points."""
        assign(self.points, x=places[:, 0], y=places[:, 1])
        low, high = places.min(axis=0), places.max(axis=0)
        width = _SIZE[0] - _MARGIN[1] - _MARGIN[3]
        height = _SIZE[1] - _MARGIN[0] - _MARGIN[2]
        unit = 1.08 * max((high[0] - low[0]) / width, (high[1] - low[1]) / height, 1e-9)
        middle, reach = (low + high) / 2, unit * np.array([width, height]) / 2
        set_limits(self._x_scale, self._x_axis, middle[0] - reach[0], middle[0] + reach[0])
        set_limits(self._y_scale, self._y_axis, middle[1] - reach[1], middle[1] + reach[1])

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
        self._pixels = tuple(np.full((1, 1), LEVELS - 1, dtype=np.uint8) for _ in range(2))
        self.images = tuple(
            Image(value=encode_png(pixels, picture_palette("greys")), format="png") for pixels in self._pixels
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
        assign(self.result, value=difference_text(pair))
        if pair.problem or not pair.n_draws:
            return
        similarities = pair.similarity()
        order = _order(similarities[0]) if len(similarities[0]) <= _MOST_LIVE or pair.is_done else None
        pictures = []
        for image, similarity in zip(self.images, similarities, strict=True):
            ordered = ordered_means(
                similarity, np.arange(len(similarity)) if order is None else order, MOST_PIXELS
            )
            pixels = np.round((LEVELS - 1) * (1.0 - ordered)).astype(np.uint8)
            assign(image, value=encode_png(pixels, picture_palette("greys")))
            pictures.append(pixels)
        self._pixels = tuple(pictures)

    def paint(self, axes: "Axes") -> None:
        """Draw both heatmaps with matplotlib."""
        height = self._pixels[0].shape[0]
        gap = np.full((height, max(1, height // 12)), LEVELS - 1, dtype=np.uint8)
        axes.imshow(
            picture_palette("greys")[np.hstack([self._pixels[0], gap, self._pixels[1]])],
            interpolation="nearest",
        )
        axes.set_xlabel(_plain_text(self.result.value), fontsize=8)
        axes.set_xticks([])
        axes.set_yticks([])


def _order(similarity: FloatArray) -> NDArray[np.intp]:
    """Objects that are often together side by side."""
    distance = np.maximum(0.0, 1.0 - similarity)
    np.fill_diagonal(distance, 0.0)
    return leaves_list(linkage(squareform(distance, checks=False), method="average")).astype(np.intp)


def _plain_text(html: str) -> str:
    """The text of a result, short and without markup."""
    return re.sub(r"<[^>]*>", "", html)[:60]
