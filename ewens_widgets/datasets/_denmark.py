"""Ten Danish roads in two clusters: the paper's choice from the UCI road network, and a stand-in for it."""

import os
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.datasets._arguments import Seed, random_generator
from ewens_widgets.datasets._dataset import Dataset
from ewens_widgets.datasets._road_network import Roads, find_road_network

__all__ = ["denmark_roads", "denmark_roads_standin"]

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
    chosen = _chosen_roads(find_road_network(path, download=download))
    labels = np.concatenate([np.full(len(points), _nearest_cluster(points)) for points in chosen.values()])
    counts = np.bincount(labels, minlength=2)
    note = ""
    if not np.array_equal(counts, _SIZES):
        note = (
            f"Mind: the paper has {_SIZES[0]} and {_SIZES[1]} points, this file {counts[0]} and {counts[1]}. "
        )
    return Dataset(
        X=np.concatenate(list(chosen.values())),
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
    )


def _chosen_roads(roads: Roads) -> dict[int, NDArray[np.float64]]:
    matrices = ((road, np.array(values).reshape(-1, len(_FEATURES))) for road, values in roads.items())
    long_enough = ((road, points) for road, points in matrices if len(points) >= _FEWEST_POINTS)
    chosen = dict(islice(long_enough, _N_ROADS))
    if len(chosen) < _N_ROADS:
        raise ValueError(
            f"the file has {len(chosen)} roads (OSM ids) with at least {_FEWEST_POINTS} points, but the "
            f"paper's rule takes the first {_N_ROADS} of these; is the file cut short?"
        )
    return chosen


def _nearest_cluster(points: NDArray[np.float64]) -> int:
    weights = (_SIZES - 1)[:, np.newaxis]
    pooled_variances = (weights * _DEVIATIONS**2).sum(axis=0) / weights.sum()
    squared_distances = ((points.mean(axis=0) - _MEANS) ** 2 / pooled_variances).sum(axis=1)
    return int(np.argmin(squared_distances))
