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

The unit square and the half-moons are simulated first, then multiplied by a matrix from the right, Y → Y A.
With the same seed, the transformed data are exactly the plain data in other coordinates. The comparison of
models I, II and III depends on this: model II gives the same answer for Y and for Y diag(a), model III for Y
and for Y A. `playback/invariance.py` uses the two matrices, and the stored digests of chains depend on them.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.arguments import Seed, check_count, check_positive, random_generator
from ewens_widgets.datasets._dataset import ColumnSummary, Dataset, TableSummary
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


def _constant(rows: list[list[float]]) -> NDArray[np.float64]:
    matrix = np.array(rows)
    matrix.setflags(write=False)
    return matrix


SCALING = _constant([[3.0, 0.0], [0.0, 1.0 / 3.0]])
SHEAR = _constant([[4.1, 1.1], [2.1, 1.1]])
SQUARE_SHEAR = _constant([[4.1, 2.1], [1.9, 1.1]])
_CORNERS = _constant([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])

_SQUARE_TRANSFORMS = {
    None: (None, ""),
    "II": (SCALING, " The columns are multiplied by 3 and 1/3: a change of units, for model II."),
    "III": (SQUARE_SHEAR, " The rows are multiplied by [[4.1, 2.1], [1.9, 1.1]], for model III."),
}


def unit_square(
    transform: str | None = None, scale: float = 0.25, per_cluster: int = 20, seed: Seed = 0
) -> Dataset:
    r"""Simulate four Gaussian clusters at the corners of the unit square.

    Cluster k is N(μ_k, scale² I) with μ_k = (0,0), (0,1), (1,0), (1,1), in this order.

    Huang & Yang (arXiv 1611.09890, section 5.1) draw such data and multiply them by these two matrices. They
    print N(μ, (1/4) I). With 1/4 as the variance, 29 % of the points would be misplaced even if the centres
    were known; here 1/4 is the standard deviation (4.5 %).

    Parameters
    ----------
    transform
        None: not transformed. "II": Y diag(3, 1/3), each column in another unit. "III": Y [[4.1, 2.1],
        [1.9, 1.1]].
    scale
        Standard deviation of each cluster in each direction, before the transform.
    per_cluster
        Points in each cluster.
    seed
        Non-negative integer, or a ``numpy.random.Generator``.
    """
    try:
        matrix, note = _SQUARE_TRANSFORMS[transform]
    except (KeyError, TypeError):
        raise ValueError(f'transform must be None, "II" or "III", got {transform!r}') from None
    deviation = check_positive("scale", scale)
    count = check_count("per_cluster", per_cluster, 1)
    labels = np.repeat(np.arange(4), count)
    X = _CORNERS[labels] + deviation * random_generator(seed).standard_normal((4 * count, 2))
    return Dataset(
        X=X if matrix is None else X @ matrix,
        labels=labels,
        name="unit square" if transform is None else f"unit square, transform {transform}",
        feature_names=("x", "y"),
        description=(
            f"Four Gaussian clusters of {count} points with standard deviation {deviation:g} at the corners "
            f"of the unit square, drawn at random.{note} The paper draws such data, transforms them, and "
            "reports that models I, II and III put most points into the right one of four clusters."
        ),
        label_names=("bottom left", "top left", "bottom right", "top right"),
        same_units=True,
        noun="point",
    )


def half_moons(n: int = 200, transformed: bool = False, seed: Seed = 0) -> Dataset:
    r"""Simulate two half-moons of n/2 points each.

    With a ~ U(0, 2π) and r ~ U(0.8, 1.2), independent for each point, as in R's package clusterSim:

    * first moon: (−0.4 + \|r cos a\|, r sin a), a right half of a ring;
    * second moon: (−\|r cos a\|, r sin a − 1), a left half, one unit lower.

    Parameters
    ----------
    n
        Number of points in all, an even number of at least 2.
    transformed
        Whether to multiply each point by [[4.1, 1.1], [2.1, 1.1]] from the right, as the paper does for model
        III.
    seed
        Non-negative integer, or a ``numpy.random.Generator``.
    """
    count = check_count("n", n, 2)
    if count % 2:
        raise ValueError(f"n must be even, half of the points for each moon, got {count}")
    if not isinstance(transformed, (bool, np.bool_)):
        raise TypeError(f"transformed must be True or False, got {transformed!r}")
    rng = random_generator(seed)
    angle = rng.uniform(0.0, 2.0 * np.pi, count)
    radius = rng.uniform(0.8, 1.2, count)
    labels = np.repeat(np.arange(2), count // 2)
    across, up = np.abs(radius * np.cos(angle)), radius * np.sin(angle)
    X = np.column_stack([np.where(labels == 0, across - 0.4, -across), np.where(labels == 0, up, up - 1.0)])
    note = " Here the rows are multiplied by that matrix." if transformed else ""
    return Dataset(
        X=X @ SHEAR if transformed else X,
        labels=labels,
        name="half-moons, transformed" if transformed else "half-moons",
        feature_names=("x", "y"),
        description=(
            f"Two half-moons of {count // 2} points each, drawn at random by the formula of R's package "
            "clusterSim. The paper clusters such data with model II (error 0.115, k-means 0.23), and after "
            f"multiplication by [[4.1, 1.1], [2.1, 1.1]] with model III (error 0.11, k-means 0.15).{note}"
        ),
        label_names=("right moon", "left moon"),
        same_units=True,
        noun="point",
    )


_SOURCE = (
    "Gene expression of 38 leukemia samples, 27 ALL and 11 AML (Golub et al., Science 286:531, 1999, "
    "training set), preprocessed to 3051 genes as by Dudoit, Fridlyand and Speed (2002): each sample has "
    "mean 0 and standard deviation 1; from the Bioconductor package multtest (LGPL). "
)
_PAPER = "The paper clusters 20 principal components with model I: most samples are put with their class."


def wine() -> Dataset:
    """Return 178 wines of three cultivars with 13 chemical measurements, in their raw units.

    The raw units matter for the comparison: proline is in the hundreds and hue about one, so that proline
    dominates any method that depends on units. Models II and III are invariant to them.
    """
    # scikit-learn takes most of a second to import, and nothing else here needs it.
    from sklearn.datasets import load_wine

    bunch = load_wine()
    return Dataset(
        X=bunch.data,
        labels=bunch.target,
        name="wine",
        feature_names=tuple(str(name) for name in bunch.feature_names),
        description=(
            "Chemical analysis of 178 wines of one region of Italy from three cultivars (59, 71 and 48), "
            "in raw units; Forina et al., UCI Machine Learning Repository, scikit-learn's copy (load_wine). "
            "The paper (arXiv 1611.09890) clusters them, with model I by its text, II by its heading: "
            "most wines are put with their cultivar."
        ),
        label_names=("cultivar 1", "cultivar 2", "cultivar 3"),
        noun="wine",
    )


def leukemia(n_components: int | None = 20) -> Dataset:
    r"""Return principal components of the expression of 3051 genes in 38 leukemia samples.

    With G the 38 × 3051 matrix, its columns centred, and G = U S Vᵀ its singular value decomposition, the
    data are the first columns of U S. They are not rescaled, so that distances between samples are those
    between their gene profiles, projected on the components. In each component, the entry with the largest
    absolute value is positive.

    Parameters
    ----------
    n_components
        From 1 to 37 (38 centred samples span no more), or None for the 3051 genes themselves, not centred.
    """
    expression, labels, genes = _read()
    if n_components is None:
        X, names, note = expression, genes, ""
    else:
        count = check_count("n_components", n_components, 1)
        largest = len(labels) - 1
        if count > largest:
            raise ValueError(
                f"n_components must be at most {largest}, since {len(labels)} centred samples span no more, "
                f"got {count}; use n_components=None for all {len(genes)} genes"
            )
        X = _principal_components(expression, count)
        names = tuple(f"PC{component}" for component in range(1, count + 1))
        note = "Here: the first principal component. "
        if count > 1:
            note = f"Here: the first {count} principal components. "
    return Dataset(
        X=X,
        labels=labels,
        name="leukemia",
        feature_names=names,
        description=_SOURCE + note + _PAPER,
        label_names=("ALL", "AML"),
        same_units=True,
        noun="sample",
    )


def _read() -> tuple[NDArray[np.float64], NDArray[np.intp], tuple[str, ...]]:
    resource = files("ewens_widgets").joinpath("data", "leukemia.npz")
    with resource.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        # The published values have five decimals; dividing whole numbers gives exactly their doubles.
        expression = archive["expression_times_100000"] / 100_000.0
        labels = archive["labels"].astype(np.intp)
        genes = tuple(gene.decode("ascii") for gene in archive["genes"].tolist())
    return expression, labels, genes


def _principal_components(matrix: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    left, singular_values, _ = np.linalg.svd(matrix - matrix.mean(axis=0), full_matrices=False)
    scores: NDArray[np.float64] = left[:, :count] * singular_values[:count]
    # The linear algebra library may choose any sign; without this, pictures differ between machines.
    largest = scores[np.argmax(np.abs(scores), axis=0), np.arange(count)]
    return scores * np.where(largest < 0, -1.0, 1.0)


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
    return data if isinstance(data, Dataset) else Dataset(X=data)  # type: ignore[arg-type]
