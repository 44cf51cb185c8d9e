"""The two-minute lesson of the prior lab: how guests sit down, how many tables, and what k does."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser.labs_page import OpenedLab, opened_lab, reopened_in_the_dark
from browser.opened import Server, new_page
from playwright.sync_api import Browser, Page, expect

from ewens_widgets import ewens


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
    """The lab with an empty restaurant; nothing may have gone wrong after the test."""
    shared_lab.press("reset")
    expect(shared_lab.part(".ew-status")).to_contain_text("0 of 50 guests seated")
    yield shared_lab
    shared_lab.press("pause")
    assert shared_lab.faults == []


def guests(lab: OpenedLab) -> int:
    """Guests in the restaurant; its marks are tables, a new table, guests and the newest guest."""
    return int(lab.value("lab.labels.size"))


def test_guests_sit_down_step_by_step_and_by_themselves(
    lab: OpenedLab, screenshot: Callable[[str], Path]
) -> None:
    lab.press("step")
    expect(lab.part(".ew-status")).to_contain_text("guest 1 of 50 opens table 1 (chance 1.00)")
    lab.part("button.ew-step").press("Enter")
    expect(lab.part(".ew-status")).to_contain_text("guest 2 of 50")
    assert guests(lab) == 2
    lab.choose_speed("1 guest a frame")
    lab.press("play")
    lab.page.wait_for_function(
        "() => Number(document.querySelector('.ew-status').textContent.match(/guest (\\d+)/)?.[1]) >= 12"
    )
    lab.press("pause")
    seated = guests(lab)
    expect(lab.part(".ew-status")).to_contain_text(f"guest {seated} of 50")
    screenshot("prior-lab-seating")
    # One path a table, one for the new table, one a guest and one for the newest.
    tables = int(lab.value("len(lab._seating.sizes)"))
    expect(lab.part(".ew-tables path.dot")).to_have_count(tables + 1 + seated + 1)
    lab.page.wait_for_timeout(500)
    assert guests(lab) == seated
    lab.press("fill")
    expect(lab.part(".ew-status")).to_contain_text("1 partition drawn")
    assert guests(lab) == 50


def test_draws_follow_the_exact_law_and_many_components_become_the_prior(
    lab: OpenedLab, screenshot: Callable[[str], Path]
) -> None:
    assert lab.number(".ew-mean") == pytest.approx(ewens.expected_clusters(50, 1.0), abs=6e-4)
    lab.press("draw")
    lab.press("draw")
    expect(lab.part(".ew-status")).to_contain_text("2 000 partitions drawn")
    assert lab.number(".ew-draws-mean") == pytest.approx(lab.number(".ew-mean"), abs=0.15)
    assert lab.number(".ew-draws-distance") < 0.05
    screenshot("prior-lab")
    far = lab.number(".ew-distance")
    assert far == pytest.approx(0.22, abs=0.01)
    lab.press_on_slider(".ew-components", "ArrowRight", 3)
    expect(lab.part(".ew-law .ew-legend")).to_contain_text("k = 100 components")
    near = lab.number(".ew-distance")
    lab.press_on_slider(".ew-components", "End")
    expect(lab.part(".ew-law .ew-legend")).to_contain_text("k = 10000 components")
    assert lab.number(".ew-distance") < 0.001 < near < 0.1 * far + 0.01
    lab.press_on_slider(".ew-components", "Home")
    expect(lab.part(".ew-law .ew-legend")).to_contain_text("k = 1 components")
    assert lab.number(".ew-distance") > 0.95
    lab.set_slider(".ew-lambda", "5")
    expect(lab.part(".ew-status")).to_contain_text(" 0 partitions drawn")
    # The slider takes the nearest of its steps, which are a hundredth of a power of ten.
    concentration = float(lab.value("lab.concentration"))
    assert concentration == pytest.approx(5.0, rel=0.02)
    expect(lab.part(".ew-mean")).to_have_text(f"{ewens.expected_clusters(50, concentration):.3f}")
    lab.set_slider(".ew-lambda", "1")
    expect(lab.part(".ew-mean")).to_have_text(f"{ewens.expected_clusters(50, 1.0):.3f}")


def centre(lab: OpenedLab, expression: str) -> tuple[float, float]:
    """Place on the page of a place in the restaurant, whose scales count pixels from the bottom left."""
    x, y = lab.value(f"tuple(float(value) for value in {expression})")
    box = lab.box(".ew-tables")
    return box["x"] + x * box["width"] / 470, box["y"] + (290 - y) * box["height"] / 290


def test_the_probability_of_a_partition_that_is_typed_or_dragged(
    lab: OpenedLab, screenshot: Callable[[str], Path]
) -> None:
    lab.type_in(".ew-typed", "1 2 | 2")
    expect(lab.part(".ew-typed .ew-problem")).to_contain_text("object 2 is there twice")
    lab.type_in(".ew-typed", "1 2 | 3")
    expect(lab.part(".ew-probability")).to_have_text("0.166667")
    expect(lab.part(".ew-typed .ew-problem")).to_be_hidden()
    guest = centre(lab, "(lab.restaurant.guests.x[2], lab.restaurant.guests.y[2])")
    lab.drag(guest, centre(lab, "lab.restaurant._plan.centres[0]"))
    expect(lab.part(".ew-probability")).to_have_text("0.333333")
    expect(lab.part(".ew-typed input")).to_have_value("1 2 3 |")
    guest = centre(lab, "(lab.restaurant.guests.x[0], lab.restaurant.guests.y[0])")
    lab.drag(guest, centre(lab, "lab.restaurant._plan.centres[-1]"))
    expect(lab.part(".ew-typed input")).to_have_value("1 | 2 3")
    expect(lab.part(".ew-probability")).to_have_text("0.166667")
    screenshot("prior-lab-dragged")
    lab.type_in(".ew-typed", "a a b b")
    expect(lab.part(".ew-chance")).to_contain_text("Your partition of 4 objects")
    assert lab.number(".ew-probability") == pytest.approx(1 / 24, rel=1e-4)
    assert lab.value("lab.tally.n_draws") == 0
    lab.part("button.ew-back").click()
    expect(lab.part(".ew-chance")).to_contain_text("The restaurant is empty")


def test_it_fits_and_is_readable_in_both_themes(
    lab: OpenedLab, shared_server: Server, screenshot: Callable[[str], Path]
) -> None:
    lab.press("fill")
    expect(lab.part(".ew-status")).to_contain_text("guest 50 of 50")
    lab.assert_fits_the_projector()
    lab.assert_readable()
    with reopened_in_the_dark(lab, shared_server, "prior-lab.ipynb"):
        lab.press("draw")
        expect(lab.part(".ew-status")).to_contain_text("50 of 50 guests seated")
        screenshot("prior-lab-dark")
        lab.assert_fits_the_projector()
        lab.assert_readable()
