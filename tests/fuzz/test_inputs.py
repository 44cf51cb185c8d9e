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


def mapped(X: Floats, folder: Path) -> Any:  # noqa: ANN401 - a mapped file
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


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
WHOLE: dict[str, Callable[[Floats], Any]] = {
    "int8": lambda X: X.astype(np.int8),
    "int64": lambda X: X.astype(np.int64),
    "float16": lambda X: X.astype(np.float16),
    "uint16": lambda X: (X + 100).astype(np.uint16),
    "bool": lambda X: X > 0,
    "integers in a frame": lambda X: pd.DataFrame(X.astype(np.int64)),
}


@pytest.mark.parametrize("model", ["I", "II", "III"])
@pytest.mark.parametrize("guise", GUISES)
def test_the_same_numbers_give_the_same_chain(guise: str, model: str) -> None:
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(12, 3)) * [1.0, 50.0, 0.02]).astype(np.float32).astype(np.float64)
    kept = X.copy()
    given_data = GUISES[guise](X)
    found, expected = ew.Sampler(given_data, model=model), ew.Sampler(X, model=model)
    np.testing.assert_array_equal(found.posterior.coordinates, expected.posterior.coordinates)
    np.testing.assert_array_equal(
        found.sample(5, progress=False).labels, expected.sample(5, progress=False).labels
    )
    np.testing.assert_array_equal(X, kept)


def test_whole_numbers() -> None:
    X = np.round(3.0 * np.random.default_rng(4).normal(size=(14, 2)))
    for convert in WHOLE.values():
        data = convert(X)
        plain = np.asarray(data).astype(np.float64)
        np.testing.assert_array_equal(
            Posterior.from_data(data).coordinates, Posterior.from_data(plain).coordinates
        )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("metric", ["canonical", "euclidean"])
def test_a_mapped_file_is_left_alone(dtype: type, metric: str, tmp_path: Path) -> None:
    X = np.random.default_rng(5).normal(size=(20, 2)).astype(dtype)
    data = mapped(X, tmp_path)
    sampler = ew.Sampler(data, metric=metric, moves="paper-2")
    expected = ew.Sampler(X.astype(np.float64), metric=metric, moves="paper-2")
    np.testing.assert_array_equal(
        sampler.sample(20, progress=False).labels, expected.sample(20, progress=False).labels
    )
    assert not any(
        np.shares_memory(data, array) for array in (sampler.posterior.coordinates, sampler.raw_data)
    )
    np.testing.assert_array_equal(np.load(tmp_path / "X.npy"), X)


def test_changing_the_data_later_does_not_change_the_chain() -> None:
    X = np.random.default_rng(6).normal(size=(10, 2))
    sampler = ew.Sampler(X, metric="euclidean", moves="paper-2")
    before = (sampler.posterior.coordinates.copy(), sampler.raw_data.copy())
    X[:] = 0.0
    np.testing.assert_array_equal(sampler.posterior.coordinates, before[0])
    np.testing.assert_array_equal(sampler.raw_data, before[1])


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


DATES = np.array([["2020-01-01"], ["2020-01-02"]], dtype="datetime64[D]")
RECORDS = np.array([(1.0, 2.0), (3.0, 4.0)], dtype=[("a", "f8"), ("b", "f8")])
ODD: list[Any] = [
    *(None, 5, "data", b"data", np.float64(3.0), ew.Sampler, {"a": [1.0, 2.0]}),
    *([], [[]], [[], []], [[1.0]], [[1.0, 2.0]], [1.0, 2.0], [[[1.0]], [[2.0]]], [[1.0], [2.0, 3.0]]),
    *([["a"], ["b"]], [[1.0], [None]], [[1 + 1j], [2.0]], [[10**400], [1]], [[object()], [object()]]),
    *(np.empty((0, 3)), np.empty((3, 0)), np.zeros((4, 2)), DATES, RECORDS, iter([[1.0], [2.0]])),
    np.ma.masked_array([[1.0], [2.0]], mask=[[True], [False]]),
    pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}),
    *(pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), pd.DataFrame()),
]


@pytest.mark.parametrize("place", range(len(ODD)))
def test_what_is_no_table_is_refused_in_words(place: int) -> None:
    for model in ("I", "II", "III"):
        assert use(ODD[place], model) is None
