"""Voilà with the Explorer on one page: its settings, its templates, and the address it listens on."""

import errno
import json
from pathlib import Path
from socket import socket
from typing import Any

import nbformat
from jupyter_server.base.handlers import JupyterHandler
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets
from traitlets.config import Config
from voila.app import Voila

from ewens_widgets.app.arguments import StartError
from ewens_widgets.app.visitors import OwnKernelSpecs, VisitorKernels

__all__ = ["ExplorerServer", "server_settings", "write_page"]

_TEMPLATES = Path(__file__).parent / "page"
_TITLE = "ewens_widgets Explorer"
_PORTS = 50
_PATIENCE = 180  # seconds

# What the page needs of what may be installed for JupyterLab; the rest would only be loaded, and fail.
_EXTENSIONS = [
    "@jupyter-widgets/jupyterlab-manager",
    "@voila-dashboards/widgets-manager8",
    "anywidget",
    "bqplot",
    "bqscales",
]

# In a box, so that no static picture of the explorer is drawn for a page that shows the live one.
_CODE = """\
import ewens_widgets as ew
from ewens_widgets.views.explorer.data_panel import LOADERS
from ipywidgets import VBox

VBox((ew.Explorer(LOADERS[{data!r}]()),))"""


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
    seconds = max(1, round(60 * idle_minutes))
    settings.VisitorKernels = Config(
        {
            "visitors": visitors,
            "cull_idle_timeout": seconds,
            "cull_interval": min(15, seconds),
            # A page whose chain rests sends nothing; that it is open somewhere does not earn it its place.
            "cull_connected": True,
        }
    )
    return settings


class VisitHandler(JupyterHandler):
    """Tells a page whether there is still a kernel behind it."""

    def get(self, kernel_id: str) -> None:
        """Answer with true or false; asking is no activity of the visitor."""
        # Sets a cookie, without which the page could not end its visit when it is closed.
        self.xsrf_token  # noqa: B018 - for its effect
        self.finish(json.dumps(kernel_id in self.kernel_manager))


class ExplorerServer(Voila):
    """Voilà with our page in place of its own template."""

    def setup_template_dirs(self) -> None:
        """Look for templates among ours first."""
        super().setup_template_dirs()
        self.template_paths.insert(0, str(_TEMPLATES))

    def init_handlers(self) -> list[tuple[Any, ...]]:
        """Answer the pages that ask whether their visit goes on, before all else."""
        return [(r"/visits/([\w-]+)", VisitHandler), *super().init_handlers()]

    def listen(self) -> None:
        """Listen, say where, and serve until stopped."""
        server = HTTPServer(self.app)
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
