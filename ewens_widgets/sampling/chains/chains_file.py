"""Several chains in one file, without pickle."""

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.archive import ArchiveError, read_archive, write_archive
from ewens_widgets.sampling.chains.result import Chains
from ewens_widgets.sampling.chains.stopping import Check
from ewens_widgets.sampling.posterior_record import pack_posterior, unpack_posterior
from ewens_widgets.sampling.trace import COLUMNS, Trace

__all__ = ["draws_arrays", "draws_from_arrays", "read_chains", "write_chains"]

_KIND = "chains"


def draws_arrays(trace: Trace) -> dict[str, NDArray[Any]]:
    """The arrays of a trace, without those of its posterior."""
    counts = {f"moves.{name}": np.stack(pair) for name, pair in trace.move_counts.items()}
    return {**{name: getattr(trace, name) for name in COLUMNS}, **counts}


def draws_from_arrays(arrays: Mapping[str, NDArray[Any]], moves: list[str], posterior: Posterior) -> Trace:
    """Make a trace from its arrays and the names of its moves."""
    pairs = {name: arrays[f"moves.{name}"] for name in moves}
    return Trace(
        **{name: arrays[name] for name in COLUMNS},
        move_counts={name: (pair[0], pair[1]) for name, pair in pairs.items()},
        posterior=posterior,
    )


def write_chains(chains: Chains, path: str | os.PathLike[str]) -> None:
    """Write all traces, their posterior once."""
    settings, arrays = pack_posterior(chains.posterior)
    stored = {f"posterior.{name}": array for name, array in arrays.items()}
    for number, trace in enumerate(chains):
        stored |= {f"{number}.{name}": array for name, array in draws_arrays(trace).items()}
    metadata = {
        "posterior": settings,
        "moves": [list(trace.move_counts) for trace in chains],
        "starts": list(chains.starts),
        "reached": chains.reached,
        # R-hat may be infinite, which JSON does not know.
        "checks": [
            {**asdict(check), "rhat": check.rhat.hex(), "ess": check.ess.hex()} for check in chains.checks
        ],
    }
    write_archive(path, _KIND, metadata, stored)


def read_chains(path: str | os.PathLike[str]) -> Chains:
    """Read what `write_chains` wrote."""
    metadata, arrays = read_archive(path, _KIND)
    try:
        posterior = unpack_posterior(metadata["posterior"], _under("posterior", arrays))
        traces = [
            draws_from_arrays(_under(str(number), arrays), moves, posterior)
            for number, moves in enumerate(metadata["moves"])
        ]
        checks = [_check(entry) for entry in metadata["checks"]]
        return Chains(tuple(traces), tuple(metadata["starts"]), metadata["reached"], tuple(checks))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as fault:
        raise ArchiveError(
            f"{str(path)!r} does not hold complete chains ({fault}); save them again."
        ) from fault


def _under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def _check(entry: Mapping[str, Any]) -> Check:
    rhat, ess = float.fromhex(entry["rhat"]), float.fromhex(entry["ess"])
    return Check(int(entry["draws"]), rhat, ess, bool(entry["reached"]))
