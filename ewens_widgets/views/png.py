"""A minimal encoder of PNG pictures with a palette: one byte a pixel, fast enough for a live display."""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["encode_png"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_INDEXED = 3


def encode_png(indices: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
    """Encode a picture.

    Parameters
    ----------
    indices
        Place of each pixel's colour in the palette, a row of the picture a row.
    palette
        Colours, one a row: red, green, blue.
    """
    if indices.dtype != np.uint8 or indices.ndim != 2 or 0 in indices.shape:
        raise ValueError(f"a picture is a matrix of uint8, got {indices.dtype} of shape {indices.shape}")
    if palette.dtype != np.uint8 or palette.ndim != 2 or palette.shape[1] != 3 or len(palette) > 256:
        raise ValueError(f"a palette has up to 256 rows of 3 uint8, got {palette.dtype} {palette.shape}")
    height, width = indices.shape
    # Each row starts with the number of its filter; 0 is none.
    rows = np.zeros((height, width + 1), dtype=np.uint8)
    rows[:, 1:] = indices
    header = struct.pack(">IIBBBBB", width, height, 8, _INDEXED, 0, 0, 0)
    return b"".join(
        [
            _SIGNATURE,
            _chunk(b"IHDR", header),
            _chunk(b"PLTE", palette.tobytes()),
            # The quickest level: the picture lives for some milliseconds, mostly on the same machine.
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), 1)),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
