"""What the views of several chains share."""

from ewens_widgets.analysis.plots.palette import CLUSTER_COLOURS
from ewens_widgets.playback import Frame
from ewens_widgets.playback.ensemble import ChainsRecord
from ewens_widgets.views.base import View
from ewens_widgets.views.stage import Stage

__all__ = ["ChainsStage", "ChainsSubview", "chain_colour", "legend_of"]


class ChainsStage(Stage):
    """The records of all chains, besides what views share anyway.

    Parameters
    ----------
    record
        The records.
    """

    def __init__(self, record: ChainsRecord) -> None:
        super().__init__()
        self.record = record


class ChainsSubview(View):
    """A picture of several chains; it reads their records up to the iteration that a frame shows."""

    stage: ChainsStage

    @property
    def record(self) -> ChainsRecord:
        """The records of all chains."""
        return self.stage.record

    def length(self, frame: Frame) -> int:
        """Draws of each chain up to the iteration on display."""
        return len(frame.summary)


def chain_colour(place: int) -> str:
    """Colour of a chain."""
    return CLUSTER_COLOURS[place % len(CLUSTER_COLOURS)]


def legend_of(names: tuple[str, ...]) -> str:
    """Legend of the chains."""
    swatches = [
        f'<span class="ew-swatch ew-line" style="background:{chain_colour(place)}"></span>'
        for place in range(len(names))
    ]
    chips = zip(swatches, names, strict=True)
    return "".join(f'<span class="ew-chip">{swatch}{name}</span>' for swatch, name in chips)
