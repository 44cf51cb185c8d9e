"""Saved files: written whole or not at all, read back as they were, and refused if they are anything else.

Traces, samplers and sessions from strangers are loaded or refused with a clear error, whatever is in them;
nothing in them is executed, and they take no more memory than the limit.
"""

import io
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain_runs import run
from fuzz import hostile
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import ewens_widgets as ew
from ewens_widgets.arguments import TooLargeError
from ewens_widgets.datasets import Dataset
from ewens_widgets.sampling import archive
from ewens_widgets.sampling.archive import (
    ArchiveError,
    MissingArchiveError,
    archive_bytes,
    parse_archive,
    read_archive,
    write_archive,
)
from ewens_widgets.sampling.draws import SCHEMA, DrawTable
from ewens_widgets.sampling.state import Session, pack_session, unpack_session
from ewens_widgets.sampling.trace import check_canonical

ARRAYS = {"labels": np.arange(12, dtype=np.uint8).reshape(3, 4), "weights": np.linspace(0.0, 1.0, 5)}
METADATA = {"model": "II", "alpha": 1.0, "state": 2**127 + 1, "names": ["a", "b"], "nested": {"shape": 2.5}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "chain.npz"
    write_archive(target, "trace", METADATA, ARRAYS)
    return target


def assert_content(found: tuple[dict[str, Any], dict[str, Any]], metadata: Any, arrays: Any) -> None:  # noqa: ANN401
    assert found[0] == metadata
    assert sorted(found[1]) == sorted(arrays)
    for name, array in arrays.items():
        assert found[1][name].dtype == array.dtype
        np.testing.assert_array_equal(found[1][name], array)


# The format


def test_numpy_opens_the_file_without_pickle(path: Path) -> None:
    assert_content(read_archive(path, "trace"), METADATA, ARRAYS)
    with np.load(path, allow_pickle=False) as opened:
        np.testing.assert_array_equal(opened["labels"], ARRAYS["labels"])
    assert archive_bytes("trace", METADATA, ARRAYS) == path.read_bytes()  # the same content, the same bytes


@given(
    st.dictionaries(
        st.text("abc_", min_size=1, max_size=6),
        arrays(
            st.sampled_from([np.uint8, np.int64, np.float32, np.float64, np.bool_]), array_shapes(min_side=0)
        ),
        max_size=3,
    ),
    st.dictionaries(
        st.text(max_size=8),
        st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    ),
)
def test_any_content_round_trips(arrays: dict[str, np.ndarray], metadata: dict[str, object]) -> None:
    assert_content(parse_archive(archive_bytes("k", metadata, arrays), "k"), metadata, arrays)


def test_what_is_written() -> None:
    plain = {"i": np.int64(3), "f": np.float64(0.25), "b": np.bool_(True)}
    text = {"names": np.array(["é", "b"]), "none": np.zeros((0, 3))}
    assert_content(parse_archive(archive_bytes("k", plain, text), "k"), {"i": 3, "f": 0.25, "b": True}, text)
    for values in (np.array([None, 1], dtype=object), np.array(["2020-01-01"], dtype="datetime64[D]")):
        with pytest.raises(TypeError, match="numbers or plain text"):
            archive_bytes("k", {}, {"a": values})
    with pytest.raises(ValueError, match="finite"):
        archive_bytes("k", {"a": float("nan")}, {})
    with pytest.raises(TypeError, match="cannot save"):
        archive_bytes("k", {"a": object()}, {})


def test_a_flipped_byte_is_refused_or_changes_nothing() -> None:
    """The zip's checksums cover all content; what they do not cover is not used, such as dates."""
    content, refused = archive_bytes("trace", METADATA, ARRAYS), 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x11
        try:
            assert_content(parse_archive(bytes(damaged), "trace"), METADATA, ARRAYS)
        except ArchiveError:
            refused += 1
    assert refused > len(content) / 2


def test_any_truncation_is_refused() -> None:
    content = archive_bytes("trace", METADATA, ARRAYS)
    for length in range(len(content)):
        with pytest.raises(ArchiveError, match="damaged" if length > 50 else "was not saved|damaged"):
            parse_archive(content[:length], "trace")


def test_another_kind_or_format_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArchiveError, match="holds a trace, not a sampler"):
        read_archive(path, "sampler")
    monkeypatch.setattr(archive, "FORMAT_VERSION", 0)
    with pytest.raises(ArchiveError, match="upgrade ewens_widgets"):
        read_archive(path, "trace")


def test_no_file_a_directory_a_device(tmp_path: Path) -> None:
    with pytest.raises(MissingArchiveError, match="there is no file"):
        read_archive(tmp_path / "nothing.npz", "trace")
    with pytest.raises(FileNotFoundError):
        ew.Sampler.load(tmp_path / "nothing.npz")
    for target in (tmp_path, Path("/dev/zero")):
        with pytest.raises(ArchiveError, match=r"is a directory, a device or a pipe|there is no file"):
            ew.Trace.load(target)


def foreign_npz(**arrays: Any) -> bytes:  # noqa: ANN401 - any arrays
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


FOREIGN = [
    *(b"", b"object,cluster\n0,1\n", b"PK\x03\x04 not really", b"\x93NUMPY", b"\x80\x04\x95"),
    *(foreign_npz(labels=np.arange(3)), foreign_npz(a=np.array([{}], dtype=object))),
    hostile.zipped({"a.txt": b"text"}),
]


@pytest.mark.parametrize("content", FOREIGN)
def test_foreign_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "foreign").write_bytes(content)
    for load in (ew.Trace.load, ew.Sampler.load):
        with pytest.raises(ArchiveError, match="was not saved by ewens_widgets"):
            load(tmp_path / "foreign")
    with pytest.raises(ValueError, match="not a saved explorer"):
        unpack_session(content)


def test_a_header_that_is_none_is_refused() -> None:
    for header in ({"kind": "trace", "format": 1}, {"format": 1}, [], 5, {"kind": "trace", "metadata": {}}):
        with pytest.raises(ArchiveError, match="damaged or incomplete"):
            parse_archive(hostile.forged(header, {}), "trace")


# Sessions


def running(**options: Any) -> Session:  # noqa: ANN401 - of the sampler
    X = np.random.default_rng(5).normal(size=(7, 2))
    data = Dataset(X=X, labels=np.arange(7) % 2, label_names=("a", "b"), name="seven", description="Made up.")
    sampler = ew.Sampler(data, **{"moves": ["split-merge", "gibbs"], **options})
    draws = DrawTable(sampler.posterior, sampler.move_names)
    draws.extend(sampler.advance(5))
    return Session(
        data, sampler, draws, {"iterations": 9, "burn_in": 0, "initial": None, "seed": 3, "x": [1]}
    )


OWN = {"shapes": "own", "prior": ew.priors.FiniteMixture(0.5, ew.priors.Poisson(2.0)), "moves": "default"}
SESSIONS: dict[str, dict[str, Any]] = {
    "common": {"concentration": ew.Gamma(2.0, 1.0), "metric": "euclidean"},
    "repeats": {"moves": ["gibbs", "reassign", "gibbs"], "centre": "unknown"},
    **{f"own {model}": {**OWN, "model": model} for model in ("I", "II", "III")},
}


@pytest.mark.parametrize("name", SESSIONS)
def test_everything_in_a_session_comes_back(name: str) -> None:
    session = running(**SESSIONS[name])
    names = tuple(f"row {k}" for k in range(7))
    dataset = replace(session.dataset, row_names=names, noun="wine")
    loaded = unpack_session(pack_session(replace(session, dataset=dataset)))
    assert loaded.settings == session.settings
    for part in ("name", "feature_names", "description", "label_names", "row_names", "noun", "classes"):
        assert getattr(loaded.dataset, part) == getattr(dataset, part)
    np.testing.assert_array_equal(loaded.dataset.X, dataset.X)
    np.testing.assert_array_equal(loaded.dataset.labels, dataset.labels)
    assert loaded.sampler.posterior.prior == session.sampler.posterior.prior
    assert loaded.sampler.posterior.centre == session.sampler.posterior.centre
    assert loaded.draws.move_names == session.draws.move_names
    for column in SCHEMA:
        np.testing.assert_array_equal(loaded.draws.column(column), session.draws.column(column))
    for start in range(2):
        first, second = loaded.sampler.advance(6), session.sampler.advance(6)
        np.testing.assert_array_equal(first.labels, second.labels, err_msg=str(start))
        np.testing.assert_array_equal(first.sigma, second.sigma)
        loaded.sampler.reset()
        session.sampler.reset()


def test_a_session_without_draws_or_names_comes_back() -> None:
    session = running()
    session.draws.clear()
    loaded = unpack_session(pack_session(replace(session, dataset=Dataset(session.dataset.X))))
    assert len(loaded.draws) == 0
    assert (loaded.dataset.labels, loaded.dataset.row_names) == (None, None)


def test_sessions_traces_and_samplers_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "session.npz").write_bytes(pack_session(running()))
    with np.load(tmp_path / "session.npz") as file:
        assert file["data.X"].shape == (7, 2)
        assert file["draws.labels"].shape == (5, 7)
    with pytest.raises(ew.ArchiveError, match="holds a session, not a sampler"):
        ew.Sampler.load(tmp_path / "session.npz")
    with pytest.raises(ValueError, match="holds a trace, not a session"):
        unpack_session(running().draws.trace().to_bytes())


# Forged files: right checksums, wrong content

KINDS = ("trace", "sampler", "session", "chains", "plan", "round")
CHECKPOINT = {"plan": "checkpoint/run.npz", "round": "checkpoint/round-00000000.npz"}
Files = dict[tuple[str, str], bytes]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def files(folder: Path) -> Files:
    """A saved trace, sampler and session of each setting, and files of several chains, by kind and name."""
    chains = run(chains=2, draws=9, burn_in=0, checkpoint=folder / "checkpoint")
    chains.save(folder / "chains.npz")
    contents = {("chains", "default"): (folder / "chains.npz").read_bytes()}
    for kind, path in CHECKPOINT.items():
        contents[kind, "default"] = (folder / path).read_bytes()
    for name, options in {
        "default": {"moves": "default"},
        "gamma": {"model": "III", "concentration": ew.Gamma(2.0, 1.5), "moves": [("gibbs", 2)]},
        "paper-2": {"model": "I", "moves": "paper-2", "metric": "euclidean", "theta_grid": [0.5, 4.0]},
        "own": {**OWN, "model": "III"},
    }.items():
        session = running(**options)
        session.sampler.save(folder / "sampler.npz")
        contents["sampler", name] = (folder / "sampler.npz").read_bytes()
        contents["trace", name] = session.draws.trace().to_bytes()
        contents["session", name] = pack_session(session)
    return contents


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file may ask for no more than this, whatever it claims."""
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", str(hostile.MOST_MEMORY))
    before = hostile.peak_memory()
    yield
    assert hostile.peak_memory() - before < 4 * hostile.MOST_MEMORY + hostile.COMPILED_CODE


def attempt(kind: str, content: bytes, folder: Path) -> bool:
    """Load a file, use what was loaded, and say whether there was anything."""
    path = folder / CHECKPOINT.get(kind, "attempt.npz")
    whole = path.read_bytes() if kind in CHECKPOINT else b""
    path.write_bytes(content)
    load: dict[str, Callable[[], Any]] = {
        "trace": lambda: ew.Trace.load(path),
        "sampler": lambda: ew.Sampler.load(path),
        "session": lambda: unpack_session(content),
        "chains": lambda: ew.Chains.load(path),
        **dict.fromkeys(CHECKPOINT, lambda: ew.Chains.load(path.parent)),
    }
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The acceptance ratio")
            loaded = load[kind]()
    except (ArchiveError, TooLargeError):
        return False
    finally:
        path.write_bytes(whole)
    if isinstance(loaded, ew.Chains):
        for trace in loaded:
            use_trace(trace)
    elif kind == "session":
        assert "Dataset" in repr(loaded.dataset)
        assert loaded.settings["iterations"] >= 1
        assert loaded.settings["burn_in"] >= 0
        use_sampler(loaded.sampler)
        use_trace(loaded.draws.trace())
    else:
        use_trace(loaded) if kind == "trace" else use_sampler(loaded)
    return True


def use_trace(trace: ew.Trace) -> None:
    assert "Trace" in repr(trace)
    check_canonical(trace.labels)
    if len(trace):
        assert np.isfinite(trace.theta_posterior()).all()
        assert trace.similarity().shape == (trace.n_objects, trace.n_objects)
        if trace.posterior.shapes == "common":
            assert trace.evidence_tree().n_leaves == trace.n_objects


def use_sampler(sampler: ew.Sampler) -> None:
    if sum(entry.repeats for entry in sampler.schedule) > 1000:
        return
    for _ in range(2):
        for event in sampler.events(2):
            assert event.labels.shape == (sampler.posterior.n_objects,)
            check_canonical(event.labels[None])
            assert event.labels.max() == event.n_clusters - 1
            assert np.isfinite(event.log_posterior)
        sampler.reset()


@pytest.mark.usefixtures("little_memory")
class TestForgeries:
    def test_the_files_themselves_are_loaded(self, files: Files, folder: Path) -> None:
        """Also opened and put together again as the forgeries are."""
        for (kind, _), content in files.items():
            assert attempt(kind, content, folder)
            assert attempt(kind, hostile.forged(*hostile.opened(content)), folder)

    @pytest.mark.parametrize("count", [30, pytest.param(1500, marks=pytest.mark.nightly)])
    @pytest.mark.parametrize("kind", KINDS)
    def test_forged_content(self, kind: str, count: int, files: Files, folder: Path) -> None:
        trap, own = folder / "trap", [content for key, content in files.items() if key[0] == kind]
        for seed in range(count):
            rng = hostile.seeded(seed)
            attempt(kind, hostile.forgery(rng.choice(own), trap, rng), folder)
        assert not trap.exists()

    def test_a_pickle_is_never_opened(self, files: Files, folder: Path, tmp_path: Path) -> None:
        """And would be noticed: the same bytes, unpickled, spring the trap."""
        trap = tmp_path / "trap"
        mine = hostile.npy(np.array([hostile.Mine(trap)], dtype=object))
        for (kind, name), content in files.items():
            header, members = hostile.opened(content)
            for member in members:
                forged = hostile.forged(header, {**members, member: mine})
                assert not attempt(kind, forged, folder), (kind, name, member)
        assert not trap.exists()
        (tmp_path / "mine.npy").write_bytes(mine)
        np.load(tmp_path / "mine.npy", allow_pickle=True)
        assert trap.exists()

    def test_a_header_cannot_claim_memory(self, files: Files, folder: Path) -> None:
        for kind, name in (("trace", "labels"), ("sampler", "coordinates"), ("session", "data.X")):
            settings, members = hostile.opened(files[kind, "default"])
            for header in hostile.HEADERS:
                members[f"{name}.npy"] = hostile.npy_with_header(header, bytes(24))
                assert not attempt(kind, hostile.forged(settings, members), folder), header

    def test_a_bomb_is_not_unpacked(self, files: Files, folder: Path) -> None:
        """A hundred megabytes of zeros, or of blanks, take a hundred kilobytes; all kinds are read alike."""
        header, members = hostile.opened(files["sampler", "default"])
        zeros = hostile.npy(np.zeros((3, 33_000_000), dtype=np.uint8))
        for content in (
            hostile.forged(header, {**members, min(members): zeros}),
            hostile.forged(header, {**members, "unused.npy": zeros}),
            hostile.forged(header, members, " " * 100_000_000),
        ):
            assert len(content) < 500_000
            loading = lambda content=content: attempt("sampler", content, folder)  # noqa: E731
            assert hostile.traced_peak(loading) < 2 * hostile.MOST_MEMORY
            assert not attempt("sampler", content, folder)


def test_more_than_a_gigabyte_from_a_small_file_needs_a_limit_set_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EWENS_WIDGETS_MEMORY_LIMIT", raising=False)
    monkeypatch.setattr("ewens_widgets.arguments._available", lambda: 64 * 2**30)
    path = tmp_path / "bomb.npz"
    path.write_bytes(archive_bytes("trace", {}, {}))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros.npy", hostile.npy_with_header(hostile.ZEROS.format(1_200_000_000)))
        file.infolist()[-1].file_size = 1_200_000_000  # as if so many zeros followed

    def load() -> None:
        with pytest.raises(TooLargeError, match=r"the limit is 1\.0 GiB.*EWENS_WIDGETS_MEMORY_LIMIT"):
            read_archive(path, "trace")

    assert hostile.traced_peak(load) < 2**20
    monkeypatch.setattr(archive, "_LARGEST", 1000)
    small = tmp_path / "small.npz"
    write_archive(small, "trace", {}, {"zeros": np.zeros(100_000)})
    with pytest.raises(TooLargeError):
        read_archive(small, "trace")
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", str(2**20))
    assert read_archive(small, "trace")[1]["zeros"].size == 100_000
    noise = np.random.default_rng(0).random(100_000)  # a large file that unpacks to little more
    monkeypatch.delenv("EWENS_WIDGETS_MEMORY_LIMIT")
    write_archive(small, "trace", {}, {"noise": noise})
    np.testing.assert_array_equal(read_archive(small, "trace")[1]["noise"], noise)


# Content that does not fit together: found by fuzzing, one by one

Change = Callable[[Any], Any]
DEFAULT, GAMMA, OWN_III = ("sampler", "default"), ("sampler", "gamma"), ("sampler", "own")


def refuse(files: Files, key: tuple[str, str], place: tuple[str, ...], change: Change, words: str) -> None:
    """Change a value of the settings, or an array (named ``array, name``), and expect a refusal."""
    metadata, arrays = parse_archive(files[key], key[0])
    inner, name = (arrays, place[1]) if place[0] == "array" else (metadata, place[-1])
    for part in () if place[0] == "array" else place[:-1]:
        inner = inner[part]
    inner[name] = change(inner[name])
    for message in (words, "complete"):  # at last without the value
        content = archive_bytes(key[0], metadata, arrays)
        with pytest.raises(ArchiveError, match=message), hostile.loadable(content) as path:
            ew.Trace.load(path) if key[0] == "trace" else ew.Sampler.load(path)
        inner.pop(name, None)


def with_label(label: int) -> Change:
    return lambda labels: np.where(np.arange(7) == 3, label, labels.astype(np.int64))


@pytest.mark.parametrize(
    ("key", "name", "change", "words"),
    [
        (("sampler", "paper-2"), "coordinates", lambda _: np.ones((5, 2)), "complete sampler"),
        (DEFAULT, "coordinates", lambda X: X * 1e200, "not canonical for model II"),
        (DEFAULT, "coordinates", lambda X: X * 0.0, "not canonical for model II"),
        (DEFAULT, "coordinates", lambda X: X * np.nan, "complete sampler"),
        (DEFAULT, "theta_grid", lambda _: np.array([1.0, -1.0, 2.0]), "complete sampler"),
        *((DEFAULT, "labels", with_label(label), "inconsistent: labels") for label in (2**62, 7, -1)),
        *(
            (DEFAULT, "labels", change, "inconsistent: labels")
            for change in (lambda a: a[:6], lambda a: a + 1, lambda a: a + 0.0, lambda a: np.stack([a, a], 1))
        ),
        (DEFAULT, "first_labels", lambda _: np.full(7, 3), "inconsistent: labels"),
        *(
            (("trace", "default"), name, change, "not a complete trace")
            for name, change in {
                "log_posterior": lambda a: a * np.nan,
                "theta_weights": lambda a: a + np.inf,
                "concentration": lambda a: a.astype("U8"),
                "iterations": lambda a: a + 0.5,
                "labels": lambda a: a[0],
                "theta_index": lambda a: a + 100,
            }.items()
        ),
        (("trace", "default"), "log_posterior", lambda a: a.astype(np.complex128), "not a complete trace"),
        (("trace", "own"), "nu_index", lambda a: a + 100, "not a complete trace"),
        (("trace", "own"), "nu_weights", lambda a: a * 2, "not a complete trace"),
        (("trace", "own"), "sigma", lambda a: a[:, :1], "not a complete trace"),
    ],
)
def test_arrays_that_do_not_fit(
    files: Files, key: tuple[str, str], name: str, change: Change, words: str
) -> None:
    refuse(files, key, ("array", name), change, words)


PRIOR = ("posterior", "prior")
GAMMA_PRIOR = {"kind": "Gamma", "shape": 1.0, "rate": 1.0}
TELEPORT, NO_REPEATS = [{"name": "teleport", "repeats": 1}], [{"name": "gibbs", "repeats": 0}]


@pytest.mark.parametrize(
    ("key", "place", "value", "words"),
    [
        (DEFAULT, ("state", "theta_index"), 14, "inconsistent: θ"),
        (DEFAULT, ("state", "theta_index"), -1, "inconsistent: θ"),
        (DEFAULT, ("state", "iteration"), -1, "inconsistent: iteration"),
        (DEFAULT, ("state", "iteration"), 10**30, "inconsistent: iteration"),
        (DEFAULT, ("state", "log_concentration"), "0x1p2000", "complete sampler"),
        (DEFAULT, ("state", "log_concentration"), "0x1.8p+3", "inconsistent: λ"),
        *((GAMMA, ("state", "log_concentration"), value, "complete") for value in ("nan", "high", "0x1p+10")),
        *((DEFAULT, ("state", "generator"), value, "complete") for value in ({}, [], None)),
        (DEFAULT, ("first", "generator"), {"bit_generator": "PCG64"}, "complete sampler"),
        (DEFAULT, ("first", "generator"), {"bit_generator": "MT19937"}, "complete sampler"),
        (DEFAULT, ("state",), None, "complete sampler"),
        (DEFAULT, ("moves",), [{"name": "gibbs", "repeats": 10**30}], "must not exceed"),
        *((DEFAULT, ("moves",), value, "complete sampler") for value in (5, None, [], TELEPORT, NO_REPEATS)),
        (DEFAULT, ("acceptance",), "always", "complete sampler"),
        (DEFAULT, ("posterior",), {}, "complete sampler"),
        (DEFAULT, ("posterior", "alpha"), 1e308, "alpha is too large"),
        (DEFAULT, (*PRIOR, "concentration"), {**GAMMA_PRIOR, "shape": 1e300}, "between 1e-100"),
        (OWN_III, ("state", "nu_index"), 99, "inconsistent: ν"),
        (OWN_III, ("state", "nu_index"), -1, "inconsistent: ν"),
        *(
            (OWN_III, ("state", "sigma"), value, "complete sampler")
            for value in ([], ["0x1p+0"], ["0x1p+0", "0x1p+1", "0x1p+0"], ["0x1p+0", "0x0p+0", "nan"], None)
        ),
        *(
            (OWN_III, PRIOR, value, "complete sampler")
            for value in (
                None,
                {},
                GAMMA_PRIOR,
                {"kind": "Stick"},
                {"kind": "PitmanYor", "concentration": 1.0},
                {"kind": "PitmanYor", "concentration": 1.0, "discount": 2.0},
                {"kind": "FiniteMixture", "gamma": 1.0, "count": {"kind": "Poisson", "mean": "many"}},
            )
        ),
    ],
)
def test_settings_that_do_not_fit(
    files: Files, key: tuple[str, str], place: tuple[str, ...], value: object, words: str
) -> None:
    refuse(files, key, place, lambda _: value, words)


@pytest.mark.parametrize(
    ("name", "value"), [("seed", -1), ("seed", 0.5), ("initial", "x"), ("initial", [1, 2]), ("iterations", 0)]
)
def test_settings_of_a_run_that_do_not_fit(name: str, value: object) -> None:
    session = running()
    with pytest.raises(ValueError, match="not a saved explorer"):
        unpack_session(pack_session(replace(session, settings={**session.settings, name: value})))


def test_data_of_another_sampler_are_refused(files: Files) -> None:
    other = np.random.default_rng(6).normal(size=(8, 2))
    metadata, arrays = parse_archive(files["session", "default"], "session")
    metadata["data"] |= {"feature_names": [], "label_names": None}
    del arrays["data.labels"]
    for wrong in (other, other[:7, :1]):
        with pytest.raises(ValueError, match="not those of its sampler"):
            unpack_session(archive_bytes("session", metadata, {**arrays, "data.X": wrong}))
    metadata, arrays = parse_archive(files["sampler", "paper-2"], "sampler")
    arrays["raw"] = arrays["raw"][:5]
    with (
        pytest.raises(ArchiveError, match="5 rows, but its coordinates 7"),
        hostile.loadable(archive_bytes("sampler", metadata, arrays)) as path,
    ):
        ew.Sampler.load(path)
