"""Ellipses of clusters in shown coordinates."""

import numpy as np
import pytest

import ewens_widgets as ew
from ewens_widgets.analysis.plots.scatter_plot import (
    Projection,
    cluster_ellipses,
    outlines,
    projection_onto,
    two_features,
)
from ewens_widgets.model.own_shapes import Shapes, pack_sigma
from ewens_widgets.model.posterior import Posterior

MODELS = ("I", "II", "III")


def scale_of(model: str, n_features: int, value: float = 0.3) -> np.ndarray:
    """A packed scale: `value` in all directions."""
    form = {"I": np.array(value), "II": np.full(n_features, value), "III": value * np.eye(n_features)}
    return pack_sigma(form[model], model)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shapes", ["common", "own"])
@pytest.mark.parametrize("features", [["proline", "alcohol"], "pca"], ids=["columns", "components"])
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
    ellipses = cluster_ellipses(posterior, wine.labels, 64.0, nu, sigma, projection)
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
    for wrong in ([], [0.0], [1.0, 0.5]):
        with pytest.raises(ValueError, match="between 0 and 1"):
            outlines(shapes, np.array([0]), projection, contents=wrong)


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
        found.append(cluster_ellipses(posterior, data.labels, 8.0, nu, sigma, projection, contents=(0.5,)))
    np.testing.assert_allclose(found[0].centres, found[1].centres, atol=1e-9)
    boxes = [one.outlines.max(axis=2) for one in found]
    # The outline's points are placed by the shown coordinates alone, so they agree one by one.
    np.testing.assert_allclose(boxes[0], boxes[1], atol=1e-9)
    np.testing.assert_allclose(found[0].outlines, found[1].outlines, atol=1e-9)


def test_singletons_have_no_ellipse_and_row_numbers_no_map(rng: np.random.Generator) -> None:
    X = rng.normal(size=(12, 3))
    posterior = Posterior.from_data(X, "II")
    labels = [0, 0, 0, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    assert cluster_ellipses(posterior, labels, 1.0).clusters.tolist() == [0, 2, 3]
    assert cluster_ellipses(posterior, range(12), 1.0).outlines.shape == (0, 2, 49, 2)
    assert cluster_ellipses(posterior, labels, 1.0, smallest=4).clusters.tolist() == [2, 3]
    assert projection_onto(posterior, *two_features(X[:, :1])[0]) is None
    assert projection_onto(posterior, *two_features(X[::-1])[0]) is None
    # The same feature on both axes: a flat ellipse, and no error.
    onto = projection_onto(posterior, *two_features(X, [0, 0])[0])
    flat = cluster_ellipses(posterior, labels, 1.0, projection=onto)
    np.testing.assert_allclose(flat.outlines[..., 0], flat.outlines[..., 1], atol=1e-6)


def test_a_feature_stays_its_own_column_where_another_repeats_it(rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 2))
    doubled = np.column_stack([X, X[:, 0]])
    with pytest.warns(UserWarning, match="copy"):
        posterior = Posterior.from_data(doubled, "II")
    projection = projection_onto(posterior, X, np.eye(3, 2))
    assert np.count_nonzero(projection.matrix) == 2
    np.testing.assert_allclose(projection.offset + posterior.coordinates @ projection.matrix, X, atol=1e-9)
