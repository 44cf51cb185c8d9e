"""Opening a notebook that shows an explorer."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import NoReturn

import nbformat
import numpy as np
import pytest
from browser.explorer_page import ExplorerPage
from browser.kernel_probe import Kernel, probed_kernel
from browser.lab_server import Lab
from PIL import Image
from playwright.sync_api import Browser, Page, expect

# A classroom projector.
VIEWPORT = {"width": 1280, "height": 800}
PATIENCE = 120_000  # a kernel that starts on a busy machine takes its time

RECORDED = "(explorer.player.status.iteration, len(explorer.player.recorder))"


def do_without(what: str) -> NoReturn:
    """Skip a test for want of something that is not the project's; where everything has to be run, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


@dataclass(frozen=True)
class Server:
    """A JupyterLab that serves several notebooks, and where it keeps its connection files."""

    lab: Lab
    private: Path

    @property
    def runtime(self) -> Path:
        return self.private / "runtime"


@dataclass
class OpenedExplorer(ExplorerPage):
    """An explorer in JupyterLab, and the kernel behind it."""

    kernel: Kernel | None = None

    def value(self, expression: str) -> object:
        """Value of an expression in the kernel."""
        assert self.kernel is not None
        return self.kernel.value(expression)

    def wait_for_value(self, expression: str, expected: object) -> None:
        """Wait until an expression has a value in the kernel: what is done on the page gets there later."""
        deadline = time.monotonic() + PATIENCE / 1000
        while (value := self.value(expression)) != expected:
            assert time.monotonic() < deadline, f"{expression} is {value}, not {expected}"
            self.page.wait_for_timeout(100)


def write_notebook(path: Path, code: str, kernel: str = "python3") -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    notebook.metadata.kernelspec = {"name": kernel, "display_name": kernel, "language": "python"}
    nbformat.write(notebook, path)


def explorer_code(arguments: str) -> str:
    """Code of a cell that shows an explorer; names in the kernel are `ew` and `explorer`."""
    return f"import ewens_widgets as ew\nexplorer = ew.Explorer({arguments})\nexplorer"


def new_page(browser: Browser) -> Page:
    page = browser.new_context(viewport=VIEWPORT).new_page()
    page.set_default_timeout(PATIENCE)
    return page


def show_notebook(page: Page, lab: Lab, notebook: str) -> None:
    """Open a notebook and give the whole width to it."""
    # Each notebook has a workspace of its own: JupyterLab would open those of earlier tests too.
    workspace = Path(notebook).stem.replace(".", "-")
    page.goto(lab.url(notebook).replace("/lab/", f"/lab/workspaces/{workspace}/", 1))
    # Not the notebook's own indicator: it says idle before there is a kernel, and running then gets stuck.
    expect(page.get_by_text(re.compile(r"\| Idle$"))).to_be_visible()
    if page.get_by_role("region", name="File Browser Section").is_visible():
        page.keyboard.press("Control+b")


@contextmanager
def opened_explorer(
    page: Page, server: Server, name: str, code: str, kernel: str = "python3"
) -> Iterator[OpenedExplorer]:
    """An explorer in a new notebook, whose kernel is shut down in the end."""
    notebook = f"{name}.ipynb"
    write_notebook(server.lab.root / notebook, code, kernel)
    explorer = OpenedExplorer(page)
    show_notebook(page, server.lab, notebook)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name=re.compile("^Run All( Cells)?$")).click()
    explorer.wait_until_shown()
    with probed_kernel(server.lab, server.runtime, notebook) as explorer.kernel:
        yield explorer


# The browser does not smooth the edges of dots alike each time it paints them: by up to 24 of 255 levels.
# Another colour, or another place, is far more.
_SMOOTHING = 40


def differ(one: bytes, other: bytes) -> bool:
    """Whether two pictures are not of the same thing.

    A part may end between two pixels. What is below or beside it then shows in the last ones, or does not.
    """
    pictures = (Image.open(BytesIO(png)).convert("RGB") for png in (one, other))
    first, second = (np.asarray(picture, dtype=np.int16)[:-1, :-1] for picture in pictures)
    return first.shape != second.shape or bool(np.abs(first - second).max() > _SMOOTHING)


def assert_stands_still(explorer: OpenedExplorer) -> None:
    """The kernel has nothing left to do for the player, and pictures and chain stay as they are."""
    explorer.wait_for_value("explorer.player._task is None", True)
    explorer.wait_until_still()
    iteration, marks, pixels = explorer.iteration(), explorer.marks(), explorer.pixels()
    recorded = explorer.value(RECORDED)
    assert explorer.iteration() == iteration
    assert explorer.marks() == marks
    later = explorer.pixels()
    changed = [name for name in pixels if differ(pixels[name], later[name])]
    assert not changed, f"still changing: {changed}"
    assert explorer.value(RECORDED) == recorded
