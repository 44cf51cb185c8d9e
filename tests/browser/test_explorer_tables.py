"""Tables as people have them, uploaded in a real browser: the data, the account, and the choices."""

from collections.abc import Callable, Iterator
from pathlib import Path

import messy_tables
import pytest
from browser.explorer_page import upload
from browser.opened import OpenedExplorer, Server, explorer_code, new_page, opened_explorer
from messy_tables import Messy, lines
from playwright.sync_api import Browser, Page, expect

SHOWN = {
    "feature": "feature",
    "names": "names of the rows",
    "classes": "known classes",
    "left out": "leave out",
}
TITLES = (
    "Latin-1",
    "UTF-16",
    "quoted newlines",
    "a title",
    "thousands beside decimals",
    "German",
    "units and per cent",
    "the index that pandas writes",
    "a table that R wrote",
    "numeric identifiers",
    "a script in every place",
)
UNDERSTOOD = [case for case in messy_tables.UNDERSTOOD if case.title in TITLES]

# A table that the reader asks about, the choices to make, and the data that come of it.
ASKED = [
    (
        Messy("two columns of text", lines("x,site,y,kind", "1.5,a,2,u", "2.5,b,7,v", "3.5,a,4,v")),
        {"site": "leave out", "kind": "known classes"},
        messy_tables.THREE,
    ),
    (
        Messy("thousands or decimals", lines("weight,y", '"1,007",2', '"2,150",7', "980,4")),
        {"weight": "feature: thousands"},
        [[1007.0, 2.0], [2150.0, 7.0], [980.0, 4.0]],
    ),
    (Messy("missing values", lines("x,y", "1.5,2", "NA,9", "2.5,7", "3.5,4")), {}, messy_tables.THREE),
]


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    page = new_page(browser)
    yield page
    page.context.close()


@pytest.fixture(scope="module")
def shared_explorer(page: Page, shared_server: Server) -> Iterator[OpenedExplorer]:
    code = explorer_code("ew.datasets.unit_square(seed=0)")
    with opened_explorer(page, shared_server, "tables", code) as explorer:
        yield explorer


@pytest.fixture
def explorer(shared_explorer: OpenedExplorer) -> Iterator[OpenedExplorer]:
    yield shared_explorer
    assert shared_explorer.faults == []
    expect(shared_explorer.part("img, script, [onerror]")).to_have_count(0)


def expect_roles(explorer: OpenedExplorer, roles: dict[str, str]) -> None:
    """Wait until the page says what each column is."""
    expect(explorer.part(".ew-column-role")).to_have_count(len(roles))
    for column, expected in roles.items():
        control = explorer.part(".ew-column-role").filter(has=explorer.page.get_by_text(column, exact=True))
        expect(control.locator("option:checked")).to_have_text(SHOWN[expected])


def data(explorer: OpenedExplorer) -> object:
    return explorer.value("explorer.dataset.X.tolist()")


@pytest.mark.parametrize("case", UNDERSTOOD, ids=lambda case: case.title)
def test_an_upload_is_understood_and_its_account_is_shown(explorer: OpenedExplorer, case: Messy) -> None:
    upload(explorer, f"{case.title}.csv", case.content)
    count = sum(it == "feature" for it in case.roles.values())
    features = "1 features" if count == 1 else f"{count} features"
    expect(explorer.part(".ew-about")).to_contain_text(f"3 objects × {features}")
    expect(explorer.part(".ew-about")).to_contain_text(f"Read from {case.title}.csv")
    expect(explorer.part(".ew-data .ew-problem")).to_be_hidden()
    assert data(explorer) == case.X
    expect_roles(explorer, case.roles)


@pytest.mark.parametrize(("case", "choices", "expected"), ASKED, ids=lambda it: getattr(it, "title", ""))
def test_an_upload_that_needs_an_answer_gets_it_on_the_page(
    explorer: OpenedExplorer,
    case: Messy,
    choices: dict[str, str],
    expected: list[list[float]],
    screenshot: Callable[[str], Path],
) -> None:
    before = data(explorer)
    upload(explorer, f"{case.title}.csv", case.content)
    expect(explorer.part(".ew-data .ew-problem")).to_contain_text("Choose below, then use these columns.")
    assert data(explorer) == before
    for name, choice in choices.items():
        control = explorer.part(".ew-column-role").filter(has=explorer.page.get_by_text(name, exact=True))
        control.locator("select").select_option(label=choice)
    screenshot(f"explorer-columns-{case.title.replace(' ', '-')}")
    explorer.part("button.ew-use-columns").click()
    expect(explorer.part(".ew-about")).to_contain_text(f"Read from {case.title}.csv")
    expect(explorer.part(".ew-data .ew-problem")).to_be_hidden()
    assert data(explorer) == expected
