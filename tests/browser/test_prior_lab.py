"""The two-minute lesson of the prior lab: how guests sit down, how many tables, and how two priors differ."""

import re
from collections.abc import Iterator

import pytest
from browser.opened import Desk, OpenedLab, opened_widget
from playwright.sync_api import expect

from ewens_widgets.model.priors import DirichletMultinomial, Ewens, PitmanYor

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


def choose(lab: OpenedLab, which: int, kind: str, **parameters: str) -> None:
    """Choose a prior and type its parameters."""
    lab.part(f".ew-chooser-{which} .ew-kind select").select_option(label=kind)
    for name, text in parameters.items():
        set_number(lab, which, name, text)


def set_number(lab: OpenedLab, which: int, name: str, text: str) -> None:
    field = lab.part(f".ew-chooser-{which} .ew-prior-{name} input")
    field.fill(text)
    field.press("Enter")


def expect_number(lab: OpenedLab, which: int, name: str, expected: object) -> None:
    """Wait until a number of a prior is as expected."""
    cell = f".ew-distribution .ew-prior-{which} .ew-{name}"
    lab.eventually(lambda: lab.number(cell), lambda number: number == expected)


def wait_for_distance(lab: OpenedLab, low: float, high: float) -> float:
    """Distance of the two priors, once it lies between two numbers."""
    return lab.eventually(lambda: lab.number(".ew-distance"), lambda distance: low <= distance <= high)


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


def test_draws_follow_the_exact_laws_and_many_components_become_the_prior(lab: OpenedLab) -> None:
    lab.press("draw")
    lab.press("draw")
    expect(lab.part(".ew-status")).to_contain_text("2 000 partitions drawn")
    for which, prior in ((1, Ewens(1.0)), (2, DirichletMultinomial(10, 1.0))):
        mean = prior.expected_clusters(50)
        expect_number(lab, which, "mean", pytest.approx(mean, abs=6e-4))
        expect_number(lab, which, "draws-mean", pytest.approx(mean, abs=0.15))
        expect_number(lab, which, "draws-distance", pytest.approx(0.0, abs=0.05))
    far = wait_for_distance(lab, 0.21, 0.23)
    set_number(lab, 2, "components", "100")
    expect(lab.part(".ew-restaurant-2 .ew-heading")).to_contain_text("k = 100")
    expect(lab.part(".ew-status")).to_contain_text("1 000 partitions drawn")  # drawn again
    wait_for_distance(lab, 0.001, 0.1 * far + 0.01)
    lab.press_on_slider(".ew-chooser-2 .ew-prior-components", "End")
    expect(lab.part(".ew-restaurant-2 .ew-heading")).to_contain_text("k = 10000")
    wait_for_distance(lab, 0.0, 0.001)
    lab.press_on_slider(".ew-chooser-2 .ew-prior-components", "Home")
    expect(lab.part(".ew-restaurant-2 .ew-heading")).to_contain_text("k = 1, λ = 1")
    wait_for_distance(lab, 0.95, 1.0)
    # The second λ follows the first.
    set_number(lab, 1, "concentration", "5")
    expect(lab.part(".ew-restaurant-2 .ew-heading")).to_contain_text("k = 1, λ = 5")
    expect(lab.part(".ew-prior-1 .ew-mean")).to_have_text(f"{Ewens(5.0).expected_clusters(50):.3f}")
    lab.press_on_slider(".ew-chooser-1 .ew-prior-concentration", "ArrowRight", 2)
    expect(lab.part(".ew-chooser-1 .ew-prior-concentration input")).to_have_value("5.25")
    expect(lab.part(".ew-restaurant-1 .ew-heading")).to_contain_text("λ = 5.25")
    set_number(lab, 1, "concentration", "1")
    set_number(lab, 2, "components", "10")
    expect(lab.part(".ew-distance")).to_have_text(f"{far:.4f}")


def test_two_other_priors_are_chosen_and_wrong_numbers_explained(lab: OpenedLab) -> None:
    choose(lab, 1, "Finite, geometric", probability="0.25")
    choose(lab, 2, "Pitman–Yor", discount="0.3")
    expect(lab.part(".ew-restaurant-2 .ew-heading")).to_contain_text("Pitman–Yor, λ = 1, σ = 0.3")
    lab.wait_for_value(
        "(lab.prior, lab.compare) == (ew.priors.FiniteMixture(1.0, ew.priors.Geometric(0.25)), "
        "ew.priors.PitmanYor(1.0, 0.3))",
        True,
    )
    rule = "A table of m guests has weight m + γ = m + 1"
    expect(lab.part(".ew-restaurant-1 .ew-rule")).to_contain_text(rule)
    expect(lab.part(".ew-restaurant-2 .ew-rule")).to_contain_text("a new one λ + σK = 1 + 0.3 K")
    lab.press("draw")
    expect(lab.part(".ew-status")).to_contain_text("1 000 partitions drawn")
    expect_number(lab, 2, "mean", pytest.approx(PitmanYor(1.0, 0.3).expected_clusters(50), abs=6e-4))
    set_number(lab, 2, "discount", "1.3")
    expect(lab.part(".ew-chooser-2 .ew-prior-discount .ew-problem")).to_contain_text("less than 1; got 1.3")
    set_number(lab, 2, "discount", "abc")
    expect(lab.part(".ew-chooser-2 .ew-prior-discount .ew-problem")).to_contain_text("'abc' is not a number")
    assert lab.value("lab.tally.n_draws") == 1000, "nothing is lost"
    choose(lab, 2, "nothing")
    expect(lab.part(".ew-restaurant-2")).to_be_hidden()
    expect(lab.part(".ew-distribution .ew-distance")).to_have_count(0)
    choose(lab, 1, "Ewens", concentration="1")
    choose(lab, 2, "Dirichlet-multinomial")
    expect(lab.part(".ew-status")).to_contain_text("0 of 50 guests seated")


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
