"""A proposal told in stages, each with a sentence and with what to look at.

Objects are numbered from 1 in the sentences, as in the pictures of the package; arrays count from 0.

Numbers as a person reads them in a sentence.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.explanation.proposal import Allocation, Choice, Proposal, Way
from ewens_widgets.model.checks import FloatArray

__all__ = ["Scene", "count", "from_log", "signed", "stages_of"]

IntArray = NDArray[np.intp]

_KINDS = {
    "average": "average distance",
    "maximum": "largest distance",
    "minimum": "smallest distance",
    "hausdorff": "Hausdorff distance",
}


def _nobody() -> IntArray:
    return np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Scene:
    """One stage of a proposal.

    Attributes
    ----------
    key
        ``"start"``, ``"action"``, ``"choice"``, ``"target"``, ``"cores"``, ``"sides"``, ``"jump"``,
        ``"proposal"``, ``"ratio"`` or ``"decision"``.
    title, text
        What a person reads.
    colours
        What colours mean: ``"before"`` and ``"after"`` are partitions, ``"sides"`` two sides.
    focus
        Objects that matter now; none means all of them.
    ringed
        Objects to point at.
    cores
        The two cores, where they matter.
    shares
        A probability for each object, NaN where there is none: to be chosen, or to join the second side.
    """

    key: str
    title: str
    text: str
    colours: str = "before"
    focus: IntArray = field(default_factory=_nobody)
    ringed: IntArray = field(default_factory=_nobody)
    cores: tuple[int, ...] = ()
    shares: FloatArray | None = None


def stages_of(proposal: Proposal, within: str = "average", between: str = "average") -> tuple[Scene, ...]:
    """Tell a proposal in stages.

    Parameters
    ----------
    proposal
        What to tell.
    within, between
        Distances that the paper's split-merge move goes by.
    """
    tell: dict[str, Callable[[], Iterator[Scene]]] = {
        "reassign": lambda: _reassign(proposal),
        "gibbs": lambda: _gibbs(proposal),
        "informed-split-merge": lambda: _informed(proposal),
        "split-merge": lambda: _split_merge(proposal, within, between),
    }
    return _start(proposal), *tell[proposal.move](), *_end(proposal)


def _start(proposal: Proposal) -> Scene:
    parameters = proposal.parameters
    weight = parameters.theta_weights[parameters.theta_index]
    text = (
        f"{count(proposal.labels.size, 'object')} in "
        f"{count(int(proposal.labels.max()) + 1, 'cluster')}. "
        f"θ = {parameters.theta:g} was drawn from its conditional, where it has probability {weight:.3g}; "
        f"λ = {parameters.concentration:.3g}."
    )
    return Scene("start", "Where the chain stands", text)


def _split_merge(proposal: Proposal, within: str, between: str) -> Iterator[Scene]:
    action, *chosen = proposal.choices
    split, merge, keep = action.probabilities
    what = ("A split is tried", "A merge is tried", "Nothing is tried")[action.chosen]
    yield Scene(
        "action",
        "Split, merge or keep",
        f"{what}. A split has probability {split:.3g}, a merge {merge:.3g}, keeping all as it is {keep:.3g}.",
    )
    if not chosen or proposal.allocation is None:
        return
    if action.chosen == 0:
        reason = f"in proportion to the {_KINDS[within]} within a cluster"
        yield _chosen(chosen[0], f"The cluster of {count(chosen[0].objects.size, 'object')}", reason)
    else:
        reason = f"in proportion to one over the {_KINDS[between]} between two clusters"
        yield _chosen(chosen[0], "Two clusters", reason)
    yield from _by_distance(proposal, proposal.allocation)


def _chosen(choice: Choice, subject: str, reason: str) -> Scene:
    are_two = subject.startswith("Two")
    verb, title = ("were", "The two clusters") if are_two else ("was", "The cluster")
    text = f"{subject} {verb} chosen with probability {choice.probability:.3g}, {reason}."
    return Scene("choice", title, text, ringed=choice.objects, shares=choice.by_object)


def _by_distance(proposal: Proposal, allocation: Allocation) -> Iterator[Scene]:
    first, second = (core + 1 for core in allocation.cores)
    back = allocation.is_replay
    whose = "Of both together, the" if back else "Its"
    yield Scene(
        "cores",
        "The cores" if not back else "The way back: the cores",
        f"{whose} two objects farthest apart, {first} and {second}, are the cores of two sides"
        f"{': from these a split would have to start' if back else ''}.",
        focus=allocation.members,
        cores=allocation.cores,
    )
    rule = (
        f"A member i joins core {second} with probability d(i, {first}) / (d(i, {first}) + d(i, {second})): "
        "the nearer core is favoured. "
    )
    yield _sides(allocation, rule, proposal)
    yield _jump(allocation)


def _sides(allocation: Allocation, rule: str, proposal: Proposal) -> Scene:
    sizes = sorted(np.bincount(_drawn_sides(allocation), minlength=2).tolist(), reverse=True)
    drawn = f"They fell {sizes[0]} to {sizes[1]}."
    if allocation.is_replay:
        way = proposal.backward
        log_sides = way.factors[2 if len(way.factors) > 2 else 0].log_probability if way else 0.0
        drawn = f"To fall apart as they are, {sizes[0]} to {sizes[1]}, has probability {from_log(log_sides)}."
    title = "The way back: the sides" if allocation.is_replay else "The sides"
    return Scene(
        "sides",
        title,
        rule + drawn,
        colours="sides",
        focus=allocation.members,
        cores=allocation.cores,
        shares=_spread(allocation.members, allocation.to_second, proposal.labels.size),
    )


def _drawn_sides(allocation: Allocation) -> NDArray[np.int64]:
    """Sides before a core jumped."""
    if allocation.jumped is None:
        return allocation.sides
    return np.where(allocation.members == allocation.jumped, 1 - allocation.sides, allocation.sides)


def _jump(allocation: Allocation) -> Scene:
    probability = f"{allocation.jump_probability:.3g}"
    ringed = _nobody()
    if allocation.is_replay:
        apart = len({int(allocation.sides[allocation.members == core][0]) for core in allocation.cores}) == 2
        text = (
            f"The cores are apart, so none may jump: probability {1 - allocation.jump_probability:.3g}."
            if apart
            else f"Both cores are in one cluster: only a core jump (probability {probability}) leads there, "
            "in two ways."
        )
    elif allocation.jumped is None:
        text = f"With probability {probability} one of the cores changes sides. This time none did."
    else:
        who = f"object {allocation.jumped + 1}"
        text = f"With probability {probability} one of the cores changes sides: {who} did."
        ringed = np.array([allocation.jumped])
    title = "The way back: core jump" if allocation.is_replay else "Core jump"
    return Scene("jump", title, text, focus=allocation.members, cores=allocation.cores, ringed=ringed)


def _informed(proposal: Proposal) -> Iterator[Scene]:
    (pair,), allocation = proposal.choices, proposal.allocation
    if allocation is None:
        return
    first, second = (core + 1 for core in allocation.cores)
    together = (
        "are in different clusters: their merge" if allocation.is_replay else "share a cluster: its split"
    )
    yield Scene(
        "choice",
        "Two objects",
        f"Objects {first} and {second} were drawn evenly, with probability {pair.probability:.3g}. They "
        f"{together} is proposed.",
        ringed=pair.objects,
        shares=pair.by_object,
    )
    rule = (
        f"The other members join one by one, in random order, the side of {first} or of {second}: with "
        "probability in proportion to its size so far times the density of the member given those on it. "
    )
    yield _sides(allocation, rule, proposal)


def _reassign(proposal: Proposal) -> Iterator[Scene]:
    item, target = proposal.choices
    number = int(item.objects[0]) + 1
    yield Scene(
        "choice",
        "An object",
        f"Object {number} was drawn evenly, with probability {item.probability:.3g}.",
        ringed=item.objects,
        shares=item.by_object,
    )
    n_options = target.probabilities.size
    size = target.objects.size
    where = f"a cluster of {size}" if size else "a cluster of its own"
    yield Scene(
        "target",
        "Where to",
        f"It is to join {where}, one of {count(n_options, 'possibility', 'possibilities')}, all as "
        f"probable: {target.probability:.3g}.",
        ringed=np.append(item.objects, target.objects),
        shares=target.by_object,
    )


def _gibbs(proposal: Proposal) -> Iterator[Scene]:
    item, target = proposal.choices
    number = int(item.objects[0]) + 1
    yield Scene(
        "choice",
        "An object",
        f"It is the turn of object {number} of {proposal.labels.size}. It leaves its cluster for a moment.",
        ringed=item.objects,
    )
    sizes = np.bincount(proposal.labels)
    n_options = target.probabilities.size
    best = float(target.probabilities.max())
    yield Scene(
        "target",
        "The candidates",
        f"It may join one of {count(sizes.size, 'cluster')} or found a new one: "
        f"{count(n_options, 'candidate')}, the likeliest with probability {best:.3g}. Each has the exact "
        "conditional probability: prior times likelihood with the object there.",
        ringed=item.objects,
        shares=target.by_object,
    )
    own = int(proposal.labels[item.objects[0]])
    stays = proposal.proposed is not None and np.array_equal(proposal.labels, proposal.proposed)
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


def _end(proposal: Proposal) -> Iterator[Scene]:
    log_ratio = proposal.log_ratio()
    if log_ratio is None or proposal.proposed is None or not proposal.forward or not proposal.backward:
        yield Scene("decision", "Nothing to decide", proposal.reason)
        return
    if proposal.kind != "draw":
        n_before, n_after = (int(labels.max()) + 1 for labels in (proposal.labels, proposal.proposed))
        yield Scene(
            "proposal",
            "The proposal",
            f"From {n_before} to {count(n_after, 'cluster')}. The way there has probability "
            f"{_product(proposal.forward)}. The way back has probability {_product(proposal.backward)}.",
            colours="after",
            ringed=proposal.moved,
        )
    yield Scene(
        "ratio",
        "The ratio",
        " ".join(f"{term.name} {signed(term.value)}" for term in proposal.terms())
        + f": the log ratio is {signed(log_ratio)}, the ratio {from_log(log_ratio)}.",
        colours="after",
        ringed=proposal.moved,
    )
    yield Scene(
        "decision",
        "The decision",
        _decision(proposal, log_ratio),
        colours="after" if proposal.accepted() else "before",
        ringed=proposal.moved,
    )


def _decision(proposal: Proposal, log_ratio: float) -> str:
    if proposal.log_uniform is None:
        return "The ratio of a draw from the exact conditional is 1: it is always accepted."
    uniform = math.exp(proposal.log_uniform)
    verdict = "below" if proposal.accepted() else "not below"
    outcome = "accepted" if proposal.accepted() else "rejected; the chain stays where it is"
    return (
        f"A uniform draw gave u = {uniform:.4f}, log u = {signed(proposal.log_uniform)}, {verdict} the log "
        f"ratio {signed(log_ratio)}: the proposal is {outcome}."
    )


def _product(way: Way) -> str:
    parts = " × ".join(f"{from_log(factor.log_probability)} ({factor.name})" for factor in way.factors)
    total = f"{from_log(way.log_probability)}, log {signed(way.log_probability)}"
    return f"{parts} = {total}" if len(way.factors) > 1 else f"{parts}, log {signed(way.log_probability)}"


def _spread(members: IntArray, values: FloatArray, n_objects: int) -> FloatArray:
    everybody = np.full(n_objects, np.nan)
    everybody[members] = values
    return everybody


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def count(number: int, one: str, several: str | None = None) -> str:
    """A number with its noun."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def signed(value: float) -> str:
    """A number with three decimals and its sign, the minus as it is printed in books."""
    return f"{value:+.3f}".replace("-", "−")


def from_log(log_value: float) -> str:
    """A number given by its logarithm, however small or large."""
    power = log_value / math.log(10.0)
    if -4.0 <= power <= 6.0:
        return f"{math.exp(log_value):.3g}"
    if not math.isfinite(power):
        return "0" if power < 0 else "∞"
    whole = math.floor(power)
    return f"{10.0 ** (power - whole):.2f}·10{str(whole).translate(_RAISED)}"
