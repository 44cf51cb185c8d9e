"""The paper's chapter: its two moves, its road data, and its experiments as code.

`experiments` is the table of what Huang & Yang ran, and `run` runs a row of it with the printed settings.
``run_paper("results")``, or ``ewens-widgets paper`` on the command line, runs all of it beside our default
schedule, and writes a Markdown page. Samplers load the moves from here, so the experiments
are imported only when they are asked for.
"""

from importlib import import_module
from typing import Any

__all__ = ["Experiment", "Runs", "experiments", "run", "run_paper"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever is public here
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.published"), name)
