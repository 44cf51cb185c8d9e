"""Partitions one after the other, as an animation that plays without a kernel.

It is a GIF inside the output of a cell, so it moves wherever the notebook is shown, and on slides. All
pictures have the same axes, and clusters keep their colours, so that only what changes is seen to change.
"""

import base64
import os
from collections.abc import Iterable, Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.analysis.plots.palette import ClusterColours, colour_of, new_figure, styled
from ewens_widgets.analysis.plots.scatter_plot import two_features
from ewens_widgets.datasets import Dataset
from ewens_widgets.partition import check_labels

if TYPE_CHECKING:
    from PIL import Image

MOST_PICTURES = 200


class Animation:
    """Pictures that play in a notebook without a kernel, as a GIF; `animate_partitions` makes it."""

    def __init__(self, pictures: Sequence["Image.Image"], seconds: float, alt: str) -> None:
        self._still, gif = BytesIO(), BytesIO()
        pictures[-1].save(self._still, "png", optimize=True)
        # The last picture stays for a while.
        durations = [*([round(1000 * seconds)] * (len(pictures) - 1)), 3000]
        rest: dict[str, Any] = {"append_images": pictures[1:], "save_all": True, "loop": 0, "optimize": True}
        pictures[0].save(gif, "gif", duration=durations, **rest)
        self.content = gif.getvalue()
        self.alt = alt

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the GIF."""
        Path(path).write_bytes(self.content)

    def _repr_html_(self) -> str:
        shown = base64.b64encode(self.content).decode()
        return f'<img alt="{escape(self.alt)}" src="data:image/gif;base64,{shown}">'

    def _repr_png_(self) -> bytes:
        """The last picture, where no HTML is shown."""
        return self._still.getvalue()

    def __repr__(self) -> str:
        return f"Animation({self.alt!r})"


@styled
def animate_partitions(
    X: ArrayLike | Dataset,
    partitions: Iterable[ArrayLike],
    *,
    features: Sequence[int | str] | str = "auto",
    equal: bool = False,
    seconds: float = 0.4,
    alt: str = "Partitions of the objects, one after the other",
) -> Animation:
    """Show partitions of the same objects one after the other, such as the draws of a chain.

    A cluster keeps its colour from one picture to the next; singletons are grey. Above each are its place,
    from 1, and its number of clusters.

    Parameters
    ----------
    X, features, equal
        As for `plot_scatter`.
    partitions
        The partitions, such as ``trace.labels[:30]``.
    seconds
        How long each is shown.
    alt
        What a screen reader says.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> trace = ew.Sampler([[0.0], [1.0], [5.0], [6.0]], model="I", seed=0).sample(5, progress=False)
    >>> movie = ew.plots.animate_partitions([[0.0], [1.0], [5.0], [6.0]], trace.labels)
    >>> movie.content[:3]
    b'GIF'
    """
    from PIL import Image

    (points, _), names = two_features(X, features)
    rows = [check_labels(labels, len(points)) for labels in partitions]
    if not rows:
        raise ValueError("there is nothing to animate: the list of partitions is empty.")
    if len(rows) > MOST_PICTURES:
        raise ValueError(
            f"an animation has at most {MOST_PICTURES} pictures; got {len(rows)} partitions. Take some of "
            "them, such as trace.labels[:40] or trace.labels[::10]."
        )
    figure = new_figure(4.2, 3.4)
    axes, known = figure.subplots(), ClusterColours()
    dots = axes.scatter(points[:, 0], points[:, 1], s=24, linewidths=0)
    axes.set(xlabel=names[0], ylabel=names[1])
    axes.set_aspect("equal" if equal else "auto", adjustable="datalim")
    frames = []
    for place, row in enumerate(rows, start=1):
        dots.set_facecolor([colour_of(number) for number in known.assign(row).tolist()])
        axes.set_title(f"{place}: K = {row.max() + 1}")
        figure.savefig(drawn := BytesIO(), format="png", dpi=100)
        frames.append(Image.open(drawn).convert("RGB"))
    # With one palette for all, a picture is stored as what differs from the one before it.
    together = Image.fromarray(np.concatenate([np.asarray(frame) for frame in frames]))
    palette = together.quantize(64, method=Image.Quantize.MAXCOVERAGE)
    pictures = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    return Animation(pictures, seconds, alt)
