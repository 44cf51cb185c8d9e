"""Predictions and exercises of the tutorials: cells that take a guess or an answer, and say what follows.

A prediction is written down before the result is seen (`predict`) and compared with it afterwards
(`reveal`). An exercise is checked without containing its solution (`check`): the answer is rounded to a
step, and a digest of the result recognises it. Solutions for teachers are in ``docs/solutions.md``.

A lesson needs one line of code: ``from ewens_widgets.course import check, predict, reveal``.
"""

from fractions import Fraction
from hashlib import sha256
from math import isfinite
from typing import Any

DIGESTS: dict[str, tuple[float, str]] = {
    "02.E1": (0.005, "1c74a0e3042ee0b2"),
    "02.E2": (0.25, "c59d1af62dc593fc"),
    "03.E1": (2e-05, "025bb197362883c9"),
    "03.E2": (0.05, "9de3b9ee7b15a110"),
    "04.E1": (0.005, "11143d5963875fea"),
    "04.E2": (0.0005, "4784d84fee33a33c"),
    "05.E1": (0.02, "e6c08bb425ecd653"),
    "05.E2": (0.0005, "c59e117ef02f0e3b"),
    "06.E1": (0.0025, "a4b2341a04a2ea00"),
    "06.E2": (0.005, "33e8bb41e6efcdc1"),
    "07.E1": (0.0025, "7456fd278b695c33"),
    "07.E2": (0.0025, "8fa290e771667eb5"),
    "08.E1": (0.0025, "2b9a5ed369bd51a1"),
    "08.E2": (0.0025, "6b7738d61d91431b"),
    "09.E1": (0.001, "e52b60caaa5b7bd6"),
    "09.E2": (0.005, "80a3730f4bcf1a8e"),
    "10.E1": (0.005, "8f346b3bcd0fb84d"),
    "10.E2": (500, "9c3744b462f77f28"),
    "11.E1": (0.0025, "b874f548f495ffce"),
    "11.E2": (0.0005, "d2cf1dbfdf49402d"),
    "12.E1": (0.25, "1cdf25b5572f7e2a"),
    "12.E2": (0.25, "eeb6462d7be1eee4"),
    "13.E1": (0.005, "7945468fd483601c"),
    "13.E2": (0.01, "82332b71b93184b6"),
    "14.E1": (0.0025, "52ed4067e5a2a79f"),
    "14.E2": (0.0025, "d9bb95c93060210a"),
    "15.E1": (0.25, "a9f37bdfb5af43cb"),
    "15.E2": (0.25, "3f8c077810d28710"),
    "16.E1": (0.1, "b065a17a2f790ef0"),
    "16.E2": (0.0025, "63f9ff7747f3f114"),
    "17.E1": (0.0025, "1bbb84868ad02f2a"),
    "17.E2": (0.0025, "757ca93c5c8a4ec3"),
    "18.E1": (0.0025, "3cf9ec55733930dc"),
    "18.E2": (0.0025, "b18346b8e9b88689"),
    "18.E3": (0.15, "cf7f87627e10c8c3"),
    "18.E4": (0.0005, "1552576d6670e880"),
}
"""For each exercise the step to which its answer is rounded, and the digest of the right one."""


def predict(guess: float | str | None) -> None:
    """Say whether a guess (a number or a short text) has been written down, before the result is shown.

    Examples
    --------
    >>> predict(None)
    No guess yet: write yours in place of None, and run this cell again before you go on.
    >>> predict(5)
    Your guess is 5. Now run the next cell.
    """
    none = "No guess yet: write yours in place of None, and run this cell again before you go on."
    print(none if guess is None else f"Your guess is {guess}. Now run the next cell.")  # noqa: T201


def reveal(guess: float | str | None, result: float | str) -> None:
    """Print a result, beside the guess that was given to `predict`, if there was one.

    Examples
    --------
    >>> reveal(5, 3.776)
    The result is 3.78; your guess was 5.
    >>> reveal(None, "B")
    The result is B.
    """
    shown = result if isinstance(result, str) else f"{result:.3g}"
    print(f"The result is {shown}" + ("." if guess is None else f"; your guess was {guess}."))  # noqa: T201


def check(exercise: str, answer: float | str | None) -> None:
    """Say whether a number is the answer to an exercise, e.g. ``"04.E1"``, or within two steps of it.

    Text such as ``"1/3"`` is read as a number.

    Examples
    --------
    >>> check("18.E1", None)
    18.E1: no answer yet
    >>> check("18.E1", "a third")
    18.E1: write one number, such as 0.25 or 1 / 4
    """
    if exercise not in DIGESTS:
        raise ValueError(f"there is no exercise {exercise!r}; there are {', '.join(sorted(DIGESTS))}")
    step, right = DIGESTS[exercise]
    if answer is None:
        verdict = "no answer yet"
    elif (number := _number(answer)) is None:
        verdict = "write one number, such as 0.25 or 1 / 4"
    else:
        near = [_digest(exercise, round(number / step) + shift) for shift in (-2, -1, 0, 1, 2)]
        verdict = "right" if right in near else "not yet, try again"
    print(f"{exercise}: {verdict}")  # noqa: T201 - for the reader of a notebook


def _number(answer: object) -> float | None:
    """The finite number that an answer is, as a number, a text or an array of one."""
    try:
        one: Any = getattr(answer, "item", lambda: answer)()
        number = float(Fraction(one) if isinstance(one, str) else one)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    return number if isfinite(number) else None


def digest(exercise: str, answer: float, step: float) -> str:
    """Make the line of `DIGESTS` for a new exercise; answers may be two steps from the right one."""
    return f'"{exercise}": ({step:g}, "{_digest(exercise, round(answer / step))}"),'


def _digest(exercise: str, rounded: int) -> str:
    return sha256(f"{exercise}: {rounded}".encode()).hexdigest()[:16]
