"""Numbers as a person reads them in a sentence."""

import math

__all__ = ["count", "from_log", "signed"]

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def count(number: int, one: str, several: str | None = None) -> str:
    """A number with its noun."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def signed(value: float) -> str:
    """A number with three decimals and its sign, the minus as it is printed in books."""
    return f"{value:+.3f}".replace("-", "−")


def from_log(log_value: float) -> str:
    """A number given by its logarithm, however small or large."""
    power = log_value / math.log(10.0)
    if -4.0 <= power <= 6.0:
        return f"{math.exp(log_value):.3g}"
    if not math.isfinite(power):
        return "0" if power < 0 else "∞"
    whole = math.floor(power)
    return f"{10.0 ** (power - whole):.2f}·10{str(whole).translate(_RAISED)}"
