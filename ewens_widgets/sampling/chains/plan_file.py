"""The plan of a run in a file, without pickle."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import check_count, check_data
from ewens_widgets.sampling.archive import ArchiveError, MissingArchiveError, read_archive, write_archive
from ewens_widgets.sampling.chains.plan import Plan
from ewens_widgets.sampling.chains.stopping import Until, until
from ewens_widgets.sampling.chains.task import Problem
from ewens_widgets.sampling.columns import label_type
from ewens_widgets.sampling.moves.schedule import from_plain, resolve_schedule, to_plain
from ewens_widgets.sampling.posterior_record import pack_posterior, unpack_posterior
from ewens_widgets.sampling.sampler import ACCEPTANCES
from ewens_widgets.sampling.state import state_from_parts, state_parts

__all__ = ["read_plan", "write_plan"]

_KIND = "run of chains"


def write_plan(path: Path, plan: Plan) -> None:
    """Write data, settings, first states and goal."""
    problem = plan.problem
    settings, arrays = pack_posterior(problem.posterior)
    states = [state_parts(state) for state in plan.first]
    smallest = label_type(problem.posterior.n_objects)
    goal = plan.goal
    metadata = {
        "posterior": settings,
        "moves": to_plain(problem.schedule),
        "acceptance": problem.acceptance,
        "states": [parts for parts, _ in states],
        "starts": list(plan.starts),
        "burn_in": plan.burn_in,
        "thin": plan.thin,
        "goal": {"until": asdict(goal)} if isinstance(goal, Until) else {"draws": goal},
    }
    stored: dict[str, NDArray[Any]] = {
        **arrays,
        "labels": np.stack([labels.astype(smallest) for _, labels in states]),
    }
    if problem.raw is not None:
        stored["raw"] = problem.raw
    write_archive(path, _KIND, metadata, stored)


def read_plan(path: Path) -> Plan:
    """Read what `write_plan` wrote."""
    try:
        metadata, arrays = read_archive(path, _KIND)
    except MissingArchiveError as fault:
        raise MissingArchiveError(
            f"there is no checkpoint in {str(path.parent)!r}: it has no file {path.name!r}. Check the path."
        ) from fault
    try:
        return _plan(metadata, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as fault:
        raise ArchiveError(f"{str(path)!r} does not hold a complete run ({fault}).") from fault


def _plan(metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Plan:
    posterior = unpack_posterior(metadata["posterior"], arrays)
    size = posterior.n_objects, posterior.theta_grid.size
    rows = zip(metadata["states"], arrays["labels"], strict=True)
    if metadata["acceptance"] not in ACCEPTANCES:
        raise ValueError(f"unknown acceptance {metadata['acceptance']!r}")
    if len(metadata["starts"]) != len(metadata["states"]) or not metadata["states"]:
        raise ValueError("its starts and states do not match")
    goal = metadata["goal"]
    return Plan(
        problem=Problem(
            posterior=posterior,
            schedule=resolve_schedule(from_plain(metadata["moves"])),
            raw=np.ascontiguousarray(check_data(arrays["raw"])) if "raw" in arrays else None,
            acceptance=metadata["acceptance"],
        ),
        first=tuple(state_from_parts(parts, labels, *size) for parts, labels in rows),
        starts=tuple(str(start) for start in metadata["starts"]),
        burn_in=check_count("burn_in", metadata["burn_in"], 0),
        thin=check_count("thin", metadata["thin"], 1),
        goal=until(**goal["until"]) if "until" in goal else check_count("draws", goal["draws"], 1),
    )
