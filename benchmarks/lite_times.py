"""The site without a server: how soon the Explorer's first picture is there, and how fast its chain runs.

    python benchmarks/lite_times.py artefacts/lite

Takes a site that was built with everything in its folder (`make lite OFFLINE=1`), serves it, and opens the
Explorer's page in Chromium: first with an empty cache, then again in the same browser. Then chains are run on
a page of their own, compiled and interpreted in turns. Other addresses are blocked. On an otherwise idle
machine; `--rates` leaves out the Explorer.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import BrowserContext, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from browser.lite_site import CUT_OFF, START, Site, framed, served
from browser.opened import OUTPUT

SECONDS = 20
# Medians of three turns; the last line says that it is done.
RATES = """
import statistics, time
import ewens_widgets as ew
from ewens_widgets.sampling import driver
ways = {"compiled": driver.advance_by_likelihood, "interpreted": driver.advance_by_likelihood.py_func}
wine, square = ew.datasets.wine(), ew.datasets.unit_square(seed=0)
chains = {"unit square I": (square, "I"), "wine II": (wine, "II"), "wine III": (wine, "III")}
def rate(data, model, way, n):
    driver.advance_by_likelihood = ways[way]
    sampler = ew.Sampler(data, model=model, seed=1)
    sampler.advance(5)
    began = time.perf_counter()
    sampler.advance(n)
    return n / (time.perf_counter() - began)
for name, (data, model) in chains.items():
    turns = [(rate(data, model, "interpreted", 10), rate(data, model, "compiled", 300)) for _ in range(3)]
    slow, fast = map(statistics.median, zip(*turns))
    print(f"{name:14} interpreted {slow:5.1f}/s  compiled {fast:6.0f}/s  ratio {fast / slow:4.0f}")
print("done")
"""


def open_explorer(context: BrowserContext, site: Site) -> tuple[float, object]:
    """Open the page; return how long the first picture took, and what is inside the frame."""
    page = context.new_page()
    page.set_default_timeout(START)
    began = time.perf_counter()
    page.goto(f"{site.address}explorer.html")
    inside = framed(page)
    for part in (".ew-heatmap-picture image", ".ew-scatter path.dot"):
        inside.locator(part).first.wait_for(state="attached")
    return time.perf_counter() - began, inside


def print_explorer(context: BrowserContext, site: Site) -> None:
    """Open the Explorer twice and play; print the times."""
    for name in ("cold", "warm"):
        seconds, inside = open_explorer(context, site)
        print(f"first picture, {name} cache: {seconds:.1f} s", flush=True)
    status = inside.locator(".ew-status").first
    inside.locator("button.ew-play").click()
    inside.wait_for_timeout(1000 * SECONDS)
    print(f"playing the unit square for {SECONDS} s: {status.inner_text()}")


def print_rates(context: BrowserContext, site: Site) -> None:
    """Run chains both ways on a page of their own, and print how fast they are."""
    page = context.new_page()
    page.set_default_timeout(START)
    page.goto(f"{site.address}repl/index.html?{urlencode({'kernel': 'python', 'code': RATES})}")
    output = page.locator(OUTPUT).filter(has_text="done")
    output.wait_for()
    print(output.inner_text().strip().removesuffix("done").rstrip())


def main() -> None:
    """Print the times."""
    with (
        served(Path(sys.argv[1]).resolve()) as site,
        sync_playwright() as playwright,
        tempfile.TemporaryDirectory() as profile,
    ):
        # A profile on disk: what a browser keeps between two visits.
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu", CUT_OFF]
        )
        context.on("request", site.note)
        if "--rates" not in sys.argv:
            print_explorer(context, site)
        print_rates(context, site)
        print(f"other addresses asked for: {len(site.asked)}")
        context.close()


if __name__ == "__main__":
    main()
