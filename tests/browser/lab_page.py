"""What a person does in JupyterLab, and where its parts are on the page."""

import re

from browser.lab_server import Lab
from playwright.sync_api import Page, expect

CODE_PROMPT = ".jp-CodeCell .jp-InputPrompt"
OUTPUT = ".jp-OutputArea-output"
ERROR_OUTPUT = f"{OUTPUT}[data-mime-type='application/vnd.jupyter.error']"
STDERR_OUTPUT = f"{OUTPUT}[data-mime-type='application/vnd.jupyter.stderr']"


def run_all_cells(page: Page, lab: Lab, notebook: str) -> None:
    """Open a notebook, choose Run All from the menu and wait for the last cell's number."""
    page.goto(lab.url(notebook))
    # Not the notebook's own indicator: it says idle before there is a kernel, and running then gets stuck.
    expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name=re.compile("^Run All( Cells)?$")).click()
    last = page.locator(CODE_PROMPT).last
    expect(last).to_have_text(re.compile(r"\[\d+\]:"), timeout=120_000)
