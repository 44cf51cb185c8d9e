"""What a run of several chains will do, checked before anything is started."""

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import check_count
from ewens_widgets.sampling.chains.starts import Start, chain_seeds, chain_starts, start_name
from ewens_widgets.sampling.chains.stopping import Until
from ewens_widgets.sampling.chains.task import Problem
from ewens_widgets.sampling.initial import first_state
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.state import State, state_parts

__all__ = ["Plan", "check_goal", "make_plan"]

DEFAULT_DRAWS = 1000
_OWN_ARGUMENTS = {"self", "X", "initial", "seed"}


@dataclass(frozen=True, eq=False)
class Plan:
    """The whole of a run, apart from where and in which pieces it is done.

    Attributes
    ----------
    problem
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

    problem: Problem
    first: tuple[State, ...]
    starts: tuple[str, ...]
    burn_in: int
    thin: int
    goal: int | Until

    @cached_property
    def identity(self) -> str:
        """Digest of what determines the draws: all but how many of them are wanted."""
        digest = hashlib.sha256(f"{self.problem.key} {self.burn_in} {self.thin}".encode())
        for state in self.first:
            settings, labels = state_parts(state)
            digest.update(json.dumps(settings, sort_keys=True).encode())
            digest.update(np.ascontiguousarray(labels, dtype=np.int64).data)
        return digest.hexdigest()

    def towards(self, goal: int | Until) -> "Plan":
        """The same chains with another goal."""
        return replace(self, goal=goal)


def make_plan(
    data: ArrayLike | Dataset,
    *,
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
    starts, seeds = chain_starts(initial, count), chain_seeds(seed, count)
    # One sampler checks data and settings for all.
    sampler = Sampler(data, **settings, initial="one-cluster")
    generators = [np.random.Generator(np.random.PCG64(each)) for each in seeds]
    pairs = zip(starts, generators, strict=True)
    return Plan(
        problem=Problem.of(sampler),
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


def _check_settings(settings: Mapping[str, Any]) -> None:
    known = set(inspect.signature(Sampler.__init__).parameters) - _OWN_ARGUMENTS
    unknown = sorted(set(settings) - known)
    if unknown:
        raise TypeError(
            f"unexpected keyword argument {unknown[0]!r}; besides its own arguments sample_chains takes "
            f"those of Sampler: {', '.join(sorted(known))}."
        )
