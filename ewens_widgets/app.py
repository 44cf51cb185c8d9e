"""Command line: ``ewens-widgets lab`` opens JupyterLab on the tutorials."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ewens_widgets._version import __version__

__all__ = ["copy_tutorials", "main", "shipped_tutorials"]

_FIRST_TUTORIAL = "01_quickstart.ipynb"

_EXAMPLES = """\
examples:
  ewens-widgets lab                        open the tutorials in your browser
  ewens-widgets lab --directory course     work on copies in ./course
  ewens-widgets lab --no-browser --port 8899
                                           on a remote machine: print the address only
"""


class _StartError(Exception):
    """Something is missing; the message says what, and what to do."""


def shipped_tutorials() -> Path:
    """Folder of the tutorials that came with this installation (or checkout).

    Returns
    -------
    The folder; never write into it.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "notebooks", package.parent / "notebooks"):
        if (folder / _FIRST_TUTORIAL).is_file():
            return folder
    raise _StartError(
        f"The tutorials are missing beside {package}: this installation is damaged.\n"
        "Reinstall it:  python -m pip install --force-reinstall --no-deps ewens-widgets"
    )


def copy_tutorials(source: Path, directory: Path) -> int:
    """Copy the tutorials into a folder of the user's, keeping every file that is there already.

    Parameters
    ----------
    source
        Folder with the shipped notebooks.
    directory
        Where to put the copies; made if need be. Nothing is copied if it is the source itself.

    Returns
    -------
    How many notebooks were copied.
    """
    directory.mkdir(parents=True, exist_ok=True)
    missing = [path for path in sorted(source.glob("*.ipynb")) if not (directory / path.name).exists()]
    for path in missing:
        # Not shutil.copy: a read-only installation must not make read-only copies.
        shutil.copyfile(path, directory / path.name)
    return len(missing)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a port; give a number from 0 (any free one) to 65535"
        )
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ewens-widgets",
        description="Affine-invariant Bayesian clustering with the Ewens process, live in Jupyter.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", required=True, metavar="COMMAND")

    lab = commands.add_parser(
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
        "--port", type=_port, default=8888, help="port on localhost (default: %(default)s, or the next free)"
    )
    lab.add_argument(
        "--no-browser", action="store_true", help="do not open a browser, print the address only"
    )
    return parser


def _lab_arguments(directory: Path, port: int, no_browser: bool) -> list[str]:
    arguments = [
        f"--ServerApp.root_dir={directory}",
        # Rather than the file's name alone: so the address that is printed leads to the tutorial too.
        f"--LabApp.default_url=/lab/tree/{_FIRST_TUTORIAL}",
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
    if find_spec("jupyterlab") is None:
        raise _StartError(
            'JupyterLab is not installed. Install it:  python -m pip install "ewens-widgets[lab]"'
        )
    directory: Path = options.directory.expanduser().resolve()
    try:
        copied = copy_tutorials(shipped_tutorials(), directory)
    except OSError as error:
        raise _StartError(
            f"Cannot write the tutorials to {directory}: {error.strerror}.\n"
            "Choose another folder:  ewens-widgets lab --directory DIR"
        ) from error
    if copied:
        print(f"Copied {copied} tutorial{'s' if copied > 1 else ''} to {directory}")
    print(f"Opening {directory / _FIRST_TUTORIAL} (stop with Ctrl-C)", flush=True)

    from jupyterlab.labapp import main as run_lab

    run_lab(_lab_arguments(directory, options.port, options.no_browser))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        What follows the program's name; taken from the command line if not given.

    Returns
    -------
    The exit code.
    """
    options = _parser().parse_args(arguments)
    try:
        return _open_lab(options)
    except _StartError as error:
        print(f"ewens-widgets: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
