import numpy as np
import pytest
from traces import blob_trace, random_partitions

from ewens_widgets.analysis.agreement import variation_of_information
from ewens_widgets.analysis.estimates import credible_ball, membership, object_uncertainty
from ewens_widgets.analysis.expected_loss import Draws, ExpectedLoss
from ewens_widgets.analysis.similarity import similarity
from ewens_widgets.partition import canonical_labels


def test_object_uncertainty_is_one_less_the_similarity_with_companions(rng: np.random.Generator) -> None:
    labels = random_partitions(rng, 30, 12, 3)
    estimate = canonical_labels([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3])
    found = object_uncertainty(Draws.of(labels), estimate)
    shared = similarity(labels)
    for item in range(11):
        companions = np.flatnonzero((estimate == estimate[item]) & (np.arange(12) != item))
        assert found[item] == pytest.approx(1 - shared[item, companions].mean(), abs=1e-12)
    alone = np.mean([np.sum(row == row[11]) == 1 for row in labels])
    assert found[11] == pytest.approx(1 - alone, abs=1e-12)


def test_a_trace_tells_the_uncertainty_of_any_partition() -> None:
    trace = blob_trace()
    estimate = trace.point_estimate()
    np.testing.assert_allclose(trace.uncertainty(estimate.labels), estimate.uncertainty)
    names = np.array(["b", "a", "c", "d", "e", "f"] * trace.n_objects)[estimate.labels]
    np.testing.assert_array_equal(trace.uncertainty(names), trace.uncertainty(estimate.labels))
    with pytest.raises(ValueError, match=r"label"):
        trace.uncertainty([0, 1])


def test_certain_draws_leave_no_uncertainty() -> None:
    labels = np.array([[0, 0, 1, 1, 2]] * 4)
    draws = Draws.of(labels)
    np.testing.assert_array_equal(object_uncertainty(draws, labels[0]), 0.0)
    np.testing.assert_array_equal(membership(draws, labels[0]), np.eye(3)[labels[0]])


def test_membership_counts_what_clusters_stand_for() -> None:
    labels = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 1, 1, 2, 2, 2]])
    found = membership(Draws.of(labels), labels[0])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    # Object 2 is with the second cluster in one draw of four; alone it stands for its own, the first.
    np.testing.assert_allclose(found, [[1, 0], [1, 0], [0.75, 0.25], [0, 1], [0, 1], [0, 1]])


def ball_by_hand(labels: np.ndarray, estimate: np.ndarray, level: float) -> tuple[float, np.ndarray]:
    distances = np.array([variation_of_information(estimate, row) for row in labels])
    radii = np.sort(distances)
    radius = next(r for r in radii if np.mean(distances <= r + 1e-12) >= level - 1e-12)
    return radius, distances


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.95, 1.0])
def test_credible_ball(rng: np.random.Generator, level: float) -> None:
    labels = random_partitions(rng, 50, 7, 3)
    draws, estimate = Draws.of(labels), labels[0]
    ball = credible_ball(draws, ExpectedLoss(draws, "vi").distances(estimate), level)
    radius, distances = ball_by_hand(labels, estimate, level)
    assert ball.radius == pytest.approx(radius, abs=1e-12)
    inside = distances <= radius + 1e-12
    assert ball.share == pytest.approx(inside.mean())
    assert ball.share >= level - 1e-12
    counts = labels.max(axis=1) + 1
    for bound, chosen in (
        (ball.horizontal, inside),
        (ball.upper_vertical, inside & (counts == counts[inside].min())),
        (ball.lower_vertical, inside & (counts == counts[inside].max())),
    ):
        extreme = chosen & (distances >= distances[chosen].max() - 1e-12)
        assert {tuple(row) for row in bound.tolist()} == {tuple(row) for row in labels[extreme].tolist()}


def test_balls_are_nested() -> None:
    estimate = blob_trace(noise=0.3, n_draws=100).point_estimate()
    radii = [estimate.credible_ball(level).radius for level in (0.1, 0.5, 0.9, 0.99)]
    assert radii == sorted(radii)
    ball = estimate.credible_ball()
    assert ball.level == 0.95
    assert ball.upper_vertical.max() <= ball.lower_vertical.max()


@pytest.mark.parametrize("level", [0.0, -1.0, 1.1, float("nan")])
def test_refused_levels(level: float) -> None:
    with pytest.raises(ValueError, match="level must be"):
        blob_trace(n_draws=3).point_estimate().credible_ball(level)
