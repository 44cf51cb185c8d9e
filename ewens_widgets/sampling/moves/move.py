r"""What a move is, and how it says what it did.

A move is one file: a frozen dataclass whose fields are its options, the mathematics, a kernel that changes
the partition, and words. `register` makes it known, under its name, to samplers, files and widgets.

**The kernel** of a Metropolis move proposes a partition B* at B and accepts it with the probability

.. math:: \min\left\{1, \; \frac{\pi(B^*) \, q(B \mid B^*)}{\pi(B) \, q(B^* \mid B)}\right\} ;

a sweep draws each object from its exact conditional. The moves of the package's own schedules run in loops
compiled for them (`Move.loop`). The kernel of any other move is called from Python, for each repeat,

.. code-block:: python

    kernel(problem, workspace, pairs, options, outcome, rng) -> int

with the distances between the objects (an empty array where the move does not need them). It returns 1 if
the proposal was accepted, 0 if it was rejected, −1 if nothing was proposed (a sweep: how many objects changed
their cluster). It changes the workspace by the operations of `sampling.kernel` and draws from `rng` alone. In
the package it is decorated with `compiled.entry` (kept on disk), elsewhere with `compiled.guest`. `register`
compiles one that is left plain, since only compiled code can call the operations of the kernel. Where
`outcome.flags[WANTED]` is set it calls `report` with the proposal, the ratio, the uniform draw and log q both
ways.

**Its account.** If even `ACCOUNT` is wanted, a kernel takes notes as it goes: what it chose, with which
probabilities, who fell on which side, the factors of q. `Move.account` reads them, and `Move.tell` puts them
into words, scene by scene. So a proposal is explained by the very code that made it. What is left out has a
sensible form without: the proposed partition, the ratio and the decision.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from ewens_widgets.arguments import check_fits
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.compiled import COMPILED, guest
from ewens_widgets.sampling.draws import read_only
from ewens_widgets.sampling.kernel import workspace as at
from ewens_widgets.sampling.kernel.workspace import Outcome

IntArray = NDArray[np.intp]

# Topics of notes that all moves share; a move's own begin with OWN.
# FORWARD, BACKWARD: a factor of q there or back; first its place in `Move.factors`, value its logarithm.
# CORES: the two objects that sides grow from. MEMBER: first an object, second its side, value the probability
# that it joins side 1.
FORWARD, BACKWARD, CORES, MEMBER, OWN = 0, 1, 2, 3, 10

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Option(NamedTuple):
    """An option of a move that panels offer.

    Attributes
    ----------
    name
        Field of the move.
    key
        Short name, of the field in a panel.
    title, help
        What a person reads beside it, and on pointing at it.
    values
        What can be chosen; nothing if it is a probability.
    """

    name: str
    key: str
    title: str
    help: str
    values: tuple[str, ...] = ()


class Factor(NamedTuple):
    """A probability that a way has as a factor."""

    name: str
    log_probability: float

    @property
    def probability(self) -> float:
        """The probability itself."""
        return math.exp(self.log_probability)


@dataclass(frozen=True)
class Way:
    """The probability of proposing one partition at another, and what it is the product of."""

    log_probability: float
    factors: tuple[Factor, ...]


@dataclass(frozen=True, eq=False)
class Choice:
    """A random choice among some options.

    Attributes
    ----------
    what
        What is chosen, in words.
    probabilities
        Probability of each option.
    chosen
        Place of the one chosen.
    objects
        Objects that the chosen option concerns.
    by_object
        For each object, the probability that an option is chosen that concerns it.
    examples
        An object of each cluster that an option concerns, for each option; no object stands for a new
        cluster. Left empty where the options are all alike.
    uniform
        The uniform draw that chose, if it was one.
    """

    what: str
    probabilities: FloatArray
    chosen: int
    objects: IntArray
    by_object: FloatArray
    examples: tuple[tuple[int, ...], ...] = ()
    uniform: float | None = None

    @property
    def probability(self) -> float:
        """Probability of the option that was chosen."""
        return float(self.probabilities[self.chosen])


@dataclass(frozen=True, eq=False)
class Allocation:
    """How the members of a cluster fall onto two sides.

    Attributes
    ----------
    cores
        The two objects that the sides grow from.
    members
        All members, in the order in which they are put on a side.
    to_second
        Probability of each member to join the side of the second core; 0 and 1 for the cores themselves.
    sides
        Side of each member in the finer of the two partitions.
    jumped
        The core that changed sides at the end, if one did.
    jump_probability
        Probability that one of the cores jumps; 0 where the move has no core jump.
    is_replay
        Whether nothing was drawn: the sides are given, and the reverse proposal of a merge is wanted.
    """

    cores: tuple[int, int]
    members: IntArray
    to_second: FloatArray
    sides: NDArray[np.int64]
    jumped: int | None = None
    jump_probability: float = 0.0
    is_replay: bool = False

    @property
    def probability_of_sides(self) -> FloatArray:
        """Probability of each member to be put where it is."""
        return np.where(self.sides == 1, self.to_second, 1.0 - self.to_second)


@dataclass(frozen=True, eq=False)
class BareProposal:
    """One proposal, as far as the move itself knows it.

    Attributes
    ----------
    labels, proposed
        Canonical labels before, and as proposed; None if nothing was.
    kind
        ``"split"``, ``"merge"``, ``"reassign"``, ``"draw"`` (of a sweep), ``"nothing"``, or the move's name.
    choices
        What was chosen on the way, in order.
    allocation
        How members were or would be put on two sides.
    forward, backward
        The forward and the reverse proposal.
    log_uniform
        Logarithm of the uniform draw that decides; None where nothing has to be decided.
    reason
        Why nothing was proposed.
    """

    labels: IntArray
    proposed: IntArray | None = None
    kind: str = "nothing"
    choices: tuple[Choice, ...] = ()
    allocation: Allocation | None = None
    forward: Way | None = None
    backward: Way | None = None
    log_uniform: float | None = None
    reason: str = ""

    @property
    def moved(self) -> IntArray:
        """Objects whose company changes: the smaller part of a split or a merge."""
        nobody = np.empty(0, dtype=np.intp)
        if self.proposed is None or np.array_equal(self.labels, self.proposed):
            return nobody
        if self.allocation is None:
            return self.choices[0].objects if self.choices else nobody
        sides = self.allocation.sides
        side = 1 if 2 * int(sides.sum()) <= sides.size else 0
        return np.sort(self.allocation.members[sides == side])


class Notes:
    """What a kernel noted of a proposal, and the partition that it was made at.

    Parameters
    ----------
    slots
        Slot of each object's cluster before the proposal: kernels choose among clusters in this order.
    outcome
        What the kernel has filled.
    factors
        Names of the factors of q, by their places.
    """

    def __init__(self, slots: NDArray[np.int64], outcome: Outcome, factors: tuple[str, ...]) -> None:
        self.slots = slots
        self._outcome = outcome
        self._rows = outcome.notes[: outcome.flags[at.NOTED]]
        self._factors = factors

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.slots.max()) + 1

    @cached_property
    def labels(self) -> IntArray:
        """Canonical labels."""
        return read_only(canonical_labels(self.slots))

    def of(self, topic: int) -> list[tuple[int, int, float]]:
        """Subjects and value of each note on a topic."""
        rows = self._rows[self._rows[:, 0] == topic, 1:].tolist()
        return [(int(first), int(second), value) for first, second, value in rows]

    def members(self, slot: int) -> IntArray:
        """Objects of a cluster, in order."""
        return np.flatnonzero(self.slots == slot)

    def examples(self) -> list[int]:
        """One object of each cluster."""
        first: list[int] = np.unique(self.slots, return_index=True)[1].tolist()
        return first

    def allocation(self, **details: Any) -> Allocation | None:  # noqa: ANN401 - of Allocation
        """Cores and members with their sides, if there are any."""
        rows = self.of(MEMBER)
        if not rows:
            return None
        members, sides, shares = zip(*rows, strict=True)
        return Allocation(
            cores=self.of(CORES)[0][:2],
            members=np.array(members, dtype=np.intp),
            to_second=np.array(shares),
            sides=read_only(np.array(sides, dtype=np.int64)),
            **details,
        )

    def way(self, topic: int, log_probability: float) -> Way:
        """One of the two ways; without notes on its factors it has only one."""
        factors = tuple(Factor(self._factors[place], value) for place, _, value in self.of(topic))
        return Way(log_probability, factors or (Factor("the proposal", log_probability),))

    def account(self, kind: str, **details: Any) -> BareProposal:  # noqa: ANN401 - of BareProposal
        """Put the account of a Metropolis step together: what was chosen is given, the rest is known."""
        if not self._outcome.flags[at.PROPOSED]:
            return BareProposal(self.labels, kind="nothing", **details)
        reals = self._outcome.reals
        return BareProposal(
            labels=self.labels,
            proposed=read_only(canonical_labels(self._outcome.labels)),
            kind=kind,
            forward=self.way(FORWARD, float(reals[at.LOG_FORWARD])),
            backward=self.way(BACKWARD, float(reals[at.LOG_BACKWARD])),
            log_uniform=float(reals[at.LOG_UNIFORM]),
            **details,
        )


def _nobody() -> IntArray:
    return np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Scene:
    """One stage of a proposal, as it is told. Objects are numbered from 1 in sentences.

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

    @classmethod
    def of_sides(cls, account: BareProposal, allocation: Allocation, rule: str, log_sides: float) -> "Scene":
        """The members on their sides: the rule, then how they fell; or would have to, and how probably."""
        sides = allocation.sides
        if allocation.jumped is not None:  # It jumps later.
            sides = np.where(allocation.members == allocation.jumped, 1 - sides, sides)
        more, fewer = sorted(np.bincount(sides, minlength=2).tolist(), reverse=True)
        drawn, title = f"They fell {more} to {fewer}.", "The sides"
        if allocation.is_replay:
            title = "The reverse proposal: the sides"
            drawn = f"The split into these sides, {more} to {fewer}, has probability {from_log(log_sides)}."
        shares = np.full(account.labels.size, np.nan)
        shares[allocation.members] = allocation.to_second
        return cls(
            "sides",
            title,
            rule + drawn,
            colours="sides",
            focus=allocation.members,
            cores=allocation.cores,
            shares=shares,
        )


@dataclass(frozen=True)
class Move:
    """A move; the fields of a subclass, which is a frozen dataclass, are its options.

    Attributes
    ----------
    name
        Under which it is registered, in schedules and files.
    title
        What it is called in menus.
    kernel
        What changes the partition; see the module.
    loop
        Name of the module with a compiled loop that calls the kernel (see `sampling.driver`); without one,
        the kernel is called from Python.
    needs_distances
        Whether the kernel needs the distances between all objects.
    is_sweep
        Whether it draws every object once, instead of making a single proposal that is accepted or rejected.
    draw
        Of a sweep: makes the draw of one object, with notes; called with problem, workspace, outcome, object
        and generator.
    from_paper
        Whether it is one of the paper's moves.
    has_printed_ratio
        Whether the paper prints a ratio for it that differs from the right one.
    moves_one
        Whether a proposal moves a single object, even where that founds or ends a cluster.
    choosable
        Options that panels offer.
    factors
        Names of the factors of q that the kernel notes.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    kernel: ClassVar[Callable[..., int]]
    loop: ClassVar[str] = ""
    needs_distances: ClassVar[bool] = False
    is_sweep: ClassVar[bool] = False
    draw: ClassVar[Callable[..., None] | None] = None
    from_paper: ClassVar[bool] = False
    has_printed_ratio: ClassVar[bool] = False
    moves_one: ClassVar[bool] = False
    choosable: ClassVar[tuple[Option, ...]] = ()
    factors: ClassVar[tuple[str, ...]] = ()

    def options(self, as_printed: bool = False) -> Any:  # noqa: ANN401, ARG002 - as the kernel takes them
        """Options in the form that the kernel takes."""
        return None

    def account(self, notes: Notes) -> BareProposal:
        """Read the kernel's notes of one proposal."""
        return notes.account(self.name, reason="The move proposed nothing this time.")

    def tell(self, account: BareProposal) -> Iterator[Scene]:
        """Tell what was chosen, between the scene of the present partition and that of the proposed one."""
        for choice in account.choices:
            options = count(choice.probabilities.size, "possibility", "possibilities")
            text = f"Chosen with probability {choice.probability:.3g}, one of {options}."
            title = choice.what[:1].upper() + choice.what[1:]
            yield Scene("choice", title, text, ringed=choice.objects, shares=choice.by_object)


def pair_distances(coordinates: FloatArray) -> FloatArray:
    """Euclidean distances between objects (n × n), on a grid where sums over pairs are exact."""
    n_objects = len(coordinates)
    way_out = 'Use moves="default", which needs none, or fewer rows.'
    check_fits(16 * n_objects**2, f"the distances between {n_objects} objects", way_out)
    # Only ratios of distances matter; scaled exactly, data in huge or tiny units neither overflow nor vanish.
    spread = coordinates - coordinates[0]
    _, exponent = np.frexp(np.abs(spread).max())
    condensed = pdist(np.ldexp(spread, -exponent))
    total = float(condensed.sum())
    _, exponent = np.frexp(max(total, np.finfo(np.float64).tiny))
    step = np.ldexp(1.0, int(exponent) - 51)
    return squareform(np.round(condensed / step) * step)


MOVES: dict[str, type[Move]] = {}

PRINTED = " as printed"
"""Ends the name of a recorded move whose proposals are accepted by the ratio that the paper prints."""


def is_sweep(name: str) -> bool:
    """Whether a move draws every object: it is always accepted, and its rate is that of points that move."""
    return name in MOVES and MOVES[name].is_sweep


_Kind = TypeVar("_Kind", bound=type[Move])


def register(kind: _Kind) -> _Kind:
    """Make a kind of move known under its name; a decorator, or called with the class."""
    given: object = kind
    if not (isinstance(given, type) and issubclass(given, Move) and "__dataclass_params__" in vars(given)):
        raise TypeError(f"{kind!r} is not a frozen dataclass that inherits from Move.")
    for needed in ("name", "title", "kernel"):
        if not hasattr(kind, needed):
            raise TypeError(f"the move {kind.__name__} has no {needed}; see Move, which says what is needed.")
    kind()  # So that it can be asked for by name, every option needs a default.
    if COMPILED and not hasattr(kind.kernel, "py_func"):
        # Called from plain Python, the operations that a kernel is made of would crash the process.
        kind.kernel = staticmethod(guest(kind.kernel))
    known = MOVES.get(kind.name, kind)
    # The same class again is what a notebook cell makes that is run a second time.
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise ValueError(f"there is a move {kind.name!r} already, {known.__name__}; choose another name.")
    MOVES[kind.name] = kind
    return kind


def count(number: int, one: str, several: str | None = None) -> str:
    """A number with its noun, as a person reads it in a sentence."""
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
