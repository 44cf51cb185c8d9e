"""An explorer in one file: data, sampler and draws, without pickle.

A zip archive of what `Sampler.save` and `Trace.save` write, the data as they were given, and some settings.
"""

import json
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ewens_widgets.arguments import check_count
from ewens_widgets.datasets import Dataset
from ewens_widgets.sampling.archive import MALFORMED, Members, same_posterior
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.trace import Trace

__all__ = ["Session", "pack_session", "unpack_session"]

_KIND = "ewens_widgets explorer"
_VERSION = 1
_LARGEST_PART = 2**30  # A small archive can hold a huge part of zeros.
_SETTINGS, _DATA, _SAMPLER, _TRACE = "session.json", "data.npz", "sampler.npz", "trace.npz"


@dataclass(frozen=True)
class Session:
    """What an explorer needs to go on where it was."""

    dataset: Dataset
    sampler: Sampler
    recorder: Recorder
    settings: dict[str, Any]


def pack_session(session: Session) -> bytes:
    """Write a session."""
    data = session.dataset
    texts = {
        "kind": _KIND,
        "version": _VERSION,
        "name": data.name,
        "feature_names": data.feature_names,
        "label_names": data.label_names,
        "description": data.description,
        "settings": session.settings,
        "has_draws": len(session.recorder) > 0,
    }
    arrays: dict[str, Any] = {"X": data.X} | ({} if data.labels is None else {"labels": data.labels})
    packed = BytesIO()
    np.savez_compressed(packed, **arrays)
    content = BytesIO()
    with TemporaryDirectory() as folder, zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_SETTINGS, json.dumps(texts))
        archive.writestr(_DATA, packed.getvalue())
        session.sampler.save(Path(folder) / _SAMPLER)
        archive.write(Path(folder) / _SAMPLER, _SAMPLER)
        if len(session.recorder):
            session.recorder.trace().save(Path(folder) / _TRACE)
            archive.write(Path(folder) / _TRACE, _TRACE)
    return content.getvalue()


def unpack_session(content: bytes) -> Session:
    """Read what `pack_session` wrote; anything else raises `ValueError`."""
    try:
        with TemporaryDirectory() as folder, zipfile.ZipFile(BytesIO(content)) as archive:
            parts = Members(archive, "a saved explorer")
            texts = parts.settings(_SETTINGS)
            if texts["kind"] != _KIND or texts["version"] != _VERSION:
                raise ValueError(f"written by another version ({texts['version']})")
            dataset = _dataset(texts, parts.content(_DATA, _LARGEST_PART))
            path = Path(folder) / _SAMPLER
            path.write_bytes(parts.content(_SAMPLER, _LARGEST_PART))
            sampler = Sampler.load(path)
            if dataset.X.shape != sampler.posterior.coordinates.shape:
                raise ValueError("its data are not those of its sampler")
            trace = None
            if texts["has_draws"]:
                path = Path(folder) / _TRACE
                path.write_bytes(parts.content(_TRACE, _LARGEST_PART))
                trace = Trace.load(path)
            return Session(dataset, sampler, _recorder(sampler, trace), _settings(texts["settings"]))
    except MALFORMED as error:
        raise ValueError(f"this is not a saved explorer, or it is damaged ({error})") from error


def _dataset(texts: dict[str, Any], content: bytes) -> Dataset:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        arrays = Members(archive, "a saved explorer")
        X = arrays.array("X.npy")
        labels = arrays.array("labels.npy") if "labels.npy" in archive.namelist() else None
    for name in ("name", "description"):
        if not isinstance(texts[name], str):
            raise TypeError(f"the {name} of its data is no text")
    return Dataset(
        X=X,
        labels=labels,
        name=texts["name"],
        feature_names=tuple(texts["feature_names"]),
        description=texts["description"],
        label_names=None if texts["label_names"] is None else tuple(texts["label_names"]),
    )


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """Settings of the run, of which those that the page shows must be counts."""
    counts = {"iterations": 1, "burn_in": 0}
    return {**given, **{name: check_count(name, given[name], least) for name, least in counts.items()}}


def _recorder(sampler: Sampler, trace: Trace | None) -> Recorder:
    recorder = Recorder(sampler.posterior, sampler.move_names)
    if trace is not None:
        if not same_posterior(trace.posterior, sampler.posterior):
            raise ValueError("its draws are not those of its sampler")
        counts = [trace.move_counts[name] for name in sampler.move_names]
        recorder.append_block(
            iterations=trace.iterations,
            labels=trace.labels,
            theta_index=trace.theta_index,
            theta_weights=trace.theta_weights,
            log_posterior=trace.log_posterior,
            concentration=trace.concentration,
            proposals=np.stack([np.asarray(made) for made, _ in counts], axis=1),
            acceptances=np.stack([np.asarray(taken) for _, taken in counts], axis=1),
        )
    return recorder
