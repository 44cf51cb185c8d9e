"""bqplot figures in the house style: little ink, colours from the theme, no toolbar.

A picture of many objects is a PNG shown by a bqplot `Image` mark. The mark listens to which image widget it
shows, not to its bytes. So there are two image widgets: each new picture fills the hidden one and swaps them.
A `Brush` selects objects by dragging over a figure.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import bqplot
import numpy as np
from ipywidgets import Dropdown, Image, Widget
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.analysis.plots.heatmap_plot import (
    BLANK,
    MOST_PIXELS,
    distance_pixels,
    encode_png,
    picture_palette,
)
from ewens_widgets.analysis.plots.palette import SELECTED
from ewens_widgets.analysis.plots.scatter_plot import ShownAxes, projections
from ewens_widgets.datasets import Dataset
from ewens_widgets.views.base import Post, Silence, assign, cached_widget, look, make
from ewens_widgets.views.shared_state import SharedState

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

_HORIZONS = (50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000)
_LONGEST_IN_FULL = 9999


def nice_ticks(low: float, high: float, most: int) -> FloatArray:
    """At most so many round numbers in an interval: multiples of 1, 2 or 5 times a power of ten."""
    if not low < high:
        return np.array([low])
    power = 10.0 ** np.floor(np.log10((high - low) / most))
    for step in (power * factor for factor in (1, 2, 5, 10, 20)):
        first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
        if last - first < most:
            break
    # Adding 0 turns −0 into 0.
    return np.round(np.arange(first, last + 1) * step, 12) + 0.0


def nice_limits(low: float, high: float) -> tuple[float, float]:
    """Limits around an interval, on a coarse raster so that they change rarely; not below 0 for counts."""
    if not np.isfinite(low) or not np.isfinite(high):
        return 0.0, 1.0
    spread = high - low or max(1.0, 0.1 * abs(high))
    raster = 10.0 ** np.floor(np.log10(spread)) / 2.0
    below, above = np.floor(low / raster - 0.5) * raster, np.ceil(high / raster + 0.5) * raster
    return float(max(below, 0.0) if low > 0.0 else below), float(above)


def make_scale(low: float = 0.0, high: float = 1.0) -> bqplot.LinearScale:
    """Linear scale with fixed limits: marks do not widen it."""
    return bqplot.LinearScale(min=low, max=high, allow_padding=False, stabilized=False)


def make_scatter(scales: dict[str, bqplot.Scale], **traits: object) -> bqplot.Scatter:
    """Scatter without points yet."""
    return bqplot.Scatter(**{"x": np.zeros(0), "y": np.zeros(0), "scales": scales, **traits})


def make_axis(scale: bqplot.LinearScale, label: str = "", *, vertical: bool = False) -> bqplot.Axis:
    """Axis without a grid."""
    return bqplot.Axis(
        scale=scale,
        side="left" if vertical else "bottom",
        label=label,
        label_offset="32px" if vertical else "30px",
        tick_values=nice_ticks(scale.min, scale.max, 4),
        tick_format="~g",
        grid_lines="none",
    )


def set_limits(scale: bqplot.LinearScale, axis: bqplot.Axis, low: float, high: float, ticks: int = 4) -> None:
    """Set the limits of a scale, and ticks at round numbers within them."""
    assign(scale, min=low, max=high)
    assign(axis, tick_values=nice_ticks(low, high, ticks))


def horizon(length: int, target: int) -> float:
    """Where the axis of iterations ends: it grows with the run in steps, so that early draws can be seen."""
    wide_enough = (end for end in _HORIZONS if end >= length)
    return float(max(1, min(next(wide_enough, target), target)))


def set_iterations(axis: bqplot.Axis, first: float, last: float) -> None:
    """Have an axis show these iterations; long numbers are shortened: 100k for 100000."""
    assign(axis, tick_format="~g" if last <= _LONGEST_IN_FULL else "~s")
    set_limits(axis.scale, axis, first, last)


class Spot(NamedTuple):
    """Place of the mouse over a plot.

    `x` and `y` are shares of its width, from the left, and of its height, from below; `width` and `height`
    are its size in pixels.
    """

    x: float
    y: float
    width: float
    height: float

    def value(self, scale: bqplot.LinearScale, *, vertical: bool = False) -> float:
        """Value of a scale with fixed limits there."""
        return float(scale.min + (self.y if vertical else self.x) * (scale.max - scale.min))

    def nearest(
        self, x: ArrayLike, y: ArrayLike, scales: Mapping[str, bqplot.LinearScale], reach: float = 12.0
    ) -> int | None:
        """Index of the nearest of some points; None if it is more than `reach` pixels away."""
        scale_x, scale_y = scales["x"], scales["y"]
        across = (np.asarray(x) - scale_x.min) / (scale_x.max - scale_x.min) - self.x
        upwards = (np.asarray(y) - scale_y.min) / (scale_y.max - scale_y.min) - self.y
        distances = np.hypot(across * self.width, upwards * self.height)
        if not distances.size:
            return None
        found = int(np.argmin(distances))
        return found if distances[found] <= reach else None


class Canvas(bqplot.Figure):
    """A figure whose margins grow with the type of the page that shows it, and that knows its own size.

    The function `tell`, if it is set, is called with a `Spot`, or None when the mouse has left, and returns a
    text for what is under the mouse.

    Parameters
    ----------
    css_class
        Class of its element, by which a page reports its size.
    margin
        Top, right, bottom and left, in pixels, for type of the default size.
    on_size
        Called with the width and the height of the plot, without margins, when the page has laid it out.
    traits
        Traits of the figure.
    """

    def __init__(
        self,
        css_class: str,
        margin: tuple[int, int, int, int],
        on_size: Callable[[float, float], None] | None = None,
        **traits: object,
    ) -> None:
        self.css_class = css_class
        self._margin = margin
        self._on_size = on_size
        self._plot: tuple[float, float, float, float] | None = None  # left, top, width, height
        self.tell: Callable[[Spot | None], str] | None = None
        # The scales of the figure itself, from 0 to 1, are the same for all.
        unit = cached_widget(bqplot.LinearScale, min=0.0, max=1.0, allow_padding=False)
        names = ("ew-figure", css_class)
        super().__init__(
            fig_margin=self._margins(1.0), scale_x=unit, scale_y=unit, _dom_classes=names, **traits
        )
        self._offsets = [float(axis.label_offset.removesuffix("px")) for axis in self.axes]

    def _margins(self, scale: float) -> dict[str, int]:
        sides = ("top", "right", "bottom", "left")
        return {side: round(scale * pixels) for side, pixels in zip(sides, self._margin, strict=True)}

    def fit(self, scale: float, size: tuple[float, float] | None = None) -> None:
        """Follow the page: the size of its type, 1 being the default, and the figure's size in pixels."""
        margins = self._margins(scale)
        assign(self, fig_margin=margins)
        for axis, offset in zip(self.axes, self._offsets, strict=True):
            assign(axis, label_offset=f"{scale * offset:g}px")
        if size is None:
            return
        width = size[0] - margins["left"] - margins["right"]
        height = size[1] - margins["top"] - margins["bottom"]
        if width > 1 and height > 1:
            self._plot = margins["left"], margins["top"], width, height
            if self._on_size is not None:
                self._on_size(width, height)

    def point(self, pixel: tuple[float, float] | None) -> str:
        """Say what is at a pixel, counted from the left and from the top; None: the mouse has left."""
        if self.tell is None:
            return ""
        if pixel is None or self._plot is None:
            return self.tell(None)
        left, top, width, height = self._plot
        x, y = (pixel[0] - left) / width, 1.0 - (pixel[1] - top) / height
        return self.tell(Spot(x, y, width, height) if 0.0 <= x <= 1.0 and 0.0 <= y <= 1.0 else None)

    def paint(self, axes: "Axes") -> None:
        """Draw its marks and axes with matplotlib, for a still picture; labels of lines make a legend."""
        for mark in self.marks:
            if mark.visible and np.size(mark.x):
                next(paint for kind, paint in _PAINTERS.items() if isinstance(mark, kind))(mark, axes)
        for axis in self.axes:
            name = "y" if axis.side in {"left", "right"} else "x"
            scale, names = axis.scale, axis.tick_labels or {}
            logarithmic = {f"{name}scale": "log"} if isinstance(scale, bqplot.LogScale) else {}
            # Two dollar signs would make mathematics of what is between them.
            label = {f"{name}label": str(axis.label).replace("$", r"\$")}
            axes.set(**logarithmic, **label, **{f"{name}lim": (scale.min, scale.max)})
            ticks = np.asarray(axis.tick_values, dtype=np.float64)
            texts = [names.get(f"{tick:g}", f"{tick:g}") for tick in ticks]
            axes.set(**{f"{name}ticks": ticks})
            getattr(axes, f"set_{name}ticklabels")(texts, fontsize=8 if names else 10)
            getattr(axes, f"{name}axis").minorticks_off()
        if any(getattr(mark, "labels", ()) for mark in self.marks if mark.visible):
            axes.legend(fontsize=7, frameon=False, loc="upper right")  # to find a better place takes long


_STILL = 0.6
"""Points of a still picture for a pixel of a page."""

_STYLES = {"dashed": "--", "dotted": ":", "solid": "-"}
_MARKERS = {"circle": "o", "cross": "x", "diamond": "D", "square": "s", "triangle-up": "^", None: ""}


def _paint_lines(mark: bqplot.Lines, axes: "Axes") -> None:
    rows = np.atleast_2d(mark.y)
    if mark.fill == "bottom":
        axes.fill_between(
            mark.x, mark.y, color=mark.fill_colors[0], linewidth=0, label=next(iter(mark.labels), None)
        )
        return
    for place, (x, y) in enumerate(zip(np.broadcast_to(mark.x, rows.shape), rows, strict=True)):
        style = {"color": mark.colors[place % len(mark.colors)], "linewidth": _STILL * mark.stroke_width}
        style |= {"linestyle": _STYLES[mark.line_style], "marker": _MARKERS[mark.marker], "markersize": 3}
        style |= {
            "solid_capstyle": "butt",
            "drawstyle": "steps-post" if mark.interpolation == "step-after" else "default",
        }
        axes.plot(x, y, label=mark.labels[place] if place < len(mark.labels) else None, **style)


def _paint_scatter(mark: bqplot.Scatter, axes: "Axes") -> None:
    from matplotlib.colors import to_rgba_array

    strengths = np.resize(mark.opacities if np.size(mark.opacities) else 1.0, len(mark.x))
    shades, edge = to_rgba_array(np.resize(mark.colors, len(mark.x)), strengths), _STILL * mark.stroke_width
    inks = (shades, "0.4", 0.3) if mark.fill else ("none", shades, edge)
    style = dict(zip(("facecolors", "edgecolors", "linewidths"), inks, strict=True))
    axes.scatter(mark.x, mark.y, s=_STILL * mark.default_size, marker=_MARKERS[mark.marker], **style)


def _paint_bars(mark: bqplot.Bars, axes: "Axes") -> None:
    rows = np.atleast_2d(mark.y)
    width = 0.8 / len(rows)
    for place, heights in enumerate(rows):
        colour = mark.colors[place % len(mark.colors)]
        axes.bar(mark.x + (place - (len(rows) - 1) / 2) * width, heights, width, color=colour)


def _paint_texts(mark: bqplot.Label, axes: "Axes") -> None:
    sides = {"start": "left", "middle": "center", "end": "right"}
    for place, (x, y, text) in enumerate(zip(mark.x, mark.y, mark.text, strict=True)):
        axes.text(x, y, text, ha=sides[mark.align], color=mark.colors[place % len(mark.colors)], fontsize=8)


_PAINTERS: dict[type[bqplot.Mark], Callable[[Any, "Axes"], None]] = {
    bqplot.Lines: _paint_lines,
    bqplot.Scatter: _paint_scatter,
    bqplot.Bars: _paint_bars,
    bqplot.Label: _paint_texts,
}


def make_figure(
    css_class: str,
    height: int,
    margin: tuple[int, int, int, int],
    on_size: Callable[[float, float], None] | None = None,
    **traits: object,
) -> Canvas:
    """Figure of full width and at least this height in pixels; figures share further room in proportion."""
    return Canvas(
        css_class,
        margin,
        on_size,
        animation_duration=0,
        display_toolbar=False,
        padding_x=0.0,
        padding_y=0.0,
        background_style={"fill": "none"},
        layout={"width": "100%", "flex": f"{height} 0 {height}px", "min_width": "0"},
        **traits,
    )


def equal_limits(
    low: FloatArray, high: FloatArray, size: tuple[float, float], margin: float = 0.05
) -> tuple[FloatArray, FloatArray]:
    """Limits of a plane in which one unit is equally long in both directions.

    `low` and `high` are corners of what must be seen, `margin` is left free around it, as a share; of the
    plot's `size` only the ratio matters.
    """
    sides = np.asarray(size, dtype=np.float64)
    unit = (1.0 + 2.0 * margin) * max(float(((high - low) / sides).max()), 1e-9)
    middle, reach = (low + high) / 2, unit * sides / 2
    return middle - reach, middle + reach


class FeaturePlane:
    """A plane of two features or principal components: scales, axes, and choosers of what they show.

    Where both axes have the same unit (principal components, or columns with `Dataset.same_units`), one unit
    is equally long in both directions, whatever the shape of the window.

    Parameters
    ----------
    post
        Brings a command to the event loop.
    on_place
        Called with the objects' x and y whenever the plane shows something else.
    margin
        What is left free around the objects, as a share of their spread.
    """

    def __init__(
        self, post: Post, on_place: Callable[[FloatArray, FloatArray], None], margin: float = 0.05
    ) -> None:
        self._margin = margin
        self._on_place = on_place
        self._projections: dict[str, ShownAxes] = {}
        self._comparable: set[str] = set()
        self._size = (1.0, 1.0)
        self._matrix: FloatArray = np.eye(2)
        self._silence = Silence()
        self.scales = {"x": make_scale(), "y": make_scale()}
        self.axes = [make_axis(self.scales["x"]), make_axis(self.scales["y"], vertical=True)]
        tooltip = "What the {} axis shows: a column or a principal component".format
        self.choosers = tuple(
            make(Dropdown, f"ew-{name}-feature ew-chooser", description=name, tooltip=tooltip(name))
            for name in self.scales
        )
        for chooser in self.choosers:
            chooser.observe(lambda _: post(self.place), "value")

    def offer(self, dataset: Dataset) -> None:
        """Offer the columns and principal components of other data, and place the objects."""
        self._projections = projections(dataset)
        names, columns = list(self._projections), set(dataset.feature_names)
        components = {name for name in names if name.startswith("PC ")} - columns
        self._comparable = columns if dataset.same_units else components
        # Choosing would place the objects twice, the first time with an old chooser.
        with self._silence:
            for place, chooser in enumerate(self.choosers):
                assign(chooser, options=names, value=names[place])
        self.place()

    def choose(self, *names: str | None) -> None:
        """Have the axes show these columns or components, if the data have them."""
        with self._silence:
            for chooser, name in zip(self.choosers, names, strict=True):
                if name in chooser.options:
                    assign(chooser, value=name)
        self.place()

    def place(self) -> None:
        """Place the objects by what is chosen."""
        if self._silence:
            return
        self._fit()
        self._on_place(*self._mapped().T)

    def transform(self, matrix: FloatArray) -> None:
        """Show the plane mapped by a matrix, from the right, about the objects' mean."""
        if not np.array_equal(matrix, self._matrix):
            self._matrix = matrix
            if self._projections:
                self.place()

    def _plain(self) -> FloatArray:
        return np.column_stack([self._projections[chooser.value].values for chooser in self.choosers])

    def _mapped(self) -> FloatArray:
        plain = self._plain()
        middle = plain.mean(axis=0)
        return plain if self.is_plain else middle + (plain - middle) @ self._matrix

    @property
    def is_plain(self) -> bool:
        """Whether the plane is shown as it is."""
        return np.array_equal(self._matrix, np.eye(2))

    def resize(self, width: float, height: float) -> None:
        """Follow the size that the plot has on the page."""
        self._size = (width, height)
        self._fit()

    def widen(self, margin: float) -> None:
        """Leave another margin around the objects."""
        if margin != self._margin:
            self._margin = margin
            self._fit()

    @property
    def weights(self) -> FloatArray | None:
        """Weights of the features in what is shown (d × 2); None where an axis shows none of them."""
        plain = self.axes_weights
        return None if plain is None else plain @ self._matrix

    @property
    def axes_weights(self) -> FloatArray | None:
        """The same for the axes that were chosen, before any map."""
        x, y = (self._projections[chooser.value].weights for chooser in self.choosers)
        return None if x is None or y is None else np.column_stack([x, y])

    @property
    def is_equal(self) -> bool:
        """Whether one unit is equally long in both directions."""
        return {chooser.value for chooser in self.choosers} <= self._comparable

    def _fit(self) -> None:
        if not self._projections:
            return
        mapped, names = self._mapped(), [chooser.value for chooser in self.choosers]
        if self.is_plain and not self.is_equal:
            for axis, shown, name in zip(self.axes, mapped.T, names, strict=True):
                low, high = float(shown.min()), float(shown.max())
                beside = self._margin * (high - low) or 1.0
                set_limits(axis.scale, axis, low - beside, high + beside, ticks=6)
                assign(axis, label=name)
            return
        # Where the axes have different units, a map is seen in those of their spread.
        unit, size = np.ones(2), self._size
        if not self.is_equal:
            unit, size = np.maximum(np.ptp(self._plain(), axis=0), 1e-12), (1.0, 1.0)
        corners = mapped.min(axis=0) / unit, mapped.max(axis=0) / unit
        lows, highs = (unit * corner for corner in equal_limits(*corners, size, self._margin))
        if not self.is_plain:
            names = [f"{name}, transformed" for name in names]
        for place, (axis, name) in enumerate(zip(self.axes, names, strict=True)):
            set_limits(axis.scale, axis, float(lows[place]), float(highs[place]), ticks=6)
            assign(axis, label=name)


class SimilarityPicture(Image):
    """A picture of similarities, dark where two objects are together, that follows the theme of the page."""

    def __init__(self, css_class: str) -> None:
        self.pixels: NDArray[np.uint8] | None = None
        self._is_dark = False
        super().__init__(value=BLANK, format="png", **look(css_class))

    def show(self, similarity: NDArray[Any], order: NDArray[np.intp], most: int = MOST_PIXELS) -> None:
        """Show similarities of the objects in this order, with at most so many pixels a side."""
        self.pixels = distance_pixels(similarity, order, most)
        self.darken(self._is_dark)

    def darken(self, is_dark: bool) -> None:
        """Turn black on white into white on black, or back."""
        self._is_dark = is_dark
        if self.pixels is not None:
            assign(self, value=encode_png(self.pixels, picture_palette(dark=is_dark)))


def paint_pictures(pictures: Mapping[str, SimilarityPicture], axes: "Axes", columns: int) -> None:
    """Draw pictures with matplotlib, in rows of so many, each below its name."""
    rows = -(-len(pictures) // columns)
    axes.set(xticks=[], yticks=[], frame_on=False, box_aspect=0.9 / 0.84 * rows / columns)
    for place, (name, picture) in enumerate(pictures.items()):
        if picture.pixels is not None:
            row, column = divmod(place, columns)
            left, bottom = (column + 0.05) / columns, 1.0 - (row + 1) / rows
            small = axes.inset_axes((left, bottom, 0.9 / columns, 0.84 / rows))
            small.imshow(picture_palette()[picture.pixels], interpolation="nearest")
            small.set_title(name.replace("$", r"\$"), fontsize=6, pad=2)
            small.set_axis_off()


class PictureBuffers:
    """Two image widgets, one of them visible."""

    def __init__(self) -> None:
        self._content = BLANK
        self.visible, self._hidden = (make(Image, value=BLANK, format="png") for _ in range(2))

    def show(
        self, pixels: NDArray[np.uint8], mark: bqplot.Image, colours: str = "greys", *, dark: bool = False
    ) -> None:
        """Show a picture in a mark, if it differs from the last one; distances in a named colour map."""
        content = encode_png(pixels, picture_palette(colours, dark=dark))
        # A picture is by far the largest message of a frame.
        if content == self._content:
            return
        self._content = content
        self.visible, self._hidden = self._hidden, self.visible
        assign(self.visible, value=content)
        assign(mark, image=self.visible)


class Brush:
    """A selector of bqplot that sets the shared selection, and vanishes when another one selects.

    `choose` returns the objects in an area: corners (low x, low y), (high x, high y), or the ends of an
    interval.
    """

    def __init__(
        self, selector: Widget, shared: SharedState, choose: Callable[[FloatArray], NDArray[np.intp]]
    ) -> None:
        self.selector = selector
        self._shared = shared
        self._choose = choose
        self._silence = Silence()
        selector.observe(self._on_brushed, "selected")

    @classmethod
    def rectangle(
        cls,
        scales: Mapping[str, bqplot.Scale],
        shared: SharedState,
        choose: Callable[[FloatArray], NDArray[np.intp]],
    ) -> "Brush":
        """Brush of rectangles."""
        make_selector = bqplot.interacts.BrushSelector
        return cls(make_selector(x_scale=scales["x"], y_scale=scales["y"], color=SELECTED), shared, choose)

    def _on_brushed(self, change: dict[str, Any]) -> None:
        area = None if change["new"] is None else np.array(change["new"], dtype=np.float64)
        if not self._silence:
            self._shared.post(lambda: self._select(area))

    def _select(self, area: FloatArray | None) -> None:
        selection = self._shared.selection
        if area is not None and area.size and np.all(np.isfinite(area)):
            selection.set(self._choose(np.sort(area, axis=0)), source=self)
        elif selection.source is self:
            selection.clear()

    def follow(self) -> None:
        """Remove the mark of the brush where the selection is another one's."""
        if self._shared.selection.source is self or self.selector.selected is None:
            return
        parts = ("selected_x", "selected_y") if self.selector.has_trait("selected_x") else ("selected",)
        with self._silence:
            assign(self.selector, **dict.fromkeys(parts))


def places_between(low: float, high: float, n_objects: int) -> NDArray[np.intp]:
    """Indices of the objects that an interval touches, if all of them together have length 1."""
    first, last = int(np.floor(low * n_objects)), int(np.ceil(high * n_objects))
    return np.arange(max(0, first), min(n_objects, last))
