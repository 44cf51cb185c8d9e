r"""Affine maps of two columns, as five numbers with a meaning and as a matrix.

Rows are points, so a matrix A acts from the right, y → y A + a, as in the paper. Every invertible A is

.. math:: A = \begin{pmatrix} s_1 & 0 \\ 0 & \pm s_2 \end{pmatrix}
        \begin{pmatrix} 1 & 0 \\ h & 1 \end{pmatrix}
        \begin{pmatrix} \cos\varphi & \sin\varphi \\ -\sin\varphi & \cos\varphi \end{pmatrix}

in one way: first each column is scaled (the second mirrored, if the determinant is negative), then the first
column is sheared by h times the second, then everything is rotated by φ anticlockwise.
"""

import re
from dataclasses import dataclass

import numpy as np

from ewens_widgets.datasets._synthetic import SCALING, SHEAR
from ewens_widgets.model.checks import FloatArray, ModelName

__all__ = ["PAPER_MATRICES", "Steps", "format_matrix", "invariant_models", "mapped", "parse_matrix"]

PAPER_MATRICES: dict[str, FloatArray] = {"I": np.eye(2), "II": SCALING, "III": SHEAR}
"""The transformations of the unit square, by the model that they are meant for."""

# A matrix whose columns are closer to each other than this is refused: rounding would decide.
_LEAST_CONDITION = 1e-6
_LARGEST = 1e6


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


def mapped(
    X: FloatArray, columns: tuple[int, int], matrix: FloatArray, shift: tuple[float, float]
) -> FloatArray:
    """Map two columns of the data; the others stay as they are."""
    result = np.array(X)
    result[:, columns] = X[:, columns] @ matrix + np.asarray(shift)
    return result


def invariant_models(matrix: FloatArray, n_features: int) -> tuple[ModelName, ...]:
    """Which models give the same posterior by theory, if two of so many columns are mapped like this."""
    names: list[ModelName] = []
    gram = matrix @ matrix.T
    is_similarity = np.allclose(gram, gram[0, 0] * np.eye(2), rtol=0.0, atol=1e-9 * gram.max())
    if is_similarity and (n_features == 2 or abs(gram[0, 0] - 1.0) < 1e-9):
        names.append("I")
    size = 1e-9 * np.abs(matrix).max()
    # One entry in each row and column: the columns are scaled, mirrored or swapped.
    if np.all((np.abs(matrix) > size).sum(axis=0) == 1) and np.all((np.abs(matrix) > size).sum(axis=1) == 1):
        names.append("II")
    return (*names, "III")
