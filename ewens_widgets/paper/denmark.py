"""Ten Danish roads in two clusters: the paper's choice from the UCI road network, and a stand-in for it.

The UCI file "3D Road Network (North Jutland, Denmark)", ``3D_spatial_network.txt``, has 434,874 lines
``OSM_ID,LONGITUDE,LATITUDE,ALTITUDE`` and no header. Its licence is not established, so it is not bundled: it
is read from a path, from the user's cache, or downloaded there. The address is the one in public use for
UCI's data set 246; that it answers was not checked when this was written.
"""

import io
import os
import warnings
import zipfile
import zlib
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np

from ewens_widgets.arguments import Seed, random_generator
from ewens_widgets.datasets._dataset import Dataset
from ewens_widgets.files import cache_directory, write_atomically

FILE_NAME = "3D_spatial_network.txt"
DOWNLOAD_ADDRESS = "https://archive.ics.uci.edu/static/public/246/3d+road+network+north+jutland+denmark.zip"
_PAGE = "https://archive.ics.uci.edu/dataset/246/3d+road+network+north+jutland+denmark"
_STANDIN = "ewens_widgets.datasets.denmark_roads_standin(seed)"
_TIMEOUT_SECONDS = 20.0
# About ten times the real sizes: a guard against being sent something else.
_LARGEST_DOWNLOAD = 64 * 2**20
_LARGEST_FILE = 256 * 2**20

_FEATURES = ("altitude", "latitude", "longitude")
_LABEL_NAMES = ("cluster of eight roads", "cluster of two roads")
_N_ROADS = 10
_FEWEST_POINTS = 4

# As the paper prints them for its two clusters, in the order of _FEATURES.
_SIZES = np.array([68, 19])
_MEANS = np.array([[14.9137, 56.9522, 8.7564], [70.2441, 56.6335, 9.9938]])
_DEVIATIONS = np.array([[5.2903, 0.1330, 0.3750], [9.6316, 0.0013, 0.0054]])

_PAPER = (
    "The paper clusters 87 points of ten roads with model III and finds two clusters, of 8 and of 2 roads."
)


def denmark_roads(path: str | os.PathLike[str] | None = None, *, download: bool = True) -> Dataset:
    r"""Return altitude, latitude and longitude of 87 points on ten roads in North Jutland.

    The points are the paper's: those of the first ten roads (OSM ids) in file order that have at least four
    points. Its two clusters are recovered without naming roads: each road belongs to the cluster whose
    published mean is nearest to the road's own mean, in units of the pooled published standard deviations.
    That gives eight roads with 68 points and two with 19.

    Parameters
    ----------
    path
        The UCI file ``3D_spatial_network.txt``, or the zip archive with it. None: look into
        :func:`cache_directory`, and after that download it there.
    download
        False: do not try the network.

    Raises
    ------
    FileNotFoundError
        When the file is in none of these places; :func:`denmark_roads_standin` needs no file.
    ValueError
        When the file cannot be read as what it should be; the message names the line.
    """
    points = _read_roads(*_file_content(path, download))
    sizes = points["road"].value_counts(sort=False)  # in the order of the file
    chosen = sizes.index[sizes >= _FEWEST_POINTS][:_N_ROADS]
    if len(chosen) < _N_ROADS:
        raise ValueError(
            f"the file has {len(chosen)} roads (OSM ids) with at least {_FEWEST_POINTS} points, but the "
            f"paper's rule takes the first {_N_ROADS} of these; is the file cut short?"
        )
    groups = [points.loc[points["road"] == road, list(_FEATURES)].to_numpy() for road in chosen]
    variances = (_SIZES - 1) @ _DEVIATIONS**2 / (_SIZES - 1).sum()
    gaps = np.array([group.mean(axis=0) for group in groups])[:, np.newaxis] - _MEANS
    nearest = (gaps**2 / variances).sum(axis=2).argmin(axis=1)
    labels = np.repeat(nearest, [len(group) for group in groups])
    counts = np.bincount(labels, minlength=2)
    note = ""
    if not np.array_equal(counts, _SIZES):
        note = (
            f"Note: the paper has {_SIZES[0]} and {_SIZES[1]} points, this file {counts[0]} and {counts[1]}. "
        )
    return Dataset(
        X=np.concatenate(groups),
        labels=labels,
        name="Denmark roads",
        feature_names=_FEATURES,
        description=(
            f"{len(labels)} points on ten roads in North Jutland, Denmark: altitude in metres, latitude and "
            "longitude in degrees. From the UCI data set 3D Road Network (Kaul, Yang and Jensen, 2013): the "
            f"first ten roads with at least four points, OSM ids {', '.join(map(str, chosen))}. "
            f"{note}{_PAPER}"
        ),
        label_names=_LABEL_NAMES,
        noun="point",
    )


def denmark_roads_standin(seed: Seed = 0) -> Dataset:
    r"""Draw 68 and 19 points from Gaussians with the two clusters' published means and standard deviations.

    A stand-in for :func:`denmark_roads` where the file is not at hand. The columns are drawn independently,
    since the paper prints no correlations: the points do not lie along roads.

    Parameters
    ----------
    seed
        Non-negative integer, or a ``numpy.random.Generator``.
    """
    labels = np.repeat(np.arange(2), _SIZES)
    noise = random_generator(seed).standard_normal((len(labels), len(_FEATURES)))
    return Dataset(
        X=_MEANS[labels] + _DEVIATIONS[labels] * noise,
        labels=labels,
        name="Denmark roads (stand-in)",
        feature_names=_FEATURES,
        description=(
            "Not the real data: 68 and 19 points drawn from Gaussians with independent columns that have the "
            "means and standard deviations of altitude, latitude and longitude which the paper prints for "
            f"its two clusters of roads in North Jutland, Denmark. {_PAPER}"
        ),
        label_names=_LABEL_NAMES,
        noun="point",
    )


def _file_content(path: str | os.PathLike[str] | None, download: bool) -> tuple[bytes, str]:
    """The UCI file, from a path, or else from the cache, or else from the network; and what it is called."""
    cached = cache_directory() / FILE_NAME
    chosen = cached if path is None else Path(path).expanduser()
    if chosen.is_file():
        content = chosen.read_bytes()
        is_archive = zipfile.is_zipfile(io.BytesIO(content))
        return _unpacked(content, str(chosen)) if is_archive else content, str(chosen)
    if path is not None:
        raise FileNotFoundError(
            f"no file {chosen}; path must name {FILE_NAME}, or the zip archive with it, from {_PAGE}. "
            f"Without it there is {_STANDIN}"
        )
    reason = "not tried, since download=False"
    if download:
        try:
            return _download_into(cached), "the downloaded file"
        except (OSError, HTTPException, ValueError) as error:
            reason = f"failed with {type(error).__name__}: {error}"
    raise FileNotFoundError(
        f"the Denmark road data are not at hand. In the cache: no file {cached}. Download of "
        f"{DOWNLOAD_ADDRESS}: {reason}. Get {FILE_NAME} from {_PAGE} and pass its path, or put it into the "
        f"cache; or use {_STANDIN}, drawn from the published means and standard deviations"
    )


def _read_roads(content: bytes, origin: str) -> Any:  # noqa: ANN401 - a DataFrame
    """One row per point: its road, altitude, latitude and longitude; the error names the line of a fault."""
    import pandas as pd

    lines = pd.Series(content.decode("latin-1").splitlines()).str.strip()
    cells = lines[lines != ""].str.split(",", expand=True).reindex(columns=range(5))
    numbers = cells[[0, 3, 2, 1]].apply(pd.to_numeric, errors="coerce")
    good = np.isfinite(numbers).all(axis=1) & (numbers[0] % 1 == 0) & cells[4].isna()
    if not good.all():
        number = good.index[~good][0]
        seen = lines[number][:60].encode("ascii", errors="backslashreplace").decode("ascii")
        raise ValueError(
            f"{origin}, line {number + 1}: expected OSM_ID,LONGITUDE,LATITUDE,ALTITUDE (an integer and "
            f"three finite numbers, no header), got {seen!r}; is this the UCI file {FILE_NAME}, whole and "
            "unchanged?"
        )
    return numbers.astype({0: np.int64}).set_axis(["road", *_FEATURES], axis=1)


def _download_into(cached: Path) -> bytes:
    request = Request(DOWNLOAD_ADDRESS, headers={"User-Agent": "ewens_widgets"})
    with urlopen(request, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310 (the address is our constant)
        archive = response.read(_LARGEST_DOWNLOAD + 1)
    if len(archive) > _LARGEST_DOWNLOAD:
        raise ValueError(f"the answer is larger than {_LARGEST_DOWNLOAD} bytes: not the expected archive")
    content = _unpacked(archive, "the downloaded archive")
    # Only what can be read is kept, and failing to keep it is no reason to withhold it.
    _read_roads(content, "the downloaded file")
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(cached, content)
    except OSError as error:
        warnings.warn(
            f"the Denmark road data were downloaded but could not be kept as {cached} ({error}); "
            "set EWENS_WIDGETS_DATA to a folder that can be written to",
            stacklevel=4,
        )
    return content


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
