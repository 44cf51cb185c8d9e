"""The quickstart as a newcomer meets it: `ewens-widgets lab` opens it, and it runs from top to bottom."""

import re
from pathlib import Path

import nbformat
from browser.lite_site import strip_outputs
from browser.opened import CODE_PROMPT, ERROR_OUTPUT, OUTPUT, STDERR_OUTPUT, run_all
from browser.servers import running_lab
from playwright.sync_api import Page, expect


def test_lab_leads_to_the_first_tutorial_and_it_runs(page: Page, compiled: None, tmp_path: Path) -> None:
    course = tmp_path / "course"
    command = ["-m", "ewens_widgets.app", "lab", "--directory", str(course)]
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    with running_lab(tmp_path, command, course) as lab:
        strip_outputs(course)
        page.goto(lab.address)
        expect(page.get_by_role("heading", name="Quickstart")).to_be_visible()
        expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
        run_all(page)
        cells = nbformat.read(course / "01_quickstart.ipynb", as_version=4).cells
        code = enumerate((cell for cell in cells if cell.cell_type == "code"), 1)
        seen = [number for number, cell in code if not cell.metadata.get("jupyter", {}).get("source_hidden")]
        expect(page.locator(CODE_PROMPT)).to_have_text([f"[{number}]:" for number in seen])
        expect(page.locator(OUTPUT).last).to_have_text("All claims hold.")
        expect(page.locator(ERROR_OUTPUT)).to_have_count(0)
        expect(page.locator(STDERR_OUTPUT)).to_have_count(0)

        # The Explorer at its top goes on from the head start that the cell gave it, once Play is pressed.
        explorer = page.locator(".ew-explorer")
        explorer.scroll_into_view_if_needed()
        explorer.locator("button.ew-play").click()
        expect(explorer.locator(".ew-status")).to_have_text(re.compile(r"iteration (?!400 of)[\d ]+ of"))
        assert faults == []
