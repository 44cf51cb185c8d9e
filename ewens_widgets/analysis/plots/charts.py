"""Charts of what a chain found: the posterior of θ, traces, and how the clusters differ by feature.

The bars of θ are averages of the exact conditionals, which are smoother than the shares of the draws. Traces
are drawn beside their distributions. Boxplots have a panel for each feature and a box for each cluster.
"""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.analysis.plots import palette
from ewens_widgets.analysis.plots.scatter_plot import chosen_columns, feature_names
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import check_data
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling.draws import SCHEMA
from ewens_widgets.sampling.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from ewens_widgets.analysis.trees import Tree

_MOST_TICKS = 16
_LARGEST_DENOMINATOR = 64


@palette.styled
def plot_theta(trace: Trace, *, histogram: bool = True, ax: "Axes | None" = None) -> "Figure":
    """Draw the posterior probabilities of θ on its grid as bars, with its prior.

    Parameters
    ----------
    trace
        Draws of a chain.
    histogram
        Show the shares of the draws too, as points; bars are averages of the exact conditionals.
    ax
        Axes to draw in; new ones by default.
    """
    axes = palette.new_figure(4.5, 2.8).subplots() if ax is None else ax
    grid, posterior = trace.posterior.theta_grid, trace.posterior
    places = np.arange(grid.size)
    axes.bar(places, trace.theta_posterior(), width=0.8, color=palette.OKABE_ITO[0], label="posterior")
    edges, prior = np.arange(grid.size + 1) - 0.5, np.exp(posterior.log_theta_prior)
    axes.stairs(prior, edges, baseline=None, color=palette.OKABE_ITO[3], linewidth=1.4, label="prior")
    if histogram:
        axes.plot(places, trace.theta_histogram(), "ko", markersize=3, label="draws")
    shown = places[:: -(-grid.size // _MOST_TICKS)]
    axes.set_xticks(shown, [theta_text(grid[place]) for place in shown])
    axes.tick_params(axis="x", rotation=45 if grid.size > 8 else 0)
    axes.set_xlim(-0.7, grid.size - 0.3)
    axes.set_ylim(0.0, None)
    axes.set_xlabel("variance ratio θ")
    axes.set_ylabel("probability")
    axes.legend()
    return palette.figure_of(axes)


@palette.styled
def plot_tree(
    tree: "Tree",
    *,
    n_clusters: int | None = None,
    min_size: int = 1,
    names: ArrayLike | None = None,
    ax: "Axes | None" = None,
) -> "Figure":
    """Draw a tree of the objects, and the line that cuts it into clusters, with their colours below.

    Parameters
    ----------
    tree
        Such as ``trace.evidence_tree()``.
    n_clusters, min_size
        Cut the tree into so many clusters of at least so many members; it is not cut by default.
    names
        Names of the objects, to write under the tree; none by default.
    ax
        Axes to draw in; new ones by default.
    """
    axes = palette.new_figure(6.0, 3.2).subplots() if ax is None else ax
    tree.plot(axes, names=names)
    axes.set_xlabel(f"{tree.n_leaves} objects")
    if n_clusters is None:
        return palette.figure_of(axes)
    labels = tree.cut(n_clusters=n_clusters, min_size=min_size, small_clusters="mark")
    counts = tree.counts(min_size)
    merges = int(np.flatnonzero(counts == n_clusters)[-1])
    heights = np.concatenate([[0.0], tree.heights, [1.05 * tree.heights[-1]]])
    axes.axhline((heights[merges] + heights[merges + 1]) / 2, color=palette.SELECTED, linestyle="--")
    drawn = palette.ClusterColours().assign(labels)[tree.leaves_order]
    colours = [palette.colour_of(number) for number in drawn.tolist()]
    # Just below the axis, in the order of the leaves.
    axes.scatter(
        np.arange(tree.n_leaves),
        np.full(tree.n_leaves, -0.02),
        c=colours,
        marker="s",
        s=6,
        clip_on=False,
        transform=axes.get_xaxis_transform(),
    )
    return palette.figure_of(axes)


def theta_text(value: float) -> str:
    """Short text of a grid value; fractions such as 1/8 stay fractions."""
    inverse = 1.0 / value
    if value < 1.0 and inverse == round(inverse) and inverse <= _LARGEST_DENOMINATOR:
        return f"1/{round(inverse)}"
    return f"{value:.4g}"


_MOST_POINTS = 2000
_NAMES = {
    "n_clusters": "clusters",
    "theta": "θ",
    "log_posterior": "log posterior",
    "concentration": "concentration λ",
    "nu": "pooling ν",
}


@palette.styled
def plot_traces(
    traces: Trace | Sequence[Trace], *, burn_in: int | None = None, figure: "Figure | SubFigure | None" = None
) -> "Figure | SubFigure":
    """Draw what the chain did, iteration by iteration, and how often it was where.

    Parameters
    ----------
    traces
        One trace, or one for each chain.
    burn_in
        Shade the iterations up to this one.
    figure
        Empty figure or sub-figure to draw in; a new one by default.
    """
    chains = [traces] if isinstance(traces, Trace) else list(traces)
    if not chains or not all(len(trace) for trace in chains):
        raise ValueError("there are no draws to plot; sample some, or drop fewer as burn-in.")
    names = ["n_clusters", "theta", "log_posterior"]
    names += [name for name in ("concentration", "nu") if SCHEMA[name].varies(chains[0].posterior)]
    canvas = palette.new_figure(6.5, 1.35 * len(names) + 0.5) if figure is None else figure
    grid = canvas.subplots(
        len(names), 2, sharex="col", sharey="row", squeeze=False, gridspec_kw={"width_ratios": [5, 1]}
    )
    for name, (left, right) in zip(names, grid, strict=True):
        for colour, trace in zip(palette.class_colours(len(chains)), chains, strict=True):
            _draw_trace(left, trace, name, colour)
            _draw_distribution(right, getattr(trace, name), name, colour, len(chains))
        left.set_ylabel(_NAMES[name])
        if name == "n_clusters":
            left.locator_params(axis="y", integer=True)
        right.tick_params(left=False, labelleft=False, bottom=False, labelbottom=False)
        right.spines[["left", "bottom"]].set_visible(False)
        if burn_in is not None:
            left.axvspan(0, burn_in, color="0.9", linewidth=0, zorder=0)
        if name in {"theta", "nu"}:
            left.set_yscale("log", base=2)
    grid[-1, 0].set_xlabel("iteration")
    if len(chains) > 1:
        names = [f"chain {number}" for number in range(1, len(chains) + 1)]
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "handlelength": 1.0}
        grid[0, 1].legend(grid[0, 0].lines, names, **beside)
    canvas.align_ylabels(grid[:, 0])
    return canvas


def _draw_trace(axes: "Axes", trace: Trace, name: str, colour: str) -> None:
    step = -(-len(trace) // _MOST_POINTS)
    values: NDArray[Any] = getattr(trace, name)[::step]
    style = "steps-mid" if name in {"n_clusters", "theta"} else "default"
    axes.plot(trace.iterations[::step], values, color=colour, linewidth=0.7, alpha=0.85, drawstyle=style)


def _draw_distribution(axes: "Axes", values: NDArray[Any], name: str, colour: str, n_chains: int) -> None:
    if name in {"n_clusters", "theta"}:
        # A bar for each value that occurs, since both are discrete.
        places, counts = np.unique(values, return_counts=True)
        heights = 0.35 * places if name == "theta" else np.full(places.size, 0.8)
        axes.barh(
            places, counts / values.size, height=heights, color=colour, alpha=1.0 if n_chains == 1 else 0.4
        )
        return
    counts, edges = np.histogram(values, bins=30)
    axes.stairs(
        counts / values.size, edges, orientation="horizontal", color=colour, fill=n_chains == 1, linewidth=1.0
    )


_COLUMNS = 5
_MOST_FEATURES = 30


@palette.styled
def plot_boxplots(
    X: ArrayLike | Dataset,
    labels: ArrayLike,
    *,
    features: Sequence[int | str] | None = None,
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
        Columns to show, by number or name; the first 30 by default.
    ax
        Axes to draw in, for a single feature; a figure with a panel for each feature by default.
    """
    matrix = check_data(X, finite=False)
    found = check_labels(labels, len(matrix))
    names = feature_names(X, matrix.shape[1])
    first = range(min(matrix.shape[1], _MOST_FEATURES))
    chosen = chosen_columns(first if features is None else features, names)
    if not chosen or not all(-matrix.shape[1] <= column < matrix.shape[1] for column in chosen):
        raise ValueError(f"features must be some of the {matrix.shape[1]} columns; got {chosen}.")
    if ax is not None and len(chosen) > 1:
        raise ValueError("one pair of axes shows one feature: choose it, e.g. features=[0].")
    panels = [ax] if ax is not None else _panels(len(chosen), int(found.max()) + 1)
    for panel, column in zip(panels, chosen, strict=True):
        _draw_boxes(panel, matrix[:, column], found)
        lines = textwrap.wrap(names[column].replace("_", " "), 18)
        panel.set_title(
            "\n".join([*lines[:1], lines[1][:16] + " …"] if len(lines) > 2 else lines), fontsize=8
        )
    return palette.figure_of(panels[0])


def _panels(count: int, n_clusters: int) -> list["Axes"]:
    columns = min(count, _COLUMNS if n_clusters <= 8 else 2)
    rows = -(-count // columns)
    figure = palette.new_figure(
        min(1.7, 0.5 + 0.3 * n_clusters) * columns + 0.4 if n_clusters <= 8 else 8.0, 1.6 * rows
    )
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in grid[count:]:
        spare.set_axis_off()
    return list(grid[:count])


def _draw_boxes(axes: "Axes", values: NDArray[np.float64], labels: NDArray[np.intp]) -> None:
    sizes, colours = np.bincount(labels), palette.cluster_colours(labels)
    order = palette.by_size(sizes)
    for place, label in enumerate(order):
        axes.boxplot(
            values[(labels == label) & ~np.isnan(values)],
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
        axes.plot(np.full(alone.size, len(order)), alone, ".", color=palette.SINGLETON, markersize=4)
    axes.set_xlim(-0.6, len(order) - 0.4 + bool(alone.size))
    ticks = [str(sizes[label]) for label in order] + (["1"] if alone.size else [])
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set_xlabel("cluster size", fontsize=8, labelpad=1)
