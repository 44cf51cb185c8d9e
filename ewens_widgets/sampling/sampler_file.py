"""Saving a sampler to a file and loading it again, without pickle."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.memory import TooLargeError
from ewens_widgets.model.checks import FloatArray, check_data
from ewens_widgets.model.concentration import Gamma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.archive import MALFORMED, ArchiveError, read_archive, write_archive
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
            found = state_from_parts(metadata[part], arrays[labels], *size)
            _check_concentration(found, posterior)
            generator: Any = np.random.PCG64(0)
            generator.state = found.generator  # raises for anything but the state of one
            return found

        return kind.from_parts(
            posterior,
            resolve_schedule(from_plain(metadata["moves"])),
            _raw_data(arrays, posterior),
            metadata["acceptance"],
            first=state("first", "first_labels"),
            current=state("state", "labels"),
        )
    except TooLargeError:
        raise
    except MALFORMED as fault:
        raise ArchiveError(
            f"{str(path)!r} does not hold a complete sampler ({fault}); save it again."
        ) from fault


def _raw_data(arrays: dict[str, NDArray[Any]], posterior: Posterior) -> FloatArray | None:
    """Data in their own units, if the file has them; other rows would lead the kernels astray."""
    if "raw" not in arrays:
        return None
    raw = np.ascontiguousarray(check_data(arrays["raw"]))
    if len(raw) != posterior.n_objects:
        raise ValueError(f"its data have {len(raw)} rows, but its coordinates {posterior.n_objects}")
    return raw


def _check_concentration(state: State, posterior: Posterior) -> None:
    """Refuse a state whose λ is not the fixed one."""
    prior = posterior.concentration
    if not isinstance(prior, Gamma) and not np.isclose(state.log_concentration, np.log(prior), rtol=1e-9):
        raise ValueError(f"its state has the concentration {state.concentration}, its prior {prior}")
