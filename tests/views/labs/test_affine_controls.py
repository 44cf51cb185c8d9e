"""Affine maps as steps and as matrices, and which models they leave alone."""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewens_widgets.playback.invariance import PAPER_MATRICES, invariant_models
from ewens_widgets.views.labs.affine_controls import Steps, format_matrix, parse_matrix

scales = st.floats(0.05, 20.0)


@given(scales, scales, st.floats(-8, 8), st.floats(-179.0, 179.0), st.booleans())
def test_steps_are_found_again_from_their_matrix(
    scale_x: float, scale_y: float, shear: float, rotation: float, mirrored: bool
) -> None:
    steps = Steps(scale_x, scale_y, shear, rotation, mirrored)
    found = Steps.of(steps.matrix())
    np.testing.assert_allclose(astuple(found), astuple(steps), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.matrix(), steps.matrix(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("step", "image"),
    [
        ({"scale_x": 3.0}, [3.0, 2.0]),
        ({"scale_y": 3.0}, [1.0, 6.0]),
        ({"shear": 0.5}, [2.0, 2.0]),
        ({"rotation": 90.0}, [-2.0, 1.0]),
        ({"mirrored": True}, [1.0, -2.0]),
    ],
)
def test_each_step_does_what_its_name_says(step: dict[str, float], image: list[float]) -> None:
    np.testing.assert_allclose(np.array([1.0, 2.0]) @ Steps(**step).matrix(), image, atol=1e-15)


@pytest.mark.parametrize(
    "text", ["4.1 2.1; 1.9 1.1", "[[4.1, 2.1], [1.9, 1.1]]", " 4.1,2.1 , 1.9,1.1 ", "4.1 2.1\n1.9 1.1"]
)
def test_matrices_are_read_in_several_ways_and_as_they_are_written(text: str) -> None:
    np.testing.assert_array_equal(parse_matrix(text), PAPER_MATRICES["III"])
    for matrix in PAPER_MATRICES.values():
        np.testing.assert_allclose(parse_matrix(format_matrix(matrix)), np.round(matrix, 3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2; 2 4", "singular"),
        ("0 0 0 0", "singular"),
        ("1 1; 1 1.0000001", "singular"),
        ("1 2 3", "has 4 numbers, got 3"),
        ("", "has 4 numbers, got 0"),
        ("1 a 2 3", "'a' is not a number"),
        ("1 nan 2 3", "finite"),
        ("1 inf 2 3", "finite"),
        ("1e9 0 0 1", "at most 1e"),
    ],
)
def test_what_is_no_invertible_matrix_is_explained(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_matrix(text)


@pytest.mark.parametrize(
    ("steps", "n_features", "models"),
    [
        (Steps(), 2, ("I", "II", "III")),
        (Steps(rotation=30.0), 2, ("I", "III")),
        (Steps(rotation=90.0), 2, ("I", "II", "III")),
        (Steps(scale_x=2.0, scale_y=2.0), 2, ("I", "II", "III")),
        (Steps(scale_x=3.0), 2, ("II", "III")),
        (Steps(mirrored=True), 2, ("I", "II", "III")),
        (Steps(shear=0.5), 2, ("III",)),
        (Steps.of(PAPER_MATRICES["III"]), 2, ("III",)),
        (Steps(scale_x=2.0, scale_y=2.0), 3, ("II", "III")),  # no common scale of three columns
        (Steps(rotation=30.0), 3, ("I", "III")),
    ],
)
def test_theory_says_which_models_are_invariant(
    steps: Steps, n_features: int, models: tuple[str, ...]
) -> None:
    assert invariant_models(steps.matrix(), n_features) == models
