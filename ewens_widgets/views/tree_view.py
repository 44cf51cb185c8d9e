"""The hierarchy of the objects, with a line that cuts it."""

from html import escape
from typing import TYPE_CHECKING, Any

import bqplot
import numpy as np
from ipywidgets import BoundedIntText, Dropdown, HBox, ToggleButton, Widget
from numpy.typing import NDArray

from ewens_widgets.analysis.plots.heatmap_plot import leaf_pixels
from ewens_widgets.analysis.plots.palette import SELECTED
from ewens_widgets.analysis.trees import Tree
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame
from ewens_widgets.views.base import Silence, View, assign, look, make, note
from ewens_widgets.views.figures import (
    Brush,
    PictureBuffers,
    Spot,
    make_axis,
    make_figure,
    make_scale,
    places_between,
    set_limits,
)
from ewens_widgets.views.heatmap_view import band_share
from ewens_widgets.views.shared_state import TREE_KINDS, Cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRIPS = 24

_HEIGHTS = {"similarity": "share apart", "evidence": "nats lost"}


def outline(tree: Tree) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The tree as one line that is lifted between merges (NaN); positions are shares of the width."""
    links = tree.links()
    x = np.empty((len(links), 5))
    y = np.full((len(links), 5), np.nan)
    x[:, :4] = (links[:, :, 0] + 0.5) / tree.n_leaves
    x[:, 4] = x[:, 3]
    y[:, :4] = links[:, :, 1]
    # The line must not end with a lift: browsers want a last point.
    return x.ravel()[:-1], y.ravel()[:-1]


class TreeView(View):
    """Similarity tree or evidence tree; drag the cut line, or brush the strip of leaves."""

    title = "Tree"
    css_class = "ew-tree"
    description = "Tree of the objects with a line that cuts it; drag it to recolour the objects"
    about = (
        "Objects that most draws keep together meet low in the tree. Drag the pink line: what hangs together "
        "below it is one cluster, and the colours follow."
    )
    rest = 0.2

    def build(self) -> tuple[Widget, ...]:
        """Make the outline, the cut line with its handle, and the strip of leaves."""
        self._tree: Tree | None = None
        self._silence = Silence()
        self._x_scale = make_scale()
        self._y_scale = make_scale(high=1.05)
        self._y_axis = make_axis(self._y_scale, _HEIGHTS["similarity"], vertical=True)
        scales = {"x": self._x_scale, "y": self._y_scale}
        self.lines = bqplot.Lines(
            x=np.zeros(2), y=np.zeros(2), scales=scales, colors=["#808080"], stroke_width=1.0
        )
        self.cut_line = bqplot.Lines(
            x=np.array([0.0, 1.0]), y=np.full(2, 0.5), scales=scales, colors=[SELECTED], line_style="dashed"
        )
        # The line can be taken anywhere: beside the handle that is seen there are others along it.
        self.handle = bqplot.Scatter(
            x=np.zeros(_GRIPS),
            y=np.full(_GRIPS, 0.5),
            opacities=[1.0] + [0.0] * (_GRIPS - 1),
            scales=scales,
            colors=[SELECTED],
            marker="rectangle",
            default_size=160,
            drag_size=1.4,
            enable_move=True,
            restrict_y=True,
            # Tell of each step of the drag and not of its end only, so that colours follow the line.
            update_on_move=True,
        )
        self.handle.observe(self._on_dragged, "y")
        self.figure = make_figure(
            "ew-tree-picture",
            100,
            (6, 4, 6, 44),
            marks=[self.lines, self.cut_line, self.handle],
            axes=[self._y_axis],
        )
        self.figure.tell = self._tell
        self._make_controls()
        # With the controls, in a place of its own: it comes and goes, and must not move the pictures.
        row = HBox((self.count, self.least, self.shows, self.note), **look("ew-row"))
        return self.figure, self._make_strip(), row

    def _make_strip(self) -> Widget:
        """Strip of leaves in their clusters' colours; brushing it selects."""
        self._buffers = PictureBuffers()
        unit = make_scale()
        self.leaves = bqplot.Image(
            image=self._buffers.visible, x=(0.0, 1.0), y=(0.0, 1.0), scales={"x": self._x_scale, "y": unit}
        )
        selector = bqplot.interacts.BrushIntervalSelector(scale=self._x_scale, color=SELECTED)
        self.brush = Brush(selector, self.shared, self._objects_in)
        return make_figure(
            "ew-leaves", 18, (0, 4, 2, 44), marks=[self.leaves], axes=[], interaction=self.brush.selector
        )

    def _make_controls(self) -> None:
        self.kind = make(
            Dropdown,
            "ew-tree-kind ew-chooser",
            options=list(TREE_KINDS.items()),
            tooltip="Similarity: how often draws keep objects apart. Evidence: what merging clusters costs.",
        )
        self.count = make(
            BoundedIntText,
            "ew-cut-count ew-chooser",
            value=3,
            min=1,
            max=9999,
            description="cut into",
            tooltip="Cut the tree into so many clusters",
        )
        self.least = make(
            BoundedIntText,
            "ew-cut-least ew-chooser",
            value=1,
            min=1,
            max=9999,
            description="of at least",
            tooltip="Smaller clusters are not counted; they are left over and shown in grey",
        )
        self.shows = make(
            ToggleButton,
            "ew-cut-shows ew-chooser",
            description="colour by cut",
            tooltip="Colour all pictures by the cut, not by the current draw",
        )
        self.note = note()
        for control in (self.kind, self.count, self.least, self.shows):
            control.observe(self._on_control, "value")
        self.tools = (self.kind,)

    def _on_control(self, change: dict[str, Any]) -> None:
        if self._silence:
            return
        if change["owner"] is self.kind:
            self.shared.post(self._change_kind)
        elif change["owner"] is self.shows:
            shown = bool(change["new"])
            self.shared.post(lambda: self.shared.set_cut(self.shared.cut, show=shown))
        else:
            cut = Cut(n_clusters=self.count.value, min_size=self.least.value)
            self.shared.post(lambda: self.shared.set_cut(cut))

    def _change_kind(self) -> None:
        """Keep the number of clusters: heights of two kinds of trees have nothing in common."""
        shared = self.shared
        shared.live_tree.method = self.kind.value
        shared.cut = Cut(n_clusters=self.count.value, min_size=self.least.value)
        shared.changed()

    def _on_dragged(self, change: dict[str, Any]) -> None:
        if self._silence:
            return
        # Of all the grips one was moved.
        heights, before = np.ravel(change["new"]), np.ravel(change["old"])
        moved = int(np.argmax(np.abs(heights - before))) if heights.shape == before.shape else 0
        height = max(0.0, float(heights[moved]))
        cut = Cut(height=height, min_size=self.least.value)
        self.shared.post(lambda: self.shared.set_cut(cut))

    def _tell(self, spot: Spot | None) -> str:
        """Say what a joint of the tree joins."""
        if spot is None or self._tree is None:
            return ""
        links = self._tree.links()
        scales = {"x": self._x_scale, "y": self._y_scale}
        middles = (links[:, 1:3, 0].mean(axis=1) + 0.5) / self._tree.n_leaves
        found = spot.nearest(middles, links[:, 1, 1], scales)
        if found is None:
            return ""
        objects = self._data.counted(int(self._tree.linkage[found, 3]))
        height = float(links[found, 1, 1])
        if self._tree.kind == "similarity":
            return f"joins {objects}\nthat are apart in {100 * height:.0f} % of draws"
        return f"joins {objects}\nat a loss of {height:.1f} nats"

    def _objects_in(self, ends: NDArray[np.float64]) -> NDArray[np.intp]:
        return self._order[places_between(ends[0], ends[1], self._n_objects)]

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:
        """Forget the tree of other objects."""
        self._data = dataset
        self._tree = None
        self._n_objects = posterior.n_objects
        self._order = np.arange(self._n_objects)
        share = band_share(self._n_objects)
        assign(self._x_scale, min=-share)
        assign(self.cut_line, x=np.array([-share, 1.0]))
        assign(self.handle, x=np.concatenate([[-share / 2], np.linspace(0.0, 1.0, _GRIPS - 1)]))
        assign(self.lines, x=np.zeros(2), y=np.zeros(2))

    def draw(self, frame: Frame) -> None:
        """Send the outline if the tree has changed, the cut and the leaves' colours."""
        self.brush.follow()
        tree = self.shared.live_tree.tree(frame)
        # A tree is kept until there is a new one; an outline is hundreds of numbers.
        if tree is not self._tree:
            self._tree = tree
            self._draw_outline(tree)
        labels = self.shared.cut_labels(frame)
        with self._silence:
            self._draw_cut(tree, labels)
        self._order = self.shared.order(frame, self._n_objects)
        leaves = leaf_pixels(self._order, self.shared.colours(frame), self.shared.selection.objects)
        self._buffers.show(leaves, self.leaves)

    def _draw_outline(self, tree: Tree | None) -> None:
        if tree is None:
            assign(self.lines, x=np.zeros(2), y=np.zeros(2))
            return
        x, y = outline(tree)
        top = 1.0 if tree.kind == "similarity" else float(tree.heights[-1]) or 1.0
        set_limits(self._y_scale, self._y_axis, 0.0, 1.05 * top)
        assign(self._y_axis, label=_HEIGHTS[tree.kind])
        assign(self.lines, x=x, y=y)

    def _draw_cut(self, tree: Tree | None, labels: NDArray[np.intp] | None) -> None:
        shared = self.shared
        level = shared.cut.height if tree is None else shared.cut.level(tree)
        if level is not None:
            assign(self.cut_line, y=np.full(2, level))
            assign(self.handle, y=np.full(_GRIPS, level))
        if labels is not None:
            assign(self.count, value=max(1, int(labels.max()) + 1))
        assign(self.shows, value=shared.shows_cut)
        assign(self.kind, value=shared.live_tree.method)
        assign(self.least, value=shared.cut.min_size)
        left = 0 if labels is None else int((labels < 0).sum())
        rest = f"{escape(self._data.counted(left))} left over" if left else ""
        assign(self.note, value=shared.cut_problem or rest)

    def paint(self, axes: "Axes") -> None:
        """Draw the tree with matplotlib."""
        if self._tree is None:
            axes.set_axis_off()
            axes.text(0.5, 0.5, self.shared.live_tree.reason, ha="center", transform=axes.transAxes)
            return
        self._tree.plot(axes)
        axes.axhline(self.shared.cut.level(self._tree), color=SELECTED, linestyle="--", linewidth=1.0)
