"""Marks of the scatters: dots with a colour and a shape for each cluster, and ellipses around clusters.

Everybody can tell eight colours apart. From the ninth cluster on, clusters have other shapes: squares,
triangles, diamonds. bqplot has one shape per mark, and with one mark per shape objects would be placed again
whenever they change their cluster. So all objects are circles, which stay, and other shapes cover the circles
of their clusters.

In a figure with the class `GLIDES`, dots and ellipses move gradually from one picture to the next. The
stylesheet does this. For it, a cluster keeps its place among the ellipses, or each would turn into another
one.
"""

from collections.abc import Iterable
from typing import Any

import bqplot
import numpy as np
from numpy.typing import NDArray
from traitlets import List

from ewens_widgets.analysis.plots.palette import ALONE, GREY, SHAPES, colour_of, shape_of
from ewens_widgets.analysis.plots.scatter_plot import Projection, outlines, projection_onto
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import canonical_labels
from ewens_widgets.views.base import assign

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

GLIDES = "ew-glides"
"""Class of a figure whose dots and ellipses glide. Ellipses must be its first mark and dots the next ones."""

ROOMY = 0.2
"""Margin of a scatter with ellipses, as a share of the objects' spread: they reach beyond their objects."""

_SMALLEST = 3  # Members of a cluster: two objects span a line, and their ellipse would be the prior's.
_MOST_OUTLINED = 20_000  # Objects: the statistics of more take longer than a frame.
_STEPS = 36  # Corners of an outline.

# How much larger than a circle's the area of each shape must be for the circle to vanish under it.
_COVERS = {"square": 4 / np.pi, "triangle-up": 3 * 3**0.5 / np.pi, "diamond": 8 / 3**0.5 / np.pi}


class _Points(bqplot.Scatter):
    """Scatter that takes colours as they come: checking a thousand of them takes longer than the rest."""

    colors: Any = List().tag(sync=True)
    """One colour an object, or one for all."""


class Dots:
    """The objects of a scatter, each in the colour and shape of its cluster; `size` is a circle's area."""

    def __init__(self, scales: dict[str, bqplot.Scale], size: float = 36) -> None:
        # One colour an object, and no scale of colours: bqplot then only paints what is there. With a scale
        # it would place every object again, at several times the cost.
        style: dict[str, Any] = {
            "scales": scales,
            "stroke": "#80808080",
            "stroke_width": 0.6,
            "unselected_style": {"opacity": "0.15"},
            "selected_style": {"opacity": "1"},
        }
        self._size = size
        self.circles = _Points(x=np.zeros(1), y=np.zeros(1), colors=[GREY], **style)
        self._shapes: IntArray = np.zeros(1, dtype=np.intp)
        self.covers = tuple(
            _Points(x=np.zeros(0), y=np.zeros(0), colors=[GREY], marker=shape, **style)
            for shape in SHAPES[1:]
        )
        self.enlarge(1.0)

    def enlarge(self, scale: float) -> None:
        """Draw the objects at another size, 1 being the default."""
        assign(self.circles, default_size=round(self._size * scale))
        for cover in self.covers:
            assign(cover, default_size=round(_COVERS[cover.marker] * self._size * scale))

    @property
    def marks(self) -> tuple[bqplot.Scatter, ...]:
        """All marks, circles first."""
        return self.circles, *self.covers

    def place(self, x: FloatArray, y: FloatArray) -> None:
        """Place the objects."""
        # Of other data; otherwise they keep their shapes.
        if x.size != self._shapes.size:
            self._shapes = np.zeros(x.size, dtype=np.intp)
        assign(self.circles, x=x, y=y)
        for place, cover in enumerate(self.covers, start=1):
            members = np.flatnonzero(self._shapes == place)
            assign(cover, x=x[members], y=y[members])

    def show(
        self,
        colours: Iterable[str],
        numbers: IntArray | None = None,
        selected: IntArray | None = None,
        opacities: FloatArray | None = None,
    ) -> None:
        """Colour the objects: each in its own colour, or all in one.

        The `numbers` of the colours decide about shapes; without them all objects are circles.
        """
        shades = list(colours)
        strengths = np.ones(1) if opacities is None else opacities
        assign(self.circles, colors=shades, selected=selected, opacities=strengths)
        self._shapes = np.zeros(self.circles.x.size, dtype=np.intp) if numbers is None else _shapes(numbers)
        for place, cover in enumerate(self.covers, start=1):
            members = np.flatnonzero(self._shapes == place)
            assign(
                cover,
                x=self.circles.x[members],
                y=self.circles.y[members],
                colors=[shades[member] for member in members.tolist()] or [GREY],
                selected=None if selected is None else np.flatnonzero(np.isin(members, selected)),
                opacities=strengths if opacities is None or not members.size else opacities[members],
            )


def _shapes(numbers: IntArray) -> IntArray:
    """Place in `SHAPES` of each object's shape."""
    values, places = np.unique(numbers, return_inverse=True)
    return np.array([shape_of(number) for number in values.tolist()], dtype=np.intp)[places]


class Outlines:
    """Ellipses that hold half and nine tenths of each cluster, as one mark.

    A cluster is one line, in which a NaN separates the two ellipses: bqplot makes elements for each line.
    """

    def __init__(self, scales: dict[str, bqplot.Scale]) -> None:
        self._posterior: Posterior | None = None
        self._projection: Projection | None = None
        self._lines: list[int | None] = []  # the number of the colour of each line; None: nothing is drawn
        self.mark = bqplot.Lines(
            x=np.zeros((1, 2)), y=np.zeros((1, 2)), scales=scales, stroke_width=1.3, visible=False
        )

    def place(
        self, posterior: Posterior | None, x: FloatArray, y: FloatArray, weights: FloatArray | None
    ) -> None:
        """Turn to other coordinates of the objects, with these weights of their features, or with none."""
        self._posterior, self._projection = posterior, None
        if posterior is not None and posterior.n_objects <= _MOST_OUTLINED:
            self._projection = projection_onto(posterior, np.column_stack([x, y]), weights)

    def hide(self) -> None:
        """Show no ellipse."""
        self._lines = []
        assign(self.mark, visible=False)

    def show(
        self, colours: NDArray[np.intp], theta: float, nu: float = np.inf, sigma: FloatArray | None = None
    ) -> None:
        """Show the ellipses of the clusters, which are given by the number of each object's colour.

        θ is the variance ratio; own shapes also have the pooling ν and the packed scale Σ.
        """
        if self._posterior is None or self._projection is None:
            self.hide()
            return
        # Objects that are alone have one colour, and are no cluster.
        apart = canonical_labels(np.where(colours == ALONE, colours.size + np.arange(colours.size), colours))
        shapes = self._posterior.cluster_shapes(apart, theta, nu, sigma)
        found = outlines(shapes, np.flatnonzero(np.bincount(apart) >= _SMALLEST), self._projection, _STEPS)
        if not found.clusters.size:
            self.hide()
            return
        # The first object of each cluster, in the order in which canonical labels count them.
        first = np.sort(np.unique(apart, return_index=True)[1])[found.clusters]
        numbers = colours[first].tolist()
        rings = found.outlines
        gap = np.full((len(rings), rings.shape[1], 1, 2), np.nan)
        gap[..., 0] = rings[..., -1:, 0]
        # Not behind the last of them: bqplot puts a label, if only an empty one, at the end of a line.
        lines = np.concatenate([rings, gap], axis=2).reshape(len(rings), -1, 2)[:, :-1]
        self._lines = _kept_places(self._lines, numbers)
        # A line without a cluster is one invisible point: bqplot reports errors for one without any.
        points = np.tile(lines[0, 0], (len(self._lines), lines.shape[1], 1))
        for line, number in zip(lines, numbers, strict=True):
            points[self._lines.index(number)] = line
        traits: dict[str, Any] = {
            "colors": [GREY if line is None else colour_of(line) for line in self._lines]
        }
        # What is no number is not equal to itself, and would be sent again and again.
        shown = (np.atleast_2d(self.mark.x), np.atleast_2d(self.mark.y))
        if not np.array_equal(np.stack([points[..., 0], points[..., 1]]), shown, equal_nan=True):
            traits |= {"x": points[..., 0], "y": points[..., 1]}
        assign(self.mark, **traits, visible=True)


def _kept_places(before: list[int | None], numbers: list[int]) -> list[int | None]:
    """Give each number a place in a list: the one that it had, otherwise one that was free, or a new one."""
    lines = [line if line in numbers else None for line in before]
    free = [place for place, line in enumerate(before) if line is None]
    for number in numbers:
        if number in lines:
            continue
        if free:
            lines[free.pop(0)] = number
        else:
            lines.append(number)
    while lines and lines[-1] is None:
        lines.pop()
    return lines
