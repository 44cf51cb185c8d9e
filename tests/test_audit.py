"""The check of pinned versions, with an index of our own."""

from collections.abc import Callable
from types import ModuleType
from typing import Any
from urllib.error import HTTPError, URLError

import pytest

PINS = "# made by hand\nnumpy==2.1.0\nold-package==1.0 ; python_version < '4'\n\nplain>=3\n"


@pytest.fixture(scope="module")
def audit(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("audit_pins")


def test_all_pins_are_read_and_good_versions_are_only_counted(
    audit: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line for line in audit.PINS.read_text().splitlines() if line and not line.startswith("#")]
    assert len(list(audit.pins(audit.PINS.read_text()))) == len(lines) > 50
    assert list(audit.pins(PINS)) == [("numpy", "2.1.0"), ("old-package", "1.0")]
    assert audit.audit(PINS, lambda *_: {"info": {"yanked": False}, "vulnerabilities": []}) == 0
    assert capsys.readouterr().out == "2 pinned versions checked, 0 findings\n"


def test_what_is_known_against_a_version_is_told(
    audit: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    report = {"id": "CVE-1", "fixed_in": ["1.1"], "link": "https://example.org/1", "withdrawn": None}
    denied = {**report, "id": "CVE-2", "withdrawn": "2020-01-01"}

    def ask(name: str, version: str) -> dict[str, Any]:
        if name == "numpy":
            raise HTTPError("", 404, "not found", None, None)  # type: ignore[arg-type]
        return {"info": {"yanked": True, "yanked_reason": "broken"}, "vulnerabilities": [report, denied]}

    assert audit.audit(PINS, ask) == 1
    said = capsys.readouterr().out
    assert "numpy 2.1.0: the index answers 404" in said
    assert "old-package 1.0: CVE-1, mended in 1.1: https://example.org/1" in said
    assert "old-package 1.0: withdrawn, broken" in said
    assert "CVE-2" not in said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (URLError("no route"), "SKIPPED after 0 pins: the package index cannot be reached"),
        (
            HTTPError("", 404, "no", None, None),
            "SKIPPED: this package index tells nothing of any of the 2 pins",
        ),  # type: ignore[arg-type]
    ],
    ids=["unreachable", "empty"],
)
def test_without_an_index_it_says_that_nothing_was_checked(
    audit: ModuleType, capsys: pytest.CaptureFixture[str], error: Exception, said: str
) -> None:
    def ask(*_: str) -> dict[str, Any]:
        raise error

    assert audit.audit(PINS, ask) == 0
    assert said in capsys.readouterr().out
