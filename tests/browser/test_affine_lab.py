"""The two-minute lesson of the affine lab: which results are invariant to a change of coordinates."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser.labs_page import OpenedLab, opened_lab, reopened_in_the_dark
from browser.opened import Server, new_page
from playwright.sync_api import Browser, Page, expect

SAME = 1e-6


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    page = new_page(browser)
    yield page
    page.context.close()


@pytest.fixture(scope="module")
def shared_lab(page: Page, shared_server: Server) -> Iterator[OpenedLab]:
    with opened_lab(page, shared_server, "affine-lab", "ew.AffineLab()") as lab:
        yield lab


@pytest.fixture
def lab(shared_lab: OpenedLab) -> Iterator[OpenedLab]:
    """The lab with the data as they were drawn; nothing may have gone wrong after the test."""
    shared_lab.part("button.ew-paper-I").click()
    expect(shared_lab.part(".ew-verdict")).to_have_text(
        "Models I, II, III and k-means are invariant: same result before and after."
    )
    yield shared_lab
    assert shared_lab.faults == []


def differences(lab: OpenedLab) -> dict[str, float]:
    """Largest differences as they are printed."""
    return {model: lab.number(f".ew-model-{model} .ew-difference") for model in ("I", "II", "III")}


def test_only_model_iii_is_invariant_to_the_paper_s_matrix(
    lab: OpenedLab, screenshot: Callable[[str], Path]
) -> None:
    assert differences(lab) == {"I": 0.0, "II": 0.0, "III": 0.0}
    lab.part("button.ew-paper-III").click()
    expect(lab.part(".ew-verdict")).to_have_text(
        "Model III is invariant: same result before and after. "
        "Models I, II and k-means changed: the result depends on the coordinates."
    )
    screenshot("affine-lab")
    printed = differences(lab)
    assert printed["III"] < SAME
    assert printed["I"] > 0.1
    assert printed["II"] > 0.1
    assert printed == pytest.approx(lab.value("lab.differences()"), abs=1e-6)
    assert lab.number(".ew-k-means .ew-moved") > 5
    assert lab.have_same_pixels(".ew-model-III .ew-original", ".ew-model-III .ew-transformed")
    assert not lab.have_same_pixels(".ew-model-I .ew-original", ".ew-model-I .ew-transformed")
    # The page rounds the sliders to their steps; the matrix is still the paper's.
    assert lab.value("lab.matrix.tolist()") == [[4.1, 1.1], [2.1, 1.1]]


def test_rotation_stretching_and_the_keyboard(lab: OpenedLab) -> None:
    lab.set_slider(".ew-rotation", "30")
    expect(lab.part(".ew-verdict")).to_have_text(
        "Models I, III and k-means are invariant: same result before and after. "
        "Model II changed: the result depends on the coordinates."
    )
    assert differences(lab)["II"] > 0.1
    lab.part("button.ew-paper-I").click()
    lab.press_on_slider(".ew-scale-x", "ArrowRight", 40)
    lab.wait_for_value("float(lab.matrix[0, 0])", pytest.approx(10**0.4, abs=1e-3))
    expect(lab.part(".ew-verdict")).to_contain_text("Models II and III are invariant")
    assert differences(lab)["I"] > 0.1
    lab.press_on_slider(".ew-shift-y", "ArrowRight", 3)
    lab.wait_for_value("lab.controls.shift", pytest.approx((0.0, 0.3)))
    expect(lab.part(".ew-verdict")).to_contain_text("Models II and III are invariant")


def test_a_matrix_can_be_typed_and_a_singular_one_is_refused(lab: OpenedLab) -> None:
    lab.type_in(".ew-matrix", "1 2; 2 4")
    expect(lab.part(".ew-matrix .ew-problem")).to_contain_text("singular")
    assert lab.value("lab.matrix.tolist()") == [[1.0, 0.0], [0.0, 1.0]]
    lab.type_in(".ew-matrix", "1 0; 3 1")
    expect(lab.part(".ew-matrix .ew-problem")).to_be_hidden()
    expect(lab.part(".ew-verdict")).to_contain_text("Model III is invariant")
    expect(lab.part(".ew-shear .widget-readout")).to_have_text("3.00")
    printed = differences(lab)
    assert printed["III"] < SAME
    assert min(printed["I"], printed["II"]) > 0.1


def test_it_fits_and_is_readable_in_both_themes(
    lab: OpenedLab, shared_server: Server, screenshot: Callable[[str], Path]
) -> None:
    lab.assert_fits_the_projector()
    lab.assert_readable()
    with reopened_in_the_dark(lab, shared_server, "affine-lab.ipynb"):
        lab.part("button.ew-paper-III").click()
        expect(lab.part(".ew-verdict")).to_contain_text("Model III is invariant")
        screenshot("affine-lab-dark")
        lab.assert_fits_the_projector()
        lab.assert_readable()
