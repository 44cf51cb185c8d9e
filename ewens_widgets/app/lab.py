"""``ewens-widgets lab``: JupyterLab on the tutorials."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from ewens_widgets._version import __version__
from ewens_widgets.app.arguments import StartError, need_package, port
from ewens_widgets.app.tutorials import FIRST_TUTORIAL, copy_tutorials, shipped_tutorials

__all__ = ["add_lab"]


def add_lab(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    lab = add_parser(
        "lab",
        help="open JupyterLab on the tutorials",
        description="Open JupyterLab on the tutorials. They are copied to a folder of yours first, so that "
        "you may change them; files that are there already are kept. Stop with Ctrl-C.",
    )
    lab.add_argument(
        "--directory",
        type=Path,
        default=Path.home() / f"ewens-widgets-tutorials-{__version__}",
        metavar="DIR",
        help="folder to copy the tutorials to (default: %(default)s)",
    )
    lab.add_argument(
        "--port", type=port, default=8888, help="port on localhost (default: %(default)s, or the next free)"
    )
    lab.add_argument(
        "--no-browser", action="store_true", help="do not open a browser, print the address only"
    )
    lab.set_defaults(run=_open_lab)


def _lab_arguments(directory: Path, port: int, no_browser: bool) -> list[str]:
    arguments = [
        f"--ServerApp.root_dir={directory}",
        # Rather than the file's name alone: so the address that is printed leads to the tutorial too.
        f"--LabApp.default_url=/lab/tree/{FIRST_TUTORIAL}",
        f"--ServerApp.port={port}",
    ]
    if no_browser:
        arguments.append("--no-browser")
    # Jupyter refuses to run as root, which is what containers and classroom machines often have; the server
    # listens on localhost and asks for its token all the same.
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--allow-root")
    return arguments


def _open_lab(options: argparse.Namespace) -> int:
    need_package("jupyterlab", "JupyterLab")
    directory: Path = options.directory.expanduser().resolve()
    try:
        copied = copy_tutorials(shipped_tutorials(), directory)
    except OSError as error:
        raise StartError(
            f"Cannot write the tutorials to {directory}: {error.strerror}.\n"
            "Choose another folder:  ewens-widgets lab --directory DIR"
        ) from error
    if copied:
        print(f"Copied {copied} tutorial{'s' if copied > 1 else ''} to {directory}")
    print(f"Opening {directory / FIRST_TUTORIAL} (stop with Ctrl-C)", flush=True)

    from jupyterlab.labapp import main as run_lab

    run_lab(_lab_arguments(directory, options.port, options.no_browser))
    return 0
