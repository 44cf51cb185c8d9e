"""The hierarchy of the objects by how often the draws keep them apart."""

from typing import Literal, get_args

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from ewens_widgets.analysis.tree import Tree
from ewens_widgets.sampling.trace import Trace

__all__ = ["METHODS", "similarity_tree"]

Method = Literal["single", "average", "complete"]
METHODS: tuple[Method, ...] = get_args(Method)


def similarity_tree(trace: Trace, method: str = "single") -> Tree:
    """Linkage of the distance D = 1 − S.

    Parameters
    ----------
    trace
        Draws of a chain.
    method
        ``"single"`` (the paper's), ``"average"`` or ``"complete"`` linkage.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}.")
    distance = trace.distance()
    merges = linkage(squareform(distance, checks=False), method=method)
    # Averages are rounded: equal heights may come out a bit apart, and then in the wrong order.
    merges[:, 2] = np.maximum.accumulate(merges[:, 2])
    return Tree(
        linkage=merges,
        kind="similarity",
        method=method,
        n_start=trace.n_objects,
        coordinates=trace.posterior.coordinates,
        distance=distance,
    )
