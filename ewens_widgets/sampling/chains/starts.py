"""Where chains start and which random numbers they use: dispersed starts, independent streams."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.sampling.initial import INITIAL

__all__ = ["Start", "chain_seeds", "chain_starts", "start_name"]

Start = str | ArrayLike


def chain_starts(initial: Start | Sequence[Start] | None, chains: int) -> list[Start]:
    """The initial partition of each chain, by name or as labels.

    Parameters
    ----------
    initial
        None for all kinds of starts in turn; one start for all chains; or a list with one for each.
    chains
        Number of chains.
    """
    if initial is None:
        return [INITIAL[number % len(INITIAL)] for number in range(chains)]
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


def _is_list_of_starts(initial: object) -> bool:
    """Whether this lists starts, rather than the labels of one."""
    if isinstance(initial, np.ndarray):
        return initial.ndim == 2
    if not isinstance(initial, Sequence):
        return False
    return any(isinstance(entry, str) or np.ndim(entry) == 1 for entry in initial)
