"""Whether half an hour of playing leaves the kernel's memory and the page as they were.

    .venv/bin/python benchmarks/explorer_soak.py [FRAMES]

Frames come as fast as the browser paints them, three times as fast as when somebody watches. Linux only.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

from explorer_frames import (
    Desk,
    explorer_code,
    new_page,
    opened_explorer,
    running_server,
    say,
    started_browser,
)
from playwright.sync_api import Browser, expect

FRAMES = 20_000
REPORTS = 10
NUMBER = "explorer.player._display.number"
MEGABYTES = "int(open('/proc/self/statm').read().split()[1]) * __import__('resource').getpagesize() / 1e6"
# The throttle of a lecture would make this a matter of half an hour.
HURRY = "object.__setattr__(explorer.player._pacing, 'frames_per_second', 60.0)"
ELEMENTS = "() => document.querySelectorAll('*').length"


def megabytes(browser: Browser) -> float:
    """Memory of all processes of the browser."""
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    pages = sum(int(Path(f"/proc/{process['id']}/statm").read_text().split()[1]) for process in processes)
    return pages * resource.getpagesize() / 1e6


def main() -> None:
    frames = int(sys.argv[1]) if len(sys.argv) > 1 else FRAMES
    expect.set_options(timeout=120_000)
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(Path(folder)) as server,
        started_browser() as browser,
    ):
        page = new_page(browser)
        code = explorer_code("ew.datasets.unit_square(seed=0), iterations=1_000_000")
        with opened_explorer(Desk(page, server), code) as explorer:
            explorer.value(HURRY)
            explorer.choose_speed("1 iteration per frame")
            explorer.press("play")
            explorer.wait_for_iteration(200)  # everything is compiled, allocated and painted once
            started, first = time.monotonic(), int(explorer.value(NUMBER))
            for part in range(REPORTS + 1):
                while (done := int(explorer.value(NUMBER)) - first) < part * frames // REPORTS:
                    page.wait_for_timeout(1000)
                seconds, memory = time.monotonic() - started, explorer.value(MEGABYTES)
                say(
                    f"{done:6} frames, {seconds:5.0f} s: kernel {memory:5.0f} MB, "
                    f"browser {megabytes(browser):5.0f} MB, {page.evaluate(ELEMENTS)} elements on the page"
                )
            explorer.watch()
            say(f"Pause took {1000 * explorer.pause_seconds():.0f} ms")


if __name__ == "__main__":
    main()
