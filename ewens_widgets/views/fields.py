"""Controls that explain a wrong value right below it."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from html import escape
from typing import Any

import numpy as np
from ipywidgets import HTML, Button, Dropdown, Text, ToggleButtons, VBox, Widget
from numpy.typing import ArrayLike, NDArray
from traitlets import Unicode, observe

from ewens_widgets.arguments import check_positive
from ewens_widgets.model.checks import check_theta_grid
from ewens_widgets.sampling.moves.move import Move, Option
from ewens_widgets.views.base import assign, button, look, make, show_if

_MOST_VALUES = 100  # of a grid
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_POWERS = re.compile(r"2\^(-?\d{1,3})\s*(?:…|\.\.\.?|to|:)\s*2\^(-?\d{1,3})")


class Field(VBox):
    """A control, and below it a line with its help and its problem.

    Parameters
    ----------
    control
        The control.
    parse
        Returns the parsed value, or raises `ValueError` or `TypeError` with a sentence.
    css_class
        Class of the element.
    shown
        What is shown, if the control is only a part of it.
    """

    children: tuple[Widget, ...]

    problem = Unicode()
    """What is wrong with the value, as plain text; empty for a valid one."""

    help_text = Unicode()
    """Sentence below the control, as plain text."""

    def __init__(
        self,
        control: Widget,
        parse: Callable[[Any], Any],
        css_class: str,
        help_text: str = "",
        shown: Widget | None = None,
    ) -> None:
        self.control = control
        self._parse = parse
        self._line: HTML | None = None  # made when there is something to say
        super().__init__((control if shown is None else shown,), **look(f"ew-field {css_class}"))
        self.help_text = help_text

    @observe("problem", "help_text")
    def _write(self, _: object) -> None:
        parts = {"ew-problem": self.problem, "ew-help": self.help_text}
        html = "".join(f'<div class="{name}">{escape(text)}</div>' for name, text in parts.items() if text)
        if self._line is None:
            self._line = make(HTML, "", html)
            self.children = (*self.children, self._line)
        assign(self._line, value=html)

    def read(self) -> Any:  # noqa: ANN401 - fields hold values of any type
        """Return the parsed value; explain a wrong one below the control and raise."""
        try:
            value = self._parse(self.control.value)
        except (ValueError, TypeError) as error:
            self.problem = str(error)
            raise
        self.problem = ""
        return value


def entry(description: str, value: str, parse: Callable[[str], Any], css_class: str, tooltip: str) -> Field:
    """Field with a text to type."""
    control = make(Text, value=value, description=description, tooltip=tooltip, continuous_update=False)
    return Field(control, parse, css_class)


def choice(
    description: str, options: list[tuple[str, Any]], value: object, css_class: str, tooltip: str
) -> Field:
    """Field for one of several options."""
    control = make(Dropdown, options=options, value=value, description=description, tooltip=tooltip)
    return Field(control, lambda chosen: chosen, css_class)


def button_choice(
    description: str, options: list[tuple[str, Any, str]], value: object, css_class: str, tooltip: str
) -> Field:
    """Field for one of a few options that are all to be seen: name, value and tooltip of each."""
    pairs, tooltips = [option[:2] for option in options], [option[2] for option in options]
    said = {"description": description, "tooltip": tooltip, "tooltips": tooltips}
    control = make(ToggleButtons, "ew-button-choice", options=pairs, value=value, **said)
    return Field(control, lambda chosen: chosen, css_class)


def buttons(rows: Iterable[tuple[str, str, str, str]], command: Callable[[str], None]) -> dict[str, Button]:
    """Make buttons from their name, icon, class and tooltip; a click calls `command` with the name."""
    return {
        name: button(name, css_class, tooltip, lambda name=name: command(name), icon=icon)  # type: ignore[misc]
        for name, icon, css_class, tooltip in rows
    }


def option_field(option: Option, move: Move) -> Field:
    """Field for an option of a move, with the value that it has there."""
    value = getattr(move, option.name)
    if option.values:
        names = [(name, name) for name in option.values]
        return choice(option.title, names, value, f"ew-{option.key}", option.help)
    return entry(option.title, f"{value:g}", parse_share(option.title), f"ew-{option.key}", option.help)


def show_only(fields: Mapping[str, Field], names: set[str]) -> None:
    """Show these fields and hide the others."""
    for name, field in fields.items():
        show_if(field, name in names)


def read_shown(fields: Mapping[str, Field]) -> dict[str, Any]:
    """Values of all fields that are shown; raise `ValueError` after all wrong ones have been explained."""
    values = {}
    shown = {name: field for name, field in fields.items() if field.layout.display != "none"}
    for name, field in shown.items():
        with suppress(ValueError, TypeError):
            values[name] = field.read()
    if problems := [field.problem for field in shown.values() if field.problem]:
        raise ValueError(" ".join(problems))
    return values


def number(text: str) -> float:
    """Read a number, with a point or a comma."""
    plain = text.strip().replace(",", ".")
    if not _NUMBER.fullmatch(plain):
        raise ValueError(f"{text.strip()!r} is not a number; write for example 0.5.")
    return float(plain)


def parse_positive(name: str) -> Callable[[str], float]:
    """Make a parser of positive numbers."""
    return lambda text: check_positive(name, number(text))


def parse_share(name: str) -> Callable[[str], float]:
    """Make a parser of probabilities below 1."""

    def parse(text: str) -> float:
        value = number(text)
        if not 0.0 <= value < 1.0:
            raise ValueError(f"{name} must be at least 0 and below 1; got {text.strip()}.")
        return value

    return parse


def whole_number(name: str, least: int, most: int = 2**53) -> Callable[[str], int]:
    """Make a parser of whole numbers."""

    def parse(text: str) -> int:
        plain = re.sub(r"[\s_]", "", text)
        if not re.fullmatch(r"[+-]?\d{1,18}", plain):
            raise ValueError(f"{name} must be a whole number; got {text.strip()!r}.")
        if not least <= int(plain) <= most:
            raise ValueError(f"{name} must lie between {least} and {most}; got {plain}.")
        return int(plain)

    return parse


def parse_grid(
    text: str, check: Callable[[ArrayLike], NDArray[np.float64]] = check_theta_grid
) -> NDArray[np.float64] | None:
    """Read a grid: powers of two such as ``2^-3 … 2^10``, or numbers with commas; empty: the default.

    `check` returns a grid of the parameter, θ by default, or refuses it.
    """
    plain = text.strip()
    if not plain:
        return None
    powers = _POWERS.fullmatch(plain)
    if powers:
        low, high = int(powers[1]), int(powers[2])
        if not -60 <= low <= high <= 60:
            raise ValueError(f"the powers must increase and lie between -60 and 60; got {plain}.")
        return check(2.0 ** np.arange(low, high + 1))
    parts = [part for part in re.split(r"[,;\s]+", plain) if part]
    if len(parts) > _MOST_VALUES:
        raise ValueError(f"the grid may have at most {_MOST_VALUES} values; got {len(parts)}.")
    return check([_grid_value(part) for part in parts])


def _grid_value(text: str) -> float:
    above, slash, below = text.partition("/")
    if slash:
        return number(above) / (number(below) or np.nan)
    base, caret, power = text.partition("^")
    return number(base) ** number(power) if caret else number(text)
