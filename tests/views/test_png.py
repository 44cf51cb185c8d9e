"""Our encoder against a reader that is not ours."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from ewens_widgets.analysis.plots.heatmap_plot import encode_png


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (400, 420)])
def test_a_reader_sees_the_same_pixels(shape: tuple[int, int], rng: np.random.Generator) -> None:
    palette = rng.integers(0, 256, (230, 3)).astype(np.uint8)
    indices = rng.integers(0, 230, shape).astype(np.uint8)
    with Image.open(BytesIO(encode_png(indices, palette))) as picture:
        picture.verify()
    with Image.open(BytesIO(encode_png(indices, palette))) as picture:
        np.testing.assert_array_equal(np.asarray(picture.convert("RGB")), palette[indices])


@pytest.mark.parametrize(
    ("indices", "palette", "complaint"),
    [
        (np.zeros((2, 2)), np.zeros((2, 3), dtype=np.uint8), "matrix of uint8"),
        (np.zeros((0, 2), dtype=np.uint8), np.zeros((2, 3), dtype=np.uint8), "matrix of uint8"),
        (np.zeros((2, 2), dtype=np.uint8), np.zeros((300, 3), dtype=np.uint8), "256 rows"),
    ],
)
def test_what_is_no_picture_is_refused(indices: np.ndarray, palette: np.ndarray, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        encode_png(indices, palette)
