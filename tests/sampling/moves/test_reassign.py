"""The paper's reassign move: its pure proposal against brute force (see also test_transition_matrices)."""

import itertools
import math

import numpy as np
import pytest
from sampling import by_hand
from sampling.exact import FIVE, make_space, reassign_proposals

import ewens_widgets as ew
from ewens_widgets.paper.moves.reassign import log_proposal


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
