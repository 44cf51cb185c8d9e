"""Members of a zip archive from anywhere: read within limits, and as nothing but numbers.

A few kilobytes of zip can claim, or really unpack to, any amount of memory; the header of an ``.npy`` file
can claim any shape and is, elsewhere, evaluated as Python. So sizes are checked before memory is taken, the
header must match a pattern letter by letter, and the array must be exactly as large as what is there.
"""

import json
import math
import re
import struct
import zipfile
import zlib
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.memory import check_fits

__all__ = ["MALFORMED", "Members"]

MALFORMED = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    OSError,
    OverflowError,
    RuntimeError,  # a password, an unknown compression, or brackets nested too deep
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading raises where content is not what it should be."""

_LARGEST_TEXT = 8 * 2**20  # As Python objects, JSON takes many times its size.
_PIECE = 2**20
_MAGIC = b"\x93NUMPY\x01\x00"
_LARGEST_SIDE = 10**15
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufcSU]\d{1,6})', 'fortran_order': (True|False), 'shape': "
    rb"\(((?:\d{1,16},)|(?:\d{1,16}(?:, \d{1,16})+)|)\), \} *\n"
)


class Members:
    """Members of one archive, which together may not take more memory than one result may.

    Parameters
    ----------
    archive
        An open zip archive.
    source
        How messages name the file.
    """

    def __init__(self, archive: zipfile.ZipFile, source: str) -> None:
        self._archive = archive
        self._source = source
        self._taken = 0

    def content(self, name: str, largest: int | None = None) -> bytes:
        """Bytes of a member."""
        member = self._admitted(name)
        if largest is not None and member.file_size > largest:
            raise ValueError(f"{name} has {member.file_size} bytes; at most {largest} are read")
        return self._archive.read(member)

    def settings(self, name: str) -> dict[str, Any]:
        """Settings in a member of JSON."""
        found = json.loads(self.content(name, _LARGEST_TEXT), parse_constant=_refuse_constant)
        if not isinstance(found, dict):
            raise TypeError(f"{name} holds no settings")
        return found

    def array(self, name: str) -> NDArray[Any]:
        """Array of numbers or plain text in a member of the ``.npy`` format."""
        member = self._admitted(name)
        with self._archive.open(member) as stream:
            dtype, shape, in_columns = _npy_header(stream, name)
            if math.prod(shape) * dtype.itemsize != member.file_size - stream.tell():
                raise ValueError(f"{name} is not as long as its header says")
            flat = np.empty(math.prod(shape), dtype=dtype)
            _fill(stream, flat.view(np.uint8).data, name)
        return flat.reshape(shape, order="F" if in_columns else "C")

    def _admitted(self, name: str) -> zipfile.ZipInfo:
        """Look a member up; refuse it if it cannot be read plainly, or would take too much memory."""
        member = self._archive.getinfo(name)
        if member.flag_bits & 0x1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is encrypted, or compressed in an unknown way")
        self._taken += member.file_size
        check_fits(self._taken, f"reading {self._source}", "Use a machine with more memory.")
        return member


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that settings may hold")


def _npy_header(stream: IO[bytes], name: str) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Type, shape and order (whether by columns) that an ``.npy`` header tells."""
    start = stream.read(len(_MAGIC) + 2)
    if start[: len(_MAGIC)] != _MAGIC or len(start) < len(_MAGIC) + 2:
        raise ValueError(f"{name} is not an array in the npy format, version 1")
    (length,) = struct.unpack("<H", start[len(_MAGIC) :])
    found = _NPY_HEADER.fullmatch(stream.read(length))
    if found is None:
        raise ValueError(f"{name} has a header that NumPy would not write for numbers or text")
    shape = tuple(int(side) for side in found[3].decode().replace(",", " ").split())
    if math.prod(max(side, 1) for side in shape) > _LARGEST_SIDE:
        raise ValueError(f"{name} claims an absurd shape")
    dtype: np.dtype[Any] = np.dtype(found[1].decode())
    if not dtype.itemsize:
        raise ValueError(f"{name} holds text without letters")
    return dtype, shape, found[2] == b"True"


def _fill(stream: IO[bytes], room: memoryview, name: str) -> None:
    """Read exactly as much as there is room for, in pieces, so that nothing is in memory twice."""
    done = 0
    while done < len(room):
        piece = stream.read(min(_PIECE, len(room) - done))
        if not piece:
            raise EOFError(f"{name} ends early")
        room[done : done + len(piece)] = piece
        done += len(piece)
    if stream.read(1):
        raise ValueError(f"{name} is longer than its header says")
