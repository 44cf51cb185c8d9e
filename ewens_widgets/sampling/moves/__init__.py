"""The moves that change a partition, each in its own file with its mathematics."""

from ewens_widgets.sampling.moves.gibbs import Gibbs
from ewens_widgets.sampling.moves.informed import InformedSplitMerge
from ewens_widgets.sampling.moves.reassign import Reassign
from ewens_widgets.sampling.moves.split_merge import SplitMerge

__all__ = ["Gibbs", "InformedSplitMerge", "Reassign", "SplitMerge"]
