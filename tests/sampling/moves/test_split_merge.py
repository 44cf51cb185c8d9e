"""The paper's split-merge move: its pure proposal against brute force (see also test_transition_matrices)."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sampling import by_hand
from sampling.exact import FIVE, MODELS, Space, canonical, make_space, split_merge_proposals

import ewens_widgets as ew
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.paper.moves.split_merge_proposal import log_proposal
from ewens_widgets.sampling.draws import Event
from ewens_widgets.sampling.moves import SplitMerge
from ewens_widgets.sampling.moves.move import pair_distances

WITHIN = ("average", "maximum", "minimum")
BETWEEN = ("average", "maximum", "minimum", "hausdorff")
DISTANCES = list(itertools.product(WITHIN, BETWEEN))
# Every pair of distances once, the models in turn.
OPTIONS = [(*pair, MODELS[place % 3]) for place, pair in enumerate(DISTANCES)]
WRONG = "ignore:acceptance="

# The corners of a square tie for the farthest pair; two rows are the same; one is the centre of all.
TIES = np.array([[0.0, 0.0], [2.0, 2.0], [0.0, 2.0], [2.0, 2.0], [1.0, 1.0]])


def by_hand_row(space: Space, start: int, **options: object) -> NDArray[np.float64]:
    row = np.zeros(len(space.labels))
    made = by_hand.split_merge_proposals(space.posterior.coordinates, space.labels[start], **options)
    for end, probability in made.items():
        row[space.index[end]] = probability
    return row


def assert_like_brute_force(space: Space, **options: object) -> None:
    proposals = split_merge_proposals(space, SplitMerge(**options))
    for start in range(len(space.labels)):
        expected = by_hand_row(space, start, **options)
        expected[start] = 0.0
        np.testing.assert_allclose(proposals[start], expected, rtol=1e-9, atol=1e-300, err_msg=str(options))


@pytest.mark.parametrize(
    ("data", "core_jump"), [(FIVE, 0.01), (TIES, 0.3)], ids=["general", "ties and duplicates"]
)
@pytest.mark.parametrize(("within", "between"), DISTANCES)
def test_proposals_are_those_of_brute_force(
    data: NDArray[np.float64], core_jump: float, within: str, between: str
) -> None:
    assert_like_brute_force(make_space(data, "I"), within=within, between=between, core_jump=core_jump)


@pytest.mark.parametrize("model", MODELS)
def test_proposals_use_the_distances_of_the_model(model: str) -> None:
    assert_like_brute_force(make_space(FIVE, model), probabilities=(0.3, 0.6, 0.1), core_jump=0.0)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=7).filter(
        lambda rows: len(set(rows)) > 1
    ),
    st.data(),
)
def test_proposals_with_many_ties_are_those_of_brute_force(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    posterior = Posterior.from_data(np.array(rows, dtype=float), model="I")
    labels = canonical(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    within, between = data.draw(st.sampled_from(DISTANCES))
    made = by_hand.split_merge_proposals(posterior.coordinates, labels, within, between)
    move = SplitMerge(within=within, between=between)
    for end, probability in made.items():
        if end != labels:
            assert math.exp(log_proposal(posterior, labels, end, move)) == pytest.approx(
                probability, rel=1e-9
            )


def test_a_sabotaged_brute_force_is_told_apart() -> None:
    space = make_space(FIVE, "I")
    proposals = split_merge_proposals(space, SplitMerge(core_jump=0.3))
    one_cluster = space.index[(0,) * 5]
    for sabotage in ({"favour": "farther"}, {"paths": 1}):
        wrong = by_hand_row(space, one_cluster, core_jump=0.3, **sabotage)
        assert np.abs(np.delete(proposals[one_cluster] - wrong, one_cluster)).max() > 1e-3


def test_only_a_split_or_a_merge_is_proposed() -> None:
    space = make_space(FIVE, "I")
    related = {*space.merges, *((coarse, fine) for fine, coarse in space.merges)}
    for start, end in itertools.product(range(len(space.labels)), repeat=2):
        log_probability = log_proposal(space.posterior, space.labels[start], space.labels[end])
        assert (log_probability > -math.inf) == ((start, end) in related)


def test_every_split_into_two_is_possible_with_a_core_jump_only() -> None:
    space = make_space(FIVE, "I")
    coarse = space.index[(0,) * 5]
    splits = [end for end, labels in enumerate(space.labels) if max(labels) == 1]
    assert len(splits) == 15
    assert np.all(split_merge_proposals(space, SplitMerge())[coarse, splits] > 0.0)
    without = split_merge_proposals(space, SplitMerge(core_jump=0.0))[coarse, splits]
    assert 0 < np.count_nonzero(without) == 8  # The cores apart, three others free.


def test_labels_of_another_length_are_refused() -> None:
    posterior = Posterior.from_data(FIVE, model="I")
    with pytest.raises(ValueError, match="length 4"):
        log_proposal(posterior, [0, 0, 0, 1], [0, 0, 1, 2])


def proposed_events(sampler: ew.Sampler, steps: int) -> list[tuple[NDArray[np.intp], Event]]:
    """Steps that proposed something, each with the labels before it."""
    labels, found = sampler.labels, []
    for event in sampler.events(steps, block=1):
        if event.proposed_labels is not None:
            found.append((labels, event))
        labels = event.labels
    return found


def log_ratio_by_hand(
    sampler: ew.Sampler, before: NDArray[np.intp], event: Event, move: SplitMerge, pairs: NDArray[np.float64]
) -> float:
    posterior, g = sampler.posterior, event.theta_index
    log_change = posterior.log_density(event.proposed_labels, g) - posterior.log_density(before, g)
    forward = log_proposal(posterior, before, event.proposed_labels, move, pairs)
    back = log_proposal(posterior, event.proposed_labels, before, move, pairs)
    return log_change + (back - forward if sampler.acceptance == "metropolis-hastings" else forward - back)


def clustered(n_objects: int, seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.normal(size=(4, 3))
    return centres[rng.integers(0, 4, n_objects)] + rng.normal(size=(n_objects, 3))


@pytest.mark.parametrize(("within", "between", "model"), OPTIONS)
def test_the_log_ratio_is_that_of_the_pure_functions(within: str, between: str, model: str) -> None:
    """Also a test of the cached distances: after hundreds of moves they are those of the partition."""
    X = np.round(clustered(24, 5), 1)  # Rounded, so that distances tie.
    move = SplitMerge(within=within, between=between)
    sampler = ew.Sampler(X, model=model, moves=[move], seed=3, initial="k-means")
    pairs = pair_distances(sampler.posterior.coordinates)
    steps = proposed_events(sampler, 150)
    assert any(event.accepted for _, event in steps)
    for before, event in steps:
        expected = log_ratio_by_hand(sampler, before, event, move, pairs)
        assert event.log_ratio == pytest.approx(expected, abs=1e-9, rel=1e-11)
        np.testing.assert_array_equal(event.labels, event.proposed_labels if event.accepted else before)
        assert event.accepted or event.log_ratio < 0.0


@pytest.mark.parametrize("acceptance", ["metropolis-hastings", "as-printed"])
@pytest.mark.parametrize("metric", ["canonical", "euclidean"])
@pytest.mark.filterwarnings(WRONG)
def test_the_log_ratio_with_either_metric_and_acceptance(metric: str, acceptance: str) -> None:
    X = clustered(15, 8) * [1.0, 10.0, 100.0]
    sampler = ew.Sampler(
        X, moves="paper-2", metric=metric, acceptance=acceptance, seed=2, initial="one-cluster"
    )
    pairs = pair_distances(X if metric == "euclidean" else sampler.posterior.coordinates)
    for before, event in proposed_events(sampler, 200):
        expected = log_ratio_by_hand(sampler, before, event, SplitMerge(), pairs)
        assert event.log_ratio == pytest.approx(expected, abs=1e-9, rel=1e-11)


def test_the_two_metrics_differ() -> None:
    X = clustered(15, 8) * [1.0, 10.0, 100.0]
    chains = [
        ew.Sampler(X, moves="paper-2", metric=metric, seed=2).sample(500, progress=False).labels
        for metric in ("canonical", "euclidean")
    ]
    assert not np.array_equal(*chains)


def test_the_printed_ratio_warns() -> None:
    with pytest.warns(UserWarning, match="inverted"):
        ew.Sampler(FIVE, moves="paper-2", acceptance="as-printed")


def test_what_cannot_be_split_or_merged_counts_as_keep() -> None:
    """From all singletons a split, from one cluster a merge: no proposal, and the partition stays."""
    for initial, probabilities in (
        ("singletons", (0.9, 1e-9, 0.1 - 1e-9)),
        ("one-cluster", (1e-9, 0.9, 0.1 - 1e-9)),
    ):
        move = SplitMerge(probabilities=probabilities)
        sampler = ew.Sampler(FIVE, moves=[move], initial=initial, seed=0)
        before = sampler.labels
        for event in sampler.events(200, block=1):
            assert event.moves[0][1:] == (0, 0)
            assert event.proposed_labels is event.accepted is event.log_ratio is None
            np.testing.assert_array_equal(event.labels, before)


def test_a_jump_that_empties_a_side_counts_as_keep() -> None:
    """With two objects in one cluster each jump empties a side."""
    move = SplitMerge(probabilities=(1 - 1e-9, 1e-9, 0.0), core_jump=0.5)
    settings = {"theta_grid": [1e-6], "concentration": 1e-9, "initial": [0, 0]}
    sampler = ew.Sampler([[0.0], [1.0]], moves=[move], seed=0, **settings)
    events = list(sampler.events(2000, block=1))
    assert all(event.n_clusters == 1 for event in events)  # So small a concentration refuses all splits.
    proposed = sum(event.moves[0].proposals for event in events)
    assert abs(proposed - 1000) < 5 * math.sqrt(500)


def test_keeping_always_never_changes_the_partition() -> None:
    move = SplitMerge(probabilities=(0.0, 0.0, 1.0))
    trace = ew.Sampler(FIVE, moves=[move], initial=[0, 0, 1, 1, 2]).sample(200, progress=False)
    assert np.all(trace.labels == [0, 0, 1, 1, 2])
    assert log_proposal(Posterior.from_data(FIVE), [0, 0, 1, 1, 2], [0, 0, 1, 1, 1], move) == -math.inf


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"within": "hausdorff"}, "within must be one of average, maximum, minimum"),
        ({"between": "single"}, "between must be one of .*hausdorff; got 'single'"),
        ({"probabilities": (0.5, 0.5)}, "three numbers"),
        ({"probabilities": (0.5, 0.4, 0.2)}, "sum to 1"),
        ({"probabilities": (-0.1, 0.6, 0.5)}, "none negative"),
        ({"probabilities": (math.nan, 0.5, 0.5)}, "probabilities"),
        ({"probabilities": (0.5, 0.0, 0.5)}, "undo each other"),
        ({"core_jump": -0.1}, "core jump"),
        ({"core_jump": 1.0}, "core jump"),
        ({"core_jump": math.nan}, "core jump"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SplitMerge(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"within": ["average"]}, "within"),
        ({"probabilities": None}, "probabilities"),
        ({"probabilities": "abc"}, "probabilities"),
        ({"core_jump": "often"}, "core jump"),
        ({"core_jump": None}, "core jump"),
    ],
)
def test_options_of_the_wrong_kind_are_refused_by_name(options: dict[str, object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        SplitMerge(**options)
