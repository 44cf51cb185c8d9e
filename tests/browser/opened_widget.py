"""Opening a notebook that shows a teaching widget in the style of the explorer."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from browser.kernel_probe import probed_kernel
from browser.opened import OpenedExplorer, Server, show_notebook, write_notebook
from playwright.sync_api import Page, expect


@dataclass
class OpenedWidget(OpenedExplorer):
    """A widget in JupyterLab, and the kernel behind it, where it is called `widget`."""

    def wait_until_shown(self) -> None:
        expect(self.part(".ew-status")).not_to_be_empty()
        expect(self.part(".ew-figure svg").first).to_be_attached()
        self.root.evaluate("root => root.scrollIntoView({ block: 'start' })")

    def text(self, selector: str) -> str:
        return self.part(selector).inner_text()

    def number(self, selector: str) -> float:
        """Number behind a cell, in full precision."""
        value = self.part(selector).first.get_attribute("data-value")
        assert value is not None, f"{selector} has no number yet"
        return float(value)

    def cut_off(self) -> list[str]:
        """Texts that are wider than their place, and parts that stick out of the page."""
        return list(self.root.evaluate(CUT_OFF))


CUT_OFF = """
root => {
  const faults = [];
  const frame = root.getBoundingClientRect();
  for (const part of root.querySelectorAll("button, .ew-figure, table, img, select, .widget-html-content")) {
    const box = part.getBoundingClientRect();
    if (box.width === 0) continue;
    const name = `${part.className} ${part.textContent.slice(0, 30)}`;
    if (box.right > frame.right + 1 || box.left < frame.left - 1) faults.push(`outside: ${name}`);
    if (part.matches("button, .widget-html-content") && part.scrollWidth > part.clientWidth + 1) {
      faults.push(`cut off: ${name}`);
    }
  }
  return faults;
}
"""


def widget_code(expression: str) -> str:
    return f"import ewens_widgets as ew\nwidget = {expression}\nwidget"


@contextmanager
def opened_widget(page: Page, server: Server, name: str, expression: str) -> Iterator[OpenedWidget]:
    """A widget in a new notebook, whose kernel is shut down in the end."""
    notebook = f"{name}.ipynb"
    write_notebook(server.lab.root / notebook, widget_code(expression))
    widget = OpenedWidget(page)
    show_notebook(page, server.lab, notebook)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name=re.compile("^Run All( Cells)?$")).click()
    widget.wait_until_shown()
    with probed_kernel(server.lab, server.runtime, notebook) as widget.kernel:
        yield widget


# WCAG 2, level AA, for text of normal size.
READABLE = 4.5
TEXTS = ".axis .tick text, .axis text.axislabel, .widget-html-content, .widget-label, button:enabled, select"

# Lowest line of a notebook that can be seen on the projector without scrolling.
BOTTOM = 775


def assert_readable(widget: OpenedWidget) -> None:
    contrasts = widget.contrasts(TEXTS)
    assert len(contrasts) > 10
    faint = {text: round(contrast, 1) for text, contrast in contrasts.items() if contrast < READABLE}
    assert faint == {}


def assert_whole(widget: OpenedWidget) -> None:
    """Nothing is cut off, and all of it fits on a projector."""
    assert widget.cut_off() == []
    box = widget.root.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= BOTTOM


@contextmanager
def dark_theme(server: Server) -> Iterator[None]:
    """Pages that are opened in this context are dark."""
    path = server.private / "settings" / "@jupyterlab" / "apputils-extension" / "themes.jupyterlab-settings"
    path.write_text('{"theme": "JupyterLab Dark"}')
    try:
        yield
    finally:
        path.unlink()  # also where a test fails: the next page is to be light
