"""The objects in two dimensions, coloured by cluster, with an ellipse around each cluster.

Everybody can tell eight colours apart. From the ninth cluster on, clusters have other shapes: squares,
triangles, diamonds. bqplot has one shape per mark, and with one mark per shape objects would be placed again
whenever they change their cluster. So all objects are circles, which stay, and other shapes cover the circles
of their clusters.

In a figure with the class `GLIDES`, dots and ellipses move gradually from one picture to the next. The
stylesheet does this. For it, a cluster keeps its place among the ellipses, or each would turn into another
one.
"""

import time
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

import bqplot
import numpy as np
from ipywidgets import ToggleButton, Widget
from numpy.typing import NDArray
from traitlets import List

from ewens_widgets.analysis.plots.palette import (
    ALONE,
    GREY,
    SELECTED,
    SHAPES,
    changed_objects,
    colour_of,
    shape_of,
)
from ewens_widgets.analysis.plots.scatter_plot import Projection, outlines, projection_onto
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import canonical_labels
from ewens_widgets.playback import Frame
from ewens_widgets.sampling.draws import Event
from ewens_widgets.views.base import View, assign, button, chip, make, note, show_if
from ewens_widgets.views.figures import Brush, FeaturePlane, Spot, make_figure, make_scatter
from ewens_widgets.views.shared_state import MOST_OBJECTS
from ewens_widgets.views.transport import move_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_MOST_IN_LEGEND = 9
_MOST_NAMED = 8
_PALE = 0.3  # Opacity of uncertain objects.
_GLIDE = 0.5  # Seconds, a little more than the stylesheet takes.
_MARGIN = 0.05  # Around the objects, as a share of their spread.

_NONE: IntArray = np.empty(0, dtype=np.intp)

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
        self, colours: IntArray, theta: float, nu: float = np.inf, sigma: FloatArray | None = None
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


def _proposed(frame: Frame, event: Event, before: IntArray | None, data: Dataset) -> tuple[IntArray, str]:
    """Objects that a single proposal would move, and a sentence on them."""
    before = before if event.accepted else event.labels.astype(np.intp)
    if before is None or event.proposed_labels is None:
        return _NONE, ""
    moved = changed_objects(before, event.proposed_labels)
    text = move_text(frame)
    moving = "joined another" if text.startswith("merge") else "left their"
    if not event.accepted:
        moving = moving.replace("left", "would have left").replace("joined", "would have joined")
    return moved, f"{text}: {escape(data.counted(moved.size))} {moving} cluster (ringed)"


def _moved(event: Event, before: IntArray | None, data: Dataset) -> tuple[IntArray, str]:
    """Objects that an iteration has moved, and a sentence on them."""
    if before is None:
        return _NONE, ""
    moved = changed_objects(before, event.labels)
    gained = event.n_clusters - (int(before.max()) + 1)
    change = "same number of clusters"
    if gained:
        clusters = "cluster" if abs(gained) == 1 else "clusters"
        change = f"{abs(gained)} {clusters} {'more' if gained > 0 else 'fewer'}"
    return moved, f"{escape(data.counted(moved.size))} changed cluster (ringed); {change}"


class PartitionView(View):
    """Scatter of two features or principal components; drag a rectangle to select objects."""

    title = "Partition"
    css_class = "ew-partition"
    description = "Scatter plot of the objects, coloured by cluster; drag a rectangle to select some"
    about = (
        "Every dot is an object and every colour a cluster. A grey dot is a cluster of one object. The "
        "ellipses contain 50 and 90 % of each fitted Gaussian. With the answer, uncertain objects are pale. "
        "Drag a rectangle to select objects; the other pictures mark them too."
    )

    def build(self) -> tuple[Widget, ...]:
        """Make the scatter, the choosers and the legend."""
        self._dataset: Dataset | None = None
        self._posterior: Posterior | None = None
        self._iterations = (-1, -1)  # on display now, and before
        self._glides_until = 0.0
        self._pale = _NONE
        self._is_slow = False  # so that single iterations can be followed
        # The partition before the first iteration, if it was seen.
        self._start: IntArray | None = None
        self.plane = FeaturePlane(self.shared.post, self._place, _MARGIN)
        self.dots = Dots(self.plane.scales)
        self.points = self.dots.circles
        self.proposal = make_scatter(
            self.plane.scales, default_size=140, fill=False, colors=[SELECTED], stroke_width=1.8
        )
        # What the mouse is over in another picture.
        self.pointed = make_scatter(
            self.plane.scales, default_size=200, fill=False, colors=[SELECTED], stroke_width=2.5
        )
        self.shared.pointed.observe(lambda: assign(self.pointed, **self._places(self.shared.pointed.objects)))
        self.outlines = Outlines(self.plane.scales)
        tooltip = "Show ellipses that contain 50 and 90 % of each cluster's Gaussian"
        self.ellipses = make(
            ToggleButton, "ew-ellipses", value=False, description="Ellipses", tooltip=tooltip
        )
        self.ellipses.observe(lambda _: self.shared.post(self.redraw), "value")
        self.brush = Brush.rectangle(self.plane.scales, self.shared, self._objects_in)
        self.figure = make_figure(
            "ew-scatter",
            300,
            (8, 8, 38, 48),
            self.plane.resize,
            marks=[self.outlines.mark, *self.dots.marks, self.proposal, self.pointed],
            axes=self.plane.axes,
            interaction=self.brush.selector,
        )
        self.figure.tell = self._tell
        self.legend = note("ew-legend")
        self.tools = (self.ellipses, *self.plane.choosers)
        self.clear = button(
            "Clear selection",
            "ew-clear",
            "Remove the selection of objects",
            lambda: self.shared.post(self.shared.selection.clear),
            layout={"display": "none"},
        )
        return self.figure, self.legend, self.clear

    def enlarge(self, scale: float) -> None:
        """Draw larger points for a whole room."""
        self.dots.enlarge(scale**2)

    def _objects_in(self, area: FloatArray) -> IntArray:
        (left, bottom), (right, top) = area
        x, y = np.asarray(self.points.x), np.asarray(self.points.y)
        return np.flatnonzero((left <= x) & (x <= right) & (bottom <= y) & (y <= top))

    def _places(self, objects: IntArray) -> dict[str, FloatArray]:
        return {"x": self.points.x[objects], "y": self.points.y[objects]}

    def _tell(self, spot: Spot | None) -> str:
        """Describe the object under the mouse: its name, class and membership probability."""
        if spot is None or self.frame is None or self._dataset is None:
            return ""
        found = spot.nearest(self.points.x, self.points.y, self.plane.scales)
        if found is None:
            return ""
        classes = self._dataset.classes
        lines = [self._dataset.row_name(found)]
        if classes is not None:
            lines.append(f"class: {classes[found]}")
        return "\n".join([*lines, self._membership(self.frame, found)]).strip()

    def _membership(self, frame: Frame, found: int) -> str:
        """How strongly an object belongs to its cluster on display."""
        labels = self.shared.labels(frame)
        shown = self.shared.shown(frame)
        if labels is None or shown == "classes":
            return ""
        if shown == "answer" and frame.answer is not None:
            return f"membership probability {frame.answer.answer.certainty[found]:.2f}"
        mates = np.flatnonzero(labels == labels[found])
        mates = mates[mates != found]
        if labels[found] < 0 or not mates.size:
            return "unassigned" if shown == "cut" and labels[found] < 0 else "the only member of its cluster"
        size = f"in a cluster of {mates.size + 1} objects"
        if labels.size > MOST_OBJECTS or not frame.summary.n_draws:
            return size
        share = float(frame.summary.similarity()[found, mates].mean())
        return f"{size}; together with another member in {100 * share:.0f} % of draws on average"

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:
        """Offer the new columns and place the objects."""
        self._dataset, self._posterior = dataset, posterior
        self._start = None
        self.outlines.hide()
        self.dots.show([GREY])
        self.plane.offer(dataset)
        assign(self.legend, value="")

    def _place(self, x: FloatArray, y: FloatArray) -> None:
        if self.shared.selection.source is self.brush:
            self.shared.selection.source = None  # its rectangle means other objects now
        if self.frame is not None:
            # Also while the chain runs: whoever transforms the data follows the points.
            self._glides_until = time.perf_counter() + _GLIDE
            self.figure.add_class(GLIDES)
        self.dots.place(x, y)
        self.outlines.place(self._posterior, x, y, self.plane.weights)
        self.shared.pointed.clear()
        self.redraw()

    def draw(self, frame: Frame) -> None:
        """Send colours, selection, proposal and legend; positions stay."""
        self.brush.follow()
        self.plane.widen(ROOMY if self.ellipses.value else _MARGIN)
        if frame.event is not None and not frame.status.shown_iteration:
            self._start = frame.event.labels.astype(np.intp)
        colours = self.shared.colours(frame)
        shades = [GREY] if colours is None else [colour_of(colour) for colour in colours.tolist()]
        # Before everything else: what changes after it glides, or does not.
        self._glide(frame, has_changed=shades != self.points.colors)
        chosen = self.shared.selection.objects
        selected = chosen if chosen.size else None
        show_if(self.clear, bool(chosen.size))
        if colours is None:
            self.dots.show(shades, selected=selected)
            assign(self.legend, value="")
            self.outlines.hide()
            return
        answer = frame.answer if self.shared.shown(frame) == "answer" else None
        self._pale = _NONE if answer is None else answer.answer.uncertain
        strengths = None
        if self._pale.size:
            strengths = np.ones(colours.size)
            strengths[self._pale] = _PALE
        self.dots.show(shades, colours, selected, strengths)
        if self.ellipses.value and frame.event is not None:
            event = frame.event
            self.outlines.show(colours, event.theta, event.nu, event.sigma)
        else:
            self.outlines.hide()
        # With every picture: a legend of other sizes than those that are seen is wrong.
        assign(self.legend, value=self._legend(frame, colours) + self._draw_movers(frame))

    def _glide(self, frame: Frame, *, has_changed: bool) -> None:
        """Have changes glide where the eye can follow: at slow speeds, after a step, and at rest."""
        is_new = frame.status.shown_iteration != self._iterations[0]
        if is_new:
            self._iterations = frame.status.shown_iteration, self._iterations[0]
        speed, is_rest = frame.status.speed, not frame.status.is_running
        self._is_slow = self.follows if is_rest else speed is not None and speed < 1.0
        if self._is_slow or (is_rest and not is_new and has_changed):
            self.figure.add_class(GLIDES)
        elif is_new and time.perf_counter() > self._glides_until:
            self.figure.remove_class(GLIDES)

    @property
    def follows(self) -> bool:
        """Whether the picture is a step after the one before it, so that movers are ringed."""
        return self._iterations[1] == self._iterations[0] - 1

    def follow(self, iteration: int) -> None:
        """Take the picture of an iteration for a step after the one before it."""
        self._iterations = iteration, iteration - 1

    def _draw_movers(self, frame: Frame) -> str:
        """Ring the objects that move, where one can follow that; return a sentence on it."""
        moved, sentence = _NONE, ""
        is_draw = self.shared.colouring == "draw" and frame.status.shown_iteration > 0
        if frame.event is not None and self._dataset is not None and is_draw:
            previous = frame.summary.labels[-2:-1]
            before = previous[0].astype(np.intp) if len(previous) else self._start
            if frame.event.proposed_labels is not None:
                moved, sentence = _proposed(frame, frame.event, before, self._dataset)
            elif self._is_slow:
                moved, sentence = _moved(frame.event, before, self._dataset)
        assign(self.proposal, **self._places(moved))
        return f"<div>{sentence}</div>" if sentence else ""

    def _legend(self, frame: Frame, colours: IntArray) -> str:
        values, first, counts = np.unique(colours, return_index=True, return_counts=True)
        values, first, counts = (found[values != ALONE] for found in (values, first, counts))
        order = np.argsort(-counts, kind="stable")
        classes = self._dataset.classes if self._dataset and self.shared.shown(frame) == "classes" else None
        texts = [f"{counts[k]}" if classes is None else f"{classes[first[k]]}: {counts[k]}" for k in order]
        chips = [
            chip(colour_of(values[k]), text, shape=SHAPES[shape_of(values[k])])
            for k, text in zip(order[:_MOST_IN_LEGEND], texts, strict=False)
        ]
        if order.size > _MOST_IN_LEGEND:
            chips.append(f"and {order.size - _MOST_IN_LEGEND} more")
        alone = int((colours == ALONE).sum())
        if alone:
            kind = "unassigned" if self.shared.shown(frame) == "cut" else "single"
            chips.append(chip(GREY, f"{alone} {kind}", shape=SHAPES[0]))
        if self._pale.size:
            text = f"pale: {self._pale.size} uncertain (probability < 0.8)"
            chips.append(f'<span class="ew-pale">{chip(GREY, text, shape=SHAPES[0])}</span>')
        return f"<div>{' '.join(chips)}{self._selected()}</div>"

    def _selected(self) -> str:
        objects = self.shared.selection.objects
        if not objects.size:
            return ""
        names = self._dataset.row_names if self._dataset is not None else None
        if names is None:
            return f" · {objects.size} selected"
        shown = ", ".join(names[row] for row in objects[:_MOST_NAMED].tolist())
        more = ", …" if objects.size > _MOST_NAMED else ""
        return f" · {objects.size} selected: {escape(shown)}{more}"

    def paint(self, axes: "Axes") -> None:
        """Draw the scatter with matplotlib, units as long in both directions as on the page."""
        super().paint(axes)
        if self.plane.is_equal:
            axes.set_aspect("equal")
