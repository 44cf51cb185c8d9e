"""The moves that change a partition: a file each, and a line of this register.

A move of one's own is a file too, anywhere: a subclass of `Move` (whose module says what it needs), passed to
`register`. Samplers, files, the Explorer and the MoveInspector then know it by its name.
"""

from ewens_widgets.sampling.moves.gibbs import Gibbs
from ewens_widgets.sampling.moves.informed import InformedSplitMerge
from ewens_widgets.sampling.moves.move import MOVES, Move, register
from ewens_widgets.sampling.moves.reassign import Reassign
from ewens_widgets.sampling.moves.split_merge import SplitMerge

__all__ = ["MOVES", "Gibbs", "InformedSplitMerge", "Move", "Reassign", "SplitMerge", "register"]

register(Reassign)
register(SplitMerge)
register(Gibbs)
register(InformedSplitMerge)
