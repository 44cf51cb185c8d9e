"""The prior lab: what the Ewens prior believes before it has seen any data.

A lecturer seats guests one by one and has the class bet on the table of the next; then draws a thousand
restaurants at once and compares their tables with the exact law; then moves λ, or the number of components k
of a finite mixture, and sees the law follow. A partition may also be typed, or made by dragging guests to
other tables: its probability is printed, but as it is no draw the charts do not count it.

Guests come in the background of the notebook. Everything that changes the restaurant is a command on the
event loop, so that a drag, a click on Step and a guest who just comes never meet half-way.
"""

import math
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from ipywidgets import Button, HBox
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.arguments import check_count, check_positive
from ewens_widgets.model.priors import ewens
from ewens_widgets.partition import MOST_TYPED, check_labels, format_partition, parse_partition
from ewens_widgets.playback import Tick, Worker
from ewens_widgets.playback.frame import number_text
from ewens_widgets.views.base import Panel, assign, note
from ewens_widgets.views.fields import entry
from ewens_widgets.views.page import STATUS, Dashboard, in_columns
from ewens_widgets.views.prior_lab.prior_charts import GrowthPanel, LawPanel, SizesPanel
from ewens_widgets.views.prior_lab.prior_controls import (
    MOST_GUESTS,
    PARTITION,
    PriorSettings,
    SeatingTransport,
)
from ewens_widgets.views.prior_lab.restaurant import RestaurantPanel
from ewens_widgets.views.prior_lab.seating import (
    Seating,
    Tally,
    probability_text,
    product_text,
)

__all__ = ["PriorLab"]

_MANY = 1000
_LARGEST_CONCENTRATION = 1e4


class PriorLab(Dashboard):
    """Seat guests by the Chinese restaurant process, and see what its clusters are like.

    Guests are objects, tables are clusters. A partition that was typed, or made by dragging guests to other
    tables, stays on display until the next guest comes; its probability is printed. It is not a draw, so the
    charts do not count it.

    Parameters
    ----------
    concentration
        Concentration λ.
    n
        Number of guests, up to 1000.
    n_components
        Number of components k of the finite mixture that is shown beside the prior.
    seed
        Seed of the draws.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> lab = ew.PriorLab(concentration=2.0, n=30)
    >>> lab.draw(1000)
    >>> lab.tally.n_draws
    1000
    >>> round(lab.log_probability("1 2 | 3"), 4)  # λ/λ · 1/(λ+1) · λ/(λ+2)
    -1.7918
    """

    css_class = "ew-lab ew-prior-lab"
    stylesheet = Path(__file__).with_name("prior_lab.css")

    def __init__(
        self, concentration: float = 1.0, n: int = 50, *, n_components: int = 10, seed: int = 0
    ) -> None:
        rate = check_positive("concentration", concentration)
        if rate > _LARGEST_CONCENTRATION:
            raise ValueError(f"concentration must be at most {_LARGEST_CONCENTRATION:g} here; got {rate:g}.")
        guests = check_count("n", n, 2)
        if guests > MOST_GUESTS:
            raise ValueError(f"the restaurant has room for {MOST_GUESTS} guests; got n = {guests}.")
        components = check_count("n_components", n_components, 1)
        self._seating = Seating(guests, rate, check_count("seed", seed, 0))
        self._edited: NDArray[np.intp] | None = None
        self._is_silent = False
        self._worker = Worker(self._seating, speed=1 / 5)
        super().__init__(self._worker, self._worker.post)
        self._build(rate, guests, components)
        self.lay_out(self.transport, self._columns(), names={".ew-chance": STATUS})
        self._prepare()
        self.attach(self)

    def _build(self, rate: float, guests: int, components: int) -> None:
        post = self.post
        self.transport = SeatingTransport(
            lambda name: post(lambda: self._command(name)), lambda speed: post(lambda: self._set_speed(speed))
        )
        self.settings = PriorSettings(
            rate,
            guests,
            components,
            lambda _: post(self._change_prior),
            lambda _: post(self._prepare),
        )
        self.restaurant = RestaurantPanel(
            post, self._take, (note("ew-hint", "size · chance of the next guest"),)
        )
        self.field = entry(
            "partition",
            "",
            parse_partition,
            "ew-typed",
            "A partition: clusters such as 1 2 | 3, or labels such as 0 0 1",
            "Type a partition, such as 1 2 | 3 or 0 0 1, or drag guests to other tables.",
        )
        self.field.control.placeholder = "1 2 | 3"
        self.field.control.observe(self._on_typed, "value")
        self.back = Button(
            description="Back to the draw", tooltip="Show the guests again that came by themselves"
        )
        self.back.add_class("ew-back")
        self.back.layout.display = "none"
        self.back.on_click(lambda _: post(lambda: self._take(None)))
        self.chance = note("ew-result")
        self.chance.add_class("ew-chance")
        self.law, self.sizes, self.growth = LawPanel(), SizesPanel(), GrowthPanel()

    def _columns(self) -> HBox:
        typed = HBox((self.field, self.back))
        typed.add_class("ew-typed-row")
        return in_columns(
            {
                "ew-settings": self.settings.fields,
                "ew-column-restaurant": (self.restaurant, typed, self.chance, self.growth),
                "ew-column-laws": (self.law, self.sizes),
            }
        )

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The restaurant and the charts."""
        return self.restaurant, self.law, self.sizes, self.growth

    @property
    def concentration(self) -> float:
        """Concentration λ."""
        return self._seating.concentration

    @property
    def n(self) -> int:
        """Number of guests."""
        return self._seating.n

    @property
    def n_components(self) -> int:
        """Number of components of the finite mixture."""
        return int(self.settings.components.value)

    @property
    def tally(self) -> Tally:
        """The finished seatings so far."""
        return self._seating.tally

    @property
    def labels(self) -> NDArray[np.intp]:
        """The partition on display: that of the guests so far, or the one that was typed or dragged."""
        drawn = np.array(self._seating.labels, dtype=np.intp)
        return drawn if self._edited is None else self._edited

    def step(self, guests: int = 1) -> None:
        """Seat so many guests, now."""
        self._take(None)
        self._worker.run_sync(guests)
        self._worker.refresh()

    def draw(self, partitions: int = _MANY) -> None:
        """Fill so many restaurants, now, and count their tables."""
        count = check_count("partitions", partitions, 1)
        self._worker.pause()
        self._worker.post(lambda: self._draw(count))
        self._worker.refresh()

    def show_partition(self, partition: str | ArrayLike) -> None:
        """Show a partition, as text or as labels."""
        self._worker.post(lambda: self._take(_labels_of(partition)))
        self._worker.refresh()

    def log_probability(self, partition: str | ArrayLike) -> float:
        """Log probability of a partition, as text or as labels, under the prior on display."""
        return ewens.log_pmf(_labels_of(partition), self.concentration)

    def status_line(self) -> str:
        """Who came last, how many tables there are, and how many partitions have been drawn."""
        seating = self._seating
        if self._worker.error is not None:
            return self._worker.status.message
        seated, arrival = len(seating.labels), seating.arrival
        parts = []
        if arrival is not None:
            where = "opens table" if arrival.opened else "joins table"
            parts.append(
                f"guest {arrival.guest} of {seating.n} {where} {arrival.table} (chance {arrival.chance:.2f})"
            )
        else:
            parts.append(f"{seated} of {seating.n} guests seated")
        tables = len(seating.sizes)
        parts.append("1 table" if tables == 1 else f"{tables} tables")
        drawn = seating.tally.n_draws
        parts.append("1 partition drawn" if drawn == 1 else f"{number_text(drawn)} partitions drawn")
        return " · ".join(parts)

    def caption(self) -> str:
        """Heading of the still picture."""
        return self.status_line()

    def _command(self, name: str) -> None:
        if name != "Play":
            self._worker.pause()
        if name == "Pause":
            return
        self._take(None)
        commands: dict[str, Callable[[], None]] = {
            "Play": self._worker.play,
            "Step": self._worker.step,
            "Fill": self._fill,
            "Draw 1000": lambda: self._draw(_MANY),
            "Reset": self._reset,
        }
        commands[name]()

    def _fill(self) -> None:
        seating = self._seating
        self._worker.step(seating.n if seating.is_full else seating.n - len(seating.labels))

    def _reset(self) -> None:
        self._seating.reset()
        self._worker.outdate()

    def _draw(self, count: int) -> None:
        self._take(None)
        self._seating.draw(count)
        self._worker.outdate()

    def _set_speed(self, speed: float) -> None:
        guests = float(self.n) if speed == PARTITION else speed
        self._worker.speed = None if guests == math.inf else guests

    def _change_prior(self) -> None:
        """Begin anew with another concentration or number of guests: old draws have another law."""
        rate, guests = float(self.settings.concentration.value), int(self.settings.n.value)
        if (rate, guests) == (self.concentration, self.n):
            return
        self._seating = Seating(guests, rate, self._seating.seed)
        self._worker.replace(self._seating)
        self._set_speed(self.transport.speed.value)
        self._prepare()

    def _prepare(self) -> None:
        prior = self.n, self.concentration
        self.law.prepare(*prior, self.n_components)
        self.sizes.prepare(*prior, self.n_components)
        self.growth.prepare(*prior)
        self._worker.outdate()

    def _on_typed(self, _: dict[str, Any]) -> None:
        if not self._is_silent:
            self._worker.post(self._read_typed)

    def _read_typed(self) -> None:
        if not self.field.control.value.strip():
            self.field.problem = ""
            self._take(None)
            return
        try:
            labels = self.field.read()
        except ValueError:
            return
        self._take(labels, show_text=False)

    def _take(self, labels: NDArray[np.intp] | None, *, show_text: bool = True) -> None:
        """Show a partition of somebody's own, or (None) the guests again that came by themselves."""
        if labels is None and self._edited is None:
            return
        self._worker.pause()
        self._edited = labels
        if show_text:
            self._is_silent = True
            short = labels is not None and labels.size <= MOST_TYPED
            assign(self.field.control, value=format_partition(labels) if short and labels is not None else "")
            self._is_silent = False
            self.field.problem = ""
        assign(self.back.layout, display="none" if labels is None else "")
        # At once, as whoever drags a guest looks at it.
        self._show_partition()
        self._worker.outdate()

    def show(self, tick: Tick) -> None:
        """Show the restaurant and the draws so far."""
        self.transport.show(escape(self.status_line()), tick.status.is_running)
        self._show_partition()
        self.law.show(self.tally)
        self.sizes.show(self.tally)
        self.growth.show(self._seating.path)

    def _show_partition(self) -> None:
        labels, arrival = self.labels, self._seating.arrival
        is_drawn = self._edited is None
        newest = None if arrival is None or not is_drawn else arrival.guest - 1
        capacity = self.n if is_drawn else labels.size
        self.restaurant.show(labels, capacity, self.concentration, newest)
        if not labels.size:
            assign(self.chance, value="The restaurant is empty: press Step or Play.")
            return
        what = f"These {labels.size} guests" if is_drawn else f"Your partition of {labels.size} objects"
        product = product_text(labels, self.concentration)
        text = probability_text(labels, self.concentration, self.n_components)
        assign(self.chance, value=f"{what}: {text}" + (f"<br>{product}" if product else ""))

    def __repr__(self) -> str:
        return f"PriorLab(λ = {self.concentration:.4g}: {self.status_line()})"


def _labels_of(partition: str | ArrayLike) -> NDArray[np.intp]:
    return parse_partition(partition) if isinstance(partition, str) else check_labels(partition)
