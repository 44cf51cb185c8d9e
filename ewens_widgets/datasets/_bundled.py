"""Real data that need no network: wine from scikit-learn's copy, leukemia from a file of the package."""

from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.arguments import check_count
from ewens_widgets.datasets._dataset import Dataset

__all__ = ["leukemia", "wine"]

_SOURCE = (
    "Gene expression of 38 leukemia samples, 27 ALL and 11 AML (Golub et al., Science 286:531, 1999, "
    "training set), preprocessed to 3051 genes as by Dudoit, Fridlyand and Speed (2002): each sample has "
    "mean 0 and standard deviation 1; from the Bioconductor package multtest (LGPL). "
)
_PAPER = "The paper clusters 20 principal components with model I: most samples are put with their class."


def wine() -> Dataset:
    """Return 178 wines of three cultivars with 13 chemical measurements, in their raw units.

    Raw units are the point: proline is in the hundreds and hue about one, so that a method which depends on
    units sees little but proline. Models II and III do not mind.
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
            "The paper clusters them with model I and reports that most wines are put with their cultivar."
        ),
        label_names=("cultivar 1", "cultivar 2", "cultivar 3"),
    )


def leukemia(n_components: int | None = 20) -> Dataset:
    r"""Return principal components of the expression of 3051 genes in 38 leukemia samples.

    With G the 38 × 3051 matrix, its columns centred, and G = U S Vᵀ its singular value decomposition, the
    data are the first columns of U S. They are not rescaled: distances between samples are those between
    their gene profiles, as far as the components go. Signs are such that each component's largest entry in
    size is positive.

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
    # The linear algebra library may choose any sign; fix it, or pictures flip between machines.
    largest = scores[np.argmax(np.abs(scores), axis=0), np.arange(count)]
    return scores * np.where(largest < 0, -1.0, 1.0)
