"""The quickstart as a newcomer meets it: opened in JupyterLab, run from top to bottom."""

import re
from collections.abc import Callable
from pathlib import Path

import nbformat
from browser.lab_page import CODE_PROMPT, ERROR_OUTPUT, OUTPUT, STDERR_OUTPUT, run_all_cells
from browser.lab_server import Lab
from playwright.sync_api import Page, expect

QUICKSTART = "01_quickstart.ipynb"


def without_outputs(source: Path) -> nbformat.NotebookNode:
    notebook = nbformat.read(source, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def test_quickstart_runs_from_top_to_bottom(
    page: Page, lab: Lab, repository: Path, screenshot: Callable[[str], Path]
) -> None:
    notebook = without_outputs(repository / "notebooks" / QUICKSTART)
    nbformat.write(notebook, lab.root / QUICKSTART)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    run_all_cells(page, lab, QUICKSTART)
    screenshot("quickstart-end")

    expect(page.locator(ERROR_OUTPUT)).to_have_count(0)
    expect(page.locator(STDERR_OUTPUT)).to_have_count(0)
    count = sum(cell.cell_type == "code" for cell in notebook.cells)
    expect(page.locator(CODE_PROMPT)).to_have_text([f"[{k}]:" for k in range(1, count + 1)])
    expect(page.locator(OUTPUT).last).to_have_text("All claims hold.")

    # The Explorer at its top plays by itself, from the head start that the cell gave it.
    page.locator(".ew-explorer").scroll_into_view_if_needed()
    expect(page.locator(".ew-explorer .ew-status")).to_have_text(re.compile(r"iteration (?!400 of)[\d ]+ of"))
    screenshot("quickstart-explorer")
    assert faults == []
