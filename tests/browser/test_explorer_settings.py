"""Settings and files of the explorer, right, wrong and hostile, in JupyterLab."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from browser.explorer_page import upload
from browser.opened import OpenedExplorer, Server, explorer_code, new_page, opened_explorer
from playwright.sync_api import Browser, Page, expect

CHAIN = "(explorer.dataset.name, str(explorer.settings.prior), id(explorer.sampler))"
MARKUP = "<img src=x onerror=window.harm=1><script>window.harm=2</script>"


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    page = new_page(browser)
    yield page
    page.context.close()


@pytest.fixture(scope="module")
def shared_explorer(page: Page, shared_server: Server) -> Iterator[OpenedExplorer]:
    code = explorer_code("ew.datasets.unit_square(seed=0), iterations=100_000, speed=1 / 10")
    with opened_explorer(page, shared_server, "settings", code) as explorer:
        yield explorer


@pytest.fixture
def explorer(shared_explorer: OpenedExplorer) -> Iterator[OpenedExplorer]:
    yield shared_explorer
    shared_explorer.press("pause")
    expect(shared_explorer.part(".ew-view-error:visible")).to_have_count(0)
    assert shared_explorer.faults == []
    assert shared_explorer.page.evaluate("() => window.harm") is None


def table(header: list[str], classes: list[str], rows: int = 30) -> bytes:
    """Make a table of two numeric columns and a class, with quotes around all names."""
    rng = np.random.default_rng(5)
    lines = [",".join(f'"{name}"' for name in header)]
    for row in range(rows):
        label = row % len(classes)
        lines.append(f'{rng.normal(5 * label):.3f},{rng.normal():.3f},"{classes[label]}"')
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("text", "message"), [("-1", "positive"), ("many", "not a number"), ("", "not a number")]
)
def test_a_bad_concentration_is_explained_and_leaves_the_chain_alone(
    explorer: OpenedExplorer, text: str, message: str, screenshot: Callable[[str], Path]
) -> None:
    chain = explorer.value(CHAIN)
    explorer.press("play")
    explorer.wait_for_iteration(explorer.iteration() + 1)
    problem, apply = explorer.part(".ew-prior-concentration .ew-problem"), explorer.part("button.ew-apply")
    expect(apply).to_be_hidden()
    explorer.type_in(".ew-prior-concentration", text)
    expect(problem).to_contain_text(message)
    screenshot("explorer-bad-concentration")
    explorer.wait_for_iteration(explorer.iteration() + 2)
    assert explorer.value(CHAIN) == chain
    expect(apply).to_be_hidden()
    explorer.type_in(".ew-prior-concentration", "1")
    expect(problem).to_be_hidden()
    # The value is the chain's again: there is nothing to start anew for.
    expect(apply).to_be_hidden()


def test_a_good_concentration_waits_for_start_anew(explorer: OpenedExplorer) -> None:
    before = explorer.iteration()
    explorer.press("step")
    explorer.wait_for_iteration(before + 1)
    chain = explorer.value(CHAIN)
    explorer.type_in(".ew-prior-concentration", "2.5")
    expect(explorer.part("button.ew-apply")).to_be_visible()
    assert explorer.value(CHAIN) == chain
    explorer.press("apply")
    explorer.wait_for_iteration(0, or_later=False)
    expect(explorer.part("button.ew-apply")).to_be_hidden()
    assert explorer.value("explorer.settings.prior.concentration") == 2.5
    explorer.press("step")
    explorer.wait_for_iteration(1)


def test_an_uploaded_table_is_clustered(explorer: OpenedExplorer, screenshot: Callable[[str], Path]) -> None:
    upload(explorer, "flowers.csv", table(["length", "width", "species"], ["rose", "tulip", "daisy"]))
    expect(explorer.part(".ew-about")).to_contain_text("30 objects × 2 features, 3 known classes")
    expect(explorer.part(".ew-data .ew-problem")).to_be_hidden()
    expect(explorer.part(".ew-scatter path.dot")).to_have_count(30)
    expect(explorer.part(".ew-x-feature select option").first).to_have_text("length")
    explorer.wait_for_iteration(0, or_later=False)
    before = explorer.marks()
    explorer.press("step")
    explorer.wait_for_iteration(1)
    explorer.wait_until_still()
    assert explorer.marks()["scatter"] != before["scatter"]
    screenshot("explorer-upload")


def test_a_missing_value_is_reported_by_row_and_column(explorer: OpenedExplorer) -> None:
    chain = explorer.value(CHAIN)
    upload(explorer, "holes.csv", b"length,width\n1,2\n3,\n5,6\n")
    problem = explorer.part(".ew-data .ew-problem")
    expect(problem).to_contain_text("row 2")
    expect(problem).to_contain_text("width")
    assert explorer.value(CHAIN) == chain


def test_markup_in_names_is_shown_as_text(
    explorer: OpenedExplorer, screenshot: Callable[[str], Path]
) -> None:
    header = [MARKUP, f"second {MARKUP}", "class"]
    upload(explorer, f"{MARKUP}.csv".replace("/", "|"), table(header, [MARKUP, f"other {MARKUP}"]))
    expect(explorer.part(".ew-about")).to_contain_text("2 known classes")
    expect(explorer.part(".ew-about")).to_contain_text("<img src=x")
    expect(explorer.part(".ew-x-feature select option").first).to_contain_text("<img src=x")
    explorer.press("step")
    explorer.wait_for_iteration(1)
    explorer.wait_until_still()
    # Images of the figures are SVG images; there is no other image or script in an explorer.
    expect(explorer.part("img, script, [onerror]")).to_have_count(0)
    screenshot("explorer-markup")


def test_markup_in_a_refused_table_is_shown_as_text(explorer: OpenedExplorer) -> None:
    chain = explorer.value(CHAIN)
    upload(explorer, "bad.csv", f'"{MARKUP}",b\n1,2\n"{MARKUP}",4\n5,6\n7,8\n'.encode())
    expect(explorer.part(".ew-data .ew-problem")).to_contain_text("<img src=x")
    expect(explorer.part("img, script, [onerror]")).to_have_count(0)
    assert explorer.value(CHAIN) == chain


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("large.csv", b"1.5,2.5\n" * 750_000, "6.0 MB; at most 5 MB"),
        ("binary.csv", np.random.default_rng(6).bytes(100_000), "not a text file"),
        ("picture.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "not a text file"),
        ("empty.csv", b"", "empty"),
        (f"{MARKUP}.csv".replace("/", "|"), b"1.5,2.5\n" * 750_000, "<img src=x"),
    ],
    ids=["large", "binary", "picture", "empty", "large-with-markup"],
)
def test_a_useless_file_is_refused_and_the_chain_goes_on(
    explorer: OpenedExplorer, name: str, content: bytes, message: str
) -> None:
    chain = explorer.value(CHAIN)
    explorer.press("play")
    explorer.wait_for_iteration(explorer.iteration() + 1)
    upload(explorer, name, content)
    expect(explorer.part(".ew-data .ew-problem")).to_contain_text(message)
    explorer.wait_for_iteration(explorer.iteration() + 2)
    assert explorer.value(CHAIN) == chain
    expect(explorer.part("img, script, [onerror]")).to_have_count(0)


def test_own_shapes_are_chosen_played_saved_and_loaded(
    browser: Browser, shared_server: Server, screenshot: Callable[[str], Path]
) -> None:
    page = new_page(browser)
    code = explorer_code("ew.datasets.unit_square(seed=0), iterations=100_000")
    with opened_explorer(page, shared_server, "own-shapes", code) as explorer:
        preset, outlines = explorer.part(".ew-preset select"), explorer.part(".ew-scatter path.line")
        expect(explorer.part(".ew-nu-grid")).to_be_hidden()
        preset.select_option(label="own shapes")
        explorer.wait_for_value("explorer.sampler.posterior.shapes", "own")
        expect(explorer.part(".ew-shapes select")).to_have_value("each its own")
        expect(explorer.part(".ew-prior-gamma input")).to_be_visible()
        expect(explorer.part(".ew-nu-grid input")).to_be_visible()
        explorer.press("ellipses")
        explorer.press("play")
        explorer.wait_for_iteration(5)
        seen = outlines.first.get_attribute("d")
        page.wait_for_function(
            "seen => document.querySelector('.ew-scatter path.line').getAttribute('d') !== seen", arg=seen
        )
        explorer.press("pause")
        explorer.wait_until_still()
        expect(explorer.part(".ew-likeness")).to_contain_text("likeness ν")
        expect(outlines.first).to_be_visible()
        screenshot("explorer-own-shapes")
        explorer.press("ellipses")
        expect(outlines.first).to_be_hidden()
        explorer.press("ellipses")
        expect(outlines.first).to_be_visible()
        saved = explorer.value("(explorer.player.status.iteration, explorer.labels.tolist())")
        explorer.value("explorer.save('own-shapes.ewens')")
        preset.select_option(label="the paper's")
        explorer.press("apply")
        explorer.wait_for_value("explorer.sampler.posterior.shapes", "common")
        explorer.open_section("Save and export")
        explorer.part(".ew-load input[type=file]").set_input_files(
            shared_server.lab.root / "own-shapes.ewens"
        )
        explorer.wait_for_value("explorer.sampler.posterior.shapes", "own")
        assert explorer.value("(explorer.player.status.iteration, explorer.labels.tolist())") == saved
        explorer.open_section("Model")
        expect(preset).to_have_value("own shapes")
        expect(outlines.first).to_be_visible()
        expect(explorer.part("button.ew-apply")).to_be_hidden()
        assert explorer.faults == []
    page.context.close()
