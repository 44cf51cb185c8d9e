from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, mutual_info_score

from ewens_widgets.analysis.agreement import (
    adjusted_rand,
    confusion_table,
    error_rate,
    variation_of_information,
)
from ewens_widgets.partition import all_partitions

MEASURES = [error_rate, adjusted_rand, variation_of_information]


@st.composite
def labellings(draw: st.DrawFn, count: int) -> list[list[int]]:
    size = draw(st.integers(1, 12))
    return [draw(st.lists(st.integers(0, 5), min_size=size, max_size=size)) for _ in range(count)]


def brute_force_error(true: list[int], found: list[int]) -> float:
    """Try every one-to-one matching."""
    names = list(range(max(*true, *found) + 1))
    matches = max(
        sum(a == mapping[b] for a, b in zip(true, found, strict=True))
        for mapping in (dict(zip(names, order, strict=True)) for order in permutations(names))
    )
    return 1 - matches / len(true)


@given(labellings(2))
def test_measures_equal_trying_all_matchings_and_scikit_learn(pair: list[list[int]]) -> None:
    first, second = pair
    assert error_rate(*pair) == pytest.approx(brute_force_error(*pair), abs=1e-12)
    assert adjusted_rand(*pair) == pytest.approx(adjusted_rand_score(*pair), abs=1e-12)
    entropy = mutual_info_score(first, first) + mutual_info_score(second, second)
    expected = entropy - 2 * mutual_info_score(first, second)
    assert variation_of_information(first, second) == pytest.approx(expected, abs=1e-12)
    table = confusion_table(*pair)
    assert table.counts.sum() == len(first)
    assert table.error_rate == pytest.approx(error_rate(*pair), abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
@given(pair=labellings(2), names=st.permutations(range(6)))
def test_symmetric_and_blind_to_names(measure: object, pair: list[list[int]], names: list[int]) -> None:
    first, second = pair
    value = measure(first, second)
    assert measure(second, first) == pytest.approx(value, abs=1e-12)
    assert measure([names[label] for label in first], second) == pytest.approx(value, abs=1e-12)
    assert measure([f"c{label}" for label in first], second) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("measure", [variation_of_information, error_rate])
@given(triple=labellings(3))
def test_triangle_inequality(measure: object, triple: list[list[int]]) -> None:
    first, second, third = triple
    assert measure(first, third) <= measure(first, second) + measure(second, third) + 1e-12


def test_zero_for_equal_partitions_and_for_no_others() -> None:
    partitions = all_partitions(5)
    for i, first in enumerate(partitions):
        for j, second in enumerate(partitions):
            equal = i == j
            assert (variation_of_information(first, second) == 0.0) is equal
            assert (error_rate(first, second) == 0.0) is equal
            assert (adjusted_rand(first, second) == 1.0) is equal


def test_known_values() -> None:
    assert variation_of_information([0] * 8, range(8)) == pytest.approx(np.log(8))
    assert error_rate([0] * 8, range(8)) == 7 / 8
    assert adjusted_rand([0] * 8, range(8)) == 0.0
    assert error_rate([0, 0, 1, 1], [5, 5, 5, 3]) == 0.25
    assert error_rate([0, 0, 1, 1, 2], [-1, -1, 4, 4, 4]) == 0.2


def test_confusion_table() -> None:
    table = confusion_table(["b", "b", "a", "a", "a", "c"], [7, 7, 9, 9, 7, 9])
    np.testing.assert_array_equal(table.true_labels, ["b", "a", "c"])
    np.testing.assert_array_equal(table.found_labels, [7, 9])
    np.testing.assert_array_equal(table.counts, [[2, 0], [1, 2], [0, 1]])
    assert table.n_wrong == 2
    assert table.error_rate == pytest.approx(error_rate(["b", "b", "a", "a", "a", "c"], [7, 7, 9, 9, 7, 9]))
    assert repr(table).splitlines() == [
        "true \\ found  7  9",
        "           b  2  0",
        "           a  1  2",
        "           c  0  1",
        "2 of 6 wrong (0.333)",
    ]
    html = confusion_table(["<b>", "<b>"], [0, 1])._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html


@pytest.mark.parametrize("measure", [*MEASURES, confusion_table])
def test_refusals(measure: object) -> None:
    with pytest.raises(ValueError, match="got 3 and 2 labels"):
        measure([0, 1, 1], [0, 1])
    with pytest.raises(ValueError, match="one-dimensional"):
        measure([[0, 1]], [0, 1])
    with pytest.raises(ValueError, match="empty"):
        measure([], [])
    with pytest.raises(ValueError, match="NaN"):
        measure([0.0, float("nan")], [0, 1])
