r"""One proposal of a chain, explained: what was drawn, how probable it was, and what decided.

The log Metropolis–Hastings ratio is a sum of four terms,

.. math::

    \log r = \log\frac{p(B^*)}{p(B)} + \log\frac{L(B^*)}{L(B)} + \log q(B \mid B^*) - \log q(B^* \mid B),

of which the paper prints the last two with the opposite signs. A proposal is accepted if
:math:`\log u < \log r` for a uniform draw u. Here :math:`q(B^* \mid B)` is the probability of the forward
proposal, and :math:`q(B \mid B^*)` that of the reverse proposal; each is a product of factors.

The sampler's own kernel makes the proposal, from a copy of the chain's state and with its random numbers. It
records the choices, the two proposal probabilities and the uniform draw (`sampling.moves.move`). The first
two terms are computed here, from prior and likelihood of the two partitions. So the sum of the four terms
equals the kernel's ratio only if its incremental change of the posterior is correct.

An `Inspection` makes each proposal twice, from the same state and random numbers: by a sampler, stepped by
one iteration, and by `explain`; `gap` is the difference of the two log ratios. It explains a proposal in
stages, each with a sentence and with the objects concerned. The move describes its choices (`Move.tell`); the
first stage, the ratio and the decision are the same for all moves.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from ewens_widgets.arguments import check_count
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Ewens
from ewens_widgets.model.priors.partition_prior import PartitionPrior
from ewens_widgets.sampling.cold_start import at_once
from ewens_widgets.sampling.draws import Event, Records, read_only
from ewens_widgets.sampling.driver import Driver
from ewens_widgets.sampling.kernel.workspace import ACCOUNT, NOTED, make_outcome, make_problem
from ewens_widgets.sampling.moves.move import (
    BareProposal,
    Factor,
    IntArray,
    Move,
    Notes,
    Scene,
    Way,
    count,
    from_log,
    pair_distances,
    signed,
)
from ewens_widgets.sampling.moves.schedule import Repeated
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.state import State


class Term(NamedTuple):
    """A term of the log ratio."""

    name: str
    value: float


class Parameters(NamedTuple):
    """Parameters of the iteration, drawn before its moves.

    Attributes
    ----------
    theta, theta_index, theta_weights
        The variance ratio θ, its index on the grid, and the conditional that it was drawn from.
    concentration
        Concentration λ of the Ewens prior; not used under other priors.
    nu, nu_index, nu_weights
        Of own shapes: the pooling ν, its index on the grid, and the conditional that it was drawn from.
    sigma
        The packed scale Σ of own shapes, and behind it the imputed cells of both families.
    n_imputed
        Number of imputed cells.
    """

    theta: float
    theta_index: int
    theta_weights: FloatArray
    concentration: float
    nu: float = math.inf
    nu_index: int = 0
    nu_weights: FloatArray = np.ones(1)
    sigma: FloatArray = np.empty(0)
    n_imputed: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Proposal(BareProposal):
    """One proposal of one move.

    Attributes
    ----------
    move
        Name of the move.
    prior
        The prior on partitions.
    parameters
        θ, λ if the prior has it, and ν and Σ of own shapes.
    changes
        Log prior and log likelihood of the proposed partition minus those of the current one.
    as_printed
        Whether the chain decides by the ratio that the paper prints.
    has_printed_ratio
        Whether the ratio that the paper prints for this proposal differs from the correct one.
    """

    move: str
    prior: PartitionPrior
    parameters: Parameters
    changes: tuple[float, float] | None = None
    as_printed: bool = False
    has_printed_ratio: bool = False

    def terms(self) -> tuple[Term, ...]:
        """Terms of the log ratio by which the chain decides."""
        if self.changes is None or self.forward is None or self.backward is None:
            return ()
        sign = -1.0 if self.as_printed and self.has_printed_ratio else 1.0
        return (
            Term("prior", self.changes[0]),
            Term("likelihood", self.changes[1]),
            Term("reverse", sign * self.backward.log_probability),
            Term("forward", -sign * self.forward.log_probability),
        )

    def log_ratio(self) -> float | None:
        """Sum of the terms; None if nothing was proposed."""
        terms = self.terms()
        return math.fsum(term.value for term in terms) if terms else None

    def accepted(self) -> bool | None:
        """Whether the uniform draw is below the ratio; None if nothing was proposed."""
        log_ratio = self.log_ratio()
        if log_ratio is None:
            return None
        return self.log_uniform is None or self.log_uniform < log_ratio


def explain(
    posterior: Posterior,
    state: State,
    move: Move,
    *,
    pairs: FloatArray | None = None,
    as_printed: bool = False,
) -> Proposal:
    """Explain the proposal of an iteration that begins in a state and makes one move.

    The state is not changed; the random numbers are those that a sampler in this state would draw.

    Parameters
    ----------
    posterior
        What is being sampled.
    state
        The chain's state before the iteration.
    move
        The move that is made once, after the parameters have been drawn. Of a sweep, the first draw is
        explained; `Sweep` makes all of them.
    pairs
        Distances between objects, for a move that needs them; in canonical coordinates by default.
    as_printed
        Decide by the ratio that the paper prints, if it differs.
    """
    if posterior.shapes == "common" and posterior.centre == "unknown":
        raise ValueError(
            'proposals are explained for a known centre, whose moves are the same; use centre="mean" here.'
        )
    schedule = (Repeated(move),)  # Refuses a move of a kind that is not registered.
    if move.is_sweep:
        return Sweep(posterior, state, move).draw(0)
    if move.needs_distances and pairs is None:
        pairs = pair_distances(posterior.coordinates)
    driver = Driver(posterior, schedule, pairs, as_printed)
    room = 8 * posterior.n_objects + 64
    while True:
        driver.load(state)
        records, outcome = driver.advance(1, wanted=ACCOUNT, room=room)
        if outcome.flags[NOTED] <= room:
            break
        room = int(outcome.flags[NOTED])  # Now it is known how much is needed.
    parameters = _parameters(posterior, records, driver.state())
    notes = Notes(state.labels, outcome, move.factors)
    return _explained(posterior, move, parameters, notes, as_printed)


class Sweep:
    """A sweep that is made one draw at a time; `state` is its current state. Parameters as of `explain`."""

    def __init__(self, posterior: Posterior, state: State, move: Move) -> None:
        if move.draw is None:
            raise TypeError(f"the move {move.name!r} cannot be explained draw by draw: it has no `draw`.")
        self._posterior, self._move, self._make = posterior, move, move.draw
        self._problem = make_problem(posterior)
        driver = Driver(posterior, (), None, as_printed=False)
        driver.load(state)
        records, _ = driver.advance(1)
        self.state = replace(driver.state(), iteration=state.iteration)
        self._parameters = _parameters(posterior, records, self.state)
        self._drawn = self.state.labels

    def draw(self, item: int) -> Proposal:
        """Draw an object's cluster with the next random numbers; `keep` moves the object there."""
        state, room = self.state, 8 * self._posterior.n_objects + 64
        rng = np.random.Generator(np.random.PCG64(0))
        rng.bit_generator.state = state.generator
        workspace = state.workspace(self._problem)
        outcome = make_outcome(self._posterior.n_objects, ACCOUNT, room)
        arguments = self._problem, workspace, outcome, item, rng
        at_once(self._make, arguments)(*arguments)
        self._drawn = workspace.labels
        self.state = replace(state, generator=dict(rng.bit_generator.state))
        notes = Notes(state.labels, outcome, self._move.factors)
        return _explained(self._posterior, self._move, self._parameters, notes)

    def keep(self) -> None:
        """Continue from the partition that was drawn last."""
        self.state = replace(self.state, labels=self._drawn)


def _parameters(posterior: Posterior, records: Records, after: State) -> Parameters:
    """The parameters drawn by an iteration."""
    drawn = Parameters(
        float(posterior.theta_grid[after.theta_index]),
        after.theta_index,
        read_only(records.theta_weights[0].copy()),
        math.exp(after.log_concentration),
        sigma=read_only(after.sigma.copy()),
        n_imputed=len(posterior.gaps),
    )
    if posterior.shapes == "common":
        return drawn
    nu, weights = float(posterior.nu_grid[after.nu_index]), read_only(records.nu_weights[0].copy())
    return drawn._replace(nu=nu, nu_index=after.nu_index, nu_weights=weights)


def _explained(
    posterior: Posterior, move: Move, parameters: Parameters, notes: Notes, as_printed: bool = False
) -> Proposal:
    """A move's record of its proposal, with the changes of prior and likelihood."""
    account = move.account(notes)
    told: dict[str, Any] = {entry.name: getattr(account, entry.name) for entry in fields(account)}
    # If λ is sampled, the chain decides with the λ that was just drawn.
    is_given = posterior.samples_concentration
    log_prior = Ewens(parameters.concentration).log_pmf if is_given else posterior.log_prior
    if account.proposed is not None:

        def logs(labels: IntArray) -> FloatArray:
            given = posterior.log_likelihoods(labels, parameters.nu_index, parameters.sigma)
            return np.array([log_prior(labels), given[parameters.theta_index]])

        told["changes"] = changes = tuple((logs(account.proposed) - logs(account.labels)).tolist())
        back = account.backward
        if back and account.forward and account.log_uniform is None and back.log_probability == -math.inf:
            # It underflows, but is proportional to the posterior.
            log_back = account.forward.log_probability - sum(changes)
            told["backward"] = Way(log_back, (Factor(back.factors[0].name, log_back),))
    return Proposal(
        **told,
        move=move.name,
        prior=posterior.prior,
        parameters=parameters,
        as_printed=as_printed,
        has_printed_ratio=move.has_printed_ratio and account.proposed is not None,
    )


class Inspection:
    """Makes proposals one at a time, and continues from the partition that the user chooses.

    Parameters
    ----------
    sampler
        Gives the start, the data, the model and the acceptance rule. It is not changed.
    move
        The move to inspect; the first of the sampler's schedule by default.

    Attributes
    ----------
    proposal
        The current proposal.
    event
        The sampler's own event; None within a Gibbs sweep, which has no ratio to report.
    iteration
        Iterations done before this proposal.
    """

    def __init__(self, sampler: Sampler, move: Move | None = None) -> None:
        self._sampler = sampler
        self._first = self._state = sampler.state
        self._pairs: FloatArray | None = None
        self.move: Move = sampler.schedule[0].move if move is None else move
        self.proposal: Proposal
        self.event: Event | None
        # Of a Metropolis move: the state after it. Of a sweep: the sweep, and the object being drawn.
        self._after: State
        self._sweep: Sweep
        self._item = 0
        self._propose()

    @property
    def posterior(self) -> Posterior:
        """What is being sampled."""
        return self._sampler.posterior

    @property
    def iteration(self) -> int:
        """Iterations done before this proposal."""
        return self._state.iteration

    @property
    def is_sweep(self) -> bool:
        """Whether the proposal is a draw of a sweep."""
        return self.move.is_sweep

    @property
    def can_accept_anyway(self) -> bool:
        """Whether the proposal was rejected."""
        return self.proposal.accepted() is False

    @property
    def gap(self) -> float:
        """Difference of the log ratio from the sampler's own; 0 for a Gibbs draw."""
        log_ratio = self.proposal.log_ratio()
        if log_ratio is None:
            return 0.0
        reported = 0.0 if self.event is None or self.event.log_ratio is None else self.event.log_ratio
        # Both are minus infinity where the reverse proposal is impossible.
        return 0.0 if log_ratio == reported else abs(log_ratio - reported)

    @property
    def stages(self) -> tuple[Scene, ...]:
        """The proposal in stages."""
        return stages_of(self.proposal, self.move)

    def use(self, move: Move) -> None:
        """Inspect another move, from the current state."""
        self._leave_sweep()
        self.move = move
        self._propose()

    def propose_again(self) -> None:
        """Make another proposal from the same partition, with the next random numbers."""
        if self.is_sweep:
            self._draw()
            return
        self._state = replace(self._state, generator=self._after.generator)
        self._propose()

    def accept_anyway(self) -> None:
        """Continue from the proposed partition, even if it was rejected."""
        if not self.can_accept_anyway or self.proposal.proposed is None:
            self.next_iteration()
            return
        self._state = replace(self._after, labels=self.proposal.proposed.astype(np.int64))
        self._propose()

    def next_iteration(self) -> None:
        """Apply the decision and make the next proposal; in a sweep, that of the next object."""
        if not self.is_sweep:
            self._state = self._after
            self._propose()
            return
        self._sweep.keep()
        self._item += 1
        if self._item < self.posterior.n_objects:
            self._draw()
            return
        self._state = replace(self._sweep.state, iteration=self._state.iteration + 1)
        self._propose()

    def run(self, iterations: int) -> None:
        """Run the whole schedule for some iterations, then make a proposal."""
        self._leave_sweep()
        sampler = self._sampler_at(self._sampler.schedule)
        for _ in sampler.events(check_count("the number of iterations", iterations, 1)):
            pass
        self._state = sampler.state
        self._propose()

    def reset(self) -> None:
        """Return to the state where the inspection began."""
        self._state = self._first
        self._propose()

    def _propose(self) -> None:
        self._item = 0
        if self.is_sweep:
            self._sweep = Sweep(self.posterior, self._state, self.move)
            self._draw()
            return
        if self._pairs is None and self.move.needs_distances:
            raw = self._sampler.raw_data
            self._pairs = pair_distances(self.posterior.coordinates if raw is None else raw)
        sampler = self._sampler_at((Repeated(self.move),))
        as_printed = self._sampler.acceptance == "as-printed"
        self.proposal = explain(
            self.posterior, self._state, self.move, pairs=self._pairs, as_printed=as_printed
        )
        self.event = next(sampler.events(1, block=1))
        self._after = sampler.state

    def _draw(self) -> None:
        self.proposal = self._sweep.draw(self._item)
        self.event = None

    def _leave_sweep(self) -> None:
        """Continue from the state that an unfinished sweep has reached."""
        if self.is_sweep and self._item:
            self._state = self._sweep.state
            self._item = 0

    def _sampler_at(self, schedule: tuple[Repeated, ...]) -> Sampler:
        """A sampler in the present state."""
        with warnings.catch_warnings():
            # The given sampler has already warned about its acceptance rule.
            warnings.filterwarnings("ignore", message="The acceptance ratio")
            known, state = self._sampler, self._state
            return Sampler.from_parts(
                known.posterior, schedule, known.raw_data, known.acceptance, first=state, current=state
            )


def stages_of(proposal: Proposal, move: Move) -> tuple[Scene, ...]:
    """Explain a proposal in stages."""
    drawn = proposal.parameters
    prior = f"the prior on partitions is {proposal.prior}"
    if isinstance(proposal.prior, Ewens):
        prior = f"λ = {drawn.concentration:.3g}"
    text = (
        f"{count(proposal.labels.size, 'object')} in {count(int(proposal.labels.max()) + 1, 'cluster')}. "
        f"θ = {drawn.theta:g} was drawn from its conditional, where it has probability "
        f"{drawn.theta_weights[drawn.theta_index]:.3g}; {prior}."
    )
    if drawn.nu < math.inf:
        text += (
            f" Every cluster has its own shape: the pooling ν = {drawn.nu:g} was drawn from its "
            f"conditional, where it has probability {drawn.nu_weights[drawn.nu_index]:.3g}, and then the "
            "common scale Σ."
        )
    if drawn.n_imputed:
        text += f" Then {count(drawn.n_imputed, 'missing cell')} got new values, given the clusters."
    return Scene("start", "The current state", text), *move.tell(proposal), *_end(proposal)


def _end(proposal: Proposal) -> Iterator[Scene]:
    """What all moves share: the proposal, its ratio and the decision."""
    log_ratio = proposal.log_ratio()
    if log_ratio is None or proposal.proposed is None or not proposal.forward or not proposal.backward:
        yield Scene("decision", "Nothing to decide", proposal.reason)
        return
    decision = "The ratio of a draw from the exact conditional is 1: it is always accepted."
    if proposal.log_uniform is not None:
        verdict = "below" if proposal.accepted() else "not below"
        outcome = "accepted" if proposal.accepted() else "rejected; the partition does not change"
        decision = (
            f"A uniform draw gave u = {math.exp(proposal.log_uniform):.4f}, log u = "
            f"{signed(proposal.log_uniform)}, {verdict} the log ratio {signed(log_ratio)}: the proposal is "
            f"{outcome}."
        )
    if proposal.kind != "draw":
        n_before, n_after = (int(labels.max()) + 1 for labels in (proposal.labels, proposal.proposed))
        yield Scene(
            "proposal",
            "The proposal",
            f"From {n_before} to {count(n_after, 'cluster')}. The forward proposal has probability "
            f"{_product(proposal.forward)}. The reverse proposal has probability "
            f"{_product(proposal.backward)}.",
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
        decision,
        colours="after" if proposal.accepted() else "before",
        ringed=proposal.moved,
    )


def _product(way: Way) -> str:
    parts = " × ".join(f"{from_log(factor.log_probability)} ({factor.name})" for factor in way.factors)
    total = f"{from_log(way.log_probability)}, log {signed(way.log_probability)}"
    return f"{parts} = {total}" if len(way.factors) > 1 else f"{parts}, log {signed(way.log_probability)}"
