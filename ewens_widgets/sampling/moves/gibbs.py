r"""Gibbs sweep: every object in turn is drawn from its exact conditional over all clusters and a new one.

With object i taken out, leaving sizes :math:`m_b`, it joins cluster b with probability proportional to

.. math:: \frac{W(m_b+1)}{W(m_b)} \; p(y_i \mid \text{the objects of } b, \ldots) ,

and a new cluster with W(1) V(K+1)/V(K) in place of the first factor, V and W being those of the prior. How a
family of shapes finds these weights is said there: `kernel.common_weights`, `kernel.own_family`.

The sweep is deterministic in its order, so it leaves the posterior invariant but is not reversible; each
single draw is. Seen as a proposal, :math:`q(B^* \mid B)` is the probability of the cluster drawn, and
:math:`q(B \mid B^*)` that of the cluster it came from, as the conditional of an object does not depend on
where it is: the ratio of a draw is 1, and it is always accepted.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import canonical_labels, check_labels
from ewens_widgets.sampling.compiled import entry, jit
from ewens_widgets.sampling.draws import read_only
from ewens_widgets.sampling.kernel import workspace as at
from ewens_widgets.sampling.kernel.family import conditional_weights, refresh, relocate, tabulate
from ewens_widgets.sampling.kernel.partition_changes import choose
from ewens_widgets.sampling.kernel.workspace import (
    AnyProblem,
    AnyWorkspace,
    Outcome,
    make_problem,
    make_workspace,
    note,
)
from ewens_widgets.sampling.moves.move import (
    OWN,
    BareProposal,
    Choice,
    Factor,
    Move,
    Notes,
    Scene,
    Way,
    count,
)

# Notes: a slot and its weight; the object, the slot that it was drawn to join, and the uniform draw.
_CANDIDATE, _DRAWN = OWN, OWN + 1


@jit
def gibbs_sweep(
    problem: AnyProblem,
    workspace: AnyWorkspace,
    outcome: Outcome,
    first: int,
    last: int,
    rng: np.random.Generator,
) -> int:
    """Draw the objects from `first` on, before `last`, in order; return how many changed their cluster."""
    changed = 0
    tabulate(problem, workspace)
    for item in range(first, last):
        candidates = conditional_weights(problem, workspace, item)
        uniform = rng.random()
        target = choose(workspace.weights, candidates, uniform)
        if outcome.flags[at.WANTED] == at.ACCOUNT:
            _note_draw(outcome, workspace.weights, candidates, item, target, uniform)
        if target >= 0 and target != workspace.labels[item]:
            relocate(problem, workspace, item, target)
            tabulate(problem, workspace)
            changed += 1
    return changed


@jit
def _note_draw(
    outcome: Outcome, weights: FloatArray, candidates: int, item: int, target: int, uniform: float
) -> None:
    """Note the weights of the candidates, and which of them was drawn."""
    for b in range(candidates):
        note(outcome, _CANDIDATE, b, 0, weights[b])
    note(outcome, _DRAWN, item, target, uniform)


@entry
def _noted_draw(
    problem: AnyProblem, workspace: AnyWorkspace, outcome: Outcome, item: int, rng: np.random.Generator
) -> None:
    """Make the draw of one object, for somebody who looks on."""
    refresh(problem, workspace)
    gibbs_sweep(problem, workspace, outcome, item, item + 1, rng)


@dataclass(frozen=True)
class Gibbs(Move):
    """A full sweep of exact single-object draws."""

    name: ClassVar[str] = "gibbs"
    title: ClassVar[str] = "Gibbs draw"
    kernel = staticmethod(gibbs_sweep)
    loop: ClassVar[str] = "ewens_widgets.sampling.driver"
    is_sweep: ClassVar[bool] = True
    draw = staticmethod(_noted_draw)

    def account(self, notes: Notes) -> BareProposal:
        """An object whose turn it is, and the cluster that was drawn."""
        item, drawn, uniform = notes.of(_DRAWN)[0]
        chosen = drawn if drawn >= 0 else int(notes.slots[item])  # Without any weight it stays.
        weights = np.array([weight for *_, weight in notes.of(_CANDIDATE)])
        probabilities = weights / weights.sum()
        slots, n_objects = notes.slots, notes.slots.size
        own_probability = float(probabilities[slots[item]])
        by_object = np.append(probabilities, 0.0)[slots]
        by_object[item] = own_probability
        # An object of each candidate, other than the one that is drawn; none of a new cluster.
        others = [notes.members(slot) for slot in range(probabilities.size)]
        examples = tuple(tuple(members[members != item][:1].tolist()) for members in others)
        order = np.full(n_objects, 1.0 / n_objects)
        joined = notes.members(chosen)
        after = slots.copy()
        after[item] = chosen
        log_forward = math.log(probabilities[chosen])
        log_backward = math.log(own_probability) if own_probability > 0.0 else -math.inf
        return BareProposal(
            labels=notes.labels,
            proposed=read_only(canonical_labels(after)),
            kind="draw",
            choices=(
                Choice("object whose turn it is", order, item, np.array([item]), order),
                Choice("cluster to join", probabilities, chosen, joined, by_object, examples, uniform),
            ),
            forward=Way(log_forward, (Factor("the cluster drawn", log_forward),)),
            backward=Way(log_backward, (Factor("the cluster it came from", log_backward),)),
        )

    def tell(self, account: BareProposal) -> Iterator[Scene]:
        """Tell whose turn it is, the candidates, and the draw."""
        item, target = account.choices
        yield Scene(
            "choice",
            "An object",
            f"It is the turn of object {int(item.objects[0]) + 1} of {account.labels.size}. It leaves its "
            "cluster for a moment.",
            ringed=item.objects,
        )
        sizes = np.bincount(account.labels)
        n_options, best = target.probabilities.size, float(target.probabilities.max())
        yield Scene(
            "target",
            "The candidates",
            f"It may join one of {count(sizes.size, 'cluster')} or found a new one: "
            f"{count(n_options, 'candidate')}, the likeliest with probability {best:.3g}. Each has the exact "
            "conditional probability: prior times likelihood with the object there.",
            ringed=item.objects,
            shares=target.by_object,
        )
        own = int(account.labels[item.objects[0]])
        stays = account.proposed is not None and np.array_equal(account.labels, account.proposed)
        size = int(np.setdiff1d(target.objects, item.objects).size)
        where = "a cluster of its own" if size == 0 else f"a cluster of {count(size, 'other')}"
        origin = "" if stays else f"; it came from one of {count(int(sizes[own]), 'object')}"
        verb = "It stays in" if stays else "It joins" if size else "It founds"
        yield Scene(
            "draw",
            "The draw",
            f"{verb} {where}, drawn with probability {target.probability:.3g}{origin}.",
            colours="after",
            ringed=item.objects,
        )


@entry
def _conditional(problem: AnyProblem, workspace: AnyWorkspace, item: int) -> int:
    refresh(problem, workspace)
    tabulate(problem, workspace)
    return conditional_weights(problem, workspace, item)


def conditional_probabilities(
    posterior: Posterior,
    labels: ArrayLike,
    item: int,
    theta_index: int,
    concentration: float | None = None,
    nu_index: int = 0,
    sigma: FloatArray | None = None,
) -> FloatArray:
    """Probabilities that an object joins each cluster (canonical), and a new one unless it is alone.

    Those below e⁻⁴⁰ times the largest are 0: the sampler does not tell them from nothing either. Of own
    shapes the place of ν and the packed Σ are given too.
    """
    problem = make_problem(posterior)
    start = check_labels(labels, posterior.n_objects)
    log_value = posterior.first_log_concentration if concentration is None else math.log(concentration)
    workspace = make_workspace(problem, start, theta_index, log_value, nu_index, sigma)
    count = _conditional(problem, workspace, item)
    weights = workspace.weights[:count]
    return np.asarray(weights / weights.sum(), dtype=np.float64)
