"""How smoothly the explorer runs in a real browser, and what that costs the chain.

    .venv/bin/python benchmarks/explorer_frames.py
    .venv/bin/python benchmarks/explorer_frames.py ellipses

The second one measures what the ellipses cost, on wine: frames with and without them in turn, in one
explorer, so that whatever else the machine does meets both alike.

Needs the extras `lab` and `test`, a browser (`make browser` tells how to get one), and an otherwise idle
machine: the load average is printed with the table.
"""

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from browser.conftest import QUIET_FLAGS, running_server
from browser.explorer_page import FAST
from browser.opened import Desk, OpenedExplorer, Server, explorer_code, new_page, opened_explorer

DATA = {
    "wine (n = 178)": "ew.datasets.wine()",
    "half-moons (n = 1 000)": "ew.datasets.half_moons(n=1000, seed=0)",
}
WATCHED_SECONDS = 10
CLICKS = 10
CELL_RUNS = 7
TURNS = 5
# Iterations of the bare sampler take this long, about.
BARE_SECONDS = 3.0
ITERATION = "explorer.player.status.iteration"

# From the key that runs the cell, or the click on Play, until what it leads to has been painted.
RUN_TO_PICTURE = """
() => {
  for (const old of document.querySelectorAll(".ew-explorer")) old.dataset.old = "";
  const run = event => {
    if (event.key !== "Enter") return;
    window.removeEventListener("keydown", run, true);
    const begin = performance.now();
    const look = () => {
      const root = document.querySelector(".ew-explorer:not([data-old])");
      // Figures are seen once they have their size.
      const isThere = ["path.dot", ".ew-count-bars .tick", ".ew-heatmap-picture image[href]"]
        .every(part => root?.querySelector(`:scope.ew-fitted ${part}`)?.getClientRects().length);
      requestAnimationFrame(isThere ? () => { window.ewTime = performance.now() - begin; } : look);
    };
    look();
  };
  window.addEventListener("keydown", run, true);
}
"""
PLAY_TO_FRAME = """
() => {
  const root = document.querySelector(".ew-explorer"), status = root.querySelector(".ew-status");
  const shown = () => status.textContent.match(/iteration ([\\d\\s]+) of/)?.[1];
  const before = shown();
  let begin = 0;
  root.querySelector("button.ew-play").addEventListener(
    "click", () => { begin = performance.now(); }, { capture: true, once: true });
  const observer = new MutationObserver(() => {
    if (!begin || !shown() || shown() === before) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.ewTime = performance.now() - begin; }));
  });
  observer.observe(status, { childList: true, characterData: true, subtree: true });
}
"""
# Seconds that a sampler takes which starts where the explorer's stands.
BARE = """(lambda sampler, clock: (lambda start: (
    sampler.sample({draws}, progress=False), clock() - start)[1])(clock())
)(ew.Sampler(explorer.dataset, seed=1, initial=explorer.sampler.labels), __import__('time').perf_counter)"""


def bare_rate(explorer: OpenedExplorer) -> float:
    """Iterations a second of the sampler alone, in the same kernel, while the explorer stands still."""
    seconds = float(explorer.value(BARE.format(draws=20)))
    draws = max(20, round(20 * BARE_SECONDS / seconds))
    return draws / float(explorer.value(BARE.format(draws=draws)))


def playing_rates(explorer: OpenedExplorer, speed: str) -> dict[str, float]:
    """Painted frames and iterations a second at a speed; the chain plays afterwards."""
    explorer.choose_speed(speed)
    explorer.press("play")
    explorer.wait_for_iteration(explorer.iteration() + 20)
    explorer.watch()
    first, start = int(explorer.value(ITERATION)), explorer.watched()
    explorer.page.wait_for_timeout(1000 * WATCHED_SECONDS)
    last, end = int(explorer.value(ITERATION)), explorer.watched()
    seconds = (end["now"] - start["now"]) / 1000
    rates = {name: (end[name] - start[name]) / seconds for name in ("statuses", "heatmaps")}
    return rates | {"iterations": (last - first) / seconds}


def pauses(explorer: OpenedExplorer) -> list[float]:
    """Seconds from the click on Pause to the last change of a picture, several times."""
    explorer.watch()
    times = []
    for _ in range(CLICKS):
        explorer.press("play")
        explorer.wait_for_iteration(explorer.iteration() + 20)
        times.append(explorer.pause_seconds())
    return times


def first_pictures(page: Page, explorer: OpenedExplorer) -> list[float]:
    """Milliseconds from the key that runs the cell to the first pictures of the Explorer that it makes."""
    times = []
    for _ in range(CELL_RUNS):
        page.locator(".jp-CodeCell .cm-content").first.click()
        # Listen first, then press: the time begins when the page gets the key.
        page.evaluate(f"() => {{ window.ewTime = null; ({RUN_TO_PICTURE})(); }}")
        page.keyboard.press("Control+Enter")
        times.append(page.wait_for_function("() => window.ewTime").json_value())
        explorer.wait_for_value("explorer.player.is_watched", True)
    return times


def first_frames(explorer: OpenedExplorer) -> list[float]:
    """Milliseconds from the click on Play to the first frame, painted, once compiled code is loaded."""
    times: list[float] = []
    for _ in range(1 + CLICKS):
        explorer.press("reset")
        explorer.wait_for_iteration(0, or_later=False)
        explorer.wait_until_still()
        explorer.page.evaluate(f"() => {{ window.ewTime = null; ({PLAY_TO_FRAME})(); }}")
        explorer.press("play")
        times.append(explorer.page.wait_for_function("() => window.ewTime").json_value())
        explorer.pause()
    return times[1:]


def ellipses_cost(browser: Browser, server: Server) -> None:
    """Frames a second with and without ellipses in turn, for both families of shapes."""
    families = {
        "common shapes": "ew.datasets.wine(), iterations=10_000_000",
        "own shapes": "ew.datasets.wine(), model='III', shapes='own', prior=ew.priors.FiniteMixture(), "
        "iterations=10_000_000",
    }
    for title, arguments in families.items():
        page = new_page(browser)
        with opened_explorer(Desk(page, server), explorer_code(arguments)) as explorer:
            rates: dict[bool, list[float]] = {True: [], False: []}
            for _ in range(TURNS):
                for shown in (True, False):
                    if explorer.value("explorer.views['partition'].ellipses.value") != shown:
                        explorer.press("ellipses")
                        explorer.wait_for_value("explorer.views['partition'].ellipses.value", shown)
                    rates[shown].append(playing_rates(explorer, "1 iteration per frame")["statuses"])
                    explorer.press("pause")
                    explorer.wait_until_still()
            medians = {shown: statistics.median(values) for shown, values in rates.items()}
            clusters = explorer.value("int(explorer.labels.max()) + 1")
            say(
                f"wine, {title:13} {medians[True]:5.1f} frames/s with ellipses, {medians[False]:5.1f} "
                f"without: {1 - medians[True] / medians[False]:+.1%} ({clusters} clusters at the end; "
                f"with {_listed(rates[True])}, without {_listed(rates[False])})"
            )
        page.context.close()


def _listed(rates: list[float]) -> str:
    return " ".join(f"{rate:.1f}" for rate in rates)


def _spread(milliseconds: list[float]) -> str:
    return f"median {statistics.median(milliseconds):.0f} ms, most {max(milliseconds):.0f} ms"


def measure(browser: Browser, server: Server, title: str, data: str) -> None:
    page = new_page(browser)
    code = explorer_code(f"{data}, iterations=1_000_000")
    with opened_explorer(Desk(page, server), code) as explorer:
        say(f"{title:23} cell to first pictures: {_spread(first_pictures(page, explorer))}")
        say(f"{title:23} Play to first frame: {_spread(first_frames(explorer))}")
        explorer.choose_speed(FAST)
        say(f"{title:23} Pause at full speed: {_spread([1000 * seconds for seconds in pauses(explorer)])}")
        for speed, is_full in (("1 iteration per frame", False), (FAST, False), (FAST, True)):
            if is_full:  # both versions of the data are compared meanwhile, and uncertain objects are pale
                explorer.press("shear")
                explorer.part(".ew-colouring").get_by_text("answer", exact=True).click()
            rates = playing_rates(explorer, speed)
            explorer.press("pause")
            explorer.wait_until_still()
            share = rates["iterations"] / bare_rate(explorer)
            say(
                f"{title:23} {'sheared, answer shown' if is_full else speed:21} "
                f"{rates['statuses']:5.1f} statuses/s {rates['heatmaps']:5.1f} heatmaps/s "
                f"{rates['iterations']:8.1f} iterations/s, {share:.1%} of the bare rate"
            )
    page.context.close()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextmanager
def started_browser() -> Iterator[Browser]:
    flags = QUIET_FLAGS + (["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        yield browser
        browser.close()


def main() -> None:
    expect.set_options(timeout=60_000)
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(Path(folder)) as server,
        started_browser() as browser,
    ):
        say(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        if sys.argv[1:] == ["ellipses"]:
            ellipses_cost(browser, server)
        else:
            for title, data in DATA.items():
                measure(browser, server, title, data)
        say(f"load average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
