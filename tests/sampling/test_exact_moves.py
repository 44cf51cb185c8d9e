"""Each move leaves the posterior unchanged: proved on every partition of five points, and some on all of six.

The matrices are made without random numbers. Chains of each move are then compared with its matrix. Every
proof has sabotaged twins, which must fail by a wide margin: they show that the tests can tell.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from sampling.exact import (
    FIVE,
    MODELS,
    PRIORS,
    SIGMAS,
    THETAS,
    Floats,
    Space,
    assert_does_not_follow,
    assert_follows,
    assert_proposes,
    assert_stochastic,
    count_proposals,
    count_transitions,
    detailed_imbalance,
    gibbs_draw,
    gibbs_sweep,
    imbalance,
    informed_allocations,
    informed_matrix,
    is_irreducible,
    log_urn,
    make_space,
    metropolis,
    mixed,
    reassign_proposals,
    space_of,
    split_merge_proposals,
)
from sampling.goodness import LEVEL, chi_square
from sampling.test_proposals import DISTANCES, by_hand_table

import ewens_widgets as ew
from ewens_widgets.sampling.moves import SplitMerge

EXACT = 1e-12
WIDE = 1e-3  # What a sabotaged twin must exceed: a thousand million times as much.
POSSIBLE = {5: 52, 6: 203}  # Partitions; at most three clusters of five points: 41.
# Every family, prior and model with its points. The quick ones have common shapes and Ewens' prior, and the
# matrices of the paper's moves on six points are quick too. What own shapes and categories need together is
# compiled for these matrices alone, so they are nightly; chains of both are in `test_exact_chains`.
QUICK = ("common", "Ewens", 5, False)
ALL = [
    pytest.param(
        *case,
        marks=[pytest.mark.nightly] * (case[1] == "own" and case[4])
        + [pytest.mark.slow] * (case[1:] != QUICK),
    )
    for case in [
        *itertools.product(MODELS, ("common", "own"), PRIORS, (5,), (False,)),
        *itertools.product(MODELS, ("common", "own"), ("Ewens",), (5,), (True,)),
        *itertools.product(("II",), ("common", "own"), list(PRIORS)[1:], (5,), (True,)),
        *itertools.product(("II", "III"), ("common",), ("Ewens",), (6,), (False,)),
    ]
]
SPLIT_MERGES = [
    *(SplitMerge(within=within, between=between) for within, between in DISTANCES),
    *(SplitMerge(core_jump=jump) for jump in (0.0, 0.3, 0.9)),
    *(SplitMerge(probabilities=shares) for shares in ((0.2, 0.7, 0.1), (0.8, 0.2, 0.0), (0.01, 0.01, 0.98))),
]


def assert_exact(matrix: Floats, target: Floats, reversible: bool = True, irreducible: bool = True) -> None:
    assert_stochastic(matrix)
    assert imbalance(matrix, target) < EXACT
    assert is_irreducible(matrix, target) or not irreducible
    assert detailed_imbalance(matrix, target) < EXACT or not reversible


@pytest.mark.parametrize(("model", "shapes", "prior", "points", "has_categories"), ALL)
def test_every_move_is_exact(model: str, shapes: str, prior: str, points: int, has_categories: bool) -> None:
    space = space_of(model, shapes, prior, points, has_categories)
    assert space.possible.sum() == (41 if prior == "Dirichlet-multinomial" else POSSIBLE[points])
    reassign = reassign_proposals(space)
    split_merge = split_merge_proposals(space, SplitMerge(core_jump=0.2))
    # All θ where it is quick, else the one in the middle.
    quick = (shapes, prior, points, has_categories) == QUICK
    for g in range(len(THETAS)) if quick else [1]:
        target = space.target(g)
        assert_exact(metropolis(reassign, target), target)
        assert_exact(metropolis(split_merge, target), target)
        assert_exact(informed_matrix(space, g), target)
        for sabotage in ("dropped", "printed"):
            assert imbalance(metropolis(split_merge, target, sabotage), target) > WIDE
        sweep = np.eye(len(target))
        for item in range(points):
            draw = gibbs_draw(space, item, g)
            assert_stochastic(draw)
            assert detailed_imbalance(draw, target) < EXACT
            sweep = sweep @ draw
        assert_exact(sweep, target, reversible=False)
        np.testing.assert_allclose(sweep, gibbs_sweep(space, g), atol=1e-15)
    for sabotage in ("dropped", "printed"):
        assert imbalance(informed_matrix(space, 1, sabotage), space.target(1)) > WIDE
    if has_categories:  # left out
        blind = dataclasses.replace(space, believed=space_of(model, shapes, prior).posterior)
        assert imbalance(gibbs_sweep(blind, 1), space.target(1)) > WIDE


@pytest.mark.parametrize("model", MODELS)
def test_the_enumerated_posterior_of_categories_is_that_of_urns(model: str) -> None:
    """The proofs above take the likelihood of the categories from the package."""
    found, plain = make_space(mixed(FIVE), model, 1.3, THETAS), make_space(FIVE, model, 1.3, THETAS)
    joint = plain.exact.joint * np.exp([[log_urn(labels)] for labels in plain.labels])
    np.testing.assert_allclose(found.exact.joint, joint / joint.sum(), rtol=1e-10)
    for labels in found.labels[::7]:
        assert found.posterior.log_categories(np.array(labels)) == pytest.approx(log_urn(labels))


@pytest.mark.parametrize("prior", [name for name in PRIORS if name != "Ewens"])
@pytest.mark.parametrize("shapes", ["common", "own"])
def test_the_seats_of_another_prior_are_found(shapes: str, prior: str) -> None:
    """Ewens' weights in the conditional of an object, or its posterior in a Metropolis ratio."""
    space, papers = space_of("II", shapes, prior), space_of("II", shapes)
    target = space.target(1)
    sabotaged = gibbs_sweep(dataclasses.replace(space, believed=papers.posterior), 1)
    assert_stochastic(sabotaged)
    assert imbalance(sabotaged, target) > WIDE
    assert imbalance(metropolis(reassign_proposals(space), papers.target(1)), target) > WIDE


@pytest.mark.parametrize("model", MODELS)
def test_other_parameters_are_found(model: str) -> None:
    """Σ, ν, θ or λ in the conditional of an object is another than in the target."""
    space = space_of(model, "own")
    for wrong in (
        dataclasses.replace(space, nu_index=1),
        dataclasses.replace(space, sigma=1.3 * SIGMAS[model]),
        dataclasses.replace(space, believed=space_of("II" if model == "I" else "I").posterior, sigma=None),
    ):
        assert imbalance(gibbs_sweep(wrong, 1), space.target(1)) > WIDE
    common = space_of(model)
    assert imbalance(gibbs_sweep(common, 1, concentration=1.0), common.target(1)) > WIDE
    assert imbalance(gibbs_sweep(common, 0), common.target(1)) > WIDE


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("move", SPLIT_MERGES, ids=str)
def test_split_merge_is_exact_with_any_options(model: str, move: SplitMerge) -> None:
    space = space_of(model)
    proposals = split_merge_proposals(space, move)
    for g in range(len(THETAS)):
        target = space.target(g)
        assert_exact(metropolis(proposals, target), target, irreducible=move.core_jump > 0.0)
        for sabotage in ("dropped", "printed") if move.core_jump > 0.0 else ():
            wide = WIDE if move.probabilities == SplitMerge().probabilities else 1e-2 * WIDE
            assert imbalance(metropolis(proposals, target, sabotage), target) > wide


@pytest.mark.parametrize("sabotage", [{"favour": "farther"}, {"paths": 1}])
def test_claiming_another_proposal_than_the_real_one_is_found(sabotage: dict[str, object]) -> None:
    space = space_of("I")
    real = split_merge_proposals(space, SplitMerge(core_jump=0.3))
    claimed = by_hand_table(space, core_jump=0.3, **sabotage)
    assert imbalance(metropolis(real, space.target(1), claimed=claimed), space.target(1)) > WIDE


@pytest.mark.parametrize("model", MODELS)
def test_a_whole_iteration_of_the_default_schedule_is_exact(model: str) -> None:
    """θ from its conditional, then twenty informed moves and a sweep, on all pairs of partition and θ."""
    space = space_of(model)
    joint = space.exact.joint
    n_states, n_thetas = joint.shape
    conditional = joint / joint.sum(axis=1, keepdims=True)
    iteration = np.zeros((n_states, n_states * n_thetas))
    for g in range(n_thetas):
        moves = np.linalg.matrix_power(informed_matrix(space, g), 20) @ gibbs_sweep(space, g)
        iteration[:, g::n_thetas] = conditional[:, [g]] * moves
    # The next state does not depend on the last θ, so its law follows from the partitions alone.
    assert np.abs(space.exact.probabilities @ iteration - joint.ravel()).max() < EXACT


# The running moves


@functools.cache
def one_theta(model: str, has_categories: bool = False, concentration: float = 1.3) -> Space:
    return make_space(mixed(FIVE) if has_categories else FIVE, model, concentration, [1.0])


def matrix_of(move: object, space: Space, other: Space, acceptance: str = "right") -> Floats:
    """Transition matrix of a move; sabotaged where `other` is another space, or the acceptance another."""
    if move == "gibbs":
        return gibbs_sweep(space, 0, concentration=None if other is space else 1.0)
    if move == "informed-split-merge":
        return informed_matrix(space, 0, acceptance)
    proposals = reassign_proposals(space) if move == "reassign" else split_merge_proposals(space, move)
    return metropolis(proposals, other.target(0), acceptance)


SINGLE = ("gibbs", "informed-split-merge", "reassign")
# Move, model, whether there are categories, and the ratio that is used.
RUNNING: list[tuple[object, str, bool, str]] = [
    *itertools.product(SINGLE, MODELS, (False, True), ("right",)),
    # Every pair of distances once, the models in turn.
    *(
        (SplitMerge(*pair, core_jump=0.1), MODELS[place % 3], place >= 9, "right")
        for place, pair in enumerate(DISTANCES)
    ),
    (SplitMerge(), "II", False, "printed"),
]


@pytest.mark.filterwarnings("ignore:The acceptance ratio")
@pytest.mark.parametrize(("move", "model", "has_categories", "ratio"), RUNNING)
def test_the_running_move_follows_its_transition_matrix(
    move: object, model: str, has_categories: bool, ratio: str
) -> None:
    space = one_theta(model, has_categories)
    settings = {"acceptance": "as-printed"} if ratio == "printed" else {}
    sampler = ew.Sampler(
        mixed(FIVE) if has_categories else FIVE,
        model=model,
        concentration=1.3,
        theta_grid=[1.0],
        moves=[move],
        seed=11,
        **settings,
    )
    counts = count_transitions(space, sampler, 40_000)
    assert_follows(space, counts, matrix_of(move, space, space, ratio))
    wrong = "dropped" if ratio == "right" and move not in ("gibbs", "reassign") else "right"
    other = space if wrong == "dropped" or ratio == "printed" else one_theta(model, has_categories, 1.0)
    assert_does_not_follow(space, counts, matrix_of(move, space, other, wrong))


def informed_row(space: Space, place: int) -> Floats:
    """Of every pair and order the proposal is known; what is proposed is their average."""
    row = np.zeros(len(space.labels))
    for fine, coarse, weight, log_sides in informed_allocations(space, 0):
        row[fine] += (coarse == place) * weight * math.exp(log_sides)
        row[coarse] += (fine == place) * weight
    return row


JUMPING: dict[str, object] = {"between": "maximum", "probabilities": (0.6, 0.3, 0.1), "core_jump": 0.5}
PROPOSING: dict[str, tuple[object, Callable[[Space, int], Floats]]] = {
    "reassign": ("reassign", lambda space, place: reassign_proposals(space)[place]),
    "informed": ("informed-split-merge", informed_row),
    "split-merge": (SplitMerge(**JUMPING), lambda space, place: by_hand_table(space, **JUMPING)[place]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROPOSING)
@pytest.mark.parametrize("start", [(0, 0, 0, 0, 0), (0, 1, 1, 2, 1), (0, 1, 2, 3, 4)], ids=str)
def test_the_running_move_proposes_with_these_probabilities(name: str, start: tuple[int, ...]) -> None:
    move, row = PROPOSING[name]
    space = one_theta("I")
    place = space.index[start]
    expected = row(space, place)
    assert expected.sum() == pytest.approx(1.0)
    sampler = ew.Sampler(FIVE, model="I", concentration=1.3, theta_grid=[1.0], moves=[move], seed=2)
    counts = count_proposals(space, sampler, start, 1500)
    assert_proposes(space, counts, expected)
    if name != "split-merge" or max(start) > 0:
        return  # Of few objects there are too few ways to part them to tell a wrong proposal.
    for sabotage in ({"favour": "farther"}, {"paths": 1}):
        # With one path left out some probability is missing; it stays with the partition.
        wrong = by_hand_table(space, **JUMPING, **sabotage)[place]
        wrong[place] += 1.0 - wrong.sum()
        assert chi_square(counts, counts.sum() * wrong).p_value < LEVEL


# Duplicates and ties: distances that are all but zero.
TIES = np.array([[0.0, 0.0], [2.0, 2.0], [0.0, 2.0], [2.0, 2.0], [1.0, 1.0]])
DUPLICATES = np.array([[1.0], [1.0], [1.0], [1.0], [3.0]])


@pytest.mark.parametrize("X", [TIES, DUPLICATES], ids=["ties and duplicates", "four of the same"])
@pytest.mark.parametrize(("within", "between"), [("average", "average"), ("minimum", "hausdorff")])
def test_split_merge_is_exact_with_duplicates(X: Floats, within: str, between: str) -> None:
    move = SplitMerge(within, between, core_jump=0.2)
    space = make_space(X, "I", 1.3, [1.0])
    target, proposals = space.target(0), split_merge_proposals(space, move)
    matrix = metropolis(proposals, target)
    assert_exact(matrix, target)
    assert imbalance(metropolis(proposals, target, "dropped"), target) > WIDE
    sampler = ew.Sampler(X, model="I", concentration=1.3, theta_grid=[1.0], moves=[move], seed=4)
    assert_follows(space, count_transitions(space, sampler, 20_000), matrix, least=1)


def test_all_distances_equal() -> None:
    """The corners of a simplex: every choice by distance is even."""
    sampler = ew.Sampler(np.eye(4), model="I", moves=[SplitMerge(core_jump=0.2)], seed=1)
    assert len(np.unique(sampler.sample(2000, progress=False).labels, axis=0)) == 15
