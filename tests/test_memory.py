import pytest

from ewens_widgets import memory
from ewens_widgets.memory import TooLargeError, check_fits, memory_limit


def test_the_limit_is_a_part_of_the_memory() -> None:
    assert 2**20 < memory_limit() < 2**50


def test_the_environment_sets_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "1000000")
    assert memory_limit() == 1_000_000
    check_fits(1_000_000, "it", "Do.")
    with pytest.raises(TooLargeError, match=r"it would take 2\.0 GiB of memory; the limit is 1 MiB\. Do\."):
        check_fits(2**31, "it", "Do.")
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "lots")
    with pytest.raises(ValueError, match="whole number of bytes"):
        memory_limit()


def test_too_large_is_a_value_error_and_a_memory_error() -> None:
    assert issubclass(TooLargeError, ValueError)
    assert issubclass(TooLargeError, MemoryError)


def test_a_container_has_less_than_its_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_machine_memory", lambda: 16 * 2**30)
    monkeypatch.setattr(memory, "_container_limits", lambda: [2 * 2**30])
    monkeypatch.setattr(memory, "_available", memory._available.__wrapped__)
    assert memory_limit() == 2**29
