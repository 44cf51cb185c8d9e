"""Objects in two of their features."""

import numpy as np
import pytest
from traces import own_trace, synthetic_trace

import ewens_widgets as ew
from ewens_widgets.analysis.plots import (
    plot_scatter,
)
from ewens_widgets.analysis.plots.scatter_plot import projections, two_features
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior


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


def test_two_columns_are_shown_as_they_are(rng: np.random.Generator) -> None:
    assert list(projections(Dataset(X=rng.normal(size=(9, 2)))))[:2] == ["x1", "x2"]
    assert list(projections(Dataset(X=rng.normal(size=(9, 3)))))[:2] == ["PC 1", "PC 2"]
    assert list(projections(Dataset(X=rng.normal(size=(9, 1))))) == ["x1", "row number"]


def test_principal_components_have_decreasing_spread(rng: np.random.Generator) -> None:
    X = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4))
    shown = {name: axis.values for name, axis in projections(Dataset(X=X)).items()}
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


def test_a_data_frame_lends_its_names() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        np.random.default_rng(1).normal(size=(9, 3)), columns=["Length", "Width", "Diagonal"]
    )
    axes = plot_scatter(frame, features=("Length", "Diagonal")).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Length", "Diagonal")
    panels = ew.plots.plot_boxplots(frame, [0] * 4 + [1] * 5, features=["Width"])
    assert panels.axes[0].get_title() == "Width"
