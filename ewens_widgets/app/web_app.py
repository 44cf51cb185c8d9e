"""``ewens-widgets app``: the Explorer as a web page, without a line of code."""

import argparse
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from ewens_widgets.app.command_line import (
    UNKNOWN_DATA,
    StartError,
    need_package,
    port,
    positive_integer,
    positive_number,
)

__all__ = ["add_explorer"]

_DESCRIPTION = """\
Serve the Explorer as a web page on this computer, with Voilà. Visitors see no code and cannot run any.
Each visitor has a separate process. It ends when the page is closed, when its connection is lost for a
minute, or when nothing has happened on it for a while. Files that visitors upload stay in the memory of their
process.

The page is served on localhost only. To offer it to others, put a web server in front of it that asks for
passwords; to reach it from your own computer:  ssh -L 8866:localhost:8866 MACHINE
"""

# The name of a socket has at most 107 bytes; 16 of them follow the folder.
_LONGEST_FOLDER = 107 - 16
# Many processes on few processors: threads of linear algebra would only get in each other's way.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def add_explorer(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    app = add_parser(
        "app",
        help="serve the Explorer as a web page",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    app.add_argument(
        "--port", type=port, default=8866, help="port on localhost (default: %(default)s, or the next free)"
    )
    app.add_argument(
        "--no-browser", action="store_true", help="do not open a browser, print the address only"
    )
    app.add_argument(
        "--visitors",
        type=positive_integer,
        default=10,
        metavar="N",
        help="most visitors at a time; others are asked to wait (default: %(default)s)",
    )
    app.add_argument(
        "--idle",
        type=positive_number,
        default=20.0,
        metavar="MINUTES",
        help="end a visit on which nothing has happened for so long (default: %(default)g)",
    )
    app.add_argument(
        "--data", default="unit square", metavar="NAME", help="first data set (default: %(default)s)"
    )
    app.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name besides localhost by which the page is reached, behind a web server; may be repeated",
    )
    app.add_argument(
        "--memory",
        type=positive_integer,
        default=4000,
        metavar="MB",
        help="most address space of a visitor's process, on Linux (default: %(default)s)",
    )
    app.add_argument("--theme", choices=("light", "dark"), default="light", help="default: %(default)s")
    app.set_defaults(run=_serve)


def _prepare(data: str) -> None:
    """Compile the sampler and try the Explorer, in another process so that the server stays small."""
    command = [sys.executable, "-m", "ewens_widgets.app", "compile", "--data", data]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - this interpreter
    lines = result.stderr.strip().splitlines() or [f"exit code {result.returncode}"]
    if result.returncode == UNKNOWN_DATA:
        raise StartError(lines[-1])
    if result.returncode:
        raise StartError(
            f"The Explorer does not run in this environment: {lines[-1]}\n"
            f"To see all of it:  {shlex.join(command)}"
        )


def _serve(options: argparse.Namespace) -> int:
    need_package("voila", "Voilà")
    print("Preparing the sampler (it is compiled the first time, which takes a minute or two)", flush=True)
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    _prepare(options.data)

    from ewens_widgets.app.server import ExplorerServer, server_settings, write_page

    settings = server_settings(visitors=options.visitors, idle_minutes=options.idle, theme=options.theme)
    with TemporaryDirectory(prefix="ewens-") as folder, TemporaryDirectory(prefix="ewens-") as sockets:
        if hasattr(socket, "AF_UNIX") and len(os.fsencode(sockets)) <= _LONGEST_FOLDER:
            settings.VisitorKernels.sockets = sockets
        server = ExplorerServer(
            config=settings,
            hosts=options.host,
            megabytes=options.memory,
            config_file_paths=[],
            notebook_path=str(write_page(Path(folder), options.data)),
            port=options.port,
            open_browser=not options.no_browser,
            log_level="ERROR",
        )
        server.initialize([])
        server.start()
    return 0
