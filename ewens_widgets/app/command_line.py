"""The command line: ``ewens-widgets lab`` (JupyterLab on the tutorials), ``paper``, ``compile``, and more.

``compile`` makes all machine code beforehand, for example for a container image; ``lab`` starts this in the
background. ``app`` serves the Explorer as a web page (`server`).
"""

import argparse
import contextlib
import itertools
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from ewens_widgets._version import __version__

UNKNOWN_DATA = 3  # exit code

_EXAMPLES = """\
examples:
  ewens-widgets lab                        open the tutorials in your browser
  ewens-widgets lab --directory course     work on copies in ./course
  ewens-widgets lab --no-browser --port 8899
                                           on a remote machine: print the address only
  ewens-widgets app                        the Explorer as a web page without code
  ewens-widgets app --data leukemia --visitors 25
                                           for a class: other data, more visitors at once
  ewens-widgets paper --output results     run the paper's experiments again
  ewens-widgets compile                    make all machine code now, in an image for instance

`ewens-widgets COMMAND --help` lists the options of a command.
"""

_APP = """\
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ewens-widgets",
        description="Affine-invariant Bayesian clustering with the Ewens process, live in Jupyter.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", required=True, metavar="COMMAND")
    for add_command in (add_lab, add_explorer, add_paper, add_compile):
        add_command(commands.add_parser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, given by `arguments` or on the command line, and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except StartError as error:
        print(f"ewens-widgets: {error}", file=sys.stderr)
        return 1


def add_lab(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    lab = add_parser(
        "lab",
        help="open JupyterLab on the tutorials",
        description="Open JupyterLab on the tutorials. They are first copied to a folder of yours, where you "
        "can change them; files that are already there are kept. Stop with Ctrl-C.",
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
    start_compiling()

    from jupyterlab.labapp import main as run_lab

    # By default Jupyter does not run as root, the usual user of containers and classroom machines. The server
    # still listens on localhost only and asks for its token.
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    run_lab(
        [
            f"--ServerApp.root_dir={directory}",
            # Not only as the file to open: the printed address then leads to the tutorial too.
            f"--LabApp.default_url=/lab/tree/{FIRST_TUTORIAL}",
            f"--ServerApp.port={options.port}",
            *(["--no-browser"] if options.no_browser else []),
            *(["--allow-root"] if is_root else []),
        ]
    )
    return 0


def add_explorer(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    app = add_parser(
        "app",
        help="serve the Explorer as a web page",
        description=_APP,
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


def add_paper(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    paper = add_parser(
        "paper",
        help="run the paper's experiments",
        description="Run the paper's experiments with its own settings, as printed and corrected, beside our "
        "default and other methods; write Markdown tables, the numbers and figures.",
    )
    paper.add_argument(
        "--output",
        type=Path,
        default=Path("paper-results"),
        metavar="DIR",
        help="folder (default: %(default)s)",
    )
    paper.add_argument("--fast", action="store_true", help="very short runs, to test the command")
    paper.add_argument("--only", nargs="+", metavar="NAME", help="experiments to run, e.g. wine-3 roads-3")
    paper.add_argument("--roads", type=Path, metavar="FILE", help="the UCI file 3D_spatial_network.txt")
    paper.add_argument("--jobs", type=int, metavar="N", help="processes (default: one per processor)")
    paper.set_defaults(run=_run_paper)


def _run_paper(options: argparse.Namespace) -> int:
    from ewens_widgets.paper import run_paper

    if options.roads is not None:
        os.environ["EWENS_WIDGETS_ROADS"] = str(options.roads.resolve())
    try:
        page = run_paper(options.output, fast=options.fast, only=options.only, jobs=options.jobs)
    except (ImportError, OSError, ValueError) as error:
        raise StartError(str(error)) from error
    print(f"Wrote {page}")
    return 0


# Columns, shapes and moves with machine code of their own, the most common ones first.
_CODES = tuple(
    itertools.product((["number"], ["number", "category"]), ("default", "paper-2"), ("common", "own"))
)


def add_compile(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    command = add_parser(
        "compile",
        help="compile the sampler now, so that later starts are fast",
        description="Compile the sampler, keep its machine code on disk next to the sources, and try the "
        "Explorer. Without this, chains start in interpreted mode until they are compiled.",
    )
    command.add_argument(
        "--data", default="unit square", metavar="NAME", help="data set to try (default: %(default)s)"
    )
    command.set_defaults(run=lambda options: precompile(options.data))


def start_compiling() -> None:
    """Compile the chains in another process, in the background."""
    from ewens_widgets.sampling.cold_start import run_aside

    with contextlib.suppress(OSError):  # Then the first chain compiles them.
        run_aside([sys.executable, "-c", f"from {__name__} import compile_chains; compile_chains()"])


def compile_chains() -> None:
    """Wait until the chains are compiled."""
    import numpy as np

    from ewens_widgets.datasets import Dataset
    from ewens_widgets.sampling.sampler import Sampler

    rows = np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]])
    for kinds, moves, shapes in _CODES:
        Sampler(Dataset(rows[:, : len(kinds)], kinds=kinds), moves=moves, shapes=shapes).compile(
            progress=False
        )


def precompile(data: str) -> int:
    """Run every compiled function that the Explorer may need for data of this name; return the exit code."""
    import ewens_widgets as ew
    from ewens_widgets.datasets import LOADERS

    if data not in LOADERS:
        known = ", ".join(repr(name) for name in LOADERS)
        print(f"There is no data set {data!r}. Choose one of {known}", file=sys.stderr)
        return UNKNOWN_DATA
    compile_chains()
    for moves in ("default", "paper-2"):
        explorer = ew.Explorer(LOADERS[data](), moves=moves)
        explorer.player.step_sync(2)
        explorer.player.current_frame()
        explorer.close()
    return 0


FIRST_TUTORIAL = "01_quickstart.ipynb"


def shipped_tutorials() -> Path:
    """Folder of the tutorials that came with this installation or checkout; never write into it."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "notebooks", package.parent / "notebooks"):
        if (folder / FIRST_TUTORIAL).is_file():
            return folder
    raise StartError(
        f"The tutorials are missing beside {package}: this installation is damaged.\n"
        "Reinstall it:  python -m pip install --force-reinstall --no-deps ewens-widgets"
    )


def copy_tutorials(source: Path, directory: Path) -> int:
    """Copy the tutorials, keeping every file that is there already; return how many were copied."""
    directory.mkdir(parents=True, exist_ok=True)
    missing = [path for path in sorted(source.glob("*.ipynb")) if not (directory / path.name).exists()]
    for path in missing:
        # Not shutil.copy: a read-only installation must not make read-only copies.
        shutil.copyfile(path, directory / path.name)
    return len(missing)


class StartError(Exception):
    """A command cannot run; the message says why, and what to do."""


def need_package(name: str, title: str) -> None:
    """Raise an error with the installation command if a package of the extra `lab` is missing."""
    if find_spec(name) is None:
        raise StartError(f'{title} is not installed. Install it:  python -m pip install "ewens-widgets[lab]"')


def port(text: str) -> int:
    """Read a port number."""
    if not text.isdecimal() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a port; give a number from 0 (any free one) to 65535"
        )
    return int(text)


def positive_integer(text: str) -> int:
    """Read a whole number above 0."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def positive_number(text: str) -> float:
    """Read a number above 0."""
    with contextlib.suppress(ValueError):
        if 0.0 < (number := float(text)) < float("inf"):
            return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
