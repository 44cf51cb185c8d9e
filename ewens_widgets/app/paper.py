"""``ewens-widgets paper``: the paper's experiments."""

import argparse
from collections.abc import Callable
from pathlib import Path

from ewens_widgets.app.arguments import StartError

__all__ = ["add_paper"]


def add_paper(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    paper = add_parser(
        "paper",
        help="run the paper's experiments",
        description="Run the paper's experiments with its algorithm and with ours, beside k-means and a "
        "Gaussian mixture, and write a Markdown table and figures.",
    )
    paper.add_argument(
        "--output",
        type=Path,
        default=Path("paper-results"),
        metavar="DIR",
        help="folder (default: %(default)s)",
    )
    paper.add_argument("--fast", action="store_true", help="very short runs, to see that it works")
    paper.add_argument("--only", nargs="+", metavar="NAME", help="experiments to run, e.g. wine-3 roads-3")
    paper.add_argument("--roads", type=Path, metavar="FILE", help="the UCI file 3D_spatial_network.txt")
    paper.add_argument("--jobs", type=int, metavar="N", help="processes (default: one a processor)")
    paper.set_defaults(run=_run_paper)


def _run_paper(options: argparse.Namespace) -> int:
    from ewens_widgets.paper import run_paper

    try:
        page = run_paper(
            options.output, fast=options.fast, only=options.only, roads=options.roads, jobs=options.jobs
        )
    except (ImportError, OSError, ValueError) as error:
        raise StartError(str(error)) from error
    print(f"Wrote {page}")
    return 0
