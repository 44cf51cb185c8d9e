"""Limits and ticks, and figures that follow the page."""

from collections.abc import Callable
from dataclasses import replace

import bqplot
import numpy as np
import pytest
from matplotlib.figure import Figure

from ewens_widgets.datasets import half_moons
from ewens_widgets.views.figures import (
    FeaturePlane,
    equal_limits,
    make_axis,
    make_figure,
    make_scale,
    make_scatter,
    nice_limits,
    nice_ticks,
)


def test_limits_change_rarely() -> None:
    assert nice_limits(3.0, 7.0) == nice_limits(3.1, 7.05)
    assert nice_limits(1.0, 30.0)[0] == 0.0, "there is no negative number of clusters"
    assert nice_limits(0.0, 3.0)[0] < 0.0
    low, high = nice_limits(5.0, 5.0)
    assert low < 5.0 < high
    assert nice_limits(float("-inf"), 0.0) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.0, 1.0, [0.0, 0.5, 1.0]),
        (-4.5, 4.9, [-4.0, -2.0, 0.0, 2.0, 4.0]),
        (0.0, 3000.0, [0.0, 1000.0, 2000.0, 3000.0]),
        (2.0, 2.0, [2.0]),
    ],
)
def test_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high, 5 if low < 0 else 4).tolist() == ticks


class TestCanvas:
    def test_margins_and_labels_grow_with_the_type(self) -> None:
        axis = make_axis(make_scale(), vertical=True)
        canvas = make_figure("ew-some", 100, (6, 8, 20, 40), axes=[axis], marks=[])
        canvas.fit(1.5)
        assert canvas.fig_margin == {"top": 9, "right": 12, "bottom": 30, "left": 60}
        assert axis.label_offset == "48px"
        canvas.fit(1.0)
        assert axis.label_offset == "32px"

    def test_who_wants_to_know_is_told_the_size_of_the_plot(self) -> None:
        told: list[tuple[float, float]] = []
        canvas = make_figure(
            "ew-some", 100, (10, 10, 10, 10), lambda *size: told.append(size), axes=[], marks=[]
        )
        canvas.fit(1.0)
        canvas.fit(1.0, (220.0, 120.0))
        canvas.fit(1.0, (5.0, 5.0))
        assert told == [(200.0, 100.0)]


@pytest.mark.parametrize("size", [(300.0, 100.0), (100.0, 300.0)])
def test_a_unit_is_as_long_upwards_as_sideways(size: tuple[float, float]) -> None:
    low, high = equal_limits(np.array([0.0, -1.0]), np.array([2.0, 3.0]), size)
    units = np.array(size) / (high - low)
    assert units[0] == pytest.approx(units[1])
    assert np.all(low < [0.0, -1.0])
    assert np.all(high > [2.0, 3.0])


def test_columns_of_one_unit_have_it_equally_long() -> None:
    def posted(command: Callable[[], None]) -> None:
        command()

    data = half_moons(n=20, seed=0)
    for dataset, is_equal in ((data, True), (replace(data, same_units=False), False)):
        plane = FeaturePlane(posted, lambda *_: None)
        plane.resize(300.0, 100.0)
        plane.offer(dataset)
        spans = [scale.max - scale.min for scale in plane.scales.values()]
        assert plane.is_equal is is_equal
        assert (spans[0] / spans[1] == pytest.approx(3.0)) is is_equal


def test_a_still_picture_has_the_marks_that_are_seen() -> None:
    scales = {"x": bqplot.LogScale(min=1.0, max=10.0), "y": make_scale(0.0, 5.0)}
    line = {"x": np.array([1.0, 10.0]), "scales": scales}
    marks = [
        bqplot.Lines(y=np.array([[1.0, 2.0], [3.0, 4.0]]), labels=["one", "$two$"], **line),
        bqplot.Lines(y=np.ones(2), visible=False, **line),
        bqplot.Bars(y=np.ones((2, 2)), **line),
        make_scatter(scales, x=np.ones(3), y=np.ones(3), colors=["#ff0000"], fill=False),
        bqplot.Label(y=np.ones(2), text=["a", "b"], **line),
    ]
    axis = make_axis(make_scale(1.0, 10.0), "cost in $, or in $")
    axis.scale = scales["x"]
    axis.tick_labels = {"5": "five"}
    canvas = make_figure("ew-x", 100, (0, 0, 0, 0), marks=marks, axes=[axis])
    axes = Figure().subplots()
    canvas.paint(axes)
    assert len(axes.lines) == 2
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "$two$"]
    assert (axes.get_xscale(), axes.get_xlim()) == ("log", (1.0, 10.0))
    assert axes.get_xlabel() == r"cost in \$, or in \$"
    assert "five" in [label.get_text() for label in axes.get_xticklabels()]
    assert len(axes.patches) == 4
    assert axes.collections[0].get_facecolor().size == 0
    assert [text.get_text() for text in axes.texts] == ["a", "b"]
