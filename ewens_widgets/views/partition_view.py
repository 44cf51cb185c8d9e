"""The objects in two dimensions, coloured by cluster."""

import time
from html import escape
from typing import TYPE_CHECKING, Any

import bqplot
import numpy as np
from ipywidgets import Button, Widget
from numpy.typing import NDArray
from traitlets import List

from ewens_widgets.analysis.agreement import adjusted_rand
from ewens_widgets.analysis.plots.palette import ALONE, GREY, SELECTED, changed_objects, colour_of
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.views.base import View, assign, chip, note
from ewens_widgets.views.figures import Brush, FeaturePlane, make_figure, make_scatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PartitionView"]

FloatArray = NDArray[np.float64]

_MOST_IN_LEGEND = 12
_MOST_NAMED = 8
_LEGEND_REST = 0.2  # seconds; numbers cannot be read any faster


class _Points(bqplot.Scatter):
    """Scatter that takes colours as they come: checking a thousand of them takes longer than the rest."""

    colors: Any = List().tag(sync=True)
    """One colour an object, or one for all."""


class PartitionView(View):
    """Scatter of two features or principal components; drag a rectangle to select objects."""

    title = "Partition"
    css_class = "ew-partition"
    description = "Scatter plot of the objects, coloured by cluster; drag a rectangle to select some"

    def build(self) -> tuple[Widget, ...]:
        """Make the scatter, the choosers and the legend."""
        self._dataset: Dataset | None = None
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
        self.brush = Brush.rectangle(
            self.plane.scales["x"], self.plane.scales["y"], self.stage, self._objects_in
        )
        self.figure = make_figure(
            "ew-scatter",
            380,
            (8, 8, 38, 48),
            marks=[self.points, self.proposal],
            axes=self.plane.axes,
            interaction=self.brush.selector,
        )
        self.legend = note("ew-legend")
        self._legend_due = 0.0
        self.tools = self.plane.choosers
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

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Offer the new columns and place the objects."""
        self._dataset = dataset
        assign(self.points, colors=[GREY], selected=None)
        self.plane.offer(dataset)
        assign(self.legend, value="")

    def _place(self, x: FloatArray, y: FloatArray) -> None:
        if self.stage.selection.source is self.brush:
            self.stage.selection.source = None  # its rectangle means other objects now
        assign(self.points, x=x, y=y)
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
            return
        assign(self.points, colors=[colour_of(colour) for colour in colours.tolist()], selected=selected)
        sentence = self._draw_proposal(frame)
        now = time.perf_counter()
        if not frame.status.is_running or now >= self._legend_due:
            self._legend_due = now + _LEGEND_REST
            assign(self.legend, value=self._legend(frame, colours) + sentence)

    def _draw_proposal(self, frame: Frame) -> str:
        """Ring the objects that a single proposal would move; return a sentence on it."""
        event = frame.event
        moved: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        sentence = ""
        if event is not None and event.proposed_labels is not None and not self.stage.shows_cut:
            previous = frame.summary.labels[-2:-1]
            before = event.labels if not event.accepted else previous[0] if len(previous) else None
            if before is not None:
                moved = changed_objects(before.astype(np.intp), event.proposed_labels)
                decision = "accepted" if event.accepted else "rejected"
                sentence = f"<div>ringed: {moved.size} objects that the {decision} proposal moves</div>"
        assign(self.proposal, x=self.points.x[moved], y=self.points.y[moved])
        return sentence

    def _legend(self, frame: Frame, colours: NDArray[np.intp]) -> str:
        values, counts = np.unique(colours[colours != ALONE], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        chips = [chip(colour_of(values[k]), str(counts[k])) for k in order[:_MOST_IN_LEGEND]]
        if order.size > _MOST_IN_LEGEND:
            chips.append(f"and {order.size - _MOST_IN_LEGEND} more")
        alone = int((colours == ALONE).sum())
        if alone:
            chips.append(chip(GREY, f"{alone} alone" if not self.stage.shows_cut else f"{alone} left over"))
        return f"<div>{' '.join(chips)}{self._selected()}</div>{self._agreement(frame)}"

    def _agreement(self, frame: Frame) -> str:
        labels = self.stage.labels(frame)
        if self._dataset is None or self._dataset.labels is None or labels is None:
            return ""
        # Leftovers are clusters of their own.
        full = np.where(labels >= 0, labels, labels.max() + 1 + np.arange(labels.size))
        index = adjusted_rand(self._dataset.labels, full)
        return f'<div title="adjusted Rand index">agreement with known classes {index:.2f}</div>'

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
        self.plane.paint_names(axes)
