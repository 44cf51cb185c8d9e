"""Buttons and menus of the prior lab: how fast guests come, what the prior is, and what it is compared with.

A lecturer plays slowly first, a guest a second, and as fast as it goes later. The unit of speed is a guest,
and one whole partition a frame is offered besides, whatever their number n.
"""

import math
from collections.abc import Callable
from typing import Any

from ipywidgets import Checkbox, Dropdown, HBox, IntSlider

from ewens_widgets.model.priors import PartitionPrior
from ewens_widgets.views.base import Silence, assign, note, show_if
from ewens_widgets.views.fields import Field, buttons
from ewens_widgets.views.prior_chooser import PriorChooser, kind_of

__all__ = ["MOST_GUESTS", "PARTITION", "SPEEDS", "PriorSettings", "SeatingTransport"]

MOST_GUESTS = 1000

PARTITION = -1.0
"""Speed that means one whole partition a frame."""

SPEEDS: tuple[tuple[str, float], ...] = (
    ("1 guest a second", 1 / 20),
    ("4 guests a second", 1 / 5),
    ("1 guest a frame", 1.0),
    ("1 partition a frame", PARTITION),
    ("as fast as it goes", math.inf),
)
"""What the user reads, and guests a frame; about 20 frames a second are shown."""

_BUTTONS = (
    ("Play", "play", "ew-play", "Seat guests until you pause"),
    ("Pause", "pause", "ew-pause", "Let the guests wait"),
    ("Step", "step-forward", "ew-step", "Seat one guest"),
    ("Fill", "fast-forward", "ew-fill", "Seat all guests of this restaurant"),
    ("Draw 1000", "random", "ew-draw", "Fill a thousand restaurants at once and count their tables"),
    ("Reset", "refresh", "ew-reset", "Empty the restaurant and forget the draws"),
)
_SHARED = "concentration"


class SeatingTransport(HBox):
    """The row of buttons.

    Parameters
    ----------
    on_command
        Called with the name of a button that was clicked.
    on_speed
        Called with a speed that was chosen.
    """

    def __init__(self, on_command: Callable[[str], None], on_speed: Callable[[float], None]) -> None:
        self.buttons = buttons(_BUTTONS, on_command)
        self.speed = Dropdown(
            options=SPEEDS, value=1 / 5, description="speed", tooltip="How fast guests come"
        )
        self.speed.add_class("ew-speed")
        self.speed.observe(lambda change: on_speed(change["new"]), "value")
        self.status = note("ew-status")
        super().__init__((*self.buttons.values(), self.speed, self.status))
        self.add_class("ew-transport")

    def show(self, text: str, is_running: bool) -> None:
        """Say what is going on; the text is HTML."""
        assign(self.status, value=text)
        assign(self.buttons["Play"], button_style="success" if is_running else "")


class PriorSettings:
    """The priors and the number of guests.

    Parameters
    ----------
    n
        Number of guests to begin with.
    prior, compare
        Priors to begin with; None to compare with nothing.
    on_change
        Called when something was changed, on the thread of the message.
    """

    def __init__(
        self,
        n: int,
        prior: PartitionPrior,
        compare: PartitionPrior | None,
        on_change: Callable[[], None],
    ) -> None:
        self._on_change = on_change
        self._silence = Silence()
        self.n = IntSlider(value=n, min=2, max=MOST_GUESTS, description="n", tooltip="Number of guests")
        self.n.add_class("ew-slider")
        self.n.observe(self._changed, "value")
        self.first = PriorChooser(prior, on_change)
        self.second = PriorChooser(compare, on_change, description="and", is_optional=True)
        self.first.add_class("ew-chooser-1")
        self.second.add_class("ew-chooser-2")
        both = [None if given is None else getattr(given, _SHARED, None) for given in (prior, compare)]
        is_shared = both[0] is not None and both[0] == both[1] and kind_of(prior) is not _kind(compare)
        self.shared = Checkbox(
            value=is_shared, description="the same λ", indent=False, tooltip="The second λ follows the first"
        )
        self.shared.observe(self._changed, "value")
        self._shared_field = Field(self.shared, bool, "ew-shared")
        self.fields = (
            Field(self.n, int, "ew-guests", "Guests are objects, tables are clusters."),
            self.first,
            self.second,
            self._shared_field,
        )
        self._arrange()

    def _changed(self, _: dict[str, Any]) -> None:
        if not self._silence:
            self._on_change()

    def read(self) -> tuple[int, PartitionPrior, PartitionPrior | None]:
        """Guests and priors; what is wrong is explained beside its field, and raises `ValueError`."""
        self._arrange()
        problems = []
        priors = []
        for chooser in (self.first, self.second):
            try:
                priors.append(chooser.read())
            except ValueError as error:
                problems.append(str(error))
        if problems or priors[0] is None:
            raise ValueError(" ".join(problems))
        return int(self.n.value), priors[0], priors[1]

    def _arrange(self) -> None:
        """Have the second λ follow the first, if both priors have one and the box is ticked."""
        for chooser in (self.first, self.second):
            chooser.arrange()
        has_both = all(_has_shared(chooser) for chooser in (self.first, self.second))
        show_if(self._shared_field, has_both)
        follows = has_both and self.shared.value
        self.second.numbers[_SHARED].disable(follows)
        if follows:
            self.second.set_text(_SHARED, self.first.numbers[_SHARED].control.value)


def _kind(prior: PartitionPrior | None) -> object:
    return None if prior is None else kind_of(prior)


def _has_shared(chooser: PriorChooser) -> bool:
    kind = chooser.chosen
    return kind is not None and any(parameter.name == _SHARED for parameter in kind.parameters)
