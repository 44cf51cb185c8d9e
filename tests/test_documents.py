"""What people read: links lead somewhere, examples print what is shown, and names have a page.

`make links` asks other sites too. The words are checked by `make lint`, whose checker is tried here.
"""

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import ewens_widgets as ew

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PYTHON = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
SCALING = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")


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


def test_faults_of_built_pages_are_seen(links: ModuleType, tmp_path: Path) -> None:
    """Places of other pages, pictures, and what is loaded from other sites, which may only be linked to."""
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "index.html").write_text('<h2 id="here"></h2><a href="../a.html#there">a</a>')
    (tmp_path / "a.html").write_text(
        '<p id="there"><a href="lab/?path=x.ipynb#here">b</a><a href="#there">c</a>'
        f'<a href="https://b.invalid/">d</a></p><img src="data:image/gif;base64,{999 * "A"}">'
    )
    assert list(links.faults_of_site(tmp_path)) == []
    (tmp_path / "b.html").write_text(
        '<a class="x" href="a.html#gone">a</a><img src="none.png"><a href="#gone">b</a>'
        '<script async src="https://example.invalid/a.js">'
    )
    assert sorted(links.faults_of_site(tmp_path)) == [
        "b.html: [#gone] has no such place",
        "b.html: [a.html#gone] has no such place",
        "b.html: [https://example.invalid/a.js] is loaded from another site",
        "b.html: [none.png] does not exist",
    ]


PLANTED = {
    "minds.md": "Model III minds nothing.\n",
    "long.md": "One two three.\n\n" + "word " * 36 + "end.\n",
    "docstring.py": '"""The law of K."""\n',
    "comment.py": "VALUE = 1  # nobody waits for this\n",
    "text.py": 'TEXT = f"{VALUE} objects are sure"\n',
    "script.js": "// 171 wines are in doubt\n",
    "words.ipynb": json.dumps({"cells": [{"cell_type": "markdown", "source": ["The leftovers."]}]}),
    "code.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": ["print('put right')"]}]}),
}
PLAIN = {
    "plain.md": "It is invariant to shears.\n\n| " + "cell " * 60 + "|\n\n```\nx = 1\n```\n",
    "names.py": "nobody = 1\n",  # names are checked by readers, strings and comments here
}


def test_each_planted_phrase_is_found_once_and_plain_english_is_left_alone(
    repository: Path, tmp_path: Path
) -> None:
    for name, text in (PLANTED | PLAIN).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, repository / "scripts" / "check_words.py", *tmp_path.iterdir()]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    faults = [line.removeprefix(f"{tmp_path}/").partition(":")[0] for line in found.stdout.splitlines()]
    assert sorted(faults) == sorted(PLANTED)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("README.md", marks=pytest.mark.slow),
        "docs/exact.md",
        "docs/priors.md",
        "docs/tables.md",
        pytest.param("docs/programming.md", marks=pytest.mark.slow),
    ],
)
def test_the_examples_print_what_is_shown(
    repository: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text = (repository / name).read_text(encoding="utf-8")
    examples = PYTHON.findall(text)
    assert len(examples) == text.count("```python") >= 1
    names: dict[str, object] = {}
    for code, output in examples:
        # Examples stand alone, but for those of the page on tables.
        names = names if name == "docs/tables.md" else {}
        exec(compile(code, name, "exec"), names)  # noqa: S102 — our own text, and running it is the point
        assert capsys.readouterr().out == output


def test_make_targets_named_in_the_documents_exist(repository: Path) -> None:
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE))
    for path in [
        *repository.glob("*.md"),
        repository / "benchmarks/README.md",
        *repository.glob("docs/*.md"),
    ]:
        named = re.findall(r"(?:^|`)make ([a-z]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert targets >= set(named), path
    assert {"lab", "test"} <= targets


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "output"), PYTHON.findall(SCALING), ids=["local", "dask", "checkpoint", "until"]
)
def test_an_example_prints_what_is_shown(code: str, output: str, tmp_path: Path) -> None:
    # As a script, because that is the hardest case: processes that are started import it again.
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout == output


def test_every_name_in_a_notebook_is_in_the_reference() -> None:
    reference = runpy.run_path(str(ROOT / "docs" / "public_names.py"))["Reference"]()
    used = set()
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        used |= set(re.findall(r"\bew\.(\w+)(?:\.(\w+))?", code))
    assert len(used) > 20
    for name, inner in sorted(used):
        value = getattr(ew, name)
        value = getattr(value, inner) if isinstance(value, ModuleType) else value
        if callable(value):
            assert f"{value.__module__}.{value.__qualname__}" in reference.addresses, (name, inner)
