"""The same seed gives the same chain on data that the model does not tell apart, and only on these.

Draw by draw, the parameters included: for common and own shapes, a known and an unknown centre, every prior,
and with columns of categories, whose names do not matter. (With own shapes or an unknown centre, model II
makes a draw for each column in turn, so the order of the columns matters.)
"""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sampling.exact import MODELS, PRIORS, mixed

import ewens_widgets as ew

Floats = NDArray[np.float64]
SCHEDULES = ("default", "paper-1", "paper-2")
ITERATIONS = {"default": 60, "paper-1": 600, "paper-2": 600}


def data() -> Floats:
    rng = np.random.default_rng(8)
    return rng.normal(size=(18, 3)) + 3.0 * rng.integers(0, 3, (18, 1)) * [1.0, -1.0, 0.5]


def rotation(rng: np.random.Generator, size: int = 3) -> Floats:
    return np.linalg.qr(rng.normal(size=(size, size)))[0]


def own_map(model: str, rng: np.random.Generator, any_order: bool = True) -> Floats:
    """A linear map that the model is invariant to."""
    scales = rng.choice([-1.0, 1.0], 3) * 10.0 ** rng.uniform(-2, 2, 3)
    if model == "I":
        return rotation(rng) * scales[0]
    if model == "II":
        return np.diag(scales)[:, rng.permutation(3) if any_order else [0, 1, 2]]
    return rotation(rng) @ np.diag(scales) @ rotation(rng)


def chain(X: Any, model: str, moves: str, **options: Any) -> ew.Trace:  # noqa: ANN401 - of a sampler
    sampler = ew.Sampler(X, model=model, moves=moves, seed=17, **options)
    return sampler.sample(ITERATIONS[moves], progress=False)


def assert_same_chain(first: ew.Trace, second: ew.Trace) -> None:
    for name in ("labels", "theta_index", "nu_index"):
        np.testing.assert_array_equal(first.column(name), second.column(name))
    np.testing.assert_allclose(first.log_posterior, second.log_posterior, atol=1e-7)
    np.testing.assert_allclose(first.concentration, second.concentration, rtol=1e-9)
    np.testing.assert_allclose(first.sigma, second.sigma, rtol=1e-6, atol=1e-8)
    assert first.acceptance == second.acceptance


WAYS: dict[str, dict[str, Any]] = {
    "common": {},
    "unknown centre": {"centre": "unknown", "initial": "k-means"},
    "own": {"shapes": "own"},
    "own, unknown centre": {"shapes": "own", "centre": "unknown"},
    "Gamma": {"concentration": ew.Gamma(1.0, 1.0), "initial": "prior"},
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("moves", SCHEDULES)
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=3)
@given(seed=st.integers(0, 10**6), shift=st.floats(-100.0, 100.0))
def test_the_chain_does_not_see_the_models_own_transformations(
    way: str, model: str, moves: str, seed: int, shift: float
) -> None:
    options = dict(WAYS[way])
    if "own" in way:  # The paper's moves leave one cluster alone for long, but Σ is drawn again each time.
        options |= {"prior": PRIORS[list(PRIORS)[seed % 4]], "initial": np.arange(18) % 3}
    matrix = own_map(model, np.random.default_rng(seed), any_order=way in {"common", "Gamma"})
    original = chain(data(), model, moves, **options)
    assert len(np.unique(original.labels, axis=0)) > (3 if moves != "default" else 15)
    moved = data() @ matrix + shift * np.array([1.0, -2.0, 0.1])
    assert_same_chain(original, chain(moved, model, moves, **options))


@pytest.mark.parametrize("moves", SCHEDULES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shapes", ["common", "own"])
def test_nor_the_names_of_categories(shapes: str, model: str, moves: str) -> None:
    rng = np.random.default_rng(4)
    labels = np.arange(18) % 3
    categories = np.column_stack([(labels + rng.integers(0, 2, 18)) % 4, rng.integers(0, 3, 18)]) + 0.0
    categories[rng.random((18, 2)) < 0.1] = np.nan
    options: dict[str, Any] = {"shapes": shapes, "initial": "k-means"}
    original = chain(mixed(data(), categories), model, moves, **options)
    assert len(np.unique(original.labels, axis=0)) > 3
    other = mixed(data() @ own_map(model, rng, any_order=False) + 5.0, 100.0 - 3.0 * categories)
    assert_same_chain(original, chain(other, model, moves, **options))


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


@pytest.mark.filterwarnings("ignore:column .* is a linear combination")
def test_columns_that_do_not_vary_are_axes_that_may_be_any() -> None:
    turn = rotation(np.random.default_rng(1), 4)
    X = np.column_stack([data(), np.ones(18)])
    assert_same_chain(*(chain(Y, "I", "default", centre="unknown") for Y in (X, X @ turn)))


@pytest.mark.parametrize(
    ("shapes", "moves"), [*(("common", moves) for moves in SCHEDULES), ("own", "default")]
)
@pytest.mark.parametrize(
    ("model", "matrix"),
    [
        ("I", np.diag([1.0, 5.0, 1.0])),
        ("II", rotation(np.random.default_rng(2))),
        ("II", np.array([[1.0, 0.8, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])),
    ],
    ids=["I, one column scaled", "II, rotated", "II, sheared"],
)
def test_the_chain_sees_other_transformations(moves: str, model: str, matrix: Floats, shapes: str) -> None:
    first, second = (chain(X, model, moves, shapes=shapes) for X in (data(), data() @ matrix))
    assert not np.array_equal(first.labels, second.labels)


def test_euclidean_distances_see_the_units() -> None:
    """Only the likelihood is invariant then: the paper's proposals depend on the units."""
    stretched, moved = data() * [1.0, 30.0, 1.0], data() @ rotation(np.random.default_rng(4)) * 50.0 + 3.0
    first, second = (chain(X, "II", "paper-2", metric="euclidean") for X in (data(), stretched))
    assert not np.array_equal(first.labels, second.labels)
    assert_same_chain(*(chain(X, "III", "paper-2", metric="euclidean") for X in (data(), moved)))


def test_relabelled_starts_give_the_same_partitions_at_first() -> None:
    labels = np.arange(18) % 4
    starts = (labels, np.array([9, 2, 7, 5])[labels])
    assert_same_chain(*(chain(data(), "II", "default", initial=start) for start in starts))
