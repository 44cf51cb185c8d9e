"""The restaurant of the prior lab: tables that grow with their guests, and guests that can be moved.

Guests are objects and tables are clusters. Below each table stand its size and the chance that the next guest
joins it, below the picture the rule and its numbers. A guest can be dragged to another table, which shows the
probability of that partition.

A guest should keep its place while others arrive, but a plan with room for every future guest would draw dots
that are too small. So a `SeatingPlan` reserves as much room for growth as fits: at first for all guests to
come, later for a few, in a full restaurant for none. Tables stand in rows, those with most room first. The
guests of a table form a sunflower spiral, which grows outwards. The picture is an SVG with the units of the
room, and scales with its element.

`Seating` is one restaurant after the other under one prior; `Seatings` those under all priors that are
compared, as work for the background, one guest per step. A partition is drawn by the exact sampler of the
prior when its first guest is seated, and its other guests follow one by one. `Tally` counts the clusters of
the finished partitions. The probability of a partition is a product over its guests: the weight of the table
that the guest takes, divided by the sum of the weights of all tables and of a new one. The order of the
guests does not matter.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import numpy as np
from numpy.typing import NDArray
from traitlets import Dict

from ewens_widgets.analysis.plots.palette import CLUSTER_COLOURS, GREY, rgb
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors import PartitionPrior
from ewens_widgets.partition import canonical_labels, cluster_sizes
from ewens_widgets.views.base import Panel, Post, assign, chip, note
from ewens_widgets.views.prior_chooser import kind_of, prior_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 470.0
ALONE, TOGETHER = 380.0, 160.0
"""Size of the room, in units: its width, and its height if it is the only one or one of two."""

_GOLDEN = np.pi * (3.0 - np.sqrt(5.0))
_GAP = 6.0
_MOST_LABELLED = 24  # with more tables there is no room for texts
_LABEL_WIDTH, _LABEL_HEIGHT = 62.0, 14.0  # size of a text
_LARGEST_SPACING, _SMALLEST_SPACING = 11.0, 0.4
_READABLE = 6.5  # least distance of guests at which their numbers are legible
_MOST_FACTORS = 8
_MOST_COLUMNS = 8
_MOST_REPEATED = 50_000  # guests that are drawn again while a slider is moved
_GROWTHS = (np.inf, 4.0, 2.0, 1.2)  # factors by which tables may grow in their place


# The scene before the first partition.
_EMPTY = {
    "room": [WIDTH, ALONE],
    "tables": [],
    "guests": [],
    "spacing": _LARGEST_SPACING,
    "numbered": False,
    "newest": -1,
    "description": "",
}


class Floor(anywidget.AnyWidget):
    """The picture; its messages are guests that were moved."""

    _esm = Path(__file__).with_name("restaurant.js")

    scene = Dict(_EMPTY).tag(sync=True)
    """Places of tables and guests, in units of the room, with their colours and texts."""


class RestaurantPanel(Panel):
    """Tables and guests under one prior, and the rule by which guests are seated.

    Parameters
    ----------
    number
        1 or 2: the first or the second prior.
    colour
        Colour of that prior.
    post
        Brings a command to the event loop.
    on_moved
        Called there with the labels of the new partition when a guest was moved.
    """

    title = "Restaurant"
    about = (
        "Every circle is a table, or cluster; every dot is a guest, or object. Below each table are its size "
        "and the probability that the next guest joins it. Drag guests to see the probability of other "
        "partitions."
    )

    def __init__(
        self,
        number: int,
        colour: str,
        post: Post,
        on_moved: Callable[[NDArray[np.intp]], None],
    ) -> None:
        self.css_class = f"ew-restaurant-{number}"
        self.description = f"Guests seated at tables by the {'first' if number == 1 else 'second'} prior"
        self._colour = colour
        self._post = post
        self._on_moved = on_moved
        self._height = ALONE
        self._plan = SeatingPlan(np.zeros(0, dtype=np.intp), 1)
        self.room = Floor()
        self.room.on_msg(self._on_message)
        self.rule = note("ew-rule")
        super().__init__((self.room, self.rule), (note("ew-hint", "size · chance"),))
        self.add_class("ew-restaurant")
        self._chip = self.children[0].children[0]

    def prepare(self, prior: PartitionPrior, *, is_alone: bool) -> None:
        """Show another prior, in a high room, or in a low one next to a second restaurant."""
        self._prior = prior
        self._height = ALONE if is_alone else TOGETHER
        self.title = prior_name(prior)
        assign(self._chip, value=f"<b>{chip(self._colour, self.title)}</b>{self.explanation()}")

    def show(self, labels: NDArray[np.intp], capacity: int, newest: int | None) -> None:
        """Show a partition.

        Parameters
        ----------
        labels
            Table of each guest.
        capacity
            Number of guests in the end.
        newest
            Last guest, counted from 0; None if there is none to be marked.
        """
        self._plan = plan = SeatingPlan(labels, capacity, self._height)
        prior, kind, sizes = self._prior, kind_of(self._prior), plan.sizes.tolist()
        is_possible = labels.size == 0 or prior.log_pmf(labels) > -np.inf
        # Below each table its size and the chance that the next guest joins it.
        texts = [*map(str, sizes), "new"] if plan.is_labelled else [""] * (len(sizes) + 1)
        numbers = "This number of tables is impossible under this prior."
        if is_possible:
            numbers = seats_table(plan.sizes, prior)
            chances = prior.seating_probabilities(plan.sizes)
            texts = [
                f"{text} · {chance:.0%}" if text else "" for text, chance in zip(texts, chances, strict=True)
            ]
        words = (
            f"A table of m guests has weight <b>{escape(kind.joining(prior))}</b>, "
            f"a new one <b>{escape(kind.opening(prior))}</b>."
        )
        circles = zip(plan.centres.round(1).tolist(), plan.radii.round(1).tolist(), strict=True)
        tables = [
            {"x": x, "y": y, "r": radius, "text": text, "colour": colour, "ink": _ink(colour)}
            for ((x, y), radius), text, colour in zip(circles, texts, plan.colours, strict=True)
        ]
        guests = np.column_stack([plan.guests().round(1), plan.labels])
        seated = ", ".join(map(str, sorted(sizes, reverse=True)[:_MOST_LABELLED]))
        spoken = (
            f"{self.title}: {labels.size} guests at {len(sizes)} tables{seated and f' of {seated}'}. "
            "Left and right choose a guest, up and down a table, Enter moves the guest there."
        )
        scene = {
            "room": [WIDTH, self._height],
            "tables": tables,
            "guests": [[x, y, int(table)] for x, y, table in guests.tolist()],
            "spacing": round(plan.spacing, 2),
            "numbered": plan.spacing >= _READABLE,
            "newest": -1 if newest is None else newest,
            "description": spoken,
        }
        assign(self.room, scene=scene)
        assign(self.rule, value=words + numbers)

    def _on_message(self, _: object, content: Any, buffers: object) -> None:  # noqa: ANN401, ARG002 - from a page
        if not isinstance(content, dict):
            return
        kind, guest = content.get("kind"), int(content.get("guest", -1))
        if kind == "drop":
            x, y = float(content["x"]), float(content["y"])
            self._post(lambda: self.move(guest, self._plan.table_at(x, y)))
        elif kind == "move":
            table = int(content["table"])
            self._post(lambda: self.move(guest, table))

    def move(self, guest: int, table: int) -> None:
        """Move a guest, counted from 0, to a table; the number after the last is a new one."""
        plan = self._plan
        if not (0 <= guest < plan.labels.size and 0 <= table <= plan.sizes.size):
            return
        labels = plan.labels.copy()
        labels[guest] = table
        moved = canonical_labels(labels)
        if not np.array_equal(moved, plan.labels):
            self._on_moved(moved)

    def paint(self, axes: "Axes") -> None:
        """Draw tables and guests with matplotlib."""
        from matplotlib.patches import Circle

        plan, colours = self._plan, self._plan.colours
        for centre, radius, colour in zip(plan.centres, plan.radii, colours, strict=True):
            fill = "none" if colour == GREY else colour
            axes.add_patch(Circle(tuple(centre), radius, facecolor=fill, alpha=0.4, edgecolor=colour))
        x, y = plan.guests().T
        axes.scatter(x, y, c=[colours[label] for label in plan.labels], s=6)
        axes.set(xlim=(0, WIDTH), ylim=(self._height, 0), aspect="equal")
        axes.set_axis_off()


class SeatingPlan:
    """Places of tables and guests: tables in rows, guests in a spiral that grows outwards.

    Parameters
    ----------
    labels
        Table of each guest, in the order in which tables were opened.
    capacity
        Number of guests in the end.
    height
        Of the room.
    """

    def __init__(self, labels: NDArray[np.intp], capacity: int, height: float = ALONE) -> None:
        self.labels = labels
        self.sizes = cluster_sizes(labels) if labels.size else np.zeros(0, dtype=np.intp)
        self.is_labelled = self.sizes.size + 1 <= _MOST_LABELLED
        tables = np.arange(self.sizes.size) % len(CLUSTER_COLOURS)
        self.colours = [*(CLUSTER_COLOURS[table] for table in tables.tolist()), GREY]
        most = max(capacity, labels.size, 1)
        for growth in _GROWTHS:
            # The last one is the new table, shown at its future place.
            rooms = tuple(_room_to_grow(size, growth, most) for size in (*self.sizes.tolist(), 1))
            self.spacing, self.centres = _in_rows(rooms, height, self.is_labelled)
            if self.spacing >= _READABLE:
                break
        self.radii = _radius(self.spacing, np.append(self.sizes, 1))

    def guests(self) -> FloatArray:
        """Places of the guests, a row each."""
        seats = np.zeros(self.labels.size)
        for table in range(self.sizes.size):
            seats[self.labels == table] = np.arange(self.sizes[table])
        reach, angle = self.spacing * np.sqrt(seats + 0.5), _GOLDEN * seats
        reach[(seats == 0) & (self.sizes[self.labels] == 1)] = 0.0
        offsets = np.column_stack([reach * np.cos(angle), reach * np.sin(angle)])
        return np.asarray(self.centres[self.labels] + offsets)

    def table_at(self, x: float, y: float) -> int:
        """Table at a place; elsewhere the number after the last one, a new table."""
        outside = np.hypot(*(self.centres - [x, y]).T) - self.radii
        nearest = int(np.argmin(outside))
        return nearest if outside[nearest] <= _LABEL_HEIGHT + _GAP else self.sizes.size


def _radius(spacing: float, guests: NDArray[np.intp]) -> FloatArray:
    """Radius of a table: that of the spiral of its guests, and half a guest more."""
    return np.asarray(spacing * (np.sqrt(guests) + 0.5), dtype=np.float64)


def _room_to_grow(size: int, growth: float, most: int) -> int:
    """Guests that a table has room for; the same for a range of sizes, so that the table keeps its place."""
    room = 1
    while room < size:
        room = most if np.isinf(growth) else max(room + 1, round(growth * room))
    return min(max(room, 1 if np.isfinite(growth) else most), most)


@lru_cache(maxsize=256)
def _in_rows(rooms: tuple[int, ...], height: float, is_labelled: bool) -> tuple[float, FloatArray]:
    """Largest distance of guests for which tables with this much room fit, and the places of the tables."""
    guests = np.array(rooms)
    low, high = _SMALLEST_SPACING, _LARGEST_SPACING
    centres, bottom = _rows(_radius(high, guests), is_labelled)
    if bottom <= height:
        return high, centres
    best, _ = _rows(_radius(low, guests), is_labelled)
    for _ in range(12):
        middle = 0.5 * (low + high)
        centres, bottom = _rows(_radius(middle, guests), is_labelled)
        if bottom <= height:
            low, best = middle, centres
        else:
            high = middle
    return low, best


def _rows(radii: FloatArray, is_labelled: bool) -> tuple[FloatArray, float]:
    """Centres of tables in rows, and the end of the last row; small tables are stacked next to large ones."""
    widths = np.maximum(2.0 * radii + _GAP, _LABEL_WIDTH if is_labelled else 0.0)
    heights = 2.0 * radii + _GAP + (_LABEL_HEIGHT if is_labelled else 0.0)
    if widths.max() > WIDTH:
        return np.zeros((radii.size, 2)), np.inf
    centres = np.zeros((radii.size, 2))
    # The current row; end and width of its last stack.
    top = bottom = left = 0.0
    end, stack = np.inf, 0.0
    order = np.argsort(-radii, kind="stable")
    # Plain numbers are faster here: up to a thousand tables, a dozen times.
    for table, radius, width, height in np.column_stack(
        [order, radii[order], widths[order], heights[order]]
    ).tolist():
        if width > stack or end + height > bottom:
            if left + width > WIDTH or bottom == 0.0:
                left, top, bottom = 0.0, bottom, bottom + height
            left, end, stack = left + width, top, width
        centres[int(table)] = left - stack / 2, end + _GAP / 2 + radius
        end += height
    return centres, bottom


def _ink(colour: str) -> str:
    """Black or white, whichever can be read on a colour."""
    light = sum(weight * part for weight, part in zip((0.3, 0.59, 0.11), rgb(colour), strict=True))
    return "#000000" if light > 140 else "#ffffff"


class Tally:
    """Numbers and sizes of the clusters of finished partitions."""

    def __init__(self, n: int) -> None:
        self.n_draws = 0
        self.counts: NDArray[np.intp] = np.zeros(n + 1, dtype=np.intp)
        self._sizes: NDArray[np.intp] = np.zeros(n + 1, dtype=np.intp)

    def add(self, labels: NDArray[np.intp]) -> None:
        """Count finished partitions, a row each."""
        rows, n = labels.shape
        np.add.at(self.counts, labels.max(axis=1) + 1, 1)
        offsets = n * np.arange(rows)[:, None]
        members = np.bincount((labels + offsets).ravel(), minlength=rows * n)
        self._sizes += np.bincount(members[members > 0], minlength=n + 1)
        self.n_draws += rows

    def frequencies(self) -> FloatArray:
        """Share of the partitions with 0, 1, …, n clusters."""
        return np.asarray(self.counts / max(1, self.n_draws), dtype=np.float64)

    def mean_clusters(self) -> float:
        """Mean number of clusters; NaN before the first partition."""
        return float(self.counts @ np.arange(self.counts.size) / self.n_draws) if self.n_draws else np.nan

    def mean_sizes(self) -> FloatArray:
        """Mean number of clusters with 0, 1, …, n members."""
        return np.asarray(self._sizes / max(1, self.n_draws), dtype=np.float64)


class Seating:
    """One restaurant of n guests after the other, under one prior; the seed determines all of them.

    Attributes
    ----------
    tally
        The finished partitions.
    labels
        Table of each guest so far, in the order in which tables were opened.
    """

    def __init__(self, n: int, prior: PartitionPrior, seed: int) -> None:
        self.n = n
        self.prior = prior
        self.seed = seed
        self.reset()

    def reset(self) -> None:
        """Start again with the same random numbers."""
        self._rng = np.random.default_rng(self.seed)
        self.tally = Tally(self.n)
        self.labels = self._drawn = np.zeros(0, dtype=np.intp)
        self._has_arrival = False

    def arrival(self) -> str:
        """Where the last guest sits, in words; empty unless guests were seated one by one."""
        if not self._has_arrival:
            return ""
        *before, table = self.labels.tolist()
        chance = self.prior.seating_probabilities(np.bincount(before))[table]
        return f"{'joins' if table in before else 'opens'} table {table + 1} ({chance:.2f})"

    @property
    def path(self) -> NDArray[np.intp]:
        """Tables once the first, second, … guest is seated."""
        return np.maximum.accumulate(self.labels) + 1

    def seat(self, guests: int) -> None:
        """Seat guests; after a full restaurant comes an empty one."""
        while guests > 0:
            if self.labels.size == self._drawn.size:
                self._drawn = self.prior.sample(self.n, self._rng)
                self.labels = self._drawn[:0]
            count = min(guests, self.n - self.labels.size)
            self.labels = self._drawn[: self.labels.size + count]
            guests -= count
            if self.labels.size == self.n:
                self.tally.add(self._drawn[None])
        self._has_arrival = True

    def draw(self, count: int) -> None:
        """Draw partitions at once, and show the last one; an unfinished one is dropped."""
        partitions = self.prior.sample_partitions(self.n, count, self._rng)
        self.tally.add(partitions)
        self.labels = self._drawn = partitions[-1]
        self._has_arrival = False


class Seatings:
    """A restaurant of n guests under each of the priors: work for the background, one guest per step.

    All of them have the same seed: where two priors agree, their guests take the same tables.
    """

    def __init__(self, n: int, priors: Sequence[PartitionPrior], seed: int) -> None:
        self.n = n
        self.seed = seed
        self.each = tuple(Seating(n, prior, seed) for prior in priors)

    @property
    def is_done(self) -> bool:
        """Never: after the last guest comes another restaurant."""
        return False

    def advance(self, steps: int) -> int:
        """Seat guests in each of the restaurants."""
        for seating in self.each:
            seating.seat(steps)
        return steps

    def draw(self, count: int) -> None:
        """Draw partitions under each prior."""
        for seating in self.each:
            seating.draw(count)

    def reset(self) -> None:
        """Start again with the same random numbers."""
        for seating in self.each:
            seating.reset()

    def repeat(self, before: "Seatings") -> None:
        """Draw as many partitions and seat as many guests as other restaurants have, from the same seed."""
        draws, seated = before.each[0].tally.n_draws, before.each[0].labels.size
        if draws:
            self.draw(min(draws, max(1, _MOST_REPEATED // self.n)))
        if 0 < seated < self.n or (seated and not draws):
            self.advance(seated)


def seats_table(sizes: NDArray[np.intp], prior: PartitionPrior) -> str:
    """Weights and chances of the next guest, as an HTML table: a column for each size of table."""
    weights = prior.seating_weights(sizes)
    total = weights.sum()
    members, places, tables = np.unique(sizes, return_index=True, return_counts=True)
    columns = []
    for size, place, count in zip(members[::-1], places[::-1], tables[::-1], strict=True):
        name = f"{size}" if count == 1 else f"{count} of {size}"
        # Several tables of one size share a column, with the weight of each of them.
        columns.append((name, _weight_text(weights[place]), f"{weights[place] / total:.1%}"))
    if len(columns) > _MOST_COLUMNS:
        kept = _MOST_COLUMNS // 2
        columns = [*columns[:kept], ("…", "…", "…"), *columns[-kept:]]
    columns.append(("new", _weight_text(weights[-1]), f"{weights[-1] / total:.1%}"))
    rows = zip(("table of", "weight", "chance"), *columns, strict=True)
    cells = "".join(
        f'<tr><th scope="row">{head}</th>{"".join(f"<td>{text}</td>" for text in texts)}</tr>'
        for head, *texts in rows
    )
    return f'<table class="ew-seats">{cells}</table>'


def _weight_text(weight: float) -> str:
    return f"{weight:.3g}" if weight < 100 else f"{weight:.0f}"


def product_text(labels: NDArray[np.intp], prior: PartitionPrior) -> str:
    """The probability as a product over the guests, such as 1/1 · 1/2 · 1/3; empty if it would be long."""
    if labels.size > _MOST_FACTORS or prior.log_pmf(labels) == -np.inf:
        return ""
    factors = []
    for guest, label in enumerate(labels.tolist()):
        weights = prior.seating_weights(np.bincount(labels[:guest]))
        factors.append(f"{weights[label]:.4g}/{weights.sum():.4g}")
    return " · ".join(factors)


def probability_text(labels: NDArray[np.intp], prior: PartitionPrior) -> str:
    """Probability of a partition as HTML, with its product over the guests if that is short."""
    log_value = prior.log_pmf(labels)
    if log_value == -np.inf:
        return '<b class="ew-probability">0</b>'
    power = f"10^{log_value / np.log(10.0):.1f}"
    number = power if log_value < -300.0 else f"{np.exp(min(log_value, 0.0)):.6g}"
    text = f'<b class="ew-probability">{number}</b> (log {log_value:.4f})'
    product = product_text(labels, prior)
    return f"{text} = {product}" if product else text
