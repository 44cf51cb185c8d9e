"""Buttons and sliders of the prior lab: how fast guests come, and what the prior is.

A lecturer plays slowly first, a guest a second, and as fast as it goes later. The unit of speed is a guest,
and one whole partition a frame is offered besides, whatever their number n. Each slider says below it what it
means, because λ, n and k are the lesson.
"""

import math
from collections.abc import Callable
from typing import Any

from ipywidgets import Dropdown, FloatLogSlider, HBox, IntSlider, SelectionSlider

from ewens_widgets.views.base import assign, note
from ewens_widgets.views.fields import Field, buttons

__all__ = ["COMPONENTS", "MOST_GUESTS", "PARTITION", "SPEEDS", "PriorSettings", "SeatingTransport"]

MOST_GUESTS = 1000

COMPONENTS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000)
"""Numbers of components that the slider offers."""

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
    """The prior: concentration, number of guests, number of components, each a slider in a field.

    Parameters
    ----------
    concentration, n, n_components
        Values to begin with.
    on_prior
        Called when concentration or number of guests were changed.
    on_components
        Called when the number of components was changed.
    """

    def __init__(
        self,
        concentration: float,
        n: int,
        n_components: int,
        on_prior: Callable[[dict[str, Any]], None],
        on_components: Callable[[dict[str, Any]], None],
    ) -> None:
        place = math.log10(concentration)
        self.concentration = FloatLogSlider(
            value=concentration,
            base=10.0,
            min=min(-1.0, math.floor(place)),
            max=max(2.0, math.ceil(place)),
            step=0.01,
            description="λ",
            readout_format=".3g",
            tooltip="Concentration λ",
        )
        self.n = IntSlider(value=n, min=2, max=MOST_GUESTS, description="n", tooltip="Number of guests")
        self.components = SelectionSlider(
            options=sorted({*COMPONENTS, n_components}),
            value=n_components,
            description="k",
            tooltip="Number of components of the finite mixture",
        )
        fields = []
        for slider, css_class, text in (
            (
                self.concentration,
                "ew-lambda",
                "Concentration: how readily a guest opens a new table. About λ log n tables are opened.",
            ),
            (self.n, "ew-guests", "Guests are objects, tables are clusters."),
            (
                self.components,
                "ew-components",
                "A mixture of k components with Dirichlet(λ/k) weights: as k grows, it becomes this prior.",
            ),
        ):
            slider.add_class("ew-slider")
            fields.append(Field(slider, lambda value: value, css_class, text))
        self.concentration.observe(on_prior, "value")
        self.n.observe(on_prior, "value")
        self.components.observe(on_components, "value")
        self.fields = tuple(fields)
