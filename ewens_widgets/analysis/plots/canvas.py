"""Figures that nobody has to close, and the look that all pictures share."""

from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["figure_of", "new_figure", "styled"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "figure.dpi": 100,
    "font.size": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.0,
    "savefig.dpi": 200,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}


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

        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            FigureCanvasAgg(self).print_png(buffer)  # type: ignore[no-untyped-call]
            return buffer.getvalue()

    return StaticFigure
