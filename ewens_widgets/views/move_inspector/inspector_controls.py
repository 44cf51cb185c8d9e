"""Which move to look at, and what to do with its proposal."""

from collections.abc import Callable
from typing import Any

from ipywidgets import HBox, ToggleButton, VBox

from ewens_widgets.sampling.moves.schedule import MOVES, Move
from ewens_widgets.sampling.moves.split_merge import SplitMerge
from ewens_widgets.views.fields import Field, buttons, choice, entry, parse_share, read_shown, show_only

__all__ = ["InspectorButtons", "MoveFields"]

_MOVES = [
    ("split-merge (paper 2)", "split-merge"),
    ("reassign (paper 1)", "reassign"),
    ("informed split-merge", "informed-split-merge"),
    ("Gibbs draw", "gibbs"),
]
_OPTIONS = {"within", "between", "jump"}

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
        given = move if isinstance(move, SplitMerge) else SplitMerge()
        self._probabilities = given.probabilities
        self.fields: dict[str, Field] = {
            "move": choice("move", _MOVES, move.name, "ew-move", "The move to look at"),
            "within": choice(
                "within",
                [(name, name) for name in ("average", "maximum", "minimum")],
                given.within,
                "ew-within",
                "Distance within a cluster: wide clusters are split",
            ),
            "between": choice(
                "between",
                [(name, name) for name in ("average", "maximum", "minimum", "hausdorff")],
                given.between,
                "ew-between",
                "Distance between clusters: near clusters are merged",
            ),
            "jump": entry(
                "core jump",
                f"{given.core_jump:g}",
                parse_share("core jump"),
                "ew-jump",
                "Probability that a core of a split changes sides",
            ),
        }
        super().__init__(tuple(self.fields.values()))
        self.add_class("ew-move-fields")
        self.arrange()
        for field in self.fields.values():
            field.control.observe(lambda _: changed(), "value")

    def arrange(self) -> None:
        """Show the options that the move has."""
        name = self.fields["move"].control.value
        show_only(self.fields, {"move"} | (_OPTIONS if name == SplitMerge.name else set()))

    def read(self) -> Move:
        """The move; a wrong option is explained beside its field, and raises `ValueError`."""
        values: dict[str, Any] = read_shown(self.fields)
        if values["move"] != SplitMerge.name:
            return MOVES[values["move"]]()
        return SplitMerge(values["within"], values["between"], self._probabilities, values["jump"])


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
