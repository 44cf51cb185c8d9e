"""What a person does with the Explorer, and what can be read from its page.

Each message takes a while from the page to the kernel and back. A test that asserts something which it reads
from the page therefore waits for it: with Playwright's `expect`, or with `ExplorerPage.eventually`.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from playwright.sync_api import ConsoleMessage, FilePayload, FloatRect, Locator, Page, expect

PATIENCE = 120_000
"""Milliseconds: starting a kernel takes long on a busy machine."""

Value = TypeVar("Value")

FIGURES = {"scatter": ".ew-scatter", "bars": ".ew-count-bars", "heatmap": ".ew-heatmap-picture"}
FAST = "as fast as possible"

# How the sentence begins where the answer is on display; while the chain runs an aside reports groups too.
ANSWER = re.compile(r"^\s*(After [\d\s]+ iterations: )?(Not reliable yet: )?\d+ groups?\b")

# Frames that may still be painted after a click on Pause: two under way, and those of the time until the
# kernel hears of the click. Counted, not timed: a busy machine paints as many, only later.
MOST_AFTER_PAUSE = 6

# Console errors of JupyterLab and Voilà themselves: icons from elsewhere, extensions that do not fit Voilà or
# (JupyterLite's) a page with a server.
OTHERS_FAULTS = re.compile(
    r"favicon|/api/kernels/\S+/channels|cdn\.jsdelivr\.net/npm/@fortawesome|labextensions/@jupyter-notebook"
    r"|Plugin '(?!anywidget|bqplot)[^']*' failed to activate|@jupyterlite/"
)

# Notes when a picture or the status changes, when Pause is clicked, and how many pictures are painted. It
# asks for an animation frame only after a change: to ask for all of them takes time from what is measured.
WATCH = """
() => {
  const watch = { changed: performance.now(), clicked: 0, before: 0, statuses: 0, heatmaps: 0 };
  window.ewWatch = watch;
  const root = document.querySelector(".ew-explorer");
  const status = root.querySelector(".ew-status");
  const picture = root.querySelector(".ew-heatmap-picture image");
  let lastStatus = status.textContent, lastPicture = picture.getAttribute("href"), isAsked = false;
  const paint = () => {
    isAsked = false;
    const text = status.textContent, address = picture.getAttribute("href");
    if (text !== lastStatus) watch.statuses += 1;
    if (address !== lastPicture) watch.heatmaps += 1;
    [lastStatus, lastPicture] = [text, address];
  };
  const observer = new MutationObserver(() => {
    if (window.ewWatch !== watch) return observer.disconnect();
    watch.changed = performance.now();
    if (!isAsked) requestAnimationFrame(paint);
    isAsked = true;
  });
  for (const part of root.querySelectorAll(".ew-figure, .ew-status, .ew-legend")) {
    observer.observe(part, { attributes: true, childList: true, characterData: true, subtree: true });
  }
  const pause = root.querySelector("button.ew-pause") ?? root.querySelector("button.ew-play");
  pause.addEventListener(
    "click", () => { watch.clicked = performance.now(); watch.before = watch.statuses; }, { capture: true });
}
"""

# The objects: bqplot has a group for each mark. The first has the ellipses; after the circles come the shapes
# that cover some of them, and rings.
CIRCLES = ".ew-scatter svg.svg-figure > g > g > g:nth-child(2) path.dot"

MARKS = """
root => ({
  scatter: [...root.querySelectorAll("CIRCLES")].map(dot => getComputedStyle(dot).fill),
  bars: [...root.querySelectorAll(".ew-count-bars path.area")].map(bars => bars.getAttribute("d")),
  heatmap: [root.querySelector(".ew-heatmap-picture image").getAttribute("href")],
})
""".replace("CIRCLES", CIRCLES)

GLIDED = """
root => Promise.all(
  root.getAnimations({subtree: true}).filter(one => one instanceof CSSTransition)
    .map(one => one.finished.catch(() => null))
).then(() => null)
"""

# Chromium paints only what has changed, and where a dot is cut by the border of that, a faint edge of its old
# colour may stay. So that equal pictures have equal pixels, all is painted at once.
PAINT_ANEW = """
async root => {
  const painted = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  for (const visibility of ["hidden", ""]) {
    root.style.visibility = visibility;
    await painted();
  }
}
"""

# Number of pixels of a picture inside a figure that have a colour.
COUNT_PIXELS = """
async (image, [red, green, blue]) => {
  const copy = new Image();
  copy.src = image.getAttribute("href") ?? image.href.baseVal;
  await copy.decode();
  const canvas = new OffscreenCanvas(copy.naturalWidth, copy.naturalHeight);
  const context = canvas.getContext("2d");
  context.drawImage(copy, 0, 0);
  const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let k = 0; k < data.length; k += 4) {
    count += data[k] === red && data[k + 1] === green && data[k + 2] === blue;
  }
  return count;
}
"""

# Contrast of the text of each element with what is behind it, after WCAG 2.
CONTRASTS = """
(root, selector) => {
  const parse = text => {
    const numbers = text.match(/[\\d.]+/g).map(Number);
    return numbers.length === 3 ? [...numbers, 1] : numbers;
  };
  const over = (front, back) => [0, 1, 2].map(k => front[k] * front[3] + back[k] * (1 - front[3]));
  const behind = element => {
    if (!element) return [255, 255, 255];
    const colour = parse(getComputedStyle(element).backgroundColor);
    return colour[3] === 1 ? colour.slice(0, 3) : over(colour, behind(element.parentElement));
  };
  const luminance = colour => {
    const linear = colour.map(value => value / 255).map(
      value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  return [...root.querySelectorAll(selector)].filter(
    element => element.textContent.trim() && element.getClientRects().length
  ).map(element => {
    const style = getComputedStyle(element), back = behind(element);
    const front = over(parse(element instanceof SVGElement ? style.fill : style.color), back);
    const [dark, light] = [luminance(front), luminance(back)].sort((one, two) => one - two);
    return [element.textContent.trim(), (light + 0.05) / (dark + 0.05)];
  });
}
"""


@dataclass
class ExplorerPage:
    """An explorer on a page."""

    page: Page
    faults: list[str] = field(default_factory=list)

    still: ClassVar[int] = 1500
    """Milliseconds without any change after which the pictures are taken to stand still."""

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._on_console)

    def _on_console(self, message: ConsoleMessage) -> None:
        text = f"{message.text} ({message.location['url']})"
        if message.type == "error" and not OTHERS_FAULTS.search(text):
            self.faults.append(text)

    @property
    def root(self) -> Locator:
        return self.page.locator(".ew-explorer")

    def part(self, selector: str) -> Locator:
        return self.root.locator(selector)

    def wait_until_shown(self) -> None:
        """Wait for the first pictures, and watch them from then on."""
        expect(self.part(".ew-status")).to_contain_text("iteration")
        expect(self.part(".ew-heatmap-picture image")).to_have_count(1)
        expect(self.part(".ew-scatter path.dot").first).to_be_attached()
        self.root.evaluate("root => root.scrollIntoView({ block: 'start' })")
        self.watch()

    def eventually(self, read: Callable[[], Value], holds: Callable[[Value], object]) -> Value:
        """Read until what was read is as expected, and return it."""
        deadline = time.monotonic() + PATIENCE / 1000
        while not holds(value := read()):
            assert time.monotonic() < deadline, f"after {PATIENCE / 1000:.0f} s it is still {value!r}"
            self.page.wait_for_timeout(50)
        return value

    def watch(self) -> None:
        """Count and time changes from now on."""
        self.page.evaluate(WATCH)

    def watched(self) -> dict[str, float]:
        """Return counts and times since `watch`."""
        return dict(self.page.evaluate("() => ({ ...window.ewWatch, now: performance.now() })"))

    def press(self, name: str) -> None:
        """Press a button; the Explorer has one for Play and Pause."""
        has_both = name == "pause" and not self.part("button.ew-pause").count()
        self.part(f"button.ew-{'play' if has_both else name}").click()

    def show_all_pictures(self) -> None:
        """Show the pictures beyond the first three."""
        self.press("pictures")
        expect(self.part(".ew-tree-picture svg.svg-figure")).to_be_visible()
        expect(self.part(".ew-traces .ew-figure svg.svg-figure").last).to_be_visible()

    def choose_speed(self, label: str) -> None:
        self.part(".ew-speed select").select_option(label=label)

    def look_back(self, iteration: int) -> None:
        """Show an earlier iteration with the timeline."""
        self.part(".ew-timeline input").fill(str(iteration))

    def status(self) -> str:
        return self.part(".ew-status").inner_text()

    def iteration(self) -> int:
        """Iteration on display, once the sampler is prepared."""
        # Read in the page, at once: while the sampler is prepared the line says something else.
        shown = self.page.wait_for_function(
            """() => {
              const text = document.querySelector(".ew-explorer .ew-status").textContent;
              const found = text.match(/iteration ([\\d\\s]+) of/);
              return found === null ? null : found[1].replace(/\\s/g, "");
            }"""
        )
        return int(shown.json_value())

    def wait_for_iteration(self, number: int, *, or_later: bool = True) -> None:
        """Wait until an iteration is on display."""
        self.page.wait_for_function(
            """([number, orLater]) => {
              const text = document.querySelector(".ew-explorer .ew-status").textContent;
              const found = text.match(/iteration ([\\d\\s]+) of/);
              const shown = found === null ? -1 : Number(found[1].replace(/\\s/g, ""));
              return orLater ? shown >= number : shown === number;
            }""",
            arg=[number, or_later],
            polling=100,
        )

    def wait_until_still(self) -> None:
        """Wait until nothing changes any more."""
        self.page.wait_for_function(
            f"() => performance.now() - window.ewWatch.changed > {self.still}", polling=50
        )
        # Transitions change none of the attributes that are watched.
        self.root.evaluate(GLIDED)

    def pause(self) -> None:
        """Pause if it runs, and wait until the page shows the last iteration."""
        if "Pause" in self.part("button.ew-play").inner_text():
            self.press("pause")
        expect(self.part("button.ew-play")).not_to_contain_text("Pause")
        self.wait_until_still()

    def pause_seconds(self) -> float:
        """Pause; return how long after the click the pictures went on changing."""
        self.pause()
        seen = self.watched()
        return max(0.0, seen["changed"] - seen["clicked"]) / 1000

    def pause_frames(self) -> int:
        """Pause; return the number of frames painted after the click."""
        self.pause()
        seen = self.watched()
        return int(seen["statuses"] - seen["before"])

    def marks(self) -> dict[str, list[str]]:
        """Colours of the dots, heights of the bars, address of the heatmap's picture."""
        # During a transition a colour lies between the old and the new one.
        self.root.evaluate(GLIDED)
        return dict(self.root.evaluate(MARKS))

    def wait_for_change(self, figure: str, before: list[str]) -> None:
        """Wait until a figure's marks differ from those before, and then until nothing changes any more.

        The kernel may take its time to answer; until then nothing moves either.
        """
        self.page.wait_for_function(
            f"([root, before]) => JSON.stringify(({MARKS})(root)[{figure!r}]) !== JSON.stringify(before)",
            arg=[self.root.element_handle(), before],
            timeout=0,  # as long as pytest lets it
        )
        self.wait_until_still()

    def pixels(self) -> dict[str, bytes]:
        """Screenshots of the figures."""
        # The mouse would highlight something otherwise.
        self.page.mouse.move(2, 2)
        self.root.evaluate(PAINT_ANEW)
        return {name: self.part(selector).screenshot() for name, selector in FIGURES.items()}

    def count_pixels(self, figure: str, colour: tuple[int, int, int]) -> int:
        """Count the pixels of a colour in the picture inside a figure."""
        return int(self.part(f"{figure} image").evaluate(COUNT_PIXELS, list(colour)))

    def bright_dots(self) -> int:
        """Count the dots that are not faded."""
        opacities = self.part(CIRCLES).evaluate_all(
            "dots => dots.map(dot => Number(getComputedStyle(dot).opacity))"
        )
        return sum(opacity > 0.5 for opacity in opacities)

    def box(self, selector: str) -> FloatRect:
        self.part(selector).scroll_into_view_if_needed()
        box = self.part(selector).bounding_box()
        assert box is not None, f"{selector} is not visible"
        return box

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        mouse = self.page.mouse
        mouse.move(*start)
        mouse.down()
        for step in range(1, 9):
            mouse.move(*(one + (two - one) * step / 8 for one, two in zip(start, end, strict=True)))
        mouse.up()

    def brush(self, selector: str, low: tuple[float, float], high: tuple[float, float]) -> None:
        """Drag a rectangle over a part; corners as shares of its width and height."""
        box = self.box(selector)
        corners = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (low, high)]
        self.drag(*corners)

    def open_section(self, title: str) -> None:
        """Open a section of the settings."""
        header = self.part(".ew-settings").get_by_text(title, exact=True)
        header.click()

    def type_in(self, selector: str, text: str) -> None:
        entry = self.part(f"{selector} input")
        entry.fill(text)
        entry.press("Enter")

    def contrasts(self, selector: str) -> dict[str, float]:
        """Contrast of each text with what is behind it; 4.5 and more is readable."""
        return dict(self.root.evaluate(CONTRASTS, selector))


def upload(explorer: ExplorerPage, name: str, content: bytes) -> None:
    """Upload a file."""
    expect(explorer.part(".ew-data")).to_be_visible()
    file = FilePayload(name=name, mimeType="text/csv", buffer=content)
    explorer.part(".ew-upload input[type=file]").set_input_files(file)


def assert_all_pictures_play(explorer: ExplorerPage) -> None:
    """Play changes all pictures, and Pause freezes them at full speed."""
    marks, pixels = explorer.marks(), explorer.pixels()
    explorer.press("play")
    explorer.wait_for_iteration(10)
    explorer.choose_speed(FAST)
    explorer.wait_for_iteration(300)
    assert explorer.pause_frames() <= MOST_AFTER_PAUSE
    later_marks, later_pixels = explorer.marks(), explorer.pixels()
    for name in FIGURES:
        assert later_marks[name] != marks[name], f"Play has not changed the marks of {name}"
        assert later_pixels[name] != pixels[name], f"Play has not changed the picture of {name}"


def assert_plays(explorer: ExplorerPage) -> None:
    """Step, Play, full speed, Pause, Step and Reset do what they say, and all pictures follow."""
    explorer.press("step")
    explorer.wait_for_iteration(1)
    explorer.wait_until_still()
    assert explorer.iteration() == 1
    assert_all_pictures_play(explorer)
    present = explorer.iteration()
    explorer.press("step")
    explorer.wait_for_iteration(present + 1)
    explorer.wait_until_still()
    assert explorer.iteration() == present + 1
    explorer.press("reset")
    explorer.wait_for_iteration(0, or_later=False)
    expect(explorer.part(".ew-view-error:visible")).to_have_count(0)
    assert explorer.faults == []
