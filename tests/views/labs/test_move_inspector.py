"""The move inspector without a browser: what its buttons do, and what it prints."""

import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import ewens_widgets as ew
from ewens_widgets.analysis.explanation import Term
from ewens_widgets.analysis.plots.palette import GREY
from ewens_widgets.views.labs.move_inspector import (
    FALLS,
    FIRST_SIDE,
    RISES,
    SECOND_SIDE,
    MoveInspector,
    Waterfall,
    blend,
)

pytestmark = pytest.mark.usefixtures("wire")

MOVES = ("split-merge", "reassign", "informed-split-merge", "gibbs")


@pytest.fixture
def square() -> ew.datasets.Dataset:
    return ew.datasets.unit_square(per_cluster=5, seed=0)


@pytest.fixture
def inspector(square: ew.datasets.Dataset) -> MoveInspector:
    return MoveInspector(square, model="I", seed=3)


def press(inspector: MoveInspector, name: str) -> None:
    inspector.buttons[name].click()


def printed_numbers(inspector: MoveInspector) -> dict[str, float]:
    """Numbers in the table, in full precision."""
    cells = re.findall(r'data-term="([^"]*)" data-value="([^"]*)"', inspector.numbers.value)
    return {name: float(value) for name, value in cells}


def go_to(inspector: MoveInspector, key: str) -> None:
    inspector.show_stage([stage.key for stage in inspector.stages].index(key))


def until(inspector: MoveInspector, wanted: Callable[[MoveInspector], bool]) -> None:
    for _ in range(300):
        if wanted(inspector):
            return
        press(inspector, "Next iteration")
    raise AssertionError("it never came to that")


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.slow
def test_the_printed_terms_add_up_to_the_sampler_s_own_log_ratio(
    square: ew.datasets.Dataset, move: str
) -> None:
    inspector = MoveInspector(square, move=move, model="II", seed=1)
    for turn in range(6 if move == "gibbs" else 30):
        press(inspector, "Propose again" if turn % 3 else "Next iteration")
        if inspector.inspection.proposal.proposed is None:
            continue
        go_to(inspector, "decision")
        numbers = printed_numbers(inspector)
        parts = [numbers[name] for name in ("prior", "likelihood", "reverse", "forward")]
        assert math.fsum(parts) == pytest.approx(numbers["sum"], abs=1e-12)
        assert numbers["sum"] == pytest.approx(numbers["sampler"], abs=1e-9)
        shown = [term.value for term in inspector.inspection.proposal.terms()]
        np.testing.assert_array_equal(inspector.waterfall.bars.y[-1], [0.0, np.cumsum(shown)[-1]])


def test_numbers_appear_when_their_stage_has_come(inspector: MoveInspector) -> None:
    until(inspector, lambda one: one.inspection.proposal.kind == "split")
    for key, names in {
        "sides": set(),
        "proposal": {"reverse", "forward"},
        "ratio": {"prior", "likelihood", "reverse", "forward", "sum", "sampler"},
        "decision": {"prior", "likelihood", "reverse", "forward", "sum", "sampler", "uniform"},
    }.items():
        go_to(inspector, key)
        assert set(printed_numbers(inspector)) == names
        assert inspector.waterfall.is_empty == (key not in {"ratio", "decision"})
    assert inspector.waterfall.mark.visible


def test_the_stages_can_be_stepped_through_by_buttons_and_list(inspector: MoveInspector) -> None:
    assert inspector.buttons["Back"].disabled
    for place in range(1, len(inspector.stages)):
        press(inspector, "Next stage")
        assert inspector.stage == place == inspector.play.value
    assert inspector.buttons["Next stage"].disabled
    press(inspector, "Back")
    assert inspector.stage == len(inspector.stages) - 2
    inspector.list.value = 2
    assert f"stage 3 of {len(inspector.stages)}" in inspector.status.value
    inspector.play.value = 3
    assert inspector.stage == 3
    assert inspector.stages[3].title in inspector.told.value


def test_the_sides_are_coloured_by_probability(inspector: MoveInspector) -> None:
    until(inspector, lambda one: one.inspection.proposal.kind == "split")
    allocation = inspector.inspection.proposal.allocation
    go_to(inspector, "sides")
    colours, opacities = inspector.scatter.points.colors, np.asarray(inspector.scatter.points.opacities)
    first, second = allocation.cores
    assert colours[first] == FIRST_SIDE
    assert colours[second] == SECOND_SIDE
    assert np.array_equal(np.flatnonzero(opacities == 1.0), np.sort(allocation.members))
    np.testing.assert_array_equal(inspector.scatter.cores.x, inspector.scatter.points.x[[first, second]])


def test_the_choice_of_a_cluster_fades_what_was_less_probable(inspector: MoveInspector) -> None:
    until(inspector, lambda one: one.inspection.proposal.kind == "split")
    go_to(inspector, "choice")
    shares = inspector.inspection.proposal.choices[1].by_object
    opacities = np.asarray(inspector.scatter.points.opacities)
    assert np.array_equal(np.argsort(shares, kind="stable"), np.argsort(opacities, kind="stable"))
    assert opacities.max() == 1.0
    listed = re.findall(r'data-probability="([^"]*)" data-chosen="true"', inspector.options.value)
    assert [float(value) for value in listed] == [inspector.inspection.proposal.choices[1].probability]


def test_the_candidates_of_a_gibbs_draw_are_listed(square: ew.datasets.Dataset) -> None:
    inspector = MoveInspector(square, move="gibbs", model="I")
    go_to(inspector, "target")
    listed = [float(value) for value in re.findall(r'data-probability="([^"]*)"', inspector.options.value)]
    assert listed == sorted(inspector.inspection.proposal.choices[1].probabilities, reverse=True)
    assert sum(listed) == pytest.approx(1.0)
    assert "a new cluster" in inspector.options.value
    assert inspector.options.layout.display == ""
    assert inspector.waterfall.layout.display == "none"
    go_to(inspector, "ratio")
    assert inspector.waterfall.layout.display == ""
    press(inspector, "Next iteration")
    assert "object 2 of 20" in inspector.status.value


def test_a_rejected_proposal_can_be_accepted_anyway(inspector: MoveInspector) -> None:
    until(inspector, lambda one: one.inspection.can_accept_anyway)
    assert not inspector.buttons["Accept anyway"].disabled
    proposed = inspector.inspection.proposal.proposed
    press(inspector, "Accept anyway")
    assert np.array_equal(inspector.inspection.proposal.labels, proposed)
    until(inspector, lambda one: one.inspection.proposal.accepted() is True)
    assert inspector.buttons["Accept anyway"].disabled


def test_a_chain_that_decides_by_the_printed_ratio_is_shown_as_it_is(square: ew.datasets.Dataset) -> None:
    with pytest.warns(UserWarning, match="as-printed"):
        sampler = ew.Sampler(square, moves="paper-2", acceptance="as-printed", initial="prior", model="I")
    inspector = MoveInspector(sampler)
    until(inspector, lambda one: one.inspection.proposal.proposed is not None)
    go_to(inspector, "decision")
    own = printed_numbers(inspector)
    assert own["sum"] == pytest.approx(own["sampler"], abs=1e-9)
    assert own["sum"] == replace(inspector.inspection.proposal, as_printed=True).log_ratio()


def test_the_move_and_its_options_can_be_changed(inspector: MoveInspector) -> None:
    fields = inspector.fields
    labels = inspector.inspection.proposal.labels
    fields.options["within"].control.value = "maximum"
    jump = fields.options["core_jump"]
    jump.control.value = "0.25"
    assert inspector.inspection.move == ew.moves.SplitMerge("maximum", core_jump=0.25)
    assert np.array_equal(inspector.inspection.proposal.labels, labels)
    jump.control.value = "often"
    assert "is not a number" in jump.problem
    assert inspector.inspection.move.core_jump == 0.25
    fields.move.control.value = "informed-split-merge"
    assert jump.layout.display == "none"
    assert "informed-split-merge" in inspector.status.value


def test_a_sampler_is_looked_at_and_not_moved(square: ew.datasets.Dataset) -> None:
    sampler = ew.Sampler(square, moves="paper-1", model="I", seed=0)
    inspector = MoveInspector(sampler, data=square)
    for _ in range(5):
        press(inspector, "Next iteration")
    press(inspector, "Run 50")
    assert (sampler.iteration, inspector.inspection.iteration) == (0, 55)
    assert inspector.status.value.startswith("iteration 55 ")
    press(inspector, "Reset")
    assert inspector.status.value.startswith("iteration 0 ")
    assert inspector.inspection.move.name == "reassign"
    assert inspector.dataset is square
    assert MoveInspector(sampler).dataset.feature_names == ("coordinate 1", "coordinate 2")
    assert MoveInspector(sampler, move="gibbs").inspection.move == ew.moves.Gibbs()


def test_an_array_and_many_columns_will_do() -> None:
    inspector = MoveInspector(np.random.default_rng(0).normal(size=(12, 4)), move="reassign")
    assert list(inspector.scatter.plane.choosers[0].options)[:2] == ["PC 1", "PC 2"]
    inspector.scatter.plane.choosers[0].value = "x3"
    np.testing.assert_array_equal(inspector.scatter.points.x, inspector.dataset.X[:, 2])


def test_clusters_have_ellipses_before_and_after(inspector: MoveInspector) -> None:
    outlines = inspector.scatter.outlines.mark
    for place, stage in enumerate(inspector.stages):
        inspector.show_stage(place)
        if stage.colours == "sides":
            assert not outlines.visible
            continue
        proposal = inspector.inspection.proposal
        labels = proposal.labels if stage.colours == "before" else proposal.proposed
        assert labels is not None
        large = np.flatnonzero(np.bincount(labels) >= 3)
        assert outlines.visible
        heights = np.atleast_2d(outlines.y)
        assert np.isfinite(heights[:, -1]).all(), "bqplot reports an error for each line without an end"
        drawn = np.nanmax(heights, axis=1) > np.nanmin(heights, axis=1)
        assert drawn.sum() == large.size


def test_bars_begin_where_the_one_before_ends_and_have_their_signs() -> None:
    chart = Waterfall(("one", "two", "three", "total"))
    assert chart.is_empty
    chart.show([Term("one", 2.0), Term("two", -3.5), Term("three", 1.0)], mark=-1.0)
    np.testing.assert_array_equal(chart.bars.y, [[0.0, 2.0], [2.0, -1.5], [-1.5, -0.5], [0.0, -0.5]])
    assert chart.bars.colors[:3] == [RISES, FALLS, RISES]
    assert list(chart.texts.text) == ["+2.000", "−3.500", "+1.000", "−0.500"]
    assert chart.mark.visible
    assert chart.mark.y.tolist() == [-1.0, -1.0]
    scale = chart.figure.axes[1].scale
    assert scale.min < -1.5 < 2.0 < scale.max
    chart.show([Term("one", 1.0), Term("two", -np.inf), Term("three", 3.0)])
    assert np.all(np.isfinite(chart.bars.y))
    assert list(chart.texts.text)[1] == "−inf"
    assert not chart.mark.visible
    chart.clear()
    assert not chart.bars.visible


def test_colours_of_sides_go_from_one_to_the_other() -> None:
    assert (blend(0.0), blend(0.5), blend(1.0)) == (FIRST_SIDE, GREY, SECOND_SIDE)
