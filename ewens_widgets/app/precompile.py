"""Compile the sampler once, so that nobody waits for it later: ``python -m ewens_widgets.app.precompile``.

The machine code is kept on disk, beside the sources. With the name of a data set, that is tried too.
`start_compiling` does the same in the background, but for the trial.
"""

import contextlib
import sys
from typing import Any

from ewens_widgets.app.web_app import UNKNOWN_DATA
from ewens_widgets.sampling.compiled import run_aside

__all__ = ["compile_chains", "precompile", "start_compiling"]

# Settings that are compiled apart, those that are wanted first in front.
_KINDS: tuple[dict[str, Any], ...] = ({}, {"shapes": "own"}, {"moves": "paper-2"})


def start_compiling() -> None:
    """Have a process of its own compile the chains, in the background."""
    with contextlib.suppress(OSError):  # Then who needs them will compile them.
        run_aside([sys.executable, "-c", f"from {__name__} import compile_chains; compile_chains()"])


def compile_chains() -> None:
    """Wait until the chains are compiled."""
    from ewens_widgets.sampling.sampler import Sampler

    for settings in _KINDS:
        Sampler([[0.0], [1.0], [3.0]], **settings).compile(progress=False)


def precompile(data: str = "unit square") -> int:
    """Run every compiled function that the Explorer may need.

    Parameters
    ----------
    data
        Name of a data set, as the Explorer's own list has it.

    Returns
    -------
    The exit code.
    """
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


if __name__ == "__main__":
    sys.exit(precompile(*sys.argv[1:]))
