"""The paper's chapter: its two moves, its road data, and its experiments as code.

The experiments are run again with the paper's algorithm and with ours, beside two standard methods:
``run_paper("results")``, or ``ewens-widgets paper`` on the command line, writes a Markdown table and figures.
Samplers load the moves from here, so the experiments are imported only when they are asked for.
"""

from importlib import import_module
from typing import Any

__all__ = ["EXPERIMENTS", "Experiment", "Settings", "run_paper"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever is public here
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(
        import_module(f"{__name__}.{'reproduction' if name == 'run_paper' else 'experiments'}"), name
    )
