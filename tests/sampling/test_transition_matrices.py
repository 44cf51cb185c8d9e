"""Each move leaves the posterior unchanged: proved on every partition of five points, and some on all of six.

No random number is drawn here. Each matrix has sabotaged twins, which must fail by a wide margin: they show
that the tests can tell.
"""

import dataclasses
import functools
import itertools

import numpy as np
import pytest
from sampling import by_hand
from sampling.exact import (
    PRIORS,
    Floats,
    Space,
    assert_stochastic,
    detailed_imbalance,
    gibbs_draw,
    gibbs_sweep,
    imbalance,
    informed_matrix,
    is_irreducible,
    make_own_space,
    make_space,
    metropolis,
    reassign_proposals,
    split_merge_proposals,
)

from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.moves import SplitMerge

MODELS = ("I", "II", "III")
WITHIN = ("average", "maximum", "minimum")
BETWEEN = ("average", "maximum", "minimum", "hausdorff")
DISTANCES = list(itertools.product(WITHIN, BETWEEN))
CONCENTRATION = 1.3
THETAS = (0.125, 1.0, 16.0)
EXACT = 1e-12
WIDE = 1e-3  # What a sabotaged twin must exceed: a thousand million times as much.

# Not symmetric in any way: a symmetric target cannot show a sign error.
FIVE = np.array([[0.0, 0.1], [0.9, -0.4], [1.3, 1.7], [-1.1, 2.2], [2.9, 0.6]])
SIX = np.vstack([FIVE, [-0.7, -1.5]])


NUS = (3.0, 16.0)
SIGMAS = {"I": np.array([0.6]), "II": np.array([0.7, 0.3]), "III": np.array([0.7, 0.2, 0.4])}
ALL = list(itertools.product(MODELS, ("common", "own"), PRIORS))


@functools.cache
def five(model: str, shapes: str = "common", prior: str = "Ewens") -> Space:
    """All partitions of five points; of own shapes given the first ν and a Σ."""
    if shapes == "common":
        return make_space(FIVE, model, theta_grid=THETAS, prior=PRIORS[prior])
    posterior = Posterior.from_data(
        FIVE, model, theta_grid=THETAS, prior=PRIORS[prior], shapes=shapes, nu_grid=NUS
    )
    return make_own_space(posterior, 0, SIGMAS[model])


@functools.cache
def six(model: str) -> Space:
    return make_space(SIX, model, CONCENTRATION, THETAS)


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


@pytest.mark.slow
@pytest.mark.parametrize(("model", "shapes", "prior"), ALL)
def test_every_move_is_exact_whatever_the_shapes_and_the_prior(model: str, shapes: str, prior: str) -> None:
    space = five(model, shapes, prior)
    assert space.possible.sum() == (52 if prior != "Dirichlet-multinomial" else 41)
    target = space.target(1)
    assert_exact(metropolis(reassign_proposals(space), target), target)
    split_merge = split_merge_proposals(space, SplitMerge(core_jump=0.2))
    assert_exact(metropolis(split_merge, target), target)
    assert_exact(informed_matrix(space, 1), target)
    for sabotage in ("dropped", "printed"):
        assert imbalance(metropolis(split_merge, target, sabotage), target) > WIDE
        assert imbalance(informed_matrix(space, 1, sabotage), target) > WIDE
    for item in range(5):
        assert detailed_imbalance(gibbs_draw(space, item, 1), target) < EXACT
    assert_exact(gibbs_sweep(space, 1), target, reversible=False)


@pytest.mark.parametrize("prior", [name for name in PRIORS if name != "Ewens"])
@pytest.mark.parametrize("shapes", ["common", "own"])
def test_the_seats_of_another_prior_are_found(shapes: str, prior: str) -> None:
    """Ewens' weights in the conditional of an object, or its posterior in a Metropolis ratio."""
    space, papers = five("II", shapes, prior), five("II", shapes)
    wrong = dataclasses.replace(space, believed=papers.posterior)
    target = space.target(1)
    sabotaged = gibbs_sweep(wrong, 1)
    assert_stochastic(sabotaged)
    assert imbalance(sabotaged, target) > WIDE
    assert imbalance(metropolis(reassign_proposals(space), papers.target(1)), target) > WIDE


@pytest.mark.parametrize("model", MODELS)
def test_other_parameters_of_own_shapes_are_found(model: str) -> None:
    """Σ or ν in the conditional of an object is another than in the target."""
    space = five(model, "own")
    for wrong in (
        dataclasses.replace(space, nu_index=1),
        dataclasses.replace(space, sigma=1.3 * SIGMAS[model]),
        dataclasses.replace(space, believed=five("II" if model == "I" else "I").posterior, sigma=None),
    ):
        assert imbalance(gibbs_sweep(wrong, 1), space.target(1)) > WIDE


@pytest.mark.parametrize("model", MODELS)
def test_reassign_is_exact(model: str) -> None:
    space = five(model)
    for theta_index in range(len(THETAS)):
        target = space.target(theta_index)
        assert_exact(metropolis(reassign_proposals(space), target), target)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("within", "between"), DISTANCES)
def test_split_merge_is_exact(model: str, within: str, between: str) -> None:
    space = five(model)
    proposals = split_merge_proposals(space, SplitMerge(within=within, between=between))
    for theta_index in range(len(THETAS)):
        target = space.target(theta_index)
        assert_exact(metropolis(proposals, target), target)
        for sabotage in ("dropped", "printed"):
            assert imbalance(metropolis(proposals, target, sabotage), target) > WIDE


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("core_jump", [0.0, 0.3, 0.9])
def test_core_jumps_of_any_probability_are_exact(model: str, core_jump: float) -> None:
    space = five(model)
    proposals = split_merge_proposals(space, SplitMerge(core_jump=core_jump))
    target = space.target(1)
    matrix = metropolis(proposals, target)
    assert_stochastic(matrix)
    assert imbalance(matrix, target) < EXACT
    assert detailed_imbalance(matrix, target) < EXACT


@pytest.mark.parametrize("probabilities", [(0.2, 0.7, 0.1), (0.8, 0.2, 0.0), (0.01, 0.01, 0.98)])
def test_any_probabilities_of_split_and_merge_are_exact(probabilities: tuple[float, float, float]) -> None:
    space = five("II")
    proposals = split_merge_proposals(space, SplitMerge(probabilities=probabilities))
    target = space.target(1)
    assert_exact(metropolis(proposals, target), target)
    assert imbalance(metropolis(proposals, target, "dropped"), target) > 1e-2 * WIDE


@pytest.mark.parametrize(("within", "between"), DISTANCES)
def test_proposals_of_split_merge_add_up(within: str, between: str) -> None:
    """What is not proposed is kept: by choice, for want of a cluster, or because a jump empties a side."""
    space = five("III")
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
    space = five("I")
    real = split_merge_proposals(space, SplitMerge(core_jump=0.3))
    claimed = by_hand_proposals(space, core_jump=0.3, **sabotage)
    target = space.target(1)
    assert imbalance(metropolis(real, target), target) < EXACT
    assert imbalance(metropolis(real, target, claimed=claimed), target) > WIDE


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("theta_index", range(len(THETAS)))
def test_gibbs_is_exact(model: str, theta_index: int) -> None:
    space = five(model)
    target = space.target(theta_index)
    sweep = np.eye(len(target))
    for item in range(5):
        draw = gibbs_draw(space, item, theta_index)
        assert_stochastic(draw)
        assert detailed_imbalance(draw, target) < EXACT
        sweep = sweep @ draw
    assert_exact(sweep, target, reversible=False)
    np.testing.assert_allclose(sweep, gibbs_sweep(space, theta_index), atol=1e-15)


def test_gibbs_with_another_concentration_or_theta_is_found() -> None:
    space = five("II")
    assert imbalance(gibbs_sweep(space, 1, concentration=1.0), space.target(1)) > WIDE
    assert imbalance(gibbs_sweep(space, 0), space.target(1)) > WIDE


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("theta_index", range(len(THETAS)))
def test_informed_split_merge_is_exact(model: str, theta_index: int) -> None:
    space = five(model)
    target = space.target(theta_index)
    assert_exact(informed_matrix(space, theta_index), target)


@pytest.mark.parametrize("sabotage", ["dropped", "printed"])
def test_informed_split_merge_with_a_wrong_ratio_is_found(sabotage: str) -> None:
    space = five("II")
    assert imbalance(informed_matrix(space, 1, sabotage), space.target(1)) > WIDE


@pytest.mark.parametrize("model", MODELS)
def test_a_whole_iteration_of_the_default_schedule_is_exact(model: str) -> None:
    """θ from its conditional, then twenty informed moves and a sweep, on all pairs of partition and θ."""
    space = five(model)
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


def test_reassign_and_split_merge_are_exact_on_six_points() -> None:
    space = six("II")
    target = space.target(1)
    assert len(target) == 203
    assert_exact(metropolis(reassign_proposals(space), target), target)
    proposals = split_merge_proposals(space, SplitMerge())
    assert_exact(metropolis(proposals, target), target)
    for sabotage in ("dropped", "printed"):
        assert imbalance(metropolis(proposals, target, sabotage), target) > WIDE


@pytest.mark.slow
@pytest.mark.parametrize("model", ["II", "III"])
def test_the_moves_of_the_default_schedule_are_exact_on_six_points(model: str) -> None:
    space = six(model)
    target = space.target(1)
    assert_exact(informed_matrix(space, 1), target)
    assert_exact(gibbs_sweep(space, 1), target, reversible=False)
    assert imbalance(informed_matrix(space, 1, "dropped"), target) > WIDE
