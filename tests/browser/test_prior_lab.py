"""The two-minute lesson of the prior lab: how guests sit down, how many tables, and how two priors differ."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser.labs_page import OpenedLab, opened_lab, reopened_in_the_dark
from browser.layout import SIZES, faults
from browser.opened import VIEWPORT, Server, new_page
from playwright.sync_api import Browser, Page, expect

from ewens_widgets.model.priors import DirichletMultinomial, Ewens, FiniteMixture, PitmanYor

# Texts of a picture that overlap each other, unless they are only numbers of guests.
OVERLAPS = """
root => {
  const texts = [...root.querySelectorAll(".axis .tick text, .axislabel, .ew-table-text")]
    .filter(text => text.textContent.trim() && text.getBoundingClientRect().width > 0);
  const boxes = texts.map(text => text.getBoundingClientRect());
  const faults = [];
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 1 && down > 3) faults.push([texts[i].textContent, texts[i + 1 + j].textContent]);
  }));
  return faults;
}
"""

# Place on the page of a place in the first room.
ON_PAGE = """
(svg, [x, y]) => {
  const point = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
  return [point.x, point.y];
}
"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    page = new_page(browser)
    yield page
    page.context.close()


@pytest.fixture(scope="module")
def shared_lab(page: Page, shared_server: Server) -> Iterator[OpenedLab]:
    with opened_lab(page, shared_server, "prior-lab", "ew.PriorLab(concentration=1.0, n=50)") as lab:
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
    return int(lab.value("lab.labels.size"))


def choose(lab: OpenedLab, which: int, kind: str, **parameters: str) -> None:
    """Choose a prior and type its parameters."""
    lab.part(f".ew-chooser-{which} .ew-kind select").select_option(label=kind)
    for name, text in parameters.items():
        set_number(lab, which, name, text)


def set_number(lab: OpenedLab, which: int, name: str, text: str) -> None:
    field = lab.part(f".ew-chooser-{which} .ew-prior-{name} input")
    field.fill(text)
    field.press("Enter")


def number(lab: OpenedLab, which: int, name: str) -> float:
    return float(lab.part(f".ew-distribution .ew-prior-{which} .ew-{name}").inner_text())


def test_guests_sit_down_step_by_step_and_by_themselves(
    lab: OpenedLab, screenshot: Callable[[str], Path]
) -> None:
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
    screenshot("prior-lab-seating")
    for place in (0, 1):
        tables = int(lab.value(f"int(lab.seatings[{place}].labels.max()) + 1"))
        room = f".ew-restaurant-{place + 1}"
        expect(lab.part(f"{room} .ew-table")).to_have_count(tables + 1)
        expect(lab.part(f"{room} .ew-guest")).to_have_count(seated)
        expect(lab.part(f"{room} .ew-ring")).to_have_count(1)
        assert lab.part(f"{room} .ew-seats").inner_text().splitlines()[0].startswith("table of")
    lab.press("fill")
    expect(lab.part(".ew-status")).to_contain_text("1 partition drawn")
    assert guests(lab) == 50


def test_draws_follow_the_exact_laws_and_many_components_become_the_prior(
    lab: OpenedLab, screenshot: Callable[[str], Path]
) -> None:
    lab.press("draw")
    lab.press("draw")
    expect(lab.part(".ew-status")).to_contain_text("2 000 partitions drawn")
    for which, prior in ((1, Ewens(1.0)), (2, DirichletMultinomial(10, 1.0))):
        assert number(lab, which, "mean") == pytest.approx(prior.expected_clusters(50), abs=6e-4)
        assert number(lab, which, "draws-mean") == pytest.approx(number(lab, which, "mean"), abs=0.15)
        assert number(lab, which, "draws-distance") < 0.05
    screenshot("prior-lab")
    far = lab.number(".ew-distance")
    assert far == pytest.approx(0.22, abs=0.01)
    set_number(lab, 2, "components", "100")
    expect(lab.part(".ew-restaurant-2 .ew-heading")).to_contain_text("k = 100")
    expect(lab.part(".ew-status")).to_contain_text(" 0 partitions drawn")
    near = lab.number(".ew-distance")
    lab.press_on_slider(".ew-chooser-2 .ew-prior-components", "End")
    expect(lab.part(".ew-restaurant-2 .ew-heading")).to_contain_text("k = 10000")
    assert lab.number(".ew-distance") < 0.001 < near < 0.1 * far + 0.01
    lab.press_on_slider(".ew-chooser-2 .ew-prior-components", "Home")
    expect(lab.part(".ew-restaurant-2 .ew-heading")).to_contain_text("k = 1, λ = 1")
    assert lab.number(".ew-distance") > 0.95
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


def test_two_other_priors_are_chosen_and_wrong_numbers_explained(
    lab: OpenedLab, screenshot: Callable[[str], Path]
) -> None:
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
    assert number(lab, 2, "mean") == pytest.approx(PitmanYor(1.0, 0.3).expected_clusters(50), abs=6e-4)
    screenshot("prior-lab-two-priors")
    set_number(lab, 2, "discount", "1.3")
    expect(lab.part(".ew-chooser-2 .ew-prior-discount .ew-problem")).to_contain_text("less than 1; got 1.3")
    set_number(lab, 2, "discount", "abc")
    expect(lab.part(".ew-chooser-2 .ew-prior-discount .ew-problem")).to_contain_text("'abc' is not a number")
    assert lab.value("lab.tally.n_draws") == 1000, "nothing is lost"
    choose(lab, 2, "nothing")
    expect(lab.part(".ew-restaurant-2")).to_be_hidden()
    expect(lab.part(".ew-distribution .ew-distance")).to_have_count(0)
    lab.press("fill")
    screenshot("prior-lab-alone")
    assert_fits(lab, SIZES[0])
    choose(lab, 1, "Ewens", concentration="1")
    choose(lab, 2, "Dirichlet-multinomial")
    expect(lab.part(".ew-status")).to_contain_text("0 of 50 guests seated")


def on_page(lab: OpenedLab, expression: str) -> tuple[float, float]:
    """Place on the page of a place in the first restaurant."""
    place = lab.value(f"tuple(float(value) for value in {expression})")
    x, y = lab.part(".ew-restaurant-1 .ew-floor").evaluate(ON_PAGE, list(place))
    return x, y


def test_the_probability_of_a_partition_that_is_typed_or_moved(
    lab: OpenedLab, screenshot: Callable[[str], Path]
) -> None:
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
    screenshot("prior-lab-dragged")
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
    assert float(chance.inner_text()) == pytest.approx(1 / 24, rel=1e-4)
    assert lab.value("lab.tally.n_draws") == 0
    lab.part("button.ew-back").click()
    expect(lab.part(".ew-chance")).to_contain_text("No guest is seated yet")


def assert_fits(lab: OpenedLab, size: tuple[int, int]) -> None:
    """Nothing is cut or scrolls, all of it is seen at once, and the window is used."""
    assert faults(lab.page, lab.root, size) == []
    assert lab.root.evaluate(OVERLAPS) == []


def test_it_fits_and_is_readable_in_both_themes(
    lab: OpenedLab, shared_server: Server, screenshot: Callable[[str], Path]
) -> None:
    lab.press("fill")
    expect(lab.part(".ew-status")).to_contain_text("guest 50 of 50")
    try:
        for size in SIZES:
            assert_fits(lab, size)
            screenshot(f"prior-lab-{size[0]}")
        lab.page.set_viewport_size(VIEWPORT)
        lab.assert_fits_the_projector()
        lab.assert_readable()
        with reopened_in_the_dark(lab, shared_server, "prior-lab.ipynb"):
            lab.press("draw")
            expect(lab.part(".ew-status")).to_contain_text("50 of 50 guests seated")
            for size in SIZES:
                assert_fits(lab, size)
                screenshot(f"prior-lab-dark-{size[0]}")
            lab.assert_readable()
    finally:
        lab.page.set_viewport_size(VIEWPORT)


def test_the_largest_party_can_be_seen(
    page: Page, shared_server: Server, screenshot: Callable[[str], Path]
) -> None:
    code = "ew.PriorLab(prior=ew.priors.FiniteMixture(), compare=ew.priors.PitmanYor(1.0, 0.5), n=1000)"
    with opened_lab(page, shared_server, "prior-lab-many", code) as lab:
        lab.press("draw")
        expect(lab.part(".ew-status")).to_contain_text("1 000 partitions drawn")
        assert number(lab, 1, "mean") == pytest.approx(FiniteMixture().expected_clusters(1000), abs=6e-4)
        for size in SIZES:
            assert_fits(lab, size)
            screenshot(f"prior-lab-many-{size[0]}")
            dots = lab.part(".ew-guest").evaluate_all(
                "dots => dots.map(dot => dot.getBoundingClientRect().width)"
            )
            assert len(dots) == 2000
            assert min(dots) > 2.5 * size[1] / 800
        page.set_viewport_size(VIEWPORT)
        assert lab.faults == []
