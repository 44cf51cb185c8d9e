"""The objects in two dimensions, coloured by cluster."""

import time
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import bqplot
import numpy as np
from ipywidgets import HTML, Button, Dropdown, Widget
from numpy.typing import NDArray
from traitlets import List

from ewens_widgets.analysis.agreement import adjusted_rand
from ewens_widgets.analysis.plots.palette import ALONE, GREY, SELECTED, changed_objects, colour_of
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.views.base import View, assign
from ewens_widgets.views.brushing import Brush
from ewens_widgets.views.figures import fit_axis, make_axis, make_figure, make_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PartitionView", "projections"]

FloatArray = NDArray[np.float64]

_MOST_COMPONENTS = 6
_MOST_IN_LEGEND = 12
_LEGEND_REST = 0.2  # seconds; numbers cannot be read any faster


def projections(dataset: Dataset) -> dict[str, FloatArray]:
    """One-dimensional pictures of the data by name: principal components of standardised columns, columns.

    For two columns these come first, as they are the whole truth.
    """
    X = dataset.X
    columns = {name: X[:, place] for place, name in enumerate(dataset.feature_names)}
    spread = X.std(axis=0)
    standard = (X - X.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    components: dict[str, FloatArray] = {}
    if standard.shape[1] > 1:
        left, scale, _ = np.linalg.svd(standard, full_matrices=False)
        scores = left * scale
        # The sign of a component is arbitrary; this one does not depend on the library.
        scores *= np.where(scores[np.abs(scores).argmax(axis=0), range(scores.shape[1])] < 0, -1.0, 1.0)
        components = {f"PC {k + 1}": scores[:, k] for k in range(min(_MOST_COMPONENTS, scores.shape[1]))}
    row = {"row number": np.arange(1.0, len(X) + 1.0)}
    return {**columns, **components, **row} if X.shape[1] <= 2 else {**components, **columns, **row}


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
        self._projections: dict[str, FloatArray] = {}
        self._dataset: Dataset | None = None
        self._x_scale, self._y_scale = make_scale(), make_scale()
        self.points = _Points(
            x=np.zeros(1),
            y=np.zeros(1),
            # One colour an object, and no scale of colours: bqplot then only paints what is there. With a
            # scale it would place every object again, at several times the cost.
            colors=[GREY],
            scales={"x": self._x_scale, "y": self._y_scale},
            default_size=36,
            stroke="#80808080",
            stroke_width=0.6,
            unselected_style={"opacity": "0.15"},
            selected_style={"opacity": "1"},
        )
        self.proposal = bqplot.Scatter(
            x=np.zeros(0),
            y=np.zeros(0),
            scales={"x": self._x_scale, "y": self._y_scale},
            default_size=140,
            fill=False,
            colors=[SELECTED],
            stroke_width=1.8,
        )
        self.brush = Brush.rectangle(self._x_scale, self._y_scale, self.stage, self._objects_in)
        self._x_axis = make_axis(self._x_scale)
        self._y_axis = make_axis(self._y_scale, vertical=True)
        self.figure = make_figure(
            "ew-scatter",
            380,
            (8, 8, 38, 48),
            marks=[self.points, self.proposal],
            axes=[self._x_axis, self._y_axis],
            interaction=self.brush.selector,
        )
        self.choosers = tuple(self._chooser(name) for name in ("x", "y"))
        self.legend = HTML()
        self._legend_due = 0.0
        self.legend.add_class("ew-legend")
        self.tools = self.choosers
        self.clear = Button(
            description="Clear selection", tooltip="Select no objects", layout={"display": "none"}
        )
        self.clear.add_class("ew-clear")
        self.clear.on_click(lambda _: self.stage.post(self.stage.selection.clear))
        return self.figure, self.legend, self.clear

    def _chooser(self, name: str) -> Dropdown:
        chooser = Dropdown(
            description=name, tooltip=f"What the {name} axis shows: a column or a principal component"
        )
        chooser.add_class(f"ew-{name}-feature")
        chooser.add_class("ew-chooser")
        chooser.observe(lambda _: self.stage.post(self._place), "value")
        return chooser

    def _objects_in(self, area: FloatArray) -> NDArray[np.intp]:
        (left, bottom), (right, top) = area
        x, y = np.asarray(self.points.x), np.asarray(self.points.y)
        return np.flatnonzero((left <= x) & (x <= right) & (bottom <= y) & (y <= top))

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:  # noqa: ARG002 - one signature for all
        """Offer the new columns and place the objects."""
        self._dataset = dataset
        self._projections = projections(dataset)
        names = list(self._projections)
        # Choosing would place the objects twice, half-way with old ones.
        self._is_adapting = True
        for place, chooser in enumerate(self.choosers):
            assign(chooser, options=names, value=names[place])
        self._is_adapting = False
        assign(self.points, colors=[GREY], selected=None)
        self._place()
        assign(self.legend, value="")

    def _place(self) -> None:
        if self._is_adapting:
            return
        if self.stage.selection.source is self.brush:
            self.stage.selection.source = None  # its rectangle means other objects now
        x, y = (self._projections[chooser.value] for chooser in self.choosers)
        for axis, values, chooser in zip((self._x_axis, self._y_axis), (x, y), self.choosers, strict=True):
            fit_axis(axis, values, chooser.value)
        assign(self.points, x=x, y=y)
        self.redraw()

    def draw(self, frame: Frame) -> None:
        """Send colours, selection, proposal and legend; positions stay."""
        self.brush.follow()
        slots = self.stage.slots(frame)
        chosen = self.stage.selection.objects
        selected = chosen if chosen.size else None
        assign(self.clear.layout, display="" if chosen.size else "none")
        if slots is None:
            assign(self.points, colors=[GREY], selected=selected)
            assign(self.legend, value="")
            return
        assign(self.points, colors=[colour_of(slot) for slot in slots.tolist()], selected=selected)
        note = self._draw_proposal(frame)
        now = time.perf_counter()
        if not frame.status.is_running or now >= self._legend_due:
            self._legend_due = now + _LEGEND_REST
            assign(self.legend, value=self._legend(frame, slots) + note)

    def _draw_proposal(self, frame: Frame) -> str:
        """Ring the objects that a single proposal would move; return a sentence on it."""
        event = frame.event
        moved: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        note = ""
        if event is not None and event.proposed_labels is not None and not self.stage.shows_cut:
            previous = frame.summary.labels[-2:-1]
            before = event.labels if not event.accepted else previous[0] if len(previous) else None
            if before is not None:
                moved = changed_objects(before.astype(np.intp), event.proposed_labels)
                decision = "accepted" if event.accepted else "rejected"
                note = f"<div>ringed: {moved.size} objects that the {decision} proposal moves</div>"
        assign(self.proposal, x=self.points.x[moved], y=self.points.y[moved])
        return note

    def _legend(self, frame: Frame, slots: NDArray[np.intp]) -> str:
        values, counts = np.unique(slots[slots != ALONE], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        chips = [_chip(colour_of(values[k]), str(counts[k])) for k in order[:_MOST_IN_LEGEND]]
        if order.size > _MOST_IN_LEGEND:
            chips.append(f"and {order.size - _MOST_IN_LEGEND} more")
        alone = int((slots == ALONE).sum())
        if alone:
            chips.append(_chip(GREY, f"{alone} alone" if not self.stage.shows_cut else f"{alone} left over"))
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
        count = len(self.stage.selection)
        return f" · {count} selected" if count else ""

    def paint(self, axes: "Axes") -> None:
        """Draw the scatter with matplotlib."""
        colours = self.points.colors
        axes.scatter(self.points.x, self.points.y, c=colours, s=16, edgecolors="0.4", linewidths=0.3)
        axes.set_xlabel(_plain(self._x_axis.label))
        axes.set_ylabel(_plain(self._y_axis.label))


def _chip(colour: str, text: str) -> str:
    return (
        f'<span class="ew-chip"><span class="ew-swatch" style="background:{colour}"></span>'
        f"{escape(text)}</span>"
    )


def _plain(name: str | Sequence[str]) -> str:
    """A name that matplotlib does not take for mathematics."""
    return str(name).replace("$", r"\$")
