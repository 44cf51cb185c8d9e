"""Opening a notebook that shows one of the labs, and what a person does with it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from browser.kernel_probe import probed_kernel
from browser.opened import OpenedExplorer, Server, show_notebook, write_notebook
from browser.opened_widget import dark_theme
from playwright.sync_api import Locator, Page, expect

# WCAG 2, level AA, for text of normal size.
READABLE = 4.5
TEXTS = ".axis .tick text, .axis text.axislabel, .widget-html-content, .widget-label, button, select"

# Lowest line of a notebook that can be seen on the projector without scrolling.
BOTTOM = 772

# Whether two pictures have the same pixels.
SAME_PIXELS = """
async ([one, other]) => {
  const pixels = async image => {
    await image.decode();
    const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return [canvas.width, ...context.getImageData(0, 0, canvas.width, canvas.height).data];
  };
  const [first, second] = [await pixels(one), await pixels(other)];
  return first.length === second.length && first.every((value, place) => value === second[place]);
}
"""


# Parts that stick out of the widget at its right.
TOO_WIDE = """
root => {
  if (root.scrollWidth <= root.clientWidth) return [];
  const edge = root.getBoundingClientRect().right;
  return [...root.querySelectorAll("*")].filter(part => part.getBoundingClientRect().right > edge + 0.5)
    .map(part => [part.tagName, part.getAttribute("class"), part.getBoundingClientRect().right - edge]);
}
"""


@dataclass
class OpenedLab(OpenedExplorer):
    """A lab in JupyterLab, and the kernel behind it."""

    @property
    def root(self) -> Locator:
        return self.page.locator(".ew-lab")

    def wait_until_shown(self) -> None:
        expect(self.root).to_be_visible()
        expect(self.part(".bqplot svg").first).to_be_attached()
        self.root.evaluate("root => root.scrollIntoView({ block: 'start' })")

    def number(self, selector: str) -> float:
        """Number that a part shows."""
        return float(self.part(selector).inner_text())

    def set_slider(self, selector: str, value: str) -> None:
        """Type a value beside a slider."""
        readout = self.part(f"{selector} .widget-readout")
        readout.fill(value)
        readout.press("Enter")

    def press_on_slider(self, selector: str, key: str, times: int = 1) -> None:
        """Move a slider with the keyboard."""
        handle = self.part(f"{selector} .noUi-handle")
        handle.focus()
        # Otherwise JupyterLab takes some keys for itself.
        expect(handle).to_have_attribute("data-lm-suppress-shortcuts", "true")
        for _ in range(times):
            handle.press(key)

    def have_same_pixels(self, one: str, other: str) -> bool:
        images = [self.part(selector).element_handle() for selector in (one, other)]
        return bool(self.page.evaluate(SAME_PIXELS, images))

    def assert_fits_the_projector(self) -> None:
        self.root.evaluate("root => root.scrollIntoView({ block: 'start' })")
        box = self.root.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= BOTTOM
        wide = self.root.evaluate(TOO_WIDE)
        assert wide == [], wide

    def assert_readable(self) -> None:
        contrasts = self.contrasts(TEXTS)
        assert len(contrasts) > 15
        faint = {text: round(contrast, 1) for text, contrast in contrasts.items() if contrast < READABLE}
        assert faint == {}


@contextmanager
def opened_lab(page: Page, server: Server, name: str, code: str) -> Iterator[OpenedLab]:
    """A lab in a new notebook, whose kernel is shut down in the end; the lab is called `lab` there."""
    notebook = f"{name}.ipynb"
    write_notebook(server.lab.root / notebook, f"import ewens_widgets as ew\nlab = {code}\nlab")
    lab = OpenedLab(page)
    show_notebook(page, server.lab, notebook)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name=re.compile("^Run All( Cells)?$")).click()
    lab.wait_until_shown()
    with probed_kernel(server.lab, server.runtime, notebook) as lab.kernel:
        yield lab


@contextmanager
def reopened_in_the_dark(lab: OpenedLab, server: Server, notebook: str) -> Iterator[None]:
    """The same lab, its notebook saved and opened again in the dark theme."""
    lab.page.keyboard.press("Control+s")
    expect(lab.page.locator(".jp-mod-dirty")).to_have_count(0)
    with dark_theme(server):
        show_notebook(lab.page, server.lab, notebook)
        expect(lab.page.locator("body")).to_have_attribute("data-jp-theme-light", "false")
        lab.wait_until_shown()
        yield
