"""Loaders: sizes, classes and refusals of all; laws of those that are drawn."""

from collections.abc import Callable

import numpy as np
import pytest

from ewens_widgets.datasets import (
    Dataset,
    denmark_roads_standin,
    half_moons,
    leukemia,
    unit_square,
    wine,
)
from ewens_widgets.paper.denmark import _DEVIATIONS, _MEANS

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
SHEAR = np.array([[4.1, 1.1], [2.1, 1.1]])
SQUARE_SHEAR = np.array([[4.1, 2.1], [1.9, 1.1]])


def largest_standard_score(data: Dataset, means: np.ndarray, deviations: np.ndarray) -> float:
    """Return how far class means and variances are from their law, in standard errors; at worst."""
    scores = []
    for k in range(len(means)):
        standard = (data.X[data.labels == k] - means[k]) / deviations[k]
        n = len(standard)
        scores += [
            standard.mean(axis=0) * np.sqrt(n),
            (standard.var(axis=0, ddof=1) - 1) * np.sqrt((n - 1) / 2),
        ]
    return float(np.abs(np.concatenate(scores)).max())


@pytest.mark.parametrize(
    ("data", "shape", "sizes"),
    [
        (unit_square(), (80, 2), [20, 20, 20, 20]),
        (unit_square(per_cluster=np.int64(3)), (12, 2), [3, 3, 3, 3]),
        (half_moons(), (200, 2), [100, 100]),
        (half_moons(2), (2, 2), [1, 1]),
        (denmark_roads_standin(), (87, 3), [68, 19]),
        (wine(), (178, 13), [59, 71, 48]),
        (leukemia(), (38, 20), [27, 11]),
    ],
    ids=str,
)
def test_shape_and_classes(data: Dataset, shape: tuple[int, int], sizes: list[int]) -> None:
    assert data.X.shape == shape
    assert np.bincount(data.labels).tolist() == sizes


def test_the_square_has_the_announced_moments() -> None:
    for scale in (0.25, 2):
        data = unit_square(scale=scale, per_cluster=20_000, seed=1)
        assert largest_standard_score(data, CORNERS, np.full((4, 2), scale)) < 4.5
        for k in range(4):
            assert abs(np.corrcoef(data.X[data.labels == k].T)[0, 1]) < 4.5 / np.sqrt(20_000)
    # A variance taken for a standard deviation would be seen.
    data = unit_square(scale=np.sqrt(0.25), per_cluster=20_000, seed=1)
    assert largest_standard_score(data, CORNERS, np.full((4, 2), 0.25)) > 4.5


def test_transforms_are_exactly_the_documented_matrices() -> None:
    plain, sheared = unit_square(seed=3), unit_square("III", seed=3)
    assert np.array_equal(unit_square("II", seed=3).X, plain.X @ np.diag([3.0, 1 / 3]))
    assert np.array_equal(sheared.X, plain.X @ SQUARE_SHEAR)
    assert np.array_equal(sheared.labels, plain.labels)
    assert np.array_equal(half_moons(50, True, seed=4).X, half_moons(50, seed=4).X @ SHEAR)
    data = [unit_square(transform) for transform in (None, "II", "III")]
    assert len({d.name for d in data}) == len({d.description for d in data}) == 3
    assert all("paper" in d.description for d in data)


def test_every_point_obeys_the_formula() -> None:
    data = half_moons(40_000, seed=2)
    first, second = data.X[data.labels == 0] + [0.4, 0.0], data.X[data.labels == 1] + [0.0, 1.0]
    for across, up in (first.T, (second * [-1.0, 1.0]).T):
        assert (across >= 0.0).all()
        radius = np.hypot(across, up)
        assert 0.8 - 1e-12 <= radius.min() < 0.801
        assert 1.199 < radius.max() <= 1.2 + 1e-12
        for values, low, high in ((radius, 0.8, 1.2), (np.arctan2(up, across), -np.pi / 2, np.pi / 2)):
            grid = (np.arange(len(values)) + 0.5) / len(values)
            distance = np.abs(np.sort((values - low) / (high - low)) - grid).max()
            assert distance < 2.0 / np.sqrt(len(values))  # Kolmogorov's test at level 7e-4


def test_the_stand_in_has_the_published_moments() -> None:
    assert _MEANS.tolist() == [[14.9137, 56.9522, 8.7564], [70.2441, 56.6335, 9.9938]]
    assert _DEVIATIONS.tolist() == [[5.2903, 0.1330, 0.3750], [9.6316, 0.0013, 0.0054]]
    many = [denmark_roads_standin(seed) for seed in range(300)]
    pooled = Dataset(np.concatenate([d.X for d in many]), np.concatenate([d.labels for d in many]))
    assert largest_standard_score(pooled, _MEANS, _DEVIATIONS) < 4.5
    assert largest_standard_score(pooled, _MEANS, 1.1 * _DEVIATIONS) > 4.5
    assert many[0].feature_names == ("altitude", "latitude", "longitude")
    assert many[0].description.startswith("Not the real data")


@pytest.mark.parametrize("draw", [unit_square, half_moons, denmark_roads_standin])
def test_the_seed_decides_everything(draw: Callable[..., Dataset]) -> None:
    for seed in (5, np.random.default_rng(5)):
        assert np.array_equal(draw(seed=5).X, draw(seed=seed).X)
    assert np.array_equal(draw().X, draw(seed=0).X)
    assert not np.array_equal(draw(seed=5).X, draw(seed=6).X)
    for fresh in (np.random.default_rng(5), None):  # A generator goes on; None is another one each time.
        assert not np.array_equal(draw(seed=fresh).X, draw(seed=fresh).X)
    with pytest.raises(ValueError, match="seed must be at least 0; got -1"):
        draw(seed=-1)
    with pytest.raises(TypeError, match=r"seed must be a whole number; got 'now'"):
        draw(seed="now")


@pytest.mark.parametrize(
    ("draw", "arguments", "error", "message"),
    [
        (unit_square, {"transform": "I"}, ValueError, 'None, "II" or "III", got \'I\''),
        (unit_square, {"transform": SHEAR}, ValueError, "transform must be None"),
        (unit_square, {"scale": 0.0}, ValueError, "scale must be positive and finite; got 0.0"),
        (unit_square, {"scale": np.nan}, ValueError, "scale must be positive and finite; got nan"),
        (unit_square, {"scale": np.inf}, ValueError, "scale must be positive and finite"),
        (unit_square, {"scale": "0.25"}, TypeError, "scale must be a number; got '0.25'"),
        (unit_square, {"scale": True}, TypeError, "scale must be a number; got True"),
        (unit_square, {"per_cluster": 0}, ValueError, "per_cluster must be at least 1; got 0"),
        (unit_square, {"per_cluster": 2.5}, TypeError, "per_cluster must be a whole number; got 2.5"),
        (half_moons, {"n": 0}, ValueError, "n must be at least 2; got 0"),
        (half_moons, {"n": 7}, ValueError, "n must be even.*got 7"),
        (half_moons, {"n": 10.0}, TypeError, "n must be a whole number; got 10.0"),
        (half_moons, {"n": True}, TypeError, "n must be a whole number; got True"),
        (half_moons, {"transformed": "no"}, TypeError, "transformed must be True or False, got 'no'"),
        (leukemia, {"n_components": 0}, ValueError, "at least 1; got 0"),
        (leukemia, {"n_components": 38}, ValueError, "at most 37.*got 38.*None for all 3051 genes"),
        (leukemia, {"n_components": "all"}, TypeError, "whole number; got 'all'"),
    ],
)
def test_bad_arguments_are_refused(
    draw: Callable[..., Dataset], arguments: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        draw(**arguments)
