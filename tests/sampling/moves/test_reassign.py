"""The paper's reassign move: its pure proposal against brute force, and the running move against both."""

import itertools
import math

import numpy as np
import pytest
from sampling import by_hand
from sampling.exact import (
    assert_does_not_follow,
    assert_follows,
    assert_proposes,
    count_proposals,
    count_transitions,
    make_space,
    metropolis,
    reassign_proposals,
)

import ewens_widgets as ew
from ewens_widgets.paper.moves.reassign import log_proposal

FIVE = np.array([[0.0, 0.1], [0.9, -0.4], [1.3, 1.7], [-1.1, 2.2], [2.9, 0.6]])


def test_proposals_are_those_of_brute_force_and_add_up_to_one() -> None:
    space = make_space(FIVE, "I")
    proposals = reassign_proposals(space)
    for start, labels in enumerate(space.labels):
        expected = np.zeros(len(space.labels))
        for end, probability in by_hand.reassign_proposals(labels).items():
            expected[space.index[end]] = probability
        np.testing.assert_allclose(proposals[start], expected, atol=1e-14)
    np.testing.assert_allclose(proposals.sum(axis=1), 1.0, atol=1e-13)


def test_proposals_are_symmetric() -> None:
    proposals = reassign_proposals(make_space(FIVE, "I"))
    np.testing.assert_allclose(proposals, proposals.T, atol=1e-15)


def test_nothing_else_is_proposed() -> None:
    space = make_space(FIVE[:4], "I")
    for labels, other in itertools.product(space.labels, repeat=2):
        possible = other in by_hand.reassign_proposals(labels)
        assert (log_proposal(labels, other) > -math.inf) == possible


def test_any_names_of_the_clusters_will_do() -> None:
    assert log_proposal(["a", "a", "b"], [7, 3, 3]) == log_proposal([0, 0, 1], [0, 1, 1])


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_the_running_move_follows_its_transition_matrix(model: str) -> None:
    space = make_space(FIVE, model, 1.3, [1.0])
    settings = {"model": model, "concentration": 1.3, "theta_grid": [1.0]}
    sampler = ew.Sampler(FIVE, moves="paper-1", seed=12, **settings)
    counts = count_transitions(space, sampler, 40_000)
    proposals, target = reassign_proposals(space), space.target(0)
    assert_follows(space, counts, metropolis(proposals, target))
    other = make_space(FIVE, model, 1.0, [1.0]).target(0)  # Another concentration.
    assert_does_not_follow(space, counts, metropolis(proposals, other))


@pytest.mark.slow
@pytest.mark.parametrize("start", [(0, 0, 0, 0, 0), (0, 1, 0, 2, 1), (0, 1, 2, 3, 4)], ids=str)
def test_the_running_move_proposes_with_these_probabilities(start: tuple[int, ...]) -> None:
    space = make_space(FIVE, "I")
    counts = count_proposals(space, ew.Sampler(FIVE, model="I", moves="paper-1", seed=2), start, 2000)
    assert_proposes(space, counts, reassign_proposals(space)[space.index[start]])


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_the_log_ratio_is_that_of_the_posterior(model: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(20, 3)) + 3.0 * rng.integers(0, 2, (20, 1))
    sampler = ew.Sampler(X, model=model, moves="paper-1", initial="k-means", seed=4)
    before = sampler.labels
    taken = 0
    for event in sampler.events(400, block=1):
        assert event.proposed_labels is not None
        assert log_proposal(before, event.proposed_labels) > -math.inf
        after, now = (
            sampler.posterior.log_density(labels, event.theta_index)
            for labels in (event.proposed_labels, before)
        )
        assert event.log_ratio == pytest.approx(after - now, abs=1e-9)
        np.testing.assert_array_equal(event.labels, event.proposed_labels if event.accepted else before)
        before = event.labels
        taken += bool(event.accepted)
    assert 10 < taken < 390
