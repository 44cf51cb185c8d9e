"""A few objects that stand for many, chosen evenly from the clusters of a partition."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.model.checks import check_count
from ewens_widgets.partition import check_labels

__all__ = ["MOST_REPRESENTATIVES", "representative_rows"]

MOST_REPRESENTATIVES = 400


def representative_rows(labels: ArrayLike, most: int = MOST_REPRESENTATIVES) -> NDArray[np.intp]:
    """Choose at most so many objects, from each cluster in proportion to its size.

    The same partition always gives the same objects. Every cluster is represented, unless there are more
    clusters than objects to choose: then the largest ones are.

    Parameters
    ----------
    labels
        A partition.
    most
        How many objects to choose.

    Returns
    -------
    numbers of the objects, in increasing order
    """
    canonical = check_labels(labels)
    if canonical.size <= check_count("the number of representatives", most, 1):
        return np.arange(canonical.size)
    sizes = np.bincount(canonical)
    quotas = _quotas(sizes, most)
    members = np.split(np.argsort(canonical, kind="stable"), np.cumsum(sizes)[:-1])
    chosen = [
        own[(np.arange(quota) * own.size + own.size // 2) // quota]  # the middles of equal stretches
        for own, quota in zip(members, quotas.tolist(), strict=True)
        if quota
    ]
    return np.sort(np.concatenate(chosen))


def _quotas(sizes: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Share `most` places out in proportion to the sizes, one to each of the largest first."""
    by_size = np.argsort(-sizes, kind="stable")
    quotas = np.zeros(sizes.size, dtype=np.intp)
    quotas[by_size[:most]] = 1
    spare = most - int(quotas.sum())
    wanted = np.maximum(spare * (sizes - quotas) / max(int((sizes - quotas).sum()), 1), 0.0)
    quotas += np.floor(wanted).astype(np.intp)
    # What rounding left over goes to those that lost most by it.
    left = most - int(quotas.sum())
    quotas[np.argsort(-(wanted - np.floor(wanted)), kind="stable")[:left]] += 1
    return quotas
