"""What a stranger looks for: workflows, packages, pinned versions, citation, releases, one account."""

import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import HTTPError, URLError

import pytest
from packaging.requirements import Requirement
from ruamel.yaml import YAML

Script = Callable[[str], ModuleType]
WORKFLOWS = ["ci", "docs", "nightly", "release"]


def workflow(repository: Path, name: str) -> dict[str, Any]:
    path = repository / ".github" / "workflows" / f"{name}.yml"
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


def commands(repository: Path, name: str) -> Iterator[str]:
    """What a workflow runs, with each choice of its matrices."""
    for job in workflow(repository, name)["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        choices = matrix.get("include") or [
            dict(zip(matrix, one, strict=True)) for one in product(*matrix.values())
        ]
        for step, choice in product(job["steps"], choices):
            yield re.sub(
                r"\$\{\{ matrix\.(\w+) \}\}", lambda found, of=choice: of[found[1]], step.get("run", "")
            )


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("vendor.github-workflows", ".github/workflows/*.yml"),
        ("custom.github-workflows-require-timeout", ".github/workflows/*.yml"),
        ("vendor.dependabot", ".github/dependabot.yml"),
        ("vendor.github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("vendor.github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("vendor.citation-file-format", "CITATION.cff"),
    ],
)
def test_files_follow_their_schemas(repository: Path, schema: str, pattern: str) -> None:
    files = [str(path) for path in repository.glob(pattern)]
    assert files
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_workflows_have_no_known_holes(repository: Path, tmp_path: Path) -> None:
    """Actions are pinned by commit, no job may write unless it says so, and no text of others is run."""
    folder = tmp_path / ".github"
    shutil.copytree(repository / ".github", folder)
    command = [Path(sys.executable).with_name("zizmor"), "--offline", "--no-progress", folder]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    path = folder / "workflows" / "release.yml"
    path.write_text(path.read_text(encoding="utf-8").replace('TAG="$TAG"', "TAG=${{ github.ref_name }}"))
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode > 10
    assert "template-injection" in found.stdout


# Quick, and without a network. The others take long, and `make test` itself runs most of them.
RUN_HERE = {"make lint", "make notes"}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKFLOWS)
def test_make_can_do_what_workflows_ask_for(repository: Path, name: str) -> None:
    assert sorted(path.stem for path in (repository / ".github/workflows").iterdir()) == WORKFLOWS
    asked = {command for command in commands(repository, name) if "make " in command}
    assert asked
    # This environment has everything: nothing is installed into it.
    stamps = (f"--assume-old={sys.prefix}/.installed-{kind}" for kind in ("lab", "test", "browser"))
    options = f"VENV={sys.prefix} {' '.join(stamps)}"
    for command in sorted(asked):
        tried = options if command in RUN_HERE else f"--dry-run {options}"
        script = f'make() {{ command make {tried} "$@"; }}\n{command}'
        done = subprocess.run(
            ["bash", "-ec", script],  # noqa: S607
            cwd=repository,
            env={**os.environ, "TAG": "v0.0.0"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_systems_without_make_run_the_fast_tests(repository: Path) -> None:
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    (fast,) = re.findall(r"^fast:.*\n\t.* -m (\".*\")", makefile, re.MULTILINE)
    assert f"python -m pytest -q -p no:nbval -m {fast}" in set(commands(repository, "ci"))


def test_the_supported_versions_are_the_tested_ones(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    jobs = workflow(repository, "ci")["jobs"]
    for python in ("3.11", "3.12", "3.13", "3.14"):
        assert f"Programming Language :: Python :: {python}" in project["classifiers"]
        assert python in {one["python"] for one in jobs["tests"]["strategy"]["matrix"]["include"]}
        assert python in jobs["packages"]["strategy"]["matrix"]["python"]


def test_the_account_has_one_name_everywhere(repository: Path, script: Script) -> None:
    address = script("address")
    name = address.owner((repository / "pyproject.toml").read_text(encoding="utf-8"))
    named = {
        str(path.relative_to(repository)): address.owners(path.read_text(encoding="utf-8"))
        for path in address.files(repository)
        if path.suffix != ".py"
    }
    named = {path: owners for path, owners in named.items() if owners}
    assert {"README.md", "pyproject.toml", "CITATION.cff", ".github/CODEOWNERS", "recipe/meta.yaml"} <= set(
        named
    )
    assert all(owners == {name} for owners in named.values()), named


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://github.com/OWNER/ewens_widgets/issues", "https://github.com/me-too/ewens_widgets/issues"),
        ("https://OWNER.github.io/ewens_widgets/", "https://me-too.github.io/ewens_widgets/"),
        (
            "https://mybinder.org/v2/gh/OWNER/ewens_widgets/HEAD",
            "https://mybinder.org/v2/gh/me-too/ewens_widgets/HEAD",
        ),
        ("* @OWNER", "* @me-too"),
        ("https://github.com/somebody/else", "https://github.com/somebody/else"),
    ],
)
def test_an_address_is_set_where_it_stands(script: Script, text: str, expected: str) -> None:
    assert script("address").renamed(text, "me-too") == expected


@pytest.fixture
def project(repository: Path, tmp_path: Path) -> Path:
    """A copy of the files that a release changes."""
    for name in (
        "ewens_widgets/_version.py",
        "CHANGELOG.md",
        "CITATION.cff",
        ".zenodo.json",
        "recipe/meta.yaml",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(repository / name, tmp_path / name)
    return tmp_path


def test_a_release_writes_version_and_date_everywhere(project: Path, script: Script) -> None:
    release = script("release")
    changes = (project / "CHANGELOG.md").read_text(encoding="utf-8")
    (project / "CHANGELOG.md").write_text(
        re.sub(r"^## .*", "## 9.8.7 (not released yet)", changes, count=1, flags=re.MULTILINE)
    )
    with pytest.raises(SystemExit, match="the package is"):
        release.check_tag(project, "v9.8.7")
    for _ in range(2):  # the same release, prepared again
        release.prepare(project, "9.8.7", "2031-02-03")
    release.check_tag(project, "v9.8.7")
    citation = YAML(typ="safe").load((project / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], str(citation["date-released"])) == ("9.8.7", "2031-02-03")
    assert json.loads((project / ".zenodo.json").read_text(encoding="utf-8"))["version"] == "9.8.7"
    assert release.notes(project).startswith("###")
    with pytest.raises(SystemExit, match="what is new"):
        release.prepare(project, "9.8.8", "2031-02-04")


def test_citations_agree(repository: Path, script: Script) -> None:
    citation = YAML(typ="safe").load((repository / "CITATION.cff").read_text(encoding="utf-8"))
    zenodo = json.loads((repository / ".zenodo.json").read_text(encoding="utf-8"))
    version = script("release").current(repository)
    assert citation["version"] == zenodo["version"] == version
    assert citation["title"] in zenodo["title"]
    assert citation["license"] == zenodo["license"] == "BSD-3-Clause"
    assert citation["references"][0]["doi"] in {one["identifier"] for one in zenodo["related_identifiers"]}


def test_the_recipe_asks_for_what_the_package_needs(repository: Path, script: Script) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {text.partition(";")[0].strip().replace(">=", " >=", 1) for text in project["dependencies"]}
    text = (repository / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    plain = re.sub(r"\{\{.*?\}\}", "0", re.sub(r"\{%.*?%\}", "", text))
    recipe = YAML(typ="safe").load(plain)
    asked = {text.replace("matplotlib-base", "matplotlib") for text in recipe["requirements"]["run"]}
    assert asked == needed | {"python >=0"}
    assert f'version = "{script("release").current(repository)}"' in text


def test_the_image_copies_what_exists_and_compiles(repository: Path) -> None:
    """Building it is not possible everywhere; names of files and commands are checked."""
    lines = (repository / "binder" / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in lines.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    assert {line.split()[0] for line in lines} <= {"FROM", "USER", "COPY", "RUN", "WORKDIR"}
    assert re.fullmatch(r"FROM [\w./-]+:[\w.-]+", lines[0])
    for name in re.findall(r"/opt/ewens_widgets/([\w./-]+)", "\n".join(lines)):
        assert (repository / name).exists(), name
    assert "ewens-widgets compile" in " ".join(lines)
    assert lines.index("USER ${NB_UID}") > lines.index("USER root")


def test_every_reference_of_the_paper_is_there(repository: Path) -> None:
    paper = (repository / "joss" / "paper.md").read_text(encoding="utf-8")
    known = set(
        re.findall(r"^@\w+\{(\w+),", (repository / "joss" / "paper.bib").read_text("utf-8"), re.MULTILINE)
    )
    assert set(re.findall(r"@([a-z_0-9]+)", paper)) == known
    headings = re.findall(r"^# (.*)", paper, re.MULTILINE)
    wanted = [
        "Summary",
        "Statement of need",
        "State of the field",
        "Software design",
        "Research impact statement",
    ]
    assert headings[:6] == [*wanted, "AI usage disclosure"]
    assert 750 <= len(paper.split()) <= 1750


PACKAGED = {
    "ewens_widgets/py.typed",
    "ewens_widgets/partition.py",
    "ewens_widgets/data/leukemia.npz",
    "ewens_widgets/notebooks/01_quickstart.ipynb",
    "ewens_widgets/app/page/index.html.j2",
    "ewens_widgets/app/page/503.html",
}


def build(kind: str, source: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(folder)]
    result = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", repository, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked_source(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive = build("sdist", repository, tmp_path_factory.mktemp("sdist"))
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


@pytest.mark.slow
def test_the_wheel_is_complete_and_clean(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert names >= PACKAGED
    assert not [name for name in names if re.search(r"^tests|__pycache__|\.ipynb_checkpoints", name)]
    # In a browser numba is not asked for.
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    requirements = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    (numba,) = (requirement for requirement in requirements if requirement.name == "numba")
    assert numba.marker is not None
    assert not numba.marker.evaluate({"sys_platform": "emscripten"})
    assert numba.marker.evaluate({"sys_platform": "linux"})


@pytest.mark.slow
def test_a_wheel_from_the_source_archive_is_the_same(
    wheel: Path, unpacked_source: Path, tmp_path: Path
) -> None:
    assert (unpacked_source / "Makefile").is_file()
    assert (unpacked_source / "LICENSE").is_file()
    again = build("wheel", unpacked_source, tmp_path)
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(wheel).namelist()


@pytest.mark.slow
def test_the_wheel_works_without_a_checkout(wheel: Path, tmp_path: Path) -> None:
    site, course = tmp_path / "site", tmp_path / "course"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)  # noqa: S202 — our own archive
    code = f"""
import ewens_widgets as ew
from pathlib import Path
from ewens_widgets import app
assert Path(ew.__file__).is_relative_to({str(site)!r}), ew.__file__
assert ew.datasets.leukemia(n_components=20).X.shape == (38, 20)
assert app.copy_tutorials(app.shipped_tutorials(), Path({str(course)!r})) >= 1
"""
    environment = os.environ | {"PYTHONPATH": str(site)}
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert (course / "01_quickstart.ipynb").is_file()


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
