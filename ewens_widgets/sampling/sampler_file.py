"""Saving a sampler to a file and loading it again, without pickle."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import check_data
from ewens_widgets.sampling.archive import ArchiveError, read_archive, write_archive
from ewens_widgets.sampling.moves.schedule import from_plain, resolve_schedule, to_plain
from ewens_widgets.sampling.posterior_record import pack_posterior, unpack_posterior
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.state import State, state_from_parts, state_parts

__all__ = ["read_sampler", "write_sampler"]

KIND = "sampler"


def write_sampler(sampler: Sampler, path: str | os.PathLike[str]) -> None:
    """Write posterior, schedule, current and initial state."""
    settings, arrays = pack_posterior(sampler.posterior)
    current, labels = state_parts(sampler.state)
    first, first_labels = state_parts(sampler.first_state)
    metadata = {
        "posterior": settings,
        "moves": to_plain(sampler.schedule),
        "acceptance": sampler.acceptance,
        "state": current,
        "first": first,
    }
    stored: dict[str, NDArray[Any]] = {**arrays, "labels": labels, "first_labels": first_labels}
    if sampler.raw_data is not None:
        stored["raw"] = sampler.raw_data
    write_archive(path, KIND, metadata, stored)


def read_sampler(kind: type[Sampler], path: str | os.PathLike[str]) -> Sampler:
    """Read what `write_sampler` wrote."""
    metadata, arrays = read_archive(path, KIND)
    try:
        posterior = unpack_posterior(metadata["posterior"], arrays)

        def state(part: str, labels: str) -> State:
            size = posterior.n_objects, posterior.theta_grid.size
            return state_from_parts(metadata[part], arrays[labels], *size)

        raw = np.ascontiguousarray(check_data(arrays["raw"])) if "raw" in arrays else None
        return kind.from_parts(
            posterior,
            resolve_schedule(from_plain(metadata["moves"])),
            raw,
            metadata["acceptance"],
            first=state("first", "first_labels"),
            current=state("state", "labels"),
        )
    except (KeyError, TypeError, ValueError) as fault:
        raise ArchiveError(
            f"{str(path)!r} does not hold a complete sampler ({fault}); save it again."
        ) from fault
