"""The restaurant: tables that grow with their guests, and guests that can be dragged to another table.

Guests are objects and tables are clusters. A lecturer seats some guests, says what the next one may do (the
text below each table: guests · chance of the next one), and drags one of them elsewhere to ask how probable
that partition would have been.

Nobody who sits may move while others come in, or the eye loses them; so a `SeatingPlan` puts tables in a grid
and the guests of a table in a sunflower spiral, which grows outwards. The scales of the figure count pixels,
because bqplot sizes its marks in pixels and guests must fit their tables.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import bqplot
import numpy as np
from ipywidgets import Widget
from numpy.typing import NDArray

from ewens_widgets.analysis.plots.palette import CLUSTER_COLOURS, GREY, SELECTED, rgb
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors import ewens
from ewens_widgets.partition import canonical_labels
from ewens_widgets.views.base import Panel, assign
from ewens_widgets.views.figures import make_figure, make_scale, make_scatter

__all__ = ["RestaurantPanel", "SeatingPlan"]

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 470, 290
"""Size of the picture in pixels; its scales count pixels too, so that guests fit their tables."""

_GRIDS = ((3, 2), (4, 3), (6, 4), (8, 6), (12, 8), (17, 12), (24, 17), (40, 28))
_GOLDEN = np.pi * (3.0 - np.sqrt(5.0))
_MOST_GUESTS = 300  # With more, tables are drawn without them.
_MOST_LABELLED = 24  # Tables that have room for a text.
_LARGEST_SPACING = 11.0
_READABLE = 6.5  # Distance of guests from which their numbers can be read.
_LARGEST_AREA = 40_000


class RestaurantPanel(Panel):
    """Tables and guests.

    Parameters
    ----------
    post
        Brings a command to the event loop.
    on_moved
        Called there with the labels of a partition that was made by dragging.
    tools
        What is beside the heading.
    """

    title = "Restaurant"
    css_class = "ew-restaurant"
    description = "Guests sit down at tables: objects are put into clusters one by one"

    def __init__(
        self,
        post: Callable[[Callable[[], None]], None],
        on_moved: Callable[[NDArray[np.intp]], None],
        tools: tuple[Widget, ...] = (),
    ) -> None:
        self._post = post
        self._on_moved = on_moved
        self._plan = SeatingPlan(np.zeros(0, dtype=np.intp), 1)
        scales = {"x": make_scale(0.0, WIDTH), "y": make_scale(0.0, HEIGHT)}
        round_table = {"default_size": _LARGEST_AREA, "stroke_width": 1.5}
        area = {**scales, "size": make_scale(0.0, 1.0)}
        self.tables = make_scatter(area, size=np.zeros(0), **round_table)
        self.new_table = make_scatter(area, size=np.zeros(0), fill=False, colors=[GREY], **round_table)
        self.guests = make_scatter(scales, colors=[GREY], stroke_width=0.0, drag_size=1.3, enable_move=True)
        self.newest = make_scatter(scales, fill=False, colors=[SELECTED], stroke_width=2.0)
        self.texts = _labels(scales, default_size=11, font_weight="bold", colors=[GREY])
        self.numbers = _labels(scales, default_size=9, font_weight="normal", y_offset=3, colors=["#ffffff"])
        self._is_drawing = False
        self.guests.on_drag_end(self._on_dragged)
        self.guests.observe(self._on_displaced, ["x", "y"])
        marks = [self.tables, self.new_table, self.guests, self.newest, self.texts, self.numbers]
        self.figure = make_figure("ew-tables", HEIGHT, (0, 0, 0, 0), marks=marks, axes=[])
        self.figure.layout.width = f"{WIDTH}px"
        super().__init__((self.figure,), tools)

    def show(self, labels: NDArray[np.intp], capacity: int, concentration: float, newest: int | None) -> None:
        """Show a partition.

        Parameters
        ----------
        labels
            Table of each guest.
        capacity
            Guests that there will be.
        concentration
            Concentration, for the chances of the next guest.
        newest
            Guest that came last, counted from 0, if somebody came.
        """
        self._plan = plan = SeatingPlan(labels, capacity)
        n_tables = plan.sizes.size
        colours = [CLUSTER_COLOURS[table % len(CLUSTER_COLOURS)] for table in range(n_tables)]
        areas = np.pi * plan.radii**2 / _LARGEST_AREA
        assign(
            self.tables,
            x=plan.centres[:-1, 0],
            y=plan.centres[:-1, 1],
            size=areas[:-1],
            # A quarter opaque, so that guests and both themes show.
            colors=[f"{colour}40" for colour in colours] or [GREY],
        )
        assign(self.new_table, x=plan.centres[-1:, 0], y=plan.centres[-1:, 1], size=areas[-1:])
        self._show_guests(plan, colours, newest)
        self._show_texts(plan, concentration)

    def _show_guests(self, plan: "SeatingPlan", colours: list[str], newest: int | None) -> None:
        places = plan.guests() if plan.labels.size <= _MOST_GUESTS else np.zeros((0, 2))
        dot = (1.45 * plan.spacing) ** 2 * np.pi / 4
        self._is_drawing = True
        assign(
            self.guests,
            x=places[:, 0],
            y=places[:, 1],
            default_size=max(4, round(dot)),
            colors=[colours[label] for label in plan.labels[: len(places)]] or [GREY],
        )
        self._is_drawing = False
        ring = slice(0, 0) if newest is None or newest >= len(places) else slice(newest, newest + 1)
        assign(self.newest, x=places[ring, 0], y=places[ring, 1], default_size=max(20, round(2.2 * dot)))
        readable = places if plan.spacing >= _READABLE else places[:0]
        texts = np.arange(1, len(readable) + 1).astype(str)
        inks = [_ink(colours[label]) for label in plan.labels[: len(readable)]]
        assign(self.numbers, x=readable[:, 0], y=readable[:, 1], text=texts, colors=inks or ["#ffffff"])

    def _show_texts(self, plan: "SeatingPlan", concentration: float) -> None:
        """Below each table its guests and the chance that the next one joins them."""
        if plan.sizes.size + 1 > _MOST_LABELLED:
            assign(self.texts, x=np.zeros(0), y=np.zeros(0), text=np.zeros(0, dtype=str))
            return
        chances = ewens.seating_probabilities(plan.sizes, concentration)
        texts = [f"{size} · {chance:.0%}" for size, chance in zip(plan.sizes, chances, strict=False)]
        texts.append(f"new · {chances[-1]:.0%}")
        below = plan.centres[:, 1] - plan.radii - 14.0
        assign(self.texts, x=plan.centres[:, 0], y=below, text=np.array(texts))

    def _on_dragged(self, _: object, content: dict[str, Any]) -> None:
        index, point = int(content["index"]), content["point"]
        x, y = float(point["x"]), float(point["y"])
        self._post(lambda: self.move(index, x, y))

    def _on_displaced(self, _: dict[str, Any]) -> None:
        """Take a guest that the page has moved back to its seat, in case this comes after the drag's end."""
        if not self._is_drawing:
            self._post(self._seat)

    def _seat(self) -> None:
        places = self._plan.guests()
        if len(places) == len(self.guests.x):
            self._is_drawing = True
            assign(self.guests, x=places[:, 0], y=places[:, 1])
            self._is_drawing = False

    def move(self, guest: int, x: float, y: float) -> None:
        """Have a guest, counted from 0, sit down at the table at a place."""
        if not 0 <= guest < self._plan.labels.size:
            return
        labels = self._plan.labels.copy()
        labels[guest] = self._plan.table_at(x, y)
        self._on_moved(canonical_labels(labels))

    def paint(self, axes: "Axes") -> None:
        """Draw tables and guests with matplotlib."""
        from matplotlib.patches import Circle

        plan = self._plan
        for table, (centre, radius) in enumerate(zip(plan.centres, plan.radii, strict=True)):
            is_new = table == plan.sizes.size
            colour = GREY if is_new else CLUSTER_COLOURS[table % len(CLUSTER_COLOURS)]
            axes.add_patch(
                Circle(
                    tuple(centre), radius, facecolor="none" if is_new else colour, alpha=0.4, edgecolor=colour
                )
            )
        axes.scatter(self.guests.x, self.guests.y, c=self.guests.colors[: max(1, len(self.guests.x))], s=6)
        axes.set(xlim=(0, WIDTH), ylim=(0, HEIGHT), aspect="equal")
        axes.set_axis_off()


class SeatingPlan:
    """Where tables and guests are: tables in a grid, guests in a spiral that grows outwards.

    Nobody who sits moves while guests come in, unless there are so many tables that the grid has to change.

    Parameters
    ----------
    labels
        Table of each guest, in the order in which tables were opened.
    capacity
        Guests that the restaurant will have in the end.
    """

    def __init__(self, labels: NDArray[np.intp], capacity: int) -> None:
        self.labels = labels
        self.sizes = np.bincount(labels) if labels.size else np.zeros(0, dtype=np.intp)
        n_tables = self.sizes.size
        columns, rows = next(
            ((across, down) for across, down in _GRIDS if across * down > n_tables), _GRIDS[-1]
        )
        self.cell = np.array([WIDTH / columns, HEIGHT / rows])
        places = np.arange(n_tables + 1)
        self.centres = np.column_stack(
            [
                (places % columns + 0.5) * self.cell[0],
                HEIGHT - (places // columns + 0.42) * self.cell[1],
            ]
        )
        room = 0.37 * self.cell.min()
        self.spacing = min(_LARGEST_SPACING, room / (np.sqrt(max(capacity, labels.size, 1)) + 0.5))
        self.radii = self.spacing * (np.sqrt(np.append(self.sizes, 1.0)) + 0.5)

    def guests(self) -> FloatArray:
        """Where the guests sit, a row each."""
        seats = np.zeros(self.labels.size)
        for table in range(self.sizes.size):
            seats[self.labels == table] = np.arange(self.sizes[table])
        reach, angle = self.spacing * np.sqrt(seats + 0.5), _GOLDEN * seats
        reach[(seats == 0) & (self.sizes[self.labels] == 1)] = 0.0
        offsets = np.column_stack([reach * np.cos(angle), reach * np.sin(angle)])
        return np.asarray(self.centres[self.labels] + offsets)

    def table_at(self, x: float, y: float) -> int:
        """Table at a place; the number after the last one is a new table."""
        distances = np.hypot(*(self.centres - [x, y]).T)
        nearest = int(np.argmin(distances))
        is_near = distances[nearest] <= max(self.radii[nearest], 0.55 * self.cell.min())
        return nearest if is_near else self.sizes.size


def _ink(colour: str) -> str:
    """Black or white, whichever can be read on a colour."""
    light = sum(weight * part for weight, part in zip((0.3, 0.59, 0.11), rgb(colour), strict=True))
    return "#000000" if light > 140 else "#ffffff"


def _labels(scales: dict[str, bqplot.Scale], **traits: object) -> bqplot.Label:
    nothing = {"x": np.zeros(0), "y": np.zeros(0), "text": np.zeros(0, dtype=str)}
    return bqplot.Label(**nothing, scales=scales, align="middle", **traits)
