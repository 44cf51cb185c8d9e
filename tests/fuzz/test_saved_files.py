"""Saved traces and samplers from strangers: loaded or refused, and nothing else happens."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fuzz.hostile import (
    COMPILED_CODE,
    MOST_MEMORY,
    Files,
    Mine,
    forged,
    forgery,
    mutated,
    npy,
    npy_with_header,
    opened,
    peak_memory,
    seeded,
    signed,
    traced_peak,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ewens_widgets as ew
from ewens_widgets.memory import TooLargeError
from ewens_widgets.sampling.archive import _COMMENT_LENGTH, ArchiveError
from ewens_widgets.sampling.draws import check_canonical

SETTINGS: dict[str, dict[str, object]] = {
    "default": {"model": "II"},
    "gamma": {"model": "III", "concentration": ew.Gamma(2.0, 1.5), "moves": [("gibbs", 2)]},
    "paper-2": {"model": "I", "moves": "paper-2", "metric": "euclidean", "theta_grid": [0.5, 4.0]},
}
seeds = st.integers(0, 2**32 - 1)
KINDS = ("trace", "sampler")

fuzzed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def files(folder: Path) -> Files:
    """A saved trace and sampler of each setting."""
    X = np.random.default_rng(5).normal(size=(7, 2)) * [1.0, 20.0]
    contents = Files()
    for name, given_settings in SETTINGS.items():
        sampler = ew.Sampler(X, seed=2, **given_settings)
        trace = sampler.sample(3, progress=False)
        trace.save(folder / "trace.npz")
        sampler.save(folder / "sampler.npz")
        for kind in KINDS:
            contents[kind, name] = (folder / f"{kind}.npz").read_bytes()
    return contents


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file may ask for no more than this, whatever it claims."""
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", str(MOST_MEMORY))
    before = peak_memory()
    yield
    assert peak_memory() - before < 4 * MOST_MEMORY + COMPILED_CODE


def attempt(kind: str, content: bytes, folder: Path) -> bool:
    """Load a file, use what was loaded, and say whether there was anything."""
    path = folder / "attempt.npz"
    path.write_bytes(content)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="acceptance")
            loaded = ew.Trace.load(path) if kind == "trace" else ew.Sampler.load(path)
    except (ArchiveError, TooLargeError):
        return False
    use_trace(loaded) if isinstance(loaded, ew.Trace) else use_sampler(loaded)
    return True


def use_trace(trace: ew.Trace) -> None:
    assert "Trace" in repr(trace)
    check_canonical(trace.labels)
    if len(trace):
        assert np.isfinite(trace.theta_posterior()).all()
        assert trace.similarity().shape == (trace.n_objects, trace.n_objects)
        assert trace.evidence_tree().n_leaves == trace.n_objects


def use_sampler(sampler: ew.Sampler) -> None:
    if sum(entry.repeats for entry in sampler.schedule) > 1000:
        return
    n_objects = sampler.posterior.n_objects
    for _ in range(2):
        for event in sampler.events(2):
            assert event.labels.shape == (n_objects,)
            check_canonical(event.labels[None])
            assert 0 <= event.labels.min() <= event.labels.max() == event.n_clusters - 1
            assert np.isfinite(event.log_posterior)
        sampler.reset()


def test_the_files_themselves_are_loaded(files: Files, folder: Path) -> None:
    """Also opened and put together again as the forgeries are."""
    for (kind, _), content in files.items():
        assert attempt(kind, content, folder)
        assert attempt(kind, forged(*opened(content)), folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(fuzzed, max_examples=300)
@given(content=st.binary(max_size=400))
def test_arbitrary_bytes(kind: str, content: bytes, folder: Path) -> None:
    assert not attempt(kind, content, folder)
    assert not attempt(kind, signed(content), folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(fuzzed, max_examples=600)
@given(seed=seeds)
def test_mutated_bytes(kind: str, seed: int, files: Files, folder: Path) -> None:
    """Without the checksum's protection: the forger has computed it anew."""
    rng = seeded(seed)
    content = files[kind, rng.choice(sorted(SETTINGS))]
    damaged = mutated(content[:-_COMMENT_LENGTH], rng)
    attempt(kind, signed(damaged), folder)
    if damaged != content[:-_COMMENT_LENGTH]:
        assert not attempt(kind, damaged + content[-_COMMENT_LENGTH:], folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(fuzzed, max_examples=1000)
@given(seed=seeds)
def test_forged_content(kind: str, seed: int, files: Files, folder: Path) -> None:
    rng = seeded(seed)
    content = files[kind, rng.choice(sorted(SETTINGS))]
    trap = folder / "trap"
    attempt(kind, forgery(content, trap, rng), folder)
    assert not trap.exists()


def test_a_pickle_is_never_opened(files: Files, folder: Path, tmp_path: Path) -> None:
    """And would be noticed: the same bytes, unpickled, spring the trap."""
    trap = tmp_path / "trap"
    mine = npy(np.array([Mine(trap)], dtype=object))
    for (kind, name), content in files.items():
        header, members = opened(content)
        for member in members:
            assert not attempt(kind, forged(header, {**members, member: mine}), folder), (kind, name, member)
    assert not trap.exists()
    (tmp_path / "mine.npy").write_bytes(mine)
    np.load(tmp_path / "mine.npy", allow_pickle=True)
    assert trap.exists()


@pytest.mark.parametrize("shape", ["(1000000000,)", "(100000, 100000)"])
def test_a_header_cannot_claim_memory(shape: str, files: Files, folder: Path) -> None:
    header, members = opened(files["trace", "default"])
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}"
    members["labels.npy"] = npy_with_header(text, bytes(100))
    assert not attempt("trace", forged(header, members), folder)


def test_a_bomb_is_not_unpacked(files: Files, folder: Path) -> None:
    """A hundred megabytes of zeros, or of blanks, take a hundred kilobytes."""
    header, members = opened(files["trace", "default"])
    zeros = npy(np.zeros((3, 33_000_000), dtype=np.uint8))
    for content in (
        forged(header, {**members, "labels.npy": zeros}),
        forged(header, members, " " * 100_000_000),
    ):
        assert len(content) < 500_000
        assert traced_peak(lambda: attempt("trace", content, folder)) < 2 * MOST_MEMORY  # noqa: B023 - at once
        with pytest.raises(ValueError, match=r"would take|at most"):
            ew.Trace.load(folder / "attempt.npz")


def test_a_device_is_not_read() -> None:
    with pytest.raises(ArchiveError, match="is a device"):
        ew.Trace.load("/dev/zero")
