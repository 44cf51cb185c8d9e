"""What the commands share: checked arguments, and the error that ends a command."""

import argparse
from importlib.util import find_spec

__all__ = ["StartError", "need_package", "port", "positive_integer", "positive_number"]


class StartError(Exception):
    """Something is missing; the message says what, and what to do."""


def need_package(name: str, title: str) -> None:
    """Refuse to go on without a package of the extra `lab`, saying how to get it."""
    if find_spec(name) is None:
        raise StartError(f'{title} is not installed. Install it:  python -m pip install "ewens-widgets[lab]"')


def port(text: str) -> int:
    """Read a port number."""
    if not text.isdecimal() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a port; give a number from 0 (any free one) to 65535"
        )
    return int(text)


def positive_integer(text: str) -> int:
    """Read a whole number above 0."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def positive_number(text: str) -> float:
    """Read a number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number
