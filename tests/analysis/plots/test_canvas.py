"""What all static pictures have in common."""

import subprocess
import sys

import matplotlib as mpl
import pytest
from analysis.plots.drawing import TRUE, X, drawn
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from ewens_widgets.analysis.plots import (
    plot_boxplots,
    plot_heatmap,
    plot_scatter,
    plot_theta,
    plot_traces,
)
from ewens_widgets.sampling.trace import Trace


@pytest.mark.parametrize(
    "plot",
    [
        plot_heatmap,
        lambda trace: plot_heatmap(trace, tree="evidence", labels=trace.best, true=TRUE),
        lambda trace: plot_heatmap(trace, tree=None),
        plot_theta,
        plot_traces,
        lambda trace: plot_traces([trace, trace], burn_in=10),
        lambda trace: plot_scatter(X, trace.best),
        lambda trace: plot_boxplots(X, trace.best),
    ],
)
@pytest.mark.slow
def test_every_plot_can_be_drawn_and_leaves_nothing_open(plot: object, trace: Trace) -> None:
    before = dict(mpl.rcParams)
    figure = plot(trace)
    assert isinstance(figure, Figure)
    text = drawn(figure)
    assert text.count("<path") > 3
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert plt.get_fignums() == []
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    "plot",
    [
        lambda trace, ax: plot_heatmap(trace, ax=ax),
        lambda trace, ax: plot_theta(trace, ax=ax),
        lambda trace, ax: plot_scatter(X, trace.best, ax=ax),
        lambda trace, ax: plot_boxplots(X, trace.best, features=[0], ax=ax),
    ],
)
def test_axes_of_yours_are_used(plot: object, trace: Trace) -> None:
    figure = Figure()
    axes = figure.subplots(1, 2)
    assert plot(trace, axes[1]) is figure
    assert not axes[0].has_data()
    assert axes[1].has_data()


def test_nothing_needs_a_screen_or_pyplot() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests');"
        "from ewens_widgets.analysis import plots;"
        "print('matplotlib' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
