"""What a view of several chains shows: chains that it runs itself, or draws that were recorded."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import check_count
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback.ensemble import Chain, TraceReplay
from ewens_widgets.sampling.archive import same_posterior
from ewens_widgets.sampling.chains.plan import chain_seeds, chain_starts, start_name
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.trace import Trace
from ewens_widgets.views.explorer.data_panel import as_dataset

__all__ = ["ChainsSource", "recorded_chains", "running_chains", "traces_of"]

MOST_CHAINS = 8


@dataclass(frozen=True, eq=False)
class ChainsSource:
    """Chains with a recorder and a name each.

    Attributes
    ----------
    dataset
        Name and columns of the data.
    posterior
        What is sampled.
    chains, recorders, names
        One a chain.
    """

    dataset: Dataset
    posterior: Posterior
    chains: tuple[Chain, ...]
    recorders: tuple[Recorder, ...]
    names: tuple[str, ...]


def traces_of(source: object) -> tuple[Trace, ...] | None:
    """Traces, if that is what was given: several in a list, or in something that has them as ``traces``."""
    given = getattr(source, "traces", source)
    if isinstance(given, Trace):
        raise TypeError("one chain cannot be compared with others; give several traces.")
    if not isinstance(given, list | tuple) or not given or not all(isinstance(one, Trace) for one in given):
        return None
    return tuple(given)


def recorded_chains(traces: Sequence[Trace], starts: Sequence[str] = ()) -> ChainsSource:
    """Chains to be looked at again; longer ones are cut to the last draws, as many as the shortest has."""
    _check_number(len(traces))
    posterior = traces[0].posterior
    if not all(same_posterior(posterior, other.posterior) for other in traces[1:]):
        raise ValueError("only chains on the same data, model and prior can be compared.")
    shortest = min(len(trace) for trace in traces)
    if shortest == 0:
        raise ValueError("one of the chains has no draws; sample some first.")
    cut = [trace[len(trace) - shortest :] for trace in traces]
    return ChainsSource(
        dataset=Dataset(X=np.array(posterior.coordinates), name="recorded chains"),
        posterior=posterior,
        chains=tuple(TraceReplay(trace) for trace in cut),
        recorders=tuple(Recorder(posterior, ()) for _ in cut),
        names=_names(starts if len(starts) == len(cut) else [""] * len(cut)),
    )


def running_chains(
    data: Dataset | ArrayLike | None,
    chains: int,
    initial: Any,  # noqa: ANN401 - as for the sampler
    seed: int | None,
    settings: dict[str, Any],
) -> ChainsSource:
    """Chains to be run, each from its own start with its own random numbers."""
    count = check_count("chains", chains, 1)
    _check_number(count)
    dataset = as_dataset(data)
    starts, seeds = chain_starts(initial, count), chain_seeds(seed, count)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        samplers = tuple(
            Sampler(dataset, initial=start, seed=own, **settings)
            for start, own in zip(starts, seeds, strict=True)
        )
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        warnings.warn(message, stacklevel=4)  # once, not for each chain
    return ChainsSource(
        dataset=dataset,
        posterior=samplers[0].posterior,
        chains=samplers,
        recorders=tuple(Recorder(sampler.posterior, sampler.move_names) for sampler in samplers),
        names=_names([start_name(start) for start in starts]),
    )


def _check_number(count: int) -> None:
    if not 2 <= count <= MOST_CHAINS:
        raise ValueError(f"from 2 to {MOST_CHAINS} chains can be compared; got {count}.")


def _names(starts: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        f"chain {place}, {start}" if start else f"chain {place}"
        for place, start in enumerate(starts, start=1)
    )
