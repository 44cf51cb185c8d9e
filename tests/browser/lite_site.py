"""The site that runs without a server, behind a browser that reaches nothing else."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import nbformat
from browser.opened import VIEWPORT
from playwright.sync_api import Browser, Frame, Page, Request

from browser_site.serve import SiteHandler

# No name leads anywhere, and no address but this computer's. Playwright's own way of blocking would not see
# what the site's service worker asks for.
CUT_OFF = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
# Python has to be fetched, unpacked and started, on a machine that does other things too.
START = 300_000
# Interpreted code, and a tutorial has many chains.
TUTORIAL = 1_500_000


@dataclass
class Site:
    """A site on localhost, and which other hosts pages asked."""

    address: str
    folder: Path
    asked: list[str] = field(default_factory=list)

    def note(self, request: Request) -> None:
        """Note a request that is not for the site's host.

        Of this JupyterLite asks for one thing outside the folder of the site, a sign of life of its service
        worker, and does without.
        """
        if not request.url.startswith((urljoin(self.address, "/"), "data:", "blob:")):
            self.asked.append(request.url)


def strip_outputs(folder: Path) -> None:
    """Remove stored outputs from notebooks: they would look like results."""
    for path in folder.glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(notebook, path)


@contextmanager
def served(folder: Path) -> Iterator[Site]:
    """Serve a site for as long as the context lasts; not as the whole of a host, as project pages are not."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SiteHandler, directory=str(folder.parent)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Site(f"http://127.0.0.1:{server.server_port}/{folder.name}/", folder)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def cut_off_page(browser: Browser, site: Site) -> Page:
    """A page of a new browser profile, which notes what it asks of others."""
    context = browser.new_context(viewport=VIEWPORT)
    context.on("request", site.note)
    page = context.new_page()
    page.set_default_timeout(START)
    return page


class FramePage:
    """What is inside a frame of a page, with the mouse and the console of the page around it."""

    def __init__(self, page: Page, frame: Frame) -> None:
        self._page, self._frame = page, frame

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as of the frame
        return getattr(self._page if name in ("on", "mouse", "keyboard") else self._frame, name)


def framed(page: Page) -> FramePage:
    """The frame of a page that has one."""
    frame = page.locator("iframe").element_handle().content_frame()
    assert frame is not None
    return FramePage(page, frame)
