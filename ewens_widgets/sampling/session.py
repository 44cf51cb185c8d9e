"""A running chain in a file, so that somebody can go on where they were: a sampler, or a whole session.

A sampler is its posterior, its schedule, the state that it started from and the one that it has reached; all
else it makes anew. A session is one archive with the data as they were given, the sampler, every recorded
iteration, and the settings of the page; the posterior is there once. Sessions used to be zip files of three
archives and a page of JSON: such files are still read.
"""

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.arguments import check_count
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import FloatArray, check_data
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.archive import (
    MALFORMED,
    Members,
    archive_bytes,
    is_archive,
    pack_posterior,
    parse_archive,
    prefixed,
    same_posterior,
    under,
    unpack_posterior,
)
from ewens_widgets.sampling.draws import Block, column
from ewens_widgets.sampling.moves.schedule import from_plain, resolve_schedule, to_plain
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.state import State, pack_state, unpack_state
from ewens_widgets.sampling.trace import Trace, unpack_draws

__all__ = ["Session", "pack_sampler", "pack_session", "unpack_sampler", "unpack_session"]

_KIND = "session"
_SOURCE = "a saved explorer"
_TEXTS = ("name", "description", "feature_names", "label_names", "row_names", "noun")
_COUNTS = ("proposals", "acceptances")


@dataclass(frozen=True)
class Session:
    """What an explorer needs to go on where it was."""

    dataset: Dataset
    sampler: Sampler
    recorder: Recorder
    settings: dict[str, Any]


def pack_session(session: Session) -> bytes:
    """Write a session."""
    data, recorder = session.dataset, session.recorder
    known = {"X": data.X} | ({} if data.labels is None else {"labels": data.labels})
    sampler, arrays = pack_sampler(session.sampler)
    # The counts of a trace are by name; a schedule may hold a move twice, and a recorder tells them apart.
    draws = {**recorder.trace().columns(), **{name: recorder.column(name) for name in _COUNTS}}
    metadata = {
        "data": {**{name: getattr(data, name) for name in _TEXTS}, "same_units": data.same_units},
        "sampler": sampler,
        "settings": session.settings,
    }
    parts = {**prefixed("data", known), **prefixed("sampler", arrays), **prefixed("draws", draws)}
    return archive_bytes(_KIND, metadata, parts)


def unpack_session(content: bytes) -> Session:
    """Read what `pack_session` wrote; anything else raises `ValueError`."""
    try:
        if not is_archive(content):
            return _unpack_first_version(content)
        metadata, arrays = parse_archive(content, _KIND, _SOURCE)
        sampler = unpack_sampler(metadata["sampler"], under("sampler", arrays))
        dataset = _dataset(metadata["data"], under("data", arrays), sampler)
        draws = under("draws", arrays)
        trace = unpack_draws({"moves": ()}, draws, sampler.posterior)
        recorder = _recorder(sampler, trace, {name: draws[name] for name in _COUNTS})
        return Session(dataset, sampler, recorder, _settings(metadata["settings"]))
    except MALFORMED as error:
        raise ValueError(f"this is not a saved explorer, or it is damaged ({error})") from error


def pack_sampler(sampler: Sampler) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Split a sampler into settings and arrays for an archive: posterior, schedule and states."""
    settings, arrays = pack_posterior(sampler.posterior)
    current, labels = pack_state(sampler.state)
    first, first_labels = pack_state(sampler.first_state)
    metadata = {
        "posterior": settings,
        "moves": to_plain(sampler.schedule),
        "acceptance": sampler.acceptance,
        "state": current,
        "first": first,
    }
    raw = {} if sampler.raw_data is None else {"raw": sampler.raw_data}
    return metadata, {**arrays, "labels": labels, "first_labels": first_labels, **raw}


def unpack_sampler(
    settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], kind: type[Sampler] = Sampler
) -> Sampler:
    """Put a sampler together again; what does not fit together is refused by one of several errors."""
    posterior = unpack_posterior(settings["posterior"], arrays)

    def state(part: str, labels: str) -> State:
        found = unpack_state(settings[part], arrays[labels], posterior)
        _check_concentration(found, posterior)
        generator: Any = np.random.PCG64(0)
        generator.state = found.generator  # raises for anything but the state of one
        return found

    return kind.from_parts(
        posterior,
        resolve_schedule(from_plain(settings["moves"])),
        _raw_data(arrays, posterior),
        settings["acceptance"],
        first=state("first", "first_labels"),
        current=state("state", "labels"),
    )


def _raw_data(arrays: Mapping[str, NDArray[Any]], posterior: Posterior) -> FloatArray | None:
    """Data in their own units, if the file has them; other rows would lead the kernels astray."""
    if "raw" not in arrays:
        return None
    raw = np.ascontiguousarray(check_data(arrays["raw"]))
    if len(raw) != posterior.n_objects:
        raise ValueError(f"its data have {len(raw)} rows, but its coordinates {posterior.n_objects}")
    return raw


def _check_concentration(state: State, posterior: Posterior) -> None:
    """Refuse a state whose λ is not the fixed one."""
    if not posterior.samples_concentration and not np.isclose(
        state.log_concentration, posterior.first_log_concentration, rtol=1e-9
    ):
        fixed = posterior.concentration
        raise ValueError(f"its state has the concentration {state.concentration}, its prior {fixed}")


def _dataset(texts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], sampler: Sampler) -> Dataset:
    for name in ("name", "description"):
        if not isinstance(texts[name], str):
            raise TypeError(f"the {name} of its data is no text")
    dataset = Dataset(
        X=arrays["X"],
        labels=arrays.get("labels"),
        name=texts["name"],
        feature_names=tuple(texts["feature_names"]),
        description=texts["description"],
        label_names=None if texts["label_names"] is None else tuple(texts["label_names"]),
        row_names=None if texts.get("row_names") is None else tuple(texts["row_names"]),
        same_units=texts.get("same_units") is True,
        noun=texts.get("noun", "object"),
    )
    if dataset.X.shape != sampler.posterior.coordinates.shape:
        raise ValueError("its data are not those of its sampler")
    return dataset


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """Settings of the run, of which those that the page shows must be counts."""
    counts = {"iterations": 1, "burn_in": 0}
    return {**given, **{name: check_count(name, given[name], least) for name, least in counts.items()}}


def _recorder(sampler: Sampler, trace: Trace, counts: Mapping[str, NDArray[Any]]) -> Recorder:
    recorder = Recorder(sampler.posterior, sampler.move_names)
    shape = len(trace), len(sampler.move_names)
    checked = {name: column(name, values, np.int64, shape) for name, values in counts.items()}
    recorder.extend(Block(sampler.posterior, sampler.move_names, {**trace.columns(), **checked}))
    return recorder


def _unpack_first_version(content: bytes) -> Session:
    """Read a zip file of archives, as sessions used to be."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        parts = Members(archive, _SOURCE)
        texts = parts.settings("session.json")
        if texts["kind"] != "ewens_widgets explorer" or texts["version"] != 1:
            raise ValueError(f"written by another version ({texts['version']})")
        sampler = unpack_sampler(*parse_archive(parts.content("sampler.npz"), "sampler", _SOURCE))
        with zipfile.ZipFile(BytesIO(parts.content("data.npz"))) as inner:
            members = Members(inner, _SOURCE)
            names = [name for name in ("X", "labels") if name == "X" or "labels.npy" in inner.namelist()]
            dataset = _dataset(texts, {name: members.array(f"{name}.npy") for name in names}, sampler)
        recorder = Recorder(sampler.posterior, sampler.move_names)
        if texts["has_draws"]:
            settings, arrays = parse_archive(parts.content("trace.npz"), "trace", _SOURCE)
            trace = unpack_draws(settings, arrays, unpack_posterior(settings["posterior"], arrays))
            if not same_posterior(trace.posterior, sampler.posterior):
                raise ValueError("its draws are not those of its sampler")
            made_taken = [trace.move_counts[name] for name in sampler.move_names]
            counts = {
                name: np.stack([np.asarray(pair[place]) for pair in made_taken], axis=1)
                for place, name in enumerate(_COUNTS)
            }
            recorder = _recorder(sampler, trace, counts)
    return Session(dataset, sampler, recorder, _settings(texts["settings"]))
