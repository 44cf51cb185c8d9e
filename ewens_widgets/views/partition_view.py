"""The objects in two dimensions, coloured by cluster, with an ellipse around each cluster."""

import time
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from ipywidgets import ToggleButton, Widget
from numpy.typing import NDArray

from ewens_widgets.analysis.plots.palette import (
    ALONE,
    GREY,
    SELECTED,
    SHAPES,
    changed_objects,
    colour_of,
    shape_of,
)
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.sampling.draws import Event
from ewens_widgets.views.base import View, assign, button, chip, make, note, show_if
from ewens_widgets.views.figures import Brush, FeaturePlane, Spot, make_figure, make_scatter
from ewens_widgets.views.scatter_marks import GLIDES, ROOMY, Dots, Outlines
from ewens_widgets.views.shared_state import MOST_OBJECTS
from ewens_widgets.views.transport import move_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

_MOST_IN_LEGEND = 9
_MOST_NAMED = 8
_PALE = 0.3  # Opacity of uncertain objects.
_GLIDE = 0.5  # Seconds, a little more than the stylesheet takes.
_MARGIN = 0.05  # Around the objects, as a share of their spread.

_NONE: NDArray[np.intp] = np.empty(0, dtype=np.intp)


def _proposed(
    frame: Frame, event: Event, before: NDArray[np.intp] | None, data: Dataset
) -> tuple[NDArray[np.intp], str]:
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


def _moved(event: Event, before: NDArray[np.intp] | None, data: Dataset) -> tuple[NDArray[np.intp], str]:
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
        self._start: NDArray[np.intp] | None = None
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

    def _objects_in(self, area: FloatArray) -> NDArray[np.intp]:
        (left, bottom), (right, top) = area
        x, y = np.asarray(self.points.x), np.asarray(self.points.y)
        return np.flatnonzero((left <= x) & (x <= right) & (bottom <= y) & (y <= top))

    def _places(self, objects: NDArray[np.intp]) -> dict[str, FloatArray]:
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

    def _legend(self, frame: Frame, colours: NDArray[np.intp]) -> str:
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
