"""Traces of the number of clusters, θ and the log posterior, with their distributions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.plots.canvas import new_figure, styled
from ewens_widgets.analysis.plots.palette import class_colours
from ewens_widgets.model.concentration import Gamma
from ewens_widgets.sampling.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["plot_traces"]

_MOST_POINTS = 2000
_NAMES = {
    "n_clusters": "clusters",
    "theta": "θ",
    "log_posterior": "log posterior",
    "concentration": "concentration λ",
}


@styled
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
    if isinstance(chains[0].posterior.concentration, Gamma):
        names.append("concentration")
    canvas = new_figure(6.5, 1.35 * len(names) + 0.5) if figure is None else figure
    grid = canvas.subplots(
        len(names), 2, sharex="col", sharey="row", squeeze=False, gridspec_kw={"width_ratios": [5, 1]}
    )
    for name, (left, right) in zip(names, grid, strict=True):
        for colour, trace in zip(class_colours(len(chains)), chains, strict=True):
            _draw(left, trace, name, colour)
            _draw_distribution(right, getattr(trace, name), name, colour, len(chains))
        left.set_ylabel(_NAMES[name])
        right.tick_params(left=False, labelleft=False, bottom=False, labelbottom=False)
        right.spines[["left", "bottom"]].set_visible(False)
        if burn_in is not None:
            left.axvspan(0, burn_in, color="0.9", linewidth=0, zorder=0)
        if name == "theta":
            left.set_yscale("log", base=2)
    grid[-1, 0].set_xlabel("iteration")
    if len(chains) > 1:
        _draw_names(grid[0, 1], chains)
    canvas.align_ylabels(grid[:, 0])
    return canvas


def _draw(axes: "Axes", trace: Trace, name: str, colour: str) -> None:
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


def _draw_names(axes: "Axes", chains: Sequence[Trace]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour) for colour in class_colours(len(chains))]
    axes.legend(
        handles,
        [f"chain {number}" for number in range(1, len(chains) + 1)],
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        handlelength=1.0,
    )
