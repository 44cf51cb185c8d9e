r"""The data sets of the paper, each a :class:`Dataset` with its source.

"The paper" is the preprint of Huang & Yang, *An Affine-Transformation Invariant Bayesian Cluster Process with
Split-Merge Gibbs Sampler*, arXiv 1611.09890. Its journal version, *Affine-transformation invariant clustering
models*, J. Stat. Distrib. Appl. 7:10 (2020), was not compared.

=========================  ==========  ==================================================================
loader                     n × d       what
=========================  ==========  ==================================================================
``unit_square``            80 × 2      four Gaussian clusters at the corners of the unit square, drawn
``half_moons``             200 × 2     two half-moons, drawn
``wine``                   178 × 13    Italian wines of three cultivars, from scikit-learn
``leukemia``               38 × 20     leukemia samples, ALL and AML: principal components of 3051 genes
``denmark_roads``          87 × 3      ten Danish roads in two clusters, from a file or downloaded
``denmark_roads_standin``  87 × 3      drawn from the published means and deviations of those roads
=========================  ==========  ==================================================================
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from numpy.typing import ArrayLike

from ewens_widgets.datasets._dataset import ColumnSummary, Dataset, TableSummary
from ewens_widgets.datasets._loaders import half_moons, leukemia, unit_square, wine
from ewens_widgets.datasets.kinds import ColumnKind
from ewens_widgets.files import cache_directory

__all__ = [
    "LOADERS",
    "ColumnKind",
    "ColumnSummary",
    "Dataset",
    "TableSummary",
    "as_dataset",
    "cache_directory",
    "denmark_roads",
    "denmark_roads_standin",
    "half_moons",
    "leukemia",
    "unit_square",
    "wine",
]


def _from_paper(name: str) -> Any:  # noqa: ANN401 - a loader
    """A loader of the paper's chapter, which is imported when it is asked for."""
    return getattr(import_module("ewens_widgets.paper.denmark"), name)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a loader
    if name in ("denmark_roads", "denmark_roads_standin"):
        return _from_paper(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


LOADERS: dict[str, Callable[[], Dataset]] = {
    "unit square": lambda: unit_square(seed=0),
    "unit square, sheared": lambda: unit_square(transform="III", seed=0),
    "half-moons": lambda: half_moons(seed=0),
    "wine": wine,
    "leukemia": leukemia,
    "Denmark roads (stand-in)": lambda: _from_paper("denmark_roads_standin")(seed=0),
}
"""Data sets that need no network, by name."""


def as_dataset(data: Dataset | ArrayLike | None) -> Dataset:
    """The data of a widget as a data set; the unit square by default."""
    if data is None:
        return LOADERS["unit square"]()
    if isinstance(data, Dataset):
        return data
    return Dataset(X=data)  # type: ignore[arg-type]
