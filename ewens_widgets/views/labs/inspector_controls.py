"""Which move to look at, and what to do with its proposal."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ipywidgets import HBox, ToggleButton, VBox

from ewens_widgets.sampling.moves.move import MOVES, Move
from ewens_widgets.views.fields import Field, buttons, choice, option_field, read_shown, show_only

__all__ = ["InspectorButtons", "MoveFields"]

_BUTTONS = (
    ("Back", "step-backward", "ew-back", "One stage back"),
    ("Next stage", "step-forward", "ew-next-stage", "One stage on"),
    ("Propose again", "repeat", "ew-propose-again", "Another proposal from the same partition"),
    ("Accept anyway", "check", "ew-accept-anyway", "Go on from the proposed partition, whatever was decided"),
    ("Next iteration", "forward", "ew-next-iteration", "Do as was decided, and make the next proposal"),
    ("Run 50", "fast-forward", "ew-run-on", "Run 50 iterations of the sampler's schedule, then propose"),
    ("Reset", "refresh", "ew-reset", "Back to where the inspection began"),
)


class MoveFields(VBox):
    """The move and its options.

    Parameters
    ----------
    move
        What to show first.
    changed
        Called when a field has changed.
    """

    def __init__(self, move: Move, changed: Callable[[], None]) -> None:
        self._moves = {name: move if name == move.name else kind() for name, kind in MOVES.items()}
        # Names of the fields for a move's options, by move and option.
        self._fields_of: dict[str, dict[str, str]] = {}
        # The paper's proposal with its printed ratio is what one looks at first; sweeps have no proposal.
        kinds = sorted(MOVES.values(), key=lambda kind: (not kind.has_printed_ratio, kind.is_sweep))
        titles = [(kind.title, kind.name) for kind in kinds]
        self.fields: dict[str, Field] = {
            "move": choice("move", titles, move.name, "ew-move", "The move to look at")
        }
        for name, known in self._moves.items():
            keys = {option.name: option.key for option in known.choosable}
            taken = {option: f"{name}-{key}" if key in self.fields else key for option, key in keys.items()}
            self.fields |= {taken[option.name]: option_field(option, known) for option in known.choosable}
            self._fields_of[name] = taken
        super().__init__(tuple(self.fields.values()))
        self.add_class("ew-move-fields")
        self.arrange()
        for field in self.fields.values():
            field.control.observe(lambda _: changed(), "value")

    def arrange(self) -> None:
        """Show the options that the move has."""
        show_only(self.fields, {"move", *self._fields_of[self.fields["move"].control.value].values()})

    def read(self) -> Move:
        """The move; a wrong option is explained beside its field, and raises `ValueError`."""
        values: dict[str, Any] = read_shown(self.fields)
        name = values["move"]
        chosen = {option: values[key] for option, key in self._fields_of[name].items()}
        return replace(self._moves[name], **chosen)


class InspectorButtons(HBox):
    """Buttons for the proposal, and a switch for the printed ratio.

    Parameters
    ----------
    command
        Called with the name of a button that was clicked.
    switched
        Called when the switch has changed.
    """

    def __init__(self, command: Callable[[str], None], switched: Callable[[], None]) -> None:
        self.buttons = buttons(_BUTTONS, command)
        self.printed = ToggleButton(
            value=False,
            description="Ratio as printed",
            tooltip="What the ratio printed in the paper, with its proposal terms upside down, would decide",
        )
        self.printed.add_class("ew-as-printed")
        self.printed.observe(lambda _: switched(), "value")
        super().__init__((*self.buttons.values(), self.printed))
        self.add_class("ew-transport")
