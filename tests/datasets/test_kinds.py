"""Kinds of columns, from simulated columns alone: no threshold has seen a label."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ewens_widgets import datasets
from ewens_widgets.datasets.kinds import KINDS, coded, examine, resolution_of

FloatArray = NDArray[np.float64]

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(30, 400)
units = st.floats(1e-6, 1e6)


def kind_of(column: FloatArray, kinds: str = "auto") -> str:
    # A second column, so that a counter is not the only one.
    other = np.random.default_rng(0).normal(size=len(column))
    return examine(np.column_stack([column, other]), kinds=kinds)[0].kind


@given(seeds, sizes, units, st.floats(-10, 10), st.sampled_from(["normal", "skewed", "uniform", "clusters"]))
def test_continuous_columns_are_numbers_in_any_unit(
    seed: int, n: int, unit: float, shift: float, shape: str
) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    column = {"normal": z, "skewed": np.exp(z), "uniform": rng.random(n), "clusters": z + 8 * (z > 0.3)}[
        shape
    ]
    assert kind_of(unit * (column + shift)) == "number"
    assert resolution_of(unit * (column + shift)) == 0.0


@given(seeds, sizes, units, st.integers(2, 7), st.floats(0, 0.5))
def test_few_values_are_a_category_whatever_they_are_called(
    seed: int, n: int, unit: float, n_values: int, missing: float
) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(4 * n_values + n) % n_values)
    values = unit * np.sort(rng.choice(100, n_values, replace=False))
    column = values[codes]
    column[rng.random(len(column)) < missing] = np.nan
    table = np.column_stack([column, rng.normal(size=len(column))])
    found, _ = examine(table)
    if len(set(column[~np.isnan(column)])) == n_values and np.sum(~np.isnan(column)) >= 4 * n_values:
        assert found.kind == "category"
        assert str(n_values) in found.reason
        np.testing.assert_array_equal(
            coded(table, [found, _])[:, 0], np.where(np.isnan(column), np.nan, codes)
        )


@given(seeds, st.integers(60, 400), units, st.floats(0.15, 0.8).filter(lambda share: abs(share - 0.5) > 0.02))
def test_zeros_with_a_tail_are_read_in_two_parts(seed: int, n: int, unit: float, share: float) -> None:
    rng = np.random.default_rng(seed)
    rain = np.where(np.arange(n) < share * n, 0.0, rng.gamma(2.0, size=n))
    expected = "two-part" if share < 0.5 else "category"
    assert kind_of(unit * rain) == kind_of(-unit * rain) == expected
    said = examine(rain[:, None])[0].reason
    percent = np.mean(rain == 0.0)
    if expected == "two-part":
        assert f"{percent:.0%}".replace("%", " %") + " of the rows are exactly 0, and the others have" in said
    else:
        assert said.endswith("of the rows have the value 0; read as 0 or another value")


def test_zeros_are_compared_with_the_values_next_to_them() -> None:
    """A peak elsewhere, here of rounded numbers, does not hide that zeros are a part of their own."""
    rng = np.random.default_rng(5)
    column = np.where(np.arange(300) < 45, 0.0, rng.normal(0.6, 0.06, 300).round(2))
    column[45:100] = rng.uniform(0.02, 0.5, 55).round(2)
    assert np.unique(column[column > 0.0], return_counts=True)[1].max() > 15
    assert kind_of(column) == kind_of(-column) == "two-part"
    counts = rng.negative_binomial(1, 0.2, 300).astype(float)  # Zeros are its most frequent value.
    assert 0.1 < np.mean(counts == 0.0) < 0.5
    assert kind_of(counts) == "number"


def test_two_part_columns_leave_most_rows_complete() -> None:
    """With the numbers of all four, one row in eight would have no gap."""
    rng = np.random.default_rng(4)
    table = rng.gamma(2.0, size=(200, 5))
    for place, share in enumerate((0.2, 0.45, 0.3, 0.4)):
        table[rng.random(200) < share, place] = 0.0
    found = examine(table)
    assert [kind.kind for kind in found] == ["two-part", "category", "two-part", "category", "number"]
    assert found[1].reason.endswith("read as 0 or another value, to keep more rows complete")
    assert [kind.kind for kind in examine(table, kinds=["two-part"] * 4 + ["auto"])[:4]] == ["two-part"] * 4


@given(seeds, st.integers(100, 400), st.floats(3.0, 30.0))
def test_counts_and_rounded_numbers_stay_numbers(seed: int, n: int, mean: float) -> None:
    column = np.random.default_rng(seed).poisson(mean + 8.0, size=n).astype(float)
    assert kind_of(column) == "number"


@pytest.mark.parametrize("n_values", [10, 30, 200])
def test_one_value_in_most_rows_is_a_category(n_values: int) -> None:
    rng = np.random.default_rng(1)
    column = np.where(np.arange(500) < 300, 1.0, 1.0 + rng.integers(1, n_values, 500))
    found = examine(column.reshape(-1, 1))[0]
    assert found.kind == "category"
    assert "60 % of the rows have the value 1" in found.reason
    assert len(found.levels) == (n_values if n_values <= 50 else 1)
    codes = coded(column.reshape(-1, 1), [found])[:, 0]
    assert set(codes) == set(range(max(n_values if n_values <= 50 else 2, 2)))
    assert np.array_equal(codes == 0, column == 1.0)


def test_counters_constants_and_empty_columns_are_left_out_with_a_reason() -> None:
    rng = np.random.default_rng(2)
    n = 90
    table = np.column_stack([np.arange(1, n + 1), np.full(n, 3.0), np.full(n, np.nan), rng.normal(size=n)])
    reasons = [(kind.kind, kind.reason) for kind in examine(table, ["row", "three", "gap", "x"])]
    assert reasons == [
        ("left out", "it only counts the rows, 1 to 90"),
        ("left out", "it is constant: always 3"),
        ("left out", "all its cells are missing"),
        ("number", ""),
    ]
    assert examine(rng.permutation(table))[0].kind == "number"
    assert [kind.kind for kind in examine(table[:, :1])] == ["number"], "the only column is kept"


@given(seeds, st.integers(20, 300), st.integers(-5, 4), units, st.floats(-100, 100))
def test_resolution_follows_the_unit(seed: int, n: int, places: int, unit: float, shift: float) -> None:
    whole = np.random.default_rng(seed).normal(0, 300, size=n).round()
    whole[:2] = 0.0, 1.0  # so that one is the step
    step = 10.0**-places * unit
    found = resolution_of(step * (whole + round(shift)))
    assert found == pytest.approx(step, rel=1e-6)


@given(seeds, st.integers(0, 2))
def test_digits_as_a_file_has_them_give_the_resolution(seed: int, places: int) -> None:
    column = np.random.default_rng(seed).normal(10, 5, size=200).round(places)
    assert resolution_of(np.array([float(f"{value:.{places}f}") for value in column])) == pytest.approx(
        10.0**-places
    )


def test_the_papers_data_are_numbers() -> None:
    for load in datasets.LOADERS.values():
        assert {kind.kind for kind in examine(load().X)} == {"number"}


def test_the_caller_decides() -> None:
    rng = np.random.default_rng(3)
    table = np.column_stack([rng.integers(0, 3, 50), rng.normal(size=50), np.maximum(rng.normal(size=50), 0)])
    names = ("code", "size", "rain")
    assert [kind.kind for kind in examine(table, names)] == ["category", "number", "two-part"]
    assert [kind.kind for kind in examine(table, names, "numeric")] == ["number"] * 3
    assert [kind.kind for kind in examine(table, names, {"rain": "number"})] == [
        "category",
        "number",
        "number",
    ]
    chosen = examine(table, names, ["left out", "auto", "two-part"])
    assert [kind.kind for kind in chosen] == ["left out", "number", "two-part"]
    assert str(chosen[0]) == "column 'code' is left out: as you said"
    assert {kind.kind for kind in chosen} <= set(KINDS)


@pytest.mark.parametrize(
    ("column", "kinds", "message"),
    [
        (np.arange(30.0) % 7, ["Number"], "'x1' must be one of 'number', 'category'"),
        (np.arange(30.0) % 7, "guess", "'auto', 'numeric', or a kind for each column"),
        (np.arange(30.0) % 7, ["number", "number"], "2 entries, but there are 1"),
        (np.arange(30.0) % 7, {"y": "number"}, "no column 'y'"),
        (np.arange(30.0), ["category"], "30 categories in 30 rows.*Group the rare ones"),
        (np.arange(10_000.0).repeat(2), ["category"], "10000 categories in 20000 rows"),
        (np.arange(30.0) - 10, ["two-part"], "needs zeros, and other numbers of one sign"),
        (np.full(30, np.nan), ["number"], "no values, all its cells are missing"),
    ],
)
def test_what_does_not_suit_a_column_is_refused(column: FloatArray, kinds: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        examine(column.reshape(-1, 1), kinds=kinds)  # type: ignore[arg-type]
