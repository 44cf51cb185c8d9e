r"""Controls of the affine lab: sliders, a matrix to type, and the paper's three maps as buttons.

Rows are points, so a matrix A acts from the right, y → y A + a, as in the paper. Every invertible A is

.. math:: A = \begin{pmatrix} s_1 & 0 \\ 0 & \pm s_2 \end{pmatrix}
        \begin{pmatrix} 1 & 0 \\ h & 1 \end{pmatrix}
        \begin{pmatrix} \cos\varphi & \sin\varphi \\ -\sin\varphi & \cos\varphi \end{pmatrix}

in one way. First each column is scaled; the second is mirrored as well if the determinant is negative. Then h
times the second column is added to the first. Last, everything is rotated by φ anticlockwise. The sliders
show these `Steps`.

The matrix is exact, and the page rounds: sliders to whole steps, the text to three digits. So a value that
comes back from the page changes the matrix only if it differs from what was shown.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from ipywidgets import Checkbox, FloatLogSlider, FloatSlider, HBox, VBox

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.playback.invariance import PAPER_MATRICES
from ewens_widgets.views.base import Post, Silence, assign, button, look, make, note
from ewens_widgets.views.fields import entry

# Matrices closer to singular than this are refused: rounding would decide the result.
_LEAST_CONDITION = 1e-6
_LARGEST = 1e6

# Name on the page, ends, step and tooltip; the scales have powers of ten.
_SLIDERS = {
    "shift_x": ("shift x", -10.0, 10.0, 0.1, "Adds to the first column"),
    "shift_y": ("shift y", -10.0, 10.0, 0.1, "Adds to the second column"),
    "rotation": ("rotate °", -180.0, 180.0, 1.0, "Rotates the plane anticlockwise"),
    "scale_x": ("scale x", -1.0, 1.0, 0.01, "Multiplies the first column"),
    "scale_y": ("scale y", -1.0, 1.0, 0.01, "Multiplies the second column"),
    "shear": ("shear", -5.0, 5.0, 0.05, "Adds a multiple of the second column to the first"),
}
_STEPS = ("rotation", "scale_x", "scale_y", "shear")
_PRESETS = {
    "I": "No change: the original data",
    "II": "The paper's diag(3, 1/3): other units",
    "III": "The paper's matrix [[4.1, 2.1], [1.9, 1.1]]: stretched and sheared",
}


class MapControls(VBox):
    """Controls of the map.

    Parameters
    ----------
    post
        Brings a command to the event loop.
    on_change
        Called there after each change.
    """

    def __init__(self, post: Post, on_change: Callable[[], None]) -> None:
        self.matrix: FloatArray = np.eye(2)
        self._on_change = on_change
        self._silence = Silence()
        self.presets = {
            name: button(name, f"ew-paper-{name}", hint, lambda name=name: post(lambda: self.choose(name)))  # type: ignore[misc]
            for name, hint in _PRESETS.items()
        }
        self.sliders = {name: _make_slider(name) for name in _SLIDERS}
        self.mirror = make(
            Checkbox,
            "ew-mirror",
            description="mirror",
            indent=False,
            tooltip="Changes the sign of the second column",
        )
        self.field = entry(
            "matrix",
            format_matrix(self.matrix),
            parse_matrix,
            "ew-matrix",
            "Two rows of two numbers; points are multiplied by it from the right",
        )
        self._remember()

        def on_slider(_: dict[str, Any]) -> None:
            if not self._silence:
                post(self._take_sliders)

        for control in (*self.sliders.values(), self.mirror):
            control.observe(on_slider, "value")
        self.field.control.observe(lambda _: None if self._silence else post(self._take_matrix), "value")
        presets = HBox(
            (note("ew-presets-label", "the paper's"), *self.presets.values()), **look("ew-presets")
        )
        super().__init__((presets, *self.sliders.values(), self.mirror, self.field), **look("ew-map"))

    @property
    def shift(self) -> tuple[float, float]:
        """What is added after the multiplication."""
        return self._value("shift_x"), self._value("shift_y")

    def choose(self, name: str) -> None:
        """Take one of the paper's matrices, without a shift."""
        self.set(PAPER_MATRICES[name])

    def set(self, matrix: FloatArray, shift: tuple[float, float] = (0.0, 0.0)) -> None:
        """Take a matrix and a shift."""
        self.matrix = parse_matrix(" ".join(map(repr, np.asarray(matrix, dtype=float).ravel().tolist())))
        steps = Steps.of(self.matrix)
        values = {"shift_x": shift[0], "shift_y": shift[1]} | {name: getattr(steps, name) for name in _STEPS}
        with self._silence:
            for name, value in values.items():
                _, low, high, *_ = _SLIDERS[name]
                place = np.log10(value) if name.startswith("scale") else value
                ends = {"min": min(low, np.floor(place)), "max": max(high, np.ceil(place))}
                assign(self.sliders[name], **ends, value=value)
            assign(self.mirror, value=steps.mirrored)
            assign(self.field.control, value=format_matrix(self.matrix))
        self._remember()
        self.field.problem = ""
        self._on_change()

    def _remember(self) -> None:
        """Keep the exact values that the sliders were given."""
        self._given = {name: float(slider.value) for name, slider in self.sliders.items()}
        self._is_mirrored = bool(self.mirror.value)

    def _value(self, name: str) -> float:
        """Value of a slider; the exact one if the page has only rounded it."""
        slider, given = self.sliders[name], self._given[name]
        value = float(slider.value)
        moved = np.log10(value / given) if isinstance(slider, FloatLogSlider) else value - given
        return given if abs(moved) <= 0.5 * slider.step + 1e-9 else value

    def _take_sliders(self) -> None:
        values = {name: self._value(name) for name in self.sliders}
        if values == self._given and self.mirror.value == self._is_mirrored:
            return
        self._given, self._is_mirrored = values, self.mirror.value
        self.matrix = Steps(**{name: values[name] for name in _STEPS}, mirrored=self._is_mirrored).matrix()
        with self._silence:
            assign(self.field.control, value=format_matrix(self.matrix))
        self.field.problem = ""
        self._on_change()

    def _take_matrix(self) -> None:
        if self.field.control.value == format_matrix(self.matrix):
            self.field.problem = ""
            return
        try:
            matrix = self.field.read()
        except ValueError:
            return
        self.set(matrix, self.shift)


@dataclass(frozen=True)
class Steps:
    """Scales, shear, rotation in degrees, and whether the second column is mirrored."""

    scale_x: float = 1.0
    scale_y: float = 1.0
    shear: float = 0.0
    rotation: float = 0.0
    mirrored: bool = False

    def matrix(self) -> FloatArray:
        """The matrix A that does all of them, from the right."""
        angle = np.deg2rad(self.rotation)
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        scales = np.diag([self.scale_x, -self.scale_y if self.mirrored else self.scale_y])
        return scales @ np.array([[1.0, 0.0], [self.shear, 1.0]]) @ turn

    @classmethod
    def of(cls, matrix: FloatArray) -> "Steps":
        """Find the steps of a matrix."""
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
    """Read an invertible 2 × 2 matrix such as ``4.1 2.1; 1.9 1.1`` or ``[[4.1, 2.1], [1.9, 1.1]]``."""
    numbers = []
    for part in filter(None, re.split(r"[\s,;\[\]()]+", text)):
        try:
            numbers.append(float(part))
        except ValueError:
            raise ValueError(f"{part!r} is not a number; write for example 4.1 2.1; 1.9 1.1.") from None
    if len(numbers) != 4:
        raise ValueError(
            f"a matrix of two rows and two columns has 4 numbers, got {len(numbers)}; write for example "
            "4.1 2.1; 1.9 1.1."
        )
    matrix = np.array(numbers).reshape(2, 2)
    if not np.all(np.abs(matrix) <= _LARGEST):
        raise ValueError(f"the numbers must be finite and at most {_LARGEST:g} in size.")
    values = np.linalg.svd(matrix, compute_uv=False)
    if values[1] <= _LEAST_CONDITION * values[0]:
        raise ValueError(
            "this matrix is singular, or nearly so: it maps the plane onto a line and cannot be inverted. "
            "Change one of its numbers."
        )
    return matrix


def format_matrix(matrix: FloatArray) -> str:
    """Write a matrix as `parse_matrix` reads it, with three digits."""
    rows = (" ".join(f"{value:.3g}" for value in np.where(np.abs(row) < 1e-12, 0.0, row)) for row in matrix)
    return "; ".join(rows)


def _make_slider(name: str) -> FloatSlider | FloatLogSlider:
    description, low, high, step, tooltip = _SLIDERS[name]
    is_log = name.startswith("scale")
    return make(
        FloatLogSlider if is_log else FloatSlider,
        f"ew-{name.replace('_', '-')} ew-slider",
        value=1.0 if is_log else 0.0,
        min=low,
        max=high,
        step=step,
        description=description,
        tooltip=tooltip,
        readout_format=".3g" if is_log else ".2f",
    )
