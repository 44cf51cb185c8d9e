r"""What a lecturer does to the plane: sliders, a matrix to type, and the paper's three maps as buttons.

Rows are points, so a matrix A acts from the right, y → y A + a, as in the paper. Every invertible A is

.. math:: A = \begin{pmatrix} s_1 & 0 \\ 0 & \pm s_2 \end{pmatrix}
        \begin{pmatrix} 1 & 0 \\ h & 1 \end{pmatrix}
        \begin{pmatrix} \cos\varphi & \sin\varphi \\ -\sin\varphi & \cos\varphi \end{pmatrix}

in one way: first each column is scaled (the second mirrored, if the determinant is negative), then the first
column is sheared by h times the second, then everything is rotated by φ anticlockwise. These `Steps` are what
the sliders say.

The matrix is what counts. A slider that is moved changes it; a matrix that is typed or chosen moves the
sliders to the steps that it does. What the page shows is rounded, the sliders to whole steps and the text to
three digits; the exact numbers stay until somebody really moves a slider or types another matrix.

`Steps` and the texts need no widget. They are here because they are the notation of these controls, of use to
nobody else; what a map does to data and models is in `analysis.invariance`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from ipywidgets import Button, Checkbox, FloatLogSlider, FloatSlider, HBox, VBox

from ewens_widgets.analysis.invariance import PAPER_MATRICES
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.views.base import assign, note
from ewens_widgets.views.fields import entry

__all__ = ["MapControls", "Steps", "format_matrix", "parse_matrix"]

# A matrix whose columns are closer to each other than this is refused: rounding would decide.
_LEAST_CONDITION = 1e-6
_LARGEST = 1e6


_RANGES = {"rotation": (-180.0, 180.0), "scale_x": (-1.0, 1.0), "scale_y": (-1.0, 1.0), "shear": (-5.0, 5.0)}
_SHIFT = (-10.0, 10.0)
_PRESETS = {
    "I": "No change: the data as they were drawn",
    "II": "The first column times 10: other units",
    "III": "The paper's matrix [[4.1, 1.1], [2.1, 1.1]]: stretched and sheared",
}


class MapControls(VBox):
    """Says what is done to the plane.

    Parameters
    ----------
    post
        Brings a command to the event loop.
    on_change
        Called there after each change.
    """

    def __init__(self, post: Callable[[Callable[[], None]], None], on_change: Callable[[], None]) -> None:
        self.matrix: FloatArray = np.eye(2)
        self._on_change = on_change
        self._post = post
        self._is_silent = False
        self.presets = {name: self._preset(name, hint) for name, hint in _PRESETS.items()}
        self.sliders = {
            "shift_x": _slider("shift x", _SHIFT, 0.1, "Adds to the first column"),
            "shift_y": _slider("shift y", _SHIFT, 0.1, "Adds to the second column"),
            "rotation": _slider("rotate °", _RANGES["rotation"], 1.0, "Turns the plane, anticlockwise"),
            "scale_x": _log_slider("scale x", "Multiplies the first column"),
            "scale_y": _log_slider("scale y", "Multiplies the second column"),
            "shear": _slider(
                "shear", _RANGES["shear"], 0.05, "Adds a multiple of the second column to the first"
            ),
        }
        # What the sliders were put to, exactly.
        self._placed = {name: float(slider.value) for name, slider in self.sliders.items()}
        self._is_mirrored = False
        self.mirror = Checkbox(
            description="mirror", indent=False, tooltip="Changes the sign of the second column"
        )
        self.field = entry(
            "matrix",
            format_matrix(self.matrix),
            parse_matrix,
            "ew-matrix",
            "Two rows of two numbers; points are multiplied by it from the right",
        )
        for name, slider in self.sliders.items():
            slider.add_class(f"ew-{name.replace('_', '-')}")
            slider.add_class("ew-slider")
            slider.observe(self._on_slider, "value")
        self.mirror.add_class("ew-mirror")
        self.mirror.observe(self._on_slider, "value")
        self.field.control.observe(self._on_typed, "value")
        buttons = HBox((note("ew-presets-label", "the paper's"), *self.presets.values()))
        buttons.add_class("ew-presets")
        super().__init__((buttons, *self.sliders.values(), self.mirror, self.field))
        self.add_class("ew-map")

    def _preset(self, name: str, hint: str) -> Button:
        button = Button(description=name, tooltip=hint)
        button.add_class(f"ew-paper-{name}")
        button.on_click(lambda _: self._post(lambda: self.choose(name)))
        return button

    @property
    def shift(self) -> tuple[float, float]:
        """What is added in the end."""
        return self._value("shift_x"), self._value("shift_y")

    def choose(self, name: str) -> None:
        """Take one of the paper's matrices, without a shift."""
        self._show(PAPER_MATRICES[name], (0.0, 0.0))
        self._on_change()

    def set(self, matrix: FloatArray, shift: tuple[float, float] = (0.0, 0.0)) -> None:
        """Take a matrix and a shift."""
        self._show(parse_matrix(" ".join(map(repr, np.asarray(matrix, dtype=float).ravel().tolist()))), shift)
        self._on_change()

    def _on_slider(self, _: dict[str, Any]) -> None:
        if not self._is_silent:
            self._post(self._take_sliders)

    def _on_typed(self, _: dict[str, Any]) -> None:
        if not self._is_silent:
            self._post(self._take_matrix)

    def _take_sliders(self) -> None:
        values = {name: self._value(name) for name in self.sliders}
        if values == self._placed and self.mirror.value == self._is_mirrored:
            return
        self._placed, self._is_mirrored = values, self.mirror.value
        steps = {name: values[name] for name in _RANGES}
        self.matrix = Steps(**steps, mirrored=self._is_mirrored).matrix()
        self._quietly(self.field.control, value=format_matrix(self.matrix))
        self.field.problem = ""
        self._on_change()

    def _value(self, name: str) -> float:
        """What a slider says; where the page has only rounded it to whole steps, what it was put to."""
        slider, placed = self.sliders[name], self._placed[name]
        value = float(slider.value)
        moved = np.log10(value / placed) if isinstance(slider, FloatLogSlider) else value - placed
        return placed if abs(moved) <= 0.5 * slider.step + 1e-9 else value

    def _take_matrix(self) -> None:
        if self.field.control.value == format_matrix(self.matrix):
            # The text is rounded: it must not take the place of the numbers that it stands for.
            self.field.problem = ""
            return
        try:
            matrix = self.field.read()
        except ValueError:
            return
        self._show(matrix, self.shift)
        self._on_change()

    def _show(self, matrix: FloatArray, shift: tuple[float, float]) -> None:
        self.matrix = matrix
        steps = Steps.of(matrix)
        for name, (low, high) in _RANGES.items():
            value = getattr(steps, name)
            place = np.log10(value) if name.startswith("scale") else value
            limits = {"min": min(low, np.floor(place)), "max": max(high, np.ceil(place))}
            self._quietly(self.sliders[name], **limits, value=value)
        self._quietly(self.mirror, value=steps.mirrored)
        for name, value in zip(("shift_x", "shift_y"), shift, strict=True):
            limits = {"min": min(_SHIFT[0], value), "max": max(_SHIFT[1], value)}
            self._quietly(self.sliders[name], **limits, value=value)
        self._placed = {name: float(slider.value) for name, slider in self.sliders.items()}
        self._is_mirrored = steps.mirrored
        self._quietly(self.field.control, value=format_matrix(matrix))
        self.field.problem = ""

    def _quietly(self, widget: Any, **traits: Any) -> None:  # noqa: ANN401 - traits are of any type
        self._is_silent = True
        try:
            assign(widget, **traits)
        finally:
            self._is_silent = False


@dataclass(frozen=True)
class Steps:
    """What the sliders say: scales, shear, rotation in degrees, and whether the second column is mirrored."""

    scale_x: float = 1.0
    scale_y: float = 1.0
    shear: float = 0.0
    rotation: float = 0.0
    mirrored: bool = False

    def matrix(self) -> FloatArray:
        """The matrix A that does all of them, from the right."""
        angle = np.deg2rad(self.rotation)
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        sign = -1.0 if self.mirrored else 1.0
        scales = np.diag([self.scale_x, sign * self.scale_y])
        return scales @ np.array([[1.0, 0.0], [self.shear, 1.0]]) @ turn

    @classmethod
    def of(cls, matrix: FloatArray) -> "Steps":
        """Find the steps that a matrix does."""
        scale_x = float(np.hypot(*matrix[0]))
        across = matrix[0] / scale_x
        scale_y = float((matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0]) / scale_x)
        return cls(
            scale_x=scale_x,
            scale_y=abs(scale_y),
            shear=float(matrix[1] @ across / scale_y) + 0.0,
            rotation=float(np.rad2deg(np.arctan2(across[1], across[0]))) + 0.0,
            mirrored=scale_y < 0.0,
        )


def parse_matrix(text: str) -> FloatArray:
    """Read an invertible 2 × 2 matrix such as ``4.1 1.1; 2.1 1.1`` or ``[[4.1, 1.1], [2.1, 1.1]]``."""
    parts = [part for part in re.split(r"[\s,;\[\]()]+", text.strip()) if part]
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        wrong = next(part for part in parts if not _is_number(part))
        raise ValueError(f"{wrong!r} is not a number; write for example 4.1 1.1; 2.1 1.1.") from None
    if len(numbers) != 4:
        raise ValueError(
            f"a matrix of two rows and two columns has 4 numbers, got {len(numbers)}; write for example "
            "4.1 1.1; 2.1 1.1."
        )
    matrix = np.array(numbers).reshape(2, 2)
    if not np.all(np.abs(matrix) <= _LARGEST):
        raise ValueError(f"the numbers must be finite and at most {_LARGEST:g} in size.")
    values = np.linalg.svd(matrix, compute_uv=False)
    if values[1] <= _LEAST_CONDITION * values[0]:
        raise ValueError(
            "this matrix is singular (or nearly so): it presses the plane onto a line, and what is lost "
            "cannot come back. Change one of its numbers."
        )
    return matrix


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def format_matrix(matrix: FloatArray) -> str:
    """Write a matrix as `parse_matrix` reads it, with three digits."""
    rows = (" ".join(f"{value:.3g}" for value in np.where(np.abs(row) < 1e-12, 0.0, row)) for row in matrix)
    return "; ".join(rows)


def _slider(name: str, limits: tuple[float, float], step: float, hint: str) -> FloatSlider:
    return FloatSlider(
        value=0.0,
        min=limits[0],
        max=limits[1],
        step=step,
        description=name,
        tooltip=hint,
        readout_format=".2f",
    )


def _log_slider(name: str, hint: str) -> FloatLogSlider:
    return FloatLogSlider(
        value=1.0,
        base=10.0,
        min=-1.0,
        max=1.0,
        step=0.01,
        description=name,
        tooltip=hint,
        readout_format=".3g",
    )
