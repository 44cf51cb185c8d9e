import errno
import json
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ewens_widgets.sampling import archive as module
from ewens_widgets.sampling.archive import (
    ArchiveError,
    MissingArchiveError,
    archive_bytes,
    parse_archive,
    read_archive,
    write_archive,
)

ARRAYS = {"labels": np.arange(12, dtype=np.uint8).reshape(3, 4), "weights": np.linspace(0.0, 1.0, 5)}
METADATA = {"model": "II", "alpha": 1.0, "state": 2**127 + 1, "names": ["a", "b"], "nested": {"shape": 2.5}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "chain.npz"
    write_archive(target, "trace", METADATA, ARRAYS)
    return target


def test_round_trip(path: Path) -> None:
    metadata, stored = read_archive(path, "trace")
    assert metadata == METADATA
    assert sorted(stored) == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        assert stored[name].dtype == array.dtype
        np.testing.assert_array_equal(stored[name], array)


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
    read_metadata, read_arrays = parse_archive(archive_bytes("k", metadata, arrays), "k")
    assert read_metadata == metadata
    assert sorted(read_arrays) == sorted(arrays)
    for name, array in arrays.items():
        assert read_arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(read_arrays[name], array)


def test_numpy_scalars_become_plain_numbers() -> None:
    content = archive_bytes("k", {"i": np.int64(3), "f": np.float64(0.25), "b": np.bool_(True)}, {})
    assert parse_archive(content, "k")[0] == {"i": 3, "f": 0.25, "b": True}


def test_same_content_gives_the_same_bytes() -> None:
    assert archive_bytes("k", METADATA, ARRAYS) == archive_bytes("k", METADATA, ARRAYS)


def test_numpy_opens_the_file_without_pickle(path: Path) -> None:
    with np.load(path, allow_pickle=False) as opened:
        np.testing.assert_array_equal(opened["labels"], ARRAYS["labels"])


def test_any_flipped_byte_is_refused() -> None:
    content = archive_bytes("trace", METADATA, ARRAYS)
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x11
        with pytest.raises(ArchiveError):
            parse_archive(bytes(damaged), "trace")


def test_any_truncation_is_refused() -> None:
    content = archive_bytes("trace", METADATA, ARRAYS)
    for length in range(len(content)):
        with pytest.raises(ArchiveError):
            parse_archive(content[:length], "trace")
    with pytest.raises(ArchiveError, match="damaged"):
        parse_archive(content[: len(content) // 2], "trace")


def test_bytes_appended_are_refused() -> None:
    with pytest.raises(ArchiveError, match="damaged"):
        parse_archive(archive_bytes("trace", METADATA, ARRAYS) + b"\n", "trace")


def test_without_its_checksum_a_flipped_byte_would_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sabotaged twin: zip's own checks do not see every byte."""
    content = archive_bytes("trace", METADATA, ARRAYS)
    monkeypatch.setattr(module, "_digest", lambda _: content[-module._COMMENT_LENGTH :])
    passed = 0
    for place in range(len(content) - module._COMMENT_LENGTH):
        damaged = bytearray(content)
        damaged[place] ^= 0x11
        try:
            parse_archive(bytes(damaged), "trace")
        except Exception:  # noqa: BLE001, S112 - whatever the zip reader stumbles over
            continue
        passed += 1
    assert passed > 0


def test_another_kind_is_refused(path: Path) -> None:
    with pytest.raises(ArchiveError, match="holds a trace, not a sampler"):
        read_archive(path, "sampler")


def test_a_newer_format_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FORMAT_VERSION", 2)
    write_archive(path, "trace", METADATA, ARRAYS)
    monkeypatch.setattr(module, "FORMAT_VERSION", 1)
    with pytest.raises(ArchiveError, match="upgrade ewens_widgets"):
        read_archive(path, "trace")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MissingArchiveError, match="there is no file"):
        read_archive(tmp_path / "nothing.npz", "trace")
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "nothing.npz", "trace")


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="is a directory"):
        read_archive(tmp_path, "trace")


@pytest.mark.parametrize(
    "content", [b"", b"object,cluster\n0,1\n", b"PK\x03\x04 not really", b"\x93NUMPY", b"\x80\x04\x95"]
)
def test_foreign_bytes(tmp_path: Path, content: bytes) -> None:
    target = tmp_path / "foreign.npz"
    target.write_bytes(content)
    with pytest.raises(ArchiveError, match="was not saved by ewens_widgets"):
        read_archive(target, "trace")


def test_foreign_npz_and_zip(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", labels=np.arange(3))
    with pytest.raises(ArchiveError, match="made by something else"):
        read_archive(tmp_path / "other.npz", "trace")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("a.txt", "text")
    with pytest.raises(ArchiveError, match="made by something else"):
        read_archive(tmp_path / "other.zip", "trace")


def test_forged_archive_with_a_bad_header_is_refused() -> None:
    content = archive_bytes("trace", {}, {})
    assert json.dumps("trace").encode() not in content  # compressed, so forge by building a new one
    forged = _forge({"kind": "trace", "format": 1, "arrays": ["labels"]})
    with pytest.raises(ArchiveError, match="not a well-formed"):
        parse_archive(forged, "trace")


def _forge(header: dict[str, object]) -> bytes:
    import io

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("ewens_widgets.json", json.dumps(header))
        archive.comment = b" " * module._COMMENT_LENGTH
    body = buffer.getvalue()[: -module._COMMENT_LENGTH]
    return body + module._digest(body)


def test_objects_and_nan_are_refused() -> None:
    with pytest.raises(TypeError, match="Python objects"):
        archive_bytes("k", {}, {"a": np.array([None, 1], dtype=object)})
    with pytest.raises(ValueError, match="finite"):
        archive_bytes("k", {"a": float("nan")}, {})
    with pytest.raises(TypeError, match="cannot save"):
        archive_bytes("k", {"a": object()}, {})


def test_pickled_array_is_not_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "pickled.npz", a=np.array([{}], dtype=object))
    with pytest.raises(ArchiveError):
        read_archive(tmp_path / "pickled.npz", "trace")


def test_failed_write_keeps_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def no_space(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(
        OSError, match="could not save, and changed nothing: No space left on device"
    ) as caught:
        write_archive(path, "trace", {}, {})
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_interrupted_write_keeps_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_archive(path, "trace", {}, {})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are a POSIX notion")
def test_a_file_that_cannot_be_completed_leaves_nothing(tmp_path: Path) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    noise = np.random.default_rng(0).bytes(200_000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(OSError, match="could not save"):
            write_archive(
                tmp_path / "large.npz", "trace", {}, {"noise": np.frombuffer(noise, dtype=np.uint8)}
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_unwritable_targets(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="could not save"):
        write_archive(tmp_path / "absent" / "chain.npz", "trace", {}, {})
    with pytest.raises(OSError, match="could not save"):
        write_archive(tmp_path, "trace", {}, {})
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError, match="could not save"):
        write_archive(tmp_path / "file" / "chain.npz", "trace", {}, {})
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a privilege there")
def test_a_link_stays_a_link(tmp_path: Path, path: Path) -> None:
    link = tmp_path / "link.npz"
    link.symlink_to(path)
    write_archive(link, "trace", {"new": True}, {})
    assert link.is_symlink()
    assert read_archive(path, "trace")[0] == {"new": True}
