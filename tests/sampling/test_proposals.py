"""The pure proposals of the moves against brute force, and the ratios that the running moves report."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sampling import by_hand
from sampling.exact import (
    FIVE,
    MODELS,
    Floats,
    Space,
    canonical,
    informed_choices,
    make_space,
    reassign_proposals,
    split_merge_proposals,
)
from sampling.goodness import LEVEL, chi_square

import ewens_widgets as ew
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.paper.moves import split_merge_proposal
from ewens_widgets.sampling.draws import Event
from ewens_widgets.sampling.kernel.workspace import make_problem, make_workspace
from ewens_widgets.sampling.moves import SplitMerge, informed
from ewens_widgets.sampling.moves.move import pair_distances

WITHIN = ("average", "maximum", "minimum")
BETWEEN = ("average", "maximum", "minimum", "hausdorff")
DISTANCES = list(itertools.product(WITHIN, BETWEEN))
# The corners of a square tie for the farthest pair; two rows are the same; one is the centre of all.
TIES = np.array([[0.0, 0.0], [2.0, 2.0], [0.0, 2.0], [2.0, 2.0], [1.0, 1.0]])


def by_hand_table(space: Space, **sabotage: object) -> Floats:
    """What split-merge proposes at each partition, by brute force."""
    table = np.zeros((len(space.labels),) * 2)
    for start, labels in enumerate(space.labels):
        made = by_hand.split_merge_proposals(space.posterior.coordinates, labels, **sabotage)
        for end, probability in made.items():
            table[start, space.index[end]] = probability
    return table


def stepped(sampler: ew.Sampler, steps: int) -> Iterator[tuple[NDArray[np.intp], Event, float]]:
    """Steps that proposed something: the labels before, the event, and the change of the log density."""
    before, density = sampler.labels, sampler.posterior.log_density
    for event in sampler.events(steps, block=1):
        if event.proposed_labels is not None:
            change = density(event.proposed_labels, event.theta_index) - density(before, event.theta_index)
            yield before, event, change
            np.testing.assert_array_equal(event.labels, event.proposed_labels if event.accepted else before)
            assert event.accepted or event.log_ratio < 0.0
        before = event.labels


# Split-merge


@pytest.mark.parametrize(
    ("data", "model", "options"),
    [
        *((FIVE, "I", {"within": w, "between": b}) for w, b in DISTANCES),
        *((TIES, "I", {"within": w, "between": b, "core_jump": 0.3}) for w, b in DISTANCES),
        *((FIVE, model, {"probabilities": (0.3, 0.6, 0.1), "core_jump": 0.0}) for model in MODELS),
    ],
)
def test_split_merge_proposes_what_brute_force_does(
    data: Floats, model: str, options: dict[str, object]
) -> None:
    """What is not proposed is kept: by choice, for want of a cluster, or because a jump empties a side."""
    space = make_space(data, model)
    proposals, expected = split_merge_proposals(space, SplitMerge(**options)), by_hand_table(space, **options)
    kept = np.diag(expected).copy()
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(proposals, expected, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(proposals.sum(axis=1), 1.0 - kept, atol=1e-12)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=7).filter(
        lambda rows: len(set(rows)) > 1
    ),
    st.data(),
)
def test_split_merge_with_many_ties(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    posterior = Posterior.from_data(np.array(rows, dtype=float), model="I")
    labels = canonical(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    within, between = data.draw(st.sampled_from(DISTANCES))
    made = by_hand.split_merge_proposals(posterior.coordinates, labels, within, between)
    move = SplitMerge(within=within, between=between)
    for end, probability in made.items():
        if end != labels:
            found = math.exp(split_merge_proposal.log_proposal(posterior, labels, end, move))
            assert found == pytest.approx(probability, rel=1e-9)


def test_only_a_split_or_a_merge_is_proposed_and_every_split_with_a_jump_only() -> None:
    space = make_space(FIVE, "I")
    related = {*space.merges, *((coarse, fine) for fine, coarse in space.merges)}
    for start, end in itertools.product(range(len(space.labels)), repeat=2):
        labels, other = space.labels[start], space.labels[end]
        log_probability = split_merge_proposal.log_proposal(space.posterior, labels, other)
        assert (log_probability > -math.inf) == ((start, end) in related)
    coarse = space.index[(0,) * 5]
    splits = [end for end, labels in enumerate(space.labels) if max(labels) == 1]
    assert len(splits) == 15
    assert np.all(split_merge_proposals(space, SplitMerge())[coarse, splits] > 0.0)
    without = split_merge_proposals(space, SplitMerge(core_jump=0.0))[coarse, splits]
    assert np.count_nonzero(without) == 8  # The cores apart, three others free.
    with pytest.raises(ValueError, match="length 4"):
        split_merge_proposal.log_proposal(space.posterior, [0, 0, 0, 1], [0, 0, 1, 2])


# Every pair of distances once, the models in turn; both metrics with both ratios.
RATIOS = [
    *(
        (SplitMerge(*pair), {"model": MODELS[k % 3], "initial": "k-means"})
        for k, pair in enumerate(DISTANCES)
    ),
    *(
        (SplitMerge(), {"metric": metric, "acceptance": acceptance, "initial": "one-cluster"})
        for metric in ("canonical", "euclidean")
        for acceptance in ("metropolis-hastings", "as-printed")
    ),
]


@pytest.mark.filterwarnings("ignore:The acceptance ratio")
@pytest.mark.parametrize(("move", "settings"), RATIOS, ids=str)
def test_the_log_ratio_of_split_merge(move: SplitMerge, settings: dict[str, str]) -> None:
    """Also a test of the cached distances: after many moves they are those of the partition."""
    rng = np.random.default_rng(5)
    X = 2.0 * rng.normal(size=(4, 3))[rng.integers(0, 4, 24)] + rng.normal(size=(24, 3))
    X = np.round(X, 1) * [1.0, 10.0, 100.0]  # Rounded, so that distances tie.
    sampler = ew.Sampler(X, moves=[move], seed=3, **settings)
    posterior, accepted = sampler.posterior, 0
    pairs = pair_distances(X if sampler.metric == "euclidean" else posterior.coordinates)
    for before, event, change in stepped(sampler, 150):
        forward, back = (
            split_merge_proposal.log_proposal(posterior, *way, move, pairs)
            for way in ((before, event.proposed_labels), (event.proposed_labels, before))
        )
        sign = -1.0 if sampler.acceptance == "as-printed" else 1.0
        assert event.log_ratio == pytest.approx(change + sign * (back - forward), abs=1e-9, rel=1e-11)
        accepted += bool(event.accepted)
    assert accepted > 0 or "metric" in settings


def test_what_cannot_be_split_or_merged_counts_as_keep() -> None:
    """From all singletons a split, from one cluster a merge: no proposal, and the partition stays."""
    for initial, probabilities in (
        ("singletons", (0.9, 1e-9, 0.1 - 1e-9)),
        ("one-cluster", (1e-9, 0.9, 0.1 - 1e-9)),
        ([0, 0, 1, 1, 2], (0.0, 0.0, 1.0)),
    ):
        move = SplitMerge(probabilities=probabilities)
        sampler = ew.Sampler(FIVE, moves=[move], initial=initial, seed=0)
        before = sampler.labels
        for event in sampler.events(200, block=1):
            assert event.moves[0][1:] == (0, 0)
            assert event.proposed_labels is event.accepted is event.log_ratio is None
            np.testing.assert_array_equal(event.labels, before)
    start, merged = [0, 0, 1, 1, 2], [0, 0, 1, 1, 1]
    found = split_merge_proposal.log_proposal(Posterior.from_data(FIVE), start, merged, move)
    assert found == -math.inf


def test_a_jump_that_empties_a_side_counts_as_keep() -> None:
    """With two objects in one cluster each jump empties a side."""
    move = SplitMerge(probabilities=(1 - 1e-9, 1e-9, 0.0), core_jump=0.5)
    settings = {"theta_grid": [1e-6], "concentration": 1e-9, "initial": [0, 0]}
    events = list(ew.Sampler([[0.0], [1.0]], moves=[move], seed=0, **settings).events(2000, block=1))
    assert all(event.n_clusters == 1 for event in events)  # So small a concentration refuses all splits.
    proposed = sum(event.moves[0].proposals for event in events)
    assert abs(proposed - 1000) < 5 * math.sqrt(500)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"within": "hausdorff"}, "within must be one of average, maximum, minimum"),
        ({"within": ["average"]}, "within"),
        ({"between": "single"}, "between must be one of .*hausdorff; got 'single'"),
        ({"probabilities": (0.5, 0.5)}, "three numbers"),
        ({"probabilities": (0.5, 0.4, 0.2)}, "sum to 1"),
        ({"probabilities": (-0.1, 0.6, 0.5)}, "none negative"),
        ({"probabilities": (0.5, 0.0, 0.5)}, "undo each other"),
        *(({"probabilities": value}, "probabilities") for value in ((math.nan, 0.5, 0.5), None, "abc")),
        *(({"core_jump": value}, "core jump") for value in (-0.1, 1.0, math.nan, "often", None)),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        SplitMerge(**options)


def test_the_printed_ratio_warns() -> None:
    with pytest.warns(UserWarning, match="inverted"):
        ew.Sampler(FIVE, moves="paper-2", acceptance="as-printed")


# Reassign


def test_reassign_proposes_what_brute_force_does() -> None:
    """Counted over what the kernel proposes; as described, the proposals are symmetric and add up to one."""
    proposals = reassign_proposals(make_space(FIVE, "I"))
    np.testing.assert_allclose(proposals.sum(axis=1), 1.0, atol=1e-13)
    np.testing.assert_allclose(proposals, proposals.T, atol=1e-15)
    visits: Counter[tuple[int, ...]] = Counter()
    counts: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    for before, event, _ in stepped(ew.Sampler(FIVE, model="I", moves="paper-1", seed=1), 4000):
        start = canonical(before)
        visits[start] += 1
        counts[start, canonical(event.proposed_labels)] += 1
    checked = 0
    for start, count in visits.items():
        expected = by_hand.reassign_proposals(start)
        assert {end for begin, end in counts if begin == start} <= set(expected)
        for end, probability in expected.items() if count > 100 else ():
            error = math.sqrt(probability * (1 - probability) / count)
            assert abs(counts[start, end] / count - probability) < 5 * error
            checked += 1
    assert checked > 50


@pytest.mark.parametrize("model", MODELS)
def test_the_log_ratio_of_reassign(model: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(20, 3)) + 3.0 * rng.integers(0, 2, (20, 1))
    sampler = ew.Sampler(X, model=model, moves="paper-1", initial="k-means", seed=4)
    taken = 0
    for _, event, change in stepped(sampler, 400):
        assert event.log_ratio == pytest.approx(change, abs=1e-9)
        taken += bool(event.accepted)
    assert 10 < taken < 390


# Informed split-merge


@pytest.mark.parametrize("model", MODELS)
@given(st.data())
@pytest.mark.slow
def test_informed_proposals_are_those_of_brute_force(model: str, data: st.DataObject) -> None:
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
    found = informed.log_proposal(posterior, merged, split, 0, (order[0], order[1]), order[2:])
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
    mirrored = informed.log_proposal(posterior, merged, split, 0, (order[1], order[0]), order[2:])
    assert mirrored == pytest.approx(found, rel=1e-10, abs=1e-11)
    assert informed.log_proposal(posterior, split, merged, 0, (order[0], order[1])) == 0.0


@pytest.mark.parametrize("model", MODELS)
def test_the_sides_of_a_split_have_total_probability_one(model: str) -> None:
    posterior = Posterior.from_data(FIVE, model=model)
    for order in itertools.permutations((1, 2, 4)):
        total = 0.0
        for joined in itertools.product((0, 1), repeat=3):
            split = np.zeros(5, dtype=int)
            split[3] = 1
            split[list(order)] = joined
            total += math.exp(informed.log_proposal(posterior, [0] * 5, split, 4, (0, 3), order))
        assert total == pytest.approx(1.0, abs=1e-13)


def test_what_the_pair_cannot_lead_to_is_impossible() -> None:
    posterior, start = Posterior.from_data(FIVE), [0, 0, 0, 1, 1]
    for end, pair in (
        ([0, 0, 2, 1, 1], (0, 1)),  # both stay together
        ([0, 0, 2, 1, 1], (2, 3)),  # this pair merges
        ([0, 0, 0, 0, 0], (0, 1)),  # this pair splits
        ([0, 1, 2, 3, 4], (0, 1)),
        (start, (0, 1)),
    ):
        assert informed.log_proposal(posterior, start, end, 0, pair) == -math.inf
    assert informed.log_proposal(posterior, start, [0] * 5, 0, (0, 4)) == 0.0
    with pytest.raises(ValueError, match=r"order must list the other members of the cluster, \[1, 3\]"):
        informed.log_proposal(posterior, [0, 0, 0, 0, 1], [0, 0, 2, 2, 1], 0, (0, 2), (1, 4))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.slow
def test_the_log_ratio_is_that_of_some_pair_and_order(model: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(9, 2)) + 3.0 * rng.integers(0, 3, (9, 1))
    sampler = ew.Sampler(X, model=model, moves=["informed-split-merge"], initial="k-means", seed=4)
    checked = 0
    for before, event, change in stepped(sampler, 100):
        after = event.proposed_labels
        splitting = after.max() > before.max()
        fine, coarse = map(canonical, (after, before) if splitting else (before, after))
        choices = list(informed_choices(fine, coarse))
        if sum(len(orders) for _, orders in choices) <= 150:
            possible = [
                informed.log_proposal(sampler.posterior, coarse, fine, event.theta_index, pair, order)
                for pair, orders in choices
                for order in orders
            ]
            log_sides = change - event.log_ratio if splitting else event.log_ratio - change
            assert np.abs(np.array(possible) - log_sides).min() < 1e-9
            checked += 1
    assert checked > 30


def test_pairs_are_drawn_evenly() -> None:
    """From all singletons every proposal is a merge, which tells the pair."""
    sampler = ew.Sampler(FIVE, moves=["informed-split-merge"], concentration=1e6, seed=3)
    counts = np.zeros((5, 5))
    for event in sampler.events(3000, block=1):
        if event.proposed_labels is not None and event.proposed_labels.max() == 3:
            together = np.flatnonzero(np.bincount(event.proposed_labels)[event.proposed_labels] == 2)
            counts[tuple(together)] += 1
    seen = counts[np.triu_indices(5, 1)]
    assert chi_square(seen, np.full(10, seen.sum() / 10)).p_value > LEVEL


@pytest.mark.parametrize("count", [2, 3, 4, 6])
def test_orders_are_drawn_evenly(count: int) -> None:
    """The pair comes first, the others in any order; sides stay with their objects."""
    # As Python, since compiled it has no way in.
    function = getattr(informed.shuffle, "py_func", informed.shuffle)
    problem = make_problem(Posterior.from_data(np.random.default_rng(0).normal(size=(8, 2))))
    workspace = make_workspace(problem, np.zeros(8, dtype=np.int64), 0, 0.0)
    counts: Counter[tuple[int, ...]] = Counter()
    chosen = [1, 2, 4, 5, 6, 7][:count]
    for uniform in np.random.default_rng(4).random(1500):
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
    assert sum(seen) == 1500
    assert chi_square(seen, np.full(len(orders), 1500 / len(orders))).p_value > LEVEL
