"""What axe-core, the common checker of web pages, finds wrong with a widget."""

from importlib.resources import files

from playwright.sync_api import Locator

# The package is a wrapper that carries the checker itself, which is all that is needed of it.
CHECKER = files("axe_playwright_python").joinpath("axe.min.js")

# The rules that are about a whole page are JupyterLab's business.
RUN = """
async root => {
  const found = await axe.run(root, { resultTypes: ["violations"], rules: { region: { enabled: false } } });
  const grave = found.violations.filter(fault => ["serious", "critical"].includes(fault.impact));
  return grave.flatMap(fault => fault.nodes.map(node => `${fault.id}: ${node.html.slice(0, 160)}`));
}
"""


def violations(root: Locator) -> list[str]:
    """Serious and critical violations of the rules for accessible pages, each as a text."""
    if not root.evaluate("() => 'axe' in window"):
        root.page.evaluate(CHECKER.read_text("utf-8"))
    return list(root.evaluate(RUN))
