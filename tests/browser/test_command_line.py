"""`ewens-widgets lab`, started as a user starts it."""

from collections.abc import Callable
from pathlib import Path

from browser.lab_server import running_lab
from playwright.sync_api import Page, expect


def test_lab_leads_to_the_first_tutorial(
    page: Page, tmp_path: Path, screenshot: Callable[[str], Path]
) -> None:
    course = tmp_path / "course"
    command = ["-m", "ewens_widgets.app", "lab", "--directory", str(course)]
    with running_lab(tmp_path, command, course) as lab:
        page.goto(lab.address)
        expect(page.get_by_role("heading", name="Quickstart")).to_be_visible()
        expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
        screenshot("command-line-lab")
    assert (course / "01_quickstart.ipynb").is_file()
