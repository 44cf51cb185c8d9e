r"""What one proposal was made of, as frozen values.

The log Metropolis–Hastings ratio is a sum of four terms,

.. math::

    \log r = \log\frac{p(B^*)}{p(B)} + \log\frac{L(B^*)}{L(B)} + \log q(B \mid B^*) - \log q(B^* \mid B),

of which the paper prints the last two with the opposite signs. A proposal is accepted if
:math:`\log u < \log r` for a uniform draw u. Here :math:`q(B^* \mid B)` is called the way there, and
:math:`q(B \mid B^*)` the way back; each is a product of factors.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import FloatArray

__all__ = ["Allocation", "Changes", "Choice", "Factor", "Parameters", "Proposal", "Term", "Way"]

IntArray = NDArray[np.intp]


class Factor(NamedTuple):
    """A probability that a way has as a factor."""

    name: str
    log_probability: float

    @property
    def probability(self) -> float:
        """The probability itself."""
        return math.exp(self.log_probability)


class Term(NamedTuple):
    """A term of the log ratio."""

    name: str
    value: float


class Changes(NamedTuple):
    """What a proposal adds to the log prior and to the log likelihood."""

    log_prior: float
    log_likelihood: float


@dataclass(frozen=True)
class Way:
    """The probability of proposing one partition at another.

    Attributes
    ----------
    log_probability
        As the move's own ``log_proposal`` gives it.
    factors
        What it is the product of, found independently of it.
    """

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
        Whether nothing was drawn: the sides are given, and the way back of a merge is asked for.
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


class Parameters(NamedTuple):
    """θ and λ of the iteration, drawn before its moves."""

    theta: float
    theta_index: int
    theta_weights: FloatArray
    log_concentration: float

    @property
    def concentration(self) -> float:
        """Concentration λ of the Ewens prior."""
        return math.exp(self.log_concentration)


@dataclass(frozen=True, eq=False)
class Proposal:
    """One proposal of one move.

    Attributes
    ----------
    move
        Name of the move.
    kind
        ``"split"``, ``"merge"``, ``"reassign"``, ``"draw"`` (of a Gibbs sweep), or ``"nothing"``.
    parameters
        θ and λ.
    labels, proposed
        Canonical labels before, and as proposed; None if nothing was.
    choices
        What was chosen on the way, in order.
    allocation
        How members were or would be put on two sides.
    forward, backward
        The way there and the way back.
    changes
        Log prior and log likelihood of the proposed partition minus those of the present one.
    log_uniform
        Logarithm of the uniform draw that decides; None where nothing has to be decided.
    as_printed
        Whether the chain decides by the ratio that the paper prints.
    reason
        Why nothing was proposed.
    """

    move: str
    kind: str
    parameters: Parameters
    labels: IntArray
    proposed: IntArray | None = None
    choices: tuple[Choice, ...] = ()
    allocation: Allocation | None = None
    forward: Way | None = None
    backward: Way | None = None
    changes: Changes | None = None
    log_uniform: float | None = None
    as_printed: bool = False
    reason: str = ""

    @property
    def has_printed_ratio(self) -> bool:
        """Whether the paper prints a ratio for this move that differs from the right one."""
        return self.move == "split-merge" and self.proposed is not None

    def terms(self, as_printed: bool | None = None) -> tuple[Term, ...]:
        """Terms that add up to the log ratio: the chain's own, or the right or the printed one."""
        if self.changes is None or self.forward is None or self.backward is None:
            return ()
        turned = self.as_printed if as_printed is None else as_printed
        sign = -1.0 if turned and self.has_printed_ratio else 1.0
        return (
            Term("prior", self.changes.log_prior),
            Term("likelihood", self.changes.log_likelihood),
            Term("way back", sign * self.backward.log_probability),
            Term("way there", -sign * self.forward.log_probability),
        )

    def log_ratio(self, as_printed: bool | None = None) -> float | None:
        """Sum of the terms; None if nothing was proposed."""
        terms = self.terms(as_printed)
        return math.fsum(term.value for term in terms) if terms else None

    def accepted(self, as_printed: bool | None = None) -> bool | None:
        """Whether the uniform draw is below the ratio; None if nothing was proposed."""
        log_ratio = self.log_ratio(as_printed)
        if log_ratio is None:
            return None
        return self.log_uniform is None or self.log_uniform < log_ratio

    @property
    def moved(self) -> IntArray:
        """Objects whose company changes: the smaller part of a split or a merge."""
        return _moved(self)


def _moved(proposal: Proposal) -> IntArray:
    if proposal.proposed is None:
        return np.empty(0, dtype=np.intp)
    if proposal.kind in {"reassign", "draw"}:
        item: IntArray = proposal.choices[0].objects
        unchanged = np.array_equal(proposal.labels, proposal.proposed)
        return np.empty(0, dtype=np.intp) if unchanged else item
    if proposal.allocation is None:
        return np.empty(0, dtype=np.intp)
    return _smaller_side(proposal.allocation)


def _smaller_side(allocation: Allocation) -> IntArray:
    """Objects on the side with fewer members; the second one if both have as many."""
    side = 1 if 2 * int(allocation.sides.sum()) <= allocation.sides.size else 0
    return np.sort(allocation.members[allocation.sides == side])
