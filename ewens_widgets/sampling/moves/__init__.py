"""The moves that change a partition: a file each, and a line of this register.

A move of one's own is a file too, anywhere: a subclass of `Move` (whose module says what it needs), passed to
`register`. Samplers, files, the Explorer and the MoveInspector then know it by its name. The paper's chapter
registers its two moves in this way.
"""

from importlib import import_module
from typing import Any

from ewens_widgets.sampling.moves.gibbs import Gibbs
from ewens_widgets.sampling.moves.informed import InformedSplitMerge
from ewens_widgets.sampling.moves.move import MOVES, Move, register

__all__ = ["MOVES", "Gibbs", "InformedSplitMerge", "Move", "Reassign", "SplitMerge", "register"]

# Modules that register moves of their own, which may be imported from here too.
CHAPTERS = ("ewens_widgets.paper.moves",)

register(Gibbs)
register(InformedSplitMerge)
for _name in CHAPTERS:
    import_module(_name)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a move
    for kind in MOVES.values():
        if kind.__name__ == name and kind.__module__.startswith(CHAPTERS):
            return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
