r"""What all families of shapes share: choices by weight, changes of labels and prior, the draw of λ.

What a split, a merge or a relocation does to the labels and to the prior is here; what it does to the
statistics of the clusters, and to the likelihood, is the business of the families (see `family`).
`single_split` looks the other way: it tells which split or merge leads from one partition to another, if one
does.

λ with a Gamma(a, b) prior is drawn by the auxiliary variable of Escobar & West (1995): with K clusters
among n objects,

.. math::

    \eta \mid \lambda \sim \text{Beta}(\lambda + 1, n), \qquad
    \lambda \mid \eta \sim \pi \, \text{Gamma}(a + K, \, b - \log\eta) + (1 - \pi) \, \text{Gamma}(a + K -
    1, \, b - \log\eta),

where :math:`\pi / (1 - \pi) = (a + K - 1) / (n (b - \log\eta))`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.sampling.compiled import inlined, jit
from ewens_widgets.sampling.kernel import workspace as at
from ewens_widgets.sampling.kernel.workspace import AnyProblem, AnyWorkspace


@inlined
def from_logs(weights: FloatArray, count: int) -> None:
    """Replace log weights by weights, the largest of them 1."""
    highest = weights[0]
    for k in range(1, count):
        highest = max(highest, weights[k])
    for k in range(count):
        # Below exp(-40) a weight is lost in the rounding of the sum, so its exponential need not be taken.
        gap = weights[k] - highest
        weights[k] = math.exp(gap) if gap > -40.0 else 0.0


@inlined
def choose(weights: FloatArray, count: int, uniform: float) -> int:
    """Pick one of `count` indices in proportion to their weights; −1 where none is positive."""
    total = 0.0
    for k in range(count):
        total += weights[k]
    target = uniform * total
    chosen = -1
    for k in range(count):
        if weights[k] > 0.0:
            chosen = k
            target -= weights[k]
            if target < 0.0:
                break
    return chosen


@inlined
def normalise(weights: FloatArray, out: FloatArray) -> None:
    """Write the probabilities that are in proportion to weights."""
    total = 0.0
    for k in range(weights.shape[0]):
        total += weights[k]
    for k in range(weights.shape[0]):
        out[k] = weights[k] / total


@jit
def draw_concentration(workspace: AnyWorkspace, shape: float, rate: float, rng: np.random.Generator) -> None:
    """Draw λ given the number of clusters."""
    n_objects = workspace.labels.shape[0]
    n_clusters = workspace.integers[at.CLUSTERS]
    concentration = math.exp(workspace.reals[at.LOG_CONCENTRATION])
    auxiliary = rng.beta(concentration + 1.0, float(n_objects))
    inverse_scale = rate - math.log(auxiliary)
    odds = (shape + n_clusters - 1.0) / (n_objects * inverse_scale)
    extra = 1.0 if rng.random() * (1.0 + odds) < odds else 0.0
    drawn = rng.standard_gamma(shape + n_clusters - 1.0 + extra) / inverse_scale
    # The logarithm is what the moves use; a draw that underflows to zero would poison it.
    workspace.reals[at.LOG_CONCENTRATION] = math.log(max(drawn, 1e-300))


@inlined
def log_opening(problem: AnyProblem, workspace: AnyWorkspace, n_clusters: int) -> float:
    """Log V(K+1)/V(K): what the prior gives for one cluster more than K."""
    return workspace.reals[at.LOG_CONCENTRATION] + problem.log_prior[at.COUNT_STEP, n_clusters]


@inlined
def rename(workspace: AnyWorkspace, slot: int, target: int) -> None:
    """Give the objects of a slot another one."""
    for i in range(workspace.labels.shape[0]):
        if workspace.labels[i] == slot:
            workspace.labels[i] = target


@inlined
def label_moved(workspace: AnyWorkspace, count: int) -> int:
    """Give the gathered members on side 1 the slot after the last; return how many they are."""
    fresh = workspace.integers[at.CLUSTERS]
    moved = 0
    for k in range(count):
        if workspace.sides[k] == 1:
            workspace.labels[workspace.members[k]] = fresh
            moved += 1
    return moved


@inlined
def gather_members(workspace: AnyWorkspace, slot: int, other: int) -> int:
    """List the members of one or two slots in order, side 1 marking the second; return their number."""
    count = 0
    for i in range(workspace.labels.shape[0]):
        label = workspace.labels[i]
        if label == slot or label == other:
            workspace.members[count] = i
            workspace.sides[count] = 1 if label != slot else 0
            count += 1
    return count


@inlined
def count_moved(workspace: AnyWorkspace, count: int) -> int:
    """How many of the members have side 1, not 0."""
    moved = 0
    for k in range(count):
        moved += workspace.sides[k]
    return moved


def single_split(start: NDArray[np.intp], end: NDArray[np.intp]) -> tuple[int, int, NDArray[np.bool_]] | None:
    """Describe the change between two partitions (canonical labels) as a split or a merge.

    Returns
    -------
    slot, other
        Clusters of `start`: the one that is split (twice), or the two that are merged.
    moved
        Objects that leave `slot` (split), or that join it from `other` (merge).

    None is returned where the change is neither.
    """
    n_start, n_end = int(start.max()) + 1, int(end.max()) + 1
    if abs(n_start - n_end) != 1:
        return None
    coarse, fine = (start, end) if n_start < n_end else (end, start)
    # A refinement has one pair of labels for each fine cluster; exactly one coarse cluster then holds two.
    joined = np.unique(np.stack([coarse, fine]), axis=1)
    if joined.shape[1] != max(n_start, n_end):
        return None
    whole = int(np.flatnonzero(np.bincount(joined[0]) == 2)[0])
    first, second = (int(part) for part in joined[1][joined[0] == whole])
    moved = fine == second
    return (whole, whole, moved) if n_start < n_end else (first, second, moved)
