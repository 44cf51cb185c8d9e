"""The web app with many visitors who all play: what each of them sees, and what it costs.

    .venv/bin/python benchmarks/app_visitors.py
    .venv/bin/python benchmarks/app_visitors.py --visitors 5 --data wine --speed "as fast as possible"
    .venv/bin/python benchmarks/app_visitors.py --elsewhere
    .venv/bin/python benchmarks/app_visitors.py --elsewhere --greedy upload

Server, kernels and all the browser's pages share this machine, so what is measured is the worst case. With
`--elsewhere` the pages are on other computers: visitors are played who acknowledge frames and paint nothing.
With `--greedy` one of them does more than the others, and these are measured before and meanwhile: at full
speed, or uploading tables of 5 MB one after another. Needs the extra `test`, a browser unless `--elsewhere`
(`make browser` tells how to get one), and an otherwise idle machine: the load average is printed with the
table.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path

import psutil
from explorer_frames import say, started_browser
from playwright.sync_api import Browser, expect

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from app.far_visitor import FarVisitor, far_visit
from browser.explorer_page import ExplorerPage
from browser.opened import new_page
from browser.servers import running_app

PATIENCE = 180_000
MEGABYTE = 1e6

# Notes when what the status line says is painted; a frame always changes it. It is not looked at all the
# time: asking for each animation frame would keep the page busy even where nothing changes.
TIMES = """
() => {
  const times = [performance.now() / 1000];
  window.ewTimes = times;
  let isAsked = false;
  const note = () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      times.push(performance.now() / 1000);
    });
  };
  const status = document.querySelector(".ew-explorer .ew-status");
  new MutationObserver(note).observe(status, { subtree: true, childList: true, characterData: true });
}
"""


def open_pages(browser: Browser, address: str, count: int) -> tuple[list[ExplorerPage], list[float]]:
    """Pages of so many visitors who come at once, and after how many seconds each had its pictures."""
    start = time.monotonic()
    pages = [ExplorerPage(new_page(browser)) for _ in range(count)]
    for visitor in pages:
        visitor.page.set_default_timeout(PATIENCE)
        visitor.page.goto(address, wait_until="commit")
    seconds = []
    for visitor in pages:
        visitor.wait_until_shown()
        seconds.append(time.monotonic() - start)
    return pages, seconds


def play(
    pages: list[ExplorerPage], speed: str, seconds: float, server: subprocess.Popen[bytes]
) -> tuple[list[list[float]], dict[str, float]]:
    """Let all play for a while; return the times between frames, page by page, and processor times."""
    for visitor in pages:
        visitor.choose_speed(speed)
        visitor.press("play")
    for visitor in pages:
        visitor.wait_for_iteration(5)
    for visitor in pages:
        visitor.page.evaluate(TIMES)
    before = processor_seconds(server)
    time.sleep(seconds)
    spent = {name: after - before[name] for name, after in processor_seconds(server).items()}
    gaps = []
    for visitor in pages:
        # A page that has stopped painting has a long gap at the end.
        times = visitor.page.evaluate("() => [...window.ewTimes, performance.now() / 1000]")
        gaps.append([two - one for one, two in pairwise(times)])
    return gaps, spent


def kernels(server: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Processes of the visitors."""
    return [child for child in psutil.Process(server.pid).children() if is_kernel(child)]


def is_kernel(process: psutil.Process) -> bool:
    return any("ewens_widgets.app.visitor" in part for part in process.cmdline())


def processor_seconds(server: subprocess.Popen[bytes]) -> dict[str, float]:
    """Processor time so far of the server, of the visitors' processes, and of the browser with all pages."""
    browsers = [
        child for child in psutil.Process().children(recursive=True) if "chrom" in child.name().lower()
    ]
    groups = {"server": [psutil.Process(server.pid)], "kernels": kernels(server), "browser": browsers}
    return {name: sum(sum(one.cpu_times()[:2]) for one in group) for name, group in groups.items()}


def tell_memory(server: subprocess.Popen[bytes]) -> None:
    """Say how much memory the visitors take; what processes share is divided among them."""
    shares = [share_of_memory(kernel) for kernel in kernels(server)]
    say(f"memory per visitor: median {statistics.median(shares):.0f} MB, most {max(shares):.0f} MB")
    say(f"memory of the server: {share_of_memory(psutil.Process(server.pid)):.0f} MB")


def share_of_memory(process: psutil.Process) -> float:
    memory = process.memory_full_info()
    return getattr(memory, "pss", memory.rss) / MEGABYTE


def measure(browser: Browser, options: argparse.Namespace, folder: Path) -> bool:
    """Print the table; tell whether every page painted a frame a second and none failed."""
    arguments = [f"--visitors={options.visitors}", f"--data={options.data}"]
    with running_app(folder, *arguments) as (address, server):
        pages, shown = open_pages(browser, address, options.visitors)
        say(f"{options.visitors} visitors at once, {options.data}: pictures after {max(shown):.1f} s at most")
        gaps, seconds = play(pages, options.speed, options.seconds, server)
        frames = sum(len(page_gaps) - 1 for page_gaps in gaps)
        costs = ", ".join(f"{name} {1000 * spent / frames:.1f}" for name, spent in seconds.items())
        say(f"processor time of a frame in ms: {costs}")
        for number, (visitor, page_gaps) in enumerate(zip(pages, gaps, strict=True), 1):
            rate = (len(page_gaps) - 1) / sum(page_gaps)
            say(
                f"visitor {number:2}: {rate:4.1f} frames/s, longest wait {max(page_gaps):4.2f} s, "
                f"iteration {visitor.iteration()}, faults: {visitor.faults or 'none'}"
            )
        rates = [(len(page_gaps) - 1) / sum(page_gaps) for page_gaps in gaps]
        say(f"frames a second: fewest {min(rates):.1f}, median {statistics.median(rates):.1f}")
        tell_memory(server)
        return min(rates) >= 1.0 and not any(visitor.faults for visitor in pages)


# Visitors elsewhere.

GREEDY = {"no": "", "full-speed": "plays as fast as possible", "upload": "uploads tables of 5 MB"}
FULL_SPEED = "as fast as possible"
LARGE_TABLE = b"x,y,z\n" + b"".join(b"%d.25,%d.5,%d\n" % (k, k % 977, k % 31) for k in range(300_000))


async def be_greedy(visitor: FarVisitor, how: str) -> None:
    """Take as much as one can, until cancelled."""
    if how == "full-speed":
        visitor.choose(FULL_SPEED)
        return
    while True:
        await visitor.upload("large.csv", LARGE_TABLE)


async def watch(visitors: list[FarVisitor], seconds: float, server: subprocess.Popen[bytes]) -> list[float]:
    """Frames a second of each, and the processor time that a frame takes, which is printed."""
    before, spent = [len(visitor.frames) for visitor in visitors], processor_seconds(server)
    started = time.monotonic()
    await asyncio.sleep(seconds)
    passed = time.monotonic() - started
    counts = [len(visitor.frames) - count for visitor, count in zip(visitors, before, strict=True)]
    costs = {name: after - spent[name] for name, after in processor_seconds(server).items()}
    said = ", ".join(f"{name} {1000 * cost / sum(counts):.1f}" for name, cost in costs.items() if cost)
    say(f"processor time of a frame in ms: {said}")
    return [count / passed for count in counts]


def tell_rates(rates: list[float], who: str) -> None:
    say(
        f"frames a second of {who}: fewest {min(rates):.1f}, median {statistics.median(rates):.1f}, "
        f"most {max(rates):.1f}"
    )


async def measure_elsewhere(
    address: str, server: subprocess.Popen[bytes], options: argparse.Namespace
) -> bool:
    """Print the table of visitors who are elsewhere; tell whether each got a frame a second."""
    started = time.monotonic()
    async with AsyncExitStack() as opened:
        visits = (opened.enter_async_context(far_visit(address)) for _ in range(options.visitors))
        visitors = await asyncio.gather(*visits)
        passed = time.monotonic() - started
        say(f"{options.visitors} visitors at once, elsewhere: widgets after {passed:.1f} s")
        for visitor in visitors:
            visitor.choose(options.speed)
            visitor.press("Play")
        await asyncio.gather(*(visitor.until(5) for visitor in visitors))
        rates = await watch(visitors, options.seconds, server)
        tell_rates(rates, "all")
        if options.greedy != "no":
            greed = asyncio.create_task(be_greedy(visitors[0], options.greedy))
            rates = await watch(visitors[1:], options.seconds, server)
            greed.cancel()
            tell_rates(rates, f"the others, while one {GREEDY[options.greedy]}")
        tell_memory(server)
    return min(rates) >= 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the web app with many visitors who all play.")
    parser.add_argument("--visitors", type=int, default=10)
    parser.add_argument("--data", default="unit square")
    parser.add_argument("--speed", default="1 iteration per frame", help="as the page's list names it")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to watch")
    parser.add_argument("--elsewhere", action="store_true", help="the pages are on other computers")
    parser.add_argument("--greedy", choices=GREEDY, default="no", help="what the first of them does")
    options = parser.parse_args()
    say(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if options.elsewhere:
        arguments = [f"--visitors={options.visitors}", f"--data={options.data}"]
        with tempfile.TemporaryDirectory() as place, running_app(Path(place), *arguments) as running:
            return 0 if asyncio.run(measure_elsewhere(*running, options)) else 1
    expect.set_options(timeout=PATIENCE)
    with tempfile.TemporaryDirectory() as folder, started_browser() as browser:
        succeeded = measure(browser, options, Path(folder))
    return 0 if succeeded else 1


if __name__ == "__main__":
    sys.exit(main())
