"""Faults of a widget's layout (overlaps, cut texts, scroll bars, unused height), and what axe-core finds."""

from collections.abc import Iterable
from importlib.resources import files

from browser.explorer_page import PATIENCE
from playwright.sync_api import Locator, Page

SIZES = ((1280, 800), (1366, 768), (1920, 1080))
NARROW = ((960, 1080), (390, 844), (853, 533))
"""Half a screen, a phone, and a projector at 150 %: a widget may be higher than these windows."""
BOTTOM = 775
"""Lowest line of a notebook that is visible on a projector (the first size) without scrolling."""
TALL = (1920, 1080)
"""Size at which a widget must use the height that it can have."""
USED = 0.85

# Faults of a widget, each as a text; none: an empty list.
FAULTS = """
root => {
  const faults = [];
  const frame = root.getBoundingClientRect();
  const isShown = part => {
    const box = part.getBoundingClientRect();
    const style = getComputedStyle(part);
    const isFolded = part.closest("details:not([open]) > div");
    return box.width > 1 && box.height > 1 && style.visibility !== "hidden" && !isFolded;
  };
  const name = part => {
    const own = [...part.classList].find(name => name.startsWith("ew-"));
    const kind = String(own ?? part.closest("[class*=ew-]")?.className).slice(0, 60);
    return `${part.tagName.toLowerCase()} ${kind} "${part.textContent.trim().slice(0, 40)}"`;
  };
  const ruler = document.createElement("canvas").getContext("2d");
  // Ticks that are about to go lie where the new scale has them, out of the picture even, and cannot be seen.
  const isRead = text => {
    const tick = text.closest(".tick");
    const isGoing = tick !== null && getComputedStyle(tick).opacity < 0.05;
    const isGliding = text.matches(".ew-table-text") && text.getAnimations().length > 0;
    return text.textContent && text.getBoundingClientRect().width > 1 && !isGoing && !isGliding;
  };

  for (const part of root.querySelectorAll("*")) {
    if (part instanceof SVGElement || !isShown(part)) continue;
    const style = getComputedStyle(part);
    const scrolls = kind => kind === "auto" || kind === "scroll";
    const isHigh = scrolls(style.overflowY) && part.scrollHeight > part.clientHeight + 1;
    const isWide = scrolls(style.overflowX) && part.scrollWidth > part.clientWidth + 1;
    if (isHigh || isWide) faults.push(`scroll bar: ${name(part)}`);
    const box = part.getBoundingClientRect();
    if (box.right > frame.right + 1 || box.left < frame.left - 1) faults.push(`outside: ${name(part)}`);
  }

  const texts = "button, .widget-label, .widget-html-content, summary, th, td, .ew-chip, .ew-rate span";
  for (const part of root.querySelectorAll(texts)) {
    if (!isShown(part) || getComputedStyle(part).overflowX === "visible") continue;
    if (part.scrollWidth > part.clientWidth + 1) faults.push(`cut off: ${name(part)}`);
    if (part.scrollHeight > part.clientHeight + 3) faults.push(`cut off below: ${name(part)}`);
  }
  for (const part of root.querySelectorAll(".widget-html-content")) {
    const { width, height } = part.getBoundingClientRect();
    const isColumn = isShown(part) && part.textContent.trim() && height > 2 * width;
    if (isColumn) faults.push(`squeezed: ${name(part)}`);
  }
  for (const part of root.querySelectorAll("select:not([size])")) {
    if (!isShown(part) || !part.selectedOptions.length) continue;
    const style = getComputedStyle(part);
    ruler.font = style.font;
    const room = part.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const text = part.selectedOptions[0].textContent;
    if (ruler.measureText(text).width > room + 1) faults.push(`cut off: ${name(part)}: ${text}`);
  }
  for (const text of root.querySelectorAll(".ew-figure .axis text, .ew-figure text.axislabel")) {
    const box = text.getBoundingClientRect(), figure = text.closest(".ew-figure").getBoundingClientRect();
    if (!isRead(text)) continue;
    const beside = Math.max(figure.left - box.left, box.right - figure.right);
    const out = Math.max(beside, figure.top - box.top, box.bottom - figure.bottom);
    const where = [...text.closest(".ew-figure").classList].join(".");
    if (out > 2) faults.push(`cut off by ${out.toFixed(0)}: "${text.textContent}" in ${where}`);
  }

  for (const drawing of root.querySelectorAll(".ew-figure > svg")) {
    const { width, height } = drawing.getBoundingClientRect();
    const room = drawing.parentElement.getBoundingClientRect();
    const off = Math.max(Math.abs(width - room.width), Math.abs(height - room.height));
    if (isShown(drawing.parentElement) && off > 1) faults.push(`drawing off by ${off}: ${name(drawing)}`);
  }
  for (const figure of root.querySelectorAll(".ew-figure, .ew-floor")) {
    const found = figure.querySelectorAll(".axis .tick text, text.axislabel, .ew-table-text");
    const texts = [...found].filter(isRead);
    for (const [place, one] of texts.entries()) {
      const first = one.getBoundingClientRect();
      for (const other of texts.slice(place + 1)) {
        const second = other.getBoundingClientRect();
        const width = Math.min(first.right, second.right) - Math.max(first.left, second.left);
        const height = Math.min(first.bottom, second.bottom) - Math.max(first.top, second.top);
        // A box is a little larger than its letters.
        if (width <= 2 || height <= 4) continue;
        faults.push(`overlap: "${one.textContent}" and "${other.textContent}" in ${name(figure)}`);
      }
    }
  }

  const least = 2.5 * window.innerHeight / 800;
  for (const guest of root.querySelectorAll(".ew-guest")) {
    const { width } = guest.getBoundingClientRect();
    const isDust = isShown(guest.ownerSVGElement) && width <= least;
    if (isDust) faults.push(`a guest of ${width.toFixed(1)} pixels`);
  }

  const solid = "button, select, input, summary, .widget-html-content, .ew-figure, img";
  const blocks = [...root.querySelectorAll(solid)]
    .filter(part => isShown(part) && part.getAttribute("type") !== "file");
  for (const [place, one] of blocks.entries()) {
    const first = one.getBoundingClientRect();
    for (const other of blocks.slice(place + 1)) {
      if (one.contains(other) || other.contains(one)) continue;
      const second = other.getBoundingClientRect();
      const width = Math.min(first.right, second.right) - Math.max(first.left, second.left);
      const height = Math.min(first.bottom, second.bottom) - Math.max(first.top, second.top);
      if (width > 2 && height > 2) faults.push(`overlap: ${name(one)} and ${name(other)}`);
    }
  }
  return faults;
}
"""

# Share of the height of its window that a widget takes.
SHARE = """
root => {
  let room = window.innerHeight;
  for (let box = root.parentElement; box && box !== document.body; box = box.parentElement) {
    const scrolls = /auto|scroll/.test(getComputedStyle(box).overflowY);
    if (scrolls && box.clientHeight <= window.innerHeight) room = box.clientHeight;
  }
  return root.getBoundingClientRect().height / room;
}
"""


# Waits until a widget has been laid out. An attribute of the root says whether the kernel has answered the
# message about the window's size. bqplot learns a figure's new size at the browser's next frame, and draws
# the figure again 300 ms later. A timer that is set after that frame and runs longer ends after it on any
# machine.
SETTLED = """
async (root, patience) => {
  const begun = performance.now();
  const painted = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const moment = async () => {
    await painted();
    await new Promise(done => setTimeout(done, 350));
    await painted();
  };
  const box = part => {
    const { x, y, width, height } = part.getBoundingClientRect();
    return [x, y, width, height];
  };
  const look = () => JSON.stringify([
    window.innerWidth, window.innerHeight, root.className, root.dataset.ewRoom,
    ...[root, ...root.querySelectorAll(".jupyter-widgets, svg.svg-figure")].map(box),
    ...[...root.querySelectorAll("svg.svg-figure > g")].map(plot => plot.getAttribute("transform")),
  ]);
  for (let last = ""; performance.now() - begun < patience; await moment()) {
    const now = look();
    if (now === last && root.dataset.ewRoom === "given") return;
    last = now;
  }
  throw new Error(`not laid out: room ${root.dataset.ewRoom}`);
}
"""


# bqplot draws a figure again once it has come into sight.
BRING_INTO_SIGHT = """
async root => {
  for (const figure of root.querySelectorAll(".ew-figure")) {
    figure.scrollIntoView({ block: "nearest" });
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  }
}
"""


def settle(root: Locator) -> None:
    """Wait until a widget has been laid out."""
    root.evaluate(SETTLED, PATIENCE)


def faults(page: Page, root: Locator, size: tuple[int, int]) -> list[str]:
    """What is wrong with a widget in a window of a size, once it has come to rest."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    root.evaluate("root => root.scrollIntoView({ block: 'start' })")
    settle(root)
    if size in NARROW:
        root.evaluate(BRING_INTO_SIGHT)
        settle(root)
    found = list(root.evaluate(FAULTS))
    share = float(root.evaluate(SHARE))
    if size == TALL and share < USED:
        found.append(f"uses {share:.0%} of the height")
    return [f"{size[0]}×{size[1]}: {fault}" for fault in found]


def all_faults(page: Page, root: Locator, sizes: Iterable[tuple[int, int]] = SIZES) -> list[str]:
    """What is wrong with a widget in windows of these sizes."""
    return [fault for size in sizes for fault in faults(page, root, size)]


def below_the_projector(root: Locator) -> list[str]:
    """Whether a widget is too high for the projector, as a list of faults."""
    root.page.set_viewport_size({"width": SIZES[0][0], "height": SIZES[0][1]})
    root.evaluate("root => root.scrollIntoView({ block: 'start' })")
    settle(root)
    box = root.bounding_box()
    assert box is not None
    bottom = box["y"] + box["height"]
    return [f"reaches down to {bottom:.0f}"] if bottom > BOTTOM else []


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
