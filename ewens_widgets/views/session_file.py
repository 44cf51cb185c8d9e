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

from ewens_widgets.datasets import Dataset
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.trace import Trace

__all__ = ["Session", "pack_session", "unpack_session"]

_KIND = "ewens_widgets explorer"
_VERSION = 1
_LARGEST_PART = 2**30
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
            texts = json.loads(_part(archive, _SETTINGS))
            if texts["kind"] != _KIND or texts["version"] != _VERSION:
                raise ValueError(f"written by another version ({texts['version']})")
            arrays = np.load(BytesIO(_part(archive, _DATA)), allow_pickle=False)
            dataset = Dataset(
                X=arrays["X"],
                labels=arrays.get("labels"),
                name=texts["name"],
                feature_names=tuple(texts["feature_names"]),
                description=texts["description"],
                label_names=None if texts["label_names"] is None else tuple(texts["label_names"]),
            )
            path = Path(folder) / _SAMPLER
            path.write_bytes(_part(archive, _SAMPLER))
            sampler = Sampler.load(path)
            trace = None
            if texts["has_draws"]:
                path = Path(folder) / _TRACE
                path.write_bytes(_part(archive, _TRACE))
                trace = Trace.load(path)
            settings = dict(texts["settings"])
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, OSError) as error:
        raise ValueError(f"this is not a saved explorer, or it is damaged ({error})") from error
    return Session(dataset, sampler, _recorder(sampler, trace), settings)


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    # A small archive can hold a huge part of zeros.
    if archive.getinfo(name).file_size > _LARGEST_PART:
        raise ValueError(f"{name} is too large")
    return archive.read(name)


def _recorder(sampler: Sampler, trace: Trace | None) -> Recorder:
    recorder = Recorder(sampler.posterior, sampler.move_names)
    if trace is not None:
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
