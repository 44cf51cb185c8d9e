"""What people read: links lead somewhere, examples print what is shown, and names have a page.

`make links` asks other sites too. The words are checked by `make lint`, whose checker is tried here.
"""

import ast
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
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


def test_faults_of_built_pages_are_seen(links: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        '<img src="data:image/gif;base64,'
        + 999 * "A"
        + '"><a href="#here"><b id="here"><a href="https://example.invalid/">'
    )
    assert list(links.faults_of_site(tmp_path)) == []
    page.write_text('<a href="#gone"><img src="gone.png"><script async src="https://example.invalid/a.js">')
    assert len(list(links.faults_of_site(tmp_path))) == 3


def check(repository: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(repository / "scripts" / "check_words.py"), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("page.md", "Model III minds nothing.\n"),
        ("page.md", "One two three.\n\n" + "word " * 36 + "end.\n"),
        ("module.py", '"""The law of K."""\n'),
        ("module.py", "VALUE = 1  # nobody waits for this\n"),
        ("module.py", 'TEXT = f"{VALUE} objects are sure"\n'),
        ("script.js", "// 171 wines are in doubt\n"),
        ("lesson.ipynb", json.dumps({"cells": [{"cell_type": "markdown", "source": ["The leftovers."]}]})),
        ("lesson.ipynb", json.dumps({"cells": [{"cell_type": "code", "source": ["print('put right')"]}]})),
    ],
)
def test_a_planted_phrase_is_found(repository: Path, tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    found = check(repository, path)
    assert found.returncode == 1
    assert found.stdout.startswith(f"{path}:")
    assert found.stdout.count("\n") == 1


def test_plain_english_is_left_alone(repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    table = "| " + " ".join(["cell"] * 60) + " |\n"
    path.write_text(
        f"Model III is invariant to shears.\n\n{table}\n```\nnobody = 1\n```\n".replace("nobody", "x")
    )
    module = tmp_path / "module.py"
    module.write_text("nobody = 1\n")  # names are checked by readers, strings and comments here
    found = check(repository, path, module)
    assert found.returncode == 0, found.stdout


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
    assert len(examples) == len(re.findall("```python", text)) >= 1
    names: dict[str, object] = {}
    for code, output in examples:
        # Examples stand alone, but for those of the page on tables.
        names = names if name == "docs/tables.md" else {}
        exec(compile(code, name, "exec"), names)  # noqa: S102 — our own text, and running it is the point
        assert capsys.readouterr().out == output


def test_make_targets_named_in_the_documents_exist(repository: Path) -> None:
    targets = set(
        re.findall(
            r"^([a-z]+):.*## ", (repository / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE
        )
    )
    documents = ["README.md", "CONTRIBUTING.md", "benchmarks/README.md"]
    documents += [f"docs/{path.name}" for path in (repository / "docs").glob("*.md")]
    for name in documents:
        text = (repository / name).read_text(encoding="utf-8")
        named = set(re.findall(r"(?:^|`)make ([a-z]+)", text, flags=re.MULTILINE))
        assert named <= targets, name
    assert {"lab", "test"} <= targets


def test_every_example_shows_what_it_prints() -> None:
    assert len(PYTHON.findall(SCALING)) == SCALING.count("```python") == 4
    assert any("dask" in code for code, _ in PYTHON.findall(SCALING))


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


def sources(path: Path) -> Iterator[ast.Module]:
    """Code cells of a notebook; magics are left out."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            lines = "".join(cell["source"]).splitlines()
            yield ast.parse("\n".join(line for line in lines if not line.startswith(("%", "!"))))


def chain(node: ast.expr) -> list[str]:
    """Names of ``a.b.c``, or nothing for what is no such chain."""
    if isinstance(node, ast.Attribute):
        before = chain(node.value)
        return [*before, node.attr] if before else []
    return [node.id] if isinstance(node, ast.Name) else []


def used_names(tree: ast.Module) -> Iterator[str]:
    """Full addresses of what is taken from the package, by import or as ``ew.something``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ewens_widgets":
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Attribute) and chain(node)[:1] == ["ew"]:
            names = chain(node)[1:]
            value = getattr(ew, names[0])
            if len(names) > 1 and not callable(value):
                value, names = getattr(value, names[1]), names[:2]
                if callable(value):
                    yield f"{value.__module__}.{value.__qualname__}"
            elif len(names) == 1 and callable(value):
                yield f"{value.__module__}.{value.__qualname__}"


def documented() -> set[str]:
    reference = runpy.run_path(str(ROOT / "docs" / "public_names.py"))["Reference"]()
    return {*reference.addresses, *reference.addresses.values()}


def test_every_name_in_a_notebook_is_in_the_reference() -> None:
    known = documented()
    used = {name for path in NOTEBOOKS for tree in sources(path) for name in used_names(tree)}
    assert len(used) > 20
    assert {"ewens_widgets.tables.read_table", "ewens_widgets.analysis.export.labels_csv"} <= known
    assert sorted(used - known) == []


@pytest.mark.parametrize(
    "code",
    ["from ewens_widgets.files import write_atomically", "import ewens_widgets as ew\new.plots.palette"],
)
def test_a_name_outside_the_reference_would_be_seen(code: str) -> None:
    known = documented()
    found = set(used_names(ast.parse(code)))
    assert found - known or not found
