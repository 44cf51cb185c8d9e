"""The same seed gives the same chain on data that the model does not tell apart, and only on these."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sampling.exact import PRIORS

import ewens_widgets as ew

Floats = NDArray[np.float64]
SCHEDULES = ("default", "paper-1", "paper-2")
ITERATIONS = {"default": 100, "paper-1": 600, "paper-2": 600}


def data() -> Floats:
    rng = np.random.default_rng(8)
    return rng.normal(size=(18, 3)) + 3.0 * rng.integers(0, 3, (18, 1)) * [1.0, -1.0, 0.5]


def rotation(rng: np.random.Generator, size: int = 3) -> Floats:
    return np.linalg.qr(rng.normal(size=(size, size)))[0]


def own_map(model: str, rng: np.random.Generator) -> Floats:
    """A linear map that the model is invariant to."""
    scales = rng.choice([-1.0, 1.0], 3) * 10.0 ** rng.uniform(-2, 2, 3)
    if model == "I":
        return rotation(rng) * scales[0]
    if model == "II":
        return np.diag(scales)[:, rng.permutation(3)]
    return rotation(rng) @ np.diag(scales) @ rotation(rng)


def chain(X: Floats, model: str, moves: str, **options: object) -> ew.Trace:
    sampler = ew.Sampler(X, model=model, moves=moves, seed=17, **options)
    return sampler.sample(ITERATIONS[moves], progress=False)


def assert_same_chain(first: ew.Trace, second: ew.Trace) -> None:
    np.testing.assert_array_equal(first.labels, second.labels)
    np.testing.assert_array_equal(first.theta_index, second.theta_index)
    np.testing.assert_allclose(first.log_posterior, second.log_posterior, atol=1e-7)
    assert first.acceptance == second.acceptance


@pytest.mark.parametrize("model", ["I", "II", "III"])
@pytest.mark.parametrize("moves", SCHEDULES)
@settings(max_examples=6)
@given(seed=st.integers(0, 10**6), shift=st.floats(-100.0, 100.0))
def test_the_chain_does_not_see_the_models_own_transformations(
    model: str, moves: str, seed: int, shift: float
) -> None:
    X = data()
    transformed = X @ own_map(model, np.random.default_rng(seed)) + shift * np.array([1.0, -2.0, 0.1])
    original = chain(X, model, moves)
    assert len(np.unique(original.labels, axis=0)) > 30
    assert_same_chain(original, chain(transformed, model, moves))


@pytest.mark.parametrize("model", ["I", "II", "III"])
@pytest.mark.parametrize("moves", SCHEDULES)
@settings(max_examples=4)
@given(seed=st.integers(0, 10**6), shift=st.floats(-100.0, 100.0))
def test_own_shapes_do_not_see_them_either(model: str, moves: str, seed: int, shift: float) -> None:
    """Draw by draw, ν and Σ included. (Model II draws its variances in the order of the columns.)"""
    rng = np.random.default_rng(seed)
    matrix = np.diag(rng.choice([-1.0, 1.0], 3) * 10.0 ** rng.uniform(-2, 2, 3))
    if model != "II":
        matrix = own_map(model, rng)
    prior, start = PRIORS[list(PRIORS)[seed % 4]], np.arange(18) % 3
    options: dict[str, Any] = {"shapes": "own", "prior": prior, "initial": start}
    original = chain(data(), model, moves, **options)
    # The paper's moves leave one cluster alone for long, but Σ is drawn again each time.
    assert len(np.unique(original.labels, axis=0)) > (20 if moves == "default" else 3)
    transformed = chain(data() @ matrix + shift * np.array([1.0, -2.0, 0.1]), model, moves, **options)
    assert_same_chain(original, transformed)
    np.testing.assert_array_equal(original.nu_index, transformed.nu_index)
    np.testing.assert_allclose(original.sigma, transformed.sigma, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n_rows", [4, 27])
def test_axes_do_not_depend_on_rounding_where_many_objects_are_equally_far(n_rows: int) -> None:
    """The corners of a simplex, or of a cube: the axes of own shapes begin with the first of them."""
    X = np.array(list(itertools.product(range(3), repeat=3)), dtype=float)
    X = X if n_rows == 27 else np.eye(4)[:, :3]
    for seed in range(8):
        matrix = own_map("III", np.random.default_rng(seed))
        first, second = (
            ew.Sampler(Y, model="III", shapes="own", seed=3).sample(30, progress=False)
            for Y in (X, X @ matrix - 3.0)
        )
        assert_same_chain(first, second)
        np.testing.assert_allclose(first.sigma, second.sigma, rtol=1e-6, atol=1e-9)


def test_own_shapes_see_other_transformations() -> None:
    """Rotations under model II, and a column's own scale under model I."""
    for model, matrix in (("I", np.diag([1.0, 5.0, 1.0])), ("II", rotation(np.random.default_rng(2)))):
        first, second = (chain(X, model, "default", shapes="own") for X in (data(), data() @ matrix))
        assert not np.array_equal(first.labels, second.labels)


@pytest.mark.parametrize("initial", ["k-means", "prior", "one-cluster"])
def test_other_starts_are_invariant_too(initial: str) -> None:
    transformed = data() @ own_map("III", np.random.default_rng(5)) - 7.0
    assert_same_chain(
        chain(data(), "III", "default", initial=initial),
        chain(transformed, "III", "default", initial=initial),
    )


def test_a_gamma_concentration_is_invariant_too() -> None:
    transformed = data() @ own_map("III", np.random.default_rng(5)) - 7.0
    first, second = (
        chain(X, "III", "paper-2", concentration=ew.Gamma(1.0, 1.0)) for X in (data(), transformed)
    )
    assert_same_chain(first, second)
    np.testing.assert_allclose(first.concentration, second.concentration, rtol=1e-9)


@pytest.mark.parametrize("moves", SCHEDULES)
@pytest.mark.parametrize(
    ("model", "matrix"),
    [
        ("I", np.diag([1.0, 5.0, 1.0])),
        ("II", rotation(np.random.default_rng(2))),
        ("II", np.array([[1.0, 0.8, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])),
    ],
    ids=["I, one column scaled", "II, rotated", "II, sheared"],
)
def test_the_chain_sees_other_transformations(moves: str, model: str, matrix: Floats) -> None:
    assert not np.array_equal(chain(data(), model, moves).labels, chain(data() @ matrix, model, moves).labels)


def test_euclidean_distances_are_not_invariant() -> None:
    """Only the likelihood is then: the paper's proposals depend on the units."""
    stretched = data() * [1.0, 30.0, 1.0]
    first, second = (chain(X, "II", "paper-2", metric="euclidean") for X in (data(), stretched))
    assert not np.array_equal(first.labels, second.labels)


def test_euclidean_distances_are_invariant_to_shift_rotation_and_a_common_scale() -> None:
    moved = data() @ rotation(np.random.default_rng(4)) * 50.0 + 3.0
    first, second = (chain(X, "III", "paper-2", metric="euclidean") for X in (data(), moved))
    assert_same_chain(first, second)


def test_relabelled_starts_give_the_same_partitions_at_first() -> None:
    labels = np.arange(18) % 4
    renamed = np.array([9, 2, 7, 5])[labels]
    assert_same_chain(
        chain(data(), "II", "default", initial=labels), chain(data(), "II", "default", initial=renamed)
    )
