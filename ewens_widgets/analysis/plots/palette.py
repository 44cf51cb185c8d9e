"""The look of all pictures: colours, the same ones for the same clusters in live and in static pictures.

The colour of a cluster is a number, its place in `CLUSTER_COLOURS`. The first eight and the grey stay apart
for people with any of the common colour deficiencies, and stand out from light and from dark backgrounds
alike (contrast at least 3 : 1, WCAG 2); they were chosen by differences in CIELAB. So live pictures in both
themes and static ones have the same colours. From the ninth cluster on, the same hues return in three other
shades and with another marker (`shape_of`). Singletons and objects that a cut leaves unassigned (label −1)
are grey.

**Colours follow clusters through relabelling.** Labels may change at each iteration. So clusters are matched
with those of the pictures before, such that as many objects as possible have the colours that they had. The
last picture counts most, earlier ones by a factor of 0.9 less each: groups that were merged or mixed up for a
few pictures return in their own colours. A cluster without a predecessor gets the first free colour, larger
clusters first. In a static picture of one partition, colours are in order of size.

Quantities such as a prior and a posterior have the colours of Okabe & Ito (2008), without black and without
their yellow, which is too pale for points on white.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from ewens_widgets.partition import check_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Labels = NDArray[np.integer[Any]]
IntArray = NDArray[np.intp]

GREY = "#8c8c8c"
"""Objects that are alone, left over by a cut, or not yet in a cluster."""

SINGLETON = GREY
"""Clusters of one object."""

SELECTED = "#ee2f93"
"""Objects that the user has selected."""

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C6D1F")
"""Quantities, such as a posterior (the first one) beside a prior."""

_KEPT = 0.9  # what a picture counts beside the next one, when colours are matched

ALONE = -1
"""Number of the colour of objects that are alone or left over: grey."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")

SHAPES = ("circle", "square", "triangle-up", "diamond")
"""Markers of live pictures: each stands for as many clusters as there are distinct colours."""

COLOUR_MAPS = ("greys", "viridis", "cividis", "magma")
"""Names of colour maps for distances; the first is the paper's: white is far, black is near."""

_DARK_PAPER = 24

_HUES = ("#206bc2", "#e91008", "#05a741", "#e74bff", "#2f7f49", "#519acb", "#843bf9", "#a24b90")


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of a colour like ``"#0072b2"``."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _varied(colour: str, share: float) -> str:
    """A colour moved away from its own lightness: a dark one becomes lighter, a light one darker."""
    is_dark = sum(weight * part for weight, part in zip((0.3, 0.59, 0.11), rgb(colour), strict=True)) < 128
    # Below 0 it is moved further to where it is.
    goal = 255 if is_dark == (share > 0) else 0
    return "#" + "".join(f"{round((1 - abs(share)) * part + abs(share) * goal):02x}" for part in rgb(colour))


N_DISTINCT = len(_HUES)
"""Number of colours that readers with any common colour deficiency can distinguish; they come first."""

CLUSTER_COLOURS = tuple(_varied(hue, share) for share in (0.0, 0.4, 0.65, -0.35) for hue in _HUES)
"""Colours of clusters and of known classes, in this order."""


def colour_of(number: int) -> str:
    """Colour by its number; colours come back when they are used up."""
    return GREY if number == ALONE else CLUSTER_COLOURS[number % len(CLUSTER_COLOURS)]


def shape_of(number: int) -> int:
    """Place in `SHAPES` of a colour's marker: others than the first where colours are no longer distinct."""
    return 0 if number == ALONE else number // N_DISTINCT % len(SHAPES)


def class_colours(n_classes: int) -> list[str]:
    """As many colours as there are classes, or chains, or whatever has no sizes."""
    return [colour_of(number) for number in range(n_classes)]


def by_size(sizes: NDArray[np.intp]) -> list[int]:
    """Clusters of more than one object, the largest first."""
    order = np.argsort(-sizes, kind="stable")
    return [int(label) for label in order if sizes[label] > 1]


def cluster_colours(labels: ArrayLike, like: ArrayLike | None = None) -> list[str]:
    """Colour of each cluster of a partition, by label: the larger, the earlier in the palette.

    Singletons are grey and take no colour from the others. With `like`, another partition of the same
    objects, clusters have the colours of those that match them there: so they agree across panels.
    """
    checked = check_labels(labels)
    first = np.unique(checked, return_index=True)[1]
    colours = ClusterColours()
    if like is not None:
        colours.assign(check_labels(like, checked.size))
    return [colour_of(number) for number in colours.assign(checked)[first].tolist()]


def cluster_markers(labels: ArrayLike) -> list[str]:
    """Marker of each cluster: circles, and other shapes where colours are no longer distinct."""
    sizes = np.bincount(check_labels(labels))
    markers = [MARKERS[0]] * sizes.size
    for place, label in enumerate(by_size(sizes)):
        markers[label] = MARKERS[place // N_DISTINCT % len(MARKERS)]
    return markers


def matching_colours(classes: ArrayLike, labels: ArrayLike) -> list[str]:
    """Colour of each class: that of the cluster it shares most objects with, each cluster's once.

    Classes without a cluster of their own have colours that no cluster has.
    """
    true, found = check_labels(classes), check_labels(labels)
    colours = cluster_colours(found)
    match = best_match(found, true)
    n_classes = int(true.max()) + 1
    free = (colour for colour in class_colours(n_classes + len(colours)) if colour not in colours)
    # A class that matches a singleton gets a colour too: classes are never grey.
    chosen = [colours[match[label]] if label in match else GREY for label in range(n_classes)]
    return [next(free, colour) if colour == GREY else colour for colour in chosen]


def best_match(before: Labels, after: Labels) -> dict[int, int]:
    """Which label before each label after it continues, by total overlap; entries below 0 do not count."""
    both = (before >= 0) & (after >= 0)
    if not both.any():
        return {}
    old, old_place = np.unique(before[both], return_inverse=True)
    new, new_place = np.unique(after[both], return_inverse=True)
    overlap = np.zeros((new.size, old.size), dtype=np.intp)
    np.add.at(overlap, (new_place, old_place), 1)
    return _matched(new, old, overlap)


def _matched(new: Labels, old: Labels, overlap: NDArray[Any]) -> dict[int, int]:
    rows, columns = linear_sum_assignment(overlap, maximize=True)
    return {
        int(new[row]): int(old[column])
        for row, column in zip(rows, columns, strict=True)
        if overlap[row, column] > 0
    }


def changed_objects(before: Labels, after: Labels) -> IntArray:
    """Objects whose cluster changes, once clusters are matched: of a split or a merge, the smaller part."""
    match = best_match(before, after)
    continued = np.array([match.get(int(label), ALONE) for label in after], dtype=np.intp)
    return np.flatnonzero(continued != before)


class ClusterColours:
    """Remembers which colours the objects had lately."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget: the objects are others now."""
        self._had = np.zeros((0, 0))  # how much each object had each colour lately

    def remember(self, colours: IntArray) -> None:
        """Go on from numbers that were assigned before."""
        self._had = np.zeros((colours.size, 0))
        self._note(colours)

    def _note(self, colours: IntArray) -> None:
        kept = self._had
        self._had = np.zeros((colours.size, max(kept.shape[1], int(colours.max(initial=-1)) + 1)))
        self._had[:, : kept.shape[1]] = _KEPT * kept
        coloured = np.flatnonzero(colours != ALONE)
        self._had[coloured, colours[coloured]] += 1.0

    def assign(self, labels: Labels) -> IntArray:
        """Number of each object's colour."""
        clean = np.asarray(labels, dtype=np.intp).copy()
        sizes = np.bincount(clean[clean >= 0], minlength=1)
        clean[(clean >= 0) & (sizes[np.maximum(clean, 0)] == 1)] = ALONE
        if len(self._had) != clean.size:
            self._had = np.zeros((clean.size, 0))
        values, places = np.unique(clean[clean >= 0], return_inverse=True)
        # Objects that were grey match nothing, so a cluster of them is a new one.
        overlap = np.zeros((values.size, self._had.shape[1]))
        np.add.at(overlap, places, self._had[clean >= 0])
        colour_by_label = _matched(values, np.arange(overlap.shape[1]), overlap)
        taken = set(colour_by_label.values())
        for label in values[np.argsort(-np.bincount(places), kind="stable")].tolist():
            if label not in colour_by_label:
                free = next(colour for colour in range(clean.size) if colour not in taken)
                colour_by_label[label] = free
                taken.add(free)
        if len(colour_by_label) <= N_DISTINCT:
            # The most distinct colours for few clusters: better than old ones that look alike.
            spare = iter(sorted(set(range(N_DISTINCT)) - taken))
            changed = {label: next(spare) for label, old in colour_by_label.items() if old >= N_DISTINCT}
            colour_by_label |= changed
        colours = np.full(clean.size, ALONE, dtype=np.intp)
        for label, colour in colour_by_label.items():
            colours[clean == label] = colour
        colours.setflags(write=False)
        self._note(colours)
        return colours


@cache
def colour_map(name: str, levels: int, *, dark: bool = False) -> NDArray[np.uint8]:
    """Colours from distance 0 to distance 1, one a row.

    Greys are ink on paper: what is together is ink, black on a light page and white on a dark one.
    """
    if name not in COLOUR_MAPS:
        raise ValueError(f"there is no colour map {name!r}; use one of {', '.join(COLOUR_MAPS)}")
    places = np.linspace(0.0, 1.0, levels)
    if name == "greys":
        # On a dark page never is as dark as the page itself.
        shades = 255 * places if not dark else 255 - (255 - _DARK_PAPER) * places
        table = np.repeat(np.round(shades).astype(np.uint8)[:, None], 3, axis=1)
    else:
        from matplotlib import colormaps

        table = np.round(255 * colormaps[name](places)[:, :3]).astype(np.uint8)
    table.setflags(write=False)
    return table


_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    # Given as text: matplotlib reads it when it is first needed.
    "axes.prop_cycle": f"cycler(color={list(OKABE_ITO)})",
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "figure.dpi": 100,
    "font.size": 9,
    "image.cmap": "gray",
    "image.interpolation": "nearest",
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.0,
    "savefig.dpi": 200,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}


def use_style() -> None:
    """Give all figures of this session the look of the package's pictures, twice as fine on the page.

    It sets matplotlib's defaults: sizes, fonts, the colours of lines (`OKABE_ITO`), and grey images in which
    black is 0 and white is 1. In a notebook pictures get two pixels for each one on the page.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> ew.plots.use_style()
    """
    import matplotlib as mpl

    mpl.rcParams.update(_STYLE)
    with suppress(ImportError):  # not every kernel shows figures in this way
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("retina")  # type: ignore[no-untyped-call]


def styled(draw: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Let a function draw in the common look, and leave the user's settings as they are."""

    @wraps(draw)
    def drawn(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        import matplotlib as mpl

        with mpl.rc_context(_STYLE):
            return draw(*args, **kwargs)

    return drawn


def new_figure(width: float, height: float, arranged: bool = True) -> "Figure":
    """Empty figure of so many inches, which pyplot does not know of.

    Where it is `arranged`, matplotlib makes room for labels; else axes stay where they are put.
    """
    return _figure_class()(figsize=(width, height), layout="constrained" if arranged else None)


def figure_of(ax: "Axes") -> "Figure":
    """The figure that axes are in."""
    figure = ax.get_figure()
    if figure is None:
        raise ValueError("the axes are in no figure; make them with figure.subplots().")
    return cast("Figure", figure)


@cache
def _figure_class() -> type["Figure"]:
    """Make the class of figures when matplotlib is first needed."""
    from io import BytesIO

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class StaticFigure(Figure):
        """A figure that a notebook shows although pyplot does not know of it."""

        def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
            """Two pixels for each one on the page."""
            buffer, (width, height), dpi = BytesIO(), self.get_size_inches(), self.dpi
            FigureCanvasAgg(self)
            self.savefig(buffer, format="png", dpi=2 * dpi)
            return buffer.getvalue(), {"width": round(width * dpi), "height": round(height * dpi)}

    return StaticFigure
