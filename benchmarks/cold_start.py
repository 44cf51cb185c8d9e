"""How soon a chain moves on a machine that has compiled nothing yet, and when it runs at full speed.

    python benchmarks/cold_start.py            # a sampler in a new process, for both families of shapes
    python benchmarks/cold_start.py explorer   # and the Explorer in JupyterLab, in a real browser

Every process finds an empty folder of machine code. Seconds are counted from the start of the interpreter or,
in brackets, from the end of the import; "compiled" is when the chain has changed over, with its rates before
and after. On an otherwise idle machine: the load average is printed with the figures.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAMPLER = """
import sys, time
began = float(sys.argv[1])
import ewens_widgets as ew
ew.Sampler
imported = time.time()
sampler = ew.Sampler(ew.datasets.unit_square(seed=0), seed=1, shapes=sys.argv[2])
next(iter(sampler.events(1)))
event = time.time()
done = 0
while sampler.compilation:
    sampler.advance(5)
    done += 5
compiled = time.time()
sampler.advance(100)
rate = time.time()
sampler.advance(2000)
after = 2000 / (time.time() - rate)
print(f"{sys.argv[2]} shapes: imported {imported - began:.1f} s, first event {event - began:.1f} s "
      f"({event - imported:.2f} s), compiled {compiled - began:.1f} s; "
      f"{done / (compiled - event):.0f} iterations/s before, {after:.0f} after")
"""


def time_sampler(shapes: str) -> None:
    """Run a chain in a process of its own until it is compiled."""
    with tempfile.TemporaryDirectory() as cache:
        variables = {**os.environ, "NUMBA_CACHE_DIR": cache, "EWENS_WIDGETS_WAIT": ""}
        command = [sys.executable, "-c", SAMPLER, str(time.time()), shapes]
        subprocess.run(command, check=True, env=variables)  # noqa: S603 - this interpreter


def time_explorer() -> None:
    """Press Play in a new kernel, and watch the page."""
    from playwright.sync_api import expect, sync_playwright

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from browser.conftest import QUIET_FLAGS, running_server
    from browser.opened import Desk, explorer_code, new_page, opened_explorer

    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
        os.environ.update(NUMBA_CACHE_DIR=cache, EWENS_WIDGETS_WAIT="")
        with running_server(Path(folder)) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=[*QUIET_FLAGS, "--no-sandbox"]
            )
            code = explorer_code("ew.datasets.unit_square(seed=0), seed=1")
            with opened_explorer(Desk(new_page(browser), server), code) as explorer:
                began = time.perf_counter()
                explorer.press("play")
                explorer.wait_for_iteration(1)
                moving = time.perf_counter() - began
                said = explorer.part(".ew-status").inner_text()
                expect(explorer.part(".ew-status")).not_to_contain_text(
                    re.compile("compiling"), timeout=300_000
                )
                compiled = time.perf_counter() - began
            print(f"Explorer, from Play: first moving picture {moving:.2f} s, compiled {compiled:.1f} s")
            print(f"  its status line meanwhile: {said}")
            browser.close()


def main() -> None:
    """Print the times."""
    print(f"load average {os.getloadavg()[0]:.1f} of {os.cpu_count()} processors")
    for shapes in ("common", "own"):
        time_sampler(shapes)
    if "explorer" in sys.argv[1:]:
        time_explorer()


if __name__ == "__main__":
    main()
