"""A small session, as it is saved now and as it was saved before it was one archive."""

import io
import json
import zipfile

import numpy as np
from numpy.typing import NDArray

import ewens_widgets as ew
from ewens_widgets.datasets import Dataset
from ewens_widgets.sampling.archive import archive_bytes
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.session import Session, pack_sampler

SETTINGS, DATA, SAMPLER, TRACE = "session.json", "data.npz", "sampler.npz", "trace.npz"


def running() -> Session:
    X = np.random.default_rng(5).normal(size=(7, 2))
    data = Dataset(X=X, labels=np.arange(7) % 2, label_names=("a", "b"))
    sampler = ew.Sampler(data, moves=["split-merge", "gibbs"])
    recorder = Recorder(sampler.posterior, sampler.move_names)
    recorder.extend(sampler.advance(5))
    return Session(data, sampler, recorder, {"iterations": 100, "burn_in": 10})


def old_file(session: Session) -> bytes:
    """A session as it was saved before it was one archive: archives and a page of JSON, zipped."""
    data, recorder = session.dataset, session.recorder
    texts = {
        "kind": "ewens_widgets explorer",
        "version": 1,
        "name": data.name,
        "feature_names": data.feature_names,
        "label_names": data.label_names,
        "description": data.description,
        "settings": session.settings,
        "has_draws": len(recorder) > 0,
    }
    arrays = {"X": data.X} | ({} if data.labels is None else {"labels": data.labels})
    parts = {
        SETTINGS: json.dumps(texts).encode(),
        DATA: zipped({f"{name}.npy": _npy(array) for name, array in arrays.items()}),
        SAMPLER: archive_bytes("sampler", *pack_sampler(session.sampler)),
    }
    return zipped(parts | ({TRACE: recorder.trace().to_bytes()} if len(recorder) else {}))


def zipped(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def unzipped(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _npy(array: NDArray[np.generic]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()
