"""The prior lab: the clusters that a prior on partitions expects before any data, and how two priors differ.

A lecturer seats guests one by one, in one restaurant or in two, and has the class bet on the table of the
next; then draws a thousand partitions at once and compares their clusters with the exact distribution; then
changes a parameter, or takes another prior, and the distribution follows. A partition can also be typed, or
made by moving guests to other tables: its probability under each prior is shown. It is no draw, so the charts
do not count it.

Guests are seated in the background of the notebook. Every change of the restaurants is a command on the event
loop, so a drag, a click on Step and an arriving guest are handled one after the other.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from html import escape
from typing import Any

import numpy as np
from ipywidgets import Checkbox, Dropdown, HBox, IntSlider
from numpy.typing import ArrayLike, NDArray

from ewens_widgets import partition as partitions
from ewens_widgets.arguments import check_count
from ewens_widgets.model.priors import DirichletMultinomial, Ewens, PartitionPrior
from ewens_widgets.model.priors.ewens import Concentration, Gamma
from ewens_widgets.playback import Tick, Worker
from ewens_widgets.playback.frame import number_text
from ewens_widgets.views.base import Panel, Silence, assign, button, chip, look, make, note, show_if
from ewens_widgets.views.fields import Field, buttons, entry
from ewens_widgets.views.labs.prior_charts import COLOURS, DistributionPanel, GrowthPanel, SizesPanel
from ewens_widgets.views.labs.restaurant import (
    RestaurantPanel,
    Seating,
    Seatings,
    Tally,
    probability_text,
)
from ewens_widgets.views.page import STATUS, Dashboard, in_columns
from ewens_widgets.views.prior_chooser import PriorChooser, prior_name

MOST_GUESTS = 1000

PARTITION = -1.0
"""Speed that means one partition per frame."""

SPEEDS: tuple[tuple[str, float], ...] = (
    ("1 guest per second", 1 / 20),
    ("4 guests per second", 1 / 5),
    ("1 guest per frame", 1.0),
    ("1 partition per frame", PARTITION),
    ("as fast as it goes", math.inf),
)
"""Name, and guests per frame; about 20 frames per second are shown."""

_BUTTONS = (
    ("Play", "play", "ew-play", "Seat guests until you pause"),
    ("Pause", "pause", "ew-pause", "Stop seating guests"),
    ("Step", "step-forward", "ew-step", "Seat one guest"),
    ("Fill", "fast-forward", "ew-fill", "Seat all guests of this restaurant"),
    ("Draw 1000", "random", "ew-draw", "Draw 1000 partitions at once and count their clusters"),
    ("Reset", "refresh", "ew-reset", "Empty the restaurant and delete the draws"),
)
_DRAWS = 1000
_COMPONENTS = 10
_SHARED = "concentration"


class PriorLab(Dashboard):
    """Seat guests by a prior on partitions, see what its clusters are like, and compare it with another.

    Guests are objects, tables are clusters. A partition that you type, or make by moving guests to other
    tables, stays on display with its probability until the next guest is seated. It is not a draw, so the
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
        Prior to compare with, or None for nothing. By default Ewens' prior is compared with
        ``DirichletMultinomial(10, λ)``, 10 components and the same λ, and any other prior with
        ``Ewens(1.0)``, the paper's.
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

    def __init__(
        self,
        concentration: Concentration | None = None,
        n: int = 50,
        *,
        prior: PartitionPrior | None = None,
        compare: PartitionPrior | str | None = "default",
        seed: int = 0,
    ) -> None:
        first = _first_prior(concentration, prior)
        second = _second_prior(first, compare)
        guests = check_count("n", n, 2)
        if guests > MOST_GUESTS:
            raise ValueError(f"the restaurant has room for {MOST_GUESTS} guests; got n = {guests}.")
        self._priors = (first,) if second is None else (first, second)
        self._seatings = Seatings(guests, self._priors, check_count("seed", seed, 0))
        self._edited: NDArray[np.intp] | None = None
        self._silence = Silence()
        self._worker = Worker(self._seatings, speed=1 / 5)
        super().__init__(self._worker, self._worker.post)
        self._build(guests, first, second)
        self._prepare()
        self.attach(self)

    def _build(self, guests: int, first: PartitionPrior, second: PartitionPrior | None) -> None:
        post = self.post

        def changed(*_: object) -> None:
            post(self._change_priors)

        self.buttons = buttons(_BUTTONS, lambda name: post(lambda: self._command(name)))
        speed: dict[str, Any] = {"options": SPEEDS, "value": 1 / 5, "description": "speed"}
        self.speed = make(Dropdown, "ew-speed", tooltip="How fast guests are seated", **speed)
        self.status = note("ew-status")
        size: dict[str, Any] = {"value": guests, "min": 2, "max": MOST_GUESTS, "description": "n"}
        self.guests = make(IntSlider, "ew-slider", tooltip="Number of guests", **size)
        self.choosers = (
            PriorChooser(first, changed),
            PriorChooser(second, changed, description="and", is_optional=True),
        )
        for place, chooser in enumerate(self.choosers, start=1):
            chooser.add_class(f"ew-chooser-{place}")
        rates = [getattr(given, _SHARED, None) for given in (first, second)]
        is_shared = None not in rates and rates[0] == rates[1] and type(first) is not type(second)
        same: dict[str, Any] = {
            "description": "the same λ",
            "tooltip": "The second λ follows the first",
            "indent": False,
        }
        self.shared = make(Checkbox, value=is_shared, **same)
        self.shared_field = Field(self.shared, bool, "ew-shared")
        self._arrange()
        self.restaurants = tuple(
            RestaurantPanel(place + 1, colour, post, self._edit) for place, colour in enumerate(COLOURS)
        )
        hint = "A partition: clusters such as 1 2 | 3, or labels such as 0 0 1"
        self.field = entry("partition", "", partitions.parse_partition, "ew-typed", hint)
        self.field.control.placeholder = "1 2 | 3, or drag guests to other tables"
        hint = "Return to the sampled seating"
        self.back = button("Back to the draw", "ew-back", hint, lambda: post(lambda: self._edit(None)))
        show_if(self.back, False)
        self.chance = note("ew-result ew-chance")
        commands = {
            self.speed: self._set_speed,
            self.guests: self._change_priors,
            self.shared: self._change_priors,
            self.field.control: self._read_typed,
        }
        self._silence.commands(post, commands)
        self.charts = DistributionPanel(), GrowthPanel(), SizesPanel()
        self.distribution, self.growth, self.sizes = self.charts
        typed = HBox((self.field, self.back), **look("ew-typed-row"))
        n_field = Field(self.guests, int, "ew-guests", "Guests are objects, tables are clusters.")
        columns = {
            "ew-settings": (n_field, *self.choosers, self.shared_field),
            "ew-column-restaurant": (*self.restaurants, typed, self.chance),
            "ew-column-charts": self.charts,
        }
        row = HBox((*self.buttons.values(), self.speed, self.status), **look("ew-transport"))
        self.lay_out(row, in_columns(columns), names={".ew-chance": STATUS})

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The restaurants and the charts."""
        return *self.restaurants[: len(self._priors)], *self.charts

    @property
    def prior(self) -> PartitionPrior:
        """The prior on display."""
        return self._priors[0]

    @property
    def compare(self) -> PartitionPrior | None:
        """The prior it is compared with, if any."""
        return self._priors[1] if len(self._priors) > 1 else None

    @property
    def n(self) -> int:
        """Number of guests."""
        return self._seatings.n

    @property
    def seatings(self) -> tuple[Seating, ...]:
        """The restaurant under each prior."""
        return self._seatings.each

    @property
    def tally(self) -> Tally:
        """The finished seatings so far, under the first prior; see `seatings` for those of both."""
        return self.seatings[0].tally

    @property
    def labels(self) -> NDArray[np.intp]:
        """The partition on display: the guests so far under the first prior, or what was typed or dragged."""
        return self.seatings[0].labels.copy() if self._edited is None else self._edited

    def step(self, guests: int = 1) -> None:
        """Seat guests, now."""
        self._edit(None)
        self._worker.run_sync(guests)
        self._worker.refresh()

    def draw(self, partitions: int = _DRAWS) -> None:
        """Draw partitions, now, and count their clusters."""
        count = check_count("partitions", partitions, 1)
        self._worker.pause()
        self._worker.post(lambda: self._draw(count))
        self._worker.refresh()

    def show_partition(self, partition: str | ArrayLike) -> None:
        """Show a partition, as text or as labels."""
        self._worker.post(lambda: self._edit(_labels_of(partition)))
        self._worker.refresh()

    def log_probability(self, partition: str | ArrayLike) -> float:
        """Log probability of a partition, as text or as labels, under the prior on display."""
        return self.prior.log_pmf(_labels_of(partition))

    def caption(self) -> str:
        """The last guest, the number of tables, and the number of partitions drawn."""
        if self._worker.error is not None:
            return self._worker.status.message
        drawn, seated = self.tally.n_draws, f"{self.seatings[0].labels.size} of {self.n}"
        where = " and ".join(filter(None, (seating.arrival() for seating in self.seatings)))
        tables = [int(seating.labels.max(initial=-1)) + 1 for seating in self.seatings]
        parts = (
            f"guest {seated} {where.replace('(', '(chance ', 1)}" if where else f"{seated} guests seated",
            f"{' and '.join(map(str, tables))} table{'' if tables == [1] else 's'}",
            f"{number_text(drawn)} partition{'' if drawn == 1 else 's'} drawn",
        )
        return " · ".join(parts)

    def _command(self, name: str) -> None:
        if name != "Play":
            self._worker.pause()
        if name == "Pause":
            return
        self._edit(None)
        left = self.n - self.seatings[0].labels.size
        commands: dict[str, Callable[[], None]] = {
            "Play": self._worker.play,
            "Step": self._worker.step,
            "Fill": lambda: self._worker.step(left or self.n),
            "Draw 1000": lambda: self._draw(_DRAWS),
            "Reset": self._reset,
        }
        commands[name]()

    def _reset(self) -> None:
        self._seatings.reset()
        self._worker.outdate()

    def _draw(self, count: int) -> None:
        self._edit(None)
        self._seatings.draw(count)
        self._worker.outdate()

    def _set_speed(self) -> None:
        guests = float(self.n) if self.speed.value == PARTITION else self.speed.value
        self._worker.speed = None if guests == math.inf else guests

    def _arrange(self) -> None:
        """Have the second λ follow the first, if both priors have one and the box is ticked."""
        for chooser in self.choosers:
            chooser.arrange()
        kinds = [chooser.chosen for chooser in self.choosers]
        has_both = all(kind and _SHARED in (one.name for one in kind.parameters) for kind in kinds)
        first, second = self.choosers
        show_if(self.shared_field, has_both)
        follows = has_both and self.shared.value
        second.numbers[_SHARED].disable(follows)
        if follows:
            second.set_text(_SHARED, first.numbers[_SHARED].control.value)

    def _change_priors(self) -> None:
        """Turn to other priors or another number of guests: old draws have another distribution.

        With as many guests as before, draws and guests are replaced by those of the same seed, so that a
        parameter that is moved shows what it does.
        """
        self._arrange()
        # A wrong value is explained next to its field, and what is on display stays as it is.
        if any(chooser.problem for chooser in self.choosers):
            return
        guests, first, second = self.guests.value, *(chooser.read() for chooser in self.choosers)
        if first is None:
            return
        priors = (first,) if second is None else (first, second)
        if (guests, priors) == (self.n, self._priors):
            return
        self._priors, before = priors, self._seatings
        self._seatings = Seatings(guests, priors, before.seed)
        if guests == before.n:
            self._seatings.repeat(before)
        self._worker.replace(self._seatings)
        self._set_speed()
        self._prepare()

    def _prepare(self) -> None:
        for place, restaurant in enumerate(self.restaurants):
            show_if(restaurant, place < len(self._priors))
        for restaurant, prior in zip(self.restaurants, self._priors, strict=False):
            restaurant.prepare(prior, is_alone=len(self._priors) == 1)
        for chart in self.charts:
            chart.prepare(self.n, self._priors)
        self._worker.outdate()

    def _read_typed(self) -> None:
        is_empty = not self.field.control.value.strip()
        with suppress(ValueError):  # it is explained below the field
            self._edit(None if is_empty else self.field.read(), show_text=False)
            self.field.problem = ""

    def _edit(self, labels: NDArray[np.intp] | None, *, show_text: bool = True) -> None:
        """Show the user's own partition, or (None) return to the sampled seating."""
        if labels is None and self._edited is None:
            return
        self._worker.pause()
        self._edited = labels
        if show_text:
            text = ""
            if labels is not None and labels.size <= partitions.MOST_TYPED:
                text = partitions.format_partition(labels)
            with self._silence:
                assign(self.field.control, value=text)
            self.field.problem = ""
        show_if(self.back, labels is not None)
        # At once, so that a dragged guest stays where it was dropped.
        self._show_partition()
        self._worker.outdate()

    def show(self, tick: Tick) -> None:
        """Show the restaurants and the draws so far."""
        assign(self.status, value=escape(self.caption()))
        assign(self.buttons["Play"], button_style="" if tick.status.is_running else "primary")
        self._show_partition()
        tallies = [seating.tally for seating in self.seatings]
        self.distribution.show(tallies)
        self.sizes.show(tallies)
        self.growth.show([seating.path for seating in self.seatings])

    def _show_partition(self) -> None:
        guests = self.labels.size
        lines = ["No guest is seated yet: press Step or Play."]
        if self._edited is not None:
            lines = [f"Probability of your partition of {guests} objects:"]
        elif guests:
            lines = [f"Probability of {'this guest' if guests == 1 else f'these {guests} guests'}:"]
        for place, (restaurant, seating) in enumerate(zip(self.restaurants, self.seatings, strict=False)):
            labels = seating.labels if self._edited is None else self._edited
            capacity = self.n if self._edited is None else labels.size
            has_arrived = self._edited is None and bool(seating.arrival())
            restaurant.show(labels, capacity, labels.size - 1 if has_arrived else None)
            if labels.size:
                name = chip(COLOURS[place], prior_name(seating.prior))
                value = probability_text(labels, seating.prior)
                lines.append(f'<div class="ew-prior-{place + 1}">{name} {value}</div>')
        assign(self.chance, value="".join(lines))

    def __repr__(self) -> str:
        against = "" if self.compare is None else f" against {prior_name(self.compare)}"
        return f"PriorLab({prior_name(self.prior)}{against}: {self.caption()})"


def _first_prior(concentration: Concentration | None, prior: PartitionPrior | None) -> PartitionPrior:
    if prior is None:
        return Ewens(1.0 if concentration is None else concentration)
    if concentration is not None:
        raise ValueError(
            f"concentration is short for prior=Ewens(concentration): give one of them; got both, "
            f"{concentration!r} and {prior!r}."
        )
    return _check_prior("prior", prior)


def _second_prior(first: PartitionPrior, compare: PartitionPrior | str | None) -> PartitionPrior | None:
    if compare != "default":
        return None if compare is None else _check_prior("compare", compare)
    if not isinstance(first, Ewens):
        return Ewens(1.0)
    rate = first.concentration.mean if isinstance(first.concentration, Gamma) else first.concentration
    return DirichletMultinomial(_COMPONENTS, rate)


def _check_prior(name: str, prior: object) -> PartitionPrior:
    if not isinstance(prior, PartitionPrior):
        raise TypeError(
            f"{name} must be one of ew.priors, such as ew.priors.FiniteMixture() or "
            f"ew.priors.PitmanYor(1.0, 0.5); got {prior!r}."
        )
    return prior


def _labels_of(partition: str | ArrayLike) -> NDArray[np.intp]:
    if isinstance(partition, str):
        partition = partitions.parse_partition(partition)
    return partitions.canonical_labels(partitions.check_labels(partition))
