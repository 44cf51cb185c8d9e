"""The command line as a whole: its commands, its help, and how errors are told."""

import argparse
import sys
from collections.abc import Sequence

from ewens_widgets._version import __version__
from ewens_widgets.app.arguments import StartError
from ewens_widgets.app.explorer import add_explorer
from ewens_widgets.app.lab import add_lab
from ewens_widgets.app.paper import add_paper

__all__ = ["main"]

_EXAMPLES = """\
examples:
  ewens-widgets lab                        open the tutorials in your browser
  ewens-widgets lab --directory course     work on copies in ./course
  ewens-widgets lab --no-browser --port 8899
                                           on a remote machine: print the address only
  ewens-widgets app                        the Explorer as a web page, no code to be seen
  ewens-widgets app --data leukemia --visitors 25
                                           for a class: other data, more visitors at a time
  ewens-widgets paper --output results     run the paper's experiments again

`ewens-widgets COMMAND --help` tells the options of a command.
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ewens-widgets",
        description="Affine-invariant Bayesian clustering with the Ewens process, live in Jupyter.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", required=True, metavar="COMMAND")
    for add_command in (add_lab, add_explorer, add_paper):
        add_command(commands.add_parser)
    return parser


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
        return int(options.run(options))
    except StartError as error:
        print(f"ewens-widgets: {error}", file=sys.stderr)
        return 1
