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
from sampling import by_hand
from sampling.exact import (
    FIVE,
    MODELS,
    PRIORS,
    SIX,
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
    make_own_space,
    make_space,
    metropolis,
    reassign_proposals,
    split_merge_proposals,
)
from sampling.goodness import LEVEL, chi_square

import ewens_widgets as ew
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.moves import SplitMerge

WITHIN = ("average", "maximum", "minimum")
BETWEEN = ("average", "maximum", "minimum", "hausdorff")
DISTANCES = list(itertools.product(WITHIN, BETWEEN))
THETAS = (0.125, 1.0, 16.0)
EXACT = 1e-12
WIDE = 1e-3  # What a sabotaged twin must exceed: a thousand million times as much.


NUS = (3.0, 16.0)
SIGMAS = {"I": np.array([0.6]), "II": np.array([0.7, 0.3]), "III": np.array([0.7, 0.2, 0.4])}
# Every family, prior and model with its points. The quick ones have common shapes and Ewens' prior, and the
# matrices of the paper's moves on six points are quick too.
ALL = [
    pytest.param(
        model,
        shapes,
        prior,
        points,
        marks=[pytest.mark.slow] * ((shapes, prior) != ("common", "Ewens") or points == 6),
        id=f"{model}-{shapes}-{prior}-{points}",
    )
    for model, shapes, prior, points in [
        *itertools.product(MODELS, ("common", "own"), PRIORS, (5,)),
        ("II", "common", "Ewens", 6),
        ("III", "common", "Ewens", 6),
    ]
]
POSSIBLE = {5: 52, 6: 203}  # Partitions; at most three clusters of five points: 41.
SPLIT_MERGES = [
    *(SplitMerge(within=within, between=between) for within, between in DISTANCES),
    *(SplitMerge(core_jump=jump) for jump in (0.3, 0.9)),
    *(SplitMerge(probabilities=shares) for shares in ((0.2, 0.7, 0.1), (0.8, 0.2, 0.0), (0.01, 0.01, 0.98))),
]


@functools.cache
def space_of(model: str, shapes: str = "common", prior: str = "Ewens", points: int = 5) -> Space:
    """All partitions of a few points; of own shapes given the first ν and a Σ."""
    X = SIX[:points]
    if shapes == "common":
        return make_space(X, model, theta_grid=THETAS, prior=PRIORS[prior])
    posterior = Posterior.from_data(
        X, model, theta_grid=THETAS, prior=PRIORS[prior], shapes=shapes, nu_grid=NUS
    )
    return make_own_space(posterior, 0, SIGMAS[model])


def by_hand_proposals(space: Space, **sabotage: object) -> Floats:
    table = np.zeros((len(space.labels),) * 2)
    for start, labels in enumerate(space.labels):
        made = by_hand.split_merge_proposals(space.posterior.coordinates, labels, **sabotage)
        for end, probability in made.items():
            table[start, space.index[end]] = probability
    return table


def assert_exact(matrix: Floats, target: Floats, reversible: bool = True) -> None:
    assert_stochastic(matrix)
    assert imbalance(matrix, target) < EXACT
    assert is_irreducible(matrix, target)
    if reversible:
        assert detailed_imbalance(matrix, target) < EXACT


@pytest.mark.parametrize(("model", "shapes", "prior", "points"), ALL)
def test_every_move_is_exact(model: str, shapes: str, prior: str, points: int) -> None:
    space = space_of(model, shapes, prior, points)
    assert space.possible.sum() == (41 if prior == "Dirichlet-multinomial" else POSSIBLE[points])
    reassign = reassign_proposals(space)
    split_merge = split_merge_proposals(space, SplitMerge(core_jump=0.2))
    # All θ where it is quick, else the one in the middle.
    for g in range(len(THETAS)) if (shapes, prior, points) == ("common", "Ewens", 5) else [1]:
        target = space.target(g)
        assert_exact(metropolis(reassign, target), target)
        assert_exact(metropolis(split_merge, target), target)
        assert_exact(informed_matrix(space, g), target)
        assert imbalance(metropolis(split_merge, target, "dropped"), target) > WIDE
        assert imbalance(metropolis(split_merge, target, "printed"), target) > WIDE
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


@pytest.mark.parametrize("prior", [name for name in PRIORS if name != "Ewens"])
@pytest.mark.parametrize("shapes", ["common", "own"])
def test_the_seats_of_another_prior_are_found(shapes: str, prior: str) -> None:
    """Ewens' weights in the conditional of an object, or its posterior in a Metropolis ratio."""
    space, papers = space_of("II", shapes, prior), space_of("II", shapes)
    wrong = dataclasses.replace(space, believed=papers.posterior)
    target = space.target(1)
    sabotaged = gibbs_sweep(wrong, 1)
    assert_stochastic(sabotaged)
    assert imbalance(sabotaged, target) > WIDE
    assert imbalance(metropolis(reassign_proposals(space), papers.target(1)), target) > WIDE


@pytest.mark.parametrize("model", MODELS)
def test_other_parameters_of_own_shapes_are_found(model: str) -> None:
    """Σ or ν in the conditional of an object is another than in the target."""
    space = space_of(model, "own")
    for wrong in (
        dataclasses.replace(space, nu_index=1),
        dataclasses.replace(space, sigma=1.3 * SIGMAS[model]),
        dataclasses.replace(space, believed=space_of("II" if model == "I" else "I").posterior, sigma=None),
    ):
        assert imbalance(gibbs_sweep(wrong, 1), space.target(1)) > WIDE


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("move", SPLIT_MERGES, ids=str)
def test_split_merge_is_exact_with_any_options(model: str, move: SplitMerge) -> None:
    space = space_of(model)
    proposals = split_merge_proposals(space, move)
    for g in range(len(THETAS)):
        target = space.target(g)
        assert_exact(metropolis(proposals, target), target)
        for sabotage in ("dropped", "printed"):
            wide = WIDE if move.probabilities == SplitMerge().probabilities else 1e-2 * WIDE
            assert imbalance(metropolis(proposals, target, sabotage), target) > wide


@pytest.mark.parametrize("model", MODELS)
def test_split_merge_without_core_jumps_leaves_the_posterior_unchanged(model: str) -> None:
    space = space_of(model)
    target = space.target(1)
    matrix = metropolis(split_merge_proposals(space, SplitMerge(core_jump=0.0)), target)
    assert_stochastic(matrix)
    assert imbalance(matrix, target) < EXACT
    assert detailed_imbalance(matrix, target) < EXACT


@pytest.mark.parametrize(("within", "between"), DISTANCES)
def test_proposals_of_split_merge_add_up(within: str, between: str) -> None:
    """What is not proposed is kept: by choice, for want of a cluster, or because a jump empties a side."""
    space = space_of("III")
    options = {"within": within, "between": between, "core_jump": 0.3}
    proposals = split_merge_proposals(space, SplitMerge(**options))
    kept = np.diag(by_hand_proposals(space, **options))
    assert np.all(proposals >= 0.0)
    np.testing.assert_allclose(proposals.sum(axis=1), 1.0 - kept, atol=1e-12)
    n_clusters = np.array([max(labels) + 1 for labels in space.labels])
    assert proposals[n_clusters == 1].sum() == pytest.approx(0.475, abs=0.475 * 0.3)
    assert proposals[n_clusters == 5].sum() == pytest.approx(0.475)


@pytest.mark.parametrize("sabotage", [{"favour": "farther"}, {"paths": 1}])
def test_claiming_another_proposal_than_the_real_one_is_found(sabotage: dict[str, object]) -> None:
    space = space_of("I")
    real = split_merge_proposals(space, SplitMerge(core_jump=0.3))
    claimed = by_hand_proposals(space, core_jump=0.3, **sabotage)
    target = space.target(1)
    assert imbalance(metropolis(real, target), target) < EXACT
    assert imbalance(metropolis(real, target, claimed=claimed), target) > WIDE


def test_gibbs_with_another_concentration_or_theta_is_found() -> None:
    space = space_of("II")
    assert imbalance(gibbs_sweep(space, 1, concentration=1.0), space.target(1)) > WIDE
    assert imbalance(gibbs_sweep(space, 0), space.target(1)) > WIDE


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
    target = joint.ravel()
    # The next state does not depend on the last θ, so its law follows from the partitions alone.
    assert np.abs(space.exact.probabilities @ iteration - target).max() < EXACT


# The running moves


@functools.cache
def one_theta(model: str, concentration: float = 1.3) -> Space:
    return make_space(FIVE, model, concentration, [1.0])


def reassign_matrix(model: str, concentration: float = 1.3) -> Floats:
    space = one_theta(model, concentration)
    return metropolis(reassign_proposals(space), space.target(0))


def split_merge_matrix(model: str, move: SplitMerge, acceptance: str = "right") -> Floats:
    space = one_theta(model)
    return metropolis(split_merge_proposals(space, move), space.target(0), acceptance)


# Move, model and settings of a chain, the matrix that its transitions follow, and one that they do not.
RUNNING: list[tuple[object, str, dict[str, object], Callable[[], Floats], Callable[[], Floats]]] = [
    *(
        (move, model, {}, functools.partial(right, model), functools.partial(wrong, model))
        for model in MODELS
        for move, right, wrong in (
            (
                "gibbs",
                lambda model: gibbs_sweep(one_theta(model), 0),
                lambda model: gibbs_sweep(one_theta(model), 0, concentration=1.0),
            ),
            (
                "informed-split-merge",
                lambda model: informed_matrix(one_theta(model), 0),
                lambda model: informed_matrix(one_theta(model), 0, "dropped"),
            ),
            ("reassign", reassign_matrix, lambda model: reassign_matrix(model, 1.0)),
        )
    ),
    # Every pair of distances once, the models in turn.
    *(
        (
            move,
            model,
            {},
            functools.partial(split_merge_matrix, model, move),
            functools.partial(split_merge_matrix, model, move, "dropped"),
        )
        for pair, model in zip(DISTANCES, itertools.cycle(MODELS), strict=False)
        for move in [SplitMerge(*pair, core_jump=0.1)]
    ),
    (
        SplitMerge(),
        "II",
        {"acceptance": "as-printed"},
        functools.partial(split_merge_matrix, "II", SplitMerge(), "printed"),
        functools.partial(split_merge_matrix, "II", SplitMerge()),
    ),
]


@pytest.mark.filterwarnings("ignore:acceptance=")
@pytest.mark.parametrize(("move", "model", "settings", "right", "wrong"), RUNNING)
def test_the_running_move_follows_its_transition_matrix(
    move: object,
    model: str,
    settings: dict[str, object],
    right: Callable[[], Floats],
    wrong: Callable[[], Floats],
) -> None:
    sampler = ew.Sampler(
        FIVE, model=model, concentration=1.3, theta_grid=[1.0], moves=[move], seed=11, **settings
    )
    counts = count_transitions(one_theta(model), sampler, 60_000)
    assert_follows(one_theta(model), counts, right())
    assert_does_not_follow(one_theta(model), counts, wrong())


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
    "split-merge": (SplitMerge(**JUMPING), lambda space, place: by_hand_proposals(space, **JUMPING)[place]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROPOSING)
@pytest.mark.parametrize(
    "start", [(0, 0, 0, 0, 0), (0, 1, 1, 2, 1), (0, 1, 0, 0, 1), (0, 1, 2, 3, 4)], ids=str
)
def test_the_running_move_proposes_with_these_probabilities(name: str, start: tuple[int, ...]) -> None:
    move, row = PROPOSING[name]
    space = one_theta("I")
    place = space.index[start]
    expected = row(space, place)
    assert expected.sum() == pytest.approx(1.0)
    sampler = ew.Sampler(FIVE, model="I", concentration=1.3, theta_grid=[1.0], moves=[move], seed=2)
    counts = count_proposals(space, sampler, start, 2500)
    assert_proposes(space, counts, expected)
    if name != "split-merge" or max(start) > 0:
        return  # Of few objects there are too few ways to part them to tell a wrong proposal.
    for sabotage in ({"favour": "farther"}, {"paths": 1}):
        # With one path left out some probability is missing; it stays with the partition.
        wrong = by_hand_proposals(space, **JUMPING, **sabotage)[place]
        wrong[place] += 1.0 - wrong.sum()
        assert chi_square(counts, counts.sum() * wrong).p_value < LEVEL
