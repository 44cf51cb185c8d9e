"""Compile the sampler once, so that nobody waits for it later: ``python -m ewens_widgets.app.precompile``.

The machine code is kept on disk, beside the sources. With the name of a data set, that is tried too.
"""

import sys

from ewens_widgets.app.web_app import UNKNOWN_DATA

__all__ = ["precompile"]


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
    for moves in ("default", "paper-2"):
        explorer = ew.Explorer(LOADERS[data](), moves=moves)
        explorer.player.step_sync(2)
        explorer.player.current_frame()
        explorer.close()
    return 0


if __name__ == "__main__":
    sys.exit(precompile(*sys.argv[1:]))
