"""The options of a random choice with their probabilities, as a short list."""

from html import escape

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.explanation.number_words import count
from ewens_widgets.analysis.explanation.proposal import Choice
from ewens_widgets.analysis.plots.palette import colour_of

__all__ = ["MOST_OPTIONS", "options_list"]

MOST_OPTIONS = 8


def options_list(
    choice: Choice, labels: NDArray[np.intp], slots: NDArray[np.intp], left_out: int | None
) -> str:
    """HTML of the most probable options; the chosen one is always among them.

    Parameters
    ----------
    choice
        What was chosen, and from what.
    labels, slots
        Partition, and colour slots of the objects.
    left_out
        Object that does not count as a member: it is the one being moved.
    """
    if not choice.examples:
        return ""
    order = np.argsort(-choice.probabilities, kind="stable")
    shown = order[:MOST_OPTIONS]
    if choice.chosen not in shown:
        shown = np.append(shown[:-1], choice.chosen)
    highest = float(choice.probabilities.max())
    rows = [_row(choice, int(place), labels, slots, left_out, highest) for place in shown]
    more = choice.probabilities.size - shown.size
    rest = f"<div>and {more} more</div>" if more > 0 else ""
    drawn = "" if choice.uniform is None else f" · uniform draw {choice.uniform:.4f}"
    heading = f"<div><b>{escape(choice.what)}</b>: {count(choice.probabilities.size, 'option')}{drawn}</div>"
    return f"{heading}{''.join(rows)}{rest}"


def _row(
    choice: Choice,
    place: int,
    labels: NDArray[np.intp],
    slots: NDArray[np.intp],
    left_out: int | None,
    highest: float,
) -> str:
    examples, probability = choice.examples[place], float(choice.probabilities[place])
    chips, sizes = [], []
    for example in examples:
        members = np.flatnonzero(labels == labels[example])
        sizes.append(str(members.size - (left_out is not None and left_out in members)))
        colour = colour_of(int(slots[example]))
        chips.append(f'<span class="ew-swatch" style="background:{colour}"></span>')
    name = f"{' + '.join(sizes)} objects" if examples else "a new cluster"
    is_chosen = place == choice.chosen
    text = f"<b>{name}, chosen</b>" if is_chosen else name
    marks = f'data-probability="{probability!r}" data-chosen="{str(is_chosen).lower()}"'
    return (
        f'<div class="ew-rate ew-option" {marks}>'
        f'<span>{"".join(chips)} {text}</span><span class="ew-rate-bar">'
        f'<span style="width:{100 * probability / highest:.0f}%"></span></span>'
        f"<span>{probability:.3g}</span></div>"
    )
