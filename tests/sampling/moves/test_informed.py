"""Informed split-merge: its pure proposal against brute force (see also test_transition_matrices)."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import by_hand
from sampling.exact import FIVE, MODELS, canonical, informed_choices
from sampling.goodness import LEVEL, chi_square

import ewens_widgets as ew
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.kernel.workspace import make_problem, make_workspace
from ewens_widgets.sampling.moves.informed import log_proposal, shuffle


@pytest.mark.parametrize("model", MODELS)
@given(st.data())
@pytest.mark.slow
def test_proposals_are_those_of_brute_force(model: str, data: st.DataObject) -> None:
    """Sizes so far times Gaussian predictives, with the covariance of the merged state plugged in."""
    n_objects = data.draw(st.integers(5, 9))
    X = np.random.default_rng(data.draw(st.integers(0, 10**6))).normal(size=(n_objects, 3))
    theta = data.draw(st.sampled_from([0.125, 2.0, 256.0]))
    posterior = Posterior.from_data(X, model=model, theta_grid=[theta])
    merged = canonical(data.draw(st.lists(st.integers(0, 1), min_size=n_objects, max_size=n_objects)))
    members = [i for i in range(n_objects) if merged[i] == (merged.count(0) < n_objects / 2)]
    order = data.draw(st.permutations(members))
    second_side = {order[1], *(i for i in order[2:] if data.draw(st.booleans()))}
    sides = (set(members) - second_side, second_side)
    split = [9 if i in second_side else label for i, label in enumerate(merged)]
    expected = by_hand.log_allocation(posterior.coordinates, merged, sides, theta, model, order)
    found = log_proposal(posterior, merged, split, 0, (order[0], order[1]), order[2:])
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
    mirrored = log_proposal(posterior, merged, split, 0, (order[1], order[0]), order[2:])
    assert mirrored == pytest.approx(found, rel=1e-10, abs=1e-11)
    assert log_proposal(posterior, split, merged, 0, (order[0], order[1])) == 0.0


@pytest.mark.parametrize("model", MODELS)
def test_the_sides_of_a_split_have_total_probability_one(model: str) -> None:
    posterior = Posterior.from_data(FIVE, model=model)
    for order in itertools.permutations((1, 2, 4)):
        total = 0.0
        for joined in itertools.product((0, 1), repeat=3):
            split = np.zeros(5, dtype=int)
            split[3] = 1
            split[list(order)] = joined
            total += math.exp(log_proposal(posterior, [0] * 5, split, 4, (0, 3), order))
        assert total == pytest.approx(1.0, abs=1e-13)


def test_what_the_pair_cannot_lead_to_is_impossible() -> None:
    posterior = Posterior.from_data(FIVE)
    start = [0, 0, 0, 1, 1]
    assert log_proposal(posterior, start, [0, 0, 2, 1, 1], 0, (0, 1)) == -math.inf  # Both stay together.
    assert log_proposal(posterior, start, [0, 0, 2, 1, 1], 0, (2, 3)) == -math.inf  # This pair merges.
    assert log_proposal(posterior, start, [0, 0, 0, 0, 0], 0, (0, 1)) == -math.inf  # This pair splits.
    assert log_proposal(posterior, start, [0, 0, 0, 0, 0], 0, (0, 4)) == 0.0
    assert log_proposal(posterior, start, [0, 1, 2, 3, 4], 0, (0, 1)) == -math.inf
    assert log_proposal(posterior, start, start, 0, (0, 1)) == -math.inf


def test_an_order_that_is_none_is_refused() -> None:
    posterior = Posterior.from_data(FIVE)
    with pytest.raises(ValueError, match=r"order must list the other members of the cluster, \[1, 3\]"):
        log_proposal(posterior, [0, 0, 0, 0, 1], [0, 0, 2, 2, 1], 0, (0, 2), (1, 4))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.slow
def test_the_log_ratio_is_that_of_some_pair_and_order(model: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(9, 2)) + 3.0 * rng.integers(0, 3, (9, 1))
    sampler = ew.Sampler(X, model=model, moves=["informed-split-merge"], initial="k-means", seed=4)
    posterior, before, checked = sampler.posterior, sampler.labels, 0
    for event in sampler.events(150, block=1):
        after = event.proposed_labels
        assert after is not None
        log_change = posterior.log_density(after, event.theta_index) - posterior.log_density(
            before, event.theta_index
        )
        splitting = after.max() > before.max()
        fine, coarse = (
            (canonical(after), canonical(before)) if splitting else (canonical(before), canonical(after))
        )
        choices = list(informed_choices(fine, coarse))
        if sum(len(orders) for _, orders in choices) <= 150:
            possible = [
                log_proposal(posterior, coarse, fine, event.theta_index, pair, order)
                for pair, orders in choices
                for order in orders
            ]
            log_sides = (log_change - event.log_ratio) if splitting else (event.log_ratio - log_change)
            assert np.abs(np.array(possible) - log_sides).min() < 1e-9
            checked += 1
        np.testing.assert_array_equal(event.labels, after if event.accepted else before)
        before = event.labels
    assert checked > 50


def test_pairs_are_drawn_evenly() -> None:
    """From all singletons every proposal is a merge, which tells the pair."""
    sampler = ew.Sampler(FIVE, moves=["informed-split-merge"], concentration=1e6, seed=3)
    counts = np.zeros((5, 5))
    for event in sampler.events(5000, block=1):
        if event.proposed_labels is not None and event.proposed_labels.max() == 3:
            together = np.flatnonzero(np.bincount(event.proposed_labels)[event.proposed_labels] == 2)
            counts[tuple(together)] += 1
    seen = counts[np.triu_indices(5, 1)]
    assert chi_square(seen, np.full(10, seen.sum() / 10)).p_value > LEVEL


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_orders_are_drawn_evenly(count: int) -> None:
    """The pair comes first, the others in any order; sides stay with their objects."""
    function = getattr(shuffle, "py_func", shuffle)  # As Python, since compiled it has no way in.
    problem = make_problem(Posterior.from_data(np.random.default_rng(0).normal(size=(8, 2))))
    rng = np.random.default_rng(4)
    workspace = make_workspace(problem, np.zeros(8, dtype=np.int64), 0, 0.0)
    counts: Counter[tuple[int, ...]] = Counter()
    chosen = [1, 2, 4, 5, 6, 7][:count]
    for uniform in rng.random(3000):
        workspace.members[:count] = chosen
        workspace.sides[:count] = np.array(chosen) % 2
        pair = (chosen[-1], chosen[0])
        function(workspace, count, *pair, uniform)
        members = workspace.members[:count].tolist()
        assert (members[0], members[1]) == pair
        assert sorted(members) == chosen
        np.testing.assert_array_equal(workspace.sides[:count], np.array(members) % 2)
        counts[tuple(members[2:])] += 1
    orders = list(itertools.permutations(chosen[1:-1]))
    seen = [counts[order] for order in orders]
    assert sum(seen) == 3000
    assert chi_square(seen, np.full(len(orders), 3000 / len(orders))).p_value > LEVEL
