"""The check of pinned versions, with an index of our own."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import HTTPError, URLError

import pytest

PINS = "# made by hand\nnumpy==2.1.0\nold-package==1.0 ; python_version < '4'\n\nplain>=3\n"


@pytest.fixture(scope="module")
def script(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit_pins", repository / "scripts" / "audit_pins.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_pins_of_the_project_are_read(script: ModuleType) -> None:
    lines = [line for line in script.PINS.read_text().splitlines() if line and not line.startswith("#")]
    assert len(list(script.pins(script.PINS.read_text()))) == len(lines) > 50
    assert list(script.pins(PINS)) == [("numpy", "2.1.0"), ("old-package", "1.0")]


def test_nothing_is_said_of_good_versions(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.audit(PINS, lambda *_: {"info": {"yanked": False}, "vulnerabilities": []}) == 0
    assert capsys.readouterr().out == "2 pinned versions checked, 0 findings\n"


def test_what_is_known_against_a_version_is_told(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    report = {"id": "CVE-1", "fixed_in": ["1.1"], "link": "https://example.org/1", "withdrawn": None}
    denied = {**report, "id": "CVE-2", "withdrawn": "2020-01-01"}

    def ask(name: str, version: str) -> dict[str, Any]:
        if name == "numpy":
            raise HTTPError("", 404, "not found", None, None)  # type: ignore[arg-type]
        return {"info": {"yanked": True, "yanked_reason": "broken"}, "vulnerabilities": [report, denied]}

    assert script.audit(PINS, ask) == 1
    said = capsys.readouterr().out
    assert "numpy 2.1.0: the index answers 404" in said
    assert "old-package 1.0: CVE-1, mended in 1.1: https://example.org/1" in said
    assert "old-package 1.0: withdrawn, broken" in said
    assert "CVE-2" not in said


def test_without_an_index_it_says_that_nothing_was_checked(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask(*_: str) -> dict[str, Any]:
        raise URLError("no route")

    assert script.audit(PINS, ask) == 0
    assert "SKIPPED after 0 pins: the package index cannot be reached" in capsys.readouterr().out


def test_an_index_that_knows_no_version_is_none(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask(*_: str) -> dict[str, Any]:
        raise HTTPError("", 404, "not found", None, None)  # type: ignore[arg-type]

    assert script.audit(PINS, ask) == 0
    assert "SKIPPED: this package index tells nothing of any of the 2 pins" in capsys.readouterr().out
