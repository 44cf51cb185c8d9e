"""The objects at one stage of a proposal: what is chosen, how probable it was, and what is proposed.

Colours are those of the clusters, before or after the proposal. While sides are drawn for the objects of a
split they go from one colour to another by the probability of the side instead, with grey for even chances.
What a stage is about is strong and the rest is faint; rings and diamonds mark single objects and cores.
Ellipses hold half and nine tenths of each cluster, with the parameters that the iteration has drawn.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.explanation import Proposal
from ewens_widgets.analysis.plots.palette import GREY, SELECTED, ClusterColours, colour_of, rgb
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.moves.move import Scene
from ewens_widgets.views.base import Panel, assign, chip, note
from ewens_widgets.views.figures import FeaturePlane, make_figure, make_scatter
from ewens_widgets.views.scatter_marks import GLIDES, ROOMY, Dots, Outlines

__all__ = ["FIRST_SIDE", "SECOND_SIDE", "StageScatter", "blend"]

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

FIRST_SIDE, SECOND_SIDE = "#0072b2", "#e8700a"
_FADED = 0.12


class StageScatter(Panel):
    """Scatter of two features or principal components.

    Parameters
    ----------
    dataset
        The objects.
    posterior
        What is sampled; it knows the shapes of clusters.
    post
        Takes commands to the event loop.
    """

    title = "The objects"
    css_class = "ew-stage-scatter"
    description = "Scatter plot of the objects at this stage"
    about = (
        "Every dot is an object, every colour a cluster. What the stage is about is strong, the rest is "
        "faint; rings and diamonds mark the objects that the text speaks of. Ellipses hold 50 and 90 % of a "
        "cluster."
    )

    def __init__(
        self, dataset: Dataset, posterior: Posterior, post: "Callable[[Callable[[], None]], None]"
    ) -> None:
        self._posterior = posterior
        self._colours = ClusterColours()
        self._stage: Scene | None = None
        self._proposal: Proposal | None = None
        self._numbers: dict[str, NDArray[np.intp]] = {}
        self._ringed = self._cores = np.empty(0, dtype=np.intp)
        self.plane = FeaturePlane(post, self._place, ROOMY)
        scales = self.plane.scales
        self.dots = Dots(scales, 44)
        self.points = self.dots.circles
        self.rings = make_scatter(scales, default_size=150, fill=False, colors=[SELECTED], stroke_width=1.8)
        self.cores = make_scatter(
            scales, default_size=190, marker="diamond", fill=False, colors=[SELECTED], stroke_width=2.6
        )
        self.outlines = Outlines(scales)
        self.figure = make_figure(
            "ew-scatter",
            400,
            (8, 8, 38, 48),
            self.plane.resize,
            marks=[self.outlines.mark, *self.dots.marks, self.rings, self.cores],
            axes=self.plane.axes,
        )
        self.figure.add_class(GLIDES)
        self.legend = note("ew-legend")
        super().__init__((self.figure, self.legend), self.plane.choosers)
        self.plane.offer(dataset)

    def _place(self, x: FloatArray, y: FloatArray) -> None:
        self.dots.place(x, y)
        self.outlines.place(self._posterior, x, y, self.plane.weights)
        self._point_at()
        self._outline()

    def _outline(self) -> None:
        """Draw the ellipses of the clusters that the colours show; sides are no clusters yet."""
        if self._proposal is None or self._stage is None or self._stage.colours == "sides":
            self.outlines.hide()
            return
        drawn = self._proposal.parameters
        numbers = self._numbers[self._stage.colours]
        self.outlines.show(numbers, drawn.theta, drawn.nu, drawn.sigma)

    def _point_at(self) -> None:
        x, y = self.points.x, self.points.y
        assign(self.rings, x=x[self._ringed], y=y[self._ringed])
        assign(self.cores, x=x[self._cores], y=y[self._cores])

    @property
    def colours(self) -> NDArray[np.intp]:
        """Number of each object's colour in the partition before the proposal."""
        return self._numbers["before"]

    def show(self, proposal: Proposal, stage: Scene) -> None:
        """Show a stage of a proposal."""
        if proposal is not self._proposal:
            self._proposal = proposal
            self._numbers["before"] = self._colours.assign(proposal.labels)
            proposed = proposal.labels if proposal.proposed is None else proposal.proposed
            self._numbers["after"] = self._colours.assign(proposed)
        # Sides have no number: their colours say how likely each is.
        numbers = None if stage.colours == "sides" else self._numbers[stage.colours]
        self.dots.show(self._colours_of(stage), numbers, opacities=self._opacities(stage))
        self._ringed = np.asarray(stage.ringed, dtype=np.intp)
        self._cores = np.asarray(stage.cores, dtype=np.intp)
        self._stage = stage
        self._point_at()
        self._outline()
        assign(self.legend, value=self._legend(stage))

    def _colours_of(self, stage: Scene) -> list[str]:
        if stage.colours == "sides" and stage.shares is not None:
            return [GREY if np.isnan(share) else blend(share) for share in stage.shares.tolist()]
        return [colour_of(number) for number in self._numbers[stage.colours].tolist()]

    def _opacities(self, stage: Scene) -> NDArray[np.float64]:
        n_objects = self._numbers["before"].size
        opacities = np.ones(n_objects)
        if stage.focus.size:
            opacities[:] = _FADED
            opacities[stage.focus] = 1.0
        elif stage.shares is not None and stage.colours != "sides":
            highest = float(np.nanmax(stage.shares)) or 1.0
            opacities = _FADED + (1.0 - _FADED) * np.nan_to_num(stage.shares) / highest
        if stage.key in {"choice", "target"} and self._is_single(stage):
            opacities[stage.ringed[:1]] = 1.0
        return np.round(opacities, 3)

    def _is_single(self, stage: Scene) -> bool:
        return (
            self._proposal is not None
            and [choice.objects.size for choice in self._proposal.choices[:1]] == [1]
            and stage.ringed.size > 0
        )

    @staticmethod
    def _legend(stage: Scene) -> str:
        if stage.colours == "sides":
            return (
                f"{chip(FIRST_SIDE, 'sure to join the first core')}{chip(GREY, 'even chances')}"
                f"{chip(SECOND_SIDE, 'sure to join the second')}"
            )
        parts = [
            "coloured by cluster" if stage.colours == "before" else "coloured as proposed",
            "grey: alone",
        ]
        if stage.key == "decision":
            parts[0] = "coloured as decided"
        if stage.shares is not None:
            parts.append("the stronger, the more probable to be chosen")
        if stage.cores:
            parts.append("diamonds: the cores")
        if stage.ringed.size:
            rings = {"choice": "chosen", "target": "concerned", "jump": "jumped"}
            parts.append(f"ringed: {rings.get(stage.key, 'objects that move')}")
        return " · ".join(parts)

    def paint(self, axes: "Axes") -> None:
        """Draw the scatter with matplotlib."""
        x, y = np.asarray(self.points.x), np.asarray(self.points.y)
        self.outlines.paint(axes)
        self.dots.paint(axes, 20)
        axes.scatter(
            x[self._ringed], y[self._ringed], s=70, facecolors="none", edgecolors=SELECTED, linewidths=1.2
        )
        axes.scatter(
            x[self._cores],
            y[self._cores],
            s=90,
            marker="D",
            facecolors="none",
            edgecolors=SELECTED,
            linewidths=1.8,
        )
        self.plane.paint_names(axes)


def blend(share: float) -> str:
    """Colour between those of the two sides, grey halfway."""
    end, weight = (FIRST_SIDE, 1.0 - 2.0 * share) if share < 0.5 else (SECOND_SIDE, 2.0 * share - 1.0)
    parts = zip(rgb(GREY), rgb(end), strict=True)
    return "#" + "".join(f"{round((1.0 - weight) * one + weight * two):02x}" for one, two in parts)
