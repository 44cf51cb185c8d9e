"""The waterfall chart: bars that follow on each other, and what it does with infinite terms."""

import numpy as np
import pytest

from ewens_widgets.analysis.explanation import Term
from ewens_widgets.views.labs.inspector_numbers import FALLS, RISES, Waterfall, waterfall_bars

pytestmark = pytest.mark.usefixtures("wire")

NAMES = ("one", "two", "three", "total")
TERMS = (Term("one", 2.0), Term("two", -3.5), Term("three", 1.0))


def test_each_bar_begins_where_the_one_before_it_ends() -> None:
    np.testing.assert_array_equal(
        waterfall_bars([2.0, -3.5, 1.0]), [[0.0, 2.0], [2.0, -1.5], [-1.5, -0.5], [0.0, -0.5]]
    )


def test_terms_are_shown_with_their_signs() -> None:
    chart = Waterfall(NAMES)
    assert chart.is_empty
    chart.show(TERMS, mark=-1.0)
    assert chart.bars.colors[:3] == [RISES, FALLS, RISES]
    assert list(chart.texts.text) == ["+2.000", "−3.500", "+1.000", "−0.500"]
    assert chart.mark.visible
    assert chart.mark.y.tolist() == [-1.0, -1.0]
    low, high = chart._y_scale.min, chart._y_scale.max
    assert low < -1.5
    assert high > 2.0
    chart.show(TERMS)
    assert not chart.mark.visible
    chart.clear()
    assert not chart.bars.visible


def test_an_infinite_term_can_be_drawn() -> None:
    chart = Waterfall(NAMES)
    chart.show([Term("one", 1.0), Term("two", -np.inf), Term("three", 3.0)])
    assert np.all(np.isfinite(chart.bars.y))
    assert list(chart.texts.text)[1] == "−inf"
