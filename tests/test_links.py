"""Links between the documents lead somewhere (`make links` asks other sites too)."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def links(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("check_links")


def test_no_local_link_is_broken(links: ModuleType, repository: Path) -> None:
    pages = links.documents()
    names = {str(page.path.relative_to(repository)) for page in pages}
    assert {"README.md", "docs/index.md", "notebooks/01_quickstart.ipynb"} <= names
    assert sum(len(list(page.links())) for page in pages) > 10
    assert list(links.faults(pages)) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[a](there.md)", None),
        ("[a](there.md#the-first-heading)", None),
        ("# Own title\n[a](#own-title)", None),
        ("![picture](missing.png)", "missing.png does not exist"),
        ("[`code`](missing.md)", "missing.md does not exist"),
        ("[a](there.md#no-such-heading)", "has no heading"),
        ("[a](#nothing)", "has no heading"),
        ("[a][b]\n\n[b]: missing.md", "missing.md does not exist"),
        ('<img src="missing.png">', "missing.png does not exist"),
        ("```\n[a](missing.md)\n```", None),
        ("[a](https://example.invalid/never-asked)", None),
        ("[a](with%20space.md)", None),
    ],
)
def test_broken_links_are_seen(
    links: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, fault: str | None
) -> None:
    monkeypatch.setattr(links, "REPOSITORY", tmp_path)
    (tmp_path / "there.md").write_text("# The first *heading*\n")
    (tmp_path / "with space.md").write_text("")
    page = tmp_path / "page.md"
    page.write_text(text)
    found = list(links.faults([links.read_document(page)]))
    if fault is None:
        assert found == []
    else:
        assert len(found) == 1
        assert fault in found[0]


def test_an_external_link_is_asked_once(links: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(links, "fault_of_external_link", lambda link: asked.append(link) or "answers 404")
    page = links.Document(links.REPOSITORY / "page.md", "[a](https://a.invalid) [b](https://a.invalid)")
    assert len(list(links.faults([page], external=True))) == 2
    assert asked == ["https://a.invalid"]
    assert list(links.faults([page])) == []


def test_broken_links_of_a_built_site_are_seen(links: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "index.html").write_text('<h2 id="here"></h2><a href="../a.html#there">a</a>')
    (tmp_path / "a.html").write_text(
        '<p id="there"><a href="lab/?path=x.ipynb#here">b</a><a href="#there">c</a><a href="https://b.invalid/">d</a></p>'
    )
    assert list(links.faults_of_site(tmp_path)) == []
    (tmp_path / "b.html").write_text('<a class="x" href="a.html#gone">a</a><img src="none.png">')
    assert sorted(links.faults_of_site(tmp_path)) == [
        "b.html: [a.html#gone] has no such place",
        "b.html: [none.png] does not exist",
    ]
