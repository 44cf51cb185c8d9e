"""Controls that explain what is wrong."""

from collections.abc import Callable

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
    field.control.value = "<script>"
    with pytest.raises(ValueError, match="is not a number"):
        field.read()
    assert "<script>" not in field.children[-1].value


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (whole_number("seed", 0), "12", 12),
        (whole_number("seed", 0), " 1 000 ", 1000),
        (whole_number("seed", 0), "0", 0),
        (parse_share("core jump"), "0.01", 0.01),
        (parse_grid, "2^-3 … 2^10", 2.0 ** np.arange(-3, 11)),
        (parse_grid, "2^0...2^2", [1, 2, 4]),
        (parse_grid, "2^1 to 2^2", [2, 4]),
        (parse_grid, "1/8, 1, 2^3", [0.125, 1, 8]),
        (parse_grid, "4 2 1", [1, 2, 4]),
        (parse_grid, "  ", None),
    ],
)
def test_what_a_text_means(parse: Callable[[str], object], text: str, value: object) -> None:
    np.testing.assert_array_equal(parse(text), value)


@pytest.mark.parametrize(
    ("parse", "complaint", "texts"),
    [
        (parse_positive("λ"), "not a number", ["", "a", "1e", "nan", "inf", "0x1", "1 2", "--1"]),
        (whole_number("seed", 0), "whole number", ["", "1.5", "x", "9" * 30]),
        (whole_number("repeats", 1, 10), "between 1 and 10; got 11", ["11"]),
        (parse_share("core jump"), "below 1", ["1"]),
        (parse_grid, "positive", ["1, -2"]),
        (parse_grid, "twice", ["1, 1"]),
        (parse_grid, "not a number", ["a"]),
        (parse_grid, "positive and finite", ["1/0"]),
        (parse_grid, "powers must increase", ["2^5 … 2^1"]),
        (parse_grid, r"2\*\*30", ["2^0 … 2^50"]),
        (parse_grid, "at most 100", [" ".join(map(str, range(1, 200)))]),
    ],
)
def test_a_wrong_text_is_explained(parse: Callable[[str], object], complaint: str, texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=complaint):
            parse(text)
