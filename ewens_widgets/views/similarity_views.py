"""The tree of the objects, with a line that cuts it, and the heatmap of the similarity of all pairs.

Both show the objects in the order of the tree's leaves. The heatmap has at most 400 pixels a side; for more
objects, blocks of the ordered matrix are averaged. Of very many objects 400 are shown: evenly spaced ones, in
the order of their own tree.
"""

from html import escape
from typing import TYPE_CHECKING, Any

import bqplot
import numpy as np
from ipywidgets import BoundedIntText, Dropdown, HBox, ToggleButton, Widget
from numpy.typing import NDArray

from ewens_widgets.analysis.plots.heatmap_plot import (
    LEVELS,
    MOST_PIXELS,
    distance_pixels,
    leaf_pixels,
    picture_palette,
    spread_rows,
)
from ewens_widgets.analysis.plots.palette import COLOUR_MAPS, OKABE_ITO, SELECTED
from ewens_widgets.analysis.trees import Tree, average_order
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
    make_scatter,
    places_between,
    set_limits,
)
from ewens_widgets.views.shared_state import MOST_OBJECTS, TREE_KINDS, Cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAND = 0.05  # about the width of the band of cluster colours next to the heatmap, as a share of the heatmap
_OUTLINE = OKABE_ITO[3]
_GRIPS = 24
_HEIGHTS = {"similarity": "share apart", "evidence": "nats lost"}


def band_share(n_objects: int) -> float:
    """Width of the band of cluster colours next to the heatmap, as a share of the heatmap: whole pixels."""
    side = -(-n_objects // -(-n_objects // MOST_PIXELS))
    return max(1, round(_BAND * side)) / side


def _outline(tree: Tree) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The tree as one line with gaps (NaN) between merges; positions are shares of the width."""
    links = tree.links()
    x = np.empty((len(links), 5))
    y = np.full((len(links), 5), np.nan)
    x[:, :4] = (links[:, :, 0] + 0.5) / tree.n_leaves
    x[:, 4] = x[:, 3]
    y[:, :4] = links[:, :, 1]
    # The line must not end with a gap: browsers want a last point.
    return x.ravel()[:-1], y.ravel()[:-1]


class TreeView(View):
    """Similarity tree or evidence tree. Drag the cut line, or drag over the strip of leaves to select."""

    title = "Tree"
    css_class = "ew-tree"
    description = "Tree of the objects with a line that cuts it; drag it to recolour the objects"
    about = (
        "Objects that are in one cluster in most draws merge low in the tree. Drag the pink line to cut the "
        "tree: every branch below the line becomes a cluster, and the colours follow."
    )
    rest = 0.2

    def build(self) -> tuple[Widget, ...]:
        """Make the outline, the cut line with its handle, and the strip of leaves."""
        self._tree: Tree | None = None
        self._silence = Silence()
        self._x_scale = make_scale()
        self._y_scale = make_scale(high=1.05)
        self._y_axis = make_axis(self._y_scale, _HEIGHTS["similarity"], vertical=True)
        self._scales = {"x": self._x_scale, "y": self._y_scale}
        self.lines = bqplot.Lines(
            x=np.zeros(2), y=np.zeros(2), scales=self._scales, colors=["#808080"], stroke_width=1.0
        )
        self.cut_line = bqplot.Lines(
            x=np.array([0.0, 1.0]),
            y=np.full(2, 0.5),
            scales=self._scales,
            colors=[SELECTED],
            line_style="dashed",
        )
        # The line can be dragged anywhere: next to the visible handle there are others along it. They report
        # each step of the drag and not its end only, so that colours follow the line.
        self.handle = make_scatter(
            self._scales,
            x=np.zeros(_GRIPS),
            y=np.full(_GRIPS, 0.5),
            opacities=[1.0] + [0.0] * (_GRIPS - 1),
            colors=[SELECTED],
            marker="rectangle",
            default_size=160,
            drag_size=1.4,
            enable_move=True,
            restrict_y=True,
            update_on_move=True,
        )
        self.handle.observe(self._on_dragged, "y")
        marks = [self.lines, self.cut_line, self.handle]
        self.figure = make_figure("ew-tree-picture", 100, (6, 4, 6, 44), marks=marks, axes=[self._y_axis])
        self.figure.tell = self._tell
        self._make_controls()
        # With the controls, in a place of its own: it comes and goes, and must not move the pictures.
        row = HBox((self.count, self.least, self.shows, self.note), **look("ew-row"))
        return self.figure, self._make_strip(), row

    def _make_strip(self) -> Widget:
        """Strip of leaves in their clusters' colours; brushing it selects."""
        self._buffers = PictureBuffers()
        scales = {"x": self._x_scale, "y": make_scale()}
        self.leaves = bqplot.Image(image=self._buffers.visible, x=(0.0, 1.0), y=(0.0, 1.0), scales=scales)
        selector = bqplot.interacts.BrushIntervalSelector(scale=self._x_scale, color=SELECTED)
        self.brush = Brush(selector, self.shared, self._objects_in)
        return make_figure("ew-leaves", 18, (0, 4, 2, 44), marks=[self.leaves], axes=[], interaction=selector)

    def _make_controls(self) -> None:
        tooltip = "Height of a node: share of draws that separate its branches, or loss by merging them"
        self.kind = make(
            Dropdown, "ew-tree-kind ew-chooser", options=list(TREE_KINDS.items()), tooltip=tooltip
        )
        numbers = (
            ("ew-cut-count", 3, "cut into", "Number of clusters of the cut"),
            ("ew-cut-least", 1, "min. size", "Objects of smaller clusters are unassigned and grey"),
        )
        self.count, self.least = (
            make(
                BoundedIntText,
                f"{name} ew-chooser",
                value=value,
                min=1,
                max=9999,
                description=text,
                tooltip=tip,
            )
            for name, value, text, tip in numbers
        )
        tooltip = "Colour all pictures by the cut instead of the current draw"
        self.shows = make(
            ToggleButton, "ew-cut-shows ew-chooser", description="colour by cut", tooltip=tooltip
        )
        self.note = note()
        for control in (self.kind, self.count, self.least, self.shows):
            control.observe(self._on_control, "value")
        self.tools = (self.kind,)

    def _on_control(self, change: dict[str, Any]) -> None:
        if self._silence:
            return
        shared, kind = self.shared, self.kind.value
        cut = Cut(n_clusters=self.count.value, min_size=self.least.value)
        if change["owner"] is self.shows:
            shared.post(lambda: shared.set_cut(shared.cut, show=bool(change["new"])))
        elif change["owner"] is self.kind:
            # It keeps the number of clusters: heights of two kinds of trees have nothing in common.
            shared.post(lambda: shared.set_tree(kind, cut))
        else:
            shared.post(lambda: shared.set_cut(cut))

    def _on_dragged(self, change: dict[str, Any]) -> None:
        if self._silence:
            return
        # Of all the grips one was moved.
        heights, before = np.ravel(change["new"]), np.ravel(change["old"])
        moved = int(np.argmax(np.abs(heights - before))) if heights.shape == before.shape else 0
        cut = Cut(height=max(0.0, float(heights[moved])), min_size=self.least.value)
        self.shared.post(lambda: self.shared.set_cut(cut))

    def _tell(self, spot: Spot | None) -> str:
        """Describe the node under the mouse."""
        if spot is None or self._tree is None:
            return ""
        links = self._tree.links()
        middles = (links[:, 1:3, 0].mean(axis=1) + 0.5) / self._tree.n_leaves
        found = spot.nearest(middles, links[:, 1, 1], self._scales)
        if found is None:
            return ""
        objects = self._data.counted(int(self._tree.linkage[found, 3]))
        height = float(links[found, 1, 1])
        if self._tree.kind == "similarity":
            return f"node of {objects}\nits two branches are apart in {100 * height:.0f} % of draws"
        return f"node of {objects}\nmerging loses {height:.1f} nats"

    def _objects_in(self, ends: NDArray[np.float64]) -> NDArray[np.intp]:
        return self._order[places_between(ends[0], ends[1], self._n_objects)]

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:
        """Forget the tree of other objects."""
        self._data = dataset
        self._n_objects = posterior.n_objects
        self._order = np.arange(self._n_objects)
        share = band_share(self._n_objects)
        assign(self._x_scale, min=-share)
        assign(self.cut_line, x=np.array([-share, 1.0]))
        assign(self.handle, x=np.concatenate([[-share / 2], np.linspace(0.0, 1.0, _GRIPS - 1)]))
        self._draw_outline(None)

    def draw(self, frame: Frame) -> None:
        """Send the outline if the tree has changed, the cut and the leaves' colours."""
        self.brush.follow()
        tree = self.shared.live_tree.tree(frame)
        # A tree is kept until there is a new one; an outline is hundreds of numbers.
        if tree is not self._tree:
            self._draw_outline(tree)
        labels = self.shared.cut_labels(frame)
        with self._silence:
            self._draw_cut(tree, labels, frame)
        self._order = self.shared.order(frame, self._n_objects)
        leaves = leaf_pixels(self._order, self.shared.colours(frame), self.shared.selection.objects)
        self._buffers.show(leaves, self.leaves)

    def _draw_outline(self, tree: Tree | None) -> None:
        self._tree = tree
        if tree is None:
            assign(self.lines, x=np.zeros(2), y=np.zeros(2))
            return
        x, y = _outline(tree)
        top = 1.0 if tree.kind == "similarity" else float(tree.heights[-1]) or 1.0
        set_limits(self._y_scale, self._y_axis, 0.0, 1.05 * top)
        assign(self._y_axis, label=_HEIGHTS[tree.kind])
        assign(self.lines, x=x, y=y)

    def _draw_cut(self, tree: Tree | None, labels: NDArray[np.intp] | None, frame: Frame) -> None:
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
        rest = f"{escape(self._data.counted(left))} unassigned" if left else ""
        if frame.answer is not None and shared.shown(frame) == "answer" and not left:
            rest = f"components of the draws; the answer has {frame.answer.answer.n_clusters} groups"
        assign(self.note, value=shared.cut_problem or rest)

    def paint(self, axes: "Axes") -> None:
        """Draw the tree with matplotlib."""
        if self._tree is None:
            axes.set_axis_off()
            axes.text(0.5, 0.5, self.shared.live_tree.reason, ha="center", transform=axes.transAxes)
            return
        self._tree.plot(axes)
        axes.axhline(self.shared.cut.level(self._tree), color=SELECTED, linestyle="--", linewidth=1.0)


class HeatmapView(View):
    """Similarity S of all pairs; drag a rectangle to select objects.

    The picture stores the distance D = 1 − S, as in the paper: black is S = 1.
    """

    title = "Similarity"
    css_class = "ew-heatmap"
    description = "Heatmap of the share of draws in which two objects are in the same cluster, in tree order"
    about = (
        "Every row and every column is an object. A pixel shows the share of draws in which the two objects "
        "are in the same cluster. The order is that of the tree. With the answer, its groups come one after "
        "the other, with a square around each."
    )

    def build(self) -> tuple[Widget, ...]:
        """Make the image mark, its two buffers and the brush."""
        self._buffers = PictureBuffers()
        self._order: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._pixels: NDArray[np.uint8] = np.zeros((1, 1), dtype=np.uint8)
        self._is_dark = False
        self._scales = {"x": make_scale(), "y": make_scale()}
        self.image = bqplot.Image(
            image=self._buffers.visible, x=(0.0, 1.0), y=(0.0, 1.0), scales=self._scales
        )
        # Squares around the groups of the answer, as one line with gaps.
        self.outlines = bqplot.Lines(
            x=np.zeros(2),
            y=np.zeros(2),
            scales=self._scales,
            colors=[_OUTLINE],
            stroke_width=1.5,
            visible=False,
        )
        self.brush = Brush.rectangle(self._scales, self.shared, self._objects_in)
        marks, brush = [self.image, self.outlines], self.brush.selector
        self.figure = make_figure(
            "ew-heatmap-picture", 220, (2, 4, 4, 44), marks=marks, axes=[], interaction=brush
        )
        self.figure.tell = self._tell
        tooltip = "Colour map of the heatmap; the paper uses greys"
        self.colours = make(Dropdown, "ew-colour-map ew-chooser", options=COLOUR_MAPS, tooltip=tooltip)
        self.colours.observe(lambda _: self.shared.post(self._recolour), "value")
        self.tools = (self.colours,)
        self.key, self.note = note("ew-legend"), note()
        self._recolour()
        return self.figure, self.key, self.note

    def darken(self, is_dark: bool) -> None:
        """Turn black on white into white on black."""
        if is_dark != self._is_dark:
            self._is_dark = is_dark
            self._recolour()

    def _recolour(self) -> None:
        """Write the legend of the colour map, and draw the picture with it."""
        table = picture_palette(self.colours.value, dark=self._is_dark)[:LEVELS:25]
        shades = ", ".join(f"rgb({red} {green} {blue})" for red, green, blue in table.tolist())
        bar = f'<span class="ew-key" style="background:linear-gradient(to right, {shades})"></span>'
        assign(self.key, value=f"together in 100 % {bar} 0 % of draws")
        self.redraw()

    def _objects_in(self, area: NDArray[np.float64]) -> NDArray[np.intp]:
        (left, bottom), (right, top) = area
        columns = places_between(left, right, self._order.size)
        rows = places_between(1.0 - top, 1.0 - bottom, self._order.size)
        return self._order[np.union1d(columns, rows)]

    def _tell(self, spot: Spot | None) -> str:
        """Describe the two objects under the mouse, and ring both."""
        size = self._order.size
        if spot is None or self.frame is None or not size:
            self.shared.pointed.clear()
            return ""
        x, y = spot.value(self._scales["x"]), spot.value(self._scales["y"], vertical=True)
        row, column = (min(size - 1, int(share * size)) for share in (max(0.0, 1.0 - y), max(0.0, x)))
        one, other = int(self._order[row]), int(self._order[column if x >= 0.0 else row])
        self.shared.pointed.set([one, other])
        if one == other:
            return self._data.row_name(one)
        places = (one, other) if self._rows is None else np.searchsorted(self._rows, [one, other])
        share = float(self.frame.summary.similarity(self._rows)[places[0], places[1]])
        names = f"{self._data.row_name(one)} and {self._data.row_name(other)}"
        return f"{names}\ntogether in {100 * share:.0f} % of draws"

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:
        """Forget the order of other objects."""
        self._data = dataset
        self._n_objects = count = posterior.n_objects
        self._rows = spread_rows(count) if count > MOST_OBJECTS else None
        self._order = np.arange(count) if self._rows is None else self._rows
        share = band_share(self._order.size)
        assign(self._scales["x"], min=-share)
        assign(self.image, x=(-share, 1.0))
        of_all = f"{self._order.size} of {dataset.counted(count)}, evenly spaced."
        assign(self.note, value="" if self._rows is None else of_all)

    def draw(self, frame: Frame) -> None:
        """Fill the hidden buffer and swap."""
        self.brush.follow()
        whole = frame.summary.similarity(self._rows)
        if self._rows is None:
            self._order, ends = self.shared.grouped_order(frame, self._n_objects)
            order = self._order
            self._outline(ends)
        else:
            # There is no shared tree of so many objects; these few are quickly put in order.
            order = average_order(whole)
            self._order = self._rows[order]
        levels = distance_pixels(whole, order)
        self._pixels = self._with_bands(levels, self.shared.colours(frame))
        self._buffers.show(self._pixels, self.image, self.colours.value, dark=self._is_dark)

    def _outline(self, ends: NDArray[np.intp]) -> None:
        """Draw squares around the groups that end at these places."""
        if ends.size < 2:
            assign(self.outlines, visible=False)
            return
        last = ends / self._n_objects
        first = np.concatenate([[0.0], last[:-1]])
        gap = np.full(ends.size, np.nan)
        x = np.column_stack([first, last, last, first, first, first])
        y = 1.0 - np.column_stack([first, first, last, last, first, gap])
        # Not behind the last of them: browsers want a last point.
        assign(self.outlines, x=x.ravel()[:-1], y=y.ravel()[:-1], visible=True)

    def _with_bands(self, levels: NDArray[np.uint8], colours: NDArray[np.intp] | None) -> NDArray[np.uint8]:
        """Add a band of cluster colours left of the picture; pink marks selected objects."""
        side = levels.shape[0]
        width = round(band_share(self._order.size) * side)
        # Where several objects share a pixel, the first one is shown.
        step = -(-self._order.size // side)
        plain, marked = leaf_pixels(self._order[::step], colours, self.shared.selection.objects)
        half = -(-width // 2)
        bands = np.repeat(np.column_stack([plain, marked]), [half, width - half], axis=1)
        return np.hstack([bands, levels])

    def paint(self, axes: "Axes") -> None:
        """Draw the picture with matplotlib."""
        axes.imshow(picture_palette(self.colours.value)[self._pixels], interpolation="nearest")
        axes.set_axis_off()
