"""Voilà with the Explorer on one page, and a kernel for each visitor, for no longer than needed.

A visitor has a place from the moment the page is requested until its kernel is told to stop. The page does
so when it is closed or loaded again. The server does so when the page was given up before it was sent, has
never connected, has lost its connection or was idle for long, and when the visitor's process has ended.

Requests pass `guard` first.
"""

import asyncio
import errno
import json
import re
import secrets
import sys
import time
from collections.abc import AsyncIterator
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from socket import socket
from typing import Any
from uuid import uuid4

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.session import DELIM
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.services.kernels.handlers import KernelHandler
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager, ServerKernelManager
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets
from tornado.web import HTTPError
from traitlets import Float, Int, List, Unicode
from traitlets.config import Config
from voila.app import Voila
from voila.shutdown_kernel_handler import VoilaShutdownKernelHandler
from voila.static_file_handler import TemplateStaticFileHandler
from voila.tornado.handler import TornadoVoilaHandler
from voila.tornado.kernel_websocket_handler import VoilaKernelWebsocketHandler

from ewens_widgets.app import guard
from ewens_widgets.app.command_line import StartError
from ewens_widgets.app.visitor import SHORT_OF_MEMORY

__all__ = ["ExplorerServer", "OwnKernelSpecs", "VisitorKernels", "server_settings", "write_page"]

_TEMPLATES = Path(__file__).parent / "page"
_TITLE = "ewens_widgets Explorer"
_PORTS = 50
_PATIENCE = 180  # seconds
_HELD = 25.0  # seconds for which a question whether a visit goes on is kept open
_IDLE_CONNECTION = 120.0  # seconds
_LARGEST_BODY = 2**16  # bytes; what is uploaded comes as messages
_THEMES = ("light", "dark")

# What the page needs of what may be installed for JupyterLab; the rest would only be loaded, and fail.
_EXTENSIONS = [
    "@jupyter-widgets/jupyterlab-manager",
    "@voila-dashboards/widgets-manager8",
    "anywidget",
    "bqplot",
    "bqscales",
]

# In a box, so that no static picture of the explorer is drawn for a page that shows the live one.
# The query of the address, such as ?data=moons&cut=2, contains settings.
_CODE = """\
import os
from html import escape
import ewens_widgets as ew
from ewens_widgets.datasets import LOADERS
from ipywidgets import HTML, VBox

try:
    explorer, problem = ew.Explorer.from_preset(os.environ.get("QUERY_STRING", ""), LOADERS[{data!r}]()), ""
except ValueError as error:
    explorer, problem = ew.Explorer(LOADERS[{data!r}]()), str(error)
VBox((*([HTML(escape(problem))] if problem else []), explorer))"""


def write_page(folder: Path, data: str) -> Path:
    """Write the notebook that Voilà shows.

    Parameters
    ----------
    folder
        Where to put it; there should be nothing else.
    data
        Name of the data set that the Explorer starts with.

    Returns
    -------
    The notebook.
    """
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(_CODE.format(data=data))])
    notebook.metadata = {
        "title": _TITLE,
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    }
    path = folder / "explorer.ipynb"
    nbformat.write(notebook, path)
    return path


def server_settings(*, visitors: int, idle_minutes: float, theme: str) -> Config:
    """Return what is different from Voilà's defaults."""
    settings = Config()
    settings.VoilaConfiguration = Config(
        {
            "multi_kernel_manager_class": VisitorKernels,
            "kernel_spec_manager_class": OwnKernelSpecs,
            "extension_allowlist": _EXTENSIONS,
            "allow_template_override": "NO",
            "file_allowlist": [],
            "theme": theme,
            "resources": {"ewens": {"idle_minutes": f"{idle_minutes:g}"}},
        }
    )
    # When many visitors come at once, outputs lag behind. What comes later than this is dropped silently.
    settings.VoilaExecutor = Config({"iopub_timeout": _PATIENCE, "startup_timeout": _PATIENCE})
    # A process that has ended is not started again: its Explorer would be gone, and the page would not know.
    settings.KernelRestarter = Config({"restart_limit": 0, "time_to_dead": 1.0})
    seconds = max(1, round(60 * idle_minutes))
    settings.VisitorKernels = Config(
        {
            "visitors": visitors,
            "kernel_manager_class": f"{__name__}.{VisitorKernel.__name__}",
            "cull_idle_timeout": seconds,
            "cull_interval": min(15, seconds),
            # A page whose chain rests sends nothing; that it is open somewhere does not earn it its place.
            "cull_connected": True,
        }
    )
    return settings


class VisitHandler(guard.OwnVisit, JupyterHandler):
    """Says whether a visit goes on: at once if it has ended, otherwise when it ends or after a while."""

    async def get(self, kernel_id: str) -> None:
        """Answer with true, false or the reason of the end; the question is no activity of the visitor."""
        self.finish(json.dumps(await self.kernel_manager.goes_on(kernel_id, _HELD)))


# The request at hand, and the kernel that was started for it; the original keeps them to itself.
_page: ContextVar["PageHandler"] = ContextVar("_page")
_started: ContextVar[str] = ContextVar("_started")


class PageHandler(TornadoVoilaHandler):
    """Sends the page. A visitor who leaves before all of it was sent gives up the place."""

    _kernel: str | None = None
    is_left = False

    async def prepare(self) -> None:
        """Refuse what would be reflected in the page, or passed on, unchecked."""
        await super().prepare()
        if self.get_argument("theme", "light") not in _THEMES:
            raise HTTPError(400, "theme must be light or dark")
        if len(self.request.query) > guard.LONGEST_QUERY:
            raise HTTPError(
                414, f"the address has more than {guard.LONGEST_QUERY} characters after the question mark"
            )

    async def get_generator(self, path: str | None = None) -> AsyncIterator[str]:
        """Parts of the page; the first of them comes when the kernel has been started."""
        _page.set(self)
        async for part in super().get_generator(path=path):
            if self._kernel is None and (kernel := _started.get(None)) is not None:
                self._kernel = kernel
                self._own(kernel)
                self._give_up()
            # A process that has ended answers nothing more; the page says so by itself.
            if self.is_left or (self._kernel is not None and self._kernel not in self.kernel_manager):
                return
            yield part
        self.kernel_manager.note_sent(self._kernel)

    def _own(self, kernel: str) -> None:
        """Tie the visit to this browser by a cookie, which goes out with the first part of the page."""
        # Sets another cookie, without which the page could not end its visit when it is closed.
        self.xsrf_token  # noqa: B018 - for its effect
        visitor = guard.visitor_of(self) or secrets.token_urlsafe()
        self.kernel_manager.owners[kernel] = visitor
        name = guard.cookie_name(self)
        self.set_signed_cookie(name, visitor, expires_days=None, httponly=True, samesite="Lax")

    def on_connection_close(self) -> None:
        """Give the place up."""
        super().on_connection_close()
        self.is_left = True
        self._give_up()

    def _give_up(self) -> None:
        if self.is_left and self._kernel in self.kernel_manager:
            IOLoop.current().spawn_callback(self.kernel_manager.shutdown_kernel, self._kernel)


class TemplateFiles(guard.Terse, TemplateStaticFileHandler):
    """Sends the style sheets and scripts of the page's template; the original fails at other addresses."""

    def parse_url_path(self, url_path: str) -> str:
        """Refuse what is no file of a template."""
        if re.fullmatch(r"[\w-]+/static/.+", url_path) is None:
            raise HTTPError(404)
        return str(super().parse_url_path(url_path))


# Handlers of Voilà and jupyter-server, and ours in their place.
_HANDLERS = {
    TornadoVoilaHandler: PageHandler,
    VoilaKernelWebsocketHandler: guard.GuardedSocket,
    KernelHandler: guard.GuardedKernel,
    VoilaShutdownKernelHandler: guard.GuardedShutdown,
    TemplateStaticFileHandler: TemplateFiles,
}


class ExplorerServer(Voila):
    """Voilà with our page in place of its own template."""

    hosts = List(Unicode(), help="Names by which the page may be reached, besides localhost.")

    megabytes = Int(4000, help="Most address space of a visitor's process.")

    def setup_template_dirs(self) -> None:
        """Look for templates among ours first."""
        super().setup_template_dirs()
        self.template_paths.insert(0, str(_TEMPLATES))

    def init_settings(self) -> dict[str, Any]:
        """Answer to known names only, within limits, and tell browsers to load from here alone."""
        return super().init_settings() | {
            "allow_remote_access": False,
            "local_hostnames": ["localhost", *self.hosts],
            "headers": guard.HEADERS,
            "websocket_max_message_size": guard.LARGEST_MESSAGE,
        }

    def init_handlers(self) -> list[tuple[Any, ...]]:
        """Put our handlers before the others or in their places, and leave out those for logging in."""
        login = dict.fromkeys(handler for _, handler, *_ in self.identity_provider.get_handlers())
        handlers: list[tuple[Any, ...]] = [(r"/visits/([\w-]+)", VisitHandler)]
        for path, original, *settings in super().init_handlers():
            handler = (login | _HANDLERS).get(original, original)
            if handler is original:
                handler = type(f"Terse{handler.__name__}", (guard.Terse, handler), {})
            if handler is not None:
                handlers.append((path, handler, *settings))
        return handlers

    def listen(self) -> None:
        """Listen, say where, and serve until stopped."""
        server = HTTPServer(self.app, max_body_size=_LARGEST_BODY, idle_connection_timeout=_IDLE_CONNECTION)
        server.add_sockets(self._sockets())
        print(f"The Explorer is at {self.display_url} (stop with Ctrl-C)", flush=True)
        if self.open_browser:
            self.launch_browser()
        self.ioloop = IOLoop.current()
        try:
            self.ioloop.start()
        except KeyboardInterrupt:
            print("Stopping")
        finally:
            self.stop()

    def _sockets(self) -> list[socket]:
        """Sockets on the wanted port, or on the next one that is free."""
        wanted = self.port
        for port in range(wanted, min(wanted + _PORTS, 65536)):
            try:
                sockets = bind_sockets(port, self.ip)
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise
                continue
            self.set_trait("port", sockets[0].getsockname()[1])
            return sockets
        raise StartError(f"No port from {wanted} on is free. Choose another:  ewens-widgets app --port PORT")


_SHORT = "This visit has ended: its process needed more memory than a visitor may have."
_STOPPED = "This visit has ended: its process has stopped."
_GLANCE = 0.1
_GRACE = 20.0  # seconds to connect for a page that was sent, while others wait
_CLOCK_JUMP = timedelta(seconds=5)


class OwnKernelSpecs(KernelSpecManager):
    """Kernels of the environment that the server runs in, whatever else is installed for the user."""

    kernel_dirs = List(Unicode(), [])

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return the kernel as `visitor` runs it, without its history file, which visitors would share."""
        spec = super().get_kernel_spec(kernel_name)
        spec.argv = [sys.executable, "-m", "ewens_widgets.app.visitor", str(self.parent.megabytes)]
        quiet = ["--HistoryManager.enabled=False", "--IPKernelApp.log_level=CRITICAL"]
        spec.argv += ["-f", "{connection_file}", *quiet]
        return spec


class VisitorKernel(ServerKernelManager):
    """Talks to its process through sockets in a private folder.

    A port would be chosen here and bound by the kernel a moment later. When many visitors come at once,
    another kernel may have bound it by then.
    """

    def _transport_default(self) -> str:
        return "ipc" if self.parent.sockets else "tcp"

    def _ip_default(self) -> str:
        return f"{self.parent.sockets}/{uuid4().hex[:12]}" if self.parent.sockets else super()._ip_default()


class VisitorKernels(AsyncMappingKernelManager):
    """Starts no more kernels than visitors are wanted."""

    visitors = Int(10, config=True, help="Most visitors at a time.")

    sockets = Unicode("", config=True, help="Folder for the kernels' sockets; without it they use ports.")

    patience = Float(3.0, config=True, help="Seconds to wait for a place before a visitor is turned away.")

    absence = Float(60.0, config=True, help="Seconds after which a kernel without a page is stopped.")

    def __init__(self, **keywords: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(**keywords)
        self._arriving: set[str] = set()
        self._leaving: set[str] = set()
        self._visited: set[str] = set()
        self._sent: dict[str, float] = {}
        self._ends: dict[str, asyncio.Future[str]] = {}
        self.senders: dict[str, guard.Sender] = {}
        self.owners: dict[str, str] = {}
        self._set_off = time.time() - time.monotonic()

    def _present(self) -> set[str]:
        return (set(self.list_kernel_ids()) | self._arriving) - self._leaving

    @property
    def taken(self) -> int:
        """Number of places that are taken."""
        return len(self._present())

    @property
    def awaited(self) -> int:
        """Number of these whose page has not connected yet; a plain request for the page never does."""
        return len(self._present() - self._visited)

    async def start_kernel(self, **keywords: Any) -> str:  # noqa: ANN401 - passed on
        """Start a kernel if there is a place; otherwise the visitor gets the page for error 503.

        Only half of the places may be awaited, so that requests that never connect cannot take all of them.
        Who finds that half taken waits until one of these pages has connected or given up its place, and
        takes the place of one that was sent and did not connect: a browser would have.
        """
        # A page that is loaded again gives up its old place at about the same time as it asks for a new one.
        came = time.monotonic()
        while (is_full := self.taken >= self.visitors) or self.awaited >= max(1, (self.visitors + 1) // 2):
            if time.monotonic() > came + (self.patience if is_full else self.absence):
                raise HTTPError(503, f"it has room for {self.visitors}", reason="All places are taken")
            for late, sent in list(self._sent.items()):
                if time.monotonic() > sent + _GRACE:
                    IOLoop.current().spawn_callback(self.shutdown_kernel, late)
            await asyncio.sleep(_GLANCE)
            if (page := _page.get(None)) is not None and page.is_left:
                raise HTTPError(503, "the page was given up")
        kernel_id = self.new_kernel_id()
        _started.set(kernel_id)
        self._arriving.add(kernel_id)
        try:
            await super().start_kernel(kernel_id=kernel_id, **keywords)
        finally:
            self._arriving.discard(kernel_id)
        self._ends[kernel_id], self.senders[kernel_id] = asyncio.Future(), guard.Sender()
        return kernel_id

    def _handle_kernel_died(self, kernel_id: str) -> None:
        """End a visit whose process has ended; the original leaves its sockets, its files and its page."""
        IOLoop.current().spawn_callback(self._bury, kernel_id)

    async def _bury(self, kernel_id: str) -> None:
        if kernel_id in self._ends:
            code = await self._kernels[kernel_id].provisioner.poll()
            self._ends[kernel_id].set_result(_SHORT if code == SHORT_OF_MEMORY else _STOPPED)
        await self.shutdown_kernel(kernel_id, now=True)

    def note_sent(self, kernel_id: str | None) -> None:
        """Note that all of a page has been sent."""
        if kernel_id in self.senders:
            self._sent[kernel_id] = time.monotonic()

    def _forget(self, kernel_id: str) -> None:
        """Answer whoever waits for the end of a visit, and drop what was noted of it."""
        self._visited.discard(kernel_id)
        self._sent.pop(kernel_id, None)
        self.senders.pop(kernel_id, None)
        self.owners.pop(kernel_id, None)
        if (end := self._ends.pop(kernel_id, None)) is not None and not end.done():
            end.set_result("")

    async def goes_on(self, kernel_id: str, seconds: float) -> bool | str:
        """Wait until a visit ends, or for some time; return whether it goes on, or the reason of its end."""
        if (end := self._ends.get(kernel_id)) is not None:
            await asyncio.wait([end], timeout=seconds)
            if end.done():
                return end.result()
        return kernel_id in self and kernel_id not in self._leaving

    def connections(self, kernel_id: str) -> int:
        """Number of pages that are connected to a kernel."""
        return int(self._kernel_connections.get(kernel_id, 0))

    async def shutdown_kernel(self, kernel_id: str, now: bool = False, restart: bool = False) -> None:
        """Stop a kernel; its place is free at once. Page and server may both ask for it."""
        if kernel_id in self._leaving:
            return
        self._leaving.add(kernel_id)
        self._forget(kernel_id)
        try:
            await super().shutdown_kernel(kernel_id, now=now, restart=restart)
        finally:
            self._leaving.discard(kernel_id)

    def start_buffering(self, kernel_id: str, session_key: str, channels: dict[str, Any]) -> None:
        """Keep messages for a page that has lost its connection; of a kernel that is leaving, keep nothing.

        A page that is closed drops its connection and has its kernel stopped at the same time. The original
        keeps four sockets for good where the former is noticed while the latter is under way. It also keeps
        any number of messages; here, a visit with too many of them ends.
        """
        if kernel_id in self._leaving:
            for stream in channels.values():
                stream.close()
            return
        super().start_buffering(kernel_id, session_key, channels)
        kept, size = self._kernel_buffers[kernel_id]["buffer"], 0

        def keep(channel: str, parts: list[bytes]) -> None:
            nonlocal size
            size += sum(map(len, parts)) + guard.COST
            kept.append((channel, parts))
            if size > guard.MOST_UNREAD:
                IOLoop.current().spawn_callback(self.shutdown_kernel, kernel_id)

        for channel, stream in channels.items():
            stream.on_recv(partial(keep, channel))

    def start_watching_activity(self, kernel_id: str) -> None:
        """Note when anything happens in a kernel; with every picture there are some twenty messages.

        The original takes each of them apart and checks its signature, a third of all that the server does.
        """
        super().start_watching_activity(kernel_id)
        kernel = self._kernels[kernel_id]
        stream = kernel._activity_stream  # noqa: SLF001 - ours since it was watched
        stream.on_recv(lambda parts: self._record_activity(kernel_id, kernel, parts))

    def _record_activity(self, kernel_id: str, kernel: ServerKernelManager, parts: list[bytes]) -> None:
        header = parts.index(DELIM) + 2
        own, parent = (json.loads(part) for part in parts[header : header + 2])
        kind, cause = own.get("msg_type"), parent.get("msg_type")
        is_tracked = self.track_message_type(cause)
        if is_tracked or self.track_message_type(kind) or kernel.execution_state == "busy":
            self.last_kernel_activity = kernel.last_activity = datetime.now(UTC)
        if kind == "status":
            state = json.loads(parts[header + 3])["execution_state"]
            if state == "idle" and (sender := self.senders.get(kernel_id)) is not None:
                sender.is_answered(parent.get("msg_id", ""))
            if is_tracked:
                kernel.execution_state = state
            elif kernel.execution_state == "starting" and state != "starting":
                kernel.execution_state = "idle"

    def notify_connect(self, kernel_id: str) -> None:
        """Note that a page has connected to its kernel."""
        super().notify_connect(kernel_id)
        self._visited.add(kernel_id)
        self._sent.pop(kernel_id, None)

    async def cull_kernels(self) -> None:
        """Stop those that were idle for long; a clock that was set, or a computer that slept, ends none."""
        now, set_off = datetime.now(UTC), time.time() - time.monotonic()
        jump = timedelta(seconds=set_off - self._set_off)
        if abs(jump) > _CLOCK_JUMP:
            for kernel in self._kernels.values():
                kernel.last_activity = min(kernel.last_activity + jump, now)
        self._set_off = set_off
        await super().cull_kernels()

    async def cull_kernel_if_idle(self, kernel_id: str) -> None:
        """Stop a kernel without a page, besides those that were idle for long."""
        kernel = self.get_kernel(kernel_id)
        silent = (datetime.now(UTC) - kernel.last_activity).total_seconds()
        if silent > self.absence and not self._kernel_connections.get(kernel_id, 0):
            self.log.info("No page is connected to kernel %s", kernel_id)
            await self.shutdown_kernel(kernel_id)
        else:
            await super().cull_kernel_if_idle(kernel_id)
