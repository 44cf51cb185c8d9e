"""θ, traces and boxplots."""

import numpy as np
import pytest
from analysis.plots.drawing import drawn
from matplotlib.figure import Figure
from traces import blob_trace

import ewens_widgets as ew
from ewens_widgets.analysis.plots import (
    plot_boxplots,
    plot_theta,
    plot_traces,
)
from ewens_widgets.analysis.plots.charts import theta_text
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.sampling.trace import Trace


def test_theta_bars_are_the_posterior(trace: Trace) -> None:
    axes = plot_theta(trace).axes[0]
    heights = [bar.get_height() for bar in axes.patches]
    np.testing.assert_allclose(heights, trace.theta_posterior())
    assert [tick.get_text() for tick in axes.get_xticklabels()][:4] == ["1/8", "1/4", "1/2", "1"]
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert set(names) == {"prior", "posterior", "draws"}
    assert "draws" not in drawn(plot_theta(trace, histogram=False))


@pytest.mark.parametrize(("value", "text"), [(0.125, "1/8"), (1.0, "1"), (1024.0, "1024"), (0.3, "0.3")])
def test_values_are_short(value: float, text: str) -> None:
    assert theta_text(value) == text


def test_traces_show_the_draws(trace: Trace) -> None:
    figure = plot_traces(trace)
    assert len(figure.axes) == 6
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), trace.n_clusters)
    np.testing.assert_array_equal(figure.axes[4].lines[0].get_xdata(), trace.iterations)
    sampled = blob_trace(seed=1, concentration=Gamma(1.0, 1.0))
    assert "concentration" in drawn(plot_traces(sampled))
    parts = Figure().subfigures(1, 2)
    assert plot_traces(trace, figure=parts[0]) is parts[0]


def test_no_draws_no_traces(trace: Trace) -> None:
    for nothing in ([], trace[:0]):
        with pytest.raises(ValueError, match="no draws to plot"):
            plot_traces(nothing)


def test_boxplots_by_cluster() -> None:
    data = ew.datasets.wine()
    labels = data.labels.copy()
    labels[0] = 3
    figure = plot_boxplots(data, labels)
    shown = [axes for axes in figure.axes if axes.axison]
    assert len(shown) == 13
    assert [tick.get_text() for tick in shown[0].get_xticklabels()] == ["71", "58", "48", "1"]
    assert shown[0].get_title() == "alcohol"
    heights = np.concatenate([line.get_ydata() for line in shown[0].lines])
    assert np.median(data.X[data.labels == 1, 0]) in heights
    with pytest.raises(ValueError, match="some of the 13 columns"):
        plot_boxplots(data, labels, features=[13])
    with pytest.raises(ValueError, match="one feature"):
        plot_boxplots(data, labels, ax=Figure().subplots())
