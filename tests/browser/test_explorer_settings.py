"""Settings, tables and files of the Explorer, right, wrong and hostile, in JupyterLab.

Reading tables and refusing values is tested without a browser. Here they go from the page to the kernel, and
the answers come back.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from browser.explorer_page import upload
from browser.opened import Desk, OpenedExplorer, explorer_code, opened_explorer
from messy_tables import lines
from playwright.sync_api import expect

CHAIN = "(explorer.dataset.name, str(explorer.settings.prior), id(explorer.sampler))"
MARKUP = "<img src=x onerror=window.harm=1><script>window.harm=2</script>"


SHOWN = {
    "feature": "feature",
    "category": "feature: category",
    "names": "row names",
    "classes": "known classes",
    "left out": "leave out",
}

# Its mineral is sand and clay together, each rounded by itself.
AS_IT_COMES = lines(
    "plot,sand,clay,mineral,acidity,use",
    *(
        f"{k + 1},{sand:.1f},{clay:.1f},{sand + clay:.1f},"
        f"{'' if k % 5 == 3 else k * 13 % 29 / 10},{('field', 'meadow', 'wood')[k % 3]}"
        for k, sand, clay in ((k, k * 7 % 40 + k / 9, k * 11 % 37 + k / 7) for k in range(40))
    ),
)


@pytest.fixture(scope="module")
def shared_explorer(desk: Desk) -> Iterator[OpenedExplorer]:
    code = explorer_code("ew.datasets.unit_square(seed=0), iterations=100_000, speed=1 / 10")
    with opened_explorer(desk, code) as explorer:
        yield explorer


@pytest.fixture
def explorer(shared_explorer: OpenedExplorer) -> Iterator[OpenedExplorer]:
    yield shared_explorer
    shared_explorer.pause()
    expect(shared_explorer.part(".ew-view-error:visible")).to_have_count(0)
    assert shared_explorer.faults == []
    assert shared_explorer.page.evaluate("() => window.harm") is None
    # Images of the figures are SVG images; there is no other image or script in an Explorer.
    expect(shared_explorer.part("img, script, [onerror]")).to_have_count(0)


def table(header: list[str], classes: list[str], rows: int = 30) -> bytes:
    """Make a table of two numeric columns and a class, with quotes around all names."""
    rng = np.random.default_rng(5)
    lines = [",".join(f'"{name}"' for name in header)]
    for row in range(rows):
        label = row % len(classes)
        lines.append(f'{rng.normal(5 * label):.3f},{rng.normal():.3f},"{classes[label]}"')
    return "\n".join(lines).encode()


def test_settings_open_by_the_keyboard_alone(explorer: OpenedExplorer) -> None:
    page = explorer.page
    header = explorer.part(".ew-settings").get_by_role("button", name="More settings", exact=True)
    expect(header).to_have_attribute("aria-expanded", "false")
    explorer.part(".ew-example select").focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        if header.evaluate("header => header === document.activeElement"):
            break
    expect(header).to_be_focused()
    for key, is_open in (("Enter", True), (" ", False), (" ", True)):
        page.keyboard.press(key)
        expect(header).to_have_attribute("aria-expanded", str(is_open).lower())
    explorer.open_section("Run")
    expect(explorer.part(".ew-iterations")).to_be_visible()
    # The space bar is the heading's, not Play's.
    assert explorer.value("explorer.player.status.iteration") == 0
    explorer.open_section("More settings")


def test_a_good_concentration_waits_for_a_restart(explorer: OpenedExplorer) -> None:
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
    explorer.wait_for_value("explorer.settings.prior.concentration", 2.5)
    explorer.press("step")
    explorer.wait_for_iteration(1)


def test_an_uploaded_table_is_clustered(explorer: OpenedExplorer) -> None:
    upload(explorer, "flowers.csv", table(["length", "width", "species"], ["rose", "tulip", "daisy"]))
    expect(explorer.part(".ew-about")).to_contain_text("30 objects × 2 features, 3 known classes")
    expect(explorer.part(".ew-data .ew-problem")).to_be_hidden()
    expect(explorer.part(".ew-scatter path.dot")).to_have_count(30)
    expect(explorer.part(".ew-x-feature select option").first).to_have_text("length")
    explorer.wait_for_iteration(0, or_later=False)
    before = explorer.marks()
    explorer.press("step")
    explorer.wait_for_iteration(1)
    explorer.wait_for_change("scatter", before["scatter"])


def test_markup_in_names_is_shown_as_text(explorer: OpenedExplorer) -> None:
    header = [MARKUP, f"second {MARKUP}", "class"]
    upload(explorer, f"{MARKUP}.csv".replace("/", "|"), table(header, [MARKUP, f"other {MARKUP}"]))
    expect(explorer.part(".ew-about")).to_contain_text("2 known classes")
    expect(explorer.part(".ew-about")).to_contain_text("<img src=x")
    expect(explorer.part(".ew-x-feature select option").first).to_contain_text("<img src=x")
    explorer.press("step")
    explorer.wait_for_iteration(1)


def test_a_large_file_is_not_sent_and_the_chain_goes_on(explorer: OpenedExplorer) -> None:
    chain = explorer.value(CHAIN)
    explorer.press("play")
    explorer.wait_for_iteration(explorer.iteration() + 1)
    upload(explorer, f"{MARKUP}.csv".replace("/", "|"), b"1.5,2.5\n" * 750_000)
    for text in ("<img src=x", "6.0 MB; the limit is 5 MB"):
        expect(explorer.part(".ew-data .ew-problem")).to_contain_text(text)
    explorer.wait_for_iteration(explorer.iteration() + 2)
    assert explorer.value(CHAIN) == chain


def expect_roles(explorer: OpenedExplorer, roles: dict[str, str]) -> None:
    """Wait until the page says what each column is."""
    expect(explorer.part(".ew-column-role")).to_have_count(len(roles))
    for column, expected in roles.items():
        control = explorer.part(".ew-column-role").filter(has=explorer.page.get_by_text(column, exact=True))
        expect(control.locator("option:checked")).to_have_text(SHOWN[expected])


def test_a_table_with_gaps_a_category_a_rounded_sum_and_a_counter_is_clustered(
    explorer: OpenedExplorer,
) -> None:
    upload(explorer, "plots.csv", AS_IT_COMES)
    roles = {"plot": "left out", "sand": "feature", "clay": "feature", "mineral": "feature"}
    expect_roles(explorer, roles | {"acidity": "feature", "use": "classes"})
    for text in (
        "it only counts the rows, 1 to 40",
        "8 missing values are drawn with the clusters",
        "'mineral' is a linear combination of 'sand', 'clay'",
    ):
        expect(explorer.part(".ew-table-columns")).to_contain_text(text)
    control = explorer.part(".ew-column-role").filter(has=explorer.page.get_by_text("use", exact=True))
    control.locator("select").select_option(label=SHOWN["category"])
    explorer.part("button.ew-use-columns").click()
    expect(explorer.part(".ew-about")).to_contain_text("40 objects × 5 features")
    expect_roles(explorer, roles | {"acidity": "feature", "use": "category"})
    explorer.wait_for_value("[kind.kind for kind in explorer.dataset.kinds]", ["number"] * 4 + ["category"])
    expect(explorer.part(".ew-scatter path.dot")).to_have_count(40)
    explorer.wait_for_iteration(0, or_later=False)
    before = explorer.marks()
    explorer.press("step")
    explorer.wait_for_iteration(1)
    explorer.wait_for_change("scatter", before["scatter"])
    expect(explorer.part(".ew-view-error:visible")).to_have_count(0)
    explorer.wait_for_value("len(explorer.trace.imputed())", 8)
