"""How the clusters differ: a box for each cluster, a panel for each feature."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.analysis.plots.canvas import figure_of, new_figure, styled
from ewens_widgets.analysis.plots.palette import SINGLETON, cluster_colours
from ewens_widgets.analysis.plots.scatter import feature_names
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import check_data
from ewens_widgets.partition import check_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_boxplots"]

_COLUMNS = 5
_MOST_FEATURES = 30


@styled
def plot_boxplots(
    X: ArrayLike | Dataset,
    labels: ArrayLike,
    *,
    features: Sequence[int] | None = None,
    ax: "Axes | None" = None,
) -> "Figure":
    """Draw boxplots of the features by cluster, the largest cluster first, all singletons as grey points.

    Parameters
    ----------
    X
        Data, n objects by d features, or a `Dataset`.
    labels
        A partition of the objects.
    features
        Columns to show; the first 30 by default.
    ax
        Axes to draw in, for a single feature; a figure with a panel for each feature by default.
    """
    matrix = check_data(X)
    found = check_labels(labels, len(matrix))
    names = feature_names(X, matrix.shape[1])
    chosen = list(range(min(matrix.shape[1], _MOST_FEATURES))) if features is None else list(features)
    if not chosen or not all(-matrix.shape[1] <= column < matrix.shape[1] for column in chosen):
        raise ValueError(f"features must be some of the {matrix.shape[1]} columns; got {chosen}.")
    if ax is not None and len(chosen) > 1:
        raise ValueError("one pair of axes shows one feature: choose it, e.g. features=[0].")
    panels = [ax] if ax is not None else _panels(len(chosen), int(found.max()) + 1)
    for panel, column in zip(panels, chosen, strict=True):
        _draw(panel, matrix[:, column], found)
        panel.set_title(_wrapped(names[column]), fontsize=8)
    return figure_of(panels[0])


def _wrapped(name: str) -> str:
    """A name on at most two short lines."""
    lines = textwrap.wrap(name.replace("_", " "), 18)
    return "\n".join(lines if len(lines) <= 2 else [lines[0], lines[1][:16] + " …"])


def _panels(count: int, n_clusters: int) -> list["Axes"]:
    columns = min(count, _COLUMNS if n_clusters <= 8 else 2)
    rows = -(-count // columns)
    figure = new_figure(
        min(1.7, 0.5 + 0.3 * n_clusters) * columns + 0.4 if n_clusters <= 8 else 8.0, 1.6 * rows
    )
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in grid[count:]:
        spare.set_axis_off()
    return list(grid[:count])


def _draw(axes: "Axes", values: NDArray[np.float64], labels: NDArray[np.intp]) -> None:
    sizes, colours = np.bincount(labels), cluster_colours(labels)
    order = [int(label) for label in np.argsort(-sizes, kind="stable") if sizes[label] > 1]
    for place, label in enumerate(order):
        axes.boxplot(
            values[labels == label],
            positions=[place],
            widths=0.65,
            patch_artist=True,
            boxprops={"facecolor": colours[label], "linewidth": 0.6, "alpha": 0.85},
            medianprops={"color": "black", "linewidth": 1.0},
            whiskerprops={"linewidth": 0.6},
            capprops={"linewidth": 0.6},
            flierprops={"marker": ".", "markersize": 2.5, "markeredgecolor": colours[label]},
        )
    alone = values[sizes[labels] == 1]
    if alone.size:
        axes.plot(np.full(alone.size, len(order)), alone, ".", color=SINGLETON, markersize=4)
    axes.set_xlim(-0.6, len(order) - 0.4 + bool(alone.size))
    ticks = [str(sizes[label]) for label in order] + (["1"] if alone.size else [])
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set_xlabel("cluster size", fontsize=8, labelpad=1)
