import io
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from traces import blob_trace, blobs

import ewens_widgets as ew
from ewens_widgets.analysis.plots import (
    OKABE_ITO,
    SINGLETON,
    cluster_colours,
    plot_boxplots,
    plot_heatmap,
    plot_scatter,
    plot_theta,
    plot_traces,
)
from ewens_widgets.analysis.plots.heatmap_plot import ordered_means
from ewens_widgets.analysis.plots.palette import (
    CLUSTER_COLOURS,
    N_DISTINCT,
    class_colours,
    cluster_markers,
    matching_colours,
)
from ewens_widgets.analysis.plots.scatter_plot import two_features
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.sampling.trace import Trace

X, TRUE = blobs(np.random.default_rng(0))


@pytest.fixture(scope="module")
def trace() -> Trace:
    return blob_trace(seed=0)


def drawn(figure: Figure) -> str:
    """The figure as SVG; drawing it is the test that nothing in it is wrong."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg")
    return buffer.getvalue()


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


def test_the_heatmap_shows_the_ordered_distance(trace: Trace) -> None:
    tree = trace.similarity_tree("average")
    figure = plot_heatmap(trace, tree=tree)
    order = tree.leaves_order
    image = figure.axes[0].images[0]
    np.testing.assert_allclose(image.get_array(), trace.distance()[np.ix_(order, order)])
    # White is 1 and black is 0, as in the paper.
    assert to_hex(image.to_rgba(np.array([[1.0]]))[0, 0]) == "#ffffff"
    assert to_hex(image.to_rgba(np.array([[0.0]]))[0, 0]) == "#000000"
    (beside,) = [child for child in figure.axes[0].child_axes if child.get_xlabel() == "share apart"]
    (lines,) = [entry for entry in beside.collections if isinstance(entry, LineCollection)]
    assert len(lines.get_segments()) == trace.n_objects - 1


def test_classes_have_the_colours_of_their_clusters() -> None:
    true = np.array([0] * 5 + [1] * 6 + [2] * 4 + [3])
    # Classes 0 and 1 are found with another number, class 2 but for one object; class 3 is lost in it.
    found = np.array([0] * 5 + [1] * 6 + [0] + [2] * 3 + [2])
    colours = cluster_colours(found)
    matched = matching_colours(true, found)
    assert matched[:3] == colours
    assert matched[3] not in colours
    assert matched[3] in CLUSTER_COLOURS[:N_DISTINCT]
    alone = matching_colours([0, 0, 1, 1], [0, 1, 2, 3])
    assert len(set(alone)) == 2
    assert set(alone) <= set(CLUSTER_COLOURS[:N_DISTINCT])


def test_strips_of_the_same_partition_look_the_same(trace: Trace) -> None:
    n_objects = trace.n_objects
    labels = np.arange(n_objects) % 3
    sizes = np.repeat(
        [0, 1, 2], [n_objects // 6, n_objects // 3, n_objects - n_objects // 6 - n_objects // 3]
    )
    for found in (labels, sizes):
        figure = plot_heatmap(trace, labels=found, true=(found + 1) % 3)
        strips = {child.get_xlabel(): child for child in figure.axes[0].child_axes}
        pixels = [np.asarray(strips[name].images[0].get_array()) for name in ("found", "true")]
        assert np.array_equal(*pixels)


def test_strips_follow_the_order(trace: Trace) -> None:
    figure = plot_heatmap(trace, true=TRUE)
    order = trace.similarity_tree().leaves_order
    (strip,) = [child for child in figure.axes[0].child_axes if child.get_xlabel() == "true"]
    found = [to_hex(pixel) for pixel in strip.images[0].get_array()[:, 0]]
    assert found == [class_colours(3)[label].lower() for label in TRUE[order]]


def test_large_matrices_are_averaged(monkeypatch: pytest.MonkeyPatch, trace: Trace) -> None:
    matrix = np.arange(25.0).reshape(5, 5)
    matrix = matrix + matrix.T
    small = ordered_means(matrix, np.arange(5), 3)
    assert small.shape == (3, 3)
    assert small[0, 0] == matrix[:2, :2].mean()
    assert small[2, 2] == matrix[4, 4]
    monkeypatch.setattr("ewens_widgets.analysis.plots.heatmap_plot._MOST_PRINTED", 3)
    assert plot_heatmap(trace).axes[0].images[0].get_array().shape == (3, 3)


def test_theta_bars_are_the_posterior(trace: Trace) -> None:
    axes = plot_theta(trace).axes[0]
    heights = [bar.get_height() for bar in axes.patches]
    np.testing.assert_allclose(heights, trace.theta_posterior())
    assert [tick.get_text() for tick in axes.get_xticklabels()][:4] == ["1/8", "1/4", "1/2", "1"]
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert set(names) == {"prior", "posterior", "draws"}
    assert "draws" not in drawn(plot_theta(trace, histogram=False))


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


def test_colours_go_by_size_and_singletons_are_grey() -> None:
    colours = cluster_colours([0, 1, 1, 2, 2, 2, 3])
    assert colours == [SINGLETON, CLUSTER_COLOURS[1], CLUSTER_COLOURS[0], SINGLETON]
    assert len(set(class_colours(28))) == 28
    many = np.repeat(np.arange(20), 2)
    pairs = set(zip(cluster_colours(many), cluster_markers(many), strict=True))
    assert len(pairs) == 20
    assert cluster_markers([0, 0, 1, 1]) == ["o", "o"]


@pytest.mark.parametrize("palette", [OKABE_ITO, CLUSTER_COLOURS[:N_DISTINCT]])
def test_the_colour_blind_can_tell_the_colours_apart(palette: tuple[str, ...]) -> None:
    # Machado et al. (2009): how the palette looks without the red and without the green receptor.
    protan = [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]
    deutan = [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]
    rgb = np.array([[int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)] for colour in palette])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    for matrix in (np.eye(3), protan, deutan):
        seen = np.clip(linear @ np.array(matrix).T, 0, 1) ** (1 / 2.2)
        gaps = np.linalg.norm(seen[:, None] - seen[None, :], axis=2)[np.triu_indices(len(palette), 1)]
        assert gaps.min() > 0.1


def test_the_scatter_tells_clusters_and_classes() -> None:
    data = ew.datasets.wine()
    labels = data.labels.copy()
    labels[:2] = 3, 4
    axes = plot_scatter(data, labels, true=data.labels).axes[0]
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "2 singletons" in names
    assert sum(name.startswith("true: cultivar") for name in names) == 3
    assert "principal component 1" in axes.get_xlabel()
    assert sum(len(entry.get_offsets()) for entry in axes.collections) == 178
    many = plot_scatter(np.random.default_rng(0).normal(size=(40, 2)), np.repeat(np.arange(20), 2)).axes[0]
    assert "… 10 more clusters" in [text.get_text() for text in many.get_legend().get_texts()]
    assert plot_scatter(np.random.default_rng(0).normal(size=(9, 2)), equal=True).axes[0].get_legend() is None


def test_features_of_a_scatter() -> None:
    moons = ew.datasets.half_moons(seed=0)
    points, names = two_features(moons)
    np.testing.assert_array_equal(points, moons.X)
    assert names == ("x", "y")
    points, names = two_features(ew.datasets.wine(), [2, 0])
    assert names == ("ash", "alcohol")
    single, names = two_features(np.arange(5.0)[:, None])
    assert names == ("feature 1", "object")
    assert single.shape == (5, 2)
    for wrong in ([0, 9], [0, 1, 2], "tsne"):
        with pytest.raises(ValueError, match="features must be two"):
            two_features(moons, wrong)


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


def test_nothing_needs_a_screen_or_pyplot() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests');"
        "from ewens_widgets.analysis import plots;"
        "print('matplotlib' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
