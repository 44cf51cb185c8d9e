"""Selecting objects by dragging over a figure."""

from collections.abc import Callable
from typing import Any

import bqplot
import numpy as np
from ipywidgets import Widget
from numpy.typing import NDArray

from ewens_widgets.analysis.plots.palette import SELECTED
from ewens_widgets.views.base import Silence, assign
from ewens_widgets.views.stage import Stage

__all__ = ["Brush", "places_between"]

FloatArray = NDArray[np.float64]


class Brush:
    """A selector of bqplot that feeds the shared selection, and vanishes when somebody else selects.

    Parameters
    ----------
    selector
        `BrushSelector` or `BrushIntervalSelector`.
    stage
        Holds the selection.
    choose
        Objects in an area: corners (low x, low y), (high x, high y), or the two ends of an interval.
    """

    def __init__(
        self, selector: Widget, stage: Stage, choose: Callable[[FloatArray], NDArray[np.intp]]
    ) -> None:
        self.selector = selector
        self._stage = stage
        self._choose = choose
        self._silence = Silence()
        selector.observe(self._on_brushed, "selected")

    @classmethod
    def rectangle(
        cls,
        x_scale: bqplot.Scale,
        y_scale: bqplot.Scale,
        stage: Stage,
        choose: Callable[[FloatArray], NDArray[np.intp]],
    ) -> "Brush":
        """Brush of rectangles."""
        selector = bqplot.interacts.BrushSelector(x_scale=x_scale, y_scale=y_scale, color=SELECTED)
        return cls(selector, stage, choose)

    @classmethod
    def interval(
        cls, scale: bqplot.Scale, stage: Stage, choose: Callable[[FloatArray], NDArray[np.intp]]
    ) -> "Brush":
        """Brush of horizontal intervals."""
        return cls(bqplot.interacts.BrushIntervalSelector(scale=scale, color=SELECTED), stage, choose)

    def _on_brushed(self, change: dict[str, Any]) -> None:
        if self._silence:
            return
        area = None if change["new"] is None else np.array(change["new"], dtype=np.float64)
        self._stage.post(lambda: self._select(area))

    def _select(self, area: FloatArray | None) -> None:
        if area is None or area.size == 0 or not np.all(np.isfinite(area)):
            if self._stage.selection.source is self:
                self._stage.selection.clear()
            return
        self._stage.selection.set(self._choose(np.sort(area, axis=0)), source=self)

    def follow(self) -> None:
        """Take the mark of the brush away where the selection is not its own."""
        if self._stage.selection.source is self or self.selector.selected is None:
            return
        parts = ("selected_x", "selected_y") if self.selector.has_trait("selected_x") else ("selected",)
        with self._silence:
            assign(self.selector, **dict.fromkeys(parts))


def places_between(low: float, high: float, n_objects: int) -> NDArray[np.intp]:
    """Places of the objects that an interval touches, if all of them together have length 1."""
    first, last = int(np.floor(low * n_objects)), int(np.ceil(high * n_objects))
    return np.arange(max(0, first), min(n_objects, last))
