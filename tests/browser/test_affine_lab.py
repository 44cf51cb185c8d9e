"""The two-minute lesson of the AffineLab: which results are invariant to a change of coordinates."""

from collections.abc import Iterator

import pytest
from browser.opened import Desk, OpenedLab, opened_widget
from playwright.sync_api import expect

SAME = 1e-6

# Whether two pictures have the same pixels.
SAME_PIXELS = """
async ([one, other]) => {
  const pixels = async image => {
    await image.decode();
    const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return [canvas.width, ...context.getImageData(0, 0, canvas.width, canvas.height).data];
  };
  const [first, second] = [await pixels(one), await pixels(other)];
  return first.length === second.length && first.every((value, place) => value === second[place]);
}
"""


@pytest.fixture(scope="module")
def shared_lab(desk: Desk) -> Iterator[OpenedLab]:
    with opened_widget(OpenedLab, desk, "ew.AffineLab()") as lab:
        yield lab


@pytest.fixture
def lab(shared_lab: OpenedLab) -> Iterator[OpenedLab]:
    """The lab with the data as they were drawn; the page has no errors after the test."""
    shared_lab.part("button.ew-paper-I").click()
    expect(shared_lab.part(".ew-verdict")).to_have_text(
        "Models I, II, III and k-means are invariant: same result before and after."
    )
    yield shared_lab
    assert shared_lab.faults == []


def wait_for_differences(lab: OpenedLab, same: str, other: str) -> dict[str, float]:
    """The largest difference of each model as printed, once those of some are 0 and those of others large."""
    return lab.eventually(
        lambda: {model: lab.number(f".ew-model-{model} .ew-difference") for model in ("I", "II", "III")},
        lambda printed: (
            all(printed[model] < SAME for model in same.split())
            and all(printed[model] > 0.1 for model in other.split())
        ),
    )


def have_same_pixels(lab: OpenedLab, model: str) -> bool:
    """Whether the pictures before and after are equal."""
    parts = [f".ew-model-{model} .ew-{which}" for which in ("original", "transformed")]
    return bool(lab.page.evaluate(SAME_PIXELS, [lab.part(part).element_handle() for part in parts]))


def test_only_model_iii_is_invariant_to_the_paper_s_matrix(lab: OpenedLab) -> None:
    wait_for_differences(lab, "I II III", "")
    lab.part("button.ew-paper-III").click()
    expect(lab.part(".ew-verdict")).to_have_text(
        "Model III is invariant: same result before and after. "
        "Models I, II and k-means changed: the result depends on the coordinates."
    )
    printed = wait_for_differences(lab, "III", "I II")
    assert printed == pytest.approx(lab.value("lab.differences()"), abs=1e-6)
    lab.eventually(lambda: lab.number(".ew-k-means .ew-moved"), lambda moved: moved > 5)
    lab.eventually(
        lambda: (have_same_pixels(lab, "III"), have_same_pixels(lab, "I")), lambda same: same == (True, False)
    )
    # The page rounds the sliders to their steps; the matrix is still the paper's.
    assert lab.value("lab.matrix.tolist()") == [[4.1, 2.1], [1.9, 1.1]]
    lab.press_on_slider(".ew-shift-y", "ArrowRight", 3)
    lab.wait_for_value("lab.controls.shift", pytest.approx((0.0, 0.3)))
