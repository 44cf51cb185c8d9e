"""The site without a server: how soon the Explorer's first picture is there, and how fast its chain runs.

    python benchmarks/lite_times.py artefacts/lite

Takes a site that was built with everything in its folder (`make lite OFFLINE=1`), serves it, and opens the
Explorer's page in Chromium: first with an empty cache, then again in the same browser. Other addresses are
blocked. On an otherwise idle machine.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import BrowserContext, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from browser.lite_site import CUT_OFF, START, Site, framed, served

SECONDS = 20


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
        for name in ("cold", "warm"):
            seconds, inside = open_explorer(context, site)
            print(f"first picture, {name} cache: {seconds:.1f} s", flush=True)
        status = inside.locator(".ew-status").first
        inside.locator("button.ew-play").click()
        inside.wait_for_timeout(1000 * SECONDS)
        print(f"playing the unit square for {SECONDS} s: {status.inner_text()}")
        print(f"other addresses asked for: {len(site.asked)}")
        context.close()


if __name__ == "__main__":
    main()
