#!/usr/bin/env python
"""Take a picture of the explorer at work, or an animation: JupyterLab, a real browser, Play, wait, save.

    .venv/bin/python scripts/screenshot.py docs/explorer.png --seconds 25
    .venv/bin/python scripts/screenshot.py dark.png --theme dark --seconds 20
    .venv/bin/python scripts/screenshot.py docs/explorer.gif --code "import ewens_widgets as ew
    ew.Explorer.from_preset('data=square&model=III&iterations=600&burn_in=100')" --seconds 13

A name that ends in .gif gives an animation of the seconds after Play, with large type and without JupyterLab
around it. Halfway the data are sheared; its last picture is the answer, once the run has come to its end.

Needs the extras `lab` and `test`, and a browser (`make browser` tells how to get one).
"""

import argparse
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

VIEWPORT = {"width": 1280, "height": 800}
CODE = "import ewens_widgets as ew\n\new.Explorer.from_preset('wine', speed=None)"
NOTEBOOK = "explorer.ipynb"
FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_SECONDS = 90

# Animations: frames a second, width in pixels, colours.
RATE, WIDTH, COLOURS = 2, 640, 200


def free_port() -> int:
    """Return a port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    """Tell whether a server is up."""
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - a server of our own
            return True
    except OSError:
        return False


@contextmanager
def running_lab(folder: Path, theme: str) -> Iterator[str]:
    """JupyterLab on a folder, with settings of its own; gives the address of the notebook."""
    settings = folder / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    settings.joinpath("notification.jupyterlab-settings").write_text(
        '{"fetchNews": "false", "checkForUpdates": false}'
    )
    settings.joinpath("themes.jupyterlab-settings").write_text(f'{{"theme": "JupyterLab {theme.title()}"}}')
    port, token = free_port(), secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.port={port}"]
    command += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}"]
    private = {
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=os.environ | private, stdout=log, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + START_SECONDS
        while not answers(f"{address}/api?token={token}"):
            if server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("JupyterLab did not start:\n" + (folder / "server.log").read_text()[-3000:])
            time.sleep(0.2)
        yield f"{address}/lab/tree/{NOTEBOOK}?token={token}"
    finally:
        server.terminate()
        server.wait(timeout=30)


def write_notebook(path: Path, code: str) -> None:
    """Write a notebook with one cell."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


def open_explorer(browser: Browser, address: str) -> Page:
    """Open the notebook and run it; give the whole width to it."""
    page = browser.new_context(viewport=VIEWPORT).new_page()
    page.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    page.on("console", lambda message: message.type == "error" and print("console:", message.text))
    page.on("pageerror", lambda error: print("page error:", error))
    page.goto(address)
    expect(page.get_by_text(re.compile(r"\| Idle"))).to_be_visible()
    page.keyboard.press("Control+b")  # hides the file browser
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name=re.compile("^Run All( Cells)?$")).click()
    expect(page.locator(".ew-explorer .ew-status")).to_contain_text("iteration")
    return page


def small_picture(page: Page) -> Image.Image:
    """Take a picture with few colours and of a modest size."""
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    height = round(picture.height * WIDTH / picture.width)
    # The colours of clusters are few pixels each, and must stay what they are.
    return picture.resize((WIDTH, height)).quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE)


def animate(page: Page, path: Path, seconds: float) -> None:
    """Save what happens in the next seconds, and the answer."""
    pictures = []
    count = round(RATE * seconds)
    for number in range(count):
        started = time.monotonic()
        if number == count // 2:
            page.locator(".ew-explorer .ew-shear").click()
        pictures.append(small_picture(page))
        page.wait_for_timeout(max(0.0, 1000 / RATE - 1000 * (time.monotonic() - started)))
    expect(page.locator(".ew-explorer .ew-headline")).to_contain_text(
        re.compile(r"^\s*(Not reliable yet: )?\d+ groups?\b"), timeout=120_000
    )
    expect(page.locator(".ew-explorer .ew-badge.ew-same").first).to_be_visible()
    page.mouse.move(2, 2)
    page.wait_for_timeout(500)
    pictures.append(small_picture(page))
    # The last picture stands for a while.
    durations = [1000 // RATE] * (len(pictures) - 1) + [3000]
    pictures[0].save(
        path, save_all=True, append_images=pictures[1:], duration=durations, loop=0, optimize=True
    )


def main() -> None:
    """Take the picture."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("path", type=Path, help="where to save the PNG")
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--seconds", type=float, default=15.0, help="how long to play before the picture")
    parser.add_argument("--code", default=CODE, help="what the notebook's cell runs")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        write_notebook(Path(folder) / NOTEBOOK, options.code)
        with running_lab(Path(folder), options.theme) as address, sync_playwright() as playwright:
            flags = FLAGS + (["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [])
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"),
                args=flags,
                ignore_default_args=["--hide-scrollbars"],
            )
            page = open_explorer(browser, address)
            page.locator(".ew-explorer").evaluate("element => element.scrollIntoView({block: 'start'})")
            if options.path.suffix == ".gif":
                page.locator(".ew-explorer .ew-present").click()
                page.wait_for_timeout(1500)
            page.locator(".ew-explorer .ew-play").click()
            # Where nothing is cached yet, the sampler is compiled first.
            status = page.locator(".ew-explorer .ew-status")
            expect(status).to_contain_text(re.compile("iteration [1-9]"), timeout=600_000)
            options.path.parent.mkdir(parents=True, exist_ok=True)
            if options.path.suffix == ".gif":
                animate(page, options.path, options.seconds)
            else:
                page.wait_for_timeout(1000 * options.seconds)
                page.locator(".ew-explorer").evaluate("element => element.scrollIntoView({block: 'start'})")
                page.wait_for_timeout(500)
                page.screenshot(path=options.path)
            print(status.inner_text())
            browser.close()


if __name__ == "__main__":
    main()
