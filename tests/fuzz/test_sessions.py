"""Saved explorers from strangers: loaded or refused with a `ValueError`, and nothing else happens."""

import json
from collections.abc import Iterator
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
from sampling.sessions import DATA, SAMPLER, SETTINGS, TRACE, old_file, running, unzipped, zipped

from ewens_widgets.sampling.draws import check_canonical
from ewens_widgets.sampling.session import pack_session, unpack_session

seeds = st.integers(0, 2**32 - 1)
fuzzed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


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
