"""Static pictures: what is drawn, and that nothing is left open."""

import io
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image, ImageSequence
from traces import blob_trace, blobs, own_trace, synthetic_trace

import ewens_widgets as ew
from ewens_widgets.analysis.plots import (
    OKABE_ITO,
    animate_partitions,
    cluster_colours,
    plot_boxplots,
    plot_heatmap,
    plot_scatter,
    plot_theta,
    plot_traces,
    use_style,
)
from ewens_widgets.analysis.plots.charts import theta_text
from ewens_widgets.analysis.plots.heatmap_plot import encode_png, ordered_means, spread_rows
from ewens_widgets.analysis.plots.palette import (
    class_colours,
)
from ewens_widgets.analysis.plots.scatter_plot import (
    Ellipses,
    Projection,
    outlines,
    projection_onto,
    projections,
    two_features,
)
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.own_shapes import Shapes, pack_sigma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.sampling.trace import Trace

X, TRUE = blobs(np.random.default_rng(0))


def drawn(figure: Figure) -> str:
    """The figure as SVG; drawing it is the test that nothing in it is wrong."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def trace() -> Trace:
    return blob_trace(seed=0)


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
    picture, size = figure._repr_png_()
    assert picture.startswith(b"\x89PNG")
    # Two pixels for each one on the page.
    assert int.from_bytes(picture[16:20], "big") == pytest.approx(2 * size["width"], abs=2)
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


def test_theta_bars_are_the_posterior(trace: Trace) -> None:
    axes = plot_theta(trace).axes[0]
    heights = [bar.get_height() for bar in axes.containers[0]]
    np.testing.assert_allclose(heights, trace.theta_posterior())
    assert [tick.get_text() for tick in axes.get_xticklabels()][:4] == ["1/8", "1/4", "1/2", "1"]
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert set(names) == {"prior", "posterior", "draws"}
    assert [theta_text(value) for value in (0.125, 1.0, 1024.0, 0.3)] == ["1/8", "1", "1024", "0.3"]
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


@pytest.mark.parametrize("shapes", ["common", "own"])
def test_ellipses_of_a_trace(shapes: str) -> None:
    data = ew.datasets.unit_square(seed=0)
    posterior = Posterior.from_data(data, "III", shapes=shapes)
    rng = np.random.default_rng(0)
    draws = np.tile(data.labels, (6, 1))
    trace = own_trace(posterior, rng, 6) if shapes == "own" else synthetic_trace(draws, posterior, rng)
    plain = plot_scatter(data).axes[0]
    axes = plot_scatter(data, ellipses=trace).axes[0]
    assert not plain.lines
    assert len(axes.lines) == 8  # two for each of four clusters
    for label in range(4):
        inner, outer = axes.lines[2 * label], axes.lines[2 * label + 1]
        assert inner.get_color() == outer.get_color()
        widths = [np.ptp(line.get_xdata()) for line in (inner, outer)]
        np.testing.assert_allclose(widths[1] / widths[0], np.sqrt(np.log(0.1) / np.log(0.5)), rtol=1e-6)
        members = data.X[data.labels == label]
        middle = np.array([inner.get_xdata()[:-1].mean(), inner.get_ydata()[:-1].mean()])
        assert np.linalg.norm(middle - members.mean(axis=0)) < 0.2
    sizes = {round(float(np.ptp(line.get_xdata())), 9) for line in axes.lines[::2]}
    assert len(sizes) == (1 if shapes == "common" else 4)


def test_ellipses_of_other_data_are_refused() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    posterior = Posterior.from_data(X, "III")
    trace = synthetic_trace(np.zeros((3, 80), dtype=np.intp), posterior, rng)
    with pytest.raises(ValueError, match="the data that were sampled"):
        plot_scatter(ew.datasets.unit_square(seed=0), ellipses=trace)
    with pytest.raises(ValueError, match="80 objects, not 40"):
        plot_scatter(rng.normal(size=(40, 2)), ellipses=trace)
    with pytest.raises(ValueError, match="no draws"):
        plot_scatter(X, ellipses=trace[:0])


def test_features_of_a_scatter() -> None:
    moons = ew.datasets.half_moons(seed=0)
    shown, names = two_features(moons)
    np.testing.assert_array_equal(shown.values, moons.X)
    assert names == ("x", "y")
    assert two_features(ew.datasets.wine(), [2, 0])[1] == ("ash", "alcohol")
    single, names = two_features(np.arange(5.0)[:, None])
    assert names == ("feature 1", "object")
    assert single.values.shape == (5, 2)
    for wrong in ([0, 9], [0, 1, 2], "tsne"):
        with pytest.raises(ValueError, match="features must be two"):
            two_features(moons, wrong)


def test_projections_are_columns_or_principal_components(rng: np.random.Generator) -> None:
    assert list(projections(Dataset(X=rng.normal(size=(9, 2)))))[:2] == ["x1", "x2"]
    assert list(projections(Dataset(X=rng.normal(size=(9, 1))))) == ["x1", "row number"]
    X = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4))
    shown = {name: axis.values for name, axis in projections(Dataset(X=X)).items()}
    assert list(shown)[:4] == ["PC 1", "PC 2", "PC 3", "PC 4"]
    spreads = [shown[f"PC {k}"].std() for k in range(1, 5)]
    assert spreads == sorted(spreads, reverse=True)
    np.testing.assert_allclose(np.square(spreads).sum(), 4.0)
    assert abs(np.corrcoef(shown["PC 1"], shown["PC 2"])[0, 1]) < 1e-9


def test_features_by_name() -> None:
    wine = ew.datasets.wine()
    assert two_features(wine, ["ash", "alcohol"])[1] == ("ash", "alcohol")
    axes = plot_scatter(wine, features=("ash", 0)).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("ash", "alcohol")
    with pytest.raises(ValueError, match=r"features: there is no column 'ashes'; did you mean 'ash'\?"):
        two_features(wine, ["ashes", "alcohol"])
    with pytest.raises(ValueError, match="there is no column 'Length'; there are 'feature 1', 'feature 2'"):
        two_features(np.eye(5)[:, :2], ["Length", "Diagonal"])
    frame = pd.DataFrame(
        np.random.default_rng(1).normal(size=(9, 3)), columns=["Length", "Width", "Diagonal"]
    )
    axes = plot_scatter(frame, features=("Length", "Diagonal")).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Length", "Diagonal")
    panels = ew.plots.plot_boxplots(frame, [0] * 4 + [1] * 5, features=["Width"])
    assert panels.axes[0].get_title() == "Width"


MODELS = ("I", "II", "III")


def scale_of(model: str, n_features: int, value: float = 0.3) -> np.ndarray:
    """A packed scale: `value` in all directions."""
    form = {"I": np.array(value), "II": np.full(n_features, value), "III": value * np.eye(n_features)}
    return pack_sigma(form[model], model)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("shapes", "features"), [("common", "pca"), ("own", "pca"), ("common", ["proline", "alcohol"])]
)
def test_ellipses_are_those_of_the_clusters_in_the_users_units(
    features: list[str] | str, shapes: str, model: str
) -> None:
    wine = ew.datasets.wine()
    posterior = Posterior.from_data(wine, model, shapes=shapes)
    (shown, weights), _ = two_features(wine, features)
    projection = projection_onto(posterior, shown, weights)
    np.testing.assert_allclose(
        projection.offset + posterior.coordinates @ projection.matrix, shown, rtol=1e-8
    )
    sigma = scale_of(model, 13) if shapes == "own" else None
    nu = 8.0 if shapes == "own" else np.inf
    ellipses = ellipses_of(posterior, wine.labels, 64.0, nu, sigma, projection)
    # Large θ: the centres are hardly pulled to the middle.
    means = np.array([shown[wine.labels == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(ellipses.centres, means, atol=0.002 * np.ptp(shown, axis=0).max())
    assert ellipses.outlines.shape == (3, 2, 49, 2)
    np.testing.assert_allclose(ellipses.outlines[:, :, 0], ellipses.outlines[:, :, -1], rtol=1e-12)
    # The covariance that the outline has, in the user's units, is the one of the shape mapped there.
    covariances = posterior.cluster_shapes(wine.labels, 64.0, nu, sigma).covariances
    expected = np.array([projection.matrix.T @ one @ projection.matrix for one in covariances])
    for cluster in range(3):
        for content, outline in zip((0.5, 0.9), ellipses.outlines[cluster], strict=True):
            gaps = outline - ellipses.centres[cluster]
            forms = np.einsum("pi,ij,pj->p", gaps, np.linalg.inv(expected[cluster]), gaps)
            np.testing.assert_allclose(forms, -2.0 * np.log(1.0 - content), rtol=1e-8)
    if model != "I" and features != "pca":  # whose one scale for all units is far from these two columns'
        # A share of about 0.9 of the objects is inside, by a count that knows nothing of the formula.
        inside = [_share_inside(shown[wine.labels == k], ellipses.outlines[k, 1]) for k in range(3)]
        assert 0.7 < np.mean(inside) <= 1.0


def ellipses_of(
    posterior: Posterior,
    labels: Any,  # noqa: ANN401 - a partition
    theta: float,
    nu: float = np.inf,
    sigma: np.ndarray | None = None,
    projection: Projection | None = None,
    smallest: int = 2,
) -> Ellipses:
    """Ellipses of the clusters of at least so many members, in the first two coordinates by default."""
    chosen = np.flatnonzero(np.bincount(labels) >= smallest)
    onto = projection or Projection(np.zeros(2), np.eye(posterior.n_features, 2))
    return outlines(posterior.cluster_shapes(np.asarray(labels), theta, nu, sigma), chosen, onto)


def _share_inside(points: np.ndarray, outline: np.ndarray) -> float:
    from matplotlib.path import Path

    return float(Path(outline).contains_points(points).mean())


def test_the_content_of_an_ellipse_is_that_of_a_gaussian(rng: np.random.Generator) -> None:
    root = rng.normal(size=(2, 2))
    shapes = Shapes(np.array([[1.0, -2.0]]), (root @ root.T)[None])
    projection = Projection(np.zeros(2), np.eye(2))
    found = outlines(shapes, np.array([0]), projection, n_points=400)
    draws = shapes.centres[0] + rng.normal(size=(40_000, 2)) @ root.T
    shares = [_share_inside(draws, outline) for outline in found.outlines[0]]
    np.testing.assert_allclose(shares, [0.5, 0.9], atol=0.01)


@pytest.mark.parametrize("shapes", ["common", "own"])
def test_ellipses_are_equivariant_under_the_models_own_transformations(shapes: str) -> None:
    data, turn = ew.datasets.unit_square(seed=1), np.array([[4.1, 1.1], [2.1, 1.1]])
    found = []
    for X, weights in ((data.X, np.eye(2)), (data.X @ turn + [100.0, -3.0], np.linalg.inv(turn))):
        posterior = Posterior.from_data(X, "III", shapes=shapes)
        sigma = scale_of("III", 2) if shapes == "own" else None
        nu = 4.0 if shapes == "own" else np.inf
        # Both are shown in the units of the first: that is an affine function of the second too.
        projection = projection_onto(posterior, data.X, weights)
        found.append(ellipses_of(posterior, data.labels, 8.0, nu, sigma, projection))
    np.testing.assert_allclose(found[0].centres, found[1].centres, atol=1e-9)
    boxes = [one.outlines.max(axis=2) for one in found]
    # The outline's points are placed by the shown coordinates alone, so they agree one by one.
    np.testing.assert_allclose(boxes[0], boxes[1], atol=1e-9)
    np.testing.assert_allclose(found[0].outlines, found[1].outlines, atol=1e-9)


def test_singletons_have_no_ellipse_and_row_numbers_no_map(rng: np.random.Generator) -> None:
    X = rng.normal(size=(12, 3))
    posterior = Posterior.from_data(X, "II")
    labels = [0, 0, 0, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    assert ellipses_of(posterior, labels, 1.0).clusters.tolist() == [0, 2, 3]
    assert ellipses_of(posterior, range(12), 1.0).outlines.shape == (0, 2, 49, 2)
    assert ellipses_of(posterior, labels, 1.0, smallest=4).clusters.tolist() == [2, 3]
    assert projection_onto(posterior, *two_features(X[:, :1])[0]) is None
    assert projection_onto(posterior, *two_features(X[::-1])[0]) is None
    # The same feature on both axes: a flat ellipse, and no error.
    onto = projection_onto(posterior, *two_features(X, [0, 0])[0])
    flat = ellipses_of(posterior, labels, 1.0, projection=onto)
    np.testing.assert_allclose(flat.outlines[..., 0], flat.outlines[..., 1], atol=1e-6)


def test_a_feature_stays_its_own_column_where_another_repeats_it(rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 2))
    doubled = np.column_stack([X, X[:, 0]])
    with pytest.warns(UserWarning, match="copy"):
        posterior = Posterior.from_data(doubled, "II")
    projection = projection_onto(posterior, X, np.eye(3, 2))
    assert np.count_nonzero(projection.matrix) == 2
    np.testing.assert_allclose(projection.offset + posterior.coordinates @ projection.matrix, X, atol=1e-9)


def test_the_heatmap_shows_the_ordered_distance(trace: Trace) -> None:
    tree = trace.similarity_tree("average")
    figure = plot_heatmap(trace, tree=tree)
    order = tree.leaves_order
    image = figure.axes[0].images[0]
    np.testing.assert_allclose(image.get_array(), trace.distance()[np.ix_(order, order)])
    # White is 1 and black is 0, as in the paper.
    assert to_hex(image.to_rgba(np.array([[1.0]]))[0, 0]) == "#ffffff"
    assert to_hex(image.to_rgba(np.array([[0.0]]))[0, 0]) == "#000000"
    order = trace.similarity_tree().leaves_order
    (strip,) = [c for c in plot_heatmap(trace, true=TRUE).axes[0].child_axes if c.get_xlabel() == "true"]
    found = [to_hex(pixel) for pixel in strip.images[0].get_array()[:, 0]]
    assert found == [class_colours(3)[label].lower() for label in TRUE[order]]
    (beside,) = [child for child in figure.axes[0].child_axes if child.get_xlabel() == "share apart"]
    (lines,) = [entry for entry in beside.collections if isinstance(entry, LineCollection)]
    assert len(lines.get_segments()) == trace.n_objects - 1


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


def test_many_objects_are_averaged_in_blocks(
    rng: np.random.Generator, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ewens_widgets.analysis.plots.heatmap_plot._MOST_PRINTED", 3)
    assert plot_heatmap(trace).axes[0].images[0].get_array().shape == (3, 3)
    matrix = rng.random((10, 10))
    matrix += matrix.T
    order = rng.permutation(10)
    ordered = matrix[np.ix_(order, order)]
    blocks = ordered_means(matrix, order, 4)
    assert blocks.shape == (4, 4)
    np.testing.assert_allclose(blocks[0, 1], ordered[:3, 3:6].mean())
    np.testing.assert_allclose(blocks[2, 3], ordered[6:9, 9].mean())
    np.testing.assert_allclose(blocks[3, 3], ordered[9, 9])
    np.testing.assert_array_equal(ordered_means(matrix, order, 10), ordered)
    np.testing.assert_array_equal(spread_rows(5, 10), np.arange(5))
    rows = spread_rows(1_000_000)
    assert (rows.size, rows[0], rows[-1]) == (400, 0, 999_999)
    assert np.ptp(np.diff(rows)) <= 1


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (400, 420)])
def test_a_reader_sees_the_same_pixels(shape: tuple[int, int], rng: np.random.Generator) -> None:
    palette = rng.integers(0, 256, (230, 3)).astype(np.uint8)
    indices = rng.integers(0, 230, shape).astype(np.uint8)
    with Image.open(BytesIO(encode_png(indices, palette))) as picture:
        picture.verify()
    with Image.open(BytesIO(encode_png(indices, palette))) as picture:
        np.testing.assert_array_equal(np.asarray(picture.convert("RGB")), palette[indices])


@pytest.mark.parametrize(
    ("indices", "palette", "complaint"),
    [
        (np.zeros((2, 2)), np.zeros((2, 3), dtype=np.uint8), "matrix of uint8"),
        (np.zeros((0, 2), dtype=np.uint8), np.zeros((2, 3), dtype=np.uint8), "matrix of uint8"),
        (np.zeros((2, 2), dtype=np.uint8), np.zeros((300, 3), dtype=np.uint8), "256 rows"),
    ],
)
def test_what_is_no_picture_is_refused(indices: np.ndarray, palette: np.ndarray, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        encode_png(indices, palette)


def test_clusters_keep_the_colours_of_the_partition_they_are_matched_to() -> None:
    first, second = np.repeat([0, 1, 2], [5, 4, 3]), np.repeat([2, 0, 1], [5, 4, 3])
    assert cluster_colours(second, like=first) == [cluster_colours(first)[k] for k in (0, 1, 2)]
    points = np.arange(24.0).reshape(12, 2)
    larger = np.repeat([0, 1, 2], [2, 4, 6])
    alone, matched = (plot_scatter(points, larger, like=like).axes[0] for like in (None, first))

    def shades(axes: object) -> list[tuple[float, ...]]:
        return [tuple(marks.get_facecolor()[0][:3]) for marks in axes.collections]

    assert shades(alone) != shades(matched)
    assert shades(matched)[0] == shades(plot_scatter(points, first).axes[0])[0]


def test_the_style_of_figures_is_that_of_the_plots() -> None:
    with mpl.rc_context():
        use_style()
        assert mpl.rcParams["image.cmap"] == "gray"
        assert not mpl.rcParams["axes.spines.top"]
        figure, axes = plt.subplots()
        (line,) = axes.plot([1, 2])
        assert line.get_color() == OKABE_ITO[0]
        plt.close(figure)


def test_an_animation_shows_each_partition_with_steady_colours() -> None:
    points = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]])
    partitions = [[0, 1, 2, 3], [0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]]
    movie = animate_partitions(points, partitions, seconds=0.2, alt="four <points>")
    frames = Image.open(BytesIO(movie.content))
    pictures = [np.asarray(frame.convert("RGB"))[40:] for frame in ImageSequence.Iterator(frames)]
    assert len(pictures) == 4
    assert np.array_equal(pictures[1], pictures[2]), "the same clusters by other names have the same colours"
    assert not np.array_equal(pictures[0], pictures[1])
    assert frames.info["loop"] == 0
    shown = movie._repr_html_()
    assert shown.startswith('<img alt="four &lt;points&gt;" src="data:image/gif;base64,')
    assert Image.open(BytesIO(movie._repr_png_())).size == frames.size
    assert len(movie.content) < 30_000
    with pytest.raises(ValueError, match="nothing to animate"):
        animate_partitions(points, [])
    with pytest.raises(ValueError, match=r"at most 200 pictures; got 201 .* trace.labels\[:40\]"):
        animate_partitions(points, [[0, 0, 1, 1]] * 201)
