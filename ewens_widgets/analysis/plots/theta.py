"""The posterior of θ against its prior."""

from typing import TYPE_CHECKING

import numpy as np

from ewens_widgets.analysis.plots.canvas import figure_of, new_figure, styled
from ewens_widgets.analysis.plots.palette import OKABE_ITO
from ewens_widgets.sampling.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_theta"]

_MOST_TICKS = 16


@styled
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
    axes = new_figure(4.5, 2.8).subplots() if ax is None else ax
    grid, posterior = trace.posterior.theta_grid, trace.posterior
    places = np.arange(grid.size)
    axes.bar(places, trace.theta_posterior(), width=0.8, color=OKABE_ITO[0], label="posterior")
    axes.step(
        np.concatenate([[-0.5], places + 0.5]),
        np.concatenate([np.exp(posterior.log_theta_prior)[:1], np.exp(posterior.log_theta_prior)]),
        where="pre",
        color=OKABE_ITO[3],
        linewidth=1.4,
        label="prior",
    )
    if histogram:
        axes.plot(
            places, trace.theta_histogram(), "o", markersize=3, color="black", linestyle="none", label="draws"
        )
    shown = places[:: -(-grid.size // _MOST_TICKS)]
    axes.set_xticks(shown, [_tick(grid[place]) for place in shown])
    axes.tick_params(axis="x", rotation=45 if grid.size > 8 else 0)
    axes.set_xlim(-0.7, grid.size - 0.3)
    axes.set_ylim(0.0, None)
    axes.set_xlabel("variance ratio θ")
    axes.set_ylabel("probability")
    axes.legend()
    return figure_of(axes)


def _tick(value: float) -> str:
    inverse = 1.0 / value
    return f"1/{inverse:g}" if value < 1.0 and inverse == round(inverse) else f"{value:g}"
