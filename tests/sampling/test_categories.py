"""Categorical columns beside numbers: exact by urn, by transition matrix, and by enumeration."""

import dataclasses
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from sampling.exact import (
    FIVE,
    MODELS,
    PRIORS,
    Floats,
    Labels,
    Space,
    assert_follows,
    canonical,
    count_transitions,
    detailed_imbalance,
    gibbs_draw,
    gibbs_sweep,
    imbalance,
    informed_matrix,
    make_own_space,
    make_space,
    metropolis,
    reassign_proposals,
    split_merge_proposals,
)
from sampling.goodness import LEVEL, chi_square, explain, partition_names

import ewens_widgets as ew
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.moves import SplitMerge

GAP = np.nan
# Not in line with the points, so that they matter; one cell is missing.
CATEGORIES = np.array([[7.0, 1.0], [3.0, 0.0], [7.0, GAP], [5.0, 1.0], [3.0, 1.0]])
THETAS, NUS = (0.5, 4.0), (3.0, 16.0)
SIGMAS = {"I": np.array([0.6]), "II": np.array([0.7, 0.3]), "III": np.array([0.7, 0.2, 0.4])}
SCHEDULES: dict[str, Any] = {
    "default": [("informed-split-merge", 3), "gibbs"],
    "paper's moves": [("reassign", 8), (SplitMerge(core_jump=0.1), 8)],
}
SHAPES = ("common", "own")


def mixed(numbers: Floats, categories: Floats = CATEGORIES) -> Dataset:
    kinds = ["number"] * numbers.shape[1] + ["category"] * categories.shape[1]
    return Dataset(np.column_stack([numbers, categories]), kinds=kinds)


def log_urn(labels: Sequence[int], categories: Floats = CATEGORIES) -> float:
    """Draw the categories of each cluster one after the other: each adds a ball of its colour to the urn."""
    total = 0.0
    for column in categories.T:
        levels = sorted(set(column[~np.isnan(column)]))
        for cluster in set(labels):
            balls = dict.fromkeys(levels, 0.5)
            for value, label in zip(column, labels, strict=True):
                if label == cluster and not math.isnan(value):
                    total += math.log(balls[value] / sum(balls.values()))
                    balls[value] += 1.0
    return total


@functools.cache
def space_of(shapes: str, model: str, prior: str = "Ewens") -> Space:
    if shapes == "common":
        return make_space(mixed(FIVE), model, theta_grid=THETAS, prior=PRIORS[prior])
    settings = {"theta_grid": THETAS, "prior": PRIORS[prior], "shapes": "own", "nu_grid": NUS}
    return make_own_space(Posterior.from_data(mixed(FIVE), model, **settings), 0, SIGMAS[model])


@functools.cache
def urns_space(model: str, theta_grid: tuple[float, ...] = THETAS) -> Space:
    """The posterior of common shapes, found without the package's likelihood of the categories."""
    plain = make_space(FIVE, model, 1.3, theta_grid)
    weights = np.array([math.exp(log_urn(labels)) for labels in plain.labels])
    joint = plain.exact.joint * weights[:, None]
    return Space(dataclasses.replace(plain.exact, joint=joint / joint.sum()))


@pytest.mark.parametrize("model", MODELS)
def test_the_enumerated_posterior_is_that_of_urns(model: str) -> None:
    found = ew.exact_posterior(mixed(FIVE), model=model, concentration=1.3, theta_grid=THETAS)
    np.testing.assert_allclose(found.joint, urns_space(model).exact.joint, rtol=1e-10)
    posterior = found.posterior
    for labels in found.labels[::7]:
        assert posterior.log_categories(labels) == pytest.approx(log_urn(labels.tolist()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "prior"),
    [*((model, "Ewens") for model in MODELS), *(("II", prior) for prior in PRIORS if prior != "Ewens")],
)
@pytest.mark.parametrize("shapes", SHAPES)
def test_every_move_is_exact(shapes: str, model: str, prior: str) -> None:
    space = space_of(shapes, model, prior)
    plain = Posterior.from_data(
        FIVE,
        model,
        theta_grid=THETAS,
        prior=PRIORS[prior],
        shapes=shapes,
        nu_grid=NUS if shapes == "own" else None,
    )
    ignoring = dataclasses.replace(space, believed=plain)
    target = space.target(1)
    for matrix in (
        metropolis(reassign_proposals(space), target),
        metropolis(split_merge_proposals(space, SplitMerge(core_jump=0.2)), target),
        informed_matrix(space, 1),
        *(gibbs_draw(space, item, 1) for item in range(5)),
    ):
        assert detailed_imbalance(matrix, target) < 1e-12
        assert imbalance(matrix, target) < 1e-12
    assert imbalance(informed_matrix(space, 1, "dropped"), target) > 1e-3
    assert imbalance(gibbs_sweep(ignoring, 1), target) > 1e-3


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("move", ["gibbs", "informed-split-merge", "reassign", SplitMerge(core_jump=0.2)])
def test_the_running_move_follows_its_transition_matrix(move: object, model: str) -> None:
    space = urns_space(model, (1.0,))
    believed = make_space(mixed(FIVE), model, 1.3, [1.0])
    right = {
        "gibbs": lambda: gibbs_sweep(believed, 0),
        "informed-split-merge": lambda: informed_matrix(believed, 0),
        "reassign": lambda: metropolis(reassign_proposals(space), space.target(0)),
    }
    matrix = right.get(str(move), lambda: metropolis(split_merge_proposals(space, move), space.target(0)))()
    settings = {"model": model, "concentration": 1.3, "theta_grid": [1.0], "moves": [move], "seed": 11}
    assert imbalance(matrix, space.target(0)) < 1e-12
    counts = count_transitions(space, ew.Sampler(mixed(FIVE), **settings), 40_000)
    assert_follows(space, counts, matrix)


@functools.cache
def own_posterior(prior: str, has_categories: bool = True) -> dict[Labels, Floats]:
    """Own shapes of one column, Σ integrated out by quadrature."""
    log_prior = PRIORS[prior].log_pmf

    def log_weight(labels: Sequence[int]) -> float:
        return log_prior(labels) + (log_urn(labels) if has_categories else 0.0)

    return oracle.exact_own_posterior(FIVE[:, :1], log_weight, 1.0, THETAS, NUS)


def fit(table: dict[Labels, Floats], trace: ew.Trace) -> tuple[float, str]:
    rows, times = np.unique(trace.labels, axis=0, return_counts=True)
    seen = {canonical(row): count for row, count in zip(rows, times.tolist(), strict=True)}
    counts = [seen.get(labels, 0) for labels in table]
    expected = len(trace) * np.array([values.sum() for values in table.values()])
    return chi_square(counts, expected).p_value, explain(partition_names(list(table)), counts, expected)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shapes", SHAPES)
def test_long_chains_sample_the_posterior(shapes: str, model: str, schedule: str) -> None:
    prior = list(PRIORS)[MODELS.index(model)]
    numbers = FIVE[:, :1] if shapes == "own" else FIVE
    settings: dict[str, Any] = {"model": model, "theta_grid": THETAS, "moves": SCHEDULES[schedule]}
    if shapes == "own":
        settings |= {"shapes": "own", "nu_grid": NUS, "prior": PRIORS[prior]}
        table = own_posterior(prior)
    else:
        settings["concentration"] = 1.3
        space = urns_space(model)
        table = dict(zip(space.labels, space.exact.joint, strict=True))
    trace = ew.Sampler(mixed(numbers), seed=3, **settings).sample(8000, 200, 10, progress=False)
    p_value, shown = fit(table, trace)
    assert p_value > LEVEL, shown
    ignored = ew.Sampler(numbers, seed=3, **settings).sample(8000, 200, 10, progress=False)
    assert fit(table, ignored)[0] < 1e-3 * LEVEL


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shapes", SHAPES)
def test_chains_are_those_of_transformed_numbers_and_renamed_categories(
    shapes: str, model: str, schedule: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 3, 40)
    numbers = rng.normal(size=(40, 2)) + 2.0 * labels[:, None]
    categories = np.column_stack([(labels + rng.integers(0, 2, 40)) % 4, rng.integers(0, 3, 40)]).astype(
        float
    )
    categories[rng.random((40, 2)) < 0.1] = GAP
    settings: dict[str, Any] = {"model": model, "shapes": shapes, "moves": SCHEDULES[schedule], "seed": 5}
    settings["initial"] = "k-means"
    sampler = ew.Sampler(mixed(numbers, categories), **settings)
    trace = sampler.sample(60, progress=False)
    assert len(np.unique(trace.labels, axis=0)) > 10
    # The counts are those of the partition, and a saved chain goes on.
    shape = (int(sampler.state.nu_index), sampler.state.sigma) if shapes == "own" else ()
    again = sampler.posterior.log_density(trace.labels[-1], int(trace.theta_index[-1]), None, *shape)
    assert trace.log_posterior[-1] == pytest.approx(again, abs=1e-8)
    sampler.save(tmp_path / "chain.zip")
    continued = ew.Sampler.load(tmp_path / "chain.zip").sample(20, progress=False)
    np.testing.assert_array_equal(continued.labels, sampler.sample(20, progress=False).labels)
    linear = {"I": np.array([[0.0, 3.0], [-3.0, 0.0]]), "II": np.diag([0.1, -7.0])}
    matrix = linear.get(model, np.array([[2.0, 1.0], [0.3, -4.0]]))
    renamed = np.where(np.isnan(categories), GAP, 100.0 - 3.0 * categories)
    other = ew.Sampler(mixed(numbers @ matrix + 5.0, renamed), **settings).sample(60, progress=False)
    np.testing.assert_array_equal(trace.labels, other.labels)
    np.testing.assert_allclose(trace.log_posterior, other.log_posterior, atol=1e-7)


def test_a_column_of_categories_separates_what_numbers_do_not() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 40)
    categories = np.column_stack([np.where(rng.random(80) < 0.05, 1 - labels, labels) for _ in range(6)])
    data = mixed(rng.normal(size=(80, 2)), categories.astype(float))
    trace = ew.Sampler(data, model="III", initial="one-cluster", seed=1).sample(400, 200, progress=False)
    assert ew.adjusted_rand(labels, trace.point_estimate().labels) > 0.85


def test_too_many_columns_of_categories_are_refused() -> None:
    rng = np.random.default_rng(1)
    data = mixed(rng.normal(size=(6, 1)), rng.integers(0, 3, (6, 600)).astype(float))
    with pytest.raises(ValueError, match="600 categorical columns are too many for 6 rows under common"):
        ew.Sampler(data)
    ew.Sampler(data, shapes="own")
