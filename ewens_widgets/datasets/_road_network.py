"""The UCI file "3D Road Network (North Jutland, Denmark)": finding it, fetching it, reading it.

The file ``3D_spatial_network.txt`` has 434,874 lines ``OSM_ID,LONGITUDE,LATITUDE,ALTITUDE`` and no header.
Its licence is not established, so it is not bundled. The download address is the one in public use for UCI's
data set 246; that it answers was not checked when this was written.
"""

import io
import math
import os
import warnings
import zipfile
import zlib
from array import array
from collections.abc import Iterable
from http.client import HTTPException
from pathlib import Path
from typing import TypeAlias
from urllib.request import Request, urlopen

from ewens_widgets.datasets._cache import cache_directory, write_atomically

__all__ = ["FILE_NAME", "Roads", "find_road_network", "read_road_network"]

FILE_NAME = "3D_spatial_network.txt"
DOWNLOAD_ADDRESS = "https://archive.ics.uci.edu/static/public/246/3d+road+network+north+jutland+denmark.zip"
_PAGE = "https://archive.ics.uci.edu/dataset/246/3d+road+network+north+jutland+denmark"
_STANDIN = "ewens_widgets.datasets.denmark_roads_standin(seed)"
_TIMEOUT_SECONDS = 20.0
# About ten times the real sizes: a guard against being sent something else.
_LARGEST_DOWNLOAD = 64 * 2**20
_LARGEST_FILE = 256 * 2**20

# In quotes because array.array takes a type argument at run time from Python 3.12 on only.
Roads: TypeAlias = "dict[int, array[float]]"


def find_road_network(path: str | os.PathLike[str] | None, *, download: bool) -> Roads:
    """Return the roads from ``path``, or else from the cache, or else from the network."""
    if path is not None:
        return _read_path(Path(path).expanduser())
    cached = cache_directory() / FILE_NAME
    if cached.is_file():
        return _read_path(cached)
    reason = "not tried, since download=False"
    if download:
        try:
            return _download_into(cached)
        except (OSError, HTTPException, ValueError) as error:
            reason = f"failed with {type(error).__name__}: {error}"
    raise FileNotFoundError(
        f"the Denmark road data are not at hand. In the cache: no file {cached}. Download of "
        f"{DOWNLOAD_ADDRESS}: {reason}. Get {FILE_NAME} from {_PAGE} and pass its path, or put it into the "
        f"cache; or use {_STANDIN}, drawn from the published means and standard deviations"
    )


def read_road_network(lines: Iterable[bytes], origin: str) -> Roads:
    """Return altitude, latitude and longitude of each point, one flat array a road, in order of appearance.

    Raises ValueError naming ``origin`` and the line for anything but an integer and three finite numbers.
    """
    roads: Roads = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        fields = line.split(b",")
        try:
            road = int(fields[0])
            longitude, latitude, altitude = map(float, fields[1:])
        except ValueError:
            raise _malformed(origin, number, line) from None
        if not math.isfinite(longitude + latitude + altitude):
            raise _malformed(origin, number, line)
        roads.setdefault(road, array("d")).extend((altitude, latitude, longitude))
    return roads


def _malformed(origin: str, number: int, line: bytes) -> ValueError:
    seen = line.strip()[:60].decode("ascii", errors="backslashreplace")
    return ValueError(
        f"{origin}, line {number}: expected OSM_ID,LONGITUDE,LATITUDE,ALTITUDE (an integer and three finite "
        f"numbers, no header), got {seen!r}; is this the UCI file {FILE_NAME}, whole and unchanged?"
    )


def _read_path(path: Path) -> Roads:
    if not path.is_file():
        raise FileNotFoundError(
            f"no file {path}; path must name {FILE_NAME}, or the zip archive with it, from {_PAGE}. "
            f"Without it there is {_STANDIN}"
        )
    if zipfile.is_zipfile(path):
        return read_road_network(io.BytesIO(_unpacked(path.read_bytes(), str(path))), str(path))
    with path.open("rb") as stream:
        return read_road_network(stream, str(path))


def _download_into(cached: Path) -> Roads:
    request = Request(DOWNLOAD_ADDRESS, headers={"User-Agent": "ewens_widgets"})
    with urlopen(request, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310 (the address is our constant)
        archive = response.read(_LARGEST_DOWNLOAD + 1)
    if len(archive) > _LARGEST_DOWNLOAD:
        raise ValueError(f"the answer is larger than {_LARGEST_DOWNLOAD} bytes: not the expected archive")
    content = _unpacked(archive, "the downloaded archive")
    roads = read_road_network(io.BytesIO(content), "the downloaded file")
    # Only what could be read is kept, and failing to keep it is no reason to withhold it.
    try:
        write_atomically(cached, content)
    except OSError as error:
        warnings.warn(
            f"the Denmark road data were downloaded but could not be kept as {cached} ({error}); "
            "set EWENS_WIDGETS_DATA to a folder that can be written to",
            stacklevel=4,
        )
    return roads


def _unpacked(archive: bytes, origin: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            for member in opened.infolist():
                if Path(member.filename).name == FILE_NAME:
                    if member.file_size > _LARGEST_FILE:
                        raise ValueError(f"{origin}: {FILE_NAME} in it is larger than {_LARGEST_FILE} bytes")
                    return opened.read(member)
    # RuntimeError is what zipfile raises for a password or an unknown compression.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise ValueError(f"{origin} cannot be unpacked: {error}") from error
    raise ValueError(f"{origin} holds no {FILE_NAME}")
