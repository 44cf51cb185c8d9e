"""The similarity as a picture: the paper's figure, and pixels, our encoder against another's reader."""

from io import BytesIO

import numpy as np
import pytest
from analysis.plots.drawing import TRUE
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from PIL import Image

from ewens_widgets.analysis.plots import (
    plot_heatmap,
)
from ewens_widgets.analysis.plots.heatmap_plot import encode_png, ordered_means, spread_rows
from ewens_widgets.analysis.plots.palette import (
    class_colours,
)
from ewens_widgets.sampling.trace import Trace


def test_the_heatmap_shows_the_ordered_distance(trace: Trace) -> None:
    tree = trace.similarity_tree("average")
    figure = plot_heatmap(trace, tree=tree)
    order = tree.leaves_order
    image = figure.axes[0].images[0]
    np.testing.assert_allclose(image.get_array(), trace.distance()[np.ix_(order, order)])
    # White is 1 and black is 0, as in the paper.
    assert to_hex(image.to_rgba(np.array([[1.0]]))[0, 0]) == "#ffffff"
    assert to_hex(image.to_rgba(np.array([[0.0]]))[0, 0]) == "#000000"
    (beside,) = [child for child in figure.axes[0].child_axes if child.get_xlabel() == "share apart"]
    (lines,) = [entry for entry in beside.collections if isinstance(entry, LineCollection)]
    assert len(lines.get_segments()) == trace.n_objects - 1


def test_strips_of_the_same_partition_look_the_same(trace: Trace) -> None:
    n_objects = trace.n_objects
    labels = np.arange(n_objects) % 3
    sizes = np.repeat(
        [0, 1, 2], [n_objects // 6, n_objects // 3, n_objects - n_objects // 6 - n_objects // 3]
    )
    for found in (labels, sizes):
        figure = plot_heatmap(trace, labels=found, true=(found + 1) % 3)
        strips = {child.get_xlabel(): child for child in figure.axes[0].child_axes}
        pixels = [np.asarray(strips[name].images[0].get_array()) for name in ("found", "true")]
        assert np.array_equal(*pixels)


def test_strips_follow_the_order(trace: Trace) -> None:
    figure = plot_heatmap(trace, true=TRUE)
    order = trace.similarity_tree().leaves_order
    (strip,) = [child for child in figure.axes[0].child_axes if child.get_xlabel() == "true"]
    found = [to_hex(pixel) for pixel in strip.images[0].get_array()[:, 0]]
    assert found == [class_colours(3)[label].lower() for label in TRUE[order]]


def test_large_matrices_are_averaged(monkeypatch: pytest.MonkeyPatch, trace: Trace) -> None:
    matrix = np.arange(25.0).reshape(5, 5)
    matrix = matrix + matrix.T
    small = ordered_means(matrix, np.arange(5), 3)
    assert small.shape == (3, 3)
    assert small[0, 0] == matrix[:2, :2].mean()
    assert small[2, 2] == matrix[4, 4]
    monkeypatch.setattr("ewens_widgets.analysis.plots.heatmap_plot._MOST_PRINTED", 3)
    assert plot_heatmap(trace).axes[0].images[0].get_array().shape == (3, 3)


def test_many_objects_are_averaged_in_blocks(rng: np.random.Generator) -> None:
    matrix = rng.random((10, 10))
    matrix += matrix.T
    order = rng.permutation(10)
    ordered = matrix[np.ix_(order, order)]
    blocks = ordered_means(matrix, order, 4)
    assert blocks.shape == (4, 4)
    np.testing.assert_allclose(blocks[0, 1], ordered[:3, 3:6].mean())
    np.testing.assert_allclose(blocks[2, 3], ordered[6:9, 9].mean())
    np.testing.assert_allclose(blocks[3, 3], ordered[9, 9])
    np.testing.assert_array_equal(ordered_means(matrix, order, 10), ordered)


def test_spread_rows() -> None:
    np.testing.assert_array_equal(spread_rows(5, 10), np.arange(5))
    rows = spread_rows(1_000_000)
    assert rows.size == 400
    assert (rows[0], rows[-1]) == (0, 999_999)
    assert np.ptp(np.diff(rows)) <= 1


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
