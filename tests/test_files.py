"""Where downloads are kept, and that a file is written whole or not at all."""

import sys
from pathlib import Path

import pytest

from ewens_widgets import files
from ewens_widgets.files import cache_directory


class TestWritingAtomically:
    def test_old_file_survives_a_failure_and_no_part_is_left(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
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


class TestCacheDirectory:
    @pytest.fixture(autouse=True)
    def home(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
        for variable in ("EWENS_WIDGETS_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("USERPROFILE", str(tmp_path))
        return tmp_path

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
    def test_platform_and_environment_decide(
        self,
        home: Path,
        monkeypatch: pytest.MonkeyPatch,
        platform: str,
        variables: dict[str, str],
        expected: str,
    ) -> None:
        monkeypatch.setattr(sys, "platform", platform)
        for name, value in variables.items():
            monkeypatch.setenv(name, value.format(home=home))
        assert cache_directory() == home / expected
        assert not cache_directory().exists()
