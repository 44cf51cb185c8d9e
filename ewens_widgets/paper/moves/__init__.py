"""The paper's two moves, which enter through `register` like anybody's, and the loop compiled for them."""

from ewens_widgets.paper.moves.reassign import Reassign
from ewens_widgets.paper.moves.split_merge import SplitMerge
from ewens_widgets.sampling.moves.move import register

register(Reassign)
register(SplitMerge)
