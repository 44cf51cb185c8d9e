"""The limit of memory for one result."""

from pathlib import Path

import pytest

from ewens_widgets import arguments
from ewens_widgets.arguments import TooLargeError, check_fits, memory_limit


def test_the_environment_sets_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2**20 < memory_limit() < 2**50
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "1000000")
    assert memory_limit() == 1_000_000
    check_fits(1_000_000, "it", "Do.")
    assert issubclass(TooLargeError, ValueError)
    assert issubclass(TooLargeError, MemoryError)
    with pytest.raises(TooLargeError, match=r"it would take 2\.0 GiB of memory; the limit is 1 MiB\. Do\."):
        check_fits(2**31, "it", "Do.")
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "lots")
    with pytest.raises(ValueError, match="whole number of bytes"):
        memory_limit()


def test_a_container_has_less_than_its_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "limit").write_text(f"{2**29}\n")
    (tmp_path / "none").write_text("max\n")
    files = [str(tmp_path / name) for name in ("limit", "none", "absent")]
    monkeypatch.setattr(arguments, "_CONTAINER_FILES", files)
    monkeypatch.setattr(arguments, "_available", arguments._available.__wrapped__)
    assert memory_limit() == 2**27
