"""How long to run, and what to leave out."""

from collections.abc import Callable
from typing import Any

from ipywidgets import VBox

from ewens_widgets.views.base import Silence
from ewens_widgets.views.fields import entry, whole_number

__all__ = ["RunPanel"]

_MOST_ITERATIONS = 10_000_000


class RunPanel(VBox):
    """Fields of iterations and burn-in, which change a running chain without starting it anew.

    Parameters
    ----------
    iterations, burn_in
        What the fields show at first.
    on_change
        Called after a change, on the thread of the message.
    """

    def __init__(self, iterations: int, burn_in: int, on_change: Callable[[], None]) -> None:
        self.iterations = entry(
            "iterations",
            str(iterations),
            whole_number("iterations", 1, _MOST_ITERATIONS),
            "ew-iterations",
            "Playing stops after so many iterations; more can be added at any time",
        )
        self.burn_in = entry(
            "burn-in",
            str(burn_in),
            whole_number("burn-in", 0, _MOST_ITERATIONS),
            "ew-burn-in",
            "So many first iterations are left out of averages, tree and heatmap",
        )
        super().__init__((self.iterations, self.burn_in))
        self._silence = Silence()
        self._on_change = on_change
        for field in (self.iterations, self.burn_in):
            field.control.observe(self._changed, "value")

    def _changed(self, _: dict[str, Any]) -> None:
        if not self._silence:
            self._on_change()

    def read(self) -> tuple[int, int]:
        """Iterations and burn-in; what is wrong is explained beside the field, and raises `ValueError`."""
        iterations, burn_in = self.iterations.read(), self.burn_in.read()
        if burn_in >= iterations:
            self.burn_in.problem = f"burn-in must be below the {iterations} iterations; got {burn_in}."
            raise ValueError(self.burn_in.problem)
        return iterations, burn_in

    def show(self, iterations: int, burn_in: int) -> None:
        """Show given values; nobody is told of a change."""
        with self._silence:
            self.iterations.control.value = str(iterations)
            self.burn_in.control.value = str(burn_in)
