"""The two-minute lesson of the prior lab: how guests sit down, how many tables, and how two priors differ."""

import re
from collections.abc import Iterator

import pytest
from browser.opened import Desk, OpenedLab, opened_widget
from playwright.sync_api import expect

# Place on the page of a place in the first room.
ON_PAGE = """
(svg, [x, y]) => {
  const point = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
  return [point.x, point.y];
}
"""


@pytest.fixture(scope="module")
def shared_lab(desk: Desk) -> Iterator[OpenedLab]:
    expression = "ew.PriorLab(concentration=1.0, n=50)"
    with opened_widget(OpenedLab, desk, expression) as lab:
        yield lab


@pytest.fixture
def lab(shared_lab: OpenedLab) -> Iterator[OpenedLab]:
    """The lab with empty restaurants; nothing may have gone wrong after the test."""
    shared_lab.press("reset")
    expect(shared_lab.part(".ew-status")).to_contain_text("0 of 50 guests seated")
    yield shared_lab
    shared_lab.press("pause")
    assert shared_lab.faults == []


def guests(lab: OpenedLab) -> int:
    return lab.value("lab.labels.size")


def test_guests_sit_down_step_by_step_and_by_themselves(lab: OpenedLab) -> None:
    lab.press("step")
    expect(lab.part(".ew-status")).to_contain_text("guest 1 of 50 opens table 1 (chance 1.00)")
    lab.part("button.ew-step").press("Enter")
    expect(lab.part(".ew-status")).to_contain_text("guest 2 of 50")
    assert guests(lab) == 2
    lab.choose_speed("1 guest per frame")
    lab.press("play")
    lab.page.wait_for_function(
        "() => Number(document.querySelector('.ew-status').textContent.match(/guest (\\d+)/)?.[1]) >= 12"
    )
    lab.press("pause")
    lab.wait_for_value("lab._worker._task is None", True)  # Nothing is left that could go on.
    seated = guests(lab)
    expect(lab.part(".ew-status")).to_contain_text(f"guest {seated} of 50")
    for place in (0, 1):
        tables = lab.value(f"int(lab.seatings[{place}].labels.max()) + 1")
        room = f".ew-restaurant-{place + 1}"
        expect(lab.part(f"{room} .ew-table")).to_have_count(tables + 1)
        expect(lab.part(f"{room} .ew-guest")).to_have_count(seated)
        expect(lab.part(f"{room} .ew-ring")).to_have_count(1)
        expect(lab.part(f"{room} .ew-seats")).to_have_text(re.compile("^table of"))
    lab.press("fill")
    expect(lab.part(".ew-status")).to_contain_text("1 partition drawn")
    assert guests(lab) == 50


def on_page(lab: OpenedLab, expression: str) -> tuple[float, float]:
    """Place on the page of a place in the first restaurant."""
    place = lab.value(f"tuple(float(value) for value in {expression})")
    x, y = lab.part(".ew-restaurant-1 .ew-floor").evaluate(ON_PAGE, list(place))
    return x, y


def test_the_probability_of_a_partition_that_is_typed_or_moved(lab: OpenedLab) -> None:
    chance = lab.part(".ew-prior-1 .ew-probability")
    lab.type_in(".ew-typed", "1 2 | 2")
    expect(lab.part(".ew-typed .ew-problem")).to_contain_text("object 2 is there twice")
    lab.type_in(".ew-typed", "1 2 | 3")
    expect(chance).to_have_text("0.166667")
    expect(lab.part(".ew-typed .ew-problem")).to_be_hidden()
    plan = "lab.restaurants[0]._plan"
    lab.drag(on_page(lab, f"{plan}.guests()[2]"), on_page(lab, f"{plan}.centres[0]"))
    expect(chance).to_have_text("0.333333")
    expect(lab.part(".ew-typed input")).to_have_value("1 2 3 |")
    lab.drag(on_page(lab, f"{plan}.guests()[0]"), on_page(lab, f"{plan}.centres[-1]"))
    expect(lab.part(".ew-typed input")).to_have_value("1 | 2 3")
    expect(chance).to_have_text("0.166667")
    # The same by keyboard: the second guest goes back to the first.
    floor = lab.part(".ew-restaurant-2 .ew-floor")
    floor.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowUp"):
        floor.press(key)
    expect(lab.part(".ew-restaurant-2 .ew-spoken")).to_contain_text(
        "guest 2 at table 2; Enter moves to table 1"
    )
    floor.press("Enter")
    expect(lab.part(".ew-typed input")).to_have_value("1 2 | 3")
    lab.type_in(".ew-typed", "a a b b")
    expect(lab.part(".ew-chance")).to_contain_text("your partition of 4 objects")
    expected = pytest.approx(1 / 24, rel=1e-4)
    lab.eventually(lambda: lab.number(".ew-prior-1 .ew-probability"), lambda shown: shown == expected)
    assert lab.value("lab.tally.n_draws") == 0
    lab.part("button.ew-back").click()
    expect(lab.part(".ew-chance")).to_contain_text("No guest is seated yet")
