"""Colours of the inspector's scatter."""

from ewens_widgets.analysis.plots.palette import GREY
from ewens_widgets.views.labs.stage_scatter import FIRST_SIDE, SECOND_SIDE, blend


def test_colours_of_sides_go_from_one_to_the_other() -> None:
    assert (blend(0.0), blend(0.5), blend(1.0)) == (FIRST_SIDE, GREY, SECOND_SIDE)
