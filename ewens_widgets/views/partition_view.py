"""The objects in two dimensions, coloured by cluster, with an ellipse around each cluster."""

from html import escape
from typing import TYPE_CHECKING, Any

import bqplot
import numpy as np
from ipywidgets import Button, ToggleButton, Widget
from numpy.typing import NDArray
from traitlets import List

from ewens_widgets.analysis.plots.ellipses import Projection, cluster_ellipses, projection_onto
from ewens_widgets.analysis.plots.palette import ALONE, GREY, SELECTED, changed_objects, colour_of
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.sampling.event import Event
from ewens_widgets.views.base import View, assign, chip, note
from ewens_widgets.views.figures import Brush, FeaturePlane, Spot, make_figure, make_scatter
from ewens_widgets.views.stage import MOST_OBJECTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Outlines", "PartitionView"]

FloatArray = NDArray[np.float64]

_MOST_IN_LEGEND = 12
_MOST_NAMED = 8
_SMALLEST = 3  # Members of a cluster: two objects span a line, and their ellipse would be the prior's.
_MOST_OUTLINED = 20_000  # Objects: the statistics of more take longer than a frame.
_STEPS = 36  # Corners of an outline.


_NONE: NDArray[np.intp] = np.empty(0, dtype=np.intp)


def _proposed(frame: Frame, event: Event) -> tuple[NDArray[np.intp], str]:
    """Objects that a single proposal would move, and a sentence on them."""
    previous = frame.summary.labels[-2:-1]
    before = event.labels if not event.accepted else previous[0] if len(previous) else None
    if before is None or event.proposed_labels is None:
        return _NONE, ""
    moved = changed_objects(before.astype(np.intp), event.proposed_labels)
    decision = "accepted" if event.accepted else "rejected"
    return moved, f"ringed: {moved.size} objects that the {decision} proposal moves"


def _moved(frame: Frame, event: Event) -> tuple[NDArray[np.intp], str]:
    """Objects that an iteration has moved, and a sentence on them."""
    previous = frame.summary.labels[-2:-1]
    if not len(previous):
        return _NONE, ""
    before = previous[0].astype(np.intp)
    moved = changed_objects(before, event.labels)
    gained = event.n_clusters - (int(before.max()) + 1)
    change = "as many clusters as before"
    if gained:
        clusters = "cluster" if abs(gained) == 1 else "clusters"
        change = f"{abs(gained)} {clusters} {'more' if gained > 0 else 'fewer'}"
    objects = "1 object" if moved.size == 1 else f"{moved.size} objects"
    return moved, f"ringed: {objects} that changed cluster in this iteration; {change}"


class _Points(bqplot.Scatter):
    """Scatter that takes colours as they come: checking a thousand of them takes longer than the rest."""

    colors: Any = List().tag(sync=True)
    """One colour an object, or one for all."""


class Outlines:
    """Ellipses of the clusters that hold half and nine tenths of them, as one mark.

    A cluster is one line, in which something that is no number parts the two ellipses: bqplot makes elements
    for each line, whatever its points.

    Parameters
    ----------
    scales
        Of the scatter that the ellipses belong to.
    """

    def __init__(self, scales: dict[str, bqplot.Scale]) -> None:
        self._posterior: Posterior | None = None
        self._projection: Projection | None = None
        self.mark = bqplot.Lines(
            x=np.zeros((1, 2)), y=np.zeros((1, 2)), scales=scales, stroke_width=1.3, visible=False
        )

    def place(self, posterior: Posterior | None, x: FloatArray, y: FloatArray) -> None:
        """Turn to other coordinates of the objects; whatever is no function of their features has none."""
        self._posterior, self._projection = posterior, None
        if posterior is not None and posterior.n_objects <= _MOST_OUTLINED:
            self._projection = projection_onto(posterior, np.column_stack([x, y]))

    def hide(self) -> None:
        """Show no ellipse."""
        assign(self.mark, visible=False)

    def show(
        self, colours: NDArray[np.intp], theta: float, nu: float = np.inf, sigma: FloatArray | None = None
    ) -> None:
        """Show the ellipses of clusters.

        Parameters
        ----------
        colours
            Number of each object's colour, by which clusters are told apart.
        theta, nu, sigma
            Variance ratio; of own shapes also the likeness and the packed scale.
        """
        if self._posterior is None or self._projection is None:
            self.hide()
            return
        # Objects that are alone have one colour, and are no cluster.
        apart = np.where(colours == ALONE, colours.size + np.arange(colours.size), colours)
        found = cluster_ellipses(
            self._posterior,
            apart,
            theta,
            nu,
            sigma,
            self._projection,
            n_points=_STEPS,
            smallest=_SMALLEST,
        )
        if not found.clusters.size:
            self.hide()
            return
        # The first object of each cluster, in the order in which canonical labels count them.
        first = np.sort(np.unique(apart, return_index=True)[1])[found.clusters]
        lines = found.outlines
        gap = np.full((len(lines), lines.shape[1], 1, 2), np.nan)
        gap[..., 0] = lines[..., -1:, 0]
        # Not behind the last of them: bqplot puts a label, if only an empty one, at the end of a line.
        points = np.concatenate([lines, gap], axis=2).reshape(len(lines), -1, 2)[:, :-1]
        traits: dict[str, Any] = {"colors": [colour_of(number) for number in colours[first].tolist()]}
        # What is no number is not equal to itself, and would be sent again and again.
        shown = (np.atleast_2d(self.mark.x), np.atleast_2d(self.mark.y))
        if not np.array_equal(np.stack([points[..., 0], points[..., 1]]), shown, equal_nan=True):
            traits |= {"x": points[..., 0], "y": points[..., 1]}
        assign(self.mark, **traits, visible=True)

    def paint(self, axes: "Axes") -> None:
        """Draw the ellipses with matplotlib."""
        if not self.mark.visible:
            return
        # Of one line, bqplot keeps the points alone.
        xs, ys = np.atleast_2d(self.mark.x), np.atleast_2d(self.mark.y)
        for x, y, colour in zip(xs, ys, self.mark.colors, strict=True):
            axes.plot(x, y, color=colour, linewidth=0.9)


class PartitionView(View):
    """Scatter of two features or principal components; drag a rectangle to select objects."""

    title = "Partition"
    css_class = "ew-partition"
    description = "Scatter plot of the objects, coloured by cluster; drag a rectangle to select some"
    about = (
        "Every dot is an object, every colour a cluster; grey dots are alone. Ellipses hold 50 and 90 % of "
        "a cluster, by the shape that this draw gives it. Drag a rectangle to select objects and find them "
        "in the other pictures."
    )

    def build(self) -> tuple[Widget, ...]:
        """Make the scatter, the choosers and the legend."""
        self._dataset: Dataset | None = None
        self._posterior: Posterior | None = None
        self._iterations = (-1, -1)  # on display now, and before
        self.plane = FeaturePlane(self.stage.post, self._place)
        self.points = _Points(
            x=np.zeros(1),
            y=np.zeros(1),
            # One colour an object, and no scale of colours: bqplot then only paints what is there. With a
            # scale it would place every object again, at several times the cost.
            colors=[GREY],
            scales=self.plane.scales,
            default_size=36,
            stroke="#80808080",
            stroke_width=0.6,
            unselected_style={"opacity": "0.15"},
            selected_style={"opacity": "1"},
        )
        self.proposal = make_scatter(
            self.plane.scales, default_size=140, fill=False, colors=[SELECTED], stroke_width=1.8
        )
        # What the mouse is over in another picture.
        self.pointed = make_scatter(
            self.plane.scales, default_size=200, fill=False, colors=[SELECTED], stroke_width=2.5
        )
        self.stage.pointed.observe(self._point_out)
        self.outlines = Outlines(self.plane.scales)
        self.ellipses = ToggleButton(
            value=False,
            description="Ellipses",
            tooltip="Ellipses that hold 50 and 90 % of each cluster, or none",
        )
        self.ellipses.add_class("ew-ellipses")
        self.ellipses.observe(lambda _: self.stage.post(self.redraw), "value")
        self.brush = Brush.rectangle(
            self.plane.scales["x"], self.plane.scales["y"], self.stage, self._objects_in
        )
        self.figure = make_figure(
            "ew-scatter",
            300,
            (8, 8, 38, 48),
            self.plane.resize,
            marks=[self.outlines.mark, self.points, self.proposal, self.pointed],
            axes=self.plane.axes,
            interaction=self.brush.selector,
        )
        self.figure.tell = self._tell
        self.legend = note("ew-legend")
        self.tools = (self.ellipses, *self.plane.choosers)
        self.clear = Button(
            description="Clear selection", tooltip="Select no objects", layout={"display": "none"}
        )
        self.clear.add_class("ew-clear")
        self.clear.on_click(lambda _: self.stage.post(self.stage.selection.clear))
        return self.figure, self.legend, self.clear

    def _objects_in(self, area: FloatArray) -> NDArray[np.intp]:
        (left, bottom), (right, top) = area
        x, y = np.asarray(self.points.x), np.asarray(self.points.y)
        return np.flatnonzero((left <= x) & (x <= right) & (bottom <= y) & (y <= top))

    def _point_out(self) -> None:
        objects = self.stage.pointed.objects
        assign(self.pointed, x=self.points.x[objects], y=self.points.y[objects])

    def _tell(self, spot: Spot | None) -> str:
        """Say who is under the mouse: its name, its class, and how sure its cluster is."""
        if spot is None or self._frame is None or self._dataset is None:
            return ""
        found = spot.nearest(self.points.x, self.points.y, self.plane.scales)
        if found is None:
            return ""
        names, classes = self._dataset.row_names, self._dataset.classes
        lines = [f"object {found}" if names is None else str(names[found])]
        if classes is not None:
            lines.append(f"class: {classes[found]}")
        return "\n".join([*lines, self._membership(self._frame, found)]).strip()

    def _membership(self, frame: Frame, found: int) -> str:
        """How sure it is that an object is where it is."""
        labels = self.stage.labels(frame)
        shown = self.stage.shown(frame)
        if labels is None or shown == "classes":
            return ""
        reading = self.stage.live_answer.reading(frame)
        if shown == "answer" and reading is not None:
            return f"in its group with probability {reading.answer.certainty[found]:.2f}"
        mates = np.flatnonzero(labels == labels[found])
        mates = mates[mates != found]
        if labels[found] < 0 or not mates.size:
            return "left over" if shown == "cut" and labels[found] < 0 else "alone"
        size = f"in a cluster of {mates.size + 1}"
        if labels.size > MOST_OBJECTS or not frame.summary.n_draws:
            return size
        share = float(frame.summary.similarity()[found, mates].mean())
        return f"{size}, which it shares with the others in {share:.0%} of draws".replace("%", " %")

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:
        """Offer the new columns and place the objects."""
        self._dataset, self._posterior = dataset, posterior
        self.outlines.hide()
        assign(self.points, colors=[GREY], selected=None)
        self.plane.offer(dataset)
        assign(self.legend, value="")

    def _place(self, x: FloatArray, y: FloatArray) -> None:
        if self.stage.selection.source is self.brush:
            self.stage.selection.source = None  # its rectangle means other objects now
        assign(self.points, x=x, y=y)
        self.outlines.place(self._posterior, x, y)
        self.stage.pointed.clear()
        self.redraw()

    def draw(self, frame: Frame) -> None:
        """Send colours, selection, proposal and legend; positions stay."""
        self.brush.follow()
        colours = self.stage.colours(frame)
        chosen = self.stage.selection.objects
        selected = chosen if chosen.size else None
        assign(self.clear.layout, display="" if chosen.size else "none")
        if colours is None:
            assign(self.points, colors=[GREY], selected=selected)
            assign(self.legend, value="")
            self.outlines.hide()
            return
        assign(self.points, colors=[colour_of(colour) for colour in colours.tolist()], selected=selected)
        if self.ellipses.value and frame.event is not None:
            event = frame.event
            self.outlines.show(colours, event.theta, event.nu, event.sigma)
        else:
            self.outlines.hide()
        # With every picture: a legend of other sizes than those that are seen is wrong.
        assign(self.legend, value=self._legend(frame, colours) + self._draw_movers(frame))

    def _is_slow(self, frame: Frame) -> bool:
        """Whether the eye can follow single iterations: at slow speeds, and at rest after a step."""
        now, before = self._iterations
        if frame.status.shown_iteration != now:
            now, before = self._iterations = frame.status.shown_iteration, now
        speed = frame.status.speed
        is_step = not frame.status.is_running and before == now - 1
        return is_step or (frame.status.is_running and speed is not None and speed < 1.0)

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
        if frame.event is not None and self.stage.colouring == "draw":
            if frame.event.proposed_labels is not None:
                moved, sentence = _proposed(frame, frame.event)
            elif self._is_slow(frame):
                moved, sentence = _moved(frame, frame.event)
        assign(self.proposal, x=self.points.x[moved], y=self.points.y[moved])
        return f"<div>{sentence}</div>" if sentence else ""

    def _legend(self, frame: Frame, colours: NDArray[np.intp]) -> str:
        values, first, counts = np.unique(colours, return_index=True, return_counts=True)
        values, first, counts = (found[values != ALONE] for found in (values, first, counts))
        order = np.argsort(-counts, kind="stable")
        classes = self._dataset.classes if self._dataset and self.stage.shown(frame) == "classes" else None
        texts = [f"{counts[k]}" if classes is None else f"{classes[first[k]]}: {counts[k]}" for k in order]
        chips = [
            chip(colour_of(values[k]), text) for k, text in zip(order[:_MOST_IN_LEGEND], texts, strict=False)
        ]
        if order.size > _MOST_IN_LEGEND:
            chips.append(f"and {order.size - _MOST_IN_LEGEND} more")
        alone = int((colours == ALONE).sum())
        if alone:
            chips.append(chip(GREY, f"{alone} alone" if not self.stage.shows_cut else f"{alone} left over"))
        return f"<div>{' '.join(chips)}{self._selected()}</div>"

    def _selected(self) -> str:
        objects = self.stage.selection.objects
        if not objects.size:
            return ""
        names = self._dataset.row_names if self._dataset is not None else None
        if names is None:
            return f" · {objects.size} selected"
        shown = ", ".join(names[row] for row in objects[:_MOST_NAMED].tolist())
        more = ", …" if objects.size > _MOST_NAMED else ""
        return f" · {objects.size} selected: {escape(shown)}{more}"

    def paint(self, axes: "Axes") -> None:
        """Draw the scatter with matplotlib."""
        colours = self.points.colors
        axes.scatter(self.points.x, self.points.y, c=colours, s=16, edgecolors="0.4", linewidths=0.3)
        self.outlines.paint(axes)
        self.plane.paint_names(axes)
