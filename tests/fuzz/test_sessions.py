"""Saved explorers from strangers: loaded or refused with a `ValueError`, and nothing else happens."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from fuzz.hostile import (
    COMPILED_CODE,
    HEADERS,
    MOST_MEMORY,
    Mine,
    forged,
    forgery,
    mutated,
    npy,
    npy_with_header,
    opened,
    peak_memory,
    seeded,
    traced_peak,
    with_hostile_array,
    with_hostile_value,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ewens_widgets as ew
from ewens_widgets.datasets import Dataset
from ewens_widgets.sampling.archive import archive_bytes
from ewens_widgets.sampling.draws import SCHEMA, check_canonical
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.sampler import pack_sampler
from ewens_widgets.sampling.session import Session, pack_session, unpack_session

SETTINGS, DATA, SAMPLER, TRACE = "session.json", "data.npz", "sampler.npz", "trace.npz"
seeds = st.integers(0, 2**32 - 1)
fuzzed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


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
        DATA: zipped({f"{name}.npy": npy(array) for name, array in arrays.items()}),
        SAMPLER: archive_bytes("sampler", *pack_sampler(session.sampler)),
    }
    return zipped(parts | ({TRACE: recorder.trace().to_bytes()} if len(recorder) else {}))


@pytest.fixture(scope="module")
def session() -> bytes:
    return pack_session(running())


@pytest.fixture(scope="module")
def old_session() -> bytes:
    return old_file(running())


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file may ask for no more than this, whatever it claims."""
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", str(MOST_MEMORY))
    before = peak_memory()
    yield
    assert peak_memory() - before < 4 * MOST_MEMORY + COMPILED_CODE


def zipped(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def unzipped(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def attempt(content: bytes) -> bool:
    try:
        loaded = unpack_session(content)
    except ValueError:
        return False
    assert isinstance(loaded.dataset.name, str)
    assert "Dataset" in repr(loaded.dataset)
    assert loaded.dataset.X.shape == loaded.sampler.posterior.coordinates.shape
    assert loaded.settings["iterations"] >= 1
    assert loaded.settings["burn_in"] >= 0
    for labels in loaded.recorder.labels:
        check_canonical(labels[None])
    if sum(entry.repeats for entry in loaded.sampler.schedule) < 1000:
        loaded.recorder.extend(loaded.sampler.advance(2))
        assert np.isfinite(loaded.recorder.log_posterior[-1])
    return True


def test_the_session_itself_is_loaded(session: bytes, old_session: bytes) -> None:
    assert attempt(session)
    assert attempt(old_session)
    assert attempt(zipped(unzipped(old_session)))


@pytest.mark.parametrize("pack", [pack_session, old_file])
@pytest.mark.parametrize("draws", [0, 5])
@pytest.mark.parametrize("moves", ["default", ["gibbs", "reassign", "gibbs"]])
def test_everything_comes_back(pack: Callable[[Session], bytes], draws: int, moves: object) -> None:
    X = np.random.default_rng(5).normal(size=(7, 2))
    data = Dataset(X=X, name="seven", feature_names=("width", "height"), description="Made up.")
    sampler = ew.Sampler(data, moves=moves, concentration=ew.Gamma(2.0, 1.0), metric="euclidean")
    recorder = Recorder(sampler.posterior, sampler.move_names)
    if draws:
        recorder.extend(sampler.advance(draws))
    loaded = unpack_session(
        pack(Session(data, sampler, recorder, {"iterations": 9, "burn_in": 0, "note": "x"}))
    )
    assert loaded.settings == {"iterations": 9, "burn_in": 0, "note": "x"}
    assert (loaded.dataset.name, loaded.dataset.feature_names) == (data.name, data.feature_names)
    assert (loaded.dataset.description, loaded.dataset.labels) == (data.description, None)
    np.testing.assert_array_equal(loaded.dataset.X, data.X)
    assert loaded.recorder.move_names == recorder.move_names
    once = len(set(recorder.move_names)) == len(recorder.move_names)
    for name in SCHEMA:
        # The old files counted a move that a schedule holds twice by its name.
        if once or pack is pack_session or name not in ("proposals", "acceptances"):
            np.testing.assert_array_equal(loaded.recorder.column(name), recorder.column(name))
    assert loaded.sampler.iteration == draws
    np.testing.assert_array_equal(loaded.sampler.advance(4).labels, sampler.advance(4).labels)
    loaded.sampler.reset()
    sampler.reset()
    np.testing.assert_array_equal(loaded.sampler.advance(4).labels, sampler.advance(4).labels)


def test_a_session_is_one_archive_without_archives_inside(session: bytes, tmp_path: Path) -> None:
    assert not any(name.endswith((".zip", ".npz")) for name in unzipped(session))
    (tmp_path / "session.npz").write_bytes(session)
    with np.load(tmp_path / "session.npz") as file:
        assert file["data.X"].shape == (7, 2)
        assert file["draws.labels"].shape == (5, 7)
    with pytest.raises(ew.ArchiveError, match="holds a session, not a sampler"):
        ew.Sampler.load(tmp_path / "session.npz")
    with pytest.raises(ValueError, match="holds a trace, not a session"):
        unpack_session(running().recorder.trace().to_bytes())


@pytest.mark.slow
@settings(fuzzed, max_examples=200)
@given(seed=seeds)
def test_mutated_bytes(seed: int, session: bytes, old_session: bytes) -> None:
    rng = seeded(seed)
    attempt(mutated(rng.choice([session, old_session]), rng))


@pytest.mark.slow
@settings(fuzzed, max_examples=600)
@given(seed=seeds)
def test_forged_content(seed: int, session: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    trap = tmp_path_factory.getbasetemp() / "trap"
    attempt(forgery(session, trap, seeded(seed)))
    assert not trap.exists()


@pytest.mark.slow
@settings(fuzzed, max_examples=200)
@given(content=st.binary(max_size=300))
def test_arbitrary_bytes(content: bytes) -> None:
    assert not attempt(content)


@pytest.mark.slow
@settings(fuzzed, max_examples=800)
@given(seed=seeds)
def test_forged_parts(seed: int, old_session: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng, parts = seeded(seed), unzipped(old_session)
    trap = tmp_path_factory.getbasetemp() / "trap"
    kind = rng.choice(["settings", "settings", "data", "data", SAMPLER, TRACE, "part"])
    if kind == "settings":
        parts[SETTINGS] = json.dumps(with_hostile_value(json.loads(parts[SETTINGS]), rng)).encode()
    elif kind == "data":
        parts[DATA] = _forged_data(parts[DATA], trap, rng)
    elif kind == "part":
        mine = npy(np.array([Mine(trap)], dtype=object))
        parts[rng.choice(sorted(parts))] = rng.choice([b"", mine, *parts.values()])
    else:
        parts[kind] = forgery(parts[kind], trap, rng)
    attempt(zipped(parts))
    assert not trap.exists()


def _forged_data(content: bytes, trap: Path, rng: Random) -> bytes:
    members = unzipped(content)
    name = rng.choice(sorted(members))
    forgeries = [with_hostile_array(members[name], rng)] * 4
    forgeries.append(npy(np.array([Mine(trap)], dtype=object)))
    forgeries.append(npy_with_header(rng.choice(HEADERS), b"12345678"))
    members[name] = rng.choice(forgeries)
    return zipped(members) if rng.random() < 0.9 else members[name]


def test_a_bomb_in_the_file(session: bytes) -> None:
    header, members = opened(session)
    members["data.X.npy"] = npy(np.zeros((7, 10_000_000), dtype=np.uint8))
    content = forged(header, members)
    assert len(content) < 200_000
    assert traced_peak(lambda: attempt(content)) < 2 * MOST_MEMORY
    assert not attempt(content)


def test_a_bomb_within_an_archive_within_the_file(old_session: bytes) -> None:
    parts = unzipped(old_session)
    parts[DATA] = zipped({"X.npy": npy(np.zeros((7, 10_000_000), dtype=np.uint8))})
    assert len(zipped(parts)) < 200_000
    content = zipped(parts)
    assert traced_peak(lambda: attempt(content)) < 2 * MOST_MEMORY
    assert not attempt(content)


def test_data_and_draws_of_another_sampler_are_refused(session: bytes, old_session: bytes) -> None:
    header, members = opened(session)
    header["metadata"]["data"] |= {"feature_names": [], "label_names": None}
    header["arrays"].remove("data.labels")
    parts = unzipped(old_session)
    other = np.random.default_rng(6).normal(size=(8, 2))
    for wrong in (other, other[:7, :1]):
        with pytest.raises(ValueError, match="not those of its sampler"):
            unpack_session(forged(header, {**members, "data.X.npy": npy(wrong)}))
        with pytest.raises(ValueError, match="not those of its sampler"):
            unpack_session(
                zipped({**parts, DATA: zipped({"X.npy": npy(wrong)}), SETTINGS: _without_names(parts)})
            )


def _without_names(parts: dict[str, bytes]) -> bytes:
    texts = json.loads(parts[SETTINGS])
    return json.dumps({**texts, "feature_names": [], "label_names": None}).encode()
