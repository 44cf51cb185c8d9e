"""The prior lab: what a prior on partitions believes before it has seen any data, and how two of them differ.

A lecturer seats guests one by one, in one restaurant or in two, and has the class bet on the table of the
next; then draws a thousand restaurants at once and compares their tables with the exact law; then moves a
parameter, or takes another prior, and sees the law follow. A partition may also be typed, or made by moving
guests to other tables: its probability under each prior is printed, but as it is no draw the charts do not
count it.

Guests come in the background of the notebook. Everything that changes the restaurants is a command on the
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

from ewens_widgets.arguments import check_count
from ewens_widgets.model.priors import DirichletMultinomial, Ewens, PartitionPrior
from ewens_widgets.model.priors.ewens import Concentration, Gamma
from ewens_widgets.partition import (
    MOST_TYPED,
    canonical_labels,
    check_labels,
    format_partition,
    parse_partition,
)
from ewens_widgets.playback import Tick, Worker
from ewens_widgets.playback.frame import number_text
from ewens_widgets.views.base import Panel, assign, chip, note
from ewens_widgets.views.fields import entry
from ewens_widgets.views.labs.prior_charts import COLOURS, GrowthPanel, LawPanel, SizesPanel
from ewens_widgets.views.labs.prior_controls import (
    MOST_GUESTS,
    PARTITION,
    PriorSettings,
    SeatingTransport,
)
from ewens_widgets.views.labs.restaurant import RestaurantPanel
from ewens_widgets.views.labs.seating import Evenings, Seating, Tally, probability_text
from ewens_widgets.views.page import STATUS, Dashboard, in_columns
from ewens_widgets.views.prior_chooser import prior_name

__all__ = ["PriorLab"]

_MANY = 1000
_COMPONENTS = 10


class PriorLab(Dashboard):
    """Seat guests by a prior on partitions, see what its clusters are like, and compare it with another.

    Guests are objects, tables are clusters. A partition that was typed, or made by moving guests to other
    tables, stays on display until the next guest comes; its probability is printed. It is not a draw, so the
    charts do not count it.

    Parameters
    ----------
    concentration
        Concentration λ of Ewens' prior, or its `Gamma` prior: short for ``prior=Ewens(λ)``. 1 by default.
    n
        Number of guests, up to 1000.
    prior
        Any prior of `ew.priors`, instead of the concentration.
    compare
        Prior to compare with, or None for nothing. By default Ewens' prior is compared with that of
        `n_components` components and the same λ, and any other prior with ``Ewens(1.0)``, the paper's.
    n_components
        Number of components k of the default comparison, 10 if not given.
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
    >>> ew.PriorLab(prior=ew.priors.FiniteMixture(), compare=ew.priors.PitmanYor(1.0, 0.5)).compare
    PitmanYor(concentration=1.0, discount=0.5)
    """

    css_class = "ew-lab ew-prior-lab ew-fills"
    stylesheet = Path(__file__).with_name("prior_lab.css")

    def __init__(
        self,
        concentration: Concentration | None = None,
        n: int = 50,
        *,
        prior: PartitionPrior | None = None,
        compare: PartitionPrior | str | None = "default",
        n_components: int | None = None,
        seed: int = 0,
    ) -> None:
        first = _first_prior(concentration, prior)
        second = _second_prior(first, compare, n_components)
        guests = check_count("n", n, 2)
        if guests > MOST_GUESTS:
            raise ValueError(f"the restaurant has room for {MOST_GUESTS} guests; got n = {guests}.")
        self._priors = (first,) if second is None else (first, second)
        self._evenings = Evenings(guests, self._priors, check_count("seed", seed, 0))
        self._edited: NDArray[np.intp] | None = None
        self._is_silent = False
        self._worker = Worker(self._evenings, speed=1 / 5)
        super().__init__(self._worker, self._worker.post)
        self._build(guests, first, second)
        self.lay_out(self.transport, self._columns(), names={".ew-chance": STATUS})
        self._prepare()
        self.attach(self)

    def _build(self, guests: int, first: PartitionPrior, second: PartitionPrior | None) -> None:
        post = self.post
        self.transport = SeatingTransport(
            lambda name: post(lambda: self._command(name)), lambda speed: post(lambda: self._set_speed(speed))
        )
        self.settings = PriorSettings(guests, first, second, lambda: post(self._change_priors))
        self.restaurants = tuple(
            RestaurantPanel(place + 1, colour, post, self._take) for place, colour in enumerate(COLOURS)
        )
        self.field = entry(
            "partition",
            "",
            parse_partition,
            "ew-typed",
            "A partition: clusters such as 1 2 | 3, or labels such as 0 0 1",
        )
        self.field.control.placeholder = "1 2 | 3, or drag guests to other tables"
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
                "ew-column-restaurant": (*self.restaurants, typed, self.chance),
                "ew-column-laws": (self.law, self.growth, self.sizes),
            }
        )

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The restaurants and the charts."""
        return *self.restaurants[: len(self._priors)], self.law, self.growth, self.sizes

    @property
    def prior(self) -> PartitionPrior:
        """The prior on display."""
        return self._priors[0]

    @property
    def compare(self) -> PartitionPrior | None:
        """The prior it is compared with, if any."""
        return self._priors[1] if len(self._priors) > 1 else None

    @property
    def concentration(self) -> Concentration | None:
        """Concentration λ of the prior, or its Gamma prior; None if the prior has none."""
        return getattr(self.prior, "concentration", None)

    @property
    def n(self) -> int:
        """Number of guests."""
        return self._evenings.n

    @property
    def seatings(self) -> tuple[Seating, ...]:
        """The restaurant under each prior."""
        return self._evenings.seatings

    @property
    def tally(self) -> Tally:
        """The finished seatings so far, under the first prior; see `seatings` for those of both."""
        return self.seatings[0].tally

    @property
    def labels(self) -> NDArray[np.intp]:
        """The partition on display: the guests so far under the first prior, or what was typed or dragged."""
        return self.seatings[0].labels.copy() if self._edited is None else self._edited

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
        return self.prior.log_pmf(_labels_of(partition))

    def status_line(self) -> str:
        """Who came last, how many tables there are, and how many partitions have been drawn."""
        if self._worker.error is not None:
            return self._worker.status.message
        first = self.seatings[0]
        arrivals = [seating.arrival for seating in self.seatings]
        if all(arrival is None for arrival in arrivals):
            parts = [f"{first.labels.size} of {self.n} guests seated"]
        else:
            where = [
                arrival.text("" if place else "chance ")
                for place, arrival in enumerate(arrivals)
                if arrival is not None
            ]
            parts = [f"guest {first.labels.size} of {self.n} {' and '.join(where)}"]
        tables = [int(seating.labels.max(initial=-1)) + 1 for seating in self.seatings]
        parts.append(" and ".join(map(str, tables)) + (" table" if tables == [1] else " tables"))
        drawn = first.tally.n_draws
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
        seated = self.seatings[0].labels.size
        self._worker.step(self.n if seated == self.n else self.n - seated)

    def _reset(self) -> None:
        self._evenings.reset()
        self._worker.outdate()

    def _draw(self, count: int) -> None:
        self._take(None)
        self._evenings.draw(count)
        self._worker.outdate()

    def _set_speed(self, speed: float) -> None:
        guests = float(self.n) if speed == PARTITION else speed
        self._worker.speed = None if guests == math.inf else guests

    def _change_priors(self) -> None:
        """Begin anew with other priors or another number of guests: old draws have another law."""
        try:
            guests, first, second = self.settings.read()
        except ValueError:
            return  # it is explained beside the field, and what is on display stays as it is
        priors = (first,) if second is None else (first, second)
        if (guests, priors) == (self.n, self._priors):
            return
        self._priors = priors
        self._evenings = Evenings(guests, priors, self._evenings.seed)
        self._worker.replace(self._evenings)
        self._set_speed(self.transport.speed.value)
        self._prepare()

    def _prepare(self) -> None:
        for place, restaurant in enumerate(self.restaurants):
            is_there = place < len(self._priors)
            assign(restaurant.layout, display="" if is_there else "none")
            if is_there:
                restaurant.prepare(self._priors[place], is_alone=len(self._priors) == 1)
        for chart in (self.law, self.sizes, self.growth):
            chart.prepare(self.n, self._priors)
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
        """Show the restaurants and the draws so far."""
        self.transport.show(escape(self.status_line()), tick.status.is_running)
        self._show_partition()
        tallies = [seating.tally for seating in self.seatings]
        self.law.show(tallies)
        self.sizes.show(tallies)
        self.growth.show([seating.path for seating in self.seatings])

    def _show_partition(self) -> None:
        lines = []
        for place, (restaurant, seating) in enumerate(zip(self.restaurants, self.seatings, strict=False)):
            labels = seating.labels if self._edited is None else self._edited
            capacity = self.n if self._edited is None else labels.size
            came = self._edited is None and seating.arrival is not None
            restaurant.show(labels, capacity, labels.size - 1 if came else None)
            name = chip(COLOURS[place], prior_name(seating.prior))
            lines.append(
                f'<div class="ew-prior-{place + 1}">{name} {probability_text(labels, seating.prior)}</div>'
                if labels.size
                else ""
            )
        guests = self.labels.size
        if not guests:
            text = "Nobody is here yet: press Step or Play."
        elif self._edited is None:
            text = "Probability of this guest:" if guests == 1 else f"Probability of these {guests} guests:"
        else:
            text = f"Probability of your partition of {guests} objects:"
        assign(self.chance, value=text + "".join(lines))

    def __repr__(self) -> str:
        against = "" if self.compare is None else f" against {prior_name(self.compare)}"
        return f"PriorLab({prior_name(self.prior)}{against}: {self.status_line()})"


def _first_prior(concentration: Concentration | None, prior: PartitionPrior | None) -> PartitionPrior:
    if prior is None:
        return Ewens(1.0 if concentration is None else concentration)
    if concentration is not None:
        raise ValueError(
            f"concentration is short for prior=Ewens(concentration): give one of them; got both, "
            f"{concentration!r} and {prior!r}."
        )
    return _check_prior("prior", prior)


def _second_prior(
    first: PartitionPrior, compare: PartitionPrior | str | None, n_components: int | None
) -> PartitionPrior | None:
    if compare == "default":
        if not isinstance(first, Ewens) and n_components is None:
            return Ewens(1.0)
        if not isinstance(first, Ewens):
            raise ValueError(
                f"n_components is for comparing Ewens' prior; with {first!r} give compare=, such as "
                f"compare=ew.priors.DirichletMultinomial({n_components!r}, 1.0)."
            )
        rate = first.concentration.mean if isinstance(first.concentration, Gamma) else first.concentration
        components = _COMPONENTS if n_components is None else check_count("n_components", n_components, 1)
        return DirichletMultinomial(components, rate)
    if n_components is not None:
        raise ValueError(
            f"n_components is short for compare=DirichletMultinomial(n_components, λ): give one of them; "
            f"got both, {n_components!r} and {compare!r}."
        )
    return None if compare is None else _check_prior("compare", compare)


def _check_prior(name: str, prior: object) -> PartitionPrior:
    if not isinstance(prior, PartitionPrior):
        raise TypeError(
            f"{name} must be one of ew.priors, such as ew.priors.FiniteMixture() or "
            f"ew.priors.PitmanYor(1.0, 0.5); got {prior!r}."
        )
    return prior


def _labels_of(partition: str | ArrayLike) -> NDArray[np.intp]:
    labels = parse_partition(partition) if isinstance(partition, str) else check_labels(partition)
    return canonical_labels(labels)
