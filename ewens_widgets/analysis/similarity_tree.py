"""The hierarchy of the objects by how often the draws keep them apart."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from ewens_widgets.analysis.similarity import check_pairs_fit, choose_rows
from ewens_widgets.analysis.tree import Tree
from ewens_widgets.memory import TooLargeError
from ewens_widgets.sampling.trace import Trace

__all__ = ["METHODS", "similarity_tree", "tree_fits"]

Method = Literal["single", "average", "complete"]
METHODS: tuple[Method, ...] = get_args(Method)
_WITHOUT_PAIRS = (
    "Use evidence_tree(), which needs no pairs, or a tree of some rows, e.g. "
    "similarity_tree(rows=trace.representatives())."
)


def similarity_tree(trace: Trace, method: str = "single", rows: ArrayLike | None = None) -> Tree:
    """Linkage of the distance D = 1 − S.

    Parameters
    ----------
    trace
        Draws of a chain.
    method
        ``"single"`` (the paper's), ``"average"`` or ``"complete"`` linkage.
    rows
        The objects to make a tree of, as indices or as a mask; all of them by default. Leaf k is object
        ``rows[k]``.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}.")
    chosen = choose_rows(rows, trace.n_objects)
    n_leaves = trace.n_objects if chosen is None else chosen.size
    if n_leaves < 2:
        raise ValueError("a tree needs at least 2 objects; give more rows.")
    _check_tree_fits(n_leaves)
    distance = trace.distance(rows=chosen)
    coordinates = trace.posterior.coordinates
    merges = linkage(squareform(distance, checks=False), method=method)
    # Averages are rounded: equal heights may come out a bit apart, and then in the wrong order.
    merges[:, 2] = np.maximum.accumulate(merges[:, 2])
    return Tree(
        linkage=merges,
        kind="similarity",
        method=method,
        n_start=n_leaves,
        coordinates=coordinates if chosen is None else coordinates[chosen],
        distance=distance,
    )


def tree_fits(n_objects: int) -> bool:
    """Whether there is memory for the pairs of so many objects."""
    try:
        _check_tree_fits(n_objects)
    except TooLargeError:
        return False
    return True


def _check_tree_fits(n_objects: int) -> None:
    # The distance, its condensed form and what the linkage makes of it, besides the similarity.
    check_pairs_fit(n_objects, 20, _WITHOUT_PAIRS)
