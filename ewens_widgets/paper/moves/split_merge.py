r"""Split-merge, the paper's Algorithm 2, with its acceptance ratio corrected.

With probabilities :math:`(p_s, p_m, p_k)` a split, a merge or nothing is proposed.

*Split.* A cluster is chosen in proportion to its within-cluster distance :math:`\delta(b)`. Its farthest
pair u, v are the cores. Every other member i joins u with probability :math:`d(i,v) / (d(i,u) + d(i,v))`:
the *nearer* core is favoured. With probability :math:`\epsilon` (core jump) one of the cores, chosen
evenly, then moves to the other side, so that every split into two has positive probability. If that empties
a side, the partition stays as it is.

*Merge.* Two clusters are chosen in proportion to one over their distance :math:`\Delta(a,b)`.

.. math::

    q(\text{split}) = p_s \frac{\delta(b)}{\sum \delta} \, P(\text{sides}), \qquad
    q(\text{merge}) = p_m \frac{1/\Delta(a,b)}{\sum 1/\Delta}, \qquad
    \log r = \log\frac{\pi(B^*)}{\pi(B)} + \log\frac{q(B \mid B^*)}{q(B^* \mid B)} .

The paper inverts the second fraction. `acceptance="as-printed"` of the sampler does so too, to
show what happens. With many exact duplicates the floor under the distances makes some splits possible in
principle only: use another schedule for such data.

Here are the move's options and its words; `split_merge_proposal` has its kernel.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ewens_widgets.paper.moves import split_merge_proposal as proposal
from ewens_widgets.paper.moves.distances import BETWEEN, WITHIN
from ewens_widgets.paper.moves.split_merge_proposal import SplitMergeOptions, split_merge
from ewens_widgets.sampling.draws import read_only
from ewens_widgets.sampling.moves.move import (
    Allocation,
    BareProposal,
    Choice,
    Move,
    Notes,
    Option,
    Scene,
    count,
)

_ACTIONS = ("split", "merge", "nothing")
_DISTANCES = {
    "average": "average distance",
    "maximum": "largest distance",
    "minimum": "smallest distance",
    "hausdorff": "Hausdorff distance",
}


@dataclass(frozen=True)
class SplitMerge(Move):
    """Split by distance to the farthest pair, merge near clusters.

    Parameters
    ----------
    within
        Distance within a cluster: ``"average"``, ``"maximum"`` or ``"minimum"``.
    between
        Distance between clusters: ``"average"``, ``"maximum"``, ``"minimum"`` or ``"hausdorff"``.
    probabilities
        Probabilities of proposing a split, a merge, and nothing.
    core_jump
        Probability that one of the two cores changes sides.
    """

    within: str = "average"
    between: str = "average"
    probabilities: tuple[float, float, float] = (0.475, 0.475, 0.05)
    core_jump: float = 0.01

    name: ClassVar[str] = "split-merge"
    title: ClassVar[str] = "split-merge (paper 2)"
    kernel = staticmethod(split_merge)
    loop: ClassVar[str] = "ewens_widgets.paper.moves.distance_loop"
    needs_distances: ClassVar[bool] = True
    from_paper: ClassVar[bool] = True
    has_printed_ratio: ClassVar[bool] = True
    factors: ClassVar[tuple[str, ...]] = proposal.FACTORS
    choosable: ClassVar[tuple[Option, ...]] = (
        Option("within", "within", "within", "Distance within clusters: wide ones are split", tuple(WITHIN)),
        Option("between", "between", "between", "Distance between clusters: near ones merge", tuple(BETWEEN)),
        Option("core_jump", "jump", "core jump", "Probability that a core of a split changes sides"),
    )

    def __post_init__(self) -> None:
        """Refuse unknown distances and probabilities that are none."""
        for option, known in (("within", WITHIN), ("between", BETWEEN)):
            given = getattr(self, option)
            if not isinstance(given, str) or given not in known:
                raise ValueError(f"{option} must be one of {', '.join(known)}; got {given!r}.")
        chances, jump = _as_floats(self.probabilities), _as_floats((self.core_jump,))
        if len(chances) != 3 or min(chances) < 0.0 or abs(sum(chances) - 1.0) > 1e-9:
            raise ValueError(
                "the probabilities of split, merge and keep must be three numbers, none negative, that sum "
                f"to 1; got {self.probabilities!r}."
            )
        if (chances[0] == 0.0) != (chances[1] == 0.0):
            raise ValueError(
                "split and merge undo each other: give both a positive probability, or neither; "
                f"got {self.probabilities!r}."
            )
        if len(jump) != 1 or not 0.0 <= jump[0] < 1.0:
            raise ValueError(
                f"the probability of a core jump must be at least 0 and below 1; got {self.core_jump!r}."
            )
        object.__setattr__(self, "probabilities", chances)
        object.__setattr__(self, "core_jump", jump[0])

    def options(self, as_printed: bool = False) -> SplitMergeOptions:
        """Options for the kernel."""
        split, merge, _ = self.probabilities
        return SplitMergeOptions(
            WITHIN[self.within], BETWEEN[self.between], split, merge, self.core_jump, as_printed
        )

    def account(self, notes: Notes) -> BareProposal:
        """What was tried, which cluster or pair was chosen, and how its members fall onto two sides."""
        action, _, _ = notes.of(proposal.ACTION)[0]
        n_objects = notes.slots.size
        chances = np.array(self.probabilities, dtype=np.float64)
        choices = [Choice("what to propose", chances, action, np.arange(n_objects), np.ones(n_objects))]
        chosen = notes.of(proposal.CHOSEN)
        if chosen:
            choices.append(_choice_of_clusters(notes, *chosen[0]))
        allocation = notes.allocation(jump_probability=self.core_jump, is_replay=_ACTIONS[action] == "merge")
        if allocation is not None and allocation.is_replay:
            allocation = _first_core_first(allocation)
        for jumped, _, _ in notes.of(proposal.JUMPED):
            if allocation is not None and jumped >= 0:
                allocation = replace(allocation, jumped=jumped)
        # What keeps a move from proposing: its choice, too few or too many clusters, or at last a core jump.
        reason = {
            "nothing": "This time the move keeps the partition as it is.",
            "merge": "A merge was to be proposed, but there is only one cluster.",
        }.get(_ACTIONS[action], "The core jump has emptied one side, so the partition stays as it is.")
        if _ACTIONS[action] == "split" and notes.n_clusters == n_objects:
            reason = "A split was to be proposed, but every object is alone already."
        return notes.account(_ACTIONS[action], choices=tuple(choices), allocation=allocation, reason=reason)

    def tell(self, account: BareProposal) -> Iterator[Scene]:
        """Tell what is tried with whom, the cores, the sides, and the core jump."""
        action, *chosen = account.choices
        split, merge, keep = action.probabilities
        what = ("A split is tried", "A merge is tried", "Nothing is tried")[action.chosen]
        yield Scene(
            "action",
            "Split, merge or keep",
            f"{what}. A split has probability {split:.3g}, a merge {merge:.3g}, keeping all as it is "
            f"{keep:.3g}.",
        )
        if not chosen or account.allocation is None:
            return
        if _ACTIONS[action.chosen] == "split":
            title, subject = "The cluster", f"The cluster of {count(chosen[0].objects.size, 'object')} was"
            reason = f"in proportion to the {_DISTANCES[self.within]} within a cluster"
        else:
            title, subject = "The two clusters", "Two clusters were"
            reason = f"in proportion to one over the {_DISTANCES[self.between]} between two clusters"
        yield Scene(
            "choice",
            title,
            f"{subject} chosen with probability {chosen[0].probability:.3g}, {reason}.",
            ringed=chosen[0].objects,
            shares=chosen[0].by_object,
        )
        yield from _tell_sides(account, account.allocation)


def _as_floats(values: object) -> tuple[float, ...]:
    """Finite floats, or nothing where `values` are none."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return ()
    return tuple(numbers.tolist()) if numbers.ndim == 1 and np.all(np.isfinite(numbers)) else ()


def _choice_of_clusters(notes: Notes, slot: int, other: int, uniform: float) -> Choice:
    """The cluster to split, or (two different slots) the pair to merge."""
    options = notes.of(proposal.OPTION)
    weights = np.array([weight for *_, weight in options])
    shares = weights / weights.sum()
    pairs = [(first, second) for first, second, _ in options]
    example = notes.examples()
    if slot == other:
        one = tuple((example[first],) for first, _ in pairs)
        return Choice(
            "cluster to split", shares, slot, notes.members(slot), shares[notes.slots], one, uniform
        )
    by_slot = np.zeros(notes.n_clusters)
    for side in np.array(pairs).T:
        by_slot += np.bincount(side, shares, notes.n_clusters)
    members = np.flatnonzero(np.isin(notes.slots, (slot, other)))
    examples = tuple((example[first], example[second]) for first, second in pairs)
    place = pairs.index((slot, other))
    return Choice("two clusters to merge", shares, place, members, by_slot[notes.slots], examples)


def _first_core_first(allocation: Allocation) -> Allocation:
    """The same with the first core's side as side 0, where the cores are apart."""
    first, second = (int(allocation.sides[allocation.members == core][0]) for core in allocation.cores)
    return replace(allocation, sides=read_only(1 - allocation.sides)) if first > second else allocation


def _tell_sides(account: BareProposal, allocation: Allocation) -> Iterator[Scene]:
    first, second = (core + 1 for core in allocation.cores)
    back = allocation.is_replay
    whose = "Of both together, the" if back else "Its"
    yield Scene(
        "cores",
        "The cores" if not back else "The reverse proposal: the cores",
        f"{whose} two objects farthest apart, {first} and {second}, are the cores of two sides"
        f"{': from these a split would have to start' if back else ''}.",
        focus=allocation.members,
        cores=allocation.cores,
    )
    rule = (
        f"A member i joins core {second} with probability d(i, {first}) / (d(i, {first}) + d(i, {second})): "
        "the nearer core is favoured. "
    )
    log_sides = account.backward.factors[2].log_probability if back and account.backward else 0.0
    yield Scene.of_sides(account, allocation, rule, log_sides)
    probability = f"{allocation.jump_probability:.3g}"
    jumped = [] if allocation.jumped is None else [allocation.jumped]
    if back:
        apart = len({int(allocation.sides[allocation.members == core][0]) for core in allocation.cores}) == 2
        text = (
            f"The cores are apart, so none may jump: probability {1 - allocation.jump_probability:.3g}."
            if apart
            else f"Both cores are in one cluster: only a core jump (probability {probability}) leads there, "
            "in two ways."
        )
    else:
        who = f"sides: object {jumped[0] + 1} did." if jumped else "sides. This time none did."
        text = f"With probability {probability} one of the cores changes {who}"
    title = "The reverse proposal: core jump" if back else "Core jump"
    ringed = np.array(jumped, dtype=np.intp)
    yield Scene("jump", title, text, focus=allocation.members, cores=allocation.cores, ringed=ringed)
