"""Where downloads are kept, and that a file is written whole or not at all."""

import errno
import os
import re
import sys
from pathlib import Path

import pytest

from ewens_widgets import files
from ewens_widgets.files import cache_directory


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "folder" / "file"
    path.parent.mkdir()
    files.write_atomically(path, b"old")

    def fail(self: Path, target: Path) -> None:
        assert self.read_bytes() == b"new"
        assert self.parent == target.parent
        assert target.read_bytes() == b"old"
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(KeyboardInterrupt):
            files.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]
    files.write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="could not save, and changed nothing: No space left on device"):
        files.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_targets_that_cannot_be_written_and_links(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(FileNotFoundError, match="could not save"):
        files.write_atomically(tmp_path / "absent" / "file", b"new")
    for target in (tmp_path, file / "below"):
        with pytest.raises(OSError, match="could not save"):
            files.write_atomically(target, b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    if sys.platform != "win32":  # symbolic links need a privilege there
        (tmp_path / "link").symlink_to(file)
        files.write_atomically(tmp_path / "link", b"new")
        assert (tmp_path / "link").is_symlink()
        assert file.read_bytes() == b"new"


def test_what_a_killed_process_left_goes_with_the_next_save(tmp_path: Path) -> None:
    path = tmp_path / "file[1]"
    left, fresh, other = (tmp_path / f".{name}.ab.tmp" for name in ("file[1]", "file[1].x", "file"))
    for temporary in (left, fresh, other):
        temporary.write_bytes(b"half")
    os.utime(left, (1.0, 1.0))
    os.utime(other, (1.0, 1.0))
    files.write_atomically(path, b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([path, fresh, other])


@pytest.mark.parametrize(
    "text", ["=cmd|' /C calc'!A0", "+1", "-x", "@SUM(A1)", "\tx", "'=1", "plain", "a=b", ""]
)
def test_cells_that_a_spreadsheet_would_run_are_guarded_and_come_back(text: str) -> None:
    written = files.guarded(text)
    assert isinstance(written, str)
    assert written[:1] not in set("=+-@\t\r")
    assert re.sub(files.GUARD, "", written) == text
    assert files.guarded(-1.5) == -1.5


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, ".cache/ewens_widgets"),
        ("linux", {"XDG_CACHE_HOME": "{home}/xdg"}, "xdg/ewens_widgets"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, ".cache/ewens_widgets"),
        ("darwin", {"XDG_CACHE_HOME": "{home}/xdg"}, "Library/Caches/ewens_widgets"),
        ("win32", {}, "AppData/Local/ewens_widgets/Cache"),
        ("win32", {"LOCALAPPDATA": "{home}/local"}, "local/ewens_widgets/Cache"),
        ("linux", {"EWENS_WIDGETS_DATA": "~/mine"}, "mine"),
        ("linux", {"EWENS_WIDGETS_DATA": ""}, ".cache/ewens_widgets"),
    ],
)
def test_platform_and_environment_decide_where_downloads_are_kept(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    platform: str,
    variables: dict[str, str],
    expected: str,
) -> None:
    for name in ("EWENS_WIDGETS_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in {"HOME": "{home}", "USERPROFILE": "{home}", **variables}.items():
        monkeypatch.setenv(name, value.format(home=tmp_path))
    assert cache_directory() == tmp_path / expected
    assert not cache_directory().exists()
