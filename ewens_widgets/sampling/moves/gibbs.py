r"""Gibbs sweep: every object in turn is drawn from its exact conditional over all clusters and a new one.

With object i taken out, leaving sizes :math:`m_b` and sums :math:`s_b`, it joins cluster b with probability
proportional to

.. math::

    m_b \left( \frac{1 + \theta (m_b + 1)}{1 + \theta m_b} \right)^{-d/2} \operatorname{scale}(M_b)^{-n/2} ,

and a new cluster with :math:`\lambda` in place of :math:`m_b` and :math:`m_b = 0` elsewhere; :math:`M_b` is
the scatter with the object in b. The first two factors depend on the size alone; their power -2/n, the
*handicap*, is tabulated and multiplies the scale. The weight of a candidate is then the power n/2 of the
least such value over its own: whole powers by repeated squaring take less time than a logarithm and an
exponential for each candidate, and the largest weight is exactly 1. (For model I read nd for n, as its trace
stands for every feature; for model II the handicap, but for the share of λ, is spread over the factors of the
scale.)

The sweep is deterministic in its order, so it leaves the posterior invariant but is not reversible; each
single draw is.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.concentration import Gamma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling.compiled import entry, inlined, jit
from ewens_widgets.sampling.kernel.parameters import choose
from ewens_widgets.sampling.kernel.partition_changes import relocate
from ewens_widgets.sampling.kernel.scatter import refresh
from ewens_widgets.sampling.kernel.workspace import Problem, Workspace, make_problem, make_workspace
from ewens_widgets.sampling.moves.gibbs_values import tabulate, write_values

__all__ = ["Gibbs", "conditional_probabilities", "conditional_weights", "gibbs_sweep"]


@dataclass(frozen=True)
class Gibbs:
    """A full sweep of exact single-object draws."""

    name: ClassVar[str] = "gibbs"


@inlined
def _powers(values: FloatArray, count: int, exponent: int, weights: FloatArray) -> None:
    """Write (least / value) to the power exponent/2 to `weights`; the values are overwritten.

    Below e⁻⁴⁰ a weight is lost in the rounding of the sum: it is 0 at once, before its powers become
    denormal numbers, which are slow.
    """
    least = np.inf
    for b in range(count):
        # With huge θ and equal rows rounding may leave no scale at all. Whether such a candidate is good
        # cannot be told then; it is never chosen.
        values[b] = values[b] if values[b] > 0.0 else np.inf
        least = min(least, values[b])
    smallest = math.exp(-80.0 / exponent)
    for b in range(count):
        ratio = least / values[b]
        values[b] = ratio if ratio > smallest else 0.0
    odd = exponent % 2 == 1
    for b in range(count):
        weights[b] = math.sqrt(values[b]) if odd else 1.0
    left = exponent // 2
    while left > 0:
        if left % 2 == 1:
            for b in range(count):
                weights[b] *= values[b]
        left //= 2
        if left > 0:
            for b in range(count):
                values[b] *= values[b]


@inlined
def conditional_weights(problem: Problem, workspace: Workspace, item: int) -> int:
    """Write the weights of an object's candidates, the largest 1, to `weights`; return their number."""
    count = write_values(problem, workspace, item)
    _powers(workspace.candidates[0], count, problem.exponent, workspace.weights)
    return count


@entry
def _conditional(problem: Problem, workspace: Workspace, item: int) -> int:
    refresh(problem, workspace)
    tabulate(problem, workspace)
    return conditional_weights(problem, workspace, item)


def conditional_probabilities(
    posterior: Posterior, labels: ArrayLike, item: int, theta_index: int, concentration: float | None = None
) -> FloatArray:
    """Probabilities that an object joins each cluster (canonical), and a new one unless it is alone.

    Those below e⁻⁴⁰ times the largest are 0: the sampler does not tell them from nothing either.
    """
    prior = posterior.concentration
    value = concentration if concentration is not None else prior.mean if isinstance(prior, Gamma) else prior
    problem = make_problem(posterior)
    start = check_labels(labels, posterior.n_objects)
    workspace = make_workspace(problem, start, theta_index, math.log(value))
    count = _conditional(problem, workspace, item)
    weights = workspace.weights[:count]
    return np.asarray(weights / weights.sum(), dtype=np.float64)


@jit
def gibbs_sweep(problem: Problem, workspace: Workspace, rng: np.random.Generator) -> int:
    """Draw every object once, in order; return how many changed their cluster."""
    changed = 0
    tabulate(problem, workspace)
    for item in range(problem.coordinates.shape[0]):
        count = conditional_weights(problem, workspace, item)
        target = choose(workspace.weights, count, rng.random())
        if target >= 0 and target != workspace.labels[item]:
            relocate(problem, workspace, item, target)
            tabulate(problem, workspace)
            changed += 1
    return changed
