"""The similarity of all pairs as a picture: pixels for a live display, and the paper's figures.

Both show the distance D = 1 − S in the order of a tree, black for 0 (together in all draws) and white for 1.
Where there are more objects than pixels, blocks of the ordered matrix are averaged.

A live picture is a matrix of bytes. Those below `LEVELS` are distances; those above are colours of clusters,
for bands beside the heatmap and the leaves of a tree. It is sent as a PNG with a palette, one byte a pixel,
which takes Pillow 0.15 ms for 178 × 178 pixels and 0.6 ms for 400 × 400.
"""

from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from ewens_widgets.analysis.plots import palette as look
from ewens_widgets.analysis.similarity import choose_rows
from ewens_widgets.analysis.trees import Tree
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEVELS = 200
"""Pixels below this are distances; from here on they are colours of clusters."""

MOST_PIXELS = 400
"""Most pixels a side of a live picture; browsers are too slow for more."""

_SELECTED_PIXEL, _GREY_PIXEL, _FIRST_CLUSTER = LEVELS, LEVELS + 1, LEVELS + 2

_MOST_OBJECTS = 2000
_MOST_PRINTED = 1000
# In inches: a square with room for the tree on its left, and for strips and the scale on its right.
_SQUARE, _LEFT, _BELOW, _RIGHT, _ABOVE = 3.2, 1.3, 0.55, 1.05, 0.12
# As shares of the square's side.
_TREE_WIDTH, _STRIP_WIDTH, _GAP = 0.32, 0.035, 0.015


@look.styled
def plot_heatmap(
    trace: Trace,
    *,
    tree: Tree | str | None = "single",
    labels: ArrayLike | None = None,
    true: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    cmap: str = "gray",
    ax: "Axes | None" = None,
) -> "Figure":
    """Draw the distance D between objects, in the order of a tree that is drawn beside it.

    Black is 0 (together in all draws) and white is 1 (in none), as in the paper.

    Parameters
    ----------
    trace
        Draws of a chain.
    tree
        A tree, or ``"single"``, ``"average"`` or ``"complete"`` for the similarity tree of this linkage, or
        ``"evidence"``; None leaves the objects in their own order and draws no tree.
    labels
        A partition to show as a strip of colours beside the heatmap.
    true
        Known classes, shown as a second strip, in the colours of the clusters that match them best.
    rows
        The objects to show, each once. By default all of them, and of more than 2000 objects 400 that
        represent the clusters of the best draw (`Trace.representatives`).
    cmap
        Name of a matplotlib colour map.
    ax
        Axes for the heatmap; tree and strips are drawn to their left and right. New ones by default.
    """
    shown = _shown_rows(trace, rows)
    chosen = _chosen_tree(trace, tree, shown)
    n_shown = trace.n_objects if shown is None else shown.size
    order = np.arange(n_shown) if chosen is None else chosen.leaves_order
    axes = _square_axes(chosen is not None) if ax is None else ax
    image = axes.imshow(
        ordered_means(trace.distance(rows=shown), order, _MOST_PRINTED),
        cmap=cmap,
        vmin=0.0,
        vmax=1.0,
        interpolation="nearest",
        extent=(-0.5, order.size - 0.5, order.size - 0.5, -0.5),
    )
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(True)
    count = f"{n_shown} objects" if shown is None else f"{n_shown} of {trace.n_objects} objects"
    axes.set_xlabel(count + ("" if chosen is None else ", in the order of the tree"))
    if chosen is not None:
        _draw_tree(axes, chosen)
    partitions = {
        name: check_labels(given, trace.n_objects)
        for name, given in (("found", labels), ("true", true))
        if given is not None
    }
    right = _draw_strips(axes, order if shown is None else shown[order], partitions)
    figure = look.figure_of(axes)
    scale = figure.colorbar(image, cax=axes.inset_axes((right + 0.03, 0.0, 0.03, 1.0)))
    scale.set_label("share of draws apart")
    scale.outline.set_linewidth(0.6)
    return figure


def _square_axes(with_tree: bool) -> "Axes":
    """Axes with fixed room for what is drawn beside them."""
    left = _LEFT if with_tree else 0.2
    width, height = left + _SQUARE + _RIGHT, _BELOW + _SQUARE + _ABOVE
    figure = look.new_figure(width, height, arranged=False)
    return figure.add_axes((left / width, _BELOW / height, _SQUARE / width, _SQUARE / height))


def _shown_rows(trace: Trace, rows: ArrayLike | None) -> NDArray[np.intp] | None:
    """Numbers of the objects to show; None means all."""
    if rows is None:
        return None if trace.n_objects <= _MOST_OBJECTS else trace.representatives()
    chosen = np.arange(trace.n_objects)[choose_rows(rows, trace.n_objects)]
    if np.unique(chosen).size != chosen.size:
        raise ValueError("rows must name each object once.")
    return chosen


def _chosen_tree(trace: Trace, tree: Tree | str | None, shown: NDArray[np.intp] | None) -> Tree | None:
    """Tree of the objects that are shown."""
    if isinstance(tree, str) and tree != "evidence":
        return trace.similarity_tree(tree, rows=shown)
    whole = trace.evidence_tree() if isinstance(tree, str) else tree
    if whole is None or shown is None:
        return whole
    # A tree of all objects, or one that has been made of these rows.
    return whole.restricted(shown) if whole.n_leaves == trace.n_objects else whole


def _draw_tree(axes: "Axes", tree: Tree) -> None:
    from matplotlib.collections import LineCollection

    beside = axes.inset_axes((-_TREE_WIDTH - _GAP, 0.0, _TREE_WIDTH, 1.0))
    lines = LineCollection(list(tree.links()[:, :, ::-1]), color="0.2", linewidth=0.6)
    beside.add_collection(lines)
    highest = float(tree.heights[-1]) or 1.0
    beside.set_xlim(1.03 * highest, 0.0)
    beside.set_ylim(tree.n_leaves - 0.5, -0.5)
    beside.set_yticks([])
    beside.locator_params(axis="x", nbins=2)  # the tree is narrow
    beside.spines[["left", "top", "right"]].set_visible(False)
    beside.set_xlabel("nats lost" if tree.kind == "evidence" else "share apart")


def _draw_strips(axes: "Axes", order: NDArray[np.intp], partitions: dict[str, NDArray[np.intp]]) -> float:
    """Draw a strip of colours for each partition; return where the last one ends."""
    from matplotlib.colors import to_rgb

    colours = {name: look.cluster_colours(given) for name, given in partitions.items() if name == "found"}
    if (true := partitions.get("true")) is not None:
        found, alone = partitions.get("found"), look.class_colours(int(true.max()) + 1)
        colours["true"] = alone if found is None else look.matching_colours(true, found)
    # Names of narrow strips would overlap.
    inches = min(axes.bbox.width, axes.bbox.height) / look.figure_of(axes).dpi
    size = min(9.0, 0.85 * 72 * (_GAP + _STRIP_WIDTH) * inches)
    right = 1.0
    for name, canonical in partitions.items():
        strip = axes.inset_axes((right + _GAP, 0.0, _STRIP_WIDTH, 1.0))
        pixels = np.array([to_rgb(colours[name][label]) for label in canonical[order]])
        strip.imshow(pixels[:, None, :], aspect="auto", interpolation="nearest")
        strip.set_xticks([])
        strip.set_yticks([])
        strip.spines[:].set_visible(False)
        strip.set_xlabel(name, rotation=90, fontsize=size)
        right += _GAP + _STRIP_WIDTH
    return right


def ordered_means(matrix: NDArray[Any], order: NDArray[np.intp], most: int) -> NDArray[Any]:
    """Put a symmetric matrix in order and average blocks of it, so that at most so many rows are left."""
    n_rows = order.size
    if n_rows <= most:
        return matrix[np.ix_(order, order)]
    size = -(-n_rows // most)
    starts = np.arange(0, n_rows, size)
    counts = np.diff(np.append(starts, n_rows))
    # Rows first, then the rows of what is left, turned: sums along rows are many times quicker than across.
    half = np.ascontiguousarray(np.add.reduceat(matrix[order], starts, axis=0).T)
    return np.asarray(np.add.reduceat(half[order], starts, axis=0) / np.outer(counts, counts))


def spread_rows(n_objects: int, most: int = MOST_PIXELS) -> NDArray[np.intp]:
    """At most so many objects, evenly spaced: the same ones at any time, so that pairs can be counted."""
    return np.unique(np.linspace(0, n_objects - 1, min(most, n_objects)).astype(np.intp))


def distance_pixels(
    similarity: NDArray[Any], order: NDArray[np.intp], most: int = MOST_PIXELS
) -> NDArray[np.uint8]:
    """Pixels of the distances in this order, at most so many a side."""
    return np.round((LEVELS - 1) * (1.0 - ordered_means(similarity, order, most))).astype(np.uint8)


def leaf_pixels(
    order: NDArray[np.intp], colours: NDArray[np.intp] | None, selected: NDArray[np.intp]
) -> NDArray[np.uint8]:
    """Two rows of pixels for the objects in this order: colours of their clusters; the same, selected marked.

    Parameters
    ----------
    order
        The objects.
    colours
        Numbers of the colours of all objects; None for grey.
    selected
        Objects that are selected.
    """
    pixels = np.full((2, order.size), _GREY_PIXEL, dtype=np.uint8)
    if colours is not None:
        shown = colours[order]
        pixels[:, shown != look.ALONE] = _FIRST_CLUSTER + shown[shown != look.ALONE] % len(
            look.CLUSTER_COLOURS
        )
    pixels[1, np.isin(order, selected)] = _SELECTED_PIXEL
    return pixels


@cache
def picture_palette(colours: str = look.COLOUR_MAPS[0], *, dark: bool = False) -> NDArray[np.uint8]:
    """Colours of all values of a pixel, one a row, for a named colour map of the distances."""
    others = np.array(
        [look.rgb(colour) for colour in (look.SELECTED, look.GREY, *look.CLUSTER_COLOURS)], dtype=np.uint8
    )
    return np.concatenate([look.colour_map(colours, LEVELS, dark=dark), others])


def encode_png(indices: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
    """Encode a picture.

    Parameters
    ----------
    indices
        Place of each pixel's colour in the palette, a row of the picture a row.
    palette
        Colours, one a row: red, green, blue.
    """
    if indices.dtype != np.uint8 or indices.ndim != 2 or 0 in indices.shape:
        raise ValueError(f"a picture is a matrix of uint8, got {indices.dtype} of shape {indices.shape}")
    if palette.dtype != np.uint8 or palette.ndim != 2 or palette.shape[1] != 3 or len(palette) > 256:
        raise ValueError(f"a palette has up to 256 rows of 3 uint8, got {palette.dtype} {palette.shape}")
    image = Image.fromarray(indices)
    image.putpalette(palette.tobytes())
    buffer = BytesIO()
    # The quickest level: the picture lives for some milliseconds, mostly on the same machine.
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


BLANK = encode_png(np.zeros((1, 1), dtype=np.uint8), np.full((1, 3), 255, dtype=np.uint8))
"""A white picture, where there is none yet."""
