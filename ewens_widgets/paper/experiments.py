"""Which data the paper clusters, with which model, and what it says of the result."""

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ewens_widgets import datasets
from ewens_widgets.analysis.evidence_tree import consensus_tree
from ewens_widgets.datasets import Dataset
from ewens_widgets.sampling.trace import Trace

__all__ = ["EXPERIMENTS", "ROADS_VARIABLE", "Experiment", "experiment_named"]

ROADS_VARIABLE = "EWENS_WIDGETS_ROADS"  # Where the file of the road network is, for worker processes too.

_MOST = "most objects right"


@dataclass(frozen=True)
class Experiment:
    """One data set with one model.

    Attributes
    ----------
    key
        Short name, for files.
    title
        Name of the data, for the table.
    model
        Covariance model.
    load
        Gives the data; the argument is the seed of those that are drawn.
    drawn
        Whether the data differ by seed.
    n_clusters
        True number of clusters.
    reading
        How clusters are read off the draws: ``"consensus"`` of evidence trees, or ``"single"`` linkage of the
        distance between the objects, as in the paper.
    claim
        What the paper says of its result.
    k_means_claim
        What it says of k-means.
    thin
        Iterations of the default schedule for each draw; more than one where chains mix slowly.
    """

    key: str
    title: str
    model: str
    load: Callable[[int], Dataset]
    drawn: bool
    n_clusters: int
    reading: str
    claim: str
    k_means_claim: str = "–"
    thin: int = 1

    def read(self, trace: Trace) -> NDArray[np.intp]:
        """Cut a tree of the draws into the true number of clusters."""
        if self.reading == "consensus":
            return consensus_tree(trace, self.n_clusters).cut(n_clusters=self.n_clusters)
        tree = trace.similarity_tree("single")
        # Chains that have not converged may have no large clusters to count.
        for size in (trace.n_objects // 20, 5, 2):
            if np.any(tree.counts(size) == self.n_clusters):
                return tree.cut(n_clusters=self.n_clusters, min_size=size)
        return tree.cut(n_clusters=self.n_clusters)


def _roads(seed: int) -> Dataset:
    """Load the real roads where their file is at hand, or draw the stand-in, whose name says so."""
    try:
        return datasets.denmark_roads(os.environ.get(ROADS_VARIABLE) or None, download=False)
    except FileNotFoundError:
        if os.environ.get(ROADS_VARIABLE):
            raise
        return datasets.denmark_roads_standin(seed=seed)


def _wine(_seed: int) -> Dataset:
    return datasets.wine()


def _leukemia(_seed: int) -> Dataset:
    return datasets.leukemia(20)


def _square(transform: str | None) -> Callable[[int], Dataset]:
    return lambda seed: datasets.unit_square(transform=transform, seed=seed)


def _moons(transformed: bool) -> Callable[[int], Dataset]:
    return lambda seed: datasets.half_moons(200, transformed=transformed, seed=seed)


EXPERIMENTS = (
    Experiment("unit-square-1", "unit square", "I", _square(None), True, 4, "consensus", _MOST),
    Experiment("unit-square-2", "unit square, rescaled", "II", _square("II"), True, 4, "consensus", _MOST),
    Experiment("unit-square-3", "unit square, sheared", "III", _square("III"), True, 4, "consensus", _MOST),
    Experiment("half-moons-2", "half-moons", "II", _moons(False), True, 2, "single", "error 0.115", "0.23"),
    Experiment(
        "half-moons-3", "half-moons, sheared", "III", _moons(True), True, 2, "single", "error 0.11", "0.15"
    ),
    Experiment("leukemia-1", "leukemia, 20 PCs", "I", _leukemia, False, 2, "consensus", _MOST),
    Experiment("wine-1", "wine, raw units", "I", _wine, False, 3, "consensus", _MOST, thin=15),
    Experiment("wine-2", "wine, raw units", "II", _wine, False, 3, "consensus", _MOST),
    Experiment("wine-3", "wine, raw units", "III", _wine, False, 3, "consensus", "–", thin=3),
    Experiment("roads-3", "Denmark roads", "III", _roads, False, 2, "consensus", "two clusters", thin=10),
)


def experiment_named(key: str) -> Experiment:
    """The experiment of this short name."""
    for experiment in EXPERIMENTS:
        if experiment.key == key:
            return experiment
    names = ", ".join(experiment.key for experiment in EXPERIMENTS)
    raise ValueError(f"there is no experiment {key!r}; choose from {names}.")
