"""The three likelihoods against a dense and a rational oracle, and their invariances."""

from collections.abc import Callable

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ewens_widgets as ew
from ewens_widgets.model.likelihood import cluster_statistics, log_likelihoods_from_statistics

THETAS = [2.0**power for power in range(-3, 11)]
Map = Callable[[np.ndarray, np.random.Generator], np.ndarray]
seeds = st.integers(0, 2**32 - 1)


def random_case(
    seed: int, most_rows: int = 60, most_columns: int = 8
) -> tuple[np.ndarray, np.ndarray, float]:
    """Random data with clusters in them, a random partition, and a θ of the default grid."""
    rng = np.random.default_rng(seed)
    n_features = int(rng.integers(1, most_columns + 1))
    n_objects = int(rng.integers(n_features + 2, most_rows + 1))
    centres = 3.0 * rng.normal(size=(4, n_features))
    X = centres[rng.integers(0, 4, size=n_objects)] + rng.normal(size=(n_objects, n_features))
    labels = rng.integers(0, rng.integers(1, n_objects + 1), size=n_objects)
    return X, labels, float(rng.choice(THETAS))


def relative_error(found: float, expected: float) -> float:
    return abs(found - expected) / max(1.0, abs(expected))


@pytest.mark.parametrize("model", oracle.MODELS)
@pytest.mark.parametrize("theta", THETAS)
def test_agrees_with_the_dense_oracle(model: str, theta: float) -> None:
    cases = [random_case(seed)[:2] for seed in range(8)]
    if theta in {THETAS[0], THETAS[-1]}:
        X = np.random.default_rng(2).normal(size=(60, 8))
        cases += [(X, np.arange(60) % n_clusters) for n_clusters in (1, 2, 59, 60)]
    for X, labels in cases:
        expected = oracle.log_likelihood(X, labels.tolist(), theta, model)
        assert relative_error(ew.log_likelihood(X, labels, theta, model), expected) < 1e-10


@pytest.mark.parametrize("model", oracle.MODELS)
def test_the_comparison_notices_a_small_fault(model: str) -> None:
    X, labels, theta = random_case(3)
    expected = oracle.log_likelihood(X, labels.tolist(), theta, model)
    assert relative_error(ew.log_likelihood(X, labels, theta * (1 + 1e-6), model), expected) > 1e-10
    moved = labels.copy()
    moved[0] = labels.max() + 1 if np.sum(labels == labels[0]) > 1 else labels[1]
    assert relative_error(ew.log_likelihood(X, moved, theta, model), expected) > 1e-10
    for other in set(oracle.MODELS) - {model}:
        assert relative_error(ew.log_likelihood(X, labels, theta, other), expected) > 1e-10


@pytest.mark.parametrize("theta", [0.125, 16.0, 1024.0])
@pytest.mark.parametrize("model", ["II", "III"])
@pytest.mark.parametrize("seed", range(4))
def test_badly_scaled_columns_lose_nothing(model: str, theta: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 5)) @ rng.normal(size=(5, 5)) + rng.normal(size=5)
    X *= rng.permutation([1e-8, 1e-4, 1.0, 1e4, 1e8])
    labels = rng.integers(0, 4, size=20)
    exact = oracle.exact_log_likelihood(X, labels.tolist(), theta, model)
    assert relative_error(ew.log_likelihood(X, labels, theta, model), exact) < 1e-12


@pytest.mark.parametrize("model", oracle.MODELS)
@pytest.mark.parametrize(("theta", "tolerance"), [(1e-12, 1e-13), (2.0**20, 1e-6), (2.0**30, 1e-3)])
def test_precision_at_the_ends_of_the_range_of_theta(model: str, theta: float, tolerance: float) -> None:
    X = np.random.default_rng(2).normal(size=(24, 5))
    for n_clusters in (1, 3, 24):
        labels = np.arange(24) % n_clusters
        exact = oracle.exact_log_likelihood(X, labels.tolist(), theta, model)
        found = ew.log_likelihood(X, labels, theta, model)
        assert found == pytest.approx(exact, rel=tolerance, abs=tolerance)


@given(seeds, st.sampled_from(oracle.MODELS))
def test_the_ends_by_hand_and_names_and_orders(seed: int, model: str) -> None:
    X, labels, theta = random_case(seed)
    n_objects, n_features = X.shape
    assert ew.log_likelihood(X, np.arange(n_objects), theta, model) == pytest.approx(0.0, abs=1e-8)
    expected = -n_features / 2 * np.log(1 + theta * n_objects)
    assert ew.log_likelihood(X, [0] * n_objects, theta, model) == pytest.approx(expected, rel=1e-12)
    rng = np.random.default_rng(seed)
    order, names = rng.permutation(n_objects), rng.permutation(1000)
    changed = ew.log_likelihood(X[order], names[labels][order], theta, model)
    assert relative_error(changed, ew.log_likelihood(X, labels, theta, model)) < 1e-9


def orthogonal(X: np.ndarray, rng: np.random.Generator, determinant: float = 1.0) -> np.ndarray:
    matrix = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0]
    matrix[:, 0] *= determinant * np.sign(np.linalg.det(matrix))
    return matrix


def linear_map(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    scales = np.diag(10.0 ** rng.uniform(-1.5, 1.5, size=X.shape[1]))
    return X @ orthogonal(X, rng) @ scales @ orthogonal(X, rng)


def column_scales(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return X * rng.choice([-1.0, 1.0], size=X.shape[1]) * 10.0 ** rng.uniform(-8, 8, size=X.shape[1])


MAPS: dict[str, Map] = {
    "rotation": lambda X, rng: X @ orthogonal(X, rng),
    "reflection": lambda X, rng: X @ orthogonal(X, rng, -1.0),
    "one scale": lambda X, rng: X * 10.0 ** rng.uniform(-12, 12),
    "column scales": column_scales,
    "column permutation": lambda X, rng: X[:, rng.permutation(X.shape[1])],
    "linear map": linear_map,
    "bending": lambda X, rng: np.sinh(X) + rng.normal(size=X.shape[1]),
}
INVARIANCES = {
    "I": ("rotation", "reflection", "one scale", "column permutation"),
    "II": ("one scale", "column scales", "column permutation"),
    "III": ("rotation", "reflection", "column scales", "column permutation", "linear map"),
}
# What each model must notice; these are also the sabotaged twins of the invariances.
SENSITIVITIES = {
    "I": ("column scales", "linear map", "bending"),
    "II": ("rotation", "reflection", "linear map", "bending"),
    "III": ("bending",),
}


@pytest.mark.parametrize(("model", "change"), [(m, change) for m in INVARIANCES for change in INVARIANCES[m]])
@settings(max_examples=25)
@given(seed=seeds)
def test_a_model_is_invariant_to_its_own_group(model: str, change: str, seed: int) -> None:
    X, labels, theta = random_case(seed)
    rng = np.random.default_rng(seed)
    shifted = X + 10.0 * rng.normal(size=X.shape[1])
    found = ew.log_likelihood(MAPS[change](shifted, rng), labels, theta, model)
    assert relative_error(found, ew.log_likelihood(X, labels, theta, model)) < 1e-8


@pytest.mark.parametrize(
    ("model", "change"), [(m, change) for m in SENSITIVITIES for change in SENSITIVITIES[m]]
)
def test_a_model_is_not_invariant_to_more(model: str, change: str) -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(30, 3)) * [1.0, 2.0, 4.0] + 3.0 * rng.integers(0, 2, size=(30, 1))
    labels = rng.integers(0, 3, size=30)
    before, after = (ew.log_likelihood(table, labels, 8.0, model) for table in (X, MAPS[change](X, rng)))
    assert abs(before - after) > 1e-3


@given(seeds)
def test_models_are_nested(seed: int) -> None:
    X, labels, theta = random_case(seed)
    part = labels.tolist()
    one, two, three = (oracle.maximised_log_density(X, part, theta, model) for model in oracle.MODELS)
    assert one <= two + 1e-9
    assert two <= three + 1e-9
    # On whitened data the three canonical tables are one; the package must order the models likewise.
    centred = X - X.mean(axis=0)
    white = np.linalg.svd(centred, full_matrices=False)[0]
    values = [ew.log_likelihood(white, labels, theta, model) for model in oracle.MODELS]
    assert values[0] <= values[1] + 1e-9
    assert values[1] <= values[2] + 1e-9
    densities = [oracle.maximised_log_density(white, part, theta, model) for model in oracle.MODELS]
    np.testing.assert_allclose(np.diff(values), np.diff(densities), atol=1e-8)


@pytest.mark.parametrize("model", oracle.MODELS)
def test_statistics_of_many_partitions_at_once(model: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(12, 3))
    posterior = ew.Posterior.from_data(X, model=model)
    grid = posterior.theta_grid
    parts = [np.arange(12) % count for count in (1, 3, 5)]
    sizes, sums = np.zeros((3, 5)), np.zeros((3, 5, 3))
    for row, labels in enumerate(parts):
        # Empty clusters in the padding must not count.
        count = labels.max() + 1
        sizes[row, :count], sums[row, :count] = cluster_statistics(posterior.coordinates, labels)
    together = log_likelihoods_from_statistics(sizes, sums, 12, grid, posterior.model)
    assert together.shape == (3, 14)
    for row, labels in enumerate(parts):
        np.testing.assert_allclose(together[row], posterior.log_likelihoods(labels), rtol=1e-13, atol=1e-12)


def test_default_model_is_the_most_general_and_wrong_ones_are_refused() -> None:
    X, labels, theta = random_case(5)
    assert ew.log_likelihood(X, labels, theta) == ew.log_likelihood(X, labels, theta, "III")
    with pytest.raises(ValueError, match="got 'IV'"):
        ew.log_likelihood(X, labels, theta, "IV")
    with pytest.raises(ValueError, match=f"length {len(X) - 1}, but there are {len(X)} objects"):
        ew.log_likelihood(X, labels[1:], theta)
