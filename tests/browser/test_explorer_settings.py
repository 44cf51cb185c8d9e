"""Settings, tables and files of the Explorer, right, wrong and hostile, in JupyterLab.

Reading tables and refusing values is tested without a browser. Here they go from the page to the kernel, and
the answers come back.
"""

from collections.abc import Iterator

import messy_tables
import numpy as np
import pytest
from browser.explorer_page import upload
from browser.opened import Desk, OpenedExplorer, explorer_code, opened_explorer
from messy_tables import Messy, lines
from playwright.sync_api import expect

CHAIN = "(explorer.dataset.name, str(explorer.settings.prior), id(explorer.sampler))"
MARKUP = "<img src=x onerror=window.harm=1><script>window.harm=2</script>"


DATA = "explorer.dataset.X.tolist()"
SHOWN = {
    "feature": "feature",
    "category": "feature: category",
    "names": "row names",
    "classes": "known classes",
    "left out": "leave out",
}
TITLES = ("UTF-16", "a table that R wrote", "a script in every place")
UNDERSTOOD = [case for case in messy_tables.UNDERSTOOD if case.title in TITLES]

# Its mineral is sand and clay together, each rounded by itself.
AS_IT_COMES = lines(
    "plot,sand,clay,mineral,acidity,use",
    *(
        f"{k + 1},{sand:.1f},{clay:.1f},{sand + clay:.1f},"
        f"{'' if k % 5 == 3 else k * 13 % 29 / 10},{('field', 'meadow', 'wood')[k % 3]}"
        for k, sand, clay in ((k, k * 7 % 40 + k / 9, k * 11 % 37 + k / 7) for k in range(40))
    ),
)

# A table that the reader asks about, and the choices to make.
ASKED = Messy("two columns of text", lines("x,site,y,kind", "1.5,a,2,u", "2.5,b,7,v", "3.5,a,4,v"))
CHOICES = {"site": "leave out", "kind": "known classes"}


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


def test_a_bad_concentration_is_explained_and_leaves_the_chain_alone(explorer: OpenedExplorer) -> None:
    chain = explorer.value(CHAIN)
    explorer.press("play")
    explorer.wait_for_iteration(explorer.iteration() + 1)
    problem, apply = explorer.part(".ew-prior-concentration .ew-problem"), explorer.part("button.ew-apply")
    expect(apply).to_be_hidden()
    for text, message in (("-1", "positive"), ("", "not a number")):
        explorer.type_in(".ew-prior-concentration", text)
        expect(problem).to_contain_text(message)
    explorer.wait_for_iteration(explorer.iteration() + 2)
    assert explorer.value(CHAIN) == chain
    expect(apply).to_be_hidden()
    explorer.type_in(".ew-prior-concentration", "1")
    expect(problem).to_be_hidden()
    # The value is the chain's again: there is nothing to restart for.
    expect(apply).to_be_hidden()


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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("binary.csv", np.random.default_rng(6).bytes(100_000), "not a text file"),
        ("empty.csv", b"", "empty"),
        ("bad.csv", f'"{MARKUP}",b\n1,2\n"{MARKUP}",4\n5,6\n7,8\n'.encode(), "<img src=x"),
        (f"{MARKUP}.csv".replace("/", "|"), b"1.5,2.5\n" * 750_000, "<img src=x"),
    ],
    ids=["binary", "empty", "markup", "large-with-markup"],
)
def test_a_useless_file_is_refused_and_the_chain_goes_on(
    explorer: OpenedExplorer, name: str, content: bytes, message: str
) -> None:
    chain = explorer.value(CHAIN)
    explorer.press("play")
    explorer.wait_for_iteration(explorer.iteration() + 1)
    upload(explorer, name, content)
    expect(explorer.part(".ew-data .ew-problem")).to_contain_text(message)
    if len(content) > 5_000_000:
        expect(explorer.part(".ew-data .ew-problem")).to_contain_text("6.0 MB; the limit is 5 MB")
    explorer.wait_for_iteration(explorer.iteration() + 2)
    assert explorer.value(CHAIN) == chain


def expect_roles(explorer: OpenedExplorer, roles: dict[str, str]) -> None:
    """Wait until the page says what each column is."""
    expect(explorer.part(".ew-column-role")).to_have_count(len(roles))
    for column, expected in roles.items():
        control = explorer.part(".ew-column-role").filter(has=explorer.page.get_by_text(column, exact=True))
        expect(control.locator("option:checked")).to_have_text(SHOWN[expected])


@pytest.mark.parametrize("case", UNDERSTOOD, ids=lambda case: case.title)
def test_an_upload_is_understood_and_its_account_is_shown(explorer: OpenedExplorer, case: Messy) -> None:
    upload(explorer, f"{case.title}.csv", case.content)
    count = sum(it == "feature" for it in case.roles.values())
    features = "1 features" if count == 1 else f"{count} features"
    expect(explorer.part(".ew-about")).to_contain_text(f"3 objects × {features}")
    expect(explorer.part(".ew-about")).to_contain_text(f"Read from {case.title}.csv")
    expect(explorer.part(".ew-data .ew-problem")).to_be_hidden()
    explorer.wait_for_value(DATA, case.X)
    expect_roles(explorer, case.roles)


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


def test_an_upload_that_needs_an_answer_gets_it_on_the_page(explorer: OpenedExplorer) -> None:
    chain = explorer.value(CHAIN)
    upload(explorer, f"{ASKED.title}.csv", ASKED.content)
    expect(explorer.part(".ew-data .ew-problem")).to_contain_text("Choose below, then use these columns.")
    assert explorer.value(CHAIN) == chain
    for name, choice in CHOICES.items():
        control = explorer.part(".ew-column-role").filter(has=explorer.page.get_by_text(name, exact=True))
        control.locator("select").select_option(label=choice)
    explorer.part("button.ew-use-columns").click()
    expect(explorer.part(".ew-about")).to_contain_text(f"Read from {ASKED.title}.csv")
    expect(explorer.part(".ew-data .ew-problem")).to_be_hidden()
    explorer.wait_for_value(DATA, messy_tables.THREE)


def test_own_shapes_are_chosen_played_saved_and_loaded(explorer: OpenedExplorer, desk: Desk) -> None:
    explorer.value("explorer.use_preset('four corners')")
    expect(explorer.part(".ew-title")).to_contain_text("80 points")
    preset, outlines = explorer.part(".ew-preset select"), explorer.part(".ew-scatter path.line")
    explorer.show_all_pictures()
    explorer.open_section("More settings")
    explorer.open_section("Shapes and grids")
    expect(preset).to_be_visible()
    expect(explorer.part(".ew-nu-grid")).to_be_hidden()
    preset.select_option(label="own shapes")
    explorer.wait_for_value("explorer.sampler.posterior.shapes", "own")
    expect(explorer.part(".ew-shapes select")).to_have_value("one per cluster")
    expect(explorer.part(".ew-prior-gamma input")).to_be_visible()
    expect(explorer.part(".ew-nu-grid input")).to_be_visible()
    explorer.press("ellipses")
    explorer.press("play")
    explorer.wait_for_iteration(5)
    seen = str(outlines.first.get_attribute("d"))
    expect(outlines.first).not_to_have_attribute("d", seen)
    explorer.pause()
    expect(explorer.part(".ew-pooling")).to_contain_text("pooling ν")
    expect(outlines.first).to_be_visible()
    explorer.press("ellipses")
    expect(outlines.first).to_be_hidden()
    explorer.press("ellipses")
    expect(outlines.first).to_be_visible()
    saved = explorer.value("(explorer.player.status.iteration, explorer.labels.tolist())")
    explorer.value("explorer.save('own-shapes.ewens')")
    preset.select_option(label="as in the paper")
    explorer.press("apply")
    explorer.wait_for_value("explorer.sampler.posterior.shapes", "common")
    explorer.open_section("Save and export")
    explorer.part(".ew-load input[type=file]").set_input_files(desk.server.lab.root / "own-shapes.ewens")
    explorer.wait_for_value("explorer.sampler.posterior.shapes", "own")
    explorer.wait_for_value("(explorer.player.status.iteration, explorer.labels.tolist())", saved)
    explorer.open_section("More settings")
    expect(preset).to_have_value("own shapes")
    expect(outlines.first).to_be_visible()
    expect(explorer.part("button.ew-apply")).to_be_hidden()
