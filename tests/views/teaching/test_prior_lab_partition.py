"""Partitions as text, and what is said about them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewens_widgets import ewens
from ewens_widgets.partition import canonical_labels
from ewens_widgets.views.teaching.prior_lab_partition import (
    format_partition,
    parse_partition,
    probability_text,
    product_text,
)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("1 2 | 3", [0, 0, 1]),
        ("3 | 1, 2", [0, 0, 1]),
        ("1 2 3 |", [0, 0, 0]),
        ("|2||1", [0, 1]),
        ("0 0 1", [0, 0, 1]),
        ("7,7,-1", [0, 0, 1]),
        ("ann ann bob", [0, 0, 1]),
        ("1 2 3", [0, 1, 2]),
        ("5", [0]),
    ],
)
def test_clusters_and_labels_are_read(text: str, labels: list[int]) -> None:
    assert parse_partition(text).tolist() == labels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing here yet; write clusters such as 1 2 | 3"),
        (" | ", "nothing here yet"),
        ("1 2 | 2", "object 2 is there twice"),
        ("1 2 | 4", "numbered from 1 to 3, each once; got 4"),
        ("0 1 | 2", "numbered from 1 to 3, each once; got 0"),
        ("1 b | 2", "'b' is not the number of an object"),
        ("1 -2 | 3", "'-2' is not the number of an object"),
        ("0 " * 201, "at most 200 objects"),
    ],
)
def test_what_is_no_partition_is_explained(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        parse_partition(text)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_what_is_written_can_be_read(labels: list[int]) -> None:
    expected = canonical_labels(labels)
    assert parse_partition(format_partition(expected)).tolist() == expected.tolist()


def value_of(text: str, concentration: float) -> float:
    """Work out a product such as λ/λ · 1/(λ+1) with λ = 2."""
    product, _, value = text.partition(" with λ = ")
    assert float(value) == pytest.approx(concentration, rel=1e-3)
    total = 1.0
    for factor in product.split(" · "):
        above, _, below = factor.partition("/")
        names = {"λ": concentration}
        bottom = concentration if below == "λ" else concentration + int(below.strip("()").split("+")[1])
        total *= (names[above] if above in names else int(above)) / bottom
    return total


@pytest.mark.parametrize("labels", [[0], [0, 0, 1], [0, 1, 0, 2, 0, 1], [0, 1, 2, 3, 4, 5, 6, 7]])
@pytest.mark.parametrize("concentration", [0.5, 2.0])
def test_the_product_is_the_probability(labels: list[int], concentration: float) -> None:
    text = product_text(np.array(labels), concentration)
    assert value_of(text, concentration) == pytest.approx(np.exp(ewens.log_pmf(labels, concentration)))


def test_long_products_are_left_out() -> None:
    assert product_text(np.zeros(9, dtype=np.intp), 1.0) == ""


def test_probabilities_are_written_even_where_they_are_too_small_for_a_number() -> None:
    small = probability_text(np.arange(500), 1.0, 10)
    assert "10^-1134.1" in small
    assert '<b class="ew-finite-probability">0</b>' in small, "500 clusters of 10 components are impossible"
    assert '<b class="ew-probability">0.166667</b>' in probability_text(np.array([0, 0, 1]), 1.0, 10)
