"""Data and settings in every guise and size: the same answer, or a reason why there is none."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

import ewens_widgets as ew
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.coordinates import check_canonical
from ewens_widgets.model.posterior import Posterior

Floats = NDArray[np.float64]


def read_only(X: Floats) -> Floats:
    result = X.copy()
    result.setflags(write=False)
    return result


def strided(X: Floats) -> Floats:
    """Every other row and column of a larger table, backwards."""
    larger = np.full((2 * len(X), 3 * X.shape[1]), np.nan)
    larger[::2, ::3] = X
    return larger[::2, ::3][::-1][::-1]


GUISES: dict[str, Callable[[Floats], Any]] = {
    "list": lambda X: X.tolist(),
    "Fortran order": np.asfortranarray,
    "read-only": read_only,
    "strided": strided,
    "transposed twice": lambda X: np.ascontiguousarray(X.T).T,
    "other byte order": lambda X: X.astype(">f8"),
    "objects": lambda X: X.astype(object),
    "float32": lambda X: X.astype(np.float32),
    "long double": lambda X: X.astype(np.longdouble),
    "tuples": lambda X: tuple(map(tuple, X.tolist())),
    "data frame": lambda X: pd.DataFrame(X, columns=[f"c{place}" for place in range(X.shape[1])]),
    "data frame of mixed types": lambda X: pd.DataFrame(X).astype({0: np.float32}),
    "nullable data frame": lambda X: pd.DataFrame(X).astype("Float64"),
    "unmasked": np.ma.masked_array,
    "Dataset": Dataset,
}
TYPES = (np.int8, np.int64, np.float16, np.uint16, bool)


@pytest.mark.parametrize("guise", GUISES)
def test_the_same_numbers_give_the_same_chain(guise: str) -> None:
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(12, 3)) * [1.0, 50.0, 0.02]).astype(np.float32).astype(np.float64)
    kept = X.copy()
    for model in ("I", "II", "III"):
        found, expected = (ew.Sampler(data, model=model) for data in (GUISES[guise](X), X))
        np.testing.assert_array_equal(found.posterior.coordinates, expected.posterior.coordinates)
        np.testing.assert_array_equal(found.advance(5).labels, expected.advance(5).labels)
    np.testing.assert_array_equal(X, kept)


def test_whole_numbers() -> None:
    X = np.random.default_rng(4).integers(0, 9, size=(14, 2))
    for kind in TYPES:
        plain = Posterior.from_data(X.astype(kind).astype(np.float64)).coordinates
        for data in (X.astype(kind), pd.DataFrame(X.astype(kind))):
            np.testing.assert_array_equal(Posterior.from_data(data).coordinates, plain)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("metric", ["canonical", "euclidean"])
def test_a_mapped_file_is_left_alone_and_later_changes_do_not_matter(
    dtype: type, metric: str, tmp_path: Path
) -> None:
    X = np.random.default_rng(5).normal(size=(20, 2)).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    samplers = [ew.Sampler(data, metric=metric, moves="paper-2") for data in (mapped, X, X.astype(float))]
    assert not np.shares_memory(mapped, samplers[0].posterior.coordinates)
    assert not np.shares_memory(mapped, samplers[0].raw_data)
    np.testing.assert_array_equal(np.load(tmp_path / "X.npy"), X)
    X[:] = 0.0
    first, *others = (sampler.advance(20).labels for sampler in samplers)
    for other in others:
        np.testing.assert_array_equal(other, first)


def use(X: Any, model: str, **options: Any) -> ew.Sampler | None:  # noqa: ANN401 - anything
    """Run a few iterations; None where the input is refused for a reason that is told."""
    try:
        sampler = ew.Sampler(X, model=model, **options)
    except (ValueError, TypeError) as fault:
        assert len(str(fault)) > 25  # noqa: PT017 - refusing is fine, silently is not
        return None
    check_canonical(sampler.posterior.coordinates, sampler.posterior.model, sampler.posterior.gaps)
    for event in sampler.events(3):
        assert math.isfinite(event.log_posterior)
        assert math.isfinite(event.concentration)
        assert event.labels.min() == 0
        assert event.labels.max() < len(event.labels)
    return sampler


numbers = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True) | st.sampled_from(
    [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1e-300, 1e300, 1.7e308, -1.7e308, 1e16, 1.0, 2.0, math.nan]
)


@pytest.mark.nightly
@settings(max_examples=600)
@given(
    X=arrays(np.float64, array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6), elements=numbers),
    model=st.sampled_from(["I", "II", "III"]),
)
def test_any_numbers(X: Floats, model: str) -> None:
    use(X, model)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    exponents=st.lists(st.integers(-1060, 1015), min_size=2, max_size=2),
    offset=st.sampled_from([0.0, 1.0, -1e3, 1e9, 1e14, 1e17]),
    model=st.sampled_from(["I", "II", "III"]),
    moves=st.sampled_from(["default", "paper-2"]),
)
def test_extreme_units(seed: int, exponents: list[int], offset: float, model: str, moves: str) -> None:
    """Powers of two change no digit, so that models II and III must not see them, but for lost digits."""
    base = np.random.default_rng(seed).normal(size=(8, 2)) + offset
    powers = exponents if model != "I" else exponents[:1] * 2
    with np.errstate(over="ignore", under="ignore"):
        X = np.ldexp(base, powers)
        whole = bool(np.all(np.isfinite(X)) and np.all(np.ldexp(X, np.negative(powers)) == base))
    sampler = use(X, model, moves=moves)
    plain = use(base, model, moves=moves)
    if whole:
        assert (sampler is None) == (plain is None)
        if sampler is not None and plain is not None:
            np.testing.assert_array_equal(sampler.posterior.coordinates, plain.posterior.coordinates)


@pytest.mark.nightly
@settings(max_examples=600)
@given(
    concentration=numbers | st.builds(lambda a, b: (a, b), numbers, numbers),
    alpha=numbers | st.just(1.0),
    grid=st.none() | st.lists(numbers, max_size=4),
    moves=st.sampled_from(["default", "paper-1", "paper-2"]),
    initial=st.sampled_from(["singletons", "k-means", "prior"]),
)
def test_any_parameters(
    concentration: Any,  # noqa: ANN401 - a number, or two for a prior
    alpha: float,
    grid: list[float] | None,
    moves: str,
    initial: str,
) -> None:
    X = np.random.default_rng(7).normal(size=(6, 2))
    if isinstance(concentration, tuple):
        try:
            concentration = ew.Gamma(*concentration)
        except ValueError:
            return
    use(X, "II", concentration=concentration, alpha=alpha, theta_grid=grid, moves=moves, initial=initial)
