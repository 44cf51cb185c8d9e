"""Opening a notebook that shows a widget, and looking into the kernel behind it."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, NoReturn, TypeVar

import nbformat
import numpy as np
import pytest
from browser.explorer_page import PATIENCE, ExplorerPage
from browser.kernel_probe import Kernel, probed_kernel
from browser.servers import Lab
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

# A classroom projector.
VIEWPORT = {"width": 1280, "height": 800}

# Parts of a notebook in JupyterLab.
CODE_PROMPT = ".jp-CodeCell .jp-InputPrompt:not(.jp-Placeholder-prompt)"  # of cells whose source is shown
OUTPUT = ".jp-OutputArea-output"
ERROR_OUTPUT = f"{OUTPUT}[data-mime-type='application/vnd.jupyter.error']"
STDERR_OUTPUT = f"{OUTPUT}[data-mime-type='application/vnd.jupyter.stderr']"

# Whether the page has acknowledged the newest frame, which it does once that is painted.
PAINTED = (
    "(lambda display: any(not one.unpainted for one in display._viewers.values()))(explorer.player._display)"
)
RECORDED = "(explorer.player.status.iteration, len(explorer.player.recorder))"

# Contrast with the background: WCAG 2, level AA, for text of normal size.
READABLE = 4.5
TEXTS = ".axis .tick text, .axis text.axislabel, .widget-html-content, .widget-label, button, select"


def do_without(what: str) -> NoReturn:
    """Skip a test for want of something that is not the project's; where everything has to be run, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


@dataclass(frozen=True)
class Server:
    """A JupyterLab that serves several notebooks, and the folder of its settings and connection files."""

    lab: Lab
    private: Path

    @property
    def runtime(self) -> Path:
        return self.private / "runtime"


@dataclass
class OpenedExplorer(ExplorerPage):
    """An Explorer in JupyterLab, and the kernel behind it."""

    kernel: Kernel | None = None

    name: ClassVar[str] = "explorer"
    """Name of the widget in the kernel."""
    texts: ClassVar[str] = TEXTS

    def value(self, expression: str) -> Any:  # noqa: ANN401 - whatever the expression gives
        """Value of an expression in the kernel."""
        assert self.kernel is not None
        return self.kernel.value(expression)

    def wait_for_value(self, expression: str, expected: object) -> None:
        """Wait until an expression has a value in the kernel: what is done on the page gets there later."""
        self.eventually(lambda: self.value(expression), lambda value: value == expected)

    def wait_until_still(self) -> None:
        """Wait until the page has painted the newest frame and nothing changes any more."""
        self.wait_for_value(PAINTED, True)
        super().wait_until_still()

    def pause(self) -> None:
        """Pause if it runs, and wait until the page shows the iteration at which the chain has stopped."""
        if self.value("explorer.player.status.is_running"):
            self.press("pause")
        self.wait_for_value("explorer.player._task is None", True)
        present = self.value("explorer.player.status.iteration")
        self.wait_for_iteration(present, or_later=False)
        self.wait_until_still()

    def assert_readable(self) -> None:
        """All texts stand out from their background."""
        contrasts = self.eventually(lambda: self.contrasts(self.texts), lambda them: len(them) > 10)
        faint = {text: round(contrast, 1) for text, contrast in contrasts.items() if contrast < READABLE}
        assert faint == {}


@dataclass
class OpenedWidget(OpenedExplorer):
    """A widget other than the Explorer, drawn in the same style."""

    name = "widget"
    # Buttons that cannot be pressed are faint on purpose.
    texts = TEXTS.replace("button", "button:enabled")

    def wait_until_shown(self) -> None:
        expect(self.part(".ew-status")).not_to_be_empty()
        expect(self.part(".ew-figure svg").first).to_be_attached()
        self.root.evaluate("root => root.scrollIntoView({ block: 'start' })")

    def number(self, selector: str) -> float:
        """Number of a cell, in full precision, as soon as there is one."""
        cell = self.part(selector).first
        expect(cell).to_have_attribute("data-value", re.compile("."))
        return float(str(cell.get_attribute("data-value")))


@dataclass
class OpenedLab(OpenedExplorer):
    """The PriorLab or the AffineLab."""

    name = "lab"

    @property
    def root(self) -> Locator:
        return self.page.locator(".ew-lab")

    def wait_until_shown(self) -> None:
        expect(self.root).to_be_visible()
        expect(self.part(".bqplot svg").first).to_be_attached()
        self.root.evaluate("root => root.scrollIntoView({ block: 'start' })")

    def number(self, selector: str) -> float:
        """Number that a part shows, as soon as it shows one."""
        shown = self.part(selector)
        expect(shown).to_have_text(re.compile(r"^\s*[\d.]+\s*$"))
        return float(shown.inner_text())

    def press_on_slider(self, selector: str, key: str, times: int = 1) -> None:
        """Move a slider with the keyboard."""
        handle = self.part(f"{selector} .noUi-handle")
        handle.focus()
        # Otherwise JupyterLab takes some keys for itself.
        expect(handle).to_have_attribute("data-lm-suppress-shortcuts", "true")
        for _ in range(times):
            handle.press(key)


def write_notebook(path: Path, code: str, kernel: str = "python3") -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    notebook.metadata.kernelspec = {"name": kernel, "display_name": kernel, "language": "python"}
    nbformat.write(notebook, path)


def explorer_code(arguments: str) -> str:
    """Code of a cell that shows an Explorer; names in the kernel are `ew` and `explorer`."""
    return f"import ewens_widgets as ew\nexplorer = ew.Explorer({arguments})\nexplorer"


def new_page(browser: Browser) -> Page:
    page = browser.new_context(viewport=VIEWPORT).new_page()
    page.set_default_timeout(PATIENCE)
    return page


def run_all(page: Page) -> None:
    """Choose Run All from the menu."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name=re.compile("^Run All( Cells)?$")).click()


def show_notebook(page: Page, lab: Lab, notebook: str) -> None:
    """Open a notebook and give the whole width to it."""
    # Each notebook has a workspace of its own: JupyterLab would open those of earlier tests too.
    workspace = Path(notebook).stem.replace(".", "-")
    page.goto(lab.url(notebook).replace("/lab/", f"/lab/workspaces/{workspace}/", 1))
    # Not the notebook's own indicator: it says idle before there is a kernel, and running then gets stuck.
    expect(page.get_by_text(re.compile(r"\| Idle$"))).to_be_visible()
    if page.get_by_role("region", name="File Browser Section").is_visible():
        page.keyboard.press("Control+b")


# Writes the only cell of the notebook on display again.
WRITE_CELL = "code => jupyterapp.shell.currentWidget.content.widgets[0].model.sharedModel.setSource(code)"


@dataclass
class Desk:
    """A page with JupyterLab. One widget after another is shown by the same cell of the same notebook."""

    page: Page
    server: Server
    notebook: str = ""
    """Name of the notebook on display; a new one, with a new kernel, comes after a failure."""

    def command(self, name: str, **arguments: str) -> None:
        """Have JupyterLab carry out one of its commands."""
        self.page.evaluate("([name, args]) => jupyterapp.commands.execute(name, args)", [name, arguments])

    def write(self, code: str, kernel: str) -> None:
        """Write the code to the cell."""
        self.page.set_viewport_size(VIEWPORT)
        if self.notebook and kernel == "python3":
            self.command("notebook:clear-all-cell-outputs")
            expect(self.page.locator(OUTPUT)).to_have_count(0)
            self.page.evaluate(WRITE_CELL, code)
            return
        number = len(list(self.server.lab.root.iterdir()))
        self.notebook = f"{kernel.replace('.', '-')}-{number}.ipynb"
        write_notebook(self.server.lab.root / self.notebook, code, kernel)
        show_notebook(self.page, self.server.lab, self.notebook)

    @contextmanager
    def in_the_dark(self, widget: OpenedExplorer) -> Iterator[None]:
        """The dark theme, and the widget drawn in it."""
        self.command("apputils:change-theme", theme="JupyterLab Dark")
        expect(self.page.locator("body")).to_have_attribute("data-jp-theme-light", "false")
        expect(widget.root).to_have_class(re.compile("ew-dark"))
        try:
            yield
        finally:
            self.command("apputils:change-theme", theme="JupyterLab Light")
            expect(self.page.locator("body")).to_have_attribute("data-jp-theme-light", "true")


Shown = TypeVar("Shown", bound=OpenedExplorer)


@contextmanager
def _opened(shown: Shown, desk: Desk, code: str, kernel: str = "python3") -> Iterator[Shown]:
    desk.write(code, kernel)
    run_all(desk.page)
    try:
        shown.wait_until_shown()
        with probed_kernel(desk.server.lab, desk.server.runtime, desk.notebook) as shown.kernel:
            yield shown
            shown.value(f"{shown.name}.close()")
    except BaseException:
        desk.notebook = ""
        raise
    if kernel != "python3":
        desk.notebook = ""


@contextmanager
def opened_explorer(desk: Desk, code: str, kernel: str = "python3") -> Iterator[OpenedExplorer]:
    """An Explorer on the desk."""
    with _opened(OpenedExplorer(desk.page), desk, code, kernel) as explorer:
        yield explorer


@contextmanager
def opened_widget(kind: type[Shown], desk: Desk, expression: str) -> Iterator[Shown]:
    """Another widget on the desk."""
    code = f"import ewens_widgets as ew\n{kind.name} = {expression}\n{kind.name}"
    with _opened(kind(desk.page), desk, code) as widget:
        yield widget


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
    """The player has stopped, and neither pictures nor chain change any more."""
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
