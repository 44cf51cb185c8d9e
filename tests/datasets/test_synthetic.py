from collections.abc import Callable

import numpy as np
import pytest

from ewens_widgets.datasets import Dataset, denmark_roads_standin, half_moons, unit_square
from ewens_widgets.paper.denmark import _DEVIATIONS, _MEANS

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
SHEAR = np.array([[4.1, 1.1], [2.1, 1.1]])
SQUARE_SHEAR = np.array([[4.1, 2.1], [1.9, 1.1]])


def class_counts(data: Dataset) -> list[int]:
    assert data.labels is not None
    return np.bincount(data.labels).tolist()


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


class TestUnitSquare:
    def test_shape_and_classes(self) -> None:
        data = unit_square()
        assert data.X.shape == (80, 2)
        assert class_counts(data) == [20, 20, 20, 20]
        assert class_counts(unit_square(per_cluster=np.int64(3))) == [3, 3, 3, 3]

    @pytest.mark.parametrize("scale", [0.25, 2])
    def test_moments(self, scale: float) -> None:
        data = unit_square(scale=scale, per_cluster=20_000, seed=1)
        assert largest_standard_score(data, CORNERS, np.full((4, 2), scale)) < 4.5

    def test_moments_notice_a_variance_taken_for_a_deviation(self) -> None:
        data = unit_square(scale=np.sqrt(0.25), per_cluster=20_000, seed=1)
        assert largest_standard_score(data, CORNERS, np.full((4, 2), 0.25)) > 4.5

    def test_the_columns_are_uncorrelated_within_clusters(self) -> None:
        data = unit_square(per_cluster=20_000, seed=2)
        for k in range(4):
            assert abs(np.corrcoef(data.X[data.labels == k].T)[0, 1]) < 4.5 / np.sqrt(20_000)

    def test_transforms_are_exactly_the_documented_matrices(self) -> None:
        plain = unit_square(seed=3)
        assert np.array_equal(unit_square("II", seed=3).X, plain.X @ np.diag([3.0, 1 / 3]))
        assert np.array_equal(unit_square("III", seed=3).X, plain.X @ SQUARE_SHEAR)
        assert np.array_equal(unit_square("III", seed=3).labels, plain.labels)

    def test_names_and_descriptions_tell_transforms_apart(self) -> None:
        data = [unit_square(transform) for transform in (None, "II", "III")]
        assert len({d.name for d in data}) == 3
        assert len({d.description for d in data}) == 3
        assert all("paper" in d.description for d in data)

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"transform": "I"}, ValueError, 'None, "II" or "III", got \'I\''),
            ({"transform": SHEAR}, ValueError, "transform must be None"),
            ({"scale": 0.0}, ValueError, "scale must be positive and finite; got 0.0"),
            ({"scale": -1}, ValueError, "scale must be positive"),
            ({"scale": np.nan}, ValueError, "scale must be positive and finite; got nan"),
            ({"scale": np.inf}, ValueError, "scale must be positive and finite"),
            ({"scale": "0.25"}, TypeError, "scale must be a number; got '0.25'"),
            ({"scale": True}, TypeError, "scale must be a number; got True"),
            ({"per_cluster": 0}, ValueError, "per_cluster must be at least 1; got 0"),
            ({"per_cluster": 2.5}, TypeError, "per_cluster must be a whole number; got 2.5"),
        ],
    )
    def test_bad_arguments_are_refused(
        self, arguments: dict[str, object], error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            unit_square(**arguments)  # type: ignore[arg-type]


class TestHalfMoons:
    def test_shape_and_classes(self) -> None:
        data = half_moons()
        assert data.X.shape == (200, 2)
        assert class_counts(data) == [100, 100]
        assert half_moons(2).X.shape == (2, 2)

    def test_every_point_obeys_the_formula(self) -> None:
        data = half_moons(4000, seed=1)
        first, second = data.X[data.labels == 0], data.X[data.labels == 1]
        assert (first[:, 0] >= -0.4).all()
        assert (second[:, 0] <= 0.0).all()
        for radius in (np.hypot(first[:, 0] + 0.4, first[:, 1]), np.hypot(second[:, 0], second[:, 1] + 1.0)):
            assert 0.8 - 1e-12 <= radius.min() < 0.801
            assert 1.199 < radius.max() <= 1.2 + 1e-12

    def test_radius_and_angle_are_uniform(self) -> None:
        data = half_moons(40_000, seed=2)
        first, second = data.X[data.labels == 0] + [0.4, 0.0], data.X[data.labels == 1] + [0.0, 1.0]
        for across, up in (first.T, (second * [-1.0, 1.0]).T):
            for values, low, high in (
                (np.hypot(across, up), 0.8, 1.2),
                (np.arctan2(up, across), -np.pi / 2, np.pi / 2),
            ):
                grid = (np.arange(len(values)) + 0.5) / len(values)
                distance = np.abs(np.sort((values - low) / (high - low)) - grid).max()
                assert distance < 2.0 / np.sqrt(len(values))  # Kolmogorov's test at level 7e-4

    def test_transformed_is_exactly_the_paper_s_matrix(self) -> None:
        assert np.array_equal(half_moons(50, True, seed=4).X, half_moons(50, seed=4).X @ SHEAR)

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"n": 0}, ValueError, "n must be at least 2; got 0"),
            ({"n": -2}, ValueError, "n must be at least 2; got -2"),
            ({"n": 7}, ValueError, "n must be even.*got 7"),
            ({"n": 10.0}, TypeError, "n must be a whole number; got 10.0"),
            ({"n": True}, TypeError, "n must be a whole number; got True"),
            ({"transformed": "no"}, TypeError, "transformed must be True or False, got 'no'"),
        ],
    )
    def test_bad_arguments_are_refused(
        self, arguments: dict[str, object], error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            half_moons(**arguments)  # type: ignore[arg-type]


class TestDenmarkStandin:
    def test_shape_and_classes(self) -> None:
        data = denmark_roads_standin()
        assert data.X.shape == (87, 3)
        assert class_counts(data) == [68, 19]
        assert data.feature_names == ("altitude", "latitude", "longitude")
        assert data.description.startswith("Not the real data")

    def test_moments(self) -> None:
        many = [denmark_roads_standin(seed) for seed in range(300)]
        pooled = Dataset(np.concatenate([d.X for d in many]), np.concatenate([d.labels for d in many]))
        assert largest_standard_score(pooled, _MEANS, _DEVIATIONS) < 4.5
        assert largest_standard_score(pooled, _MEANS, 1.1 * _DEVIATIONS) > 4.5

    def test_published_numbers(self) -> None:
        assert _MEANS.tolist() == [[14.9137, 56.9522, 8.7564], [70.2441, 56.6335, 9.9938]]
        assert _DEVIATIONS.tolist() == [[5.2903, 0.1330, 0.3750], [9.6316, 0.0013, 0.0054]]


@pytest.mark.parametrize("draw", [unit_square, half_moons, denmark_roads_standin])
class TestSeed:
    def test_decides_everything(self, draw: Callable[..., Dataset]) -> None:
        assert np.array_equal(draw(seed=5).X, draw(seed=5).X)
        assert np.array_equal(draw(seed=5).X, draw(seed=np.random.default_rng(5)).X)
        assert np.array_equal(draw().X, draw(seed=0).X)
        assert not np.array_equal(draw(seed=5).X, draw(seed=6).X)

    def test_generator_goes_on(self, draw: Callable[..., Dataset]) -> None:
        rng = np.random.default_rng(5)
        assert not np.array_equal(draw(seed=rng).X, draw(seed=rng).X)

    def test_none_is_fresh(self, draw: Callable[..., Dataset]) -> None:
        assert not np.array_equal(draw(seed=None).X, draw(seed=None).X)

    def test_bad_ones_are_refused(self, draw: Callable[..., Dataset]) -> None:
        with pytest.raises(ValueError, match="seed must be at least 0; got -1"):
            draw(seed=-1)
        with pytest.raises(TypeError, match=r"seed must be a whole number; got 'now'"):
            draw(seed="now")
