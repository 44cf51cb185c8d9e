"""The point estimate and its uncertainty."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import blob_trace, random_partitions, synthetic_trace

from ewens_widgets.analysis.agreement import error_rate, variation_of_information
from ewens_widgets.analysis.estimates import (
    SOURCES,
    Draws,
    ExpectedLoss,
    credible_ball,
    membership,
    object_uncertainty,
    point_estimate,
)
from ewens_widgets.analysis.similarity import similarity
from ewens_widgets.arguments import TooLargeError
from ewens_widgets.model.enumeration import exact_posterior
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import all_partitions, canonical_labels
from ewens_widgets.sampling.trace import Trace


def binder_loss(first: np.ndarray, second: np.ndarray) -> float:
    """Share of pairs that one partition keeps together and the other apart."""
    apart = (first[:, None] == first) != (second[:, None] == second)
    return apart.sum() / (first.size * (first.size - 1))


DIRECT = {"vi": variation_of_information, "binder": binder_loss}
LOSSES = sorted(DIRECT)
SOURCES_OF_CUTS = ("single", "average", "complete")


@pytest.fixture(scope="module")
def trace() -> Trace:
    return blob_trace(n_draws=60)


@pytest.fixture(scope="module")
def small_trace() -> Trace:
    """Independent draws from the exact posterior of five objects."""
    rng = np.random.default_rng(5)
    X = np.vstack([rng.normal(size=(3, 2)), rng.normal(size=(2, 2)) + 2.5])
    exact = exact_posterior(X, model="I")
    labels = exact.labels[rng.choice(len(exact.labels), size=400, p=exact.probabilities)]
    return synthetic_trace(labels, exact.posterior, rng)


@pytest.mark.parametrize("loss", LOSSES)
def test_is_the_best_of_all_partitions(small_trace: Trace, loss: str) -> None:
    rows, counts = np.unique(small_trace.labels, axis=0, return_counts=True)
    expected = [
        np.average([DIRECT[loss](partition, row) for row in rows], weights=counts)
        for partition in all_partitions(5)
    ]
    estimate = small_trace.point_estimate(loss)
    assert estimate.expected_loss == pytest.approx(min(expected), abs=1e-12)
    np.testing.assert_array_equal(estimate.labels, all_partitions(5)[int(np.argmin(expected))])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_finds_the_blobs(trace: Trace, loss: str, source: str) -> None:
    estimate = point_estimate(trace, loss, sources=[source])
    assert error_rate(np.arange(30) % 3, estimate.labels) == 0.0
    assert estimate.n_clusters == 3


@pytest.mark.parametrize("loss", LOSSES)
def test_what_it_tells(trace: Trace, loss: str, tmp_path: Path) -> None:
    estimate = trace.point_estimate(loss)
    direct = [DIRECT[loss](estimate.labels, draw) for draw in trace.labels]
    np.testing.assert_allclose(estimate.distances, direct, atol=1e-12)
    assert estimate.expected_loss == pytest.approx(np.mean(direct), abs=1e-12)
    sources = "the draws|the evidence tree|the similarity tree"
    assert re.match(f"(greedy sweeps from )?({sources})", estimate.source)
    assert not estimate.labels.flags.writeable
    assert "3 clusters of sizes [10, 10, 10]" in repr(estimate)
    estimate.to_csv(tmp_path / "labels.csv", names=[f"object {k}" for k in range(30)])
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert lines[0] == "object,cluster,uncertainty"
    assert lines[1].startswith("object 0,0,0.")
    assert len(lines) == 31


def test_no_candidate_beats_it() -> None:
    noisy, twin = (blob_trace(seed=2, noise=0.45, n_draws=80) for _ in range(2))
    estimate, other = noisy.point_estimate("vi"), twin.point_estimate("vi")
    np.testing.assert_array_equal(estimate.labels, other.labels)  # It is deterministic.
    assert (estimate.expected_loss, estimate.source) == (other.expected_loss, other.source)
    cuts = [noisy.cut(count, method=method) for method in SOURCES_OF_CUTS for count in range(1, 9)]
    for partition in [*noisy.labels, *cuts]:
        loss = np.mean([variation_of_information(partition, draw) for draw in noisy.labels])
        assert loss >= estimate.expected_loss - 1e-9


def test_one_draw_is_its_own_estimate_and_two_objects_have_one() -> None:
    trace = blob_trace(n_draws=1)
    estimate = trace.point_estimate()
    np.testing.assert_array_equal(estimate.labels, trace.labels[0])
    assert estimate.expected_loss == 0.0
    assert estimate.credible_ball().radius == 0.0
    np.testing.assert_array_equal(estimate.uncertainty, 0.0)

    rng = np.random.default_rng(0)
    posterior = Posterior.from_data([[0.0], [1.0]], model="I")
    trace = synthetic_trace(np.array([[0, 0], [0, 1], [0, 1]]), posterior, rng)
    for loss in LOSSES:
        np.testing.assert_array_equal(trace.point_estimate(loss).labels, [0, 1])


def test_refusals(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r'"vi".*"binder"'):
        trace.point_estimate("rand")
    for sources in ([], ["cuts"]):
        with pytest.raises(ValueError, match="draws, similarity, evidence"):
            point_estimate(trace, sources=sources)
    for level in (0.0, -1.0, 1.1, float("nan")):
        with pytest.raises(ValueError, match="level must be"):
            trace.point_estimate().credible_ball(level)
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "100")
    with pytest.raises(TooLargeError, match="Thin the trace"):
        ExpectedLoss(Draws.of(few_draws(0)), "vi").of(few_draws(0)[0])


def test_without_room_for_all_pairs_other_sources_still_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "12000")
    trace = blob_trace(n_draws=6)
    estimate = point_estimate(trace, "vi")
    assert estimate.n_clusters == 3
    assert "similarity" not in estimate.source
    with pytest.raises(ValueError, match=r"similarity of all pairs of .* Use evidence_tree\(\)"):
        point_estimate(trace, "vi", sources=["similarity"])


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


def test_membership_counts_what_clusters_stand_for() -> None:
    labels = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 1, 1, 2, 2, 2]])
    # Object 2 is with the second cluster in one draw of four; alone it stands for its own, the first.
    expected = [[1, 0], [1, 0], [0.75, 0.25], [0, 1], [0, 1], [0, 1]]
    np.testing.assert_allclose(membership(Draws.of(labels), labels[0]), expected)
    certain = np.array([[0, 0, 1, 1, 2]] * 4)
    np.testing.assert_array_equal(membership(Draws.of(certain), certain[0]), np.eye(3)[certain[0]])
    np.testing.assert_array_equal(object_uncertainty(Draws.of(certain), certain[0]), 0.0)


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


def few_draws(seed: int, n_objects: int = 6, n_draws: int = 9) -> np.ndarray:
    return random_partitions(np.random.default_rng(seed), n_draws, n_objects, 3)


@pytest.mark.parametrize("loss", LOSSES)
@given(seed=st.integers(0, 10**6))
def test_distances_are_the_losses_to_each_draw(loss: str, seed: int) -> None:
    labels = few_draws(seed)
    draws = Draws.of(labels)
    candidate = few_draws(seed + 1, n_draws=1)[0]
    distances = ExpectedLoss(draws, loss).distances(candidate)
    direct = [DIRECT[loss](candidate, draw) for draw in labels]
    np.testing.assert_allclose(distances[draws.place], direct, atol=1e-12)
    own = [
        ExpectedLoss(draws, loss).distances(row)[place]
        for row, place in zip(labels, draws.place, strict=True)
    ]
    assert own == [0.0] * len(labels)
    assert ExpectedLoss(draws, loss).of(candidate) == pytest.approx(np.mean(direct), abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_greedy_steps_end_where_no_single_step_helps(loss: str, seed: int) -> None:
    expected = ExpectedLoss(Draws.of(few_draws(seed, n_objects=8, n_draws=15)), loss)
    for start in (np.zeros(8, dtype=np.intp), np.arange(8), few_draws(seed)[0].repeat(2)[:8]):
        found = expected.improve(canonical_labels(start))
        reached = expected.of(found)
        assert reached <= expected.of(canonical_labels(start)) + 1e-12
        for item in range(8):
            for home in range(found.max() + 2):
                moved = found.copy()
                moved[item] = home
                assert expected.of(canonical_labels(moved)) >= reached - 1e-10
        for first, second in combinations(range(found.max() + 1), 2):
            merged = canonical_labels(np.where(found == second, first, found))
            assert expected.of(merged) >= reached - 1e-10


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(8))
def test_from_the_draws_greedy_steps_find_the_best_of_all_partitions(loss: str, seed: int) -> None:
    labels = few_draws(seed)
    expected = ExpectedLoss(Draws.of(labels), loss)
    best = min(expected.of(row.astype(np.intp)) for row in all_partitions(6))
    found = min(expected.of(expected.improve(row)) for row in labels)
    assert found == pytest.approx(best, abs=1e-12)


def test_a_wrong_step_table_would_be_noticed() -> None:
    """The sabotaged twin: without the overlaps, sweeps only look at cluster sizes and make things worse."""
    labels = random_partitions(np.random.default_rng(0), 1, 12, 3)
    expected = ExpectedLoss(Draws.of(labels), "vi")
    assert expected.of(expected.improve(labels[0])) == 0.0
    expected._step = -expected._step
    assert expected.of(expected.improve(labels[0])) > 0.0


@pytest.mark.parametrize("loss", LOSSES)
def test_new_clusters_open_during_one_sweep(loss: str) -> None:
    expected = ExpectedLoss(Draws.of(np.array([np.arange(7)] * 3)), loss)
    np.testing.assert_array_equal(expected._sweep(np.zeros(7, dtype=np.intp)), np.arange(7))


def test_repeated_draws_are_kept_once_with_their_weight(rng: np.random.Generator) -> None:
    """And what all others build on: cells, overlaps, an even spread along the chain."""
    distinct = random_partitions(rng, 5, 9, 4)
    labels = distinct[[3, 1, 3, 3, 0, 1, 4, 2]]
    draws = Draws.of(labels)
    np.testing.assert_array_equal(draws.labels, distinct[[3, 1, 0, 4, 2]])
    np.testing.assert_allclose(draws.weights, np.array([3, 2, 1, 1, 1]) / 8)
    np.testing.assert_array_equal(draws.labels[draws.place], labels)

    other = random_partitions(rng, 1, 9, 3)[0]
    overlaps = draws.overlaps(other)
    for draw, row in enumerate(draws.labels):
        for label in range(row.max() + 1):
            cell, members = draws.cells[draw, row == label][0], other[row == label]
            assert draws.draw_of_cell[cell] == draw
            assert draws.cell_sizes[cell] == members.size
            np.testing.assert_array_equal(overlaps[cell], np.bincount(members, minlength=other.max() + 1))
    distinct = random_partitions(rng, 101, 9, 4)
    # One draw is half of the chain; the other 100 appear once each.
    labels = distinct[np.where(np.arange(200) < 100, 0, np.arange(200) - 99)]
    draws = Draws.of(labels)
    assert draws.spread(1000) is draws
    spread = draws.spread(20)
    assert spread.weights[0] == 0.5
    assert len(spread) == 11
