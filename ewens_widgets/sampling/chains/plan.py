"""What a run of several chains will do, checked before anything is started.

A plan holds all that determines the draws: data and settings, the state that each chain starts from, burn-in
and thinning; and the goal, a number of draws or a stopping rule. It does not say where, or in which pieces,
the work is done, as that must not make a difference.

Chains start from different partitions, as chains that began alike may agree without having seen the
posterior. Each has a stream of random numbers of its own; all are spawned from one seed.
"""

import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.arguments import check_count
from ewens_widgets.datasets import Dataset
from ewens_widgets.sampling.chains.task import Setup
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.state import INITIAL, State, first_state, pack_state

__all__ = [
    "Check",
    "Plan",
    "Start",
    "Until",
    "chain_seeds",
    "chain_starts",
    "check_goal",
    "make_plan",
    "start_name",
    "until",
]

Start = str | ArrayLike

DEFAULT_DRAWS = 1000
_FEWEST = 8  # Below that R-hat is not defined.
_OWN_ARGUMENTS = {"self", "X", "initial", "seed"}


@dataclass(frozen=True)
class Check:
    """What the chains looked like when they were checked.

    Attributes
    ----------
    draws
        Draws of each chain at that time.
    rhat
        The largest R-hat of the quantities that are followed.
    ess
        The smallest effective sample size, of all chains together.
    reached
        Whether both were as wanted.
    """

    draws: int
    rhat: float
    ess: float
    reached: bool


@dataclass(frozen=True)
class Until:
    """A stopping rule; made by `until`."""

    rhat: float
    ess: float
    most: int
    first: int

    def counts(self) -> Iterator[int]:
        """Draws of each chain at which to check: each half as many again as the last, and `most` in the end.

        They depend on the rule alone, so the run stops at the same draw wherever and however it is run.
        """
        count = self.first
        while count < self.most:
            yield count
            count += max(1, count // 2)
        yield self.most

    def judge(self, draws: int, rhat: float, ess: float) -> Check:
        """Compare what was found with what is wanted."""
        return Check(draws, rhat, ess, rhat <= self.rhat and ess >= self.ess)


@dataclass(frozen=True, eq=False)
class Plan:
    """The whole of a run, apart from where and in which pieces it is done.

    Attributes
    ----------
    setup
        What all chains sample.
    first
        State of each chain before its first iteration.
    starts
        What each chain starts from, in words.
    burn_in, thin
        Iterations before the first draw, and for each draw.
    goal
        Draws of each chain, or a stopping rule.
    """

    setup: Setup
    first: tuple[State, ...]
    starts: tuple[str, ...]
    burn_in: int
    thin: int
    goal: int | Until

    @cached_property
    def identity(self) -> str:
        """Digest of what determines the draws: all but how many of them are wanted."""
        digest = hashlib.sha256(f"{self.setup.key} {self.burn_in} {self.thin}".encode())
        for state in self.first:
            settings, labels = pack_state(state)
            digest.update(json.dumps(settings, sort_keys=True).encode())
            digest.update(np.ascontiguousarray(labels, dtype=np.int64).data)
        return digest.hexdigest()

    def kept(self, state: State) -> int:
        """Draws of a chain up to a state."""
        return max(0, state.iteration - self.burn_in) // self.thin

    def towards(self, goal: int | Until) -> "Plan":
        """The same chains with another goal."""
        return replace(self, goal=goal)


def until(rhat: float = 1.01, ess: float = 400.0, most: int = 10_000, first: int = 200) -> Until:
    """Stop when the chains agree and their draws are worth enough independent ones.

    Give it to `sample_chains` instead of a number of draws. The chains are checked at fixed numbers of draws:
    `first`, then each time half as many again. Number of clusters, θ, log posterior and size of the largest
    cluster are followed (and the concentration and the likeness ν of own shapes, where they are sampled).

    Parameters
    ----------
    rhat
        The largest R-hat that is good enough.
    ess
        The smallest effective sample size that is good enough, of all chains together, bulk and tail.
    most
        Draws of each chain at which to stop in any case; the result says whether the rule was met.
    first
        Draws of each chain at the first check.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> rule = ew.until(rhat=1.05, ess=100, most=2000)
    >>> list(rule.counts())
    [200, 300, 450, 675, 1012, 1518, 2000]
    """
    if not 1.0 < rhat < inf:
        raise ValueError(f"rhat must be above 1, as chains never agree completely; got {rhat!r}.")
    if not (ess > 0.0 and isfinite(ess)):
        raise ValueError(f"ess must be a positive number; got {ess!r}.")
    largest, start = check_count("most", most, _FEWEST), check_count("first", first, _FEWEST)
    return Until(float(rhat), float(ess), largest, min(start, largest))


def make_plan(
    data: ArrayLike | Dataset,
    chains: int,
    draws: int | None,
    burn_in: int,
    thin: int,
    until: Until | None,
    initial: Start | Sequence[Start] | None,
    seed: int | np.random.SeedSequence | None,
    settings: Mapping[str, Any],
) -> Plan:
    """Check all arguments and find the state that each chain starts from.

    Starts are made here, not by the workers: k-means adds up in another order on another number of threads.
    """
    count = check_count("chains", chains, 1)
    goal = check_goal(draws, until, DEFAULT_DRAWS)
    burn_in, thin = check_count("burn_in", burn_in, 0), check_count("thin", thin, 1)
    _check_settings(settings)
    # One sampler checks data and settings for all.
    sampler = Sampler(data, **settings, initial="one-cluster")
    allows_singletons = sampler.posterior.prior.most_clusters >= sampler.posterior.n_objects
    starts, seeds = chain_starts(initial, count, allows_singletons), chain_seeds(seed, count)
    generators = [np.random.Generator(np.random.PCG64(each)) for each in seeds]
    pairs = zip(starts, generators, strict=True)
    return Plan(
        setup=Setup.of(sampler),
        first=tuple(first_state(sampler.posterior, start, generator) for start, generator in pairs),
        starts=tuple(start_name(start) for start in starts),
        burn_in=burn_in,
        thin=thin,
        goal=goal,
    )


def check_goal(draws: int | None, until: Until | None, default: int | Until) -> int | Until:
    """A number of draws or a stopping rule, whichever is given."""
    if until is None:
        return default if draws is None else check_count("draws", draws, 1)
    if draws is not None:
        raise ValueError(
            "draws and until exclude each other; to bound a stopping rule, use until(..., most=draws)."
        )
    if not isinstance(until, Until):
        raise TypeError(f"until must be a rule such as ew.until(rhat=1.01, ess=400); got {until!r}.")
    return until


def chain_starts(
    initial: Start | Sequence[Start] | None, chains: int, allows_singletons: bool = True
) -> list[Start]:
    """The initial partition of each chain, by name or as labels.

    Parameters
    ----------
    initial
        None for all kinds of starts in turn; one start for all chains; or a list with one for each.
    chains
        Number of chains.
    allows_singletons
        Whether the prior allows as many clusters as there are objects; if not, chains start from the others.
    """
    if initial is None:
        possible = [name for name in INITIAL if allows_singletons or name != "singletons"]
        return [possible[number % len(possible)] for number in range(chains)]
    given: Any = initial  # What it is shows at run time only: labels are a sequence too.
    if isinstance(initial, str) or not _is_list_of_starts(initial):
        return [given] * chains
    starts: list[Start] = list(given)
    if len(starts) != chains:
        raise ValueError(
            f"initial lists {len(starts)} starts for {chains} chains; give one for each, a single one for "
            "all, or None for dispersed ones."
        )
    return starts


def chain_seeds(seed: int | np.random.SeedSequence | None, chains: int) -> list[np.random.SeedSequence]:
    """Seeds of independent streams, one a chain; a seed sequence that is given stays as it is."""
    if not isinstance(seed, np.random.SeedSequence):
        return np.random.SeedSequence(seed).spawn(chains)
    # Spawning counts the children in the parent: from a copy, the same call gives the same seeds again.
    copy = np.random.SeedSequence(
        seed.entropy,
        spawn_key=seed.spawn_key,
        pool_size=seed.pool_size,
        n_children_spawned=seed.n_children_spawned,
    )
    return copy.spawn(chains)


def start_name(start: Start) -> str:
    """What to call a start."""
    return start if isinstance(start, str) else "labels"


def _check_settings(settings: Mapping[str, Any]) -> None:
    known = set(inspect.signature(Sampler.__init__).parameters) - _OWN_ARGUMENTS
    unknown = sorted(set(settings) - known)
    if unknown:
        raise TypeError(
            f"unexpected keyword argument {unknown[0]!r}; besides its own arguments sample_chains takes "
            f"those of Sampler: {', '.join(sorted(known))}."
        )


def _is_list_of_starts(initial: object) -> bool:
    """Whether this lists starts, rather than the labels of one."""
    if isinstance(initial, np.ndarray):
        return initial.ndim == 2
    if not isinstance(initial, Sequence):
        return False
    return any(isinstance(entry, str) or np.ndim(entry) == 1 for entry in initial)
