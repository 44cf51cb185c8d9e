"""Data to draw, and drawing them."""

import io

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from traces import blobs

X, TRUE = blobs(np.random.default_rng(0))


def drawn(figure: Figure) -> str:
    """The figure as SVG; drawing it is the test that nothing in it is wrong."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg")
    return buffer.getvalue()
