"""One chunk of a chain in a file: its draws and the state at its end."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ewens_widgets.sampling.archive import read_archive, write_archive
from ewens_widgets.sampling.chains.chains_file import draws_arrays, draws_from_arrays
from ewens_widgets.sampling.chains.pace import draws_kept
from ewens_widgets.sampling.chains.plan import Plan
from ewens_widgets.sampling.columns import label_type
from ewens_widgets.sampling.state import State, state_from_parts, state_parts
from ewens_widgets.sampling.trace import Trace

__all__ = ["Place", "read_chunk", "write_chunk"]

_KIND = "chunk of a chain"
_LAST_ITERATION = 2**53  # More than any computer does.


class Place(NamedTuple):
    """Where a chunk belongs: the number of its chain, and the state that it begins at."""

    chain: int
    before: State


def write_chunk(path: Path, plan: Plan, place: Place, trace: Trace, after: State) -> None:
    """Write a chunk; with it goes which run and place it belongs to."""
    settings, labels = state_parts(after)
    metadata = {
        "run": plan.identity,
        "chain": place.chain,
        "after": place.before.iteration,
        "state": settings,
        "moves": list(trace.move_counts),
    }
    slots = labels.astype(label_type(labels.size))
    write_archive(path, _KIND, metadata, {**draws_arrays(trace), "state.labels": slots})


def read_chunk(path: Path, plan: Plan, place: Place) -> tuple[Trace, State]:
    """Read a chunk; what does not belong at this place of the run raises one of several errors."""
    posterior = plan.problem.posterior
    metadata, arrays = read_archive(path, _KIND)
    wanted = plan.identity, place.chain, place.before.iteration
    if (metadata["run"], metadata["chain"], metadata["after"]) != wanted:
        raise ValueError("it belongs to another run or place")
    size = posterior.n_objects, posterior.theta_grid.size
    state = state_from_parts(metadata["state"], arrays["state.labels"], *size)
    trace = draws_from_arrays(arrays, metadata["moves"], posterior)
    if not _fit_together(plan, place.before, trace, state):
        raise ValueError("its draws and its state do not fit together")
    return trace, state


def _fit_together(plan: Plan, before: State, trace: Trace, after: State) -> bool:
    """Whether these are the draws from one state to another."""
    if not before.iteration < after.iteration <= _LAST_ITERATION:
        return False
    first, last = (draws_kept(state, plan.burn_in, plan.thin) for state in (before, after))
    due = plan.burn_in + plan.thin * (first + np.arange(1, len(trace) + 1))
    return len(trace) == last - first and bool(np.array_equal(trace.iterations, due))
