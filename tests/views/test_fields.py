"""Controls that explain what is wrong."""

import numpy as np
import pytest

from ewens_widgets.views.fields import entry, parse_grid, parse_positive, parse_share, whole_number

pytestmark = pytest.mark.usefixtures("wire")


def test_a_wrong_value_is_explained_below_and_a_right_one_clears_that() -> None:
    field = entry("λ", "-1", parse_positive("λ"), "ew-lambda", "what it does")
    with pytest.raises(ValueError, match="λ must be positive"):
        field.read()
    assert field.problem == "λ must be positive and finite; got -1.0."
    assert "λ must be positive" in field.children[-1].value
    field.control.value = "0,5"
    assert field.read() == 0.5
    assert field.problem == ""
    assert field.children[-1].value == ""


def test_problems_are_escaped() -> None:
    field = entry("λ", "<script>", parse_positive("λ"), "ew-lambda", "what it does")
    with pytest.raises(ValueError, match="is not a number"):
        field.read()
    assert "<script>" not in field.children[-1].value


@pytest.mark.parametrize("text", ["", "a", "1e", "nan", "inf", "0x1", "1 2", "--1"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        parse_positive("λ")(text)


@pytest.mark.parametrize(("text", "value"), [("12", 12), (" 1 000 ", 1000), ("0", 0)])
def test_whole_numbers(text: str, value: int) -> None:
    assert whole_number("seed", 0)(text) == value


@pytest.mark.parametrize("text", ["", "1.5", "x", "9" * 30])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        whole_number("seed", 0)(text)


def test_a_whole_number_out_of_range() -> None:
    with pytest.raises(ValueError, match="between 1 and 10; got 11"):
        whole_number("repeats", 1, 10)("11")


def test_shares() -> None:
    assert parse_share("core jump")("0.01") == 0.01
    with pytest.raises(ValueError, match="below 1"):
        parse_share("core jump")("1")


@pytest.mark.parametrize(
    ("text", "grid"),
    [
        ("2^-3 … 2^10", 2.0 ** np.arange(-3, 11)),
        ("2^0...2^2", [1, 2, 4]),
        ("2^1 to 2^2", [2, 4]),
        ("1/8, 1, 2^3", [0.125, 1, 8]),
        ("4 2 1", [1, 2, 4]),
    ],
)
def test_grids(text: str, grid: list[float]) -> None:
    np.testing.assert_array_equal(parse_grid(text), grid)


def test_an_empty_grid_is_the_default() -> None:
    assert parse_grid("  ") is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1, -2", "positive"),
        ("1, 1", "twice"),
        ("a", "not a number"),
        ("1/0", "positive and finite"),
        ("2^5 … 2^1", "powers must increase"),
        ("2^0 … 2^50", r"2\*\*30"),
        (" ".join(map(str, range(1, 200))), "at most 100"),
    ],
)
def test_wrong_grids(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_grid(text)
