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
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
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
        self.sliders: dict[str, FloatSlider | FloatLogSlider] = {}
        for name, (title, low, high, step, tooltip) in _SLIDERS.items():
            kind, value, shown = (FloatLogSlider, 1, ".3g") if "scale" in name else (FloatSlider, 0, ".2f")
            traits = {"min": low, "max": high, "step": step, "value": value, "readout_format": shown}
            css_class = f"ew-{name.replace('_', '-')} ew-slider"
            self.sliders[name] = make(kind, css_class, description=title, tooltip=tooltip, **traits)
        hint = "Changes the sign of the second column"
        self.mirror = make(Checkbox, "ew-mirror", description="mirror", indent=False, tooltip=hint)
        hint = "Two rows of two numbers; points are multiplied by it from the right"
        self.field = entry("matrix", format_matrix(self.matrix), parse_matrix, "ew-matrix", hint)
        self._given = self._shown()
        for control in (*self.sliders.values(), self.mirror):
            self._silence.commands(post, {control: self._take_sliders})
        self._silence.commands(post, {self.field.control: self._take_matrix})
        label = note("ew-presets-label", "the paper's")
        presets = HBox((label, *self.presets.values()), **look("ew-presets"))
        super().__init__((presets, *self.sliders.values(), self.mirror, self.field), **look("ew-map"))

    @property
    def shift(self) -> tuple[float, float]:
        """What is added after the multiplication."""
        values = self._exact()
        return values["shift_x"], values["shift_y"]

    def choose(self, name: str) -> None:
        """Take one of the paper's matrices, without a shift."""
        self.set(PAPER_MATRICES[name])

    def set(self, matrix: FloatArray, shift: tuple[float, float] = (0.0, 0.0)) -> None:
        """Take a matrix and a shift."""
        self.matrix = parse_matrix(" ".join(map(repr, np.asarray(matrix, dtype=float).ravel().tolist())))
        values = {"shift_x": shift[0], "shift_y": shift[1], **asdict(Steps.of(self.matrix))}
        with self._silence:
            for name, slider in self.sliders.items():
                _, low, high, *_ = _SLIDERS[name]
                place = np.log10(values[name]) if "scale" in name else values[name]
                low, high = min(low, np.floor(place)), max(high, np.ceil(place))
                # In this order no value is ever outside: a page would clip it, and send that back.
                assign(slider, min=min(low, slider.min), max=max(high, slider.max))
                assign(slider, value=values[name])
                assign(slider, min=low, max=high)
            assign(self.mirror, value=values["mirrored"])
        self._given = self._shown()
        self._announce()

    def _shown(self) -> dict[str, Any]:
        """What sliders and box show."""
        sliders = {name: float(slider.value) for name, slider in self.sliders.items()}
        return {**sliders, "mirrored": bool(self.mirror.value)}

    def _exact(self) -> dict[str, Any]:
        """The same; the exact value where the page has only rounded it."""
        values = self._shown()
        for name, slider in self.sliders.items():
            given = self._given[name]
            moved = np.log10(values[name] / given) if "scale" in name else values[name] - given
            if abs(moved) <= 0.5 * slider.step + 1e-9:
                values[name] = given
        return values

    def _take_sliders(self) -> None:
        values = self._exact()
        if values != self._given:
            self._given = values
            self.matrix = Steps(**{field.name: values[field.name] for field in fields(Steps)}).matrix()
            self._announce()

    def _take_matrix(self) -> None:
        if self.field.control.value == format_matrix(self.matrix):
            self.field.problem = ""
            return
        with suppress(ValueError):  # it is explained below the field
            self.set(self.field.read(), self.shift)

    def _announce(self) -> None:
        """Write the matrix, and say that it has changed."""
        with self._silence:
            assign(self.field.control, value=format_matrix(self.matrix))
        self.field.problem = ""
        self._on_change()


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
