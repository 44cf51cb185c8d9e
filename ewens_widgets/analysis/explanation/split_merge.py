"""One proposal of the paper's split-merge move."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ewens_widgets.analysis.explanation.context import Context, frozen
from ewens_widgets.analysis.explanation.distance_weights import DistanceWeights
from ewens_widgets.analysis.explanation.draws import choose
from ewens_widgets.analysis.explanation.proposal import Allocation, Choice, Factor, Proposal, Way
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.moves.split_merge import SplitMerge
from ewens_widgets.sampling.moves.split_merge_proposal import log_proposal

__all__ = ["explain_split_merge"]

IntArray = NDArray[np.intp]

_ACTIONS = ("split", "merge", "nothing")


class _Explainer:
    """Makes one move and takes note."""

    def __init__(
        self,
        context: Context,
        move: SplitMerge,
        pairs: FloatArray,
        as_printed: bool,
        rng: np.random.Generator,
    ) -> None:
        self._context = context
        self._move = move
        self._pairs = pairs
        self._as_printed = as_printed
        self._rng = rng
        self._weights = DistanceWeights(pairs, context.slots)
        action = rng.random()
        split, merge, _ = move.probabilities
        chosen = 0 if action < split else 1 if action < split + merge else 2
        n_objects = context.slots.size
        self._action = Choice(
            "what to propose",
            np.array(move.probabilities, dtype=np.float64),
            chosen,
            np.arange(n_objects),
            np.ones(n_objects),
        )

    def explain(self) -> Proposal:
        action = _ACTIONS[self._action.chosen]
        n_objects, n_clusters = self._context.slots.size, self._context.n_clusters
        if action == "split":
            if n_clusters == n_objects:
                return self._nothing("A split was to be proposed, but every object is alone already.")
            return self._split()
        if action == "merge":
            if n_clusters == 1:
                return self._nothing("A merge was to be proposed, but there is only one cluster.")
            return self._merge()
        return self._nothing("This time the move keeps the partition as it is.")

    def _nothing(
        self, reason: str, choices: tuple[Choice, ...] = (), allocation: Allocation | None = None
    ) -> Proposal:
        return Proposal(
            move=self._move.name,
            kind="nothing",
            parameters=self._context.parameters,
            labels=self._context.labels,
            choices=(self._action, *choices),
            allocation=allocation,
            as_printed=self._as_printed,
            reason=reason,
        )

    def _split(self) -> Proposal:
        weights = self._weights.split_weights(self._move.within)
        uniform = self._rng.random()
        slot = choose(weights, uniform)
        shares, members = weights / weights.sum(), self._context.members(slot)
        examples = tuple((example,) for example in self._context.examples())
        by_object = shares[self._context.slots]
        cluster = Choice("cluster to split", shares, slot, members, by_object, examples, uniform)
        allocation = self._draw_sides(members)
        if allocation.sides.min() == allocation.sides.max():
            return self._nothing(
                "The core jump has emptied one side, so the partition stays as it is.", (cluster,), allocation
            )
        proposed = self._context.slots.copy()
        proposed[allocation.members[allocation.sides == 1]] = self._context.n_clusters
        forward = self._split_factors(cluster.probability, allocation)
        pairs, merge_weights = DistanceWeights(self._pairs, proposed).merge_weights(self._move.between)
        place = pairs.index((slot, self._context.n_clusters))
        backward = self._merge_factors(merge_weights[place] / merge_weights.sum())
        return self._proposal("split", proposed, (cluster,), allocation, forward, backward)

    def _draw_sides(self, members: IntArray) -> Allocation:
        cores = self._weights.farthest_pair(members)
        to_second = self._weights.to_second_core(members, cores)
        sides = np.zeros(members.size, dtype=np.int64)
        for place, member in enumerate(members.tolist()):
            # A draw below the share of the first core puts the member there; the cores need none.
            if member == cores[1]:
                sides[place] = 1
            elif member != cores[0]:
                sides[place] = 0 if self._rng.random() < 1.0 - to_second[place] else 1
        jumped = None
        if self._rng.random() < self._move.core_jump:
            jumped = cores[0] if self._rng.random() < 0.5 else cores[1]
            place = int(np.flatnonzero(members == jumped)[0])
            sides[place] = 1 - sides[place]
        return Allocation(cores, members, to_second, frozen(sides), jumped, self._move.core_jump)

    def _merge(self) -> Proposal:
        pairs, weights = self._weights.merge_weights(self._move.between)
        place = _choose_pair(pairs, weights, self._context.n_clusters, self._rng)
        slot, other = pairs[place]
        members = np.union1d(self._context.members(slot), self._context.members(other))
        shares = weights / weights.sum()
        n_clusters = self._context.n_clusters
        firsts, seconds = (np.bincount(side, shares, n_clusters) for side in np.array(pairs).T)
        by_object, example = (firsts + seconds)[self._context.slots], self._context.examples()
        examples = tuple((example[first], example[second]) for first, second in pairs)
        chosen = Choice("two clusters to merge", shares, place, members, by_object, examples)
        cores = self._weights.farthest_pair(members)
        sides = (self._context.slots[members] == other).astype(np.int64)
        if sides[members == cores[0]][0] > sides[members == cores[1]][0]:
            sides = 1 - sides  # the first core's side is 0, where the cores are apart
        to_second = self._weights.to_second_core(members, cores)
        allocation = Allocation(
            cores, members, to_second, frozen(sides), None, self._move.core_jump, is_replay=True
        )
        proposed = self._context.slots.copy()
        proposed[proposed == other] = slot
        forward = self._merge_factors(chosen.probability)
        merged = canonical_labels(proposed)
        split_weights = DistanceWeights(self._pairs, merged).split_weights(self._move.within)
        share = split_weights[merged[members[0]]] / split_weights.sum()
        backward = self._split_factors(float(share), allocation)
        return self._proposal("merge", proposed, (chosen,), allocation, forward, backward)

    def _split_factors(self, share: float, allocation: Allocation) -> tuple[Factor, ...]:
        return (
            Factor("a split is tried", math.log(self._move.probabilities[0])),
            Factor("of this cluster", math.log(share)),
            *_side_factors(allocation),
        )

    def _merge_factors(self, share: float) -> tuple[Factor, ...]:
        return (
            Factor("a merge is tried", math.log(self._move.probabilities[1])),
            Factor("of these two clusters", math.log(share)),
        )

    def _proposal(
        self,
        kind: str,
        proposed: NDArray[Any],
        choices: tuple[Choice, ...],
        allocation: Allocation,
        forward: tuple[Factor, ...],
        backward: tuple[Factor, ...],
    ) -> Proposal:
        context, arguments = self._context, (self._move, self._pairs)
        start, end = context.labels, frozen(canonical_labels(proposed))
        return Proposal(
            move=self._move.name,
            kind=kind,
            parameters=context.parameters,
            labels=start,
            proposed=end,
            choices=(self._action, *choices),
            allocation=allocation,
            forward=Way(log_proposal(context.posterior, start, end, *arguments), forward),
            backward=Way(log_proposal(context.posterior, end, start, *arguments), backward),
            log_uniform=math.log(1.0 - self._rng.random()),
            as_printed=self._as_printed,
            changes=context.changes(end),
        )


def _choose_pair(
    pairs: list[tuple[int, int]], weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> int:
    """Choose a pair of clusters: first the one with the lower number, then its partner."""
    firsts = np.array([first for first, _ in pairs])
    rows = np.bincount(firsts, weights, minlength=n_clusters).astype(np.float64)
    slot = choose(rows, rng.random())
    inside = np.where(firsts == slot, weights, 0.0)
    return choose(inside, rng.random())


def _side_factors(allocation: Allocation) -> tuple[Factor, ...]:
    """Probability of the sides, apart from which core is on which."""
    members, sides = allocation.members, allocation.sides
    others = ~np.isin(members, allocation.cores)
    first, second = (int(sides[members == core][0]) for core in allocation.cores)
    with np.errstate(divide="ignore"):
        log_first, log_second = np.log(1.0 - allocation.to_second), np.log(allocation.to_second)
    # `as_first`: the first core's side is side 0; `as_second`: it is side 1.
    as_first = float(np.where(sides == 0, log_first, log_second)[others].sum())
    as_second = float(np.where(sides == 1, log_first, log_second)[others].sum())
    jump = allocation.jump_probability
    if first != second:
        return (
            Factor("each member on its side", as_first if first == 0 else as_second),
            Factor("no core jumps", math.log1p(-jump)),
        )
    log_jump = math.log(0.5 * jump) if jump > 0.0 else -math.inf
    return (
        Factor("each member on its side, either way round", float(logsumexp([as_first, as_second]))),
        Factor("the right core jumps", log_jump),
    )


def explain_split_merge(
    context: Context, move: SplitMerge, pairs: FloatArray, as_printed: bool, rng: np.random.Generator
) -> Proposal:
    """Make one split-merge move with the next random numbers of `rng`, and say what it did."""
    return _Explainer(context, move, pairs, as_printed, rng).explain()
